"""slime's contract: what its own test doubles demand, and what its trajectories do with ids."""

import inspect
import random
from typing import Any

import numpy as np
import pytest

import adapter_models
import adapter_paths
import episodes
import turntrie
from turntrie.adapters import slime


class Scripted:
    """A test double: knows three keywords and nothing else, hands out prompts in order, and has no template."""

    __slots__ = ("calls", "prompts")

    def __init__(self, *prompts: Any) -> None:
        self.prompts = list(prompts)
        self.calls: list[Any] = []

    def apply_chat_template(
        self, messages: Any, tools: Any = None, tokenize: Any = None, add_generation_prompt: Any = None
    ) -> Any:
        self.calls.append((messages, tools, tokenize, add_generation_prompt))
        return self.prompts.pop(0)


USER = [{"role": "user", "content": "hi"}]


def test_a_test_double_is_called_once_with_the_three_keywords() -> None:
    prompt = [5, 6, 7]
    double = Scripted(prompt)
    ids = slime.render_token_ids(USER, double, tools=None)
    assert ids == prompt
    assert ids is not prompt, "the double's own list must not be handed out"
    assert double.calls == [(USER, None, True, True)]
    assert double.calls[0][0] is USER


@pytest.mark.parametrize("result", [{"input_ids": [1, 2]}, (1, 2), np.array([1, 2]), [1, 2]])
def test_whatever_a_double_returns_becomes_a_list(result: Any) -> None:
    ids = slime.render_token_ids(USER, Scripted(result), tools=[], add_generation_prompt=False)
    assert type(ids) is list
    assert ids == [1, 2]


def test_an_error_of_a_double_is_its_own() -> None:
    class Refusing:
        def apply_chat_template(self, _: Any, **__: Any) -> Any:
            raise AssertionError("prompt queue exhausted")

    with pytest.raises(AssertionError, match="prompt queue exhausted"):
        slime.render_token_ids(USER, Refusing(), tools=None)


def test_protocols() -> None:
    assert isinstance(Scripted(), slime.ChatTokenizer)
    assert not isinstance(object(), slime.ChatTokenizer)
    assert isinstance(adapter_models.plain("demo"), slime.EncodingTokenizer)


def test_the_signature_is_slimes() -> None:
    signature = inspect.signature(slime.render_token_ids)
    assert list(signature.parameters) == ["messages", "tokenizer", "tools", "add_generation_prompt"]
    kinds = [parameter.kind.name for parameter in signature.parameters.values()]
    assert kinds == ["POSITIONAL_OR_KEYWORD", "POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY", "KEYWORD_ONLY"]
    assert signature.parameters["tools"].default is inspect.Parameter.empty
    assert signature.parameters["add_generation_prompt"].default is True


# --- common prefix ---


def slow(left: Any, right: Any) -> int:
    """One id after the other."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


KINDS = {
    "lists": (list, list),
    "tuples": (tuple, tuple),
    "list and tuple": (list, tuple),
    "arrays": (np.array, np.array),
    "uint32 and list": (lambda ids: np.array(ids, dtype=np.uint32), list),
    "list and int64": (list, lambda ids: np.array(ids, dtype=np.int64)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_common_prefix_is_that_of_a_slow_loop(kind: str) -> None:
    make_left, make_right = KINDS[kind]
    rng = random.Random(5)
    sizes = (0, 1, 2, 4095, 4096, 4097, 9000)
    for size in sizes:
        ids = [rng.randrange(150_000) for _ in range(size)]
        for cut in {0, size // 2, max(size - 1, 0), size}:
            other = [*ids[:cut], *([id_ + 1 for id_ in ids[cut : cut + 1]]), *ids[cut + 1 :]]
            for tail in ([], [1, 2, 3]):
                left, right = make_left(ids), make_right(other + tail)
                want = slow(ids, other + tail)
                assert slime.common_prefix(left, right) == want
                assert slime.common_prefix(right, left) == want


def test_common_prefix_of_prompts() -> None:
    tok = turntrie.wrap(adapter_models.load("demo"))
    messages, tools = episodes.own(turns=6, seed=3)[1:]
    short = tok.turntrie.prompt(messages[:4], tools=tools)
    long = tok.turntrie.prompt(messages, tools=tools)
    want = slow(short.tolist(), long.tolist())
    assert 0 < want <= len(short)
    for left in (short, short.tolist(), short.ids):
        for right in (long, long.tolist(), long.ids):
            assert slime.common_prefix(left, right) == want


def test_drift_kinds_of_a_reasoning_template() -> None:
    """CLEAN while the model calls tools, drift once the user asks again: told by the common prefix alone."""
    tok = adapter_models.ours("demo")
    call = {"type": "function", "function": {"name": "f", "arguments": {}}}
    thinking = {"role": "assistant", "content": "", "reasoning_content": "why", "tool_calls": [call]}
    turn = [*USER, thinking, {"role": "tool", "content": "r"}]
    held = slime.render_token_ids(turn[:2], tok, tools=None, add_generation_prompt=False)
    clean = slime.render_token_ids(turn, tok, tools=None)
    assert slime.common_prefix(held, clean) == len(held)
    asked = slime.render_token_ids([*turn, {"role": "user", "content": "again"}], tok, tools=None)
    question = slime.render_token_ids(turn[:1], tok, tools=None)
    assert len(question) <= slime.common_prefix(held, asked) < len(held)


# --- token delta ---


class Rewriting:
    """Hides earlier reasoning once the user asks again; bytes are tokens; keyword-only and strict."""

    def apply_chat_template(self, messages: Any, *, add_generation_prompt: Any, tokenize: Any) -> str:
        assert tokenize is False
        last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
        text = ""
        for index, message in enumerate(messages):
            content = message["content"]
            if message["role"] == "assistant" and index < last:
                content = content.rpartition("#")[2]
            text += f"[{message['role']}]{content}[/]"
        return text + ("[assistant]" if add_generation_prompt else "")

    def encode(self, text: str, *, add_special_tokens: Any) -> list[int]:
        assert add_special_tokens is False
        return list(text.encode())


TALK = [
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "reasons#answer"},
    {"role": "user", "content": "second"},
    {"role": "assistant", "content": "more#end"},
]


def test_delta_of_a_user_who_rewrites_history() -> None:
    ids, mask = slime.get_token_delta(Rewriting(), TALK[:3])
    assert (bytes(ids), mask) == (b"[user]second[/]", [0] * len(ids))


def test_delta_of_an_answer() -> None:
    ids, mask = slime.get_token_delta(Rewriting(), TALK)
    assert (bytes(ids), mask) == (b"more#end[/]", [1] * len(ids))
    ids, mask = slime.get_token_delta(Rewriting(), TALK, include_generation_prompt=True)
    head = len(b"[assistant]")
    assert (bytes(ids), mask) == (b"[assistant]more#end[/]", [0] * head + [1] * (len(ids) - head))


def test_delta_when_the_prompt_and_the_answer_share_a_token() -> None:
    class Merging(Rewriting):
        def encode(self, text: str, *, add_special_tokens: Any) -> list[int]:
            assert add_special_tokens is False
            return [ord(c) for c in text.replace("]\n", "\u00ff")]

    talk = [*TALK[:3], {"role": "assistant", "content": "\nend"}]
    ids, mask = slime.get_token_delta(Merging(), talk, include_generation_prompt=True)
    assert len(ids) == len("[assistant]end[/]")
    assert mask == [0] * len("[assistant]") + [1] * len("end[/]")


def test_delta_errors() -> None:
    class Appending(Rewriting):
        def apply_chat_template(self, messages: Any, **keywords: Any) -> str:
            return str(len(messages)) + super().apply_chat_template(messages, **keywords)

    with pytest.raises(ValueError, match="empty conversation"):
        slime.get_token_delta(Rewriting(), [])
    with pytest.raises(ValueError, match="standalone suffix"):
        slime.get_token_delta(Appending(), TALK[:3])
    with pytest.raises(ValueError, match="does not extend"):
        slime.get_token_delta(Appending(), TALK[:2])
    with pytest.raises(ValueError, match="non-user token delta"):
        slime.get_token_delta(Appending(), [*TALK[:2], {"role": "tool", "content": "r"}])


@pytest.mark.fallback  # a template refuses some of the parts that are rendered by themselves
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
def test_deltas_of_a_conversation_are_slimes_own(name: str, include: bool) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    recording = episodes.fitting(plain, episodes.own(turns=7, seed=8))
    returned = 0
    for end in range(1, len(recording.messages) + 1):
        outcomes = []
        for delta, tokenizer in ((adapter_paths.slime_delta, plain), (slime.get_token_delta, tok)):
            try:
                outcomes.append(delta(tokenizer, recording.messages[:end], include_generation_prompt=include))
            except Exception as error:  # noqa: BLE001  # whatever it is must be the same on both sides
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1], f"{end} messages"
        returned += isinstance(outcomes[0][0], list)
    assert returned > 5
    assert turntrie.is_wrapped(tok)
