"""pytest-benchmark: the first call of a turn at the end of a long conversation, by kind of result, beside transformers.

    python -m pytest benches --benchmark-enable --benchmark-group-by=group

Every round is another turn, and every replay another conversation (another seed), so no round repeats what the process
has seen before. What the rounds returned is compared with transformers after the clock has stopped.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import replays
from replays import ROWS, Route, Turn, generated, turns

MODELS = os.environ.get("TURNTRIE_MODELS")
MODEL = Path(MODELS) / "qwen3" if MODELS else replays.TOKENIZER


class Rounds:
    """Hands out the window's turns of one conversation after the other, each on a fresh route that knows the rest."""

    def __init__(self, kind: type[Route], first_seed: int, *, repeated: bool = False) -> None:
        self._kind = kind
        self._seeds = range(first_seed, first_seed + replays.REPLAYS)
        self._repeated = repeated
        self._turns = self._all()
        self.asked: list[tuple[Route, Turn, Any]] = []

    def _all(self) -> Iterator[tuple[Route, Turn]]:
        for seed in self._seeds:
            every = turns(generated(seed=seed).recording)
            route = self._kind(MODEL)
            for turn in every[: -replays.WINDOW] if issubclass(self._kind, replays.Wrapped) else ():
                route(turn.messages, turn.new, turn.tools)
            for turn in every[-replays.WINDOW :]:
                if self._repeated:
                    route(turn.messages, turn.new, turn.tools)
                yield route, turn

    def setup(self) -> tuple[tuple[Route, Turn], dict[str, Any]]:
        """The next round's arguments; not timed."""
        return next(self._turns), {}

    def call(self, route: Route, turn: Turn) -> None:
        """The timed call."""
        self.asked.append((route, turn, route(turn.messages, turn.new, turn.tools)))


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("side", ["transformers", "turntrie"])
@pytest.mark.timeout(1200)
def test_warm_call(benchmark: Any, row: str, side: str) -> None:
    spec = ROWS[row]
    first_seed = 100 * (1 + list(ROWS).index(row))
    kind: type[Route] = spec.route if side == "turntrie" else spec.reference
    rounds = Rounds(kind, first_seed, repeated=spec.repeated and side == "turntrie")
    benchmark.group = row
    count = replays.REPLAYS * replays.WINDOW if benchmark.enabled else 1
    benchmark.pedantic(rounds.call, setup=rounds.setup, rounds=count, iterations=1)
    if side == "turntrie":
        reference = spec.reference(MODEL)
        for route, turn, result in rounds.asked:
            expected = reference.look(reference(turn.messages, turn.new, turn.tools)).ids()
            assert route.look(result).ids() == expected, f"turn {turn.number}: ids differ"
