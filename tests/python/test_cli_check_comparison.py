"""The comparison behind `turntrie check`: what counts as equal, where outcomes part, and how findings are counted."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from turntrie.check.comparison import VERDICTS, Finding, Pair, Tally
from turntrie.check.outcomes import Outcome, parting


def returned(value: Any) -> Outcome:
    return Outcome.of(lambda: value)


def raised(error: Exception) -> Outcome:
    def fail() -> None:
        raise error

    return Outcome.of(fail)


class Look(list[int]):
    """A list that is none."""


class Encoding(dict[str, list[int]]):
    """Stands for a BatchEncoding."""


@pytest.mark.parametrize(
    "value", ["a", [1, 2], Encoding(input_ids=[1]), ValueError("x")], ids=["text", "ids", "dict", "error"]
)
def test_equal_outcomes(value: Any) -> None:
    make = raised if isinstance(value, Exception) else returned
    assert parting(make(value), make(value)) is None


@pytest.mark.parametrize(
    ("got", "want", "expected"),
    [
        (returned("abc"), returned("abd"), ("text", 2, 3, 3)),
        (returned("ab"), returned("abd"), ("text", 2, 2, 3)),
        (returned(""), returned("a"), ("text", 0, 0, 1)),
        (returned([1, 2, 3]), returned([1, 5]), ("ids", 1, 3, 2)),
        (
            returned(Encoding(input_ids=[1, 2], attention_mask=[1, 1])),
            returned(Encoding(input_ids=[1, 2], attention_mask=[1, 0])),
            ("ids", 1, 2, 2),
        ),
        (returned(Encoding(input_ids=[1])), returned(Encoding(input_ids=[1], token_type_ids=[0])), ("ids", 0, 0, 1)),
        (returned(Encoding(input_ids=[1], token_type_ids=[0])), returned(Encoding(input_ids=[1])), ("ids", 0, 1, 0)),
        (returned(Look([1])), returned([1]), ("type", 0, 1, 1)),
        (raised(ValueError("a")), raised(ValueError("b")), ("exception", 0, 1, 1)),
        (raised(ValueError("a")), raised(TypeError("a")), ("exception", 0, 1, 1)),
        (returned([1]), raised(TypeError("a")), ("exception", 0, 1, 1)),
        (raised(TypeError("a")), returned("ab"), ("exception", 0, 1, 2)),
    ],
)
def test_where_outcomes_part(got: Outcome, want: Outcome, expected: tuple[Any, ...]) -> None:
    found = parting(got, want)
    assert found is not None
    assert (found.kind, found.first, found.got_length, found.want_length) == expected


def test_what_was_done_is_said_without_contents() -> None:
    found = parting(raised(ValueError("private")), returned("private"))
    assert found is not None
    assert (found.got, found.want) == ("raised ValueError", "returned str")
    assert "private" not in repr(found)


class Fake:
    """A tokenizer that gives one answer after the other, and counts a fallback if it is told to."""

    def __init__(self, *answers: Any, reason: str | None = None) -> None:
        self.answers: Iterator[Any] = iter(answers)
        self.reason = reason
        self.fallbacks: Counter[str] = Counter()
        self.turntrie = self

    def stats(self) -> dict[str, Any]:
        return {"fallbacks": dict(self.fallbacks)}

    def apply_chat_template(self, **_: Any) -> Any:
        if self.reason is not None:
            self.fallbacks[self.reason] += 1
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


CALL: dict[str, Any] = {"conversation": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("plain", "wrapped", "reason", "verdict", "reasons"),
    [
        (([1], "a"), ([1], "a"), None, "native", ()),
        (([1], "a"), ([1], "a"), "value:float", "transformers", ("value:float",)),
        ((ValueError("a"), ValueError("a")), (ValueError("a"), ValueError("a")), "render:x", "refused", ()),
        ((ValueError("a"), "a"), (ValueError("a"), "a"), None, "native", ()),
        (([1], "a", "a"), ([1], "b"), None, "different", ()),
        (([1], [1], "a"), ([2], "a"), None, "different", ()),
        ((ValueError("a"), ValueError("a"), "a"), ([2], "a"), None, "different", ()),
    ],
)
def test_verdicts(plain: Any, wrapped: Any, reason: str | None, verdict: str, reasons: tuple[str, ...]) -> None:
    found = Pair(Fake(*plain), Fake(*wrapped, reason=reason)).compare("here", CALL, ("ids", "text"))
    assert (found.verdict, found.reasons) == (verdict, reasons)
    assert bool(found.differences) is (verdict == "different")


def test_a_difference_knows_its_call() -> None:
    found = Pair(Fake("a", "a"), Fake("b")).compare("here", CALL, ("text",))
    (difference,) = found.differences
    assert (difference.place, difference.form) == ("here", "text")
    assert difference.reproducer()["call"] == {**CALL, "tokenize": False}
    assert difference.reproducer()["got"] == {"returned": "str", "value": "b"}
    assert "call" not in difference.document()


def test_a_clock_that_ticks_is_no_difference() -> None:
    assert Pair(Fake("12:00", "12:01"), Fake("12:01")).compare("", CALL, ("text",)).verdict == "native"
    assert Pair(Fake("12:00", "12:01"), Fake("12:02")).compare("", CALL, ("text",)).verdict == "different"


def test_a_tally_counts_time_only_where_something_was_served() -> None:
    tally = Tally()
    assert tally.ratio is None
    tally.add(Finding("native", (), 4.0, 1.0, 10, ()))
    tally.add(Finding("transformers", ("a", "b"), 2.0, 2.0, 5, ()))
    tally.add(Finding("transformers", ("a",), 0.0, 0.0, 0, ()))
    tally.add(Finding("refused", (), 100.0, 1.0, 0, ()))
    assert list(tally.counts()) == [1, 2, 1, 0]
    assert VERDICTS == ("native", "transformers", "refused", "different")
    assert (tally.total, tally.tokens, tally.ratio) == (4, 15, 2.0)
    assert tally.document()["reasons"] == {"a": 2, "b": 1}
