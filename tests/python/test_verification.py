"""The two oracles: what they look at, what they find, what happens then, and what nobody gets to see.

Each fault is put in on purpose, one at a time, by the native code's own test hooks.
"""

import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any

import pytest

import turntrie
from turntrie import _native, backend, path, verification
from turntrie.demo import conversation

PRIVATE = "the launch code is 0000"
BROKEN = {
    "filter": "{% for m in messages %}[{{ m.content|trim }}]{% endfor %}",
    "gate": "{% for m in messages %}[{{ m.weight ~ '' }}]{% endfor %}",
}
MESSAGES = {
    "filter": [{"role": "user", "content": f"  {PRIVATE}  "}],
    "gate": [{"role": "user", "content": PRIVATE, "weight": 1e16}],
}


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes every template that is compiled from now on faulty in one way."""

    def put_in(fault: str) -> None:
        made: dict[str, _native.Template] = {}
        monkeypatch.setattr(
            path, "compiled", lambda source: made.setdefault(source, _native.Template.with_fault(source, fault))
        )

    return put_in


def _prompts_of_threads(tok: Any, messages: list[dict[str, Any]]) -> list[Any]:
    """The same prompt, asked for by 8 threads at once."""
    got: list[Any] = []
    calls = [threading.Thread(target=lambda: got.append(tok.turntrie.prompt(messages))) for _ in range(8)]
    for call in calls:
        call.start()
    for call in calls:
        call.join(60)
    return got


def _grown(turns: int) -> Iterator[list[dict[str, Any]]]:
    messages, _ = conversation(turns=turns, seed=5)
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            yield messages[:i]


@pytest.mark.fallback
@pytest.mark.parametrize("fault", ["filter", "gate"])
def test_a_wrong_text_is_caught_on_the_first_call_of_its_shape(
    plain: Any, wrapped: Any, faulty: Any, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    faulty(fault)
    messages, template = MESSAGES[fault], BROKEN[fault]
    with caplog.at_level(logging.WARNING, logger="turntrie"):
        for _ in range(3):
            got = wrapped.apply_chat_template(messages, chat_template=template, tokenize=False)
            assert got == plain.apply_chat_template(messages, chat_template=template, tokenize=False)
    stats = wrapped.turntrie.stats()
    assert stats["fallbacks"] == {"quarantine:shape": 3}
    assert stats["verifications"] == {"text:different": 1}
    assert stats["quarantines"] == {"shape": 1}
    warning = [record for record in caplog.records if record.name == "turntrie"]
    assert len(warning) == 1
    assert PRIVATE not in warning[0].getMessage()
    (report,) = wrapped.turntrie.divergences()
    assert warning[0].__dict__["turntrie"] == report
    assert re.fullmatch("[0-9a-f]{16}", report["shape"])
    assert report["shape"] in warning[0].getMessage()


@pytest.mark.fallback
def test_a_divergence_reproduces_and_is_private_by_default(plain: Any, wrapped: Any, faulty: Any) -> None:
    faulty("filter")
    messages, template = MESSAGES["filter"], BROKEN["filter"]
    wrapped.apply_chat_template(messages, chat_template=template, tokenize=False)
    (report,) = wrapped.turntrie.divergences()
    assert PRIVATE not in json.dumps(report)
    assert (report["kind"], report["first"]) == ("text", 1)
    (full,) = json.loads(json.dumps(wrapped.turntrie.divergences(contents=True)))
    call = {"chat_template": full["chat_template"], "tokenize": False, **full["keywords"]}
    again = plain.apply_chat_template(full["messages"], **call)
    assert (again, full["got"]) == (full["want"], f"[  {PRIVATE}  ]")


@pytest.mark.fallback
def test_what_the_call_was_given_is_in_the_reproducer(plain: Any, wrapped: Any, faulty: Any) -> None:
    faulty("filter")
    template = BROKEN["filter"] + "{{ tools|length }}{{ mood }}{{ add_generation_prompt }}"
    tools = conversation(turns=1, seed=1).tools
    given: dict[str, Any] = {"tools": tools, "mood": "calm", "add_generation_prompt": True}
    wrapped.apply_chat_template(MESSAGES["filter"], chat_template=template, tokenize=False, **given)
    (full,) = json.loads(json.dumps(wrapped.turntrie.divergences(contents=True)))
    assert {name: full["keywords"][name] for name in given} == given
    call = {"chat_template": full["chat_template"], "tokenize": False, **full["keywords"]}
    assert plain.apply_chat_template(full["messages"], **call) == full["want"]


@pytest.mark.parametrize("verify", ["shapes", "always"])
def test_a_clock_that_ticks_between_the_two_sides_is_no_difference(
    wrapped: Any, monkeypatch: pytest.MonkeyPatch, verify: str
) -> None:
    """Native, reference, native: the reference's second is that of one of its neighbours."""

    class Halves(datetime):
        halves = 0

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Halves":
            Halves.halves += 1  # the second changes after every second look: between the sides at the first call
            return cls(2031, 4, 17, 9, 0, Halves.halves // 2 % 60, tzinfo=tz)

    tok = turntrie.wrap(turntrie.restore(wrapped), verify=verify)
    monkeypatch.setattr("transformers.utils.chat_template_utils.datetime", Halves)
    template = "{{ strftime_now('%S') }}{% for m in messages %}{{ m.content }}{% endfor %}{# " + verify + " #}"
    for turn in range(6):
        messages = [{"role": "user", "content": "x"}] * (turn + 1)
        tok.apply_chat_template(messages, chat_template=template, tokenize=False)
    stats = tok.turntrie.stats()
    assert (stats["calls"], stats["quarantines"]) == ({"native": stats["calls"]["native"], "reference": 0}, {})
    assert not {"text:different", "full:different"} & set(stats["verifications"])


@pytest.mark.fallback
def test_quarantine_holds_under_threads(plain: Any, wrapped: Any, faulty: Any) -> None:
    faulty("filter")
    messages, template = MESSAGES["filter"], BROKEN["filter"]
    want = plain.apply_chat_template(messages, chat_template=template, return_dict=True)
    wrong: list[Any] = []

    def call() -> None:
        for _ in range(25):
            got = wrapped.apply_chat_template(messages, chat_template=template, return_dict=True)
            if dict(got) != dict(want):
                wrong.append(got)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert wrapped.turntrie.stats()["fallbacks"] == {"quarantine:shape": 200}


def test_a_shape_is_looked_at_once(plain: Any, wrapped: Any) -> None:
    messages, tools = conversation(turns=30, seed=5)
    wrapped.chat_template += "{# looked at once #}"
    for history in _grown(30):
        got = wrapped.turntrie.prompt(history, tools=tools, add_generation_prompt=True)
        assert (got.path, got.reason) == ("native", None)
        assert got.tolist() == plain.apply_chat_template(
            history, tools=tools, add_generation_prompt=True, return_dict=False
        )
    looked = wrapped.turntrie.stats()["verifications"]
    assert set(looked) <= {"text:equal", "text:skipped"}
    assert 0 < looked["text:equal"] < 30
    wrapped.turntrie.prompt(messages, tools=tools, add_generation_prompt=True)
    before = wrapped.turntrie.stats()["verifications"]
    wrapped.turntrie.prompt(messages, tools=tools, add_generation_prompt=True)
    assert wrapped.turntrie.stats()["verifications"] == before


def test_a_long_conversation_is_looked_at_in_windows(wrapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit only windows of real messages are rendered again, and no call renders more than the limit."""
    monkeypatch.setattr(verification, "LIMIT", 10_000)
    messages, tools = conversation(turns=60, seed=6)
    # Ledgers belong to templates, which the process shares: a comment makes this one new.
    wrapped.chat_template += "{# looked at in windows #}"
    rendered: list[int] = []
    monkeypatch.setattr(verification.TextOracle, "_equal", _spied(verification.TextOracle._equal, rendered))
    for _ in range(20):
        rendered.clear()
        got = wrapped.turntrie.prompt(messages, tools=tools, add_generation_prompt=True)
        assert (got.path, got.reason) == ("native", None)
        assert sum(rendered) <= 10_000
    looked = wrapped.turntrie.stats()["verifications"]
    assert looked["text:equal"] > 5
    assert not got_new(wrapped, messages, tools)


def got_new(tok: Any, messages: Any, tools: Any) -> bool:
    """Whether another call finds shapes that were never dealt with."""
    before = tok.turntrie.stats()["verifications"]
    tok.turntrie.prompt(messages, tools=tools, add_generation_prompt=True)
    return bool(tok.turntrie.stats()["verifications"] != before)


def _spied(method: Any, lengths: list[int]) -> Any:
    def equal(self: Any, prompt: Any, messages: Any) -> Any:
        lengths.append(len(prompt.text))
        return method(self, prompt, messages)

    return equal


@pytest.mark.fallback
def test_a_wrong_text_far_back_in_a_long_conversation_is_found(
    plain: Any, wrapped: Any, faulty: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "LIMIT", 2000)
    faulty("filter")
    messages = [{"role": role, "content": "x" * 200} for _ in range(40) for role in ("user", "assistant")]
    messages[50] = {"role": "user", "content": "  blanks  "}
    got = wrapped.apply_chat_template(messages, chat_template=BROKEN["filter"], tokenize=False)
    assert got == plain.apply_chat_template(messages, chat_template=BROKEN["filter"], tokenize=False)
    assert wrapped.turntrie.stats()["verifications"]["text:different"] == 1


def test_off_looks_at_nothing(wrapped: Any) -> None:
    tok = turntrie.restore(wrapped)
    turntrie.wrap(tok, verify="off")
    for history in _grown(20):
        assert tok.turntrie.prompt(history).reason is None
    stats = tok.turntrie.stats()
    assert stats["verifications"] == {}


def test_always_serves_by_both(plain: Any, wrapped: Any) -> None:
    tok = turntrie.wrap(turntrie.restore(wrapped), verify="always")
    calls = 0
    for history in _grown(8):
        calls += 1
        want = plain.apply_chat_template(history, return_dict=True)
        assert dict(tok.apply_chat_template(history, return_dict=True)) == dict(want)
    assert tok.turntrie.stats()["verifications"]["full:equal"] == calls


@pytest.mark.fallback
def test_always_returns_the_reference_value_when_ids_differ(
    plain: Any, wrapped: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An encoder fault that the id oracle cannot see within one call is seen by the full comparison."""
    monkeypatch.setattr(
        backend, "Engine", lambda content, budget, *_: _native.Engine.with_fault(content, budget, "encoder")
    )
    tok = turntrie.wrap(turntrie.restore(wrapped), verify="always", budget=12345)
    messages = [{"role": "user", "content": "a bug \N{BUG}"}]
    for _ in range(2):
        want = plain.apply_chat_template(messages, return_dict=True)
        assert dict(tok.apply_chat_template(messages, return_dict=True)) == dict(want)
    assert tok.turntrie.stats()["fallbacks"] == {"quarantine:call": 1}
    assert tok.turntrie.stats()["quarantines"] == {"call": 1}
    (report,) = tok.turntrie.divergences()
    assert report["kind"] == "ids"


EVERY = 16
"""Every how many texts the id oracle looks at one: `EVERY` of src/sampler.rs, stated in README."""


@pytest.mark.parametrize("fault", ["chunk", "trie", "encoder"])
def test_an_id_fault_is_found_within_two_rounds_and_logged_once(
    plain: Any, wrapped: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """One look each EVERY calls, the first of them maybe on a text without the fault; then 8 threads get right ids."""
    monkeypatch.setattr(
        backend, "Engine", lambda content, budget, *_: _native.Engine.with_fault(content, budget, fault)
    )
    tok = turntrie.wrap(turntrie.restore(wrapped), budget=54321)
    messages = [{"role": "user", "content": f"{PRIVATE} \N{BUG} " + "filler " * 200}]
    with caplog.at_level(logging.WARNING, logger="turntrie"):
        for turn in range(2 * EVERY):
            messages.append({"role": "assistant" if turn % 2 == 0 else "user", "content": f"turn {turn}"})
            tok.turntrie.prompt(messages)
        deadline = time.monotonic() + 30  # the look itself takes place on a thread of its own
        while tok.turntrie.stats()["engine"]["incremental"] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not tok.turntrie.stats()["engine"]["incremental"]
        want = plain.apply_chat_template(messages, return_dict=False)
        got = _prompts_of_threads(tok, messages)
    assert [(each.kept, each.path, each.tolist() == want) for each in got] == [(0, "native", True)] * 8
    warnings = [record.getMessage() for record in caplog.records if record.name == "turntrie"]
    assert len(warnings) == 1
    assert PRIVATE not in warnings[0]
    found = tok.turntrie.divergences(contents=True)
    assert {report["kind"] for report in found} == {"ids"}
    assert all(json.loads(json.dumps(report)) == report for report in found)
    text, again = found[0]["text"], found[0]["want"]
    part = plain(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"][found[0]["first"]][0]
    assert found[0]["offset"] == part
    assert f"offset={part}" in warnings[0]
    assert plain(text, add_special_tokens=False)["input_ids"] == again != found[0]["got"]


def test_a_broken_cut_is_found_when_the_backend_is_loaded(
    plain: Any, wrapped: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        backend, "Engine", lambda content, budget, *_: _native.Engine.with_fault(content, budget, "cut")
    )
    tok = turntrie.wrap(turntrie.restore(wrapped), budget=65432)
    messages = [{"role": "user", "content": "words " * 200}]
    with caplog.at_level(logging.WARNING, logger="turntrie"):
        for _ in range(3):
            prompt = tok.turntrie.prompt(messages)
            assert (prompt.path, prompt.kept) == ("native", 0)
            assert prompt.tolist() == plain.apply_chat_template(messages, return_dict=False)
    assert not tok.turntrie.stats()["engine"]["incremental"]
    assert len([record for record in caplog.records if record.name == "turntrie"]) == 1


@pytest.mark.parametrize("value", ["sometimes", -0.1, 1.5, "nan", True, False])
def test_a_policy_that_makes_no_sense_is_an_error(wrapped: Any, value: Any) -> None:
    tok = turntrie.restore(wrapped)
    with pytest.raises(ValueError, match="verify must be"):
        turntrie.wrap(tok, verify=value)
    assert not turntrie.is_wrapped(tok)


def test_the_environment_sets_the_policy(wrapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = turntrie.restore(wrapped)
    monkeypatch.setenv("TURNTRIE_VERIFY", "1.0")
    turntrie.wrap(tok)
    tok.apply_chat_template([{"role": "user", "content": "x"}])
    assert tok.turntrie.stats()["verifications"]["full:equal"] == 1
    monkeypatch.setenv("TURNTRIE_VERIFY", "never")
    with pytest.raises(ValueError, match="TURNTRIE_VERIFY must be"):
        turntrie.wrap(turntrie.restore(tok))


ROLES = ("user", "assistant")
LAST_IS_MARKED = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '.' if loop.last else ',' }}{% endfor %}"
"""A template of which the last old message has to be rendered again at each turn."""


def test_a_text_wrongly_reused_is_found_within_two_rounds_and_logged_once(
    plain: Any, wrapped: Any, faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The fault: an iteration is reused whatever it reads besides its message. Afterwards 8 threads get right ids."""
    faulty("reuse")
    wrapped.chat_template = plain.chat_template = LAST_IS_MARKED
    for length in range(1, 8):  # other conversations, so that the text oracle knows the shapes
        wrapped.turntrie.prompt([{"role": ROLES[at % 2], "content": f"{length} {at}"} for at in range(length)])
    messages = [{"role": "user", "content": PRIVATE}]
    with caplog.at_level(logging.WARNING, logger="turntrie"):
        for turn in range(2 * EVERY + 1):
            messages.append({"role": "assistant" if turn % 2 == 0 else "user", "content": f"turn {turn}"})
            wrapped.turntrie.prompt(messages)
        deadline = time.monotonic() + 30
        while not wrapped.turntrie.stats()["reuse"]["texts_different"] and time.monotonic() < deadline:
            time.sleep(0.01)
        want = plain.apply_chat_template(messages, return_dict=False)
        got = _prompts_of_threads(wrapped, messages)
    assert [(each.path, each.reason, each.tolist() == want) for each in got] == [("native", None, True)] * 8
    warnings = [record.getMessage() for record in caplog.records if record.name == "turntrie"]
    assert len(warnings) == 1
    assert "rendered whole from now on" in warnings[0]
    assert PRIVATE not in warnings[0]
    (report,) = wrapped.turntrie.divergences(contents=True)
    assert (report["kind"], report["chat_template"]) == ("reuse", LAST_IS_MARKED)
    assert report["got"] != report["want"]
