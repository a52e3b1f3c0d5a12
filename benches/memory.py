"""What checkpoints take in memory, and that they level off: `python benches/memory.py [MODEL...]`.

Two cases, straight on the engine, each with an empty trie:

- *rollouts*: 64 siblings go on from one prompt of about 30,000 tokens, 20 turns each, in turns. Printed are the bytes
  that nodes, chunks, texts and ids take, by the number of tokens that are different: the prompt's once, and what each
  sibling adds.
- *churn*: 3,000 conversations of some 1,500 tokens come by, one after another, with a budget that holds a fraction of
  them. Printed is what is held at several moments, with the resident memory of the process beside it.

Texts are those of `benches/replays.py`: prose and code of generated conversations, or recorded ones. Without a MODEL
the package's own tokenizer is measured, or `qwen3` and `gemma-3` of TURNTRIE_MODELS.
"""

import argparse
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

import replays
from run import environment
from turntrie import _native
from turntrie.check.facts import resident_bytes
from turntrie.demo import TOKENIZER

SIBLINGS = 64
TURNS = 20
PROMPT = 30_000
CHATS = 3_000
MIB = 1 << 20


def engine(model: Path, budget: int) -> Any:
    """A fresh engine of a model, with nothing in it."""
    return _native.Engine(replays.load(model).backend_tokenizer.to_str(), budget)


def texts(model: Path) -> tuple[list[str], str, str]:
    """Contents of messages, and what the template writes before and after one."""
    given = replays.chosen()
    contents = [m["content"] for m in given.recording.messages if isinstance(m.get("content"), str) and m["content"]]
    plain = replays.load(model)
    try:
        marked = plain.apply_chat_template([{"role": "user", "content": "@@@@"}], tokenize=False)
    except (TypeError, jinja2.UndefinedError):  # a template that takes parts only
        part = {"type": "text", "text": "@@@@"}
        marked = plain.apply_chat_template([{"role": "user", "content": [part]}], tokenize=False)
    before, _, after = marked.partition("@@@@")
    return contents, before, after


def rollouts(model: Path) -> None:
    """The memory of siblings."""
    contents, before, after = texts(model)
    native = engine(model, 1 << 31)
    pick = random.Random(1)  # noqa: S311  # the same texts every time
    number = iter(range(10**9))

    def message() -> str:
        # No two messages are the same: one word in each line is told apart.
        return before + pick.choice(contents).replace("\n", f" {next(number)}\n") + f" {next(number)}" + after

    prompt = ""
    while len(prompt) < 4 * PROMPT:
        prompt += message()
    shared = len(native.encode(prompt, 0, 0))
    grown = [prompt] * SIBLINGS
    ids = [0] * SIBLINGS
    for _ in range(TURNS):
        for sibling in range(SIBLINGS):
            grown[sibling] += message()
            ids[sibling] = len(native.encode(grown[sibling], 0, 0))
    unique = shared + sum(count - shared for count in ids)
    held = native.stats()
    characters = len(prompt) + sum(len(text) - len(prompt) for text in grown)
    print(
        f"  rollouts: {SIBLINGS} x {TURNS} turns from {shared:,} tokens: {unique:,} different tokens, "
        f"{held['bytes'] / MIB:.1f} MiB, {held['bytes'] / unique:.2f} bytes a token "
        f"(text {characters / unique:.2f}, ids 4); {held['chunks']:,} chunks, {held['nodes']:,} nodes; "
        f"kept {held['kept_tokens'] / (held['kept_tokens'] + held['encoded_tokens']):.2%} of all ids"
    )


def churn(model: Path, budget: int) -> None:
    """The memory of conversations that come and go."""
    contents, before, after = texts(model)
    native = engine(model, budget)
    pick = random.Random(2)  # noqa: S311  # the same texts every time
    print(f"  churn: budget {budget / MIB:.0f} MiB")
    for chat in range(1, CHATS + 1):
        text = ""
        turn = 0
        while len(text) < 6_000:
            text += before + f"{chat}.{turn} " + pick.choice(contents)[:2_000].replace("\n", f" {chat}\n") + after
            turn += 1
        native.encode(text, chat % 7, 0)
        if chat in {100, 300, 1_000, 2_000, CHATS}:
            held, resident = native.stats(), resident_bytes() or 0
            print(
                f"    {chat:5} chats: {held['bytes'] / MIB:6.1f} MiB held, {held['evictions']:7,} evictions, "
                f"{resident / MIB:7.1f} MiB resident"
            )


def for_each_model(doc: str | None, measure: Callable[[Path], None]) -> None:
    """Measures the models of the command line; by default two real ones, or the package's own."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", type=Path)
    options = parser.parse_args()
    print(f"{environment()}\n")
    folder = os.environ.get("TURNTRIE_MODELS")
    default = [Path(folder) / name for name in ("qwen3", "gemma-3")] if folder else [TOKENIZER]
    for model in options.models or default:
        measure(model)


def measure(model: Path) -> None:
    """Measures and prints."""
    print(model.name)
    rollouts(model)
    churn(model, 16 * MIB)


if __name__ == "__main__":
    for_each_model(__doc__, measure)
