"""What is replayed, and through which call: shared by the benchmarks of this folder.

The rules, which every figure follows:

- A warm call is the first call of a turn, whose new messages its process has never seen. A repeated call is a row of
  its own.
- An episode is replayed several times, each time with fresh tokenizers and an empty trie; the figure is the median over
  the turns of the window at its end.
- Between two timed calls the allocator settles: what the one freed, glibc sorts when memory is asked for next, which
  would be charged to the other. The processor's caches stay as the other call left them.
- The reference is measured in the same run, interleaved. Every comparison asserts that the ids are equal and that
  turntrie made them itself.

The input is a generated conversation on the package's own tokenizer. With TURNTRIE_MODELS and TURNTRIE_CONVERSATIONS
set, it is the model `qwen3` and a recorded coding conversation.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import transformers

import turntrie
from turntrie.cli import recordings
from turntrie.cli.recordings import Recording
from turntrie.cli.replay import spelling, warm_up
from turntrie.demo import TOKENIZER, conversation

TURNS = 200
WINDOW = 10
REPLAYS = 5

Messages = list[dict[str, Any]]


class Input(NamedTuple):
    """A model directory and a conversation in the spelling that its template wants."""

    name: str
    model: Path
    recording: Recording


def load(model: Path) -> Any:
    """A fresh tokenizer of transformers."""
    return transformers.AutoTokenizer.from_pretrained(str(model))


def generated(turns: int = TURNS, seed: int = 1, model: Path = TOKENIZER) -> Input:
    """A generated conversation; by default on the package's own tokenizer."""
    recording = Recording(f"seed {seed}", *conversation(turns=turns, seed=seed)).spelled("dict")
    return Input(f"generated conversation, {model.name}", model, recording)


def chosen(turns: int = TURNS) -> Input:
    """The recorded conversation if the variables name one, else a generated one."""
    models, folder = os.environ.get("TURNTRIE_MODELS"), os.environ.get("TURNTRIE_CONVERSATIONS")
    if not (models and folder):
        return generated(turns)
    model = Path(models) / "qwen3"
    found = recordings.read(Path(folder) / "long_chained.jsonl.xz")
    # They are there in several lengths, the shorter ones first.
    coding = (r for r in found if r.name.startswith("long/coding/"))
    recording = next(r for r in coding if len(r.asks()) >= max(turns, TURNS)).first(turns)
    return Input(
        f"recorded coding conversation, {model.name}", model, recording.spelled(spelling(load(model), recording))
    )


def settle() -> None:
    """Lets the allocator put away what was freed: it does so at larger requests, a limited number of pieces each."""
    for size in range(1, 65):
        bytearray(size << 11)


# --- the calls ---


class Answer(NamedTuple):
    """What a call returned, as the caller gets it, and how to look into it after the clock has stopped."""

    ids: Callable[[], list[int]]
    kept: int | None = None
    new: int | None = None


class Route:
    """One way to get a turn's ids, on its own tokenizer."""

    def __init__(self, model: Path) -> None:
        """Loads a fresh tokenizer."""
        self.tokenizer = load(model)

    def __call__(self, messages: Messages, new: Messages, tools: Any) -> Any:
        """The timed call: all messages of the turn, and those of them that are new."""
        raise NotImplementedError

    def look(self, result: Any) -> Answer:
        """Looks into the result and asserts that it was made as this route claims."""
        raise NotImplementedError


class Reference(Route):
    """transformers, a list."""

    def __call__(self, messages: Messages, new: Messages, tools: Any) -> Any:
        del new
        return self.tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, return_dict=False)

    def look(self, result: Any) -> Answer:
        return Answer(lambda: list(result))


class ReferenceEncoding(Route):
    """transformers, a BatchEncoding."""

    def __call__(self, messages: Messages, new: Messages, tools: Any) -> Any:
        del new
        return self.tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, return_dict=True)

    def look(self, result: Any) -> Answer:
        return Answer(lambda: list(result["input_ids"]))


class Wrapped(Route):
    """turntrie: a wrapped tokenizer whose engine is built, and whose trie is empty."""

    def __init__(self, model: Path) -> None:
        super().__init__(model)
        turntrie.wrap(self.tokenizer)
        warm_up(load(model), self.tokenizer)
        self._fallbacks = self._count()

    @staticmethod
    def _count() -> int:
        return sum(turntrie.stats()["fallbacks"].values())

    def look(self, result: Any) -> Answer:
        assert self._count() == self._fallbacks, turntrie.stats()["fallbacks"]
        return self.open(result)

    def open(self, result: Any) -> Answer:
        """Looks into a result that was made natively."""
        raise NotImplementedError


class ListCall(Wrapped):
    """`apply_chat_template`, a list."""

    __call__ = Reference.__call__

    def open(self, result: Any) -> Answer:
        return Answer(lambda: list(result))


class EncodingCall(Wrapped):
    """`apply_chat_template`, a BatchEncoding."""

    __call__ = ReferenceEncoding.__call__

    def open(self, result: Any) -> Answer:
        return Answer(lambda: list(result["input_ids"]))


class ArrayCall(Wrapped):
    """`prompt`, numpy arrays of all ids and of the new ones."""

    def __call__(self, messages: Messages, new: Messages, tools: Any) -> Any:
        del new
        prompt = self.tokenizer.turntrie.prompt(messages, tools=tools, add_generation_prompt=True)
        return prompt, prompt.ids

    def open(self, result: Any) -> Answer:
        prompt, ids = result
        assert (prompt.path, prompt.reason) == ("native", None)
        return Answer(ids.tolist, int(prompt.kept), len(prompt.new_ids))


class ExtendCall(ArrayCall):
    """`Session.extend`, only the new messages go in and only the new ids come out."""

    def __init__(self, model: Path) -> None:
        super().__init__(model)
        self._session = turntrie.Session(self.tokenizer)
        self._started = False

    def __call__(self, messages: Messages, new: Messages, tools: Any) -> Any:
        if self._started:
            prompt = self._session.extend(new)
            return prompt, prompt.new_ids
        self._started = True
        prompt = self._session.prompt(messages, tools=tools, add_generation_prompt=True)
        return prompt, prompt.new_ids

    def open(self, result: Any) -> Answer:
        prompt, _ = result
        return super().open((prompt, prompt.ids))


class Row(NamedTuple):
    """A line of the table: a route, and the reference that it replaces."""

    route: type[Wrapped]
    reference: type[Route]
    repeated: bool = False


ROWS = {
    "list": Row(ListCall, Reference),
    "BatchEncoding": Row(EncodingCall, ReferenceEncoding),
    "array": Row(ArrayCall, Reference),
    "Session.extend": Row(ExtendCall, Reference),
    "list, repeated call": Row(ListCall, Reference, repeated=True),
}


class Turn(NamedTuple):
    """The arguments of a turn's call."""

    number: int
    messages: Messages
    new: Messages
    tools: Any


def turns(recording: Recording) -> list[Turn]:
    """The turns of a conversation, numbered from 1."""
    ends = recording.asks()
    starts = [0, *ends]
    return [
        Turn(number, recording.messages[:end], recording.messages[start:end], recording.tools)
        for number, (start, end) in enumerate(zip(starts, ends, strict=False), start=1)
    ]
