"""Where two prompts part, and what it cost: the question behind every prefix cache that misses.

Prompts are compared as what they are, text and ids. The place in the text is known where turntrie rendered both; the
count of tokens always is. Which message wrote that place is asked of the later prompt (`Prompt.spans`), at the price of
a render; which line of the template did is left open (`None`), as nobody records it. Contents of messages are private:
they are in no `repr`, and in a `str` only on request.
"""

from dataclasses import dataclass, field

from turntrie.prompt import Prompt

_SHOWN = 40
"""Characters of each prompt that are shown on request."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a prompt goes on from an earlier one; `str` is one line for people.

    Attributes:
        kept: How many leading ids are equal; also the index of the first one that differs.
        lost: How many ids of the earlier prompt come behind them.
        new: How many ids of the later prompt come behind them.
        character: The first character of the texts that differs, or the length of the shorter text if that is a
            beginning of the longer one; `None` where a text is not known.
        byte: The same place in bytes of UTF-8, at the start of that character.
        message: The index of the message of the later prompt in whose text they part; `None` if that place is no
            message's, or not known (`Prompt.spans`).
        line: The line of the chat template that wrote it; `None` if not known.
    """

    kept: int
    lost: int
    new: int
    character: int | None = None
    byte: int | None = None
    message: int | None = None
    line: int | None = None
    _excerpts: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def identical(self) -> bool:
        """Whether both prompts have the same ids."""
        return not (self.lost or self.new)

    @property
    def extends(self) -> bool:
        """Whether the later prompt begins with all ids of the earlier one."""
        return not self.lost

    def __str__(self) -> str:
        """One line, with contents of messages only if they were asked for."""
        if self.identical:
            return f"identical: {self.kept} tokens"
        counts = f"{self.kept} tokens kept, {self.lost} lost, {self.new} new"
        if self.extends:
            return f"extended: {counts}"
        where = ["parted"]
        if self.byte is not None:
            where.append(f"at byte {self.byte}, character {self.character}")
        if self.message is not None:
            where.append(f"in message {self.message}")
        if self.line is not None:
            where.append(f"by line {self.line} of the template")
        shown = "" if self._excerpts is None else f"; was {self._excerpts[0]!r}, is {self._excerpts[1]!r}"
        return f"{' '.join(where)}: {counts}{shown}"


def explain(prev: Prompt, now: Prompt, *, contents: bool = False) -> Explanation:
    """Says where two prompts of one tokenizer part.

    Args:
        prev: The earlier prompt, of `tok.turntrie.prompt` or a `Session`.
        now: The later one, of the same tokenizer.
        contents: Whether `str` of the result shows some characters of both texts from there on.
    """
    kept = now.common_prefix(prev)
    counts = (kept, len(prev) - kept, len(now) - kept)
    texts = (prev.text, now.text)
    if texts[0] is None or texts[1] is None:
        return Explanation(*counts)
    character = _common(texts[0], texts[1])
    return Explanation(
        *counts,
        character=character,
        byte=len(texts[1][:character].encode()),
        message=_message(now, character),
        _excerpts=(texts[0][character:][:_SHOWN], texts[1][character:][:_SHOWN]) if contents else None,
    )


def _message(prompt: Prompt, character: int) -> int | None:
    """The message whose text holds this character."""
    spans = (span for span in prompt.spans or () if span.start <= character < span.end)
    return next((span.message for span in spans), None)


def _common(a: str, b: str) -> int:
    """The length of the common prefix, by halving: comparing slices costs no Python per character."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
