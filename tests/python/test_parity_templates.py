"""Chat templates by the hundred, on one small tokenizer: each outcome is that of transformers, native or counted.

Real templates say more about rendering than the few that come with the models. Their control tokens mean nothing to
this tokenizer, which does not matter: text and ids must be equal all the same.
"""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import episodes
import kinds
import real_data
import turntrie
from episodes import Call
from turntrie.check.scenarios import scenarios

pytestmark = [pytest.mark.fallback, pytest.mark.usefixtures("frozen_clock")]

FOLDER = real_data.folder("TURNTRIE_TEMPLATES")
TEMPLATES = sorted(FOLDER.glob("*.jinja")) if FOLDER else []


@cache
def pair() -> tuple[Any, Any]:
    """A plain and a wrapped tokenizer, kept for all templates: the trie holds the texts of all of them."""
    make = kinds.KINDS["split regex, NFC"]
    return make(), turntrie.wrap(make())


@cache
def calls() -> list[Call]:
    """One scenario in seven, and a growing conversation."""
    shapes = [Call(s.messages, s.tools, s.kwargs) for s in list(scenarios())[::7]]
    return [*shapes, *episodes.growing(episodes.own(turns=5, seed=41))]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_template(path: Path) -> None:
    plain, wrapped = pair()
    plain.chat_template = wrapped.chat_template = path.read_text(encoding="utf-8")
    expected = [episodes.outcome(plain, call) for call in calls()]
    served = episodes.compare(wrapped, calls(), expected)
    if served:
        real_data.TEMPLATES[max(served, key=served.__getitem__)] += 1


@pytest.mark.parametrize("name", ["split regex, NFC", "metaspace, whole segments", "strips on the right"])
def test_the_demos_template_is_native_in_every_scenario(name: str) -> None:
    plain, wrapped = kinds.KINDS[name](), turntrie.wrap(kinds.KINDS[name]())
    wanted = [Call(s.messages, s.tools, s.kwargs) for s in scenarios()]
    served = Counter(episodes.compare(wrapped, wanted, [episodes.outcome(plain, call) for call in wanted]))
    assert set(served) <= {"native", "value:image"}, served
