"""The same call on a plain tokenizer and on a wrapped one: equal or not, and who served it.

A call is made in several forms, since a wrong text and wrong ids are different faults: as ids and as text. Both sides
get the same objects. The wrapped tokenizer must not verify (`verify="off"`): verification would repair what this is
here to find.

A template may print the clock, and the clock may tick between the two sides. So before a difference counts,
transformers is asked once more: if its second answer is what turntrie gave, there is none.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from turntrie.check.outcomes import Outcome, Parting, parting

Verdict = Literal["native", "transformers", "refused", "different"]
"""Equal and served natively; equal and served by transformers; equal exceptions from both sides; not equal."""

VERDICTS: tuple[Verdict, ...] = ("native", "transformers", "refused", "different")

FORMS: dict[str, dict[str, Any]] = {
    "default": {},
    "ids": {"return_dict": False},
    "dict": {"return_dict": True},
    "text": {"tokenize": False},
}
"""What a caller can ask for, by name: the keywords of `apply_chat_template` for it."""


class Difference(NamedTuple):
    """A call on which the two sides part."""

    place: str
    """The name of the scenario, or the conversation and its turn."""
    form: str
    parting: Parting
    call: dict[str, Any]
    """The arguments of the call. Private to the user."""
    got: Outcome
    want: Outcome

    def document(self) -> dict[str, Any]:
        """Where and how much, without contents."""
        return {"place": self.place, "form": self.form, **self.parting._asdict()}

    def reproducer(self) -> dict[str, Any]:
        """Everything, contents included."""
        return {**self.document(), "call": self.call, "got": self.got.document(), "want": self.want.document()}


class Finding(NamedTuple):
    """One call in all its forms."""

    verdict: Verdict
    reasons: tuple[str, ...]
    """Why transformers served it, where it did and did not raise."""
    reference_seconds: float
    """Wall clock of the first form, both sides."""
    turntrie_seconds: float
    tokens: int
    """How many ids the first form came to; 0 if it raised or is a text."""
    differences: tuple[Difference, ...]


class Pair(NamedTuple):
    """Two tokenizers of one model."""

    plain: Any
    wrapped: Any

    def compare(self, place: str, call: dict[str, Any], forms: Iterable[str]) -> Finding:
        """Makes a call on both sides, in each of these forms.

        Args:
            place: Where the call comes from, for reports.
            call: The keywords of `apply_chat_template`, `conversation` included.
            forms: Names out of `FORMS`; the first one is what is timed.
        """
        verdicts: set[Verdict] = set()
        reasons: list[str] = []
        differences: list[Difference] = []
        first: tuple[float, float, int] | None = None
        for form in forms:
            keywords = {**call, **FORMS[form]}
            reference_seconds, want = _timed(partial(self.plain.apply_chat_template, **keywords))
            before = self._fallbacks()
            turntrie_seconds, got = _timed(partial(self.wrapped.apply_chat_template, **keywords))
            reason = next(iter(self._fallbacks() - before), None)
            if first is None:
                first = (reference_seconds, turntrie_seconds, _tokens(want))
            where = parting(got, want)
            if where is not None and got != _timed(partial(self.plain.apply_chat_template, **keywords))[1]:
                verdicts.add("different")
                differences.append(Difference(place, form, where, keywords, got, want))
            elif want.raised:
                verdicts.add("refused")
            else:
                verdicts.add("native" if reason is None else "transformers")
                reasons += [] if reason is None or reason in reasons else [reason]
        seconds = first or (0.0, 0.0, 0)
        order: tuple[Verdict, ...] = ("different", "transformers", "native", "refused")
        verdict = next(verdict for verdict in order if verdict in verdicts)
        return Finding(verdict, tuple(reasons), *seconds, tuple(differences))

    def _fallbacks(self) -> Counter[str]:
        return Counter(self.wrapped.turntrie.stats()["fallbacks"])


def _tokens(outcome: Outcome) -> int:
    ids = outcome.value.get("input_ids") if isinstance(outcome.value, dict) else outcome.value
    return len(ids) if isinstance(ids, list) else 0


def _timed(call: Callable[[], Any]) -> tuple[float, Outcome]:
    """Calls once; the seconds and the outcome."""
    start = time.perf_counter()
    outcome = Outcome.of(call)
    return time.perf_counter() - start, outcome


@dataclass
class Tally:
    """Findings, counted."""

    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """How many findings each reason had a part in."""
    tokens: int = 0
    reference_seconds: float = 0.0
    turntrie_seconds: float = 0.0

    def add(self, finding: Finding) -> None:
        """Counts a finding. Times are those of calls that both sides served, whoever did it."""
        self.verdicts[finding.verdict] += 1
        self.reasons.update(finding.reasons)
        if finding.verdict != "refused":
            self.tokens += finding.tokens
            self.reference_seconds += finding.reference_seconds
            self.turntrie_seconds += finding.turntrie_seconds

    @property
    def total(self) -> int:
        """Number of findings."""
        return self.verdicts.total()

    @property
    def ratio(self) -> float | None:
        """How many times longer transformers took; None if nothing was timed."""
        return self.reference_seconds / self.turntrie_seconds if self.turntrie_seconds else None

    def counts(self) -> Iterator[int]:
        """The counts in the order of `VERDICTS`."""
        return (self.verdicts[verdict] for verdict in VERDICTS)

    def document(self) -> dict[str, Any]:
        """The tally as a value for JSON."""
        return {
            "total": self.total,
            **dict(zip(VERDICTS, self.counts(), strict=True)),
            "reasons": dict(self.reasons.most_common()),
            "tokens": self.tokens,
            "reference_seconds": self.reference_seconds,
            "turntrie_seconds": self.turntrie_seconds,
            "ratio": self.ratio,
        }
