"""`turntrie check` as a person about to adopt the package meets it: verdicts, exit codes, and nothing private."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers

from turntrie import _native, cli, path
from turntrie.check.scenarios import Scenario, scenarios
from turntrie.demo import TOKENIZER, conversation
from turntrie.reason import Reason

# Templates refuse some scenarios, which the reference has to say itself.
pytestmark = pytest.mark.fallback

Run = Callable[..., tuple[int, str, str]]

USER = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": "yes"}
CUTS = "start of raw added tokens; inside plain text between characters that every split parts"
SECRET = "correct-horse-battery"  # noqa: S105  # a marker to look for
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process; its exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[Scenario]:
    """Makes the matrix small: what the demo's template takes, and one scenario that it refuses."""
    chosen = [s for s in scenarios() if s.name.startswith(("system/one/", "none/parts/tools0/open", "none/call-dict"))]
    assert len(chosen) == 13

    def matrix(*, thorough: bool = False) -> Iterator[Scenario]:
        del thorough
        return iter(chosen)

    monkeypatch.setattr("turntrie.cli.check.scenarios", matrix)
    return chosen


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a fault into native rendering: an empty line too many before every answer."""
    right = path.compiled

    def compiled(source: str) -> _native.Template | None:
        assert right(source) is not None
        return _native.Template(source.replace("<|turn|>assistant", "<|turn|>assistant\n"))

    monkeypatch.setattr("turntrie.path.compiled", compiled)


def recorded(file: Path, *conversations: dict[str, Any]) -> Path:
    """Writes recorded conversations."""
    file.write_text("".join(json.dumps(value) + "\n" for value in conversations), encoding="utf-8")
    return file


def rows(out: str) -> dict[str, list[str]]:
    """The rows of all tables: cells by the name in the first column."""
    found = {}
    for line in filter(None, out.splitlines()):
        name, *cells = (cell for cell in line.strip().split("  ") if cell)
        found[name] = [cell.strip() for cell in cells]
    return found


# --- what it finds ---


def test_the_whole_matrix_on_the_demo_model(run: Run) -> None:
    code, out, err = run("check", TOKENIZER, "--json")
    found = json.loads(out)
    assert (code, err, found["ok"], found["differences"]) == (0, "", True, [])
    matrix = found["scenarios"]
    expected = list(scenarios())
    assert matrix["total"] == len(expected)
    assert matrix["native"] > 500
    assert (matrix["transformers"], matrix["different"], matrix["reasons"]) == (0, 0, {})
    assert matrix["native"] + matrix["refused"] == matrix["total"]
    assert matrix["refused"] < matrix["total"] / 3
    assert matrix["ratio"] == pytest.approx(matrix["reference_seconds"] / matrix["turntrie_seconds"])
    for axis in ("system message", "conversation", "tools", "generation prompt", "switches"):
        counted = matrix["axes"][axis]
        assert sum(tally["total"] for tally in counted.values()) == matrix["total"]
        assert sum(tally["native"] for tally in counted.values()) == matrix["native"]
        assert set(counted) == {scenario.axes[axis] for scenario in expected}
    assert [(template["native"], template["line"]) for template in found["templates"]] == [(True, None)]
    assert found["engine"]["policy"]["cuts"] == CUTS
    assert found["versions"]["transformers"] == transformers.__version__
    assert found["turns"]["total"] == 0


def test_the_matrix_covers_what_it_says() -> None:
    found = list(scenarios())
    assert len({scenario.name for scenario in found}) == len(found)
    axes = {axis: {scenario.axes[axis] for scenario in found} for axis in found[0].axes}
    assert axes["system message"] == {"none", "system", "developer", "system-empty", "system-parts"}
    assert axes["tools"] == {"0", "1", "3"}
    assert axes["generation prompt"] == {"yes", "no"}
    assert "enable_thinking=False" in axes["switches"]
    assert axes["conversation"] >= {
        "turns",
        "reasoning fields",
        "content None or missing",
        "content in parts",
        "calls, arguments dict",
        "calls, arguments str",
        "parallel calls, results in one message",
        "parallel calls, results in several messages",
        "arguments None, missing, empty",
    }
    for scenario in found:
        assert scenario.axes["tools"] == str(len(scenario.tools or ()))
        assert (scenario.axes["generation prompt"] == "yes") is scenario.kwargs["add_generation_prompt"]
        system = scenario.messages[0]["role"] in {"system", "developer"}
        assert (scenario.axes["system message"] != "none") is system


def test_tables(run: Run, few: list[Scenario], tmp_path: Path) -> None:
    messages, tools = conversation(turns=6, seed=3)
    file = recorded(
        tmp_path / "mine.jsonl",
        {"id": "long", "messages": messages, "tools": tools},
        {"id": "refused", "messages": [USER, {"role": "wizard", "content": "x"}]},
        {"id": "never", "messages": [USER]},
    )
    code, out, err = run("check", TOKENIZER, "--conversations", file, "--limit", 2, "--turns", 4)
    assert (code, err) == (0, "")
    found = rows(out)
    assert found["scenarios"] == ["calls", "native", "by HF", "both refuse", "different"]
    assert found["template"][0].endswith(": native")
    assert found["cuts"] == [CUTS]
    assert found["content in parts"] == ["1", ".", ".", "1", "."]
    assert found["yes"][:2] == ["6", "6"]
    assert found["recorded conversations"] == [
        *("turns", "native", "by HF", "both refuse", "different", "tokens", "HF:turntrie"),
    ]
    turns = found["mine.jsonl (2)"]
    assert turns[:5] == ["5", "4", ".", "1", "."]
    assert turns[6].endswith("x")
    assert "served by transformers because" not in out
    assert f"0 of {len(few) + 5} calls differ from transformers" in out
    assert "100.0% of the 16 calls that were served equally were native" in out


def test_recorded_conversations_as_a_document(run: Run, few: list[Scenario], tmp_path: Path) -> None:
    del few
    messages, tools = conversation(turns=5, seed=4)
    first = recorded(tmp_path / "a.jsonl", {"id": "one", "messages": messages, "tools": tools})
    second = recorded(tmp_path / "b.jsonl", {"messages": [USER, ANSWER, USER]}, {"id": "two", "messages": [USER]})
    code, out, err = run("check", TOKENIZER, "--json", "--conversations", first, second)
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert [[c["id"] for c in file["conversations"]] for file in found["files"]] == [["one"], ["line 1", "two"]]
    assert [file["native"] for file in found["files"]] == [5, 3]
    assert found["files"][0]["conversations"][0]["arguments"] == "dict"
    assert (found["turns"]["native"], found["turns"]["total"]) == (8, 8)
    assert found["turns"]["tokens"] == sum(file["tokens"] for file in found["files"]) > 500


def test_a_template_that_wants_arguments_as_text(run: Run, few: list[Scenario], tmp_path: Path) -> None:
    del few
    template = tmp_path / "t.jinja"
    template.write_text(
        "{% for m in messages %}{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ '' ~ c.function.arguments.strip() }}{% endfor %}{% endfor %}",
        encoding="utf-8",
    )
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    messages = [USER, {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": "1"}]
    # As a whole it renders in no spelling; its first turns do in one.
    refused = [*messages, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]}]
    file = recorded(tmp_path / "c.jsonl", {"messages": messages}, {"messages": [*refused, USER]})
    code, out, _ = run("check", TOKENIZER, "--template", template, "--conversations", file, "--json")
    found = json.loads(out)
    assert code == 0
    assert [c["arguments"] for c in found["files"][0]["conversations"]] == ["str", "str"]
    assert found["files"][0]["conversations"][0]["native"] == 2
    assert found["files"][0]["conversations"][1]["refused"] == 1


def test_a_template_that_is_not_native(run: Run, few: list[Scenario], tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(PLAIN + "\n{% macro m() %}{% endmacro %}{% macro m() %}{% endmacro %}", encoding="utf-8")
    code, out, err = run("check", TOKENIZER, "--template", template, "--conversations", _one(tmp_path))
    assert (code, err) == (0, "")
    found = rows(out)
    assert "by transformers: template:" in found["template"][0]
    assert "macro:redefined" in found["template"][0]
    assert found["template"][0].endswith(", line 3")
    reasons = {name: cells for name, cells in found.items() if name.startswith("template:")}
    assert list(reasons.values()) == [[str(len(few)), "1"]]
    assert found["all"][:2] == ["1", "."]
    assert "0.0% of the 14 calls that were served equally were native" in out


def test_a_backend_that_cannot_be_loaded(
    run: Run, few: list[Scenario], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del few
    monkeypatch.setattr("turntrie.backend.load", lambda *_: Reason("tokenizer:unloadable"))
    code, out, _ = run("check", TOKENIZER, "--conversations", _one(tmp_path))
    assert code == 0
    found = rows(out)
    assert found["engine"] == ["none, transformers makes the ids: tokenizer:unloadable"]
    assert found["tokenizer:unloadable"] == ["12", "1"]


@pytest.mark.usefixtures("few")
def test_thorough_compares_every_form_of_result(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from turntrie.check.comparison import Pair  # noqa: PLC0415

    forms: list[tuple[str, ...]] = []
    compare = Pair.compare

    def noting(self: Pair, place: str, call: dict[str, Any], asked: tuple[str, ...]) -> Any:
        forms.append(asked)
        return compare(self, place, call, asked)

    monkeypatch.setattr(Pair, "compare", noting)
    assert run("check", TOKENIZER)[0] == 0
    assert set(forms) == {("default", "text")}
    forms.clear()
    assert run("check", TOKENIZER, "--thorough")[0] == 0
    assert set(forms) == {("default", "ids", "dict", "text")}


def test_progress_is_for_terminals(
    run: Run, few: list[Scenario], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, out, err = run("check", TOKENIZER, "--conversations", _one(tmp_path))
    assert code == 0
    assert f"{len(few)}/{len(few)} scenarios" in err
    assert "1/1 one.jsonl" in err
    assert "\r" not in out


def _one(folder: Path) -> Path:
    return recorded(folder / "one.jsonl", {"id": "one", "messages": [USER]})


# --- a difference ---


@pytest.mark.usefixtures("few", "wrong")
def test_a_difference_is_found(run: Run, tmp_path: Path) -> None:
    messages = [USER, ANSWER, USER]
    file = recorded(tmp_path / "c.jsonl", {"id": "talk", "messages": messages})
    reproducer = tmp_path / "r.json"
    code, out, err = run("check", TOKENIZER, "--json", "--conversations", file, "--reproducer", reproducer)
    found = json.loads(out)
    assert (code, err, found["ok"]) == (1, "", False)
    # Turn 1 has no answer before the generation prompt, which the fault changes as well.
    assert (found["turns"]["different"], found["turns"]["total"]) == (2, 2)
    assert 0 < found["scenarios"]["different"] < found["scenarios"]["total"]
    turns = {(d["place"], d["form"]): d for d in found["differences"] if "talk" in d["place"]}
    assert set(turns) == {(f"{file}: conversation talk, turn {n}", form) for n in (1, 2) for form in ("ids", "text")}
    text = turns[f"{file}: conversation talk, turn 1", "text"]
    plain = transformers.AutoTokenizer.from_pretrained(TOKENIZER)
    want = plain.apply_chat_template(messages[:1], add_generation_prompt=True, tokenize=False)
    assert (text["kind"], text["first"]) == ("text", want.index("<|turn|>assistant\n") + len("<|turn|>assistant\n"))
    assert (text["got_length"], text["want_length"]) == (len(want) + 1, len(want))
    ids = turns[f"{file}: conversation talk, turn 1", "ids"]
    assert ids["kind"] == "ids"
    assert 0 < ids["first"] < ids["want_length"]

    saved = json.loads(reproducer.read_text(encoding="utf-8"))
    assert saved["chat_template"] == plain.chat_template
    # Ten of scenarios, where there are more, and ten of turns, where there are four.
    assert len(found["differences"]) > 20
    assert len(saved["differences"]) == 14
    for difference in saved["differences"]:
        value = plain.apply_chat_template(**difference["call"])
        assert difference["want"]["value"] == (dict(value) if hasattr(value, "keys") else value)
        assert difference["got"]["value"] != difference["want"]["value"]


@pytest.mark.usefixtures("few", "wrong")
def test_a_difference_in_the_text_report(run: Run, tmp_path: Path) -> None:
    code, out, err = run("check", TOKENIZER, "--conversations", _one(tmp_path))
    assert (code, err) == (1, "")
    assert rows(out)["one.jsonl (1)"][:5] == ["1", ".", ".", ".", "1"]
    assert "conversation one, turn 1, as ids: first=" in out
    assert "text: scenario system/one/tools0/prompt/0, as text: first=" in out
    assert "run again with --reproducer FILE" in out
    assert " of 14 calls differ from transformers" in out
    assert "\n0 of" not in out


@pytest.mark.usefixtures("few")
def test_no_reproducer_without_a_difference(run: Run, tmp_path: Path) -> None:
    reproducer = tmp_path / "r.json"
    assert run("check", TOKENIZER, "--reproducer", reproducer)[0] == 0
    assert not reproducer.exists()


@pytest.mark.usefixtures("few", "wrong")
def test_a_reproducer_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    code, out, err = run("check", TOKENIZER, "--reproducer", tmp_path)
    assert code == 2
    assert err == f"turntrie: {tmp_path}: Is a directory\n"
    assert "calls differ from transformers" in out, "the report must not be lost"


# --- privacy ---


def _private(folder: Path) -> Path:
    call = {"id": "1", "function": {"name": "look", "arguments": json.dumps({"q": f"{SECRET}-argument"})}}
    return recorded(
        folder / "private.jsonl",
        {
            "id": "p1",
            "messages": [
                {"role": "system", "content": f"{SECRET}-system"},
                {"role": "user", "content": f"{SECRET}-user"},
                {"role": "assistant", "content": f"{SECRET}-answer", "reasoning_content": SECRET, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": f"{SECRET}-result"},
            ],
            "tools": [{"type": "function", "function": {"name": "look", "description": SECRET, "parameters": {}}}],
        },
        {"id": "p2", "messages": [{"role": f"{SECRET}-role", "content": "x"}]},
    )


@pytest.mark.usefixtures("few", "wrong")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_contents_are_shown_only_on_request(run: Run, tmp_path: Path, form: tuple[str, ...]) -> None:
    reproducer = tmp_path / "r.json"
    arguments = ("check", TOKENIZER, "--conversations", _private(tmp_path), *form)
    code, out, err = run(*arguments, "--reproducer", reproducer)
    assert code == 1
    assert "conversation p1, turn 2" in out
    assert SECRET not in out + err
    assert "horse" not in out + err
    shown = run(*arguments, "--contents")
    assert shown[0] == 1
    assert f"{SECRET}-" in shown[1]


@pytest.mark.usefixtures("wrong")
def test_the_reproducer_has_the_contents(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turntrie.cli.check.scenarios", lambda **_: iter(()))
    reproducer = tmp_path / "r.json"
    assert run("check", TOKENIZER, "--conversations", _private(tmp_path), "--reproducer", reproducer)[0] == 1
    assert f"{SECRET}-result" in reproducer.read_text(encoding="utf-8")


# --- misuse ---


def _slow(folder: Path) -> Path:
    config = {"tokenizer_class": "CanineTokenizer", "chat_template": PLAIN}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def _untemplated(folder: Path) -> Path:
    tokenizer = transformers.AutoTokenizer.from_pretrained(TOKENIZER)
    tokenizer.chat_template = None
    tokenizer.save_pretrained(folder)
    return folder


def _written(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        file = folder / name
        file.write_bytes(content)
        return file

    return write


LINE = b'{"messages": [{"role": "user", "content": "a"}]}\n'


@pytest.mark.parametrize("command", ["check", "inspect"])
@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (lambda folder: folder / "nowhere", "nowhere: no such directory"),
        (_written("file", b"x"), "file: not a directory"),
        (lambda folder: folder, "transformers finds no tokenizer in it"),
        (_slow, "CanineTokenizer is a slow tokenizer"),
        (_untemplated, "the tokenizer has no chat template"),
    ],
)
def test_a_model_that_is_none(
    run: Run, tmp_path: Path, command: str, model: Callable[[Path], Path], complaint: str
) -> None:
    code, out, err = run(command, model(tmp_path))
    assert (code, out) == (2, "")
    assert err.startswith(f"turntrie: {tmp_path}")
    assert err.count("\n") == 1
    assert complaint in err


@pytest.mark.parametrize(
    ("option", "file", "complaint"),
    [
        ("--conversations", lambda folder: folder / "none.jsonl", "none.jsonl: No such file or directory"),
        ("--conversations", _written("c.jsonl", LINE + LINE + b'{"mess'), "c.jsonl:3: not valid JSON"),
        ("--conversations", _written("c.jsonl", LINE + b'{"messages": 1}'), "c.jsonl:2: expected an object with"),
        ("--conversations", _written("c.jsonl", b""), "c.jsonl: no conversation in it has a turn to replay"),
        ("--conversations", _written("c.jsonl.xz", LINE), "c.jsonl.xz: not a complete xz file"),
        ("--template", lambda folder: folder / "t.jinja", "t.jinja: No such file or directory"),
        ("--template", _written("t.jinja", b"\xff"), "t.jinja: not UTF-8 text"),
        ("--template", _written("t.jinja", b" \n"), "t.jinja: the chat template is empty"),
        ("--reproducer", lambda folder: folder / "no" / "r.json", "no: no such directory"),
    ],
)
def test_a_file_that_is_none(
    run: Run, tmp_path: Path, option: str, file: Callable[[Path], Path], complaint: str
) -> None:
    code, out, err = run("check", TOKENIZER, option, file(tmp_path))
    assert (code, out) == (2, "")
    assert err.startswith(f"turntrie: {tmp_path}")
    assert err.count("\n") == 1
    assert complaint in err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["check"], "MODEL"),
        (["inspect"], "MODEL"),
        (["check", "x", "--limit", "0"], "expected a number from 1 up, not '0'"),
        (["check", "x", "--turns", "all"], "expected a number from 1 up, not 'all'"),
        (["check", "x", "--conversations"], "expected at least one argument"),
        (["inspect", "x", "--thorough"], "unrecognized arguments: --thorough"),
    ],
)
def test_arguments_that_are_wrong(run: Run, arguments: list[str], complaint: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


@pytest.mark.parametrize("command", ["check", "inspect"])
@pytest.mark.parametrize("package", ["transformers", "jinja2"])
def test_without_transformers(monkeypatch: pytest.MonkeyPatch, run: Run, command: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = run(command, TOKENIZER)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'turntrie[transformers]'" in err


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("source", ["{{ raise_exception('never ever') }}", "{% if %}"])
def test_a_template_that_takes_nothing(run: Run, tmp_path: Path, source: str) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(source, encoding="utf-8")
    code, out, err = run("check", TOKENIZER, "--template", template, "--conversations", _private(tmp_path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{template}: transformers refuses every call: " in err
    assert "never ever" in err or "Expected" in err
    assert SECRET not in err


def test_an_extra_template_for_a_model_that_has_none(run: Run, few: list[Scenario], tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    template = tmp_path / "t.jinja"
    template.write_text(PLAIN, encoding="utf-8")
    code, out, _ = run("check", _untemplated(model), "--template", template, "--json")
    assert code == 0
    assert json.loads(out)["scenarios"]["native"] == len(few)


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_help_needs_no_transformers_and_no_extension(command: str) -> None:
    code = (
        f"import sys; sys.modules['transformers'] = None; from turntrie.cli import main; main(['{command}', '--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "MODEL" in done.stdout


def test_in_its_own_process_without_noise(tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(PLAIN, encoding="utf-8")
    command = [sys.executable, "-m", "turntrie", "inspect", str(TOKENIZER), "--template", str(template)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
