"""`wrap` and `restore`: a tokenizer that serves its own `apply_chat_template` natively, and back.

`wrap` changes the object in place: its class becomes a generated subclass of the class it had, one per original class,
with the same `__name__`, `__qualname__` and `__module__`. So everything that looks at the tokenizer still finds what it
looks for: `isinstance`, `type(tok).apply_chat_template(tok, ...)`, `save_pretrained` (which writes the class name),
copies, and the many places that hold the very object. Nothing is built here; see `backend`.

A generated class cannot be pickled by name, since its name is the original's. So a wrapped tokenizer reduces to what
its original class would reduce to, and is given its generated class again on the other side.

`type(tok).from_pretrained` is the original's and gives a plain tokenizer: transformers decides from the class's own
attributes how to load, and a subclass would load differently.
"""

import functools
from typing import Any, TypeVar

from turntrie import dispatch, reference
from turntrie.attachment import DEFAULT_BUDGET, KEY, Attachment
from turntrie.backend import threads_setting
from turntrie.handle import Handle
from turntrie.locks import ForkSafeLock
from turntrie.reference import ORIGINAL

T = TypeVar("T")

_lock = ForkSafeLock()


def wrap(
    tok: T,
    *,
    budget: int = DEFAULT_BUDGET,
    namespace: str | int | None = None,
    verify: str | float | None = None,
) -> T:
    """Lets a tokenizer serve `apply_chat_template` natively, in place.

    Takes well under 5 ms: the engine is built on first use, or by `tok.turntrie.warmup()`. Wrapping a wrapped tokenizer
    changes nothing.

    Args:
        tok: A fast tokenizer of transformers.
        budget: Upper bound of the checkpoints in bytes. Tokenizers with the same backend and budget share an engine.
        namespace: Tokenizers with the same backend, budget and namespace share checkpoints. By default nobody shares:
            what is fast tells what somebody else has asked before.
        verify: How much is compared with transformers: `"shapes"`, `"always"`, `"off"` or a share of calls from 0 to 1;
            see `turntrie.verification`. By default TURNTRIE_VERIFY, or `"shapes"`.

    Returns:
        The same object.

    Raises:
        TypeError: `tok` is not a fast tokenizer of transformers.
        ValueError: `tok` is wrapped with other options, `budget` is negative, `verify` is none of the above, or
            TURNTRIE_THREADS, the threads that may encode at a time, is not a number from 1 on.
    """
    if budget < 0:
        raise ValueError(f"budget must not be negative, got {budget}")
    if namespace is not None and not isinstance(namespace, str | int):
        raise TypeError(f"namespace must be a str, an int or None, got {type(namespace).__name__}")
    if is_wrapped(tok):
        attached = Attachment.of(tok)
        held = (attached.budget, attached.namespace, attached.verify)
        if (budget, namespace, verify) not in (held, (DEFAULT_BUDGET, None, None)):
            raise ValueError(
                f"already wrapped with budget={attached.budget}, namespace={attached.namespace!r}, "
                f"verify={attached.verify!r}: call turntrie.restore(tok) first"
            )
        return tok
    threads_setting()
    _require_fast(tok)
    tok.__dict__[KEY] = Attachment(budget, namespace, verify)
    _adopt(tok)
    return tok


def restore(tok: T) -> T:
    """Undoes `wrap`: the tokenizer has its own class again and nothing of ours. Not wrapped: left alone.

    Returns:
        The same object.

    Raises:
        TypeError: Somebody has given the wrapped tokenizer yet another class, which cannot be taken back.
    """
    if not is_wrapped(tok):
        return tok
    if ORIGINAL not in vars(type(tok)):
        raise TypeError(f"{type(tok).__name__} was derived from the wrapped class after wrapping: restore that first")
    object.__setattr__(tok, "__class__", reference.original(tok).cls)
    tok.__dict__.pop(KEY, None)
    return tok


def is_wrapped(tok: object) -> bool:
    """Whether `wrap` has been here."""
    return hasattr(type(tok), ORIGINAL)


def _require_fast(tok: object) -> None:
    name = type(tok).__name__
    if reference.is_fast(tok):
        return
    if reference.is_tokenizer(tok):
        raise TypeError(
            f"{name} is a slow tokenizer, written in Python: it has no backend that turntrie could load. "
            "Load the fast one, AutoTokenizer.from_pretrained(..., use_fast=True)"
        )
    if reference.is_tokenizer(getattr(tok, "tokenizer", None)):
        raise TypeError(f"{name} is a processor: it renders more than text. Wrap its tokenizer, wrap(x.tokenizer)")
    raise TypeError(f"{name} is not a tokenizer of transformers: wrap takes what AutoTokenizer.from_pretrained returns")


def _adopt(tok: Any) -> Any:
    """Gives a tokenizer of an original class the generated one. Past `__setattr__`, which tokenizers override."""
    object.__setattr__(tok, "__class__", _generated(type(tok)))
    Attachment.of(tok)
    return tok


def _generated(original: Any) -> Any:
    """The generated subclass of a class; the class itself keeps track of it, and only as long as it is used."""
    with _lock.now:
        for subclass in original.__subclasses__():
            if ORIGINAL in vars(subclass):
                return subclass
        return _generate(original)


def _generate(original: Any) -> Any:
    method = original.apply_chat_template

    @functools.wraps(method)
    def apply_chat_template(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return dispatch.apply(self, args, kwargs)

    def _add_tokens(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return super(generated, self)._add_tokens(*args, **kwargs)
        finally:
            Attachment.of(self).touch()

    def __reduce_ex__(self: Any, protocol: Any) -> Any:  # noqa: N807  # becomes that method
        reduced = super(generated, self).__reduce_ex__(protocol)
        if not isinstance(reduced, tuple):
            return reduced
        make, args, *state = reduced
        args = tuple(original if value is generated else value for value in args)
        return _unpickled, (original if make is generated else make, args), *state

    @functools.wraps(original.from_pretrained)
    def from_pretrained(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
        if cls is generated:
            return original.from_pretrained(*args, **kwargs)
        return super(generated, cls).from_pretrained(*args, **kwargs)

    def turntrie(self: Any) -> Handle:
        return Handle(self)

    turntrie.__doc__ = Handle.__doc__
    generated = type(original)(
        original.__name__,
        (original,),
        {
            "__module__": original.__module__,
            "__qualname__": original.__qualname__,
            "__doc__": original.__doc__,
            ORIGINAL: reference.Original.of_class(original),
            "_add_tokens": _add_tokens,
            "__reduce_ex__": __reduce_ex__,
            "apply_chat_template": apply_chat_template,
            "from_pretrained": classmethod(from_pretrained),
            "turntrie": property(turntrie),
        },
    )
    return generated


def _unpickled(make: Any, args: tuple[Any, ...]) -> Any:
    return _adopt(make(*args))
