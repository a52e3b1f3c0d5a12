"""A session, given only what is new, gives the ids of the whole conversation, and says which of them are old."""

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import toys
import turntrie
from toys import LONG, MESSAGES, TOOLS
from turntrie.attachment import Attachment
from turntrie.demo import conversation
from turntrie.history import History


def reference(plain: Any, messages: Any, **keywords: Any) -> list[int]:
    ids: list[int] = plain.apply_chat_template(messages, return_dict=False, **keywords)
    return ids


def continues(previous: list[int], prompt: Any) -> None:
    """What a session promises about `kept` and `new_ids`."""
    ids = prompt.tolist()
    assert previous[: prompt.kept] + prompt.new_ids.tolist() == ids
    assert prompt.kept == len(previous) or prompt.kept == len(ids) or previous[prompt.kept] != ids[prompt.kept]


def turns(count: int = 12, seed: int = 3) -> tuple[list[list[dict[str, Any]]], list[dict[str, Any]]]:
    """The messages that are new at each turn, and the tools."""
    messages, tools = conversation(turns=count, seed=seed)
    ends = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    return [messages[a:b] for a, b in zip([0, *ends], ends, strict=False)], tools


def test_turn_by_turn(plain: Any) -> None:
    tok = toys.wrapped()
    parts, tools = turns()
    whole: list[dict[str, Any]] = []
    previous: list[int] = []
    with turntrie.Session(tok) as session:
        for number, new in enumerate(parts):
            whole += new
            prompt = session.extend(new) if number else session.prompt(new, tools=tools, add_generation_prompt=True)
            assert (prompt.path, prompt.reason) == ("native", None)
            assert prompt.tolist() == reference(plain, whole, tools=tools, add_generation_prompt=True)
            continues(previous, prompt)
            if number:
                assert 0 < prompt.reused < len(prompt)
            previous = prompt.tolist()
    assert toys.calls(tok) == {"native": len(parts), "reference": 0}


def test_a_turn_goes_on_from_the_prompt_before(plain: Any) -> None:
    """With an empty trie, only the session's own prompt can give ids that need not be computed."""
    tok = toys.wrapped()
    parts, tools = turns(20)
    backend = Attachment.of(tok).engine(tok)
    whole: list[dict[str, Any]] = []
    length = resumed = 0
    with turntrie.Session(tok) as session:
        for number, new in enumerate(parts):
            whole += new
            prompt = session.extend(new) if number else session.prompt(new, tools=tools, add_generation_prompt=True)
            assert (prompt.path, prompt.reason) == ("native", None)
            assert prompt.tolist() == reference(plain, whole, tools=tools, add_generation_prompt=True)
            if length > 2000 and prompt.kept == length:  # not where the template drops reasoning of old turns
                assert prompt.reused > 0.8 * length
                resumed += 1
            length = len(prompt)
            backend.engine.clear()  # type: ignore[union-attr]
            assert backend.engine.stats()["nodes"] == 0  # type: ignore[union-attr]
        assert resumed > 10
        fresh = tok.turntrie.prompt(whole, tools=tools, add_generation_prompt=True)
        assert (fresh.reused, fresh.tolist()) == (0, prompt.tolist())


def test_warming_up_an_engine_in_use_costs_it_nothing() -> None:
    tok = toys.wrapped()
    tok.turntrie.prompt(LONG)
    before = tok.turntrie.stats()["engine"]
    assert before["nodes"] > 0
    tok.turntrie.warmup()
    after = tok.turntrie.stats()["engine"]
    assert {key: after[key] for key in ("nodes", "encoded_tokens", "evictions")} == {
        key: before[key] for key in ("nodes", "encoded_tokens", "evictions")
    }


def test_prompt_with_everything_and_extend_with_what_is_new_agree(plain: Any) -> None:
    one, two = turntrie.Session(toys.wrapped()), turntrie.Session(toys.wrapped())
    for end in range(1, len(LONG), 2):
        prompts = (one.prompt(LONG[:end]), two.extend(LONG[max(0, end - 2) : end]))
        assert prompts[0].tolist() == prompts[1].tolist() == reference(plain, LONG[:end])
        assert prompts[0].kept == prompts[1].kept
        assert prompts[0].new_ids.tolist() == prompts[1].new_ids.tolist()


def test_ids_as_arrays() -> None:
    prompt = turntrie.Session(toys.wrapped()).prompt(MESSAGES)
    assert prompt.ids.dtype == prompt.new_ids.dtype == np.uint32
    assert prompt.ids.shape == (len(prompt),)
    assert prompt.kept == 0
    assert prompt.ids.tolist() == prompt.new_ids.tolist() == prompt.tolist()
    assert prompt.ids is prompt.ids
    prompt.ids[:] = 0  # writable, and the caller's own
    assert prompt.new_ids.any()
    assert any(prompt.tolist())
    assert type(prompt.tolist()[0]) is int


def test_keywords_stay_until_they_change(plain: Any) -> None:
    session = turntrie.Session(toys.wrapped())
    session.prompt(MESSAGES[:1], tools=TOOLS, add_generation_prompt=True, extra="a")
    steps: list[tuple[list[Any], dict[str, Any], dict[str, Any]]] = [
        (MESSAGES[1:2], {}, {"tools": TOOLS, "add_generation_prompt": True, "extra": "a"}),
        (MESSAGES[2:], {"tools": None}, {"add_generation_prompt": True, "extra": "a"}),
        ([], {"add_generation_prompt": False}, {"extra": "a"}),
        ([], {"chat_template": "{{ extra }}{{ messages }}", "extra": "b"}, None),
        ([], {"chat_template": None}, {"extra": "b"}),
    ]
    given = 1
    for new, changed, keywords in steps:
        given += len(new)
        prompt = session.extend(new, **changed)
        expected = {"extra": "b", "chat_template": "{{ extra }}{{ messages }}"} if keywords is None else keywords
        assert prompt.tolist() == reference(plain, MESSAGES[:given], **expected)
        assert prompt.path == "native"


def test_a_rewritten_history_is_a_partial_hit(plain: Any) -> None:
    session = turntrie.Session(toys.wrapped())
    first = session.prompt(LONG)
    edited = [*LONG[:5], {"role": "assistant", "content": "something else"}, *LONG[6:]]
    prompt = session.prompt(edited)
    assert prompt.tolist() == reference(plain, edited)
    assert 0 < prompt.kept < len(prompt)
    continues(first.tolist(), prompt)
    shorter = session.prompt(LONG[:2])
    assert shorter.tolist() == reference(plain, LONG[:2])
    assert session.extend(LONG[2:3]).tolist() == reference(plain, LONG[:3])


def test_changing_messages_after_passing_them_changes_nothing(plain: Any) -> None:
    session = turntrie.Session(toys.wrapped())
    mine = copy.deepcopy(MESSAGES)
    new = [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1]}}}]}]
    whole = [*copy.deepcopy(mine), *copy.deepcopy(new)]
    session.prompt(mine)
    session.extend(new)
    mine[0]["content"] = "changed"
    mine.clear()
    new[0]["tool_calls"][0]["function"]["arguments"]["a"].append(2)  # type: ignore[index]
    whole.append({"role": "user", "content": "next"})
    prompt = session.extend(whole[-1:])
    assert (prompt.path, prompt.tolist()) == ("native", reference(plain, whole))


@pytest.mark.fallback
def test_turns_that_the_reference_serves(plain: Any) -> None:
    """A message of a kind that is not native: the whole conversation goes to transformers, with its first contents."""

    class Text(str):
        __slots__ = ()

    tok = toys.wrapped()
    session = turntrie.Session(tok)
    odd = {"role": "assistant", "content": Text("odd"), "note": [1, 2]}
    whole = [*copy.deepcopy(MESSAGES), copy.deepcopy(odd), {"role": "user", "content": "next"}]
    mine = copy.deepcopy(MESSAGES)
    previous = session.prompt(mine).tolist()
    mine[0]["content"] = "changed"
    prompt = session.extend([odd])
    assert (prompt.path, prompt.reason, prompt.reused) == ("reference", "value:object", 0)
    assert prompt.tolist() == reference(plain, whole[:-1])
    continues(previous, prompt)
    previous = prompt.tolist()
    odd["content"] = "changed"
    prompt = session.extend(whole[-1:])
    assert (prompt.path, prompt.reason) == ("reference", "value:object")
    assert prompt.tolist() == reference(plain, whole)
    continues(previous, prompt)
    assert toys.calls(tok) == {"native": 1, "reference": 2}
    again = session.prompt(MESSAGES)
    assert (again.path, again.tolist()) == ("native", reference(plain, MESSAGES))
    continues(prompt.tolist(), again)


@pytest.mark.fallback
def test_a_call_form_that_is_not_native_is_passing(plain: Any) -> None:
    session = turntrie.Session(toys.wrapped())
    session.prompt(LONG[:3])
    prompt = session.extend(LONG[3:4], truncation=True, max_length=9)
    assert (prompt.path, prompt.reason) == ("reference", "call:truncation")
    assert prompt.tolist() == reference(plain, LONG[:4], truncation=True, max_length=9)
    prompt = session.extend(LONG[4:5], truncation=False, max_length=None)
    assert (prompt.path, prompt.tolist()) == ("native", reference(plain, LONG[:5]))


@pytest.mark.fallback
def test_a_call_that_raises_leaves_the_session_as_it_was(plain: Any) -> None:
    session = turntrie.Session(toys.wrapped())
    previous = session.prompt(MESSAGES).tolist()
    for bad in ([{"role": "critic", "content": ""}], [{"role": "system", "content": "late"}], ["no message"]):
        wanted = toys.outcome(lambda bad=bad: plain.apply_chat_template([*MESSAGES, *bad]))
        assert wanted[0] == "raised"
        assert toys.outcome(lambda bad=bad: session.extend(bad)) == wanted
    with pytest.raises(TypeError, match="return_tensors"):
        session.extend([], return_tensors="np")
    prompt = session.extend(LONG[1:3])
    assert (prompt.path, prompt.tolist()) == ("native", reference(plain, [*MESSAGES, *LONG[1:3]]))
    continues(previous, prompt)


@pytest.mark.fallback
def test_a_session_starts_empty(plain: Any) -> None:
    session = turntrie.Session(toys.wrapped())
    assert toys.outcome(lambda: session.extend([])) == toys.outcome(lambda: plain.apply_chat_template([]))
    assert session.extend(MESSAGES[:1]).tolist() == reference(plain, MESSAGES[:1])


def test_sessions_share_what_they_share(plain: Any) -> None:
    tok = toys.wrapped()
    first, second = turntrie.Session(tok), turntrie.Session(tok)
    apart, alike = turntrie.Session(tok, namespace="x"), turntrie.Session(toys.wrapped(), namespace="x")
    first.prompt(LONG)
    sibling = second.prompt([*LONG[:6], {"role": "user", "content": "a sibling's own"}])
    assert sibling.reused > 0
    assert sibling.kept == 0
    assert apart.prompt(LONG).reused == 0
    assert alike.prompt(LONG).reused > 0
    assert tok.turntrie.prompt(LONG).kept > 0
    assert first.extend(MESSAGES[:1]).tolist() == reference(plain, [*LONG, MESSAGES[0]])


def test_a_changed_tokenizer_is_seen(plain: Any) -> None:
    tok = toys.wrapped()
    session = turntrie.Session(tok)
    session.prompt(LONG[:3])
    for each in (tok, plain):
        each.add_tokens(["checkpoint"])
    prompt = session.extend(LONG[3:4])
    assert (prompt.path, prompt.tolist()) == ("native", reference(plain, LONG[:4]))


def test_closing() -> None:
    session = turntrie.Session(toys.wrapped())
    with session as opened:
        assert opened is session
        session.prompt(MESSAGES)
    session.close()
    for call in (lambda: session.prompt(MESSAGES), lambda: session.extend([])):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_what_a_session_needs() -> None:
    with pytest.raises(TypeError, match="wrap"):
        turntrie.Session(toys.fresh())
    session = turntrie.Session(toys.wrapped())
    for name in ("tokenize", "padding", "return_tensors", "return_dict", "return_assistant_tokens_mask"):
        with pytest.raises(TypeError, match=name):
            session.prompt(MESSAGES, **{name: True})
    for call in (session.prompt, session.extend):
        with pytest.raises(TypeError, match="in a list, got tuple"):
            call(tuple(MESSAGES))  # type: ignore[operator]
    with pytest.raises(TypeError, match="not of a batch"):
        session.prompt([MESSAGES])  # type: ignore[list-item]


def test_prompts_of_the_handle(plain: Any) -> None:
    tok = toys.wrapped()
    for messages in (LONG[:3], LONG[:5], LONG):
        prompt = tok.turntrie.prompt(messages, tools=TOOLS, add_generation_prompt=True, unheard_of=[1])
        assert prompt.tolist() == reference(plain, messages, tools=TOOLS, add_generation_prompt=True)
        assert (prompt.path, prompt.reason, prompt.kept) == ("native", None, prompt.reused)
        assert prompt.ids[prompt.kept :].tolist() == prompt.new_ids.tolist()
    assert prompt.kept > 0
    with pytest.raises(TypeError, match="tokenize"):
        tok.turntrie.prompt(MESSAGES, tokenize=False)
    with pytest.raises(TypeError, match="batch"):
        tok.turntrie.prompt([MESSAGES])


@pytest.mark.fallback
def test_a_prompt_of_the_reference(plain: Any) -> None:
    tok = toys.wrapped()
    native = tok.turntrie.prompt(MESSAGES)
    prompt = tok.turntrie.prompt(SimpleNamespace(messages=MESSAGES), continue_final_message=False)
    assert (prompt.path, prompt.reason, prompt.kept, prompt.reused) == ("reference", "call:conversation", 0, 0)
    assert prompt.tolist() == reference(plain, MESSAGES)
    assert prompt.ids.dtype == np.uint32
    assert prompt.common_prefix(native) == native.common_prefix(prompt) == len(prompt)
    shorter = tok.turntrie.prompt(MESSAGES[:1])
    assert 0 < shorter.common_prefix(prompt) == prompt.common_prefix(shorter) <= len(shorter)
    assert Attachment.of(tok).counters.snapshot()["fallbacks"] == {"call:conversation": 1}


@pytest.mark.fallback
def test_prompts_travel() -> None:
    tok = toys.wrapped()
    session = turntrie.Session(tok)
    session.prompt(LONG[:4])
    for prompt in (session.extend(LONG[4:6]), session.extend([], truncation=True, max_length=50)):
        other = pickle.loads(pickle.dumps(prompt))
        for name in ("kept", "reused", "path", "reason"):
            assert getattr(other, name) == getattr(prompt, name)
        assert other.tolist() == prompt.tolist()
        assert other.new_ids.tolist() == prompt.new_ids.tolist()
        assert other.common_prefix(prompt) == len(prompt)


def test_a_history_copies_what_can_be_copied() -> None:
    class Fixed:
        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("no copies")

    fixed, inner = Fixed(), {"a": [1]}
    history = History()
    history.append([{"content": inner}], plain=True)
    history.append([{"content": inner}, {"content": fixed}], plain=False)
    inner["a"].append(2)
    for _ in range(2):
        messages = history.messages()
        assert [message["content"] for message in messages] == [{"a": [1]}, {"a": [1]}, fixed]
        messages[0]["content"]["a"].append(3)
        messages[1]["content"]["a"].append(3)
    assert len(history) == 3
