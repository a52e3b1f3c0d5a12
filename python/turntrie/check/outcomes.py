"""What one call of `apply_chat_template` came to, and where two outcomes part.

Equal means: the same type and the same value, or the same class of exception with the same text. A type is compared by
identity and not by name, so a look-alike is a difference.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple

Kind = Literal["text", "ids", "type", "exception"]


class Outcome(NamedTuple):
    """A returned value, or an exception."""

    raised: bool
    type: type
    """Of the value or of the exception."""
    value: Any
    """A text, a list of ids, the dict of a BatchEncoding; the text of the exception."""

    @classmethod
    def of(cls, call: Callable[[], Any]) -> "Outcome":
        """Makes a call and keeps what it came to."""
        try:
            value = call()
        except Exception as error:  # noqa: BLE001  # whatever it is, the other side has to raise it too
            return cls(True, type(error), str(error))
        return cls(False, type(value), dict(value) if hasattr(value, "keys") else value)

    def document(self) -> dict[str, Any]:
        """The outcome as a value for JSON, contents included."""
        return {"raised" if self.raised else "returned": self.type.__qualname__, "value": self.value}


class Parting(NamedTuple):
    """Where the outcome of turntrie leaves that of transformers. Without contents."""

    kind: Kind
    first: int
    """The first character, or index of the first id, that differs; 0 if types or exceptions do."""
    got_length: int
    want_length: int
    got: str
    """What turntrie did: `returned list`, `raised ValueError`."""
    want: str
    """What transformers did."""


def parting(got: Outcome, want: Outcome) -> Parting | None:
    """Where two outcomes part, or None if they are equal."""
    if got == want:
        return None
    kind: Kind = "exception" if got.raised or want.raised else "type"
    first = 0
    got_items, want_items = _items(got), _items(want)
    if kind == "type" and got.type is want.type:
        kind = "text" if got.type is str else "ids"
        name = next(n for n in {**want_items, **got_items} if got_items.get(n) != want_items.get(n))
        got_items, want_items = {name: got_items.get(name, [])}, {name: want_items.get(name, [])}
        first = common(got_items[name], want_items[name])
    got_length, want_length = (len(next(iter(items.values()), "")) for items in (got_items, want_items))
    return Parting(kind, first, got_length, want_length, _did(got), _did(want))


def common(got: Sequence[Any], want: Sequence[Any]) -> int:
    """How many leading items two sequences share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(got, want, strict=False)))


def _items(outcome: Outcome) -> dict[str, Any]:
    """The parts of a value that have positions, by name."""
    if isinstance(outcome.value, dict):
        return outcome.value
    return {"": outcome.value if isinstance(outcome.value, str | list) else []}


def _did(outcome: Outcome) -> str:
    return f"{'raised' if outcome.raised else 'returned'} {outcome.type.__name__}"
