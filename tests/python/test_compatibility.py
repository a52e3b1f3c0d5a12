"""COMPATIBILITY.md says what is so, and what is not native is served by transformers for the reason it gives."""

import re
from pathlib import Path

import pytest

import compatibility
import real_data
import toys
from compatibility import EXAMPLES, FILE, VARIABLES

ROOT = Path(__file__).parents[2]
SHOWN = [example for example in EXAMPLES if example.is_shown]
MESSAGES = [{"role": "user", "content": "x"}]


@pytest.mark.skipif(not FILE.exists(), reason="the repository is not here")
def test_the_table_of_constructs_is_true() -> None:
    written = compatibility.section("constructs", FILE.read_text(encoding="utf-8"))
    assert written == compatibility.constructs(), "python tests/python/compatibility.py rewrites it"


@pytest.mark.skipif(not FILE.exists(), reason="the repository is not here")
def test_the_table_of_templates_is_true() -> None:
    folder = real_data.folder("TURNTRIE_TEMPLATES")
    written = compatibility.section("templates", FILE.read_text(encoding="utf-8"))
    rows = dict(re.findall(r"^\| (\S+) \| (.*) \|$", written, re.MULTILINE))
    assert sum(served == "native" for served in rows.values()) >= 0.95 * len(rows)
    if folder is not None:
        found = dict(re.findall(r"^\| (\S+) \| (.*) \|$", compatibility.templates(folder), re.MULTILINE))
        assert {name: rows.get(name) for name in found} == found


@pytest.mark.fallback
@pytest.mark.parametrize("example", SHOWN, ids=lambda example: example.construct)
def test_example(example: compatibility.Example) -> None:
    tok, plain = toys.wrapped(), toys.fresh()
    call = {"chat_template": example.source, "tokenize": False, **VARIABLES}
    wanted = toys.outcome(lambda: plain.apply_chat_template(MESSAGES, **call))
    with toys.spied(compatibility_base()) as seen:
        assert toys.outcome(lambda: tok.apply_chat_template(MESSAGES, **call)) == wanted
    asked = [given for given, _ in seen if given[0] is tok]
    served = compatibility.served(example.source)
    if served == "native":
        assert (toys.fallbacks(tok), asked) == ({}, [])
    else:
        assert toys.fallbacks(tok) == {served: 1}
        assert len(asked) == 1


def compatibility_base() -> type:
    import transformers  # noqa: PLC0415  # its class, found where it is used

    base: type = transformers.PreTrainedTokenizerBase
    return base


@pytest.mark.parametrize(
    ("file", "name"), [("template/lower.rs", "LOOP_ATTRIBUTES"), ("template/lower.rs", "SPECIAL_NAMES")]
)
def test_every_name_in_a_list_of_the_gate_has_a_row(file: str, name: str) -> None:
    source = ROOT / "src" / file
    if not source.exists():
        pytest.skip("the Rust sources are not here")
    listed = re.search(rf"const {name}: &\[&str\] = &\[(.*?)\];", source.read_text(encoding="utf-8"), re.DOTALL)
    assert listed
    names = re.findall(r'"(\w+)"', listed[1])
    constructs = " ".join(example.construct for example in EXAMPLES)
    missing = [n for n in names if not re.search(rf"\b{n}\b", constructs)]
    assert not missing
