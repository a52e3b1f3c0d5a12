"""The command line as a user and a script meet it: output, exit codes, one line for a mistake, never a traceback."""

import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turntrie import cli
from turntrie.cli import models, report
from turntrie.cli.errors import UsageError
from turntrie.cli.recordings import Recording, read
from turntrie.cli.replay import Turn
from turntrie.demo import conversation

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process; its exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command as its own process, without a terminal."""
    command = [sys.executable, "-m", "turntrie", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def recorded(path: Path, *conversations: dict[str, Any]) -> Path:
    """Writes recorded conversations."""
    text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in conversations)
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    return path


USER = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": "yes"}


# --- the demo ---


def test_demo_prints_a_table_and_a_verdict(run: Run) -> None:
    code, out, err = run("demo", "--turns", 6)
    assert (code, err) == (0, "")
    header = next(line for line in out.splitlines() if line.lstrip().startswith("turn "))
    assert header.split() == [
        "turn",
        "tokens",
        "kept",
        "new",
        "HF",
        "ms",
        "turntrie",
        "ms",
        "ratio",
        "identical",
        "path",
    ]
    rows = [line.split() for line in out.splitlines() if line.split()[-1:] == ["native"]]
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        tokens, kept, new = (int(cell.replace(",", "")) for cell in row[1:4])
        assert kept + new == tokens
        assert row[7] == "yes"
    assert "identical: 6 of 6; native: 6 of 6" in out
    assert "whole episode" in out


def test_demo_as_a_document(run: Run) -> None:
    code, out, err = run("demo", "--turns", 4, "--json")
    document = json.loads(out)
    assert (code, err, document["ok"]) == (0, "", True)
    (episode,) = document["conversations"]
    assert [turn["number"] for turn in episode["turns"]] == [1, 2, 3, 4]
    assert all(turn["identical"] and turn["path"] == "native" for turn in episode["turns"])
    assert episode["reference_seconds"] == pytest.approx(sum(turn["reference_seconds"] for turn in episode["turns"]))


def test_demo_of_recorded_conversations(run: Run, tmp_path: Path) -> None:
    messages, tools = conversation(turns=5, seed=9)
    file = recorded(
        tmp_path / "two.jsonl.xz",
        {"id": "first", "messages": messages, "tools": tools},
        {"id": "zweites \u4f60", "messages": [USER, ANSWER, USER], "tools": None},
    )
    code, out, err = run("demo", "--conversations", file, "--turns", 3)
    assert (code, err) == (0, "")
    assert "conversation first" in out
    assert "conversation zweites" in out
    assert "all 2 conversations: 5 of 5 turns identical and native" in out


def test_a_conversation_that_the_template_refuses_is_named_and_skipped(run: Run, tmp_path: Path) -> None:
    refused = {"id": "bad", "messages": [USER, {"role": "wizard", "content": "x"}]}
    good = {"id": "good", "messages": [USER]}
    code, out, _ = run("demo", "--conversations", recorded(tmp_path / "c.jsonl", refused, good))
    assert code == 0
    assert "the chat template refuses this conversation: Unknown role: wizard" in out
    code, _, err = run("demo", "--conversations", recorded(tmp_path / "c.jsonl", refused))
    assert code == 2
    assert "Unknown role: wizard" in err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"identical": False}, "ids differ"), ({"path": "reference", "reason": "template:x"}, "not served natively")],
)
def test_demo_fails_when_one_turn_is_not_right(
    run: Run, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], complaint: str
) -> None:
    good = Turn(1, 2, 30, 10, 20, 0.02, 0.001, identical=True, path="native", reason=None)
    bad = good._replace(number=2, **change)
    monkeypatch.setattr("turntrie.cli.demo.replay", lambda *_: iter([good, bad]))
    code, out, _ = run("demo", "--turns", 2)
    assert code == 1
    assert f"turn 2: {complaint}" in out
    code, out, _ = run("demo", "--turns", 2, "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)


def test_demo_replays_in_its_own_process_without_noise() -> None:
    done = process("demo", "--turns", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout


def test_a_reader_that_leaves_is_no_fault() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "turntrie", "demo", "--turns", "3", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        complaint = started.stderr.read()
        assert (started.wait(timeout=120), complaint) == (141, b"")


def test_names_in_any_script_on_an_ascii_terminal(tmp_path: Path) -> None:
    file = recorded(tmp_path / "c.jsonl", {"id": "\u4f60\u597d", "messages": [USER]})
    done = process(
        "demo", "--conversations", str(file), env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u4f60" in done.stdout


# --- mistakes ---


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "COMMAND"),
        (["dance"], "invalid choice"),
        (["demo", "--turns", "0"], "expected a number from 1 up, not '0'"),
        (["demo", "--turns", "many"], "expected a number from 1 up, not 'many'"),
        (["demo", "--unknown"], "unrecognized arguments: --unknown"),
        (["demo", "--model", "no/such/place"], "no/such/place: no such directory"),
        (["demo", "--conversations", "no/such/file.jsonl"], "no/such/file.jsonl: No such file or directory"),
    ],
)
def test_misuse_is_one_line(run: Run, arguments: list[str], complaint: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("turntrie: ")
    assert err.count("\n") == 1
    assert complaint in err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "no conversation in it has a turn to replay"),
        (b"\n\n", "no conversation in it has a turn to replay"),
        (b'{"messages": []}\n', "no conversation in it has a turn to replay"),
        (b'{"messages": [{"role": "user", "content": "a"}]}\n{"mess', ":2: not valid JSON"),
        (b"[1, 2]\n", ":1: expected an object with a list 'messages'"),
        (b'{"messages": {"role": "user"}}\n', ":1: expected an object with a list 'messages'"),
        (b'{"messages": [{"content": "a"}]}\n', ":1: message 0 is not an object with a text 'role'"),
        (b'{"messages": [{"role": "assistant", "tool_calls": {}}]}\n', ":1: 'tool_calls' of message 0"),
        (b'{"messages": [{"role": "assistant", "tool_calls": [{"function": 1}]}]}\n', ":1: 'tool_calls' of message 0"),
        (b'{"messages": [{"role": "user", "content": "a"}], "tools": "x"}\n', ":1: 'tools' is neither"),
        (b"\xff\xfe\n", "not UTF-8 text after line 0"),
        (b"[" * 100_000 + b"\n", ":1: not valid JSON"),
    ],
)
def test_a_bad_file_is_named_with_its_line(run: Run, tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "c.jsonl"
    file.write_bytes(content)
    code, out, err = run("demo", "--conversations", file)
    assert (code, out) == (2, "")
    assert err.startswith(f"turntrie: {file}")
    assert err.count("\n") == 1
    assert complaint in err


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda _: b"plain text\n"])
def test_a_damaged_xz_file(run: Run, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    file = recorded(tmp_path / "c.jsonl.xz", {"messages": [USER]})
    file.write_bytes(damage(file.read_bytes()))
    code, _, err = run("demo", "--conversations", file)
    assert code == 2
    assert "not a complete xz file" in err


def test_a_directory_without_a_tokenizer(run: Run, tmp_path: Path) -> None:
    code, out, err = run("demo", "--model", tmp_path)
    assert (code, out) == (2, "")
    assert "transformers finds no tokenizer in it" in err
    assert err.count("\n") == 1


def test_a_tokenizer_without_a_chat_template(run: Run, tmp_path: Path, plain: Any) -> None:
    plain.chat_template = None
    plain.save_pretrained(tmp_path)
    code, _, err = run("demo", "--model", tmp_path)
    assert code == 2
    assert "has no chat template" in err


def test_without_transformers(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    code, out, err = run("demo")
    assert (code, out) == (2, "")
    assert "pip install 'turntrie[transformers]'" in err
    assert err.count("\n") == 1


def test_a_kind_that_cannot_be_wrapped(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def refuse(_: object) -> None:
        raise TypeError("a slow tokenizer cannot be wrapped")

    monkeypatch.setattr("turntrie.wrap", refuse)
    code, _, err = run("demo")
    assert code == 2
    assert "a slow tokenizer cannot be wrapped" in err


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "load", interrupt)
    assert run("demo") == (130, "", "")


def test_version() -> None:
    done = process("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("turntrie ")


def test_help_needs_no_transformers() -> None:
    code = "import sys; sys.modules['transformers'] = None; from turntrie.cli import main; main(['demo', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert "--conversations" in done.stdout


# --- recordings ---


def test_both_spellings_of_arguments() -> None:
    calls = [{"function": {"name": "f", "arguments": text}} for text in ('{"a": "\u00fc"}', "not json", "[1]")]
    calls.append({"function": {"name": "f", "arguments": {"b": 1}}})
    recording = Recording("", [{"role": "assistant", "tool_calls": calls}], None)

    def spelled(arguments: Any) -> list[Any]:
        return [c["function"]["arguments"] for c in recording.spelled(arguments).messages[0]["tool_calls"]]

    assert spelled("dict") == [{"a": "\u00fc"}, "not json", "[1]", {"b": 1}]
    assert spelled("str") == ['{"a": "\u00fc"}', "not json", "[1]", '{"b": 1}']
    assert recording.messages[0]["tool_calls"][0]["function"]["arguments"] == '{"a": "\u00fc"}', "the original changed"


def test_a_turn_is_where_the_model_is_asked() -> None:
    assert Recording("", [USER, ANSWER, USER], None).asks() == [1, 3]
    assert Recording("", [USER, ANSWER, USER, ANSWER], None).asks() == [1, 3]
    assert Recording("", [ANSWER, USER], None).asks() == [2]
    assert Recording("", [], None).asks() == []
    assert Recording("", [USER, ANSWER, USER, ANSWER, USER], None).first(1).asks() == [1]


def test_reading_what_was_written(tmp_path: Path) -> None:
    for name in ("c.jsonl", "c.jsonl.xz"):
        file = recorded(tmp_path / name, {"id": "a", "messages": [USER], "tools": []}, {"messages": [ANSWER]})
        assert list(read(file)) == [Recording("a", [USER], []), Recording("line 2", [ANSWER], None)]


def test_reading_is_lazy_about_later_faults(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text(json.dumps({"messages": [USER]}) + "\nnonsense\n", encoding="utf-8")
    found = read(file)
    assert next(found).messages == [USER]
    with pytest.raises(UsageError, match=":2: not valid JSON"):
        next(found)


# --- the report ---


def test_a_report_of_nothing_is_empty() -> None:
    assert (report.table([]), report.summary([])) == ("", "")


def test_progress_only_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from turntrie.cli.progress import progress  # noqa: PLC0415

    assert list(progress([1, 2], 2, "label")) == [1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress([1, 2], 2, "label")) == [1, 2]
    err = capsys.readouterr().err
    assert "2/2 label" in err
    assert err.endswith("\r\x1b[K")
