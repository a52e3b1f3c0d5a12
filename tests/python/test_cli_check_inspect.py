"""`turntrie inspect`: the facts it prints are those that the native path uses."""

import json
import re
from pathlib import Path

import pytest
import transformers

from turntrie import cli, path
from turntrie.demo import TOKENIZER
from turntrie.reason import Reason
from turntrie.verification import template_id

LOOPS = 2
"""Loops over messages in the template of the demo."""
MAJOR = int(transformers.__version__.partition(".")[0])

CUTS = "start of raw added tokens; inside plain text between characters that every split parts"
REFUSED = "{% macro m() %}{% endmacro %}{% macro m() %}{% endmacro %}"
DATED = "{{ strftime_now('%Y-%m') }}\n{% for m in messages %}\n" + REFUSED + "{{ m.content }}\n{% endfor %}"


def inspect(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Runs the command and returns what it printed."""
    assert cli.main(["inspect", *(str(argument) for argument in arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_demo_model_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    plain = transformers.AutoTokenizer.from_pretrained(TOKENIZER)
    found = json.loads(inspect(capsys, TOKENIZER, "--json"))
    assert found["tokenizer"] == {"class": type(plain).__qualname__, "module": type(plain).__module__}
    assert found["engine"]["reason"] is None
    assert found["engine"]["policy"]["pipeline"].startswith("normalizer NFC; pre-tokenizer Sequence(Split, ByteLevel)")
    assert found["engine"]["policy"]["hold-back"] == "at most 13 bytes"
    assert found["engine"]["self_check"]["ids_checked"] > 0
    assert found["engine"]["self_check"]["ids_different"] == 0
    assert found["engine"]["self_check"]["incremental"] is True
    added = plain.backend_tokenizer.get_added_tokens_decoder().values()
    assert found["added_tokens"]["all"] == len(added)
    assert found["added_tokens"]["special"] == sum(token.special for token in added) > 0
    assert found["added_tokens"]["lstrip"] == 0
    (template,) = found["templates"]
    assert template["id"] == template_id(plain.chat_template)
    assert (template["native"], template["reason"], template["clock_formats"]) == (True, None, [])
    assert (template["reusing_loops"], template["other_loops"]) == (LOOPS, [])
    assert found["rules"] == {
        "drops_null_keys": MAJOR >= 5,
        "copies_reasoning_fields": MAJOR >= 5,
        "understood": True,
        "reason": None,
        "return_dict_default": MAJOR >= 5,
    }
    turns = {shape["shape"]: shape for shape in found["turns"]}
    assert set(turns) == {"plain", "system message", "calls", "parallel calls", "reasoning"}
    for name, shape in turns.items():
        assert shape["reason"] is None, name
        # The system message stands in the head of the prompt.
        assert shape["missing"] == ["system"] * (name == "system message")
        assert shape["located"] == shape["messages"] - len(shape["missing"]) > 0
        assert shape["taken_over"] > 2 * shape["rendered"] > 0, name
    assert found["seconds"]["load"] > 0
    assert found["memory"]["checkpoints_budget"] == 256 * 1024 * 1024


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    out = inspect(capsys, TOKENIZER)
    found = {name: text.strip() for name, _, text in (line.partition("  ") for line in out.splitlines())}
    assert found["cuts"] == CUTS
    assert found["token flags"].startswith("9 added tokens in the live backend: ")
    assert found["self-check"].endswith("0 differ; incremental encoding is on")
    assert found["template"].endswith("characters: native")
    assert found["old turns"] == f"{LOOPS} of {LOOPS} loops over messages reuse what they rendered before"
    # Lines of one name: the last one is found.
    assert re.fullmatch(r"reasoning: 13 of 13 messages located; the last turn .+ iterations", found["turns"])
    assert found["rules"].endswith("(probed)")
    assert ("drops null keys" in found["rules"]) is (MAJOR >= 5)
    assert found["return_dict"] == f"{MAJOR >= 5} by default"
    # The process may have this backend already, with checkpoints of other tests.
    assert re.search(r"checkpoints .+ of at most 256 MiB", found["memory"])
    assert re.match(r"turntrie, tables of 0\.\d MB", found["encoder"])
    assert "table_bytes" not in found["seconds"]


@pytest.mark.fallback
def test_a_construct_that_is_not_native_has_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(DATED, encoding="utf-8")
    compiled = path.compiled(DATED)
    assert compiled is not None
    assert compiled.reason is not None, "choose another construct: this one became native"
    found = json.loads(inspect(capsys, TOKENIZER, "--template", template, "--json"))["templates"][0]
    assert (found["native"], found["reason"], found["line"]) == (False, compiled.reason, 3)
    out = inspect(capsys, TOKENIZER, "--template", template)
    assert f"rendered by transformers: {compiled.reason}, line 3" in out


def test_clock_formats(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(DATED.replace(REFUSED, ""), encoding="utf-8")
    assert "the template prints it as '%Y-%m'" in inspect(capsys, TOKENIZER, "--template", template)


@pytest.mark.fallback
def test_templates_with_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(TOKENIZER)
    tokenizer.chat_template = {"default": "{{ messages }}", "tool_use": DATED}
    tokenizer.save_pretrained(tmp_path)
    found = json.loads(inspect(capsys, tmp_path, "--json"))["templates"]
    assert {template["name"]: template["native"] for template in found}["tool_use"] is False
    assert {template["name"] for template in found} == {"default", "tool_use"}


@pytest.mark.fallback
def test_without_an_engine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turntrie.backend.load", lambda *_: Reason("tokenizer:unloadable"))
    out = inspect(capsys, TOKENIZER)
    assert "none, transformers makes the ids: tokenizer:unloadable" in out
    assert "self-check" not in out
