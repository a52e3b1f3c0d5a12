"""What was served by which path, and why not natively.

Each wrapped tokenizer counts for itself and for the process. One short lock per call; the numbers are what later
metrics are built on.
"""

from collections import Counter
from typing import Any, Optional

from turntrie.locks import ForkSafeLock


class Counters:
    """Calls by path, fallbacks by reason, and ids kept and encoded."""

    __slots__ = ("_calls", "_fallbacks", "_lock", "_parent", "_tokens")

    def __init__(self, parent: Optional["Counters"] = None) -> None:
        """Starts at zero; `parent` is told everything too."""
        self._parent = parent
        self._lock = ForkSafeLock()
        self.clear()

    def native(self, kept: int = 0, encoded: int = 0) -> None:
        """Counts a call served natively, with the ids taken from checkpoints and the ids computed."""
        with self._lock:
            self._calls["native"] += 1
            self._tokens["kept"] += kept
            self._tokens["encoded"] += encoded
        if self._parent is not None:
            self._parent.native(kept, encoded)

    def reference(self, reason: str) -> None:
        """Counts a call handed to transformers."""
        with self._lock:
            self._calls["reference"] += 1
            self._fallbacks[str(reason)] += 1
        if self._parent is not None:
            self._parent.reference(reason)

    def clear(self) -> None:
        """Sets everything to zero, here only."""
        with self._lock:
            self._calls: Counter[str] = Counter(native=0, reference=0)
            self._fallbacks: Counter[str] = Counter()
            self._tokens: Counter[str] = Counter(kept=0, encoded=0)

    def snapshot(self) -> dict[str, Any]:
        """Copies the numbers: `{"calls": {path: n}, "fallbacks": {reason: n}, "tokens": {"kept": n, "encoded": n}}`."""
        with self._lock:
            return {"calls": dict(self._calls), "fallbacks": dict(self._fallbacks), "tokens": dict(self._tokens)}


process = Counters()
