"""Locks that survive a fork.

A lock that another thread holds while the process forks stays locked for ever in the child: the thread that would
release it does not exist there. Trainers fork after threads have used their tokenizer, so every lock of this package is
renewed in the child, as `logging` does with its own.
"""

import os
import threading
import weakref
from types import TracebackType

_guard = threading.Lock()
_locks: "weakref.WeakSet[ForkSafeLock]" = weakref.WeakSet()


class ForkSafeLock:
    """A re-entrant lock that is free again in a forked child, whoever held it in the parent."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        """Makes a free lock."""
        self._lock = threading.RLock()
        with _guard:
            _locks.add(self)

    def __enter__(self) -> None:
        """Waits for the lock."""
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Releases the lock."""
        self._lock.release()

    def renew(self) -> None:
        """Replaces the lock by a free one. Only for a process in which no other thread uses it."""
        self._lock = threading.RLock()


def _before() -> None:
    _guard.acquire()


def _after_in_parent() -> None:
    _guard.release()


def _after_in_child() -> None:
    global _guard  # noqa: PLW0603  # the one lock that cannot be in its own list
    _guard = threading.Lock()
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    # Nobody may be adding a lock while the list is copied into the child.
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
