"""Small tokenizers of every kind: whatever a chat does, every outcome equals that of transformers.

First the episodes that the real models run too. Then Hypothesis drives one long-lived wrapped tokenizer of each kind
through random edits of a conversation, so that its trie fills with related texts: there a wrong reuse would show.
"""

import copy
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import episodes
import kinds
import turntrie
from episodes import Call

pytestmark = pytest.mark.fallback  # a kind without safe cuts may be served by the reference; a panic still fails

EXAMPLES = 60


@cache
def pair(kind: str) -> tuple[Any, Any]:
    """A plain and a wrapped tokenizer of this kind, kept for all tests."""
    return kinds.KINDS[kind](), turntrie.wrap(kinds.KINDS[kind]())


def _calls() -> list[Call]:
    one, two = episodes.own(turns=6, seed=21), episodes.own(turns=6, seed=22)
    return [
        *episodes.growing(one),
        *episodes.interleaved(one, two),
        *episodes.edited(one.first(4)),
        *episodes.retooled(two.first(4)),
        *episodes.switched(one.first(4)),
        *episodes.returned(two.first(4)),
        *episodes.odd_texts(),
    ]


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_episodes(kind: str) -> None:
    plain, wrapped = kinds.KINDS[kind](), turntrie.wrap(kinds.KINDS[kind]())
    calls = _calls()
    expected = [episodes.outcome(plain, call) for call in calls]
    episodes.compare(wrapped, calls, expected)


contents = st.lists(
    st.one_of(st.sampled_from(episodes.TEXTS), st.text(max_size=8), st.sampled_from(kinds.CONTROL)),
    min_size=0,
    max_size=4,
).map("".join)
roles = st.sampled_from(["user", "assistant", "tool"])
edits = st.one_of(
    st.tuples(st.just("append"), roles, contents),
    st.tuples(st.just("append"), roles, contents),
    st.tuples(st.just("replace"), st.integers(0, 30), contents),
    st.tuples(st.just("extend"), st.integers(0, 30), contents),
    st.tuples(st.just("cut"), st.integers(0, 30), st.just("")),
)


def _apply(messages: list[dict[str, Any]], edit: tuple[str, Any, str]) -> None:
    """Changes the conversation in place."""
    kind, argument, text = edit
    if kind == "append" or not messages:
        messages.append({"role": argument if isinstance(argument, str) else "user", "content": text})
    elif kind == "replace":
        messages[argument % len(messages)]["content"] = text
    elif kind == "extend":
        messages[argument % len(messages)]["content"] += text
    else:
        del messages[max(1, argument % len(messages)) :]


@pytest.mark.parametrize("kind", kinds.KINDS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(edits, min_size=1, max_size=12))
def test_random_edits(kind: str, steps: list[tuple[str, Any, str]]) -> None:
    plain, wrapped = pair(kind)
    messages: list[dict[str, Any]] = []
    for step in steps:
        _apply(messages, step)
        call = Call(copy.deepcopy(messages))
        wanted = episodes.outcome(plain, call)
        got = episodes.outcome(wrapped, call)
        assert got == wanted, episodes.difference(got, wanted)
