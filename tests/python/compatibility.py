"""The generated tables of COMPATIBILITY.md: one row per construct, one row per real template.

`python tests/python/compatibility.py [--templates FOLDER]` rewrites them (the extension and transformers installed);
without a folder the table of templates is left as it is. Nothing in a row is written by hand but the example: what
transformers' jinja2 makes of it and how it is served here are found out by rendering it, and `test_compatibility.py`
fails if the file says otherwise.
"""

import argparse
import re
from pathlib import Path
from typing import Any, NamedTuple

from transformers.utils import chat_template_utils

from test_semantics import METHODS, NATIVE_FILTERS, NATIVE_FUNCTIONS, NATIVE_TESTS
from turntrie import _native

FILE = Path(__file__).parents[2] / "COMPATIBILITY.md"
SEMANTICS, GATE = "test_semantics.py", "src/template/mod.rs"


class Example(NamedTuple):
    """A construct in its smallest template."""

    construct: str
    source: str
    test: str = SEMANTICS

    @property
    def is_shown(self) -> bool:
        """Whether the source is here, and not in another test because of its size."""
        return not self.source.startswith("test_hostile.py::")


VARIABLES: dict[str, Any] = {
    "s": "a b",
    "n": 3,
    "f": 1e16,
    "l": [1, 2],
    "d": {"items": 1, "b": None},
    "t": (1, "x"),
    "ms": [{"role": "user", "content": "hi"}],
}

EXAMPLES = [
    # text
    Example("blank control, `trim_blocks`, `lstrip_blocks`", "a\n  {%- if n %} b{% endif +%}\n{{- s }}"),
    Example("CRLF, trailing newline", "a\r\nb\n"),
    Example("comment", "a{#- c -#} b"),
    Example("`raw`", "{% raw %}{{ x }}{% endraw %}", GATE),
    Example("control characters U+001C-001F in the source", "a\x1c{%- if n %}b{% endif %}", GATE),
    # literals
    Example("string escapes that both read alike", r"{{ '\n\t\\\'\x41\u00e9' }}"),
    Example("string escape `\\/`, `\\a`, `\\v`, `\\U`, `\\N`, octal", r"{{ '\a' }}", GATE),
    Example("adjacent strings", "{{ 'a' 'b' }}"),
    Example("number `10`, `1.5`", "{{ [10, 1.5] }}"),
    Example("number `1_000`, `0x10`, `1e5`, `010`", "{{ 1_000 }}", GATE),
    Example("list, tuple, dict", "{{ [[1], (1,), {'a': 1}] }}"),
    Example("a constant key that may have no hash", "{% if not n %}{{ {[]: 1}.a }}{% endif %}", GATE),
    Example("a constant power, a long constant product", "{% if not n %}{{ 10 ** 5000 }}{% endif %}", GATE),
    Example("`none`, `true`, `True`", "{{ [none, true, True] }}"),
    # statements
    Example("`if`, `elif`, `else`", "{% if n > 5 %}a{% elif n %}b{% else %}c{% endif %}"),
    Example("`for` with `if` and `else`", "{% for x in l if x > 1 %}{{ x }}{% else %}-{% endfor %}"),
    Example("`for` with unpacking", "{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}"),
    Example("`for` recursive", "{% for x in l recursive %}{{ x }}{% endfor %}", GATE),
    Example("`loop` in the condition of a loop", "{% for x in l if loop %}{{ x }}{% endfor %}", GATE),
    Example("`break`, `continue`", "{% for x in l %}{% if x > 1 %}{% break %}{% endif %}{{ x }}{% endfor %}"),
    Example("`continue` in a loop with `else`", "{% for x in l %}{% continue %}{% else %}-{% endfor %}", GATE),
    Example("`break` out of a block", "{% for x in l %}{% filter upper %}{% break %}{% endfilter %}{% endfor %}", GATE),
    Example("`set`, also of several names", "{% set a, b = l %}{{ a }}{{ b }}"),
    Example("block `set`, with filters", "{% set a | upper %}{{ s }}{% endset %}{{ a }}"),
    Example("`with` of one name", "{% with a = 1 %}{{ a }}{% endwith %}"),
    Example("`with` of several names", "{% with a = 1, b = a %}{{ b }}{% endwith %}", GATE),
    Example("`break` out of a `with`", "{% for x in l %}{% with a = x %}{% break %}{% endwith %}{% endfor %}", GATE),
    Example("`filter` block", "{% filter upper %}{{ s }}{% endfilter %}"),
    Example("`filter` block that gives no text", "{% filter length %}{{ s }}{% endfilter %}"),
    Example("`generation`", "{% generation %}{% set a = 1 %}{{ s }}{% endgeneration %}{{ a }}"),
    Example(
        "`break` out of `generation`",
        "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
        GATE,
    ),
    Example("a name read in an inner scope and set later", "{% for x in l %}{{ s }}{% endfor %}{% set s = 1 %}", GATE),
    Example("`macro`", "{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(s) }}"),
    Example("undefined argument for a default", "{% macro m(a=1) %}{{ a }}{% endmacro %}{{ m(u) }}"),
    Example("macro default that is no constant", "{% macro m(a=n) %}{{ a }}{% endmacro %}{{ m() }}", GATE),
    Example("macro that reads what is set later", "{% macro m() %}{{ y }}{% endmacro %}{% set y = 1 %}{{ m() }}", GATE),
    Example("macro in a scope", "{% if n %}{% for x in l %}{% macro m() %}{% endmacro %}{% endfor %}{% endif %}", GATE),
    Example("macro defined twice", "{% macro m() %}1{% endmacro %}{% macro m() %}2{% endmacro %}{{ m() }}", GATE),
    Example("parameter twice", "{% macro m(a, a) %}{{ a }}{% endmacro %}", GATE),
    Example("parameters that end in a comma", "{% macro m(a,) %}{{ a }}{% endmacro %}", GATE),
    Example("macro named like a constant", "{% macro true() %}{% endmacro %}", GATE),
    Example("tests in a row", "{{ n is defined is true }}", GATE),
    Example("sign after a test's name", "{{ 1 is eq -1 }}", GATE),
    Example("`break` in the `else` of a loop", "{% for a in [] %}{% else %}{% break %}{% endfor %}", GATE),
    Example("twenty loops inside each other", "{% for a in [1] %}" * 21 + "x" + "{% endfor %}" * 21, GATE),
    Example("keyword twice", "{% set ns = namespace(a=1, a=2) %}", GATE),
    Example("macro as a value", "{% macro m() %}1{% endmacro %}{{ m is callable }}", GATE),
    Example("`varargs`", "{% macro m() %}{{ varargs }}{% endmacro %}{{ m(1) }}", GATE),
    Example("`kwargs`", "{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(a=1) }}", GATE),
    Example("`call`, `caller`", "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}", GATE),
    Example(
        "`call` with parameters",
        "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(a) m() %}{{ a }}{% endcall %}",
        GATE,
    ),
    Example("`call` of a macro without `caller`", "{% macro m() %}a{% endmacro %}{% call m() %}x{% endcall %}", GATE),
    Example("`*args`, `**kwargs`", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}", GATE),
    Example("`namespace`", "{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}"),
    Example("`namespace` as a value", "{% set ns = namespace(a=1) %}{{ ns is mapping }}", GATE),
    Example("item of a `namespace`", "{% set ns = namespace(a=1) %}{{ ns['a'] }}", GATE),
    Example("`namespace` under a name that holds other values", "{% set a = 1 %}{% set a = namespace() %}x", GATE),
    Example("`do`", "{% do l %}", GATE),
    Example("`autoescape`", "{% autoescape true %}{{ '<' }}{% endautoescape %}", GATE),
    Example("`include`, `import`, `extends`, `block`", "{% block b %}x{% endblock %}", GATE),
    # expressions
    *(Example(f"`{op}`", f"{{{{ [7 {op} 2] }}}}") for op in ("+", "-", "*", "/", "//", "%", "**", "==", "!=")),
    *(Example(f"`{op}`", f"{{{{ [7 {op} 2] }}}}") for op in ("<", "<=", ">", ">=", "and", "or")),
    Example("`~`", "{{ n ~ f ~ none }}"),
    Example("`in`, `not in`", "{{ ['a' in s, 3 not in l] }}"),
    Example("`not`, unary `-`", "{{ [not n, -n] }}"),
    Example("`'a' < 1`, `1 + 'a'`", "{{ 'a' < 1 }}"),
    Example("`a < b < c`", "{{ 1 < n < 5 }}"),
    Example("`a < b.c < d`", "{{ 1 < d.b < 5 }}", GATE),
    Example("`a if b else c`, `a if b`", "{{ [1 if n else 2, (1 if not n)] }}"),
    Example("`format % values`", "{{ '%s-%03d' % ('a', 7) }}"),
    Example("slice", "{{ [l[::-1], s[-9:2]] }}"),
    Example("attribute, item; a key named like a method", "{{ [ms[0].role, ms[0]['content'], d['b']] }}"),
    Example("Python attribute as the result", "{{ d.items is defined }}"),
    Example("attribute of undefined", "{{ u.a.b }}"),
    Example("undefined printed, looped over, measured", "{{ u }}{% for x in u %}{% endfor %}{{ u|length }}"),
    Example("undefined in an operation", "{{ u + 'a' }}"),
    Example("call of a value", "{{ l[0]() }}", GATE),
    Example("`self`, `super`", "{{ self }}", GATE),
    *(
        Example(f"`loop.{name}`", f"{{% for x in l %}}{{{{ [loop.{name}] }}}}{{% endfor %}}")
        for name in ("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0")
    ),
    Example("`loop.previtem`, `loop.nextitem`", "{% for x in l %}{{ [loop.previtem, loop.nextitem] }}{% endfor %}"),
    Example("`loop.cycle()`", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", GATE),
    Example("`loop.changed()`", "{% for x in l %}{{ loop.changed(x) }}{% endfor %}", GATE),
    Example("`loop` as a value", "{% for x in l %}{{ loop is defined }}{% endfor %}", GATE),
    Example("text methods", "{{ s.upper().split(' ') }}"),
    Example("`list.append` and what else changes a value", "{{ l.append(3) }}"),
    Example("method that is not listed", "{{ s.nosuch() }}", GATE),
    Example("`safe`, `escape`", "{{ ('<'|e) ~ '<' + ('>'|safe) }}"),
    Example("methods of what is `safe`", "{{ ('<'|safe).upper() }}"),
    *(
        Example(f"filter `{name}`", f"{{{{ {value}|{name}{args} }}}}", GATE)
        for name, value, args in (
            ("attr", "ms[0]", "('role')"),
            ("groupby", "ms", "('role')|list"),
            ("pprint", "l", ""),
            ("random", "[1]", ""),
            ("striptags", "'<b>'", ""),
            ("urlencode", "s", ""),
            ("urlize", "s", ""),
            ("wordwrap", "s", "(2)"),
            ("xmlattr", "{}", ""),
            ("filesizeformat", "n", ""),
            ("forceescape", "'<'", ""),
        )
    ),
    Example("filter that jinja2 does not know", "{{ s|nosuch }}", GATE),
    Example("test `filter`, `test`", "{{ 'upper' is filter }}", GATE),
    Example("test that jinja2 does not know", "{{ s is nosuch }}", GATE),
    Example("`range`, `dict`", "{{ [range(3)|list, dict(a=1)] }}"),
    Example("`raise_exception`", "{{ raise_exception('no') }}"),
    Example("`strftime_now` of a literal", "{{ strftime_now('%%') }}", "test_dispatch.py"),
    Example("`lipsum`, `cycler`, `joiner`", "{{ joiner(',') is defined }}", GATE),
    Example("function that is not defined", "{{ nosuch() }}", GATE),
    Example("iterating twice over what a filter yields", "{% set g = l|map('string') %}{{ g|list }}{{ g|list }}"),
    Example("sums of floats", "{{ [0.1, 0.2]|sum }}"),
    Example("int past 128 bits", "{{ 10 ** 40 }}"),
    Example("int past 63 bits as a count", "{{ 'a b'.split(' ', 2 ** 63) }}", "test_fuzz.py"),
    Example("int past 63 bits as a width", "{{ 'a'.center(2 ** 63) }}", "test_fuzz.py"),
    Example("int past 31 bits as a flag", "{{ 'a b'.splitlines(2 ** 31) }}", "test_fuzz.py"),
    *(Example(f"method `{name}`", f"{{{{ [{expression}] }}}}") for name, expression in METHODS.items()),
    *(Example(f"filter `{name}`", f"{{{{ [{expression}] }}}}") for name, expression in NATIVE_FILTERS.items()),
    *(Example(f"test `{name}`", f"{{{{ [{expression}] }}}}") for name, expression in NATIVE_TESTS.items()),
    *(Example(f"function `{name}`", f"{{{{ [{expression}] }}}}") for name, expression in NATIVE_FUNCTIONS.items()),
    Example("containers nested deeper than 100", "test_hostile.py::nesting", "test_hostile.py"),
    Example("more work than any template does", "test_hostile.py::loops", "test_hostile.py"),
]
"""The last two are too large to show: their sources are in that test."""


def served(source: str) -> str:
    """`native`, or the reason of an example."""
    template = _native.Template(source)
    if template.reason is not None:
        return template.reason
    return template.render([], VARIABLES, {"%%": "%"}, 0).reason or "native"


def reference(source: str) -> tuple[str, str]:
    """What jinja2, as transformers configures it, makes of an example: `text` and the text, or `raises` and a class."""
    try:
        return "text", chat_template_utils._compile_jinja_template(source).render(messages=[], **VARIABLES)
    except Exception as error:  # noqa: BLE001  # whatever it is, is what is asked for
        return "raises", type(error).__name__


def constructs() -> str:
    """The table of constructs."""
    rows = ["| construct | example | transformers | here | test |", "|---|---|---|---|---|"]
    for example in EXAMPLES:
        if not example.is_shown:
            nested = "nesting" in example.source
            theirs, ours = ("text", "`render:depth`") if nested else ("does not end", "`limit:work`, an error")
            shown = "see test"
        else:
            kind, detail = reference(example.source)
            theirs = "text" if kind == "text" else f"`{detail}`"
            ours = served(example.source)
            ours = ours if ours == "native" else f"`{ours}`"
            shown = f"`{_visible(example.source)}`"
        rows.append(f"| {_cell(example.construct)} | {_cell(shown)} | {theirs} | {ours} | `{example.test}` |")
    return "\n".join(rows)


def _visible(source: str) -> str:
    return re.sub(r"[\x00-\x1f]", lambda m: repr(m[0])[1:-1], source)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def templates(folder: Path) -> str:
    """The table of real templates: names only."""
    rows = ["| template | served by |", "|---|---|"]
    for path in sorted(folder.glob("*.jinja")):
        reason = _native.Template(path.read_text(encoding="utf-8")).reason
        rows.append(f"| {path.stem} | {'native' if reason is None else f'transformers: `{reason}`'} |")
    return "\n".join(rows)


def section(name: str, text: str) -> str:
    """What stands between the marks of a section."""
    found = re.search(rf"<!-- generated: {name} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    assert found, f"COMPATIBILITY.md has no section {name}"
    return found[1]


def replaced(name: str, text: str, table: str) -> str:
    """The text with another table in a section."""
    return text.replace(
        f"<!-- generated: {name} -->\n{section(name, text)}\n<!-- end -->",
        f"<!-- generated: {name} -->\n{table}\n<!-- end -->",
    )


def main() -> None:
    """Rewrites the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--templates", type=Path, help="a folder of *.jinja files")
    options = parser.parse_args()
    text = replaced("constructs", FILE.read_text(encoding="utf-8"), constructs())
    if options.templates:
        text = replaced("templates", text, templates(options.templates))
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
