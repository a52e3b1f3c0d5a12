"""The demo's own model and conversation: every turn identical and native, whatever the chat does in between.

No call here may fall back: the model is ours, and everything its template does is supported.
"""

from typing import Any

import pytest

import episodes
import turntrie
from episodes import Call


def _native(plain: Any, wrapped: Any, calls: list[Call]) -> None:
    """Runs the calls on both and asserts equality and that none fell back."""
    expected = [episodes.outcome(plain, call) for call in calls]
    assert all(wanted[0] == "returned" for wanted in expected)
    assert episodes.compare(wrapped, calls, expected) == {"native": len(calls)}


@pytest.mark.parametrize("arguments", ["dict", "str"])
def test_growing(plain: Any, wrapped: Any, arguments: Any) -> None:
    _native(plain, wrapped, episodes.growing(episodes.own(turns=24, seed=1, arguments=arguments)))


def test_interleaved_conversations(plain: Any, wrapped: Any) -> None:
    _native(plain, wrapped, episodes.interleaved(*(episodes.own(turns=12, seed=seed) for seed in range(2, 6))))


def test_edits(plain: Any, wrapped: Any) -> None:
    _native(plain, wrapped, episodes.edited(episodes.own(turns=12, seed=6)))


def test_changed_tools(plain: Any, wrapped: Any) -> None:
    _native(plain, wrapped, episodes.retooled(episodes.own(turns=12, seed=7)))


def test_changed_keywords(plain: Any, wrapped: Any) -> None:
    _native(plain, wrapped, episodes.switched(episodes.own(turns=12, seed=8)))


def test_every_kind_of_result(plain: Any, wrapped: Any) -> None:
    _native(plain, wrapped, episodes.returned(episodes.own(turns=12, seed=9)))


def test_odd_texts(plain: Any, wrapped: Any) -> None:
    _native(plain, wrapped, episodes.odd_texts())


def test_reasoning_of_answered_questions_disappears(plain: Any, wrapped: Any) -> None:
    recording = episodes.own(turns=24, seed=10)
    kept = []
    for call in episodes.growing(recording):
        prompt = wrapped.turntrie.prompt(call.messages, tools=call.tools, add_generation_prompt=True)
        assert prompt.tolist() == call.on(plain)
        kept.append((call.messages[-1]["role"], prompt.kept, len(prompt.ids)))
    at_questions = [share for role, share, _ in kept if role == "user"]
    assert len(at_questions) > 2, "the conversation asks only once"
    # History was rewritten at the questions, so fewer ids were kept there than the turn before had: but not none.
    assert all(share > 0 for share in at_questions[1:])
    assert any(now < before[2] * 0.9 for (role, now, _), before in zip(kept[1:], kept, strict=False) if role == "user")


def test_what_a_prompt_says_adds_up(plain: Any, wrapped: Any) -> None:
    previous = 0
    for call in episodes.growing(episodes.own(turns=12, seed=14)):
        prompt = wrapped.turntrie.prompt(call.messages, tools=call.tools, add_generation_prompt=True)
        ids = call.on(plain)
        assert (prompt.path, prompt.reason) == ("native", None)
        assert prompt.ids.dtype == prompt.new_ids.dtype == "uint32"
        assert prompt.ids.tolist() == prompt.tolist() == ids
        assert prompt.kept + len(prompt.new_ids) == len(ids)
        assert prompt.new_ids.tolist() == ids[prompt.kept :]
        assert previous == 0 or prompt.kept > 0
        previous = prompt.kept


def test_a_session_extends(plain: Any, wrapped: Any) -> None:
    recording = episodes.own(turns=24, seed=15)
    session = turntrie.Session(wrapped)
    done = 0
    for number, call in enumerate(episodes.growing(recording)):
        if number == 0:
            prompt = session.prompt(call.messages, tools=call.tools, add_generation_prompt=True)
        else:
            prompt = session.extend(call.messages[done:])
        assert (prompt.path, prompt.reason) == ("native", None)
        assert prompt.tolist() == call.on(plain)
        done = len(call.messages)


def test_the_tokenizer_serves_as_before_when_restored(plain: Any, wrapped: Any) -> None:
    call = episodes.growing(episodes.own(turns=3, seed=16))[-1]
    expected = call.on(plain)
    assert call.on(wrapped) == expected
    restored = turntrie.restore(wrapped)
    assert call.on(restored if restored is not None else wrapped) == expected
