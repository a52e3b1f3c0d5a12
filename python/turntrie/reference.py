"""What the installed transformers does, found out rather than looked up, and how it is called.

transformers is our reference and it moves: 5.x drops a message's null keys, copies reasoning fields to each other and
returns a BatchEncoding by default; 4.x does none of that. A table of versions would be wrong on the next one. So:

**The signature is read.** Parameters and defaults come from `inspect.signature` of the installed method.

**The rules are probed.** Once per process the installed method renders a few tiny messages with a template that does
nothing but print them (`{{ messages|tojson }}`). The native code prints the same messages under each set of rules that
it knows, and the set whose texts are equal byte by byte, order of keys included, is the one we use. What the template
printed is what a chat template would see, so equal texts mean equal input for every template. If no set reproduces the
reference, plain messages are still compared: if those agree, only messages with a null key or a reasoning field go to
the reference (`value:null-key`, `value:reasoning`); if not even those do, everything does (`reference:messages`).

**The methods are the generic ones, or the reference is asked.** A subclass that overrides a method which decides the
result, and a method that somebody patched, on the class or on the instance, is not ours to imitate. "Generic" means: a
plain function whose code lies in the files of transformers' own base classes.

The reference call itself happens once, with exactly the caller's arguments, one at a time per tokenizer, and leaves the
backend's truncation, padding and `encode_special_tokens` as it found them: transformers leaves them set, and then a
call from another thread is silently truncated.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from operator import attrgetter
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from turntrie._native import RULE_ALIAS_REASONING, RULE_DROP_NULL, Template
from turntrie.reason import Reason

_BASE = "transformers.tokenization_utils_base"
_TEMPLATES = "transformers.utils.chat_template_utils"
# Where transformers keeps its generic tokenizer classes: 4.x has `_fast`, 5.x `_tokenizers`.
_GENERIC = (_BASE, "transformers.tokenization_utils_fast", "transformers.tokenization_utils_tokenizers")
_FAST = frozenset({"PreTrainedTokenizerFast", "TokenizersBackend"})

# Every method that decides what apply_chat_template returns, in either major version.
METHODS = (
    "apply_chat_template",
    "get_chat_template",
    "__call__",
    "_call_one",
    "encode_plus",
    "_encode_plus",
    "_batch_encode_plus",
    "set_truncation_and_padding",
    "_convert_encoding",
    "_switch_to_input_mode",
    "_get_padding_truncation_strategies",
    "_eventual_warn_about_too_long_sequence",
)
METHODS_SET = frozenset(METHODS)

REASONING_FIELDS = frozenset({"reasoning_content", "thinking", "reasoning"})
_PRINTER = "{{ messages|tojson }}"
_PLAIN: list[dict[str, Any]] = [
    {"role": "user", "content": "\N{SNOWMAN} <b>'x'</b>", "zip": [1, 1.5, True, None, {"b": None, "a": []}]},
    {"content": "", "tool_calls": [{"function": {"arguments": {"k": None}}}], "role": "assistant"},
]
_SPECIAL: list[dict[str, Any]] = [
    {"role": "user", "content": None, "name": None, "nested": {"x": None}},
    {"role": "assistant", "content": None, "thinking": None, "reasoning": None, "reasoning_content": None},
    {"role": "assistant", "content": "c", "reasoning": "r"},
    {"role": "assistant", "reasoning_content": "rc", "content": "c"},
    {"role": "assistant", "content": "c", "thinking": "t", "name": "n"},
    {"role": "assistant", "reasoning": "r", "content": "c", "thinking": "t"},
    {"thinking": "t", "role": "assistant", "reasoning_content": "rc", "content": None, "reasoning": "r"},
    {"role": "assistant", "thinking": None, "reasoning": "", "content": "c"},
    {"role": "assistant", "reasoning_content": None, "thinking": ["t"], "content": "c"},
]


class Rules(NamedTuple):
    """How the installed transformers changes messages before a template sees them."""

    flags: int
    """The `RULE_*` bits for the native code."""
    special: bool
    """Whether null keys and reasoning fields are understood; if not, such messages go to the reference."""
    reason: Reason | None
    """Set if nothing is understood: every call goes to the reference."""

    def refuse(self, messages: list[dict[str, Any]]) -> Reason | None:
        """Says why messages of plain dicts cannot be normalised; free unless the rules are unknown."""
        if self.reason is not None or self.special:
            return self.reason
        for message in messages:
            if type(message) is not dict:
                return Reason("value:message")
            if None in message.values():
                return Reason("value:null-key")
            if not REASONING_FIELDS.isdisjoint(message):
                return Reason("value:reasoning")
        return None


class Parameters(NamedTuple):
    """The signature of a tokenizer's `apply_chat_template`."""

    positional: tuple[str, ...]
    defaults: dict[str, Any]

    @classmethod
    def of(cls, method: Callable[..., Any]) -> "Parameters":
        """Reads the signature of an unbound method."""
        parameters = list(inspect.signature(method).parameters.values())[1:]
        kinds = inspect.Parameter
        return cls(
            tuple(p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)),
            {p.name: p.default for p in parameters if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)},
        )


def module(name: str) -> ModuleType:
    """A module that the tokenizer's own module has imported."""
    return sys.modules[name]


def base() -> Any:
    """The class `PreTrainedTokenizerBase` of the installed transformers."""
    return module(_BASE).PreTrainedTokenizerBase


def batch_encoding() -> Any:
    """The class `BatchEncoding` of the installed transformers."""
    return module(_BASE).BatchEncoding


def clock() -> Any:
    """The `datetime` that `strftime_now` uses, looked up at each call: a patched clock is seen."""
    return module(_TEMPLATES).datetime


def json_schema(tool: object) -> dict[str, Any] | None:
    """What transformers makes of a function or method that is given as a tool.

    `None` if it does not take this, raises, or makes no plain dict.
    """
    templates = module(_TEMPLATES)
    if not (inspect.isfunction(tool) or (inspect.ismethod(tool) and _takes_methods(templates.render_jinja_template))):
        return None
    try:
        schema = templates.get_json_schema(tool)
    except Exception:  # noqa: BLE001  # transformers' own error; the reference call raises it to the caller
        return None
    return schema if type(schema) is dict else None


class _Probe:
    def method(self) -> None:
        """Does nothing."""


@lru_cache(maxsize=4)
def _takes_methods(render: Callable[..., Any]) -> bool:
    """Whether the installed transformers takes a bound method for a tool; 4.x does not."""
    try:
        render(conversations=[], tools=[_Probe().method], chat_template="")
    except ValueError:
        return False
    return True


def is_tokenizer(tok: object) -> bool:
    """Whether `tok` is a tokenizer of transformers, fast or slow. Imports nothing."""
    loaded = sys.modules.get(_BASE)
    return loaded is not None and isinstance(tok, loaded.PreTrainedTokenizerBase)


def is_fast(tok: object) -> bool:
    """Whether `tok` is a tokenizer of transformers with a Rust backend. Imports nothing."""
    return is_tokenizer(tok) and any(
        cls.__name__ in _FAST and cls.__module__ in _GENERIC and "backend_tokenizer" in vars(cls)
        for cls in type(tok).__mro__
    )


@contextmanager
def preserved(backend: Any) -> Iterator[None]:
    """Restores truncation, padding and `encode_special_tokens` of a backend on the way out, also after an error.

    Anything but a `tokenizers.Tokenizer` is left alone.
    """
    if not is_backend(backend):
        yield
        return
    before = (backend.truncation, backend.padding, backend.encode_special_tokens)
    try:
        yield
    finally:
        truncation, padding, encode_special_tokens = before
        if backend.truncation != truncation:
            backend.enable_truncation(**truncation) if truncation else backend.no_truncation()
        if backend.padding != padding:
            backend.enable_padding(**padding) if padding else backend.no_padding()
        if backend.encode_special_tokens != encode_special_tokens:
            backend.encode_special_tokens = encode_special_tokens


def is_backend(backend: object) -> bool:
    """Whether this is a `tokenizers.Tokenizer` and none of its methods was replaced on the object (`encode_batch`).

    Other attributes mean nothing to it; transformers itself leaves some there.
    """
    loaded = sys.modules.get("tokenizers")
    if loaded is None or type(backend) is not loaded.Tokenizer:
        return False
    return not any(hasattr(loaded.Tokenizer, name) for name in vars(backend))


class Watch:
    """The methods of a tokenizer class that decide the result, and whether they are all generic.

    A check costs about a microsecond. It cannot see code that these methods call deeper down, jinja2 included.
    """

    __slots__ = ("_get", "_names", "_original", "_seen")

    def __init__(self, original: type) -> None:
        """Reads the methods of `original`, the class as it was before wrapping."""
        self._original: Any = original
        self._names = tuple(name for name in METHODS if hasattr(original, name))
        self._get = attrgetter(*self._names)
        methods = self._methods(original)
        self._seen = (methods, self._refusal(methods))

    def refuse(self, tok: Any) -> Reason | None:
        """Says which method of this tokenizer is not the generic one, if any."""
        patched = METHODS_SET.intersection(tok.__dict__)
        if patched:
            return Reason(f"tokenizer:override:{min(patched)}")
        methods = self._methods(type(tok))
        seen, refusal = self._seen
        if methods != seen:
            refusal = self._refusal(methods)
            self._seen = (methods, refusal)
        return refusal

    def _methods(self, cls: type) -> tuple[Any, ...]:
        # The generated class has its own apply_chat_template; what counts is the one it stands in front of.
        return (
            self._original.apply_chat_template,
            sys.modules[_BASE].render_jinja_template,
            *self._get(cls)[1:],
        )

    def _refusal(self, methods: tuple[Any, ...]) -> Reason | None:
        files = {getattr(sys.modules.get(name), "__file__", None) for name in (*_GENERIC, _TEMPLATES)}
        names = (self._names[0], "render_jinja_template", *self._names[1:])
        for name, method in zip(names, methods, strict=True):
            if not (isinstance(method, FunctionType) and method.__code__.co_filename in files):
                return Reason(f"tokenizer:override:{name}")
        return None


class Original(NamedTuple):
    """The class that a wrapped tokenizer had, and what is known about it."""

    cls: Any
    parameters: Parameters
    watch: Watch

    @classmethod
    def of_class(cls, original: Any) -> "Original":
        """Reads a class of transformers' tokenizers."""
        return cls(original, Parameters.of(original.apply_chat_template), Watch(original))


def original(tok: Any) -> Original:
    """What a wrapped tokenizer was; the generated class keeps it under the name `ORIGINAL`."""
    found: Original = type(tok)._turntrie_original  # noqa: SLF001  # set by `wrapping`, read here and nowhere else
    return found


ORIGINAL = "_turntrie_original"

_rules: dict[tuple[Any, Any], Rules] = {}


def rules() -> Rules:
    """How the installed transformers changes messages; probed on first use, in about 10 ms."""
    key = (base().apply_chat_template, sys.modules[_BASE].render_jinja_template)
    found = _rules.get(key)
    if found is None:
        found = _rules[key] = _probe()
    return found


def _probe() -> Rules:
    printer = Template(_PRINTER)
    # Not a user's tokenizer: that one may have its own methods, and the rules are for all.
    blank: Any = object.__new__(type("Blank", (base(),), {"chat_template": None, "special_tokens_map": {}}))

    def reference(messages: list[dict[str, Any]]) -> str | None:
        try:
            text: str = base().apply_chat_template(blank, messages, chat_template=_PRINTER, tokenize=False)
        except Exception:  # noqa: BLE001  # foreign code; whatever it raises, we do not understand it
            return None
        return text

    plain, special = reference(_PLAIN), reference(_SPECIAL)
    if plain is None or plain != printer.render(_PLAIN, {}, {}, 0).text:
        return Rules(0, special=False, reason=Reason("reference:messages"))
    for flags in (RULE_DROP_NULL | RULE_ALIAS_REASONING, 0, RULE_DROP_NULL, RULE_ALIAS_REASONING):
        if special is not None and special == printer.render(_SPECIAL, {}, {}, flags).text:
            return Rules(flags, special=True, reason=None)
    return Rules(0, special=False, reason=None)
