"""Inputs on which other implementations failed: each outcome is that of transformers.

The lines of open_cases.jsonl are calls with a small template each. Lines whose ids end in .1, .2, ... are one
conversation; they run in order on one wrapped tokenizer, whose checkpoints are warm, while the reference gets a fresh
tokenizer for every call.
"""

import copy
import json
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kinds
import real_data
import turntrie

pytestmark = pytest.mark.fallback

FOLDER = real_data.folder("TURNTRIE_CASES")
KINDS = (
    "split regex, NFC",
    "template processing",
    "metaspace, whole segments",
    "strips on the right",
    "runs of blanks as tokens",
)
TWO_TEMPLATES = {
    "default": "{%- for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}{%- endfor %}",
    "tool_use": "TOOLS {{ tools | tojson }}{%- for m in messages %}{{ m.content }}{%- endfor %}",
}


def conversations() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The lines, those of one conversation together."""
    if FOLDER is None:
        return
    text = (FOLDER / "open_cases.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    for name, group in groupby(lines, lambda line: line["id"].partition(".")[0]):
        yield name, list(group)


CONVERSATIONS = dict(conversations())


@cache
def original(kind: str) -> Any:
    """A tokenizer of this kind that is only ever copied."""
    return kinds.KINDS[kind]()


def outcome(tokenizer: Any, line: dict[str, Any]) -> Any:
    """What the line's call comes to, comparable."""
    keywords = copy.deepcopy(line["kwargs"])
    if line["tools"] is not None:
        keywords["tools"] = copy.deepcopy(line["tools"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = tokenizer.apply_chat_template(copy.deepcopy(line["messages"]), **keywords)
    except Exception as error:  # noqa: BLE001  # whatever it is must be the same on both sides
        return ("raised", type(error).__name__, str(error))
    if hasattr(value, "items"):
        entries = {key: entry.tolist() if isinstance(entry, np.ndarray) else entry for key, entry in value.items()}
        return (type(value).__name__, {key: type(entry).__name__ for key, entry in value.items()}, entries)
    return (type(value).__name__, value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_case(name: str, kind: str) -> None:
    wrapped = turntrie.wrap(copy.deepcopy(original(kind)))
    for line in CONVERSATIONS[name]:
        fresh = copy.deepcopy(original(kind))
        if "two-template" in line["template_hint"] or "{default:" in line["template_hint"]:
            fresh.chat_template = wrapped.chat_template = TWO_TEMPLATES
        assert outcome(wrapped, line) == outcome(fresh, line), f"{line['id']}: {line['note']}"


@pytest.mark.skipif(FOLDER is None, reason="needs TURNTRIE_CASES")
def test_there_are_cases() -> None:
    assert sum(map(len, CONVERSATIONS.values())) > 50
    assert isinstance(FOLDER, Path)
