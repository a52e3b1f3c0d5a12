"""The engine of a tokenizer's live backend, and how a changed backend is noticed.

An engine is built from `backend_tokenizer.to_str()`, which costs as much as loading the tokenizer, so it is built
lazily and once per backend content, budget and process: tokenizers with the same content share it. It lives as long as
a tokenizer uses it.

The backend can change under us at any time, so every native call first observes it. What is looked at, and what that
costs (Qwen3, transformers 5.24 and 4.57, microseconds of CPU time):

| signal | µs |
|---|---|
| `tok._tokenizer` is the same `tokenizers.Tokenizer`, nothing hung on it | 0.3 |
| `tok.split_special_tokens` is off | 0.1 |
| methods that decide the result are the generic ones, on class and instance (`reference.Watch`) | 1.4 |
| pickled state of normalizer, pre-tokenizer and post-processor | 1.9 |
| type and switches of the model (dropout, unk_token, byte_fallback, ...), size of its vocabulary | 0.8 |
| the id that the next added token would get is still free | 0.2 |

`len(tok)` would say the same as the last one and costs 100 ms in transformers 4. Calls of `tok.add_tokens` and
`tok.add_special_tokens` are noticed in the generated class (`wrapping`). The chat template and the special tokens are
read at each call and need no signal. A changed signal means: hash the backend again, and build if the content is new.

What they cannot see: directly on the backend, a token of the vocabulary marked as added, or an added token with other
flags, without a new id; a model replaced by another of the same type, size and switches; a normalizer whose state is
larger than 32 KiB (a precompiled character map) replaced by another of the same type. After such a change call
`tok.turntrie.reset()`.
"""

import hashlib
import logging
import os
import time
import weakref
from operator import attrgetter
from typing import Any

from turntrie import reference
from turntrie._native import Engine
from turntrie.locks import ForkSafeLock
from turntrie.reason import Reason
from turntrie.verification import Divergence, ids_divergence

_LARGE_STATE = 32 * 1024
_logger = logging.getLogger("turntrie")
_bpe_switches = attrgetter(
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
)

Observation = tuple[Any, ...]


class Backend:
    """An engine, and what Python has to know about the backend it was made from."""

    __slots__ = ("__weakref__", "doubted", "engine", "timings", "type_id")

    def __init__(self, engine: Engine, type_id: int | None, timings: dict[str, float]) -> None:
        """Keeps what `load` found out."""
        self.engine = engine
        self.doubted = False
        self.type_id = type_id
        """What every entry of `token_type_ids` is; `None` if it differs within a text."""
        self.timings = timings
        """Seconds: `to_str`, `hash`, `build`."""

    def stats(self) -> dict[str, Any]:
        """Statistics of the engine's checkpoints, and what the id oracle saw."""
        checked, different, incremental = self.engine.verification()
        return {
            **self.engine.stats(),
            "ids_checked": checked,
            "ids_different": different,
            "incremental": incremental,
        }

    def divergences(self) -> list[Divergence]:
        """The first texts whose ids differed from a full encode."""
        return [ids_divergence(*divergence) for divergence in self.engine.divergences()]

    def watch(self) -> None:
        """Says so, once, if incremental encoding was found wrong and switched off."""
        if self.doubted or self.engine.verification()[2]:
            return
        self.doubted = True
        first = self.divergences()[0]
        _logger.warning(
            "turntrie: incremental ids differ from a full encode: first=%d offset=%s got_length=%d want_length=%s; "
            "texts of this tokenizer are encoded in full from now on",
            first.first,
            first.offset,
            first.got_length,
            first.want_length,
        )


_lock = ForkSafeLock()
_loaded: "weakref.WeakValueDictionary[tuple[bytes, int], Backend]" = weakref.WeakValueDictionary()


def observe(tok: Any) -> Observation | Reason:
    """Looks at the backend: a value to compare with `==`, or why this tokenizer is left to the reference."""
    live = tok.__dict__.get("_tokenizer")
    if not reference.is_backend(live):
        return Reason("tokenizer:backend")
    if tok.split_special_tokens is not False:
        return Reason("tokenizer:split-special-tokens")
    try:
        model = live.model
        switches = _bpe_switches(model) if type(model).__name__ == "BPE" else (None,)
        observation = (
            live,
            _state(live.normalizer),
            _state(live.pre_tokenizer),
            _state(live.post_processor),
            type(model),
            switches,
            live.get_vocab_size(with_added_tokens=False),
        )
    except Exception:  # noqa: BLE001  # tokenizers raises bare Exception for a component written in Python
        return Reason("tokenizer:component")
    # With dropout every call draws its merges anew: there is nothing to keep.
    return Reason("tokenizer:dropout") if switches[0] else observation


def _state(component: Any) -> Any:
    if component is None:
        return None
    state = component.__getstate__()
    return state if len(state) <= _LARGE_STATE else (type(component), len(state))


def next_id(live: Any) -> int:
    """The id that the backend would give to the next added token. Cost O(added tokens)."""
    size: int = live.get_vocab_size(with_added_tokens=False)
    return max(size, 1 + max(live.get_added_tokens_decoder(), default=-1))


def load(live: Any, budget: int) -> Backend | Reason:
    """The engine for this content and budget, built if the process has none.

    The GIL is free while the content is hashed and the engine built, not while it is serialised.
    """
    threads = threads_setting()
    start = time.perf_counter()
    content = live.to_str()
    serialised = time.perf_counter()
    key = (hashlib.blake2b(content.encode(), digest_size=16).digest(), budget)
    hashed = time.perf_counter()
    with _lock.now:
        found = _loaded.get(key)
        if found is not None:
            return found
        try:
            engine = Engine(content, budget, threads)
        except ValueError:
            return Reason("tokenizer:unloadable")
        build = time.perf_counter() - hashed
        parse, tables = engine.loading()
        timings = {
            "to_str": serialised - start,
            "hash": hashed - serialised,
            "build": build,
            "parse": parse,
            "tables": tables,
            "table_bytes": float(engine.encoder()[1]),
        }
        found = _loaded[key] = Backend(engine, _type_id(live), timings)
        return found


def threads_setting() -> int | None:
    """`TURNTRIE_THREADS`: how many threads may encode at a time in this process, the calling one included.

    Raises:
        ValueError: If it is set to anything but a number from 1 on.
    """
    setting = os.environ.get("TURNTRIE_THREADS")
    if setting is None:
        return None
    if not (setting.isascii() and setting.isdecimal() and 0 < int(setting) < 2**16):
        raise ValueError(f"TURNTRIE_THREADS is {setting!r}: a number from 1 on is needed")
    return int(setting)


def loaded() -> list[Backend]:
    """The backends of this process that a tokenizer still uses."""
    return list(_loaded.values())


def _type_id(live: Any) -> int | None:
    """The type id that the post-processor gives to a single text; it is uniform, so one token tells."""
    encoding = live.encode("a0.", add_special_tokens=False)
    types = {t for t, real in zip(encoding.type_ids, encoding.attention_mask, strict=True) if real}
    return types.pop() if len(types) == 1 else None
