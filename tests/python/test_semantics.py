"""What templates do to values, against jinja2: the same text, or a reason; never another text.

Every case is a template expression, compiled exactly as transformers compiles chat templates, and values for its
variables. The result is printed inside a list, so that types show: `['1']` is not `[1]`. The grids are generated:
operators by operands by operands, methods, filters and tests by arguments. Two things keep an implementation that
always refuses from passing: among core values nothing may be refused, and every listed name has an example that must
be served natively.
"""

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from transformers.utils import chat_template_utils

from turntrie import _native

Outcome = Literal["native", "refused", "raised"]
Variables = dict[str, Any]


class Missing:
    """Stands for a variable that is not given, hence undefined."""


MISSING = Missing()


@cache
def _ours(source: str) -> _native.Template:
    return _native.Template(source)


def outcome(source: str, variables: Variables) -> Outcome:
    """How a template was served; fails if ours gave another text than jinja2, or a text where jinja2 raises."""
    given = {name: value for name, value in variables.items() if value is not MISSING}
    prompt = _ours(source).render([], given, {}, 0)
    ours = prompt.text if prompt.reason is None else None
    if ours is None:
        return "refused"
    try:
        theirs = chat_template_utils._compile_jinja_template(source).render(messages=[], **given)
    except Exception as error:  # noqa: BLE001 -- whatever it raises, we must not have a text
        pytest.fail(f"{source!r} {given!r}: ours {ours!r}, jinja2 raises {error!r}")
    assert ours == theirs, f"{source!r} {given!r}"
    return "native"


def raises(source: str, variables: Variables) -> bool:
    """Whether jinja2 raises."""
    given = {name: value for name, value in variables.items() if value is not MISSING}
    try:
        text = chat_template_utils._compile_jinja_template(source).render(messages=[], **given)
    except Exception:  # noqa: BLE001
        return True
    # A text with an address has no other equal text.
    return " at 0x" in text


def check(cases: Iterable[tuple[str, Variables]], refusable: Any = None) -> Counter[Outcome]:
    """Runs the cases. If `refusable` is given, one that it says no to must be native unless jinja2 raises."""
    seen: Counter[Outcome] = Counter()
    for source, variables in cases:
        result = outcome(source, variables)
        if result == "refused" and raises(source, variables):
            result = "raised"
        if result == "refused" and refusable is not None:
            assert refusable(variables), f"{source!r} {variables!r}: {_reason(source, variables)}"
        seen[result] += 1
    return seen


def _reason(source: str, variables: Variables) -> str | None:
    given = {name: value for name, value in variables.items() if value is not MISSING}
    return _ours(source).render([], given, {}, 0).reason


# Operands. Core values are those that chat templates handle; nothing Python does with them may be refused.

CORE: list[Any] = [
    *(None, MISSING, True, False, 0, 1, -1, 2, 3, 7, -7, 2**53 - 1, 0.0, 0.5, 1.0, -2.5, 1e16, 1e-5),
    *(
        "",
        "a",
        "ab",
        "b",
        "A",
        " a ",
        "\n",
        "é",
        "日本",
        "😀x",
        "%s",
        "%d%%",
        "role",
        "items",
        "0",
        "it's",
        "\xa0\u200b",
    ),
    *([], [1], [1, 2], ["a"], [[1], [2]], [None], [1.0], [{"a": 1}], (), (1,), ("a", "b")),
    *({}, {"a": 1}, {"role": "user", "content": "x"}, {"b": 2, "a": 1}, {"items": 1}, {"a": {"b": [1, None]}}),
]
ODD: list[Any] = [
    *(2**53, 2**53 + 1, 2**63, -(2**63), 2**64, 10**30, -0.0, 1e300, float("inf"), float("nan"), 2.0**53, 0.1),
    *("%(a)s", "%5.2f", "\x00", "\ue000", "__class__", '"', "'\"", "<&>"),
    *([float("nan")], [True], [1, "a"], (1, [2]), ((1,),), {"a": float("nan")}, {"a": 1.0}),
]
VALUES = CORE + ODD

# What is not a plain value: an expression on a variable, and the values to give it.
FORMS: dict[str, list[Any]] = {
    "({}|safe)": ["a", "<b>", ""],
    "({}|map('string'))": [[], [1, 2]],
    "({}|reverse)": [[1, 2]],
    "{}.items()": [{}, {"a": 1}],
    "{}.keys()": [{"a": 1, "b": 2}],
    "{}.values()": [{"a": 1}],
    "range({})": [0, 3],
    "'<a>'": [MISSING],
    "'a'": [MISSING],
    "2": [MISSING],
    "({}|string)": ["<", 1],
    "({}|length)": ["ab", [1]],
    "({} ~ '')": ["a", 1],
}

BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in"]


def _is_odd(value: Any) -> bool:
    return any(value is odd for odd in ODD)


@pytest.mark.parametrize("operator", BINARY)
def test_binary_operator(operator: str) -> None:
    source = f"{{{{ [a {operator} b] }}}}"
    pairs = [(a, b) for a, b in itertools.product(VALUES, VALUES) if not _explodes(operator, a, b)]

    def refusable(variables: Variables) -> bool:
        a, b = variables["a"], variables["b"]
        # A power that is no int is up to the C library.
        return _is_odd(a) or _is_odd(b) or operator == "**"

    seen = check(((source, {"a": a, "b": b}) for a, b in pairs), refusable)
    assert seen["native"] > 20, seen


def _explodes(operator: str, a: Any, b: Any) -> bool:
    """Whether Python itself would be busy for long."""
    big = [abs(x) > 10**5 for x in (a, b) if isinstance(x, int)]
    return operator in {"*", "**"} and any(big) and not all(isinstance(x, int | float) and abs(x) < 10 for x in (a, b))


@pytest.mark.parametrize("operator", BINARY)
def test_binary_operator_on_what_is_no_plain_value(operator: str) -> None:
    def cases() -> Iterator[tuple[str, Variables]]:
        plain = [MISSING, None, True, 2, 1.5, "a", "<", "<b>", [1], ["1"], (1,), {"a": 1}]
        for form, values in FORMS.items():
            left, right = form.format("a"), form.format("b")
            for value, other in itertools.product(values, plain):
                yield f"{{{{ [{left} {operator} b] }}}}", {"a": value, "b": other}
                yield f"{{{{ [b {operator} {left}] }}}}", {"a": value, "b": other}
            for other_form, others in FORMS.items():
                right = other_form.format("b")
                for value, other in itertools.product(values, others):
                    yield f"{{{{ [{left} {operator} {right}] }}}}", {"a": value, "b": other}

    seen = check(cases())
    assert seen["native"] > 5, seen


def test_other_operators_and_truth() -> None:
    sources = ["{{ [-a] }}", "{{ [not a] }}", "{{ a }}", "{{ [a] }}", "{{ (a,) }}", "{{ {'k': a} }}", "{{ [a and 1] }}"]
    sources += ["{{ [a or 1] }}", "{{ [1 if a else 0] }}", "{{ [1 if a] }}", "{{ [0 <= a < 2] }}", "{{ a is defined }}"]
    sources += ["{% for x in a %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ [x] }}{% else %}none{% endfor %}"]
    sources += ["{% for x in a if x %}{{ loop.revindex0 }}{{ [x, loop.previtem, loop.nextitem] }}{% endfor %}"]
    sources += ["{% for x, y in a %}{{ [x, y] }}{% endfor %}", "{% set x, y = a %}{{ [x, y] }}"]
    plain = [(source, {"a": value}) for source, value in itertools.product(sources, VALUES)]
    # The engine does not unpack strings.
    seen = check(plain, lambda variables: _is_odd(variables["a"]) or isinstance(variables["a"], str))
    assert seen["native"] > 500, seen
    formed = [
        (source.replace(" a", f" {form.format('a')}").replace("[a", f"[{form.format('a')}"), {"a": value})
        for source in sources
        for form, values in FORMS.items()
        for value in values
    ]
    assert check(formed)["native"] > 100


ATTRIBUTES = sorted({name for kind in (str, list, dict, tuple, int, float, bool, type(None)) for name in dir(kind)})
KEYS = ["a", "b", "role", "content", "foo", "_x", "", *ATTRIBUTES, "mapping", "start", "gi_frame", "striptags"]


def test_attributes_and_items_by_name() -> None:
    values = [None, MISSING, True, 7, 1.5, "", "ab", [], [1], (1,), {}, {"role": "user"}, dict.fromkeys(KEYS, 1)]
    on_forms = [
        "a",
        "role",
        "_x",
        "",
        "__class__",
        "items",
        "upper",
        "append",
        "mapping",
        "start",
        "gi_frame",
        "striptags",
    ]

    def cases() -> Iterator[tuple[str, Variables]]:
        for key in KEYS:
            for value in values:
                if key.isidentifier():
                    yield f"{{{{ [a.{key}] }}}}", {"a": value}
                yield f"{{{{ [a[{key!r}]] }}}}", {"a": value}
                yield "{{ [a[k]] }}", {"a": value, "k": key}
        for key, (form, formed) in itertools.product(on_forms, FORMS.items()):
            for value in formed:
                yield f"{{{{ [{form.format('a')}[k]] }}}}", {"a": value, "k": key}
                if key.isidentifier():
                    yield f"{{{{ [({form.format('a')}).{key}] }}}}", {"a": value}

    seen = check(cases())
    assert seen["native"] > 1500, seen


def test_items_by_other_keys() -> None:
    keys = [*VALUES, -2, 2**70, -(2**70)]
    plain = [("{{ [a[k]] }}", {"a": a, "k": k}) for a, k in itertools.product(VALUES, keys)]
    # A string that names an attribute of the type is not decided here.
    seen = check(plain, lambda variables: isinstance(variables["k"], str))
    assert seen["native"] > 2000, seen
    formed = [
        (f"{{{{ [{form.format('a')}[k]] }}}}", {"a": value, "k": key})
        for form, values in FORMS.items()
        for value in values
        for key in keys
    ]
    assert check(formed)["native"] > 300


def test_slices() -> None:
    bounds = [MISSING, None, 0, 1, 3, -1, -3, 10, -10, True, 2**70, -(2**70), "a"]
    steps = [None, 1, 2, -1, -2, 0, 2**70]
    values = ["", "日本語😀é", [1, 2, 3], (1, 2, 3), {"a": 1}, None, MISSING]
    names = ["a", "x", "y", "z"]
    grid = itertools.product(values, bounds, bounds, steps)
    seen = check(("{{ [a[x:y:z]] }}", dict(zip(names, row, strict=True))) for row in grid)
    assert seen["native"] > 2000, seen
    assert seen["refused"] == 0, seen
    spelled = ["a[:]", "a[1:]", "a[:-1]", "a[::-1]", "a[-9:]", "a[:-9]", "a[3:0:-1]", "a[::2]", "a[1:2]"]
    literal = check((f"{{{{ [{s}] }}}}", {"a": value}) for s in spelled for value in values)
    assert literal["refused"] == 0, literal


# Methods.

TEXTS = [
    *("", "a", "abc", "aAbB", "Hello World", "  pad \t\n", "\x1c\x1d x \x1e\x1f", "\u3000wide\u2003", "a, b,c ,"),
    *("  a  b   c ", "l1\nl2\r\nl3\rl4", "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i", "\n", "x\n", "aaa", "aXbXc"),
    *("+42", "-42", "0x1f", "straße", "ﬁx", "İstanbul", "ΑΣ ΑΣΑ", "ǆ", "日本語テキスト", "😀 smile 😀", "e\u0301"),
    *("ab\tc\n\td", "{}", "{0} {1}", "{a}-{b}", "{{}}", "{", "{a.b}", "{:>5}", "{!r}", "{0}{}", "Title Case", "TITLE"),
    *("they're here", "_id1", "1a", "<think>x</think>y", "</think>", "\x00", "\u0661\u0662", "<b>&"),
]
PARTS = ["", "a", "b", "X", "\n", "ab", ",", " ", "\t", "é", "日", "</think>", "aA", "\u3000", None, 1, MISSING]


def _calls(method: str, *grids: list[Any], keywords: tuple[str, ...] = ()) -> Iterator[tuple[str, Variables]]:
    names = ["p", "q", "r"][: len(grids)]
    shown = ", ".join(f"{keyword}={name}" for keyword, name in zip(keywords, names, strict=True)) if keywords else None
    source = f"{{{{ [v.{method}({shown or ', '.join(names)})] }}}}"
    for row in itertools.product(TEXTS, *grids):
        yield source, dict(zip(["v", *names], row, strict=True))


WITHOUT_ARGUMENTS = [
    *("capitalize", "casefold", "expandtabs", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier"),
    *("islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "lower", "lstrip", "rsplit", "rstrip"),
    *("split", "splitlines", "strip", "swapcase", "title", "upper"),
]
OF_ONE_PART = [
    *("count", "endswith", "find", "index", "lstrip", "partition", "removeprefix", "removesuffix", "rfind", "rindex"),
    *("rpartition", "rsplit", "rstrip", "split", "startswith", "strip"),
]
BOUNDED = ["count", "endswith", "find", "index", "rfind", "rindex", "startswith"]


@pytest.mark.parametrize("method", WITHOUT_ARGUMENTS)
def test_string_method_without_arguments(method: str) -> None:
    check(_calls(method), lambda variables: not variables["v"].isascii())


@pytest.mark.parametrize("method", OF_ONE_PART)
def test_string_method_of_one_part(method: str) -> None:
    seen = check(_calls(method, PARTS), lambda _: False)
    assert seen["native"] > 50, seen
    check(_calls(method, [("a", "b"), (), ("a", 1), ["a"]]))


@pytest.mark.parametrize("method", BOUNDED)
def test_string_method_with_bounds(method: str) -> None:
    bounds = [0, 1, 3, -1, -3, 100, -100, None, True, 2**70, "a"]
    check(_calls(method, ["", "a", "X", "日"], bounds), lambda _: False)
    check(_calls(method, ["", "a", "X"], [0, 2, -2, None], [1, -1, 100, None]), lambda _: False)


def test_string_methods_with_more_arguments() -> None:
    counts = [0, 1, 2, -1, 5, True, None, "a"]
    widths = [-1, 0, 1, 4, 5, 10, 11, True, None, "a"]
    never = lambda _: False  # noqa: E731
    for method in ("split", "rsplit"):
        check(_calls(method, ["a", ",", None, "X", ""], counts), never)
        check(_calls(method, ["a", None], [0, 1, -1], keywords=("sep", "maxsplit")), never)
        check(_calls(method, [1, 2], keywords=("maxsplit",)), never)
        check(_calls(method, [1, 2], keywords=("other",)), never)
    check(_calls("replace", PARTS, ["", "-", "aa", None]), never)
    check(_calls("replace", ["", "a", "X", "aa"], ["", "-"], counts), never)
    for method in ("center", "ljust", "rjust"):
        check(_calls(method, widths), never)
        check(_calls(method, widths, ["*", "é", "", "ab", None]), never)
    check(_calls("zfill", widths), never)
    check(_calls("expandtabs", widths), never)
    check(_calls("expandtabs", [0, 3], keywords=("tabsize",)), never)
    check(_calls("splitlines", [True, False, 0, 2, None, "a"]), never)
    check(_calls("splitlines", [True, False], keywords=("keepends",)), never)
    iterables = [[], ["a"], ["a", "b"], ("x", "y"), "abc", {"k": 1}, [1], [None], None, MISSING, 5]
    check(_calls("join", iterables), never)


def test_format() -> None:
    odd = re.compile(r"[{][^}]*[.!:\[]")
    refusable = lambda variables: bool(odd.search(variables["v"]))  # noqa: E731
    values = ["x", 1, 1.5, None, True, ["a"], MISSING]
    check(_calls("format"), refusable)
    check(_calls("format", values), refusable)
    check(_calls("format", values, ["y"]), refusable)
    check(_calls("format", ["x"], [2], keywords=("a", "b")), refusable)


def test_methods_of_containers() -> None:
    entries = {"a": 1, "b": None, "items": "I", "get": 2}
    keys = ["a", "b", "z", "items", "", None, 1, True, 1.5, MISSING, (1,), [1], {}]
    cases: list[tuple[str, Variables]] = []
    for key in keys:
        cases.append(("{{ [d.get(k)] }}", {"d": entries, "k": key}))
        cases += [("{{ [d.get(k, x)] }}", {"d": entries, "k": key, "x": x}) for x in (None, "x", 0, MISSING, [])]
    for method in ("keys", "values", "items"):
        for printed in ("[{}]", "{}|list", "{}|length", "{}|first", "{}|last", "{}|sort", "'a' in {}", "{}|join(',')"):
            for value in ({}, {"a": "x"}, {"b": "y", "a": "x"}):
                cases.append((f"{{{{ {printed.format(f'd.{method}()')} }}}}", {"d": value}))
    for items in ([], [1, 2, 1], ["a", "b"], [None, MISSING][:1], [1.0, True], [[1], [1]], (1, 2, 1), ("a",)):
        for method, item in itertools.product(("count", "index"), (1, "a", None, 1.0, True, [1], "z")):
            cases.append((f"{{{{ [s.{method}(i)] }}}}", {"s": items, "i": item}))
    seen = check(cases, lambda _: False)
    assert seen["native"] > 150, seen


def test_methods_that_a_type_lacks() -> None:
    values = [None, MISSING, True, 7, 1.5, "ab", [1], (1,), {"role": "user"}, dict.fromkeys(ATTRIBUTES, 1)]
    names = [name for name in ATTRIBUTES if not name.startswith("_")] + ["foo"]
    arguments = ["", "'a'", "x=1"]

    def cases() -> Iterator[tuple[str, Variables]]:
        for name, shown, value in itertools.product(names, arguments, values):
            yield f"{{{{ [a.{name}({shown})] }}}}", {"a": value}
        on_forms = ["capitalize", "strip", "get", "items", "append", "count", "index", "real", "foo"]
        for name, (form, formed) in itertools.product(on_forms, FORMS.items()):
            for value in formed:
                yield f"{{{{ [({form.format('a')}).{name}()] }}}}", {"a": value}

    check(cases())


# Filters, tests and functions: each with its arguments, on every value.

SUBJECTS: list[Any] = [
    *VALUES,
    *("hello world", "x\x1cy\u3000", " 42 ", "+7", "1_000", "_1", "4.7", "-0.5", "1e3", "1e400", "inf", "nan", "0x10"),
    *("1.", ".5", ".", "\u0661", "foo-bar (baz) [q] {r} <s>t_u", "a\nb\n\nc", "l1\r\nl2\x0bl3", "<b>&\"'</b>", "%s-%s"),
    *("aaa bbb ccc ddd", "w " * 150, "é", 2.5, 2.675, 1e22, 123.456, -7.5),
    *([3, 1, 2], ["b", "A", "a", "B"], ["b", 1], [None, 1], [1, 1.0, True, 2], ["x", "X", "x"], [1.5, 2], [0, "", "a"]),
    [{"n": "b", "v": 1}, {"n": "A", "v": 2}, {"n": "a", "v": 1}],
    *([{"n": "x"}, {"v": 1}], [{"n": {"m": 1}}, {"n": {"m": 0}}], [[1, 2], [3, 4]], [(1, "a"), (0, "b")], ["a", ["b"]]),
    *([{"role": "user", "content": "hi"}, {"role": "system"}], {"b": 1, "A": 2, "a": 0}, {"x": "B", "y": "a"}),
    {"a": [1, 2.5, {"é": '\u2028\x7f\x01"\\/'}], "b": {"c": {}, "d": []}, "t": (1,)},
]

FILTERS: dict[str, list[str]] = {
    "abs": [""],
    "batch": ["2", "3, '-'", "2, none", "0", "'a'", "linecount=2"],
    "capitalize": [""],
    "center": ["", "5", "11", "width=9", "none"],
    "count": ["", "1"],
    "d": ["", "'x'", "'x', true", "'x', false", "none", "boolean=true"],
    "default": ["", "'x'", "'x', true", "default_value='q', boolean=true"],
    "dictsort": ["", "true", "false, 'value'", "reverse=true", "by='value'", "case_sensitive=true", "by='x'"],
    "e": [""],
    "escape": [""],
    "first": [""],
    "float": ["", "1.5", "default=none"],
    "format": ["", "'a'", "1", "'a', 'b'"],
    "indent": ["", "2", "'> '", "2, true", "2, false, true", "width=3, first=true, blank=true", "-1", "none"],
    "int": ["", "7", "'x'", "0, 10", "0, 16", "default=5"],
    "items": [""],
    "join": ["", "', '", "1", "none", "'-', 'n'", "attribute='v'", "'', 0", "'-', 'n.m'", "d='|'"],
    "last": [""],
    "length": ["", "1"],
    "list": [""],
    "lower": [""],
    "map": [
        *("'upper'", "'length'", "'string'", "'int'", "'tojson'", "'default', 'z'", "'replace', 'a', 'b'", "'nope'"),
        *("'trim'", "attribute='n'", "attribute='n', default='D'", "attribute='n.m'", "attribute=0", "'safe'", "", "1"),
    ],
    "max": ["", "true", "attribute='v'", "false, 'n'"],
    "min": ["", "true", "attribute='v'", "false, 'n'"],
    "reject": ["", "'none'", "'eq', 1", "'string'", "'odd'", "'in', [1, 'a']", "'nope'", "'==', 'a'", "'gt', 0"],
    "rejectattr": [
        "'n'",
        "'n', 'none'",
        "'n', 'eq', 'a'",
        "'role', 'equalto', 'system'",
        "'n.m'",
        "0",
        "",
        "'v', 'gt', 1",
    ],
    "replace": ["'a', 'b'", "'a', 'b', 1", "'', '-'", "'a', 'b', none", "1, 2", "'a'", "' ', ''", "old='a', new='b'"],
    "reverse": [""],
    "round": ["", "1", "2", "0, 'ceil'", "1, 'floor'", "method='ceil'", "1, 'x'", "-1", "none"],
    "safe": [""],
    "select": ["", "'defined'", "'eq', 1", "'string'", "'even'", "'in', [1, 'a']", "'mapping'", "'lt', 3"],
    "selectattr": ["'n'", "'n', 'defined'", "'n', 'eq', 'a'", "'role', 'equalto', 'system'", "'n', 'in', ['a', 'b']"],
    "slice": ["2", "3, '-'", "0", "'a'", "slices=2"],
    "sort": [
        "",
        "true",
        "reverse=true",
        "attribute='n'",
        "attribute='v,n'",
        "case_sensitive=true",
        "'x'",
        "attribute=0",
    ],
    "string": ["", "1"],
    "sum": ["", "'v'", "'v', 10", "start=3", "none, ''", "none, 1.5"],
    "title": [""],
    "tojson": [
        *("", "true", "false, 2", "ensure_ascii=true", "indent=4", "indent=2, sort_keys=true", "separators=(',', ':')"),
        *("separators=[',', ': '], sort_keys=true", "indent=0", "indent='\\t'", "foo=1", "1", "indent=true"),
    ],
    "trim": ["", "'x'", "'ab '", "none", "''", "1", "chars='a'"],
    "truncate": ["", "5", "5, true", "10, false, '!'", "10, true, '', 0", "2", "length=6, killwords=true, leeway=0"],
    "unique": ["", "true", "attribute='n'", "case_sensitive=true"],
    "upper": ["", "1"],
    "wordcount": [""],
}
PRINTED = ["[v|{}]", "v|{}|list"]


def _filter_cases(name: str) -> Iterator[tuple[str, Variables]]:
    for arguments in FILTERS[name]:
        call = f"{name}({arguments})" if arguments else name
        for printed in [*PRINTED, "v|{}|length", "v|{}"] if arguments == FILTERS[name][0] else PRINTED:
            source = f"{{{{ {printed.format(call)} }}}}"
            for value in SUBJECTS:
                yield source, {"v": value}
        for form, values in FORMS.items():
            for value in values:
                yield f"{{{{ [{form.format('v')}|{call}] }}}}", {"v": value}
                yield f"{{{{ {form.format('v')}|{call}|list }}}}", {"v": value}


@pytest.mark.parametrize("name", FILTERS)
def test_filter(name: str) -> None:
    seen = check(_filter_cases(name))
    assert seen["native"] > 10, seen


TESTS: dict[str, list[str]] = {
    **{name: ["", "1"] for name in ("boolean", "callable", "defined", "escaped", "even", "false", "float", "integer")},
    **{name: [""] for name in ("iterable", "lower", "mapping", "none", "number", "odd", "sequence", "string", "true")},
    **{name: [""] for name in ("undefined", "upper")},
    **{name: ["1", "'a'", "none", "u", "[]", "true", "1.0", ""] for name in ("eq", "equalto", "ne", "sameas")},
    **{name: ["1", "'a'", "none", "[1]"] for name in ("ge", "gt", "greaterthan", "le", "lt", "lessthan")},
    "divisibleby": ["1", "2", "0", "1.5", "'a'", "num=2", ""],
    "in": ["[1, 'a']", "'abc'", "{'a': 1}", "none", "u", "(1,)"],
}
SYMBOLS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


@pytest.mark.parametrize("name", TESTS)
def test_test(name: str) -> None:
    def cases() -> Iterator[tuple[str, Variables]]:
        for arguments in TESTS[name]:
            call = f"{name}({arguments})" if arguments else name
            for value in SUBJECTS:
                yield f"{{{{ [v is {call}, v is not {call}] }}}}", {"v": value}
            for form, values in FORMS.items():
                for value in values:
                    yield f"{{{{ [{form.format('v')} is {call}] }}}}", {"v": value}

    seen = check(cases())
    assert seen["native"] > 5, seen


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_symbolic_test(symbol: str) -> None:
    source = f"{{{{ v|select({symbol!r}, 1)|list }}}}"
    assert check((source, {"v": value}) for value in SUBJECTS)["native"] > 5


def test_functions() -> None:
    bounds = [None, MISSING, True, 0, 1, 3, -2, 5, 100_000, 100_001, 2**70, 1.5, "a"]
    cases: list[tuple[str, Variables]] = [("{{ [range(a)] }}", {"a": a}) for a in bounds]
    cases += [("{{ range(a, b)|list|length }}", {"a": a, "b": b}) for a, b in itertools.product(bounds, bounds)]
    for row in itertools.product(bounds, bounds, bounds):
        cases.append(("{{ range(a, b, c)|list|length }}", dict(zip("abc", row, strict=True))))
        cases.append(("{{ [range(a, b, c)[1]] }}", dict(zip("abc", row, strict=True))))
    for value in [*SUBJECTS, [("a", 1)], [["a", 1], ["b", 2]], [("a", 1, 2)], ["ab", "cd"], {"_x": 1}]:
        for call in ("dict(v)", "dict(v, b=2, c=3)", "dict(v, v)"):
            cases.append((f"{{{{ [{call}] }}}}", {"v": value}))
        for call in ("namespace(v)", "namespace(v, b=2)"):
            cases.append((f"{{% set n = {call} %}}{{{{ [n.a, n.b, n.items] }}}}", {"v": value}))
    cases += [("{{ [dict(), dict(a=1)] }}", {}), ("{{ raise_exception('x') }}", {}), ("{{ dict(self=1) }}", {})]
    seen = check(cases)
    assert seen["native"] > 200, seen


# Every name that templates may use, with an expression that must be served natively.

METHODS: dict[str, str] = {
    "capitalize": "'aB'.capitalize()",
    "casefold": "'AB'.casefold()",
    "center": "'a'.center(4)",
    "copy": "[1].copy()",
    "count": "'aa'.count('a')",
    "endswith": "'ab'.endswith('b')",
    "expandtabs": r"'a\tb'.expandtabs()",
    "find": "'ab'.find('b')",
    "format": "'{}'.format(1)",
    "get": "{'a': 1}.get('a')",
    "index": "'ab'.index('b')",
    "isalnum": "'a1'.isalnum()",
    "isalpha": "'a'.isalpha()",
    "isascii": "'é'.isascii()",
    "isdecimal": "'1'.isdecimal()",
    "isdigit": "'1'.isdigit()",
    "isidentifier": "'a1'.isidentifier()",
    "islower": "'a'.islower()",
    "isnumeric": "'1'.isnumeric()",
    "isprintable": "'é'.isprintable()",
    "isspace": "' '.isspace()",
    "istitle": "'Ab'.istitle()",
    "isupper": "'A'.isupper()",
    "items": "{'a': 1}.items()",
    "join": "','.join(['a', 'b'])",
    "keys": "{'a': 1}.keys()",
    "ljust": "'a'.ljust(3)",
    "lower": "'ÀB'.lower()",
    "lstrip": "' a '.lstrip()",
    "partition": "'a=b'.partition('=')",
    "removeprefix": "'ab'.removeprefix('a')",
    "removesuffix": "'ab'.removesuffix('b')",
    "replace": "'aa'.replace('a', 'b', 1)",
    "rfind": "'aa'.rfind('a')",
    "rindex": "'aa'.rindex('a')",
    "rjust": "'a'.rjust(3)",
    "rpartition": "'a=b=c'.rpartition('=')",
    "rsplit": "'a b c'.rsplit(' ', 1)",
    "rstrip": "' a '.rstrip()",
    "split": "'a b'.split()",
    "splitlines": r"'a\nb'.splitlines()",
    "startswith": "'ab'.startswith('a')",
    "strip": "' a '.strip()",
    "swapcase": "'aB'.swapcase()",
    "title": "'ab'.title()",
    "upper": "'aß'.upper()",
    "values": "{'a': 1}.values()",
    "zfill": "'-1'.zfill(4)",
}
REFUSED_METHODS = [
    *("append", "clear", "encode", "extend", "format_map", "fromkeys", "insert", "maketrans", "pop", "popitem"),
    *("remove", "reverse", "setdefault", "sort", "translate", "update"),
]
"""Listed, because a template may hold a call of them that it does not reach: `{% if 'x' is not defined %}`."""

NATIVE_FILTERS: dict[str, str] = {
    "abs": "-3|abs",
    "batch": "[1, 2, 3]|batch(2)|list",
    "capitalize": "'aB'|capitalize",
    "center": "'a'|center(4)",
    "count": "[1]|count",
    "d": "u|d('x')",
    "default": "u|default('x')",
    "dictsort": "{'b': 1, 'a': 2}|dictsort",
    "e": "'<'|e",
    "escape": "'<'|escape",
    "first": "[1, 2]|first",
    "float": "'1.5'|float",
    "format": "'%s'|format(1)",
    "indent": r"'a\nb'|indent(2)",
    "int": "'42'|int",
    "items": "{'a': 1}|items|list",
    "join": "[1, 2]|join(', ')",
    "last": "[1, 2]|last",
    "length": "'日本'|length",
    "list": "'ab'|list",
    "lower": "'AB'|lower",
    "map": "['a']|map('upper')|list",
    "max": "[1, 2]|max",
    "min": "[1, 2]|min",
    "reject": "[1, 2]|reject('odd')|list",
    "rejectattr": "[{'a': 1}]|rejectattr('b')|list",
    "replace": "'a'|replace('a', 'b')",
    "reverse": "[1, 2]|reverse|list",
    "round": "2.5|round",
    "safe": "'<'|safe",
    "select": "[1, 2]|select('odd')|list",
    "selectattr": "[{'a': 1}]|selectattr('a')|list",
    "slice": "[1, 2, 3]|slice(2)|list",
    "sort": "[2, 1]|sort",
    "string": "1.0|string",
    "sum": "[1, 2]|sum",
    "title": "'a-b'|title",
    "tojson": "{'a': [1, none]}|tojson",
    "trim": "' a '|trim",
    "truncate": "'aaa bbb ccc ddd'|truncate(9)",
    "unique": "[1, 1]|unique|list",
    "upper": "'ab'|upper",
    "wordcount": "'a b'|wordcount",
}

NATIVE_TESTS: dict[str, str] = {
    **{symbol: f"[1, 2]|select({symbol!r}, 1)|list" for symbol in SYMBOLS},
    **{name: f"1 is {name}" for name in TESTS if TESTS[name][0] == ""},
    **{name: f"1 is {name}(1)" for name in ("eq", "equalto", "ge", "gt", "greaterthan", "le", "lt", "lessthan", "ne")},
    "divisibleby": "4 is divisibleby(2)",
    "in": "1 is in([1])",
    "sameas": "true is sameas(true)",
}

NATIVE_FUNCTIONS: dict[str, str] = {
    "dict": "dict(a=1)",
    "range": "range(3)|list",
}


@pytest.mark.parametrize(
    "expression",
    [*METHODS.values(), *NATIVE_FILTERS.values(), *NATIVE_TESTS.values(), *NATIVE_FUNCTIONS.values()],
)
def test_example_is_native(expression: str) -> None:
    assert outcome(f"{{{{ [{expression}] }}}}", {}) == "native"
    # As a value too: literals may take another way.
    moved = re.sub(r"^('[^']*'|\[[^\]]*\]|\{[^}]*\}|-?[0-9.]+)(?=[.| ])", "(v[0])", expression)
    if moved != expression:
        literal = re.match(r"^('[^']*'|\[[^\]]*\]|\{[^}]*\}|-?[0-9.]+)(?=[.| ])", expression)
        assert literal is not None
        value = ast.literal_eval(literal[0].replace("none", "None"))
        assert outcome(f"{{{{ [{moved}] }}}}", {"v": [value]}) == "native"


def test_functions_that_are_no_values_are_native() -> None:
    assert outcome("{% set n = namespace(a=1) %}{% set n.a = n.a + 1 %}{{ n.a }}", {}) == "native"
    assert outcome("{% if false %}{{ raise_exception('x') }}{% endif %}a", {}) == "native"
    template = _native.Template("{{ strftime_now('%d %b') }}|{{ strftime_now(f) }}")
    assert template.clock_formats == ["%d %b"]
    prompt = template.render([], {"f": "%d %b"}, {"%d %b": "26 Jul"}, 0)
    assert (prompt.reason, prompt.text) == (None, "26 Jul|26 Jul")
    assert template.render([], {"f": "%Y"}, {"%d %b": "26 Jul"}, 0).reason == "render:strftime"


@pytest.mark.parametrize("method", REFUSED_METHODS)
def test_refused_method_may_stand_where_it_is_not_reached(method: str) -> None:
    source = f"{{% if v %}}{{{{ v.{method}(1) }}}}{{% endif %}}a"
    assert outcome(source, {}) == "native"
    assert outcome(source, {"v": [1]}) == "refused"
    assert outcome(source, {"v": "a"}) == "refused"
    assert outcome(source, {"v": {"a": 1}}) == "refused"


def test_every_listed_name_has_an_example() -> None:
    listed = {
        "methods": {*METHODS, *REFUSED_METHODS},
        "filters": set(NATIVE_FILTERS),
        "tests": set(NATIVE_TESTS),
        "functions": {*NATIVE_FUNCTIONS, "namespace", "raise_exception", "strftime_now"},
    }
    assert set(FILTERS) == set(NATIVE_FILTERS)
    assert {*TESTS, *SYMBOLS} == set(NATIVE_TESTS)
    for module, examples in listed.items():
        file = "attributes" if module == "methods" else module
        source = Path(__file__).parents[2] / "src" / "semantics" / f"{file}.rs"
        if not source.exists():
            pytest.skip("the Rust sources are not here")
        text = source.read_text(encoding="utf-8")
        table = re.search(r"pub const NAMES: &\[&str\] = &\[\s*([^$\]]*?)\];", text)
        names = set(re.findall(r'"([^"]+)"', table[1])) if table else set()
        for kind in ("STR", "LIST", "DICT") if module == "methods" else ():
            of_kind = re.search(rf"const {kind}: &\[&str\] = &\[(.*?)\];", text, re.DOTALL)
            assert of_kind
            names |= set(re.findall(r'"([^"]+)"', of_kind[1]))
        names = names or set(re.findall(r'^ +"([^"]+)" => \|', text, re.MULTILINE)) | set(
            re.findall(r'^ +"(map)" => map', text, re.MULTILINE)
        )
        assert names == examples, module


# What shows only over several steps.

STEPS = [
    ("{% set g = v|map('string') %}{{ g|list }}{{ g|list }}", [1], "refused"),
    (
        "{% set g = v|map('string') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}",
        [1],
        "refused",
    ),
    ("{% set g = v|map('string') %}{% for x in g %}{{ x }}{{ loop.last }}{% endfor %}", [1, 2], "native"),
    ("{% if v|select %}yes{% endif %}", [], "native"),
    ("{% if v|selectattr('a')|list %}yes{% endif %}", [], "native"),
    ("{% set n = namespace() %}{% set n.a = v %}{{ n.a }}{{ n.b }}", [1], "native"),
    ("{% for c in v %}{{ loop.index }}{{ c }}{% if not loop.last %},{% endif %}{% endfor %}", "a日😀", "native"),
    ("{% macro m(x, y=1) %}{{ x }}{{ y }}{% endmacro %}{{ m(v) + '<' }}", "a", "native"),
    ("{% set x %}<{{ v }}>{% endset %}{{ x + '&' }}", "a", "native"),
    ("{% set x = v|tojson|safe %}{{ '<' + x }}{{ '<' ~ x }}{{ x }}", {"a": "<"}, "native"),
    ("{% set x = v|safe if v else v|string %}{{ 'a<' + x }}", "b", "native"),
    ("{{ v|tojson|safe|length }}{{ v|tojson|safe == v|tojson }}", {"a": 1}, "native"),
    ("{{ (v|safe).strip() }}", " a ", "refused"),
    ("{{ v.items()|list + [1] }}", {"a": 1}, "native"),
    ("{% filter length %}{{ v }}{% endfilter %}", "ab", "refused"),
    ("{% filter list %}{{ v }}{% endfilter %}", "ab", "refused"),
    ("{% filter first %}{{ v }}{% endfilter %}", "", "refused"),
    ("{% filter first %}{{ v }}{% endfilter %}", "ab", "native"),
    ("{% filter upper %}{% filter length %}{{ v }}{% endfilter %}{% endfilter %}", "ab", "refused"),
    ("{% filter safe %}<{{ v }}{% endfilter %}", "ab", "native"),
    ("{% set x | length %}{{ v }}{% endset %}{{ x + 1 }}", "ab", "native"),
    ("{% for k, x in v.items() %}{{ k }}{{ x }}{{ loop.last }}{% endfor %}", {"a": 1, "b": 2}, "native"),
    ("{% for k, x in v|dictsort %}{{ k }}{{ x }}{% endfor %}", {"b": 1, "A": 2}, "native"),
    ("{% for k in v %}{{ k }}{{ v[k] }}{{ loop.length }}{% endfor %}", {"a": 1, "b": 2}, "native"),
    ("{% for x in range(3) %}{{ x }}{{ loop.revindex }}{{ loop.last }}{% endfor %}", None, "native"),
    ("{{ v|groupby('a') }}", [{"a": 1}], "refused"),
    ("{% if v %}{{ v|nosuch }}{% else %}a{% endif %}", [], "native"),
    ("{% if v %}{{ v|nosuch }}{% else %}a{% endif %}", [1], "refused"),
    ("{% if v %}{% for x in v %}{{ x|nosuch }}{% endfor %}{% else %}a{% endif %}", [], "refused"),
    ("{{ (v|nosuch) if v else 'a' }}{{ 'b' if not v else v is nosuch }}", [], "native"),
    ("{% if v %}{{ v|pprint }}{{ v.nosuch() }}{{ nosuch(v) }}{{ 'x' is filter }}{% endif %}a", [], "native"),
    ("{% if v %}{{ v.nosuch() }}{% endif %}a", [1], "refused"),
]


@pytest.mark.parametrize(("source", "value", "expected"), STEPS)
def test_steps(source: str, value: Any, expected: Outcome) -> None:
    assert outcome(source, {"v": value}) == expected
