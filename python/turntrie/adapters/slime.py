"""slime: the prompt ids of an agent adapter's turn, and what its trajectories need to know about them.

`render_token_ids` stands in for `_render_token_ids` of slime/agent/adapters/common.py, `common_prefix` for the list
comparison by which slime/agent/trajectory.py tells CLEAN, REALIGN and FORK apart, `get_token_delta` for the function of
that name in examples/tau-bench/token_delta.py. Canonical: the ids are those of the whole conversation.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from turntrie.adapters._base import ChatTokenizer, EncodingTokenizer, Messages, call, ready
from turntrie.prompt import Prompt

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = Sequence[int] | npt.NDArray[np.integer[Any]] | Prompt

__all__ = ["ChatTokenizer", "EncodingTokenizer", "TurnRecord", "common_prefix", "get_token_delta", "render_token_ids"]

_BLOCK = 4096


@runtime_checkable
class TurnRecord(Protocol):
    """What slime notes of a turn, as far as ids are concerned."""

    prompt_ids: list[int]
    output_ids: list[int]


def render_token_ids(
    messages: Messages,
    tokenizer: ChatTokenizer,
    *,
    tools: list[dict[str, Any]] | None,
    add_generation_prompt: bool = True,
) -> list[int]:
    """The ids of a conversation; slime's `_render_token_ids`.

    Args:
        messages: The conversation.
        tokenizer: A tokenizer of transformers, or anything that takes the three keywords below, which is called once.
        tools: As for `apply_chat_template`.
        add_generation_prompt: As for `apply_chat_template`.
    """
    result = call(ready(tokenizer), messages, tools=tools, tokenize=True, add_generation_prompt=add_generation_prompt)
    encoded: Any = result.value
    if result.listed:
        return encoded  # type: ignore[no-any-return]  # a list of ids, by `listed`
    mapping = not isinstance(encoded, list | tuple) and hasattr(encoded, "__getitem__") and "input_ids" in encoded
    return list(encoded["input_ids"] if mapping else encoded)


def common_prefix(prev_ids: "Ids", ids: "Ids") -> int:
    """Counts the leading ids that are equal in both.

    The held tokens extend cleanly if this is `len(prev_ids)`. No loop over ids runs in Python: lists are compared in
    blocks, arrays and prompts at once.

    Args:
        prev_ids: A list, a tuple, an integer array, or a `turntrie.Prompt`.
        ids: Another one, maybe of another kind.
    """
    if isinstance(prev_ids, Prompt) and isinstance(ids, Prompt):
        return prev_ids.common_prefix(ids)
    left, right = (each.ids if isinstance(each, Prompt) else each for each in (prev_ids, ids))
    if hasattr(left, "__array_interface__") or hasattr(right, "__array_interface__"):
        return _in_arrays(left, right)
    return _in_lists(
        left if isinstance(left, list) else list(left),
        right if isinstance(right, list) else list(right),
    )


def _in_arrays(left: Any, right: Any) -> int:
    import numpy as np  # noqa: PLC0415  # only here

    length = min(len(left), len(right))
    differ = np.asarray(left[:length]) != np.asarray(right[:length])
    first = int(differ.argmax()) if length else 0
    return first if length and differ[first] else length


def _in_lists(left: list[int], right: list[int]) -> int:
    """O(n) in C, and a dozen slices in Python for the block in which the lists part."""
    length = min(len(left), len(right))
    low = 0
    while low < length:
        high = min(low + _BLOCK, length)
        if left[low:high] == right[low:high]:
            low = high
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if left[low:middle] == right[low:middle]:
                low = middle
            else:
                high = middle
        return low
    return length


def get_token_delta(
    tokenizer: EncodingTokenizer, messages: Messages, *, include_generation_prompt: bool = False
) -> tuple[list[int], list[int]]:
    """The ids that the last message adds, and their loss mask: 1 for what the model wrote.

    As in slime, the ids are those of the added text alone. They are the tail of the conversation's ids only if its
    tokenizer splits where the message begins.

    Args:
        tokenizer: A tokenizer of transformers, or anything with `apply_chat_template(messages, *,
            add_generation_prompt, tokenize)` and `encode(text, *, add_special_tokens)`.
        messages: The conversation, the new message last.
        include_generation_prompt: Begin an assistant's message with the generation prompt before it, masked 0.

    Raises:
        ValueError: There are no messages, or the template changes what was before the last one in a way that leaves no
            text of its own to the last one.
    """
    if not messages:
        raise ValueError("Cannot calculate a token delta for an empty conversation")
    tok = ready(tokenizer)
    if messages[-1]["role"] != "assistant":
        delta = _encoded(tok, _added(tok, messages))
        return delta, [0] * len(delta)
    asked, answer = _answered(tok, messages)
    if not include_generation_prompt:
        delta = _encoded(tok, answer)
        return delta, [1] * len(delta)
    delta = _encoded(tok, asked + answer)
    # The end of the prompt and the start of the answer may share a token: then it counts as the prompt's.
    masked = min(len(_encoded(tok, asked)), len(delta))
    return delta, [0] * masked + [1] * (len(delta) - masked)


def _answered(tok: EncodingTokenizer, messages: Messages) -> tuple[str, str]:
    """The texts of the generation prompt before the last message, and of that message behind it."""
    after, before = _text(tok, messages), _text(tok, messages[:-1])
    asked = _text(tok, messages[:-1], prompt=True)
    if not asked.startswith(before):
        raise ValueError("Adding the assistant generation prompt rewrote the rendered conversation")
    if not after.startswith(asked):
        raise ValueError("The assistant response does not extend its generation prompt")
    return asked[len(before) :], after[len(asked) :]


def _added(tok: EncodingTokenizer, messages: Messages) -> str:
    """The text of a last message that is not the model's."""
    after, before = _text(tok, messages), _text(tok, messages[:-1])
    if after.startswith(before):
        return after[len(before) :]
    if messages[-1]["role"] != "user":
        raise ValueError("The chat template rewrote history while calculating a non-user token delta")
    # A template that hides old reasoning once the user asks again. The message still stands for itself.
    alone = _text(tok, [messages[-1]])
    if not after.endswith(alone):
        raise ValueError("The latest user message is not a standalone suffix of the rendered conversation")
    return alone


def _text(tok: EncodingTokenizer, messages: Messages, *, prompt: bool = False) -> str:
    rendered: str = tok.apply_chat_template(messages, add_generation_prompt=prompt, tokenize=False)
    return rendered


def _encoded(tok: EncodingTokenizer, text: str) -> list[int]:
    ids: list[int] = tok.encode(text, add_special_tokens=False)
    return ids
