"""Sequences of calls that a growing chat makes, and how one call's outcome is compared.

An episode is a list of calls in an order that matters: each one meets what the calls before it left behind. The same
episode is run on a plain tokenizer and on a wrapped one, and every outcome must agree: ids or text, types, and, where
the template refuses, the class and the text of the exception.
"""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import real_data
from turntrie.cli.recordings import Arguments, Recording
from turntrie.demo import conversation

Message = dict[str, Any]


class Call(NamedTuple):
    """One call of `apply_chat_template`."""

    messages: list[Message]
    tools: list[dict[str, Any]] | None = None
    keywords: dict[str, Any] = {}  # noqa: RUF012  # never changed; a NamedTuple's default

    def on(self, tokenizer: Any) -> Any:
        """Makes the call, on copies: neither side may depend on the caller's objects staying the same."""
        keywords = {"add_generation_prompt": True, "return_dict": False, **self.keywords}
        return tokenizer.apply_chat_template(copy.deepcopy(self.messages), tools=copy.deepcopy(self.tools), **keywords)


def outcome(tokenizer: Any, call: Call) -> tuple[Any, ...]:
    """What a call came to: the type and value of the result, or the class and text of the exception."""
    try:
        value = call.on(tokenizer)
    except Exception as error:  # noqa: BLE001  # whatever it is must be the same on both sides
        return ("raised", type(error).__name__, str(error))
    if hasattr(value, "data") and hasattr(value, "encodings"):
        return ("returned", type(value).__name__, dict(value.data))
    return ("returned", type(value).__name__, value)


def compare(wrapped: Any, calls: list[Call], expected: list[tuple[Any, ...]]) -> dict[str, int]:
    """Makes the calls on the wrapped tokenizer, asserts each outcome, and counts how they were served.

    Returns:
        Numbers of calls: `native`, and one entry for each reason of a call that fell back. Calls that the reference
        refused are not counted: there the reference has to speak.
    """
    served: dict[str, int] = {}
    for number, (call, wanted) in enumerate(zip(calls, expected, strict=True)):
        before = real_data.fallbacks()
        got = outcome(wrapped, call)
        assert got == wanted, f"call {number} of {len(calls)}: {difference(got, wanted)}"
        reasons = real_data.fallbacks() - before
        assert not any(reason.startswith("panic") for reason in reasons), reasons
        if wanted[0] == "returned":
            for reason in reasons or ["native"]:
                served[reason] = served.get(reason, 0) + 1
    return served


def difference(got: tuple[Any, ...], wanted: tuple[Any, ...]) -> str:
    """Where two outcomes part, without printing a hundred thousand ids."""
    if got[:2] != wanted[:2] or not isinstance(got[2], list) or not isinstance(wanted[2], list):
        return f"{str(got)[:300]} is not {str(wanted)[:300]}"
    pairs = zip(got[2], wanted[2], strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(got[2]), len(wanted[2])))
    part = slice(max(at - 3, 0), at + 5)
    return f"ids differ from index {at} on: {got[2][part]} is not {wanted[2][part]}"


# --- conversations ---


def own(turns: int, seed: int, arguments: Arguments = "dict") -> Recording:
    """A generated conversation: reasoning, parallel calls, several questions, several scripts."""
    messages, tools = conversation(turns=turns, seed=seed)
    return Recording(f"own-{seed}", messages, tools).spelled(arguments)


def single_calls(recording: Recording) -> Recording:
    """The same with one tool call a turn at most: some templates refuse more."""
    messages: list[Message] = []
    kept: set[str] = set()
    for message in recording.messages:
        if message["role"] == "tool" and message["tool_call_id"] not in kept:
            continue
        if message.get("tool_calls"):
            kept = {message["tool_calls"][0]["id"]}
            message = {**message, "tool_calls": message["tool_calls"][:1]}  # noqa: PLW2901
        messages.append(message)
    return recording._replace(messages=messages)


def alternating(recording: Recording) -> Recording:
    """The same without tools and system message, as strict turns of user and assistant: any template takes that."""
    messages: list[Message] = []
    for message in recording.messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        if message["role"] == "system":
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += "\n" + message["content"]
        else:
            messages.append({"role": role, "content": message["content"] or "."})
    return Recording(recording.name, messages, None)


def parts(recording: Recording) -> Recording:
    """The same with every content as a list of parts: a few templates take nothing else."""
    messages = [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in recording.messages]
    return recording._replace(messages=messages)


def shapes(recording: Recording) -> Iterator[Recording]:
    """The conversation in the shapes that templates take, the richest first."""
    spellings: tuple[Arguments, ...] = ("dict", "str")
    for arguments in spellings:
        yield recording.spelled(arguments)
        yield single_calls(recording.spelled(arguments))
    yield alternating(recording)
    yield parts(alternating(recording))


def fitting(tokenizer: Any, recording: Recording) -> Recording:
    """The richest shape of the conversation that the tokenizer's template renders at every turn."""
    for shape in shapes(recording):
        calls = [Call(shape.messages[:end], shape.tools, {"tokenize": False}) for end in shape.asks()]
        if all(outcome(tokenizer, call)[0] == "returned" for call in calls):
            return shape
    raise AssertionError(f"no shape of {recording.name} renders")


# --- episodes ---


def growing(recording: Recording) -> list[Call]:
    """Every turn, in order."""
    return [Call(recording.messages[:end], recording.tools) for end in recording.asks()]


def interleaved(*recordings: Recording) -> list[Call]:
    """Several conversations, a turn of each by turns."""
    turns = [growing(recording) for recording in recordings]
    return [calls[number] for number in range(max(map(len, turns))) for calls in turns if number < len(calls)]


def edited(recording: Recording) -> list[Call]:
    """Turns, then the history changes: at its head, in its middle, near its end; undone; cut short; retried."""
    messages, tools = recording.messages, recording.tools
    whole = Call(messages, tools)
    calls = [*growing(recording)[-2:], whole]
    for index in sorted({0, 1, len(messages) // 2, len(messages) // 2 + 1, len(messages) - 1}):
        texts = ("x", "", " \n\n", "<|im_end|>", "e\u0301\r\n", "\u4f60\u597d")
        calls += [Call(_with_text(messages, index, text), tools) for text in texts]
        calls.append(whole)
    half = len(messages) // 2
    calls += [
        Call(messages[:half], tools),
        whole,
        Call(messages[:half], tools),
        Call([*messages[:2], *messages[4:]], tools),
    ]
    return [*calls, whole, whole]


def _with_text(messages: list[Message], index: int, text: str) -> list[Message]:
    """The messages with a text inserted into the middle of one content."""
    message = messages[index]
    content = message["content"]
    if isinstance(content, str):
        changed: Any = content[: len(content) // 2] + text + content[len(content) // 2 :]
    else:
        changed = [{"type": "text", "text": text + content[0]["text"]}]
    return [*messages[:index], {**message, "content": changed}, *messages[index + 1 :]]


def retooled(recording: Recording) -> list[Call]:
    """The same messages with other tools: none, fewer, reordered, reworded, the first ones again."""
    tools = recording.tools or conversation(turns=1, seed=1).tools
    reworded = copy.deepcopy(tools)
    reworded[0]["function"]["description"] += " And no more."
    choices = [tools, None, tools[:1], tools[::-1], reworded, tools, []]
    return [Call(recording.messages[:end], choice) for choice in choices for end in recording.asks()[-2:]]


def switched(recording: Recording) -> list[Call]:
    """The same turns with other keywords: those that many templates know, and one that none does."""
    keywords: list[dict[str, Any]] = [
        {},
        {"add_generation_prompt": False},
        {"enable_thinking": False},
        {"enable_thinking": True},
        {"thinking": True},
        {"reasoning_effort": "low"},
        {"unheard_of": [1, "two", None]},
        {},
    ]
    ends = recording.asks()[-2:]
    return [Call(recording.messages[:end], recording.tools, choice) for end in ends for choice in keywords]


def returned(recording: Recording) -> list[Call]:
    """Growing turns in every kind of result: a list, the installed default, a dict, a text."""
    kinds: list[dict[str, Any]] = [
        {},
        {"return_dict": True},
        {"tokenize": False},
        {"tokenize": True, "return_dict": False},
    ]
    return [Call(call.messages, call.tools, kind) for call in growing(recording)[-4:] for kind in kinds]


TEXTS = (
    "",
    " ",
    "\n",
    "  \n \t\n\n ",
    "\r\n\r\n",
    "a",
    "  lead and trail  \n",
    "<",
    "<|",
    "<|im_end|>",
    "<|im_start|>user\nhello<|im_end",
    "<|turn|>user\n",
    "</s><s>[INST] [/INST]<eos><bos>",
    "<|start_header_id|><|eot_id|>",
    "<think>\nwhy\n</think>\n\nso",
    "</think>",
    "<tool_call>\n{}\n</tool_call>",
    "e\u0301",
    "\u0301combining first",
    "\u1e9b\u0323 \ufb01 \u2460 \u212b",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\u0e01\u0e32\u0e23\u0e40\u0e0a",
    "\U0001f469\u200d\U0001f4bb\U0001f1ef\U0001f1f5",
    "\ufeff\u200b\u00a0\u2028",
    "1234567890 12,345.678e-9",
    "'s 't 're don't I'LL",
    "\u2581 \u0120 \u010a",
    "\x00\x07\x1b[31m",
    "=" * 90,
    "    " * 12 + "deep",
)
"""Contents at which tokenizers and templates are fragile."""


def odd_texts() -> list[Call]:
    """Short conversations of odd contents, every content beside several others."""
    calls = []
    for shift in (1, 7):
        messages: list[Message] = []
        for number, text in enumerate(TEXTS):
            messages.append({"role": "user", "content": text})
            calls.append(Call(list(messages)))
            messages.append({"role": "assistant", "content": TEXTS[(number + shift) % len(TEXTS)]})
            if len(messages) > 12:
                messages = []
    return calls
