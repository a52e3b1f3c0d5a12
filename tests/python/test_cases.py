"""Public fault reports as inputs: what others got wrong when they rendered templates natively or token by token.

Run with a folder of cases (TURNTRIE_CASES, `*.jsonl`, one call a line: `id`, `messages`, `tools`, `kwargs`) on small
tokenizers of every kind. Lines whose ids differ only behind a dot are one conversation: they run in order on one wrapped
tokenizer, so that its checkpoints are warm; the reference is fresh for each line.
"""

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kinds
import real_data
import turntrie

CASES = real_data.folder("TURNTRIE_CASES")

TWO_TEMPLATES = {
    "default": "{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}",
    "tool_use": "TOOLS{{ tools|length }}{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content }}<|end|>{% endfor %}",
}


def _lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines() if line]


def _outcome(tok: Any, line: dict[str, Any]) -> Any:
    """Value, or class and text of the exception."""
    try:
        value = tok.apply_chat_template(
            copy.deepcopy(line["messages"]), tools=copy.deepcopy(line["tools"]), **copy.deepcopy(line["kwargs"])
        )
    except Exception as error:
        return type(error).__name__, str(error)
    return type(value).__name__, dict(value) if hasattr(value, "keys") else value


def _tokenizer(kind: str, line: dict[str, Any]) -> Any:
    tok = kinds.KINDS[kind]()
    if "chat_template" not in line["kwargs"] or "two-template" in line["template_hint"]:
        tok.chat_template = TWO_TEMPLATES
    tok.pad_token = tok.pad_token or "<|end|>"
    return tok


@pytest.mark.fallback
@pytest.mark.skipif(CASES is None, reason="TURNTRIE_CASES is not set")
@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_case_is_as_transformers_has_it(kind: str, record_property: Any) -> None:
    assert CASES is not None
    lines = _lines(CASES)
    wrapped: dict[tuple[str, bool], Any] = {}
    served: Counter[str] = Counter()
    different = []
    for line in lines:
        conversation = line["id"].split(".")[0]
        key = (conversation, "chat_template" in line["kwargs"])
        if key not in wrapped:
            wrapped[key] = turntrie.wrap(_tokenizer(kind, line))
        tok = wrapped[key]
        before = Counter(tok.turntrie.stats()["fallbacks"])
        got, want = _outcome(tok, line), _outcome(_tokenizer(kind, line), line)
        if repr(got) != repr(want):  # as text: a NaN is not equal to itself, and arrays compare by element
            different.append(line["id"])
        reasons = Counter(tok.turntrie.stats()["fallbacks"]) - before
        served[next(iter(reasons), "native")] += 1
    assert different == []
    assert len(lines) > 100
    assert served["native"] > len(lines) / 2, served
    record_property("served", dict(served))
