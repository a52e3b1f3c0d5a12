"""What was served by which path, and why not natively.

Each wrapped tokenizer counts for itself and for the process. One short lock per call; the numbers are what later
metrics are built on.
"""

from collections import Counter
from typing import Any, Optional

from turntrie.locks import ForkSafeLock


class Counters:
    """Calls by path, fallbacks by reason, ids kept and encoded, verifications by oracle and result, quarantines."""

    __slots__ = ("_calls", "_fallbacks", "_lock", "_parent", "_quarantined", "_tokens", "_verified")

    def __init__(self, parent: Optional["Counters"] = None) -> None:
        """Starts at zero; `parent` is told everything too."""
        self._parent = parent
        self._lock = ForkSafeLock()
        self.clear()

    def native(self, kept: int = 0, encoded: int = 0) -> None:
        """Counts a call served natively, with the ids taken from checkpoints and the ids computed."""
        with self._lock.now:
            self._calls["native"] += 1
            self._tokens["kept"] += kept
            self._tokens["encoded"] += encoded
        if self._parent is not None:
            self._parent.native(kept, encoded)

    def reference(self, reason: str) -> None:
        """Counts a call handed to transformers."""
        with self._lock.now:
            self._calls["reference"] += 1
            self._fallbacks[str(reason)] += 1
        if self._parent is not None:
            self._parent.reference(reason)

    def verified(self, oracle: str, result: str) -> None:
        """Counts a check: `oracle` is "text", "ids" or "full"; `result` is "equal", "different" or "skipped"."""
        with self._lock.now:
            self._verified[f"{oracle}:{result}"] += 1
        if self._parent is not None:
            self._parent.verified(oracle, result)

    def quarantined(self, what: str) -> None:
        """Counts a quarantine that begins: of a `shape` of one template, or of every `call` on a tokenizer."""
        with self._lock.now:
            self._quarantined[what] += 1
        if self._parent is not None:
            self._parent.quarantined(what)

    def clear(self) -> None:
        """Sets everything to zero, here only."""
        with self._lock.now:
            self._verified: Counter[str] = Counter()
            self._quarantined: Counter[str] = Counter()
            self._calls: Counter[str] = Counter(native=0, reference=0)
            self._fallbacks: Counter[str] = Counter()
            self._tokens: Counter[str] = Counter(kept=0, encoded=0)

    def snapshot(self) -> dict[str, Any]:
        """Copies the numbers.

        Returns:
            `calls` by path, `fallbacks` by reason, `tokens` kept and encoded, `verifications` by `oracle:result`,
            `quarantines` that began, by what is in them.
        """
        with self._lock.now:
            return {
                "calls": dict(self._calls),
                "fallbacks": dict(self._fallbacks),
                "tokens": dict(self._tokens),
                "verifications": dict(self._verified),
                "quarantines": dict(self._quarantined),
            }


process = Counters()
