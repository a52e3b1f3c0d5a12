"""Locks that survive a fork.

A lock that another thread holds while the process forks stays locked for ever in the child: the thread that would
release it does not exist there. Trainers fork after threads have used their tokenizer, so every lock of this package is
renewed in the child, as `logging` does with its own.
"""

import os
import threading
import weakref

_guard = threading.Lock()
_locks: "weakref.WeakSet[ForkSafeLock]" = weakref.WeakSet()


class ForkSafeLock:
    """A re-entrant lock that is free again in a forked child, whoever held it in the parent. `with lock.now: ...`."""

    __slots__ = ("__weakref__", "now")

    def __init__(self) -> None:
        """Makes a free lock."""
        self.renew()
        with _guard:
            _locks.add(self)

    def renew(self) -> None:
        """Replaces the lock by a free one. Only for a process in which no other thread uses it."""
        self.now = threading.RLock()


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
