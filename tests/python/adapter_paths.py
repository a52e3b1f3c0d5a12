"""Each system's own way to the ids of a turn, on a plain tokenizer, and ours beside it, in one form.

The own ways are written down here from what the systems document and do, not taken from them: they are the oracle. All
of them render and encode the whole conversation in each call. A route is made for one conversation and called once a
turn with all its messages.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import transformers

from turntrie.adapters import areal, nemo, slime, trl

Messages = list[dict[str, Any]]
Route = Callable[..., list[int]]
"""Called with messages, tools and keywords for the template."""

MAJOR = int(transformers.__version__.partition(".")[0])


class System(NamedTuple):
    """A system: for a tokenizer, its own route, and ours."""

    own: Callable[[Any], Route]
    ours: Callable[[Any], Route]
    keywords: bool = True
    """Whether the system gives keywords to the template at all."""


def _slime_own(tok: Any) -> Route:
    def ids(messages: Messages, tools: Any) -> list[int]:
        encoded = tok.apply_chat_template(messages, tools=tools, tokenize=True, add_generation_prompt=True)
        held = "input_ids" in encoded  # of a list of ids, this is false
        return list(encoded["input_ids"] if held else encoded)

    return ids


def _slime_ours(tok: Any) -> Route:
    return lambda messages, tools: slime.render_token_ids(messages, tok, tools=tools)


def _areal_own(tok: Any, *, prompt: bool = True) -> Route:
    def ids(messages: Messages, tools: Any, **keywords: Any) -> list[int]:
        encoded = tok.apply_chat_template(
            messages, tools=tools, add_generation_prompt=prompt, tokenize=True, **keywords
        )
        return list(encoded["input_ids"]) if MAJOR >= 5 else encoded

    return ids


def _areal_ours(tok: Any) -> Route:
    def ids(messages: Messages, tools: Any, **keywords: Any) -> list[int]:
        return areal.apply_chat_template(tok, messages, tools=tools, add_generation_prompt=True, **keywords)

    return ids


def _areal_incremental(tok: Any) -> Route:
    """The renderer, given only what is new, as long as the conversation grows by messages."""
    known: list[Any] = []  # messages and base ids of the turn before

    def ids(messages: Messages, tools: Any, **keywords: Any) -> list[int]:
        render = areal.IncrementalPromptRenderer
        before, base = known or ([], None)
        rendered = None
        if base is not None and messages[: len(before)] == before:
            rendered = render.render_incremental(tok, base, messages[len(before) :], tools, keywords)
        prompt, base = rendered or render.render_initial(tok, messages, tools, keywords)
        known[:] = list(messages), base
        return prompt

    return ids


def _nemo_own(tok: Any) -> Route:
    def ids(messages: Messages, tools: Any, **keywords: Any) -> list[int]:
        return list(
            type(tok).apply_chat_template(
                tok,
                messages,
                tools=tools,
                documents=None,
                chat_template=None,
                add_generation_prompt=True,
                continue_final_message=False,
                tokenize=True,
                return_tensors=None,
                return_dict=False,
                **keywords,
            )
        )

    return ids


def _nemo_ours(tok: Any) -> Route:
    def ids(messages: Messages, tools: Any, **keywords: Any) -> list[int]:
        return nemo.render_prompt_token_ids(
            tokenizer=tok,
            request_body={"messages": messages, "tools": tools},
            messages=messages,
            tokenizer_chat_template_kwargs=keywords,
            exclude_tools_when_tool_choice_none=True,
            add_generation_prompt=True,
        )

    return ids


def _tokenize_ours(tok: Any) -> Route:
    client = nemo.InProcessTokenize(tok)

    def ids(messages: Messages, tools: Any, **keywords: Any) -> list[int]:
        body = {"model": "m", "messages": messages, "tools": tools, "chat_template_kwargs": keywords}
        answer = asyncio.run(client.create_tokenize(**body))
        assert answer["count"] == len(answer["tokens"])
        return list(answer["tokens"])

    return ids


def _trl_own(tok: Any) -> Route:
    def ids(messages: Messages, tools: Any, **keywords: Any) -> list[int]:
        return list(
            tok.apply_chat_template(
                messages,
                return_dict=False,
                add_generation_prompt=True,
                tools=tools or None,
                chat_template=None,
                **keywords,
            )
        )

    return ids


def _trl_ours(tok: Any) -> Route:
    return lambda messages, tools, **keywords: trl.prompt_ids(tok, messages, tools=tools, chat_template_kwargs=keywords)


SYSTEMS = {
    "slime": System(_slime_own, _slime_ours, keywords=False),
    "areal": System(_areal_own, _areal_ours),
    "areal incremental": System(_areal_own, _areal_incremental),
    "nemo": System(_nemo_own, _nemo_ours),
    "nemo /tokenize": System(_nemo_own, _tokenize_ours),
    "trl": System(_trl_own, _trl_ours),
}


def slime_delta(
    tok: Any, messages: Messages, *, include_generation_prompt: bool = False
) -> tuple[list[int], list[int]]:
    """Slime's delta of the last message, in the plainest words: renders, cuts text, encodes what is left."""
    if not messages:
        raise ValueError("Cannot calculate a token delta for an empty conversation")

    def render(part: Messages, *, asked: bool = False) -> str:
        return str(tok.apply_chat_template(part, add_generation_prompt=asked, tokenize=False))

    whole, old, last = render(messages), render(messages[:-1]), messages[-1]
    if last["role"] == "assistant":
        prompted = render(messages[:-1], asked=True)
        if not prompted.startswith(old):
            raise ValueError("Adding the assistant generation prompt rewrote the rendered conversation")
        if not whole.startswith(prompted):
            raise ValueError("The assistant response does not extend its generation prompt")
        if not include_generation_prompt:
            ids = tok.encode(whole[len(prompted) :], add_special_tokens=False)
            return ids, [1] * len(ids)
        ids = tok.encode(whole[len(old) :], add_special_tokens=False)
        masked = min(len(tok.encode(prompted[len(old) :], add_special_tokens=False)), len(ids))
        return ids, [0] * masked + [1] * (len(ids) - masked)
    if not whole.startswith(old):
        if last["role"] != "user":
            raise ValueError("The chat template rewrote history while calculating a non-user token delta")
        old, single = whole, render([last])
        if not whole.endswith(single):
            raise ValueError("The latest user message is not a standalone suffix of the rendered conversation")
        old = whole[: len(whole) - len(single)]
    ids = tok.encode(whole[len(old) :], add_special_tokens=False)
    return ids, [0] * len(ids)


def trl_suffix(tok: Any, results: Messages, **keywords: Any) -> list[int]:
    """TRL's ids of tool results: two renders of a made-up exchange, cut at the last end-of-text token."""
    call = {"type": "function", "function": {"name": results[0]["name"], "arguments": {}}}
    asked = [{"role": "user", "content": "dummy"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    short = tok.apply_chat_template(asked, add_generation_prompt=False, tokenize=True, return_dict=False, **keywords)
    full = tok.apply_chat_template(
        asked + results, add_generation_prompt=True, tokenize=True, return_dict=False, **keywords
    )
    while short and tok.eos_token_id in short and short[-1] != tok.eos_token_id:
        short = short[:-1]
    if full[: len(short)] != short:
        raise ValueError("Unexpected tokenization: the EOS-trimmed prefix IDs are not a prefix of the full IDs.")
    return list(full[len(short) :])


def trl_preserving(tok: Any) -> bool:
    """TRL's question: do the ids of a call stay when its result follows?"""
    for arguments in ({}, "{}"):
        call = {"type": "function", "function": {"name": "dummy", "arguments": arguments}}
        asked = [{"role": "user", "content": "dummy"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
        result = {"role": "tool", "name": "dummy", "content": "dummy"}
        try:
            short = tok.apply_chat_template(asked, return_dict=False)
            full = tok.apply_chat_template([*asked, result], return_dict=False, add_generation_prompt=True)
        except TypeError:
            if arguments == "{}":
                raise
            continue
        return bool(full[: len(short)] == short)
    raise AssertionError("unreachable")
