"""Replays a conversation turn by turn through transformers and through turntrie, and compares.

A turn is a point where the model is asked: the messages so far, with the generation prompt. What is timed is the first
call of a turn, whose new messages this process has never seen; nothing is called twice inside a measurement. Both
sides return a list of ids. The comparison itself, and a look at the drop-in `apply_chat_template`, come after.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from turntrie.cli.errors import RefusalError, one_line
from turntrie.cli.recordings import Arguments, Recording


class Turn(NamedTuple):
    """One turn, measured and compared. Times are seconds of wall clock."""

    number: int
    messages: int
    tokens: int
    kept: int
    new: int
    reference_seconds: float
    turntrie_seconds: float
    identical: bool
    path: str
    reason: str | None

    @property
    def good(self) -> bool:
        """Whether the ids are the reference's and turntrie made them itself."""
        return self.identical and self.path == "native" and self.reason is None


def spelling(tokenizer: Any, recording: Recording) -> Arguments:
    """Finds how the chat template wants the arguments of tool calls: parsed if it renders them, else as JSON text.

    Raises:
        RefusalError: The template renders the conversation in neither spelling.
    """
    failures = []
    choices: tuple[Arguments, ...] = ("dict", "str")
    for arguments in choices:
        try:
            tokenizer.apply_chat_template(recording.spelled(arguments).messages, tools=recording.tools, tokenize=False)
        except Exception as error:  # noqa: BLE001  # a template raises what it likes
            failures.append(one_line(error))
        else:
            return arguments
    raise RefusalError(f"the chat template refuses this conversation: {failures[0]}")


def warm_up(plain: Any, wrapped: Any) -> float:
    """Lets both sides compile their template and build their engine, and returns the seconds turntrie took."""
    with contextlib.suppress(Exception):  # a template may refuse even this; then it is compiled all the same
        plain.apply_chat_template([{"role": "user", "content": "hello"}], add_generation_prompt=True)
    seconds, _ = _timed(wrapped.turntrie.warmup)
    return seconds


def replay(plain: Any, wrapped: Any, recording: Recording) -> Iterator[Turn]:
    """Yields the turns of a conversation in order.

    Args:
        plain: A tokenizer of transformers, as it came.
        wrapped: Another one of the same model, wrapped by turntrie.
        recording: The conversation, its arguments spelled as the template wants them.

    Raises:
        RefusalError: The template refuses a turn.
    """
    for number, end in enumerate(recording.asks(), start=1):
        messages, tools = recording.messages[:end], recording.tools
        call = {"tools": tools, "add_generation_prompt": True}
        try:
            reference_seconds, reference = _timed(
                partial(plain.apply_chat_template, messages, return_dict=False, **call)
            )
        except Exception as error:
            raise RefusalError(f"the chat template refuses turn {number}: {one_line(error)}") from error
        turntrie_seconds, (prompt, ids) = _timed(partial(_ids, wrapped, messages, call))
        drop_in = wrapped.apply_chat_template(messages, return_dict=False, **call)
        yield Turn(
            number=number,
            messages=end,
            tokens=len(reference),
            kept=int(prompt.kept),
            new=len(prompt.new_ids),
            reference_seconds=reference_seconds,
            turntrie_seconds=turntrie_seconds,
            identical=ids == reference and drop_in == reference and type(drop_in) is type(reference),
            path=str(prompt.path),
            reason=prompt.reason,
        )


def _ids(wrapped: Any, messages: list[dict[str, Any]], call: dict[str, Any]) -> tuple[Any, list[int]]:
    """The prompt, with what it says about itself, and its ids as the list that transformers would return."""
    prompt = wrapped.turntrie.prompt(messages, **call)
    return prompt, prompt.tolist()


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Calls once; the seconds and the result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result
