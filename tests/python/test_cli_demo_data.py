"""The demo's data: made from seeds, the same everywhere, and what the README says of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from turntrie.cli.recordings import Recording
from turntrie.demo import TOKENIZER, conversation, make
from turntrie.demo.writer import Writer


def test_the_tokenizer_is_what_its_script_makes() -> None:
    shipped = json.loads((TOKENIZER / "tokenizer.json").read_text(encoding="utf-8"))
    assert json.loads(make.train()) == shipped
    assert len(shipped["model"]["vocab"]) + len(shipped["added_tokens"]) == make.VOCABULARY


def test_the_script_writes_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "train", lambda: "{}")
    monkeypatch.setattr("sys.argv", ["make", str(tmp_path / "new")])
    make.main()
    config = (tmp_path / "new" / "tokenizer_config.json").read_text(encoding="utf-8")
    assert config == (TOKENIZER / "tokenizer_config.json").read_text(encoding="utf-8")


def test_the_data_is_small() -> None:
    assert sum(path.stat().st_size for path in TOKENIZER.iterdir()) < 500_000


def test_a_seed_is_a_conversation() -> None:
    assert conversation(turns=20, seed=3) == conversation(turns=20, seed=3)
    assert conversation(turns=20, seed=3) != conversation(turns=20, seed=4)


def test_more_turns_extend_a_conversation() -> None:
    short, long = conversation(turns=20, seed=5), conversation(turns=40, seed=5)
    assert long.messages[: len(short.messages)] == short.messages
    assert sum(message["role"] == "assistant" for message in long.messages) == 40


def test_a_conversation_has_what_makes_it_hard() -> None:
    messages, tools = conversation(turns=60, seed=1)
    answers = [message for message in messages if message["role"] == "assistant"]
    called = {call["function"]["name"] for answer in answers for call in answer.get("tool_calls", ())}
    text = "".join(message["content"] for message in messages)
    assert called == {tool["function"]["name"] for tool in tools}
    assert any(len(answer.get("tool_calls", ())) > 1 for answer in answers), "no parallel calls"
    assert sum("reasoning_content" in answer for answer in answers) > 20
    assert sum(message["role"] == "user" for message in messages) > 5
    assert any("\u4e00" <= character <= "\u9fff" for character in text)
    assert any(character > "\U0001f000" for character in text)
    for answer in answers:
        for call in answer.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_every_call_is_answered_before_the_next_turn() -> None:
    messages, _ = conversation(turns=60, seed=2)
    for number, message in enumerate(messages[:-1]):
        for offset, call in enumerate(message.get("tool_calls", ()), start=1):
            assert messages[number + offset]["tool_call_id"] == call["id"]


def test_two_hundred_turns_are_a_hundred_thousand_tokens(plain: Any) -> None:
    recording = Recording("", *conversation(turns=200, seed=1)).spelled("dict")
    ids = plain.apply_chat_template(recording.messages, tools=recording.tools, return_dict=False)
    assert len(ids) > 100_000
    assert len(recording.asks()) == 200


def test_patterns_are_filled_from_left_to_right() -> None:
    text = Writer(1).fill("<1-9> <x4> <name> Vec<void> <type>")
    number, digits, name, literal, kind = text.split(" ")
    assert 1 <= int(number) <= 9
    assert len(digits) == 4
    assert int(digits, 16) >= 0
    assert name.isidentifier()
    assert literal == "Vec<void>"
    assert kind[0].isupper()
    assert Writer(1).fill("<1-9> <x4> <name> Vec<void> <type>") == text
