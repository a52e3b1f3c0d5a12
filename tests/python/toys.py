"""Tokenizers for tests of the Python layer, and what a call on one came to.

`fresh` loads the demo's tokenizer anew; nothing is shared between two of them but files. The classes below stand for
tokenizer classes that users bring along; they live in this module so that they can be pickled.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import transformers

import turntrie
from turntrie.demo import TOKENIZER

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Which files are there?"},
    {"role": "assistant", "content": "Three: <|think|> a.py, b.py\n and c.py."},
    {"role": "user", "content": "Delete them.  "},
]
LONG: list[dict[str, Any]] = [
    {"role": role, "content": f"{number}: " + "what a checkpoint stands for, in a few words. " * 30}
    for number in range(4)
    for role in ("user", "assistant")
]
"""Long enough for checkpoints inside."""
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "rm", "description": "<b>", "parameters": {"type": "object", "properties": {}}},
    }
]
Fast: Any = transformers.PreTrainedTokenizerFast


def fresh(cls: Any = None, **keywords: Any) -> Any:
    """A tokenizer as transformers loads it: the demo's, or one of `cls` with the same backend and chat template."""
    demo = transformers.AutoTokenizer.from_pretrained(TOKENIZER)
    if cls is None and not keywords:
        return demo
    made = (cls or Fast)(tokenizer_object=demo.backend_tokenizer, **{**demo.special_tokens_map, **keywords})
    made.chat_template = demo.chat_template
    return made


def wrapped(cls: Any = None, **keywords: Any) -> Any:
    """The same, wrapped, and nothing compared: a test that counts reference calls wants only its own."""
    return turntrie.wrap(fresh(cls, **keywords), verify="off")


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """What a call came to: type and value of the result, or class and text of the exception."""
    try:
        value = call()
    except Exception as error:  # noqa: BLE001  # whatever it is must be the same on both sides
        return ("raised", type(error), str(error))
    if isinstance(value, transformers.BatchEncoding):
        return ("returned", type(value), [(key, _plain(item)) for key, item in value.data.items()])
    return ("returned", type(value), _plain(value))


def _plain(value: Any) -> Any:
    return (str(value.dtype), value.tolist()) if hasattr(value, "dtype") else value


def calls(tok: Any) -> dict[str, int]:
    """How many calls each path has served on a wrapped tokenizer."""
    counted: dict[str, int] = tok.turntrie.stats()["calls"]
    return counted


def fallbacks(tok: Any) -> dict[str, int]:
    """How many calls fell back on a wrapped tokenizer, by reason."""
    counted: dict[str, int] = tok.turntrie.stats()["fallbacks"]
    return counted


@contextlib.contextmanager
def spied(cls: Any, name: str = "apply_chat_template") -> Iterator[list[tuple[Any, ...]]]:
    """Records the calls of a method that a class has by itself, without changing which method it is to others.

    The code object is exchanged, not the function: to turntrie a patched method is one that it must not imitate.
    """
    seen: list[tuple[Any, ...]] = []
    method = getattr(cls, name)
    original = method.__code__
    twin = type(method)(original, method.__globals__, method.__name__, method.__defaults__, method.__closure__)
    twin.__kwdefaults__, twin.__qualname__ = method.__kwdefaults__, method.__qualname__

    def spy(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs))
        return twin(*args, **kwargs)

    method.__globals__["_spy"] = spy
    replaced = compile("lambda *args, **kwargs: _spy(*args, **kwargs)", original.co_filename, "eval").co_consts[0]
    defaults, kwdefaults = method.__defaults__, method.__kwdefaults__
    method.__code__ = replaced
    try:
        yield seen
    finally:
        method.__code__ = original
        method.__defaults__, method.__kwdefaults__ = defaults, kwdefaults
        del method.__globals__["_spy"]


class Overriding(Fast):  # type: ignore[misc]  # a class of transformers is Any here
    """Has an `apply_chat_template` of its own, as remote code may, with fewer keywords."""

    def apply_chat_template(self, messages: Any, tools: Any = None, add_generation_prompt: bool = True) -> Any:
        self.seen = (messages, tools, add_generation_prompt)
        return [len(messages), 7]


class Reencoding(Fast):  # type: ignore[misc]  # a class of transformers is Any here
    """Changes what a text is encoded to, below `apply_chat_template`."""

    def _encode_plus(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        return super()._encode_plus(text.upper(), *args, **kwargs)


class Stateful(Fast):  # type: ignore[misc]  # a class of transformers is Any here
    """Replaces its whole `__dict__` when it is unpickled, as some tokenizers of transformers do."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state


class Copying(Fast):  # type: ignore[misc]  # a class of transformers is Any here
    """Copies itself without asking pickle."""

    def __copy__(self) -> Any:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: Any) -> Any:
        del memo
        return self.__copy__()


def in_another_process(tok: Any, pipe: Any, messages: Any) -> None:
    """Serves one call and sends what came of it; here, because a spawned process finds this module by its name."""
    ids = tok.apply_chat_template(messages, return_dict=False)
    pipe.send((ids, turntrie.is_wrapped(tok), calls(tok)))


class Rollout:
    """What an actor of a trainer does, in a process of its own: it holds a tokenizer, and is asked turn by turn."""

    def __init__(self, tok: Any) -> None:
        self.tok = tok

    def ids(self, messages: list[dict[str, Any]], tools: Any) -> tuple[list[int], str, str | None]:
        prompt = self.tok.turntrie.prompt(messages, tools=tools, add_generation_prompt=True)
        return prompt.tolist(), prompt.path, prompt.reason

    def prompt(self, messages: list[dict[str, Any]], tools: Any) -> Any:
        return self.tok.turntrie.prompt(messages, tools=tools, add_generation_prompt=True)

    def stats(self) -> dict[str, Any]:
        return turntrie.stats()
