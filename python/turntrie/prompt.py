"""A prompt as arrays, with what is known about it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from turntrie import _native

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.uint32]
    MessageIndex = npt.NDArray[np.int32]


class MessageSpan(NamedTuple):
    """A part of a prompt's text that one message wrote."""

    message: int
    """Index of the message."""
    start: int
    """The character where it begins."""
    end: int
    """The character behind its last."""


class Prompt:
    """The ids of one prompt, and how they came about.

    A native prompt holds on to its text and its converted messages, for `spans`; what it shares with other prompts of
    the conversation is there once.

    Attributes:
        kept: How many leading ids are old. Of a `Session`: equal to those of its previous prompt. Of
            `tok.turntrie.prompt`: taken from checkpoints.
        reused: How many leading ids were taken from checkpoints instead of being computed.
        reason: Why transformers made them; `None` for a native prompt.
    """

    __slots__ = ("_ids", "_located", "_new_ids", "_source", "kept", "reason", "reused")

    def __init__(
        self,
        source: _native.Prompt | Sequence[int],
        kept: int | None = None,
        reason: str | None = None,
        reused: int = 0,
    ) -> None:
        """Holds a native prompt, or plain ids, with what is known about them."""
        if isinstance(source, _native.Prompt):
            self._source: Any = source
            self.reused = source.kept
        else:
            self._source = list(source)
            self.reused = reused
        self.kept = self.reused if kept is None else kept
        self.reason = reason
        self._ids: Ids | None = None
        self._new_ids: Ids | None = None
        self._located: tuple[list[MessageSpan], MessageIndex] | None = None

    @property
    def path(self) -> Literal["native", "reference"]:
        """`"native"`, or `"reference"` if transformers made the ids."""
        return "native" if self.reason is None else "reference"

    @property
    def native(self) -> "_native.Prompt | None":
        """The native module's prompt, from which the next one of a session goes on; `None` if there is none."""
        return self._source if isinstance(self._source, _native.Prompt) else None

    @property
    def text(self) -> str | None:
        """The text that was encoded; `None` if transformers rendered it, or if the prompt was pickled."""
        return None if self.reason is not None or self.native is None else self.native.text

    @property
    def ids(self) -> "Ids":
        """All ids: an array of shape `(len(prompt),)`, dtype uint32, made on first use and yours to change."""
        if self._ids is None:
            self._ids = self._array(0)
        return self._ids

    @property
    def new_ids(self) -> "Ids":
        """`ids[kept:]` as an array of its own, shape `(len(prompt) - kept,)`, dtype uint32, made on first use."""
        if self._new_ids is None:
            self._new_ids = self._array(self.kept)
        return self._new_ids

    @property
    def spans(self) -> list[MessageSpan] | None:
        """Which parts of the text are which message's, in the order of the text.

        A message may have several parts, or none (a system message that the template puts into its head). What is
        outside of the template's loops over messages is nobody's. Found on first use, at the price of a render. `None`
        if it is not known: transformers made the ids, or the prompt has travelled, or its template cannot be tracked.
        """
        located = self._locate()
        return None if located is None else list(located[0])

    @property
    def message_index(self) -> "MessageIndex | None":
        """For each id the index of the message in whose text the token begins; -1 where it is nobody's.

        An array of shape `(len(prompt),)`, dtype int32, yours to change. A token that reaches over the border of two
        messages belongs to the one in which it begins. `None` if it is not known, see `spans`.
        """
        located = self._locate()
        return None if located is None else located[1].copy()

    @property
    def iterations(self) -> tuple[int, int]:
        """Iterations of the template's loops over messages: `(taken over from earlier turns, rendered)`.

        Loops that can take none over are not counted.
        """
        return self._source.iterations if isinstance(self._source, _native.Prompt) else (0, 0)

    def tolist(self) -> list[int]:
        """All ids as a fresh list of int."""
        ids: list[int] = self._source.tolist() if isinstance(self._source, _native.Prompt) else list(self._source)
        return ids

    def with_kept(self, kept: int) -> "Prompt":
        """The same ids, with another count of old ones."""
        return Prompt(self._source, kept, self.reason, self.reused)

    def common_prefix(self, other: "Prompt") -> int:
        """Counts the leading ids that are equal in both prompts."""
        if isinstance(self._source, _native.Prompt) and isinstance(other._source, _native.Prompt):  # noqa: SLF001
            shared: int = self._source.common_prefix(other._source)  # noqa: SLF001  # same class
            return shared
        length = min(len(self), len(other))
        differ = (self._array(0)[:length] != other._array(0)[:length]).nonzero()[0]  # noqa: SLF001  # same class
        return int(differ[0]) if len(differ) else length

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels as its ids and what is known about them."""
        return Prompt, (self.tolist(), self.kept, self.reason, self.reused)

    def __len__(self) -> int:
        """Number of ids."""
        return len(self._source)

    def __repr__(self) -> str:
        """Without contents: prompts are private."""
        return f"Prompt(len={len(self)}, kept={self.kept}, path={self.path!r}, reason={self.reason!r})"

    def _locate(self) -> "tuple[list[MessageSpan], MessageIndex] | None":
        import numpy as np  # noqa: PLC0415  # `import turntrie` stays light

        if self._located is None and isinstance(self._source, _native.Prompt):
            found = self._source.locate()
            if found is not None:
                spans, index = found
                self._located = [MessageSpan(*span) for span in spans], np.frombuffer(index, dtype=np.int32)
        return self._located

    def _array(self, start: int) -> "Ids":
        import numpy as np  # noqa: PLC0415  # `import turntrie` stays light

        if isinstance(self._source, _native.Prompt):
            return np.frombuffer(self._source.buffer(start), dtype=np.uint32)
        return np.array(self._source[start:], dtype=np.uint32)
