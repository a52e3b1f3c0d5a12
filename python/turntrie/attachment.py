"""What a wrapped tokenizer carries with it: options, counters, a lock, and its engine once there is one.

It lies in the tokenizer's `__dict__` under one key and travels with it: a copy, shallow or deep, and an unpickled
tokenizer get an attachment of their own with the same options and nothing else, however the tokenizer's class copies
itself. Hence the owner check: an attachment found on another tokenizer than its owner is only a note of the options.
"""

import hashlib
import itertools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from turntrie import backend, counters
from turntrie._native import forget
from turntrie.backend import Backend, Observation
from turntrie.counters import Counters
from turntrie.locks import ForkSafeLock
from turntrie.reason import Reason
from turntrie.verification import Policy, Record

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "_turntrie"
DEFAULT_BUDGET = 256 * 1024 * 1024

_TEMPLATES = 1000

_fresh = itertools.count(1)


def _nobody() -> None:
    """The owner of an attachment that belongs to no tokenizer yet."""


class _Live(NamedTuple):
    backend: Backend
    observation: Observation
    next_id: int


class Attachment:
    """The state of one wrapped tokenizer."""

    __slots__ = (
        "_building",
        "_live",
        "_masked",
        "budget",
        "counters",
        "distrusted",
        "lock",
        "namespace",
        "owner",
        "policy",
        "record",
        "root",
        "verify",
    )

    def __init__(self, budget: int, namespace: str | int | None, verify: str | float | None = None) -> None:
        """Notes the options; belongs to nobody yet."""
        self.budget = budget
        self.namespace = namespace
        self.verify = verify
        self.policy = Policy.of(verify)
        self.root = root(namespace)
        """The trie root: a number of its own for each tokenizer, or what the given namespace stands for."""
        self.counters = Counters(counters.process)
        self.record = Record(self.counters)
        self.distrusted: Reason | None = None
        """Set once ids were found wrong although the whole text was encoded: the reference serves every call."""
        self.lock = ForkSafeLock()
        """Held around every reference call: the backend they share is changed and restored in there."""
        self._building = ForkSafeLock()
        self._live: _Live | None = None
        self._masked: set[int] = set()
        self.owner: Callable[[], Any] = _nobody
        """A weak reference to the tokenizer."""

    def __reduce__(self) -> tuple[type["Attachment"], tuple[int, str | int | None, str | float | None]]:
        """Travels as its options."""
        return type(self), (self.budget, self.namespace, self.verify)

    @classmethod
    def of(cls, tok: Any) -> "Attachment":
        """The attachment of a wrapped tokenizer; made, with the options at hand, if it has none of its own."""
        found: Attachment | None = tok.__dict__.get(KEY)
        if found is None:
            found = cls(DEFAULT_BUDGET, None)
        elif found.owner() is tok:
            return found
        elif found.owner is not _nobody:
            found = cls(found.budget, found.namespace, found.verify)
        found.owner = weakref.ref(tok)
        tok.__dict__[KEY] = found
        return found

    def engine(self, tok: Any) -> Backend | Reason:
        """The engine for the backend as it is now, or why there is none."""
        if self.distrusted is not None:
            return self.distrusted
        observation = backend.observe(tok)
        if isinstance(observation, Reason):
            return observation
        found = self._current(observation)
        if found is not None:
            return found
        with self._building.now:  # one thread serialises the backend, the others find its work
            return self._current(observation) or self._load(tok, observation)

    def _current(self, observation: Observation) -> Backend | None:
        live = self._live
        if live is None or live.observation != observation or observation[0].id_to_token(live.next_id) is not None:
            return None
        return live.backend

    def _load(self, tok: Any, observation: Observation) -> Backend | Reason:
        free = backend.next_id(observation[0])
        loaded = backend.load(observation[0], self.budget)
        if isinstance(loaded, Reason):
            return loaded
        if backend.observe(tok) != observation or backend.next_id(observation[0]) != free:
            return Reason("tokenizer:changing")
        self._live = _Live(loaded, observation, free)
        return loaded

    def current(self) -> Backend | None:
        """The engine of the last call, if one was built."""
        live = self._live
        return None if live is None else live.backend

    def touch(self) -> None:
        """Lets the next call look at the whole backend again."""
        self._live = None

    def meet(self, source: str) -> bool:
        """Notes the template of an assistant mask; whether it was not noted before. 1,000 are kept in mind."""
        key = hash(source)
        if key in self._masked:
            return False
        if len(self._masked) >= _TEMPLATES:
            self._masked.clear()
        self._masked.add(key)
        return True

    def reset(self) -> None:
        """Forgets checkpoints, counters and engine; the checkpoints also for others in the same namespace.

        Messages of earlier calls that the process holds on to, whatever tokenizer they were for, are let go as well.
        """
        forget()
        loaded = self.current()
        if loaded is not None:
            loaded.engine.drop_namespace(self.root)
        self.touch()
        self._masked.clear()
        self.counters.clear()
        self.record = Record(self.counters)
        self.distrusted = None


def root(namespace: str | int | None) -> int:
    """The trie root of a namespace: equal for equal namespaces, different from every default one."""
    if namespace is None:
        return next(_fresh)
    name = f"{type(namespace).__name__}:{namespace}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest()) | 1 << 63
