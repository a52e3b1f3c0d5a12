"""What the adapters share: the tokenizer they are handed, and how it is called.

**A tokenizer is wrapped when an adapter first meets it,** if `turntrie.wrap` takes it: a system that replaces one
function has no other place to do it. `turntrie.restore(tok)` takes that back for good: a tokenizer that was met before
and is not wrapped now has been restored by somebody, and is called as it is from then on.

**Everything else is called as it is, once, with the caller's keywords.** Test doubles, processors, slow tokenizers and
classes with an `apply_chat_template` of their own know only the keywords that the system gives them.

Cost beyond the call itself: a dictionary look-up, and about a microsecond for `call`.
"""

import weakref
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from turntrie import reference
from turntrie.locks import ForkSafeLock
from turntrie.wrapping import is_wrapped, wrap

T = TypeVar("T")

Message = dict[str, Any]
Messages = list[Message]


@runtime_checkable
class ChatTokenizer(Protocol):
    """What every adapter needs: a tokenizer of transformers, wrapped or not, or a test double."""

    def apply_chat_template(self, *args: Any, **kwargs: Any) -> Any:
        """As of transformers, with at least the keywords that the system in question gives."""


@runtime_checkable
class EncodingTokenizer(ChatTokenizer, Protocol):
    """A tokenizer that also encodes plain text."""

    def encode(self, *args: Any, **kwargs: Any) -> Any:
        """As of transformers, with at least `add_special_tokens`."""


@runtime_checkable
class StoppingTokenizer(ChatTokenizer, Protocol):
    """A tokenizer that says which token ends a text."""

    @property
    def eos_token_id(self) -> int | None:
        """As of transformers."""


# Keywords under which `return_dict=False` would not be the same call.
_SHAPING = frozenset(("return_dict", "return_tensors", "return_assistant_tokens_mask"))

_lock = ForkSafeLock()
_met: dict[int, "weakref.ref[Any]"] = {}


def ready(tok: T) -> T:
    """The tokenizer itself, wrapped if it can be and if no adapter has met it before."""
    if is_wrapped(tok):
        if not _known(tok):
            _remember(tok)
    elif reference.is_fast(tok) and not _known(tok):
        with _lock.now:
            if not is_wrapped(tok):
                wrap(tok)
            _remember(tok)
    return tok


def _known(tok: object) -> bool:
    found = _met.get(id(tok))
    return found is not None and found() is tok


def _remember(tok: object) -> None:
    key = id(tok)

    def forget(gone: "weakref.ref[Any]") -> None:
        if _met.get(key) is gone:
            del _met[key]

    _met[key] = weakref.ref(tok, forget)


class Result(NamedTuple):
    """What a call returned."""

    value: Any
    listed: bool
    """Whether the call was asked for a list of ids, and `value` is a fresh one."""


def call(tok: Any, messages: Any, **keywords: Any) -> Result:
    """Calls `tok.apply_chat_template(messages, **keywords)` and spares what nobody looks at.

    The installed default may be a BatchEncoding, of which the adapters take the ids and drop an attention mask as long
    as the conversation. A tokenizer that surely understands it is asked for the list at once.
    """
    if is_wrapped(tok) and _SHAPING.isdisjoint(keywords) and keywords.get("tokenize", True) is True:
        original = reference.original(tok)
        if "return_dict" in original.parameters.defaults and original.watch.refuse(tok) is None:
            return Result(tok.apply_chat_template(messages, return_dict=False, **keywords), listed=True)
    return Result(tok.apply_chat_template(messages, **keywords), listed=False)


@lru_cache(maxsize=1)
def transformers_major() -> int:
    """The major version of the installed transformers; 0 if there is none."""
    try:
        return int(version("transformers").partition(".")[0])
    except PackageNotFoundError:
        return 0
