"""Where two prompts part: counted in ids, placed in the text, and silent about contents."""

import pickle
from typing import Any

import pytest

import toys
import turntrie
from toys import LONG, MESSAGES


def reference(before: str, after: str) -> int:
    """The first character that differs."""
    pairs = zip(before, after, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


def edited(messages: list[dict[str, Any]], index: int, content: str) -> list[dict[str, Any]]:
    return [{**m, "content": content} if i == index else m for i, m in enumerate(messages)]


def rendered(plain: Any, messages: Any) -> str:
    text: str = plain.apply_chat_template(messages, tokenize=False)
    return text


@pytest.mark.parametrize("content", ["sécret", "", "日本語 secret 🙂", "a secret that goes on for a while " * 20])
def test_an_edit(plain: Any, content: str) -> None:
    tok = toys.wrapped()
    for index in range(len(LONG)):
        changed = edited(LONG, index, content)
        before, now = tok.turntrie.prompt(LONG), tok.turntrie.prompt(changed)
        found = turntrie.explain(before, now)
        texts = rendered(plain, LONG), rendered(plain, changed)
        place = reference(*texts)
        assert found.character == place
        assert found.byte == len(texts[1][:place].encode())
        ids = before.tolist(), now.tolist()
        assert ids[0][: found.kept] == ids[1][: found.kept]
        assert (found.lost, found.new) == (len(ids[0]) - found.kept, len(ids[1]) - found.kept)
        # The text before an edit may be that of another message's end; what differs is the edited one's.
        assert found.message in {index, None}
        assert found.message == index or content == ""
        assert found.line is None
        if not found.extends:
            assert ids[0][found.kept :][:1] != ids[1][found.kept :][:1]
            assert str(found).startswith(f"parted at byte {found.byte}, character {place} in message {index}: ")
        assert "secret" not in f"{found}{found!r}"


def test_contents_are_shown_on_request() -> None:
    tok = toys.wrapped()
    prompts = [tok.turntrie.prompt(edited(LONG, 0, f"a {word} word")) for word in ("good", "wrong")]
    found = turntrie.explain(*prompts, contents=True)
    assert "; was 'good word" in str(found)
    assert ", is 'wrong word" in str(found)
    assert "word" not in repr(found)
    assert len(str(found).splitlines()) == 1


def test_a_conversation_that_goes_on() -> None:
    session = turntrie.Session(toys.wrapped())
    before, now = session.prompt(LONG[:3]), session.extend(LONG[3:])
    found = turntrie.explain(before, now)
    assert found.extends
    assert not found.identical
    assert str(found) == f"extended: {len(before)} tokens kept, 0 lost, {len(now) - len(before)} new"
    back = turntrie.explain(now, before)
    assert (back.kept, back.lost, back.new) == (len(before), len(now) - len(before), 0)
    assert not back.extends


def test_the_same_prompt() -> None:
    tok = toys.wrapped()
    found = turntrie.explain(tok.turntrie.prompt(MESSAGES), tok.turntrie.prompt(MESSAGES))
    assert found.identical
    assert found.extends
    assert str(found) == f"identical: {found.kept} tokens"


@pytest.mark.fallback
def test_without_a_text_ids_are_compared() -> None:
    tok = toys.wrapped()
    native, other = tok.turntrie.prompt(LONG), tok.turntrie.prompt(tuple(edited(LONG, 2, "other")))
    assert (other.path, other.reason, other.text) == ("reference", "call:conversation", None)
    for before in (native, pickle.loads(pickle.dumps(native))):
        found = turntrie.explain(before, other)
        assert (found.character, found.byte) == (None, None)
        assert 0 < found.kept < len(native)
        assert str(found).startswith(f"parted: {found.kept} tokens kept, ")
    assert pickle.loads(pickle.dumps(native)).text is None


def test_known_places_are_said() -> None:
    found = turntrie.Explanation(kept=7, lost=2, new=3, character=30, byte=31, message=4, line=12)
    assert str(found) == (
        "parted at byte 31, character 30 in message 4 by line 12 of the template: 7 tokens kept, 2 lost, 3 new"
    )
