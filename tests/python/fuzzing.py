# ruff: noqa: E501  # tables of strings
"""Random templates and values, rendered by jinja2 as transformers configures it and by us: equal, or refused.

Three sources of templates. The grammar writes expressions and statements that mostly make sense: an expression is asked
for by type and gets another one now and then, since what the reference refuses teaches less than what it prints. The
mutator deletes, doubles, swaps and replaces tokens of templates (the grammar's, and real ones if there are any), which
is where two parsers disagree. Values are those of chats and those on which engines have differed: text past ASCII,
floats, large ints, tuples, missing keys.

A case passes if ours gives the reference's text, and says which parts of it `generation` tags wrote, or a reason. A panic, another text, or a text where the reference
raises is a difference. A case is a function of its seed, so `case(seed)` makes it again.

By hand: `python tests/python/fuzzing.py --minutes 5 --seed 1` (the extension and tests/python on PYTHONPATH); it prints
what it found, and its exit code is 1 if that is anything. CONTRIBUTING.md says how long it should have run.
"""

import argparse
import json
import random
import re
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import transformers.tokenization_utils_base  # noqa: F401  # what `assistant_mask` probes
from transformers.utils import chat_template_utils

from turntrie import _native, assistant_mask

Variables = dict[str, Any]


class Case(NamedTuple):
    """One comparison."""

    source: str
    messages: list[dict[str, Any]]
    variables: Variables


class Result(NamedTuple):
    """What a case came to: `equal`, `refused` with our reason, `skipped`, or `different` with both sides."""

    verdict: str
    detail: str


STRINGS = (
    *(
        "",
        "a",
        "ab",
        "b",
        "x y",
        " a ",
        "\n",
        "a\nb",
        "a\r\nb",
        "  \t",
        "é",
        "ß",
        "İ",
        "日本",
        "😀x",
        "\xa0",
        "\u2028",
        "ǆ",
    ),
    *(
        "%s",
        "%d%%",
        "{}",
        "{0!r}",
        "role",
        "content",
        "items",
        "user",
        "0",
        "12",
        "-3",
        "1.5",
        "1e3",
        "it's",
        '"',
        "'\"",
    ),
    *(
        "\\",
        "\\n",
        "<b>&",
        "</think>",
        "<think>x</think>y",
        "__class__",
        "a,b,,c",
        "aXbX",
        "\x00",
        "\x1c",
        "\x7f",
        "Ω",
        "ﬁ",
    ),
    *("e\u0301", "None", "True", "A-b c", "{'a': 1}", "[1]", "\u200b", "\ue000", "\U0010ffff"),
)
INTS = (0, 1, 2, 3, -1, -2, 5, 7, 10, -7, 100, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**25)
FLOATS = (
    0.0,
    -0.0,
    0.5,
    1.0,
    -2.5,
    1e16,
    1e-5,
    1.1,
    2.675,
    1e300,
    123456789.125,
    float("inf"),
    float("nan"),
    1e22,
    5e-324,
)
NAMES = ("a", "b", "c", "d", "messages", "tools", "m", "x", "y", "k", "v", "nothing")
KEYS = ("a", "b", "role", "content", "items", "name", "keys", "0", "x", "tool_calls", "get", "_x", "upper")
OPERATORS = ("+", "-", "*", "/", "//", "%", "~", "and", "or", "==", "!=", "<", "<=", ">", ">=", "in", "not in")

# Names with arguments that mostly fit: S(tring), I(nt), N(umber), L(ist), D(ict), A(ny), B(ool); results likewise.
FILTERS = {
    "S": {
        **dict.fromkeys(("capitalize", "lower", "upper", "title", "trim", "string", "e", "safe", "escape"), ("S",)),
        "center": ("SI",), "default": ("S", "SA", "SAB"), "d": ("SA",), "first": ("S",), "last": ("S",),
        "format": ("SA", "SAA"), "indent": ("S", "SI", "SIB", "SIBB"), "join": ("L", "LS"),
        "replace": ("SSS", "SSSI"), "tojson": ("A", "A", "D", "L"), "truncate": ("SI", "SIB"), "trim ": ("SS",),
    },
    "I": {
        **dict.fromkeys(("length", "count"), ("S", "L", "D")), "wordcount": ("S",), "int": ("S", "N", "SI"),
        "abs": ("N",), "round": ("N", "NI"), "float": ("S", "N"), "sum": ("L",), "max": ("L",), "min": ("L",),
    },
    "L": {
        "list": ("S", "L", "D"), "sort": ("L", "LB"), "dictsort": ("D",), "items": ("D",), "reverse": ("L", "S"),
        "unique": ("L",), "batch": ("LI",), "slice": ("LI",), "map": ("LF",), "select": ("L", "LT"), "reject": ("LT",),
        "selectattr": ("LK", "LKT"), "rejectattr": ("LK", "LKT"), "map ": ("La",),
    },
}  # fmt: skip
METHODS = {
    "S": {
        **dict.fromkeys(
            ("capitalize", "casefold", "lower", "upper", "title", "swapcase", "strip", "lstrip", "rstrip"), ("",)
        ),
        "strip": ("", "S"), "lstrip": ("", "S"), "rstrip": ("", "S"), "replace": ("SS", "SSI"), "zfill": ("I",),
        "center": ("I", "IS"), "ljust": ("I",), "rjust": ("I",), "removeprefix": ("S",), "removesuffix": ("S",),
        "join": ("L",), "format": ("", "A", "AA"), "expandtabs": ("", "I"),
    },
    "I": {
        **dict.fromkeys(
            ("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric"), ("",)
        ),
        **dict.fromkeys(("isprintable", "isspace", "istitle", "isupper"), ("",)),
        **dict.fromkeys(("count", "find", "index", "rfind", "rindex", "startswith", "endswith"), ("S", "SI", "SII")),
    },
    "L": {
        "split": ("", "S", "SI"), "rsplit": ("", "S", "SI"), "splitlines": ("", "B"), "partition": ("S",),
        "rpartition": ("S",),
    },
    "D": {"items": ("",), "keys": ("",), "values": ("",), "get": ("K", "KA"), "copy": ("",)},
}  # fmt: skip
TESTS = (
    *("defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence"),
    *("iterable", "callable", "true", "false", "odd", "even", "lower", "upper", "escaped", "divisibleby(3)", "eq('a')"),
    *("in([1, 'a'])", "ne(1)", "lt(3)", "ge(2)", "sameas(none)", "gt(0)", "filter", "test", "nosuch"),
)


BLOCK_FILTERS = ("upper", "trim", "indent(2)", "replace(1, 2)", "safe", "first", "length", "trim|tojson", "list|join")


class Grammar:
    """Writes one template from a random source."""

    def __init__(self, rng: random.Random) -> None:
        """Starts with no macro, loop or namespace in scope."""
        self.rng = rng
        self.budget = rng.choice((6, 15, 40, 80))
        self.macros: list[tuple[str, int]] = []
        self.spaces: list[str] = []
        self.loops = 0

    # Expressions.

    def expr(self, kind: str = "A", depth: int = 0) -> str:
        """An expression, mostly of `kind`."""
        rng = self.rng
        self.budget -= 1
        if rng.random() < 0.07:
            kind = rng.choice("SINLDBA")
        if depth > 4 or self.budget < 0 or rng.random() < 0.22:
            return self.leaf(kind)
        deeper = depth + 1
        general: list[Callable[[], str]] = [
            lambda: f"({self.expr(kind, deeper)} if {self.expr('B', deeper)} else {self.expr(kind, deeper)})",
            lambda: f"({self.expr(kind, deeper)} {rng.choice(('or', 'and'))} {self.expr(kind, deeper)})",
            lambda: f"{self.operand('D', deeper)}.{rng.choice([key for key in KEYS if key != '0'])}",
            lambda: f"{self.operand('D', deeper)}[{self.leaf('K')}]",
            lambda: f"{self.operand('L', deeper)}[{self.expr('I', deeper)}]",
            lambda: f"{self.operand(kind, deeper)}|default({self.expr(kind, deeper)})",
            lambda: f"({self.expr('A', deeper)} {rng.choice(OPERATORS)} {self.expr('A', deeper)})",
            lambda: f"({self.expr(kind, deeper)})",
        ]
        special: dict[str, list[Callable[[], str]]] = {
            "S": [
                lambda: f"({self.expr('S', deeper)} {rng.choice('+~~')} {self.expr('S', deeper)})",
                lambda: f"{self.expr('S', deeper)} ~ {self.expr('A', deeper)}",
                lambda: self.filtered("S", deeper),
                lambda: self.method("S", deeper),
                lambda: self.slice("S", deeper),
                lambda: f"({self.expr('S', deeper)} % {self.expr('A', deeper)})",
                lambda: f"({self.expr('S', deeper)} * {rng.choice((0, 1, 2, 3))})",
            ],
            "I": [
                lambda: (
                    f"({self.expr('N', deeper)} {rng.choice(('+', '-', '*', '/', '//', '%'))} {self.expr('N', deeper)})"
                ),
                lambda: self.filtered("I", deeper),
                lambda: self.method("I", deeper),
                lambda: f"-{self.operand('N', deeper)}",
                lambda: f"({self.leaf('N')} ** {rng.choice((0, 1, 2, 3, -1))})",
            ],
            "L": [
                lambda: self.filtered("L", deeper),
                lambda: self.method("L", deeper),
                lambda: self.slice("L", deeper),
                lambda: f"[{self.several(deeper)}]",
                lambda: f"({self.several(deeper)},)",
                lambda: f"({self.expr('L', deeper)} + {self.expr('L', deeper)})",
                lambda: f"range({rng.choice((0, 1, 3, 5))})",
                lambda: f"{self.operand('D', deeper)}.{rng.choice(('items', 'keys', 'values'))}()|list",
            ],
            "D": [
                lambda: f"{{{self.pairs(deeper)}}}",
                lambda: f"dict({rng.choice(('a', 'b', 'role'))}={self.expr('A', deeper)})",
                lambda: f"{self.operand('L', deeper)}[0]",
                lambda: self.method("D", deeper),
            ],
            "B": [
                lambda: f"({self.expr('A', deeper)} {rng.choice(OPERATORS[9:])} {self.expr('A', deeper)})",
                lambda: f"{self.operand('A', deeper)} is {rng.choice(('', 'not '))}{rng.choice(TESTS)}",
                lambda: f"not {self.operand('A', deeper)}",
                lambda: self.method("I", deeper),
                lambda: f"({self.leaf('N')} < {self.leaf('N')} <= {self.leaf('N')})",
                lambda: f"{self.expr('S', deeper)} in {self.expr('S', deeper)}",
            ],
        }
        special["N"] = special["I"]
        mine = special.get(kind) or special[rng.choice("SILDB")]
        return rng.choice(mine if rng.random() < 0.75 else general)()

    def operand(self, kind: str, depth: int) -> str:
        """An expression that a postfix may follow."""
        text = self.expr(kind, depth)
        return (
            text
            if re.fullmatch(r"[a-z][\w.]*|\([^()]*\)|\[[^\[\]]*\]", text) and self.rng.random() < 0.9
            else f"({text})"
        )

    def several(self, depth: int) -> str:
        """Items of a list."""
        return ", ".join(self.expr("A", depth) for _ in range(self.rng.choice((0, 1, 2, 3))))

    def pairs(self, depth: int) -> str:
        """Entries of a dict."""
        return ", ".join(f"{self.leaf('K')}: {self.expr('A', depth)}" for _ in range(self.rng.choice((0, 1, 2))))

    def slice(self, kind: str, depth: int) -> str:
        """A slice of a string or list."""
        bounds = [str(self.rng.choice(("", "", 0, 1, 2, -1, -2, 9, -9))) for _ in range(3)]
        bounds[2] = self.rng.choice(("", "", "1", "2", "-1", "-2"))
        return f"{self.operand(kind, depth)}[{bounds[0]}:{bounds[1]}{':' + bounds[2] if bounds[2] else ''}]"

    def filtered(self, kind: str, depth: int) -> str:
        """A filter whose result is of `kind`."""
        name = self.rng.choice(list(FILTERS[kind]))
        value, *arguments = self.rng.choice(FILTERS[kind][name])
        given = ", ".join(self.argument(a, depth) for a in arguments)
        keyword = "attribute=" if arguments == ["a"] else ""
        if self.rng.random() < 0.02:
            name = self.rng.choice(("pprint", "nosuch", "groupby", "striptags"))
        if name == "tojson" and self.rng.random() < 0.4:
            options = ("indent=2", "sort_keys=true", "ensure_ascii=true", "separators=(',', ':')", "indent=none")
            given = self.rng.choice(options)
        if name in {"sort", "map "} and self.rng.random() < 0.3:
            given, keyword = repr(self.rng.choice(KEYS)), "attribute="
        return f"{self.operand(value, depth)}|{name.strip()}{f'({keyword}{given})' if given else ''}"

    def method(self, kind: str, depth: int) -> str:
        """A method call whose result is of `kind`."""
        name = self.rng.choice(list(METHODS[kind]))
        given = ", ".join(self.argument(a, depth) for a in self.rng.choice(METHODS[kind][name]))
        return f"{self.operand('D' if kind == 'D' else 'S', depth)}.{name}({given})"

    def argument(self, kind: str, depth: int) -> str:
        """An argument of a filter or method."""
        if kind in {"K", "a"}:
            return repr(self.rng.choice(KEYS))
        if kind == "F":
            return repr(self.rng.choice(("upper", "string", "length", "list", "first", "tojson", "int", "trim")))
        if kind == "T":
            return self.rng.choice(("'defined'", "'string'", "'odd'", "'eq', 1", "'in', ['a', 1]", "'none'", "'=='"))
        return self.expr(kind, depth + 2)

    def leaf(self, kind: str) -> str:  # noqa: PLR0911  # one return a kind
        """A name or a literal."""
        rng = self.rng
        if kind == "K":
            return repr(rng.choice(KEYS)) if rng.random() < 0.9 else self.leaf("A")
        if rng.random() < 0.5:
            names = list(NAMES)
            if self.loops:
                attributes = (
                    "index",
                    "index0",
                    "first",
                    "last",
                    "length",
                    "revindex",
                    "revindex0",
                    "depth",
                    "previtem",
                )
                names += [f"loop.{rng.choice(attributes)}", "loop.nextitem", "x", "x"]
            names += [f"{space}.{rng.choice('pq')}" for space in self.spaces]
            fitting = {"S": ["a", "m.content", "m.role", "k"], "L": ["messages", "c", "tools"], "D": ["m", "d", "x"]}
            return rng.choice(fitting.get(kind, names) if rng.random() < 0.7 else names)
        if kind == "S":
            return self.string()
        if kind in {"I", "N"}:
            return self.number(kind)
        if kind == "L":
            return rng.choice(("[]", "[1, 2, 3]", "['a', 'b']", "()", "('a', 1)", "[[1], [2]]", "[{'a': 1}, {'b': 2}]"))
        if kind == "D":
            return rng.choice(("{}", "{'a': 1}", "{'role': 'user', 'content': 'x'}", "{'items': 1, 'b': {'a': none}}"))
        if kind == "B":
            return rng.choice(("true", "false", "True", "False", "none"))
        return self.leaf(rng.choice("SINLDB"))

    def string(self) -> str:
        """A string literal."""
        text = self.rng.choice(STRINGS)
        if self.rng.random() < 0.1:
            return (
                "'" + self.rng.choice((r"\n", r"\t", r"\\", r"\'", r"\u00e9", r"\x41", r"\d", r"\s", "{{", "%}")) + "'"
            )
        body = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\x00", "0")
        return '"' + body.replace('"', '\\"') + '"' if self.rng.random() < 0.3 else "'" + body.replace("'", "\\'") + "'"

    def number(self, kind: str) -> str:
        """A number literal."""
        if kind == "N" and self.rng.random() < 0.4:
            return self.rng.choice(("0.5", "1.0", "2.5", "1.1", "0.0", "10.25"))
        return str(self.rng.choice((0, 1, 2, 3, 5, 7, 10, 12, 100)))

    # Statements.

    def tag(self, body: str) -> str:
        """A statement tag with blank control."""
        marks = ("", "", "", "-", "-", "+")
        return f"{{%{self.rng.choice(marks)} {body} {self.rng.choice(('', '', '-', '-', '+'))}%}}"

    def text(self) -> str:
        """Template text, mostly blanks and line ends."""
        texts = ("", " ", "\n", "\n\n", "  ", "\t", "x", "<|im_start|>", " a\n", "\n  b  \n", "é", "}", "\r\n", "#")
        return "".join(self.rng.choice(texts) for _ in range(self.rng.choice((0, 1, 1, 2))))

    def body(self, depth: int) -> str:
        """Statements and text."""
        parts = [self.text()]
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            parts += [self.stmt(depth), self.text()]
        return "".join(parts)

    def emit(self) -> str:
        """An output tag."""
        value = self.expr(self.rng.choice("SSSILDBA"))
        if self.rng.random() < 0.25:
            value = f"[{value}]"
        return f"{{{{{self.rng.choice(('', '', '-', '+'))} {value} {self.rng.choice(('', '', '-'))}}}}}"

    def stmt(self, depth: int = 0) -> str:  # noqa: C901, PLR0911, PLR0912  # one branch a kind of statement
        """A statement."""
        rng = self.rng
        if depth > 3 or self.budget < 0:
            return self.emit()
        kind = rng.choice("eeeeeiiiffssStnmwgFcb")
        if kind == "i":
            branches = self.tag(f"if {self.expr('B')}") + self.body(depth + 1)
            if rng.random() < 0.3:
                branches += self.tag(f"elif {self.expr('B')}") + self.body(depth + 1)
            if rng.random() < 0.5:
                branches += self.tag("else") + self.body(depth + 1)
            return branches + self.tag("endif")
        if kind == "f" and self.loops < 3:
            return self.loop(depth)
        if kind == "s":
            target = rng.choice(("a", "b", "k", "y", "x", "v", "x, y"))
            return self.tag(f"set {target} = {self.expr('L' if ',' in target else 'A')}")
        if kind == "S":
            name = rng.choice("aby")
            return (
                self.tag(f"set {name}{rng.choice(('', '', ' | trim', ' | upper', ' | length', ' | list'))}")
                + self.body(depth + 1)
                + self.tag("endset")
            )
        if kind == "n":
            return self.namespace()
        if kind == "m":
            return self.macro(depth)
        if kind == "w":
            return self.tag(f"with {rng.choice('aby')} = {self.expr('A')}") + self.body(depth + 1) + self.tag("endwith")
        if kind == "g":
            return self.tag("generation") + self.body(depth + 1) + self.tag("endgeneration")
        if kind == "F":
            return self.tag(f"filter {rng.choice(BLOCK_FILTERS)}") + self.body(depth + 1) + self.tag("endfilter")
        if kind == "c":
            return rng.choice(("{# c #}", "{#- c -#}", "{# {{ a }} #}\n", "{#\n#}", "{#+ c +#}\n", " {#- c #}"))
        if kind == "b" and self.loops:
            return self.tag(f"if {self.expr('B')}") + self.tag(rng.choice(("break", "continue"))) + self.tag("endif")
        return self.emit()

    def loop(self, depth: int) -> str:
        """A loop."""
        rng = self.rng
        if self.loops and self.spaces and rng.random() < 0.3:
            return self.search()
        target, kind = rng.choice((("x", "L"), ("m", "L"), ("k, v", "I"), ("x", "S")))
        iterable = "messages" if target == "m" else self.expr(kind)
        if kind == "I":
            iterable = f"{self.operand('D', 2)}.items()"
        head = f"for {target} in {iterable}"
        if rng.random() < 0.15:
            head += f" if {self.expr('B')}"
        self.loops += 1
        text = self.tag(head) + self.body(depth + 1)
        self.loops -= 1
        if rng.random() < 0.2:
            text += self.tag("else") + self.body(depth + 1)
        return text + self.tag("endfor")

    def search(self) -> str:
        """A loop that only looks for something."""
        rng = self.rng
        iterable = rng.choice(("messages", f"messages[{self.expr('I')}:]", self.expr("L"), self.expr("A")))
        value = rng.choice(("true", "1", "'a'", "none"))
        return (
            f"{{%- for x in {iterable} -%}}{{%- if {self.condition()} -%}}"
            f"{{%- set {rng.choice(self.spaces)}.{rng.choice('pq')} = {value} -%}}{{%- endif -%}}{{%- endfor -%}}"
        )

    def condition(self, depth: int = 0) -> str:
        """A condition on `x`, mostly of a kind that messages are looked for by."""
        rng = self.rng
        key = rng.choice(("role", "content", *KEYS))
        part = rng.choice((f"x['{key}']", f"x.{'b' if key == '0' else key}"))
        literal = rng.choice(("'user'", "'assistant'", "'a'", "''", "1", "none"))
        simple = (
            *(part, f"{part} == {literal}", f"{part} != {literal}", f"{literal} in x", f"{literal} not in x"),
            *(f"{part} is defined", f"{literal} == {part}", "x", self.expr("B")),
        )
        if depth > 2 or rng.random() < 0.5:
            return rng.choice(simple[:5] if rng.random() < 0.9 else simple)
        both = f"({self.condition(depth + 1)} {rng.choice(('and', 'or'))} {self.condition(depth + 1)})"
        return rng.choice((both, both, f"not {self.condition(depth + 1)}"))

    def namespace(self) -> str:
        """A new namespace, or an assignment to one."""
        rng = self.rng
        if self.spaces and rng.random() < 0.7:
            return self.tag(f"set {rng.choice(self.spaces)}.{rng.choice('pq')} = {self.expr('A')}")
        name = rng.choice(("ns", "state"))
        self.spaces.append(name)
        return self.tag(f"set {name} = namespace({rng.choice(('', 'p=1', 'p=[], q=none', 'p=a'))})")

    def macro(self, depth: int) -> str:
        """A macro, or a call of one."""
        rng = self.rng
        if self.macros and rng.random() < 0.7:
            name, count = rng.choice(self.macros)
            given = ", ".join(self.expr("A") for _ in range(max(0, count + rng.choice((-1, 0, 0, 0, 0)))))
            return f"{{{{ {name}({given}) }}}}"
        name = rng.choice(("show", "put", "mm"))
        parameters = rng.choice((("", 0), ("p", 1), ("p, q=1", 2), ("p, q='x', r=none", 3), ("m", 1), ("a", 1)))
        text = self.tag(f"macro {name}({parameters[0]})") + self.body(depth + 2) + self.tag("endmacro")
        self.macros.append((name, parameters[1]))
        return text


TOKEN = re.compile(
    r"\{[{%#][-+]?|[-+]?[}%#]\}|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|\s+|//|\*\*|[=!<>]=|.", re.DOTALL
)
INSERTED = (
    *("not", "is", "in", "and", "or", "if", "else", "(", ")", "[", "]", ",", ":", ".", "|", "-", "+", "~", "*", "**"),
    *("none", "true", "True", "1", "'a'", "a", "messages", "m", "loop", "x", "{%", "%}", "{{", "}}", "{#", "#}", "-%}", "{%-"),
    *("set", "for", "endfor", "endif", "elif", "defined", "string", "trim", "length", "=", "==", "<", "\n", " ", "{", "}"),
    *("namespace", "range", "1.5", ".0", "0", "1_0", "e", "break", "continue", "raw", "recursive", "ignore", "missing"),
    *("with", "do", "call", "block", "macro", "endmacro", "$", "@", ";", "&", "\\", "''", "\t", "\r", "self", "caller"),
)  # fmt: skip


def mutated(rng: random.Random, source: str) -> str:
    """`source` with a few tokens deleted, doubled, swapped or replaced."""
    tokens = TOKEN.findall(source)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not tokens:
            break
        at = rng.randrange(len(tokens))
        change = rng.randrange(6)
        if change == 0:
            del tokens[at]
        elif change == 1:
            tokens.insert(at, tokens[at])
        elif change == 2:
            tokens.insert(at, rng.choice(INSERTED))
        elif change == 3:
            tokens[at] = rng.choice(INSERTED)
        elif change == 4:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens.insert(at, rng.choice(tokens))
    return "".join(tokens)


def value(rng: random.Random, depth: int = 0) -> Any:
    """A value as a message may hold it."""
    kind = rng.choice("ssssiifnbldtT" if depth < 3 else "ssifnb")
    if kind == "s":
        return "".join(rng.choice(STRINGS) for _ in range(rng.choice((1, 1, 2))))
    if kind == "i":
        return rng.choice(INTS[:11] if rng.random() < 0.8 else INTS)
    if kind == "f":
        return rng.choice(FLOATS)
    if kind in "nb":
        return rng.choice((None, True, False))
    size = rng.choice((0, 1, 2, 3))
    if kind == "d":
        return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(size)}
    items = [value(rng, depth + 1) for _ in range(size)]
    return tuple(items) if kind in "tT" else items


def conversation(rng: random.Random) -> list[dict[str, Any]]:
    """A few messages, most of them well-formed."""
    messages = []
    for _ in range(rng.choice((0, 1, 2, 3, 4))):
        message: dict[str, Any] = {
            "role": rng.choice(("system", "user", "assistant", "tool")),
            "content": value(rng, 2),
        }
        if rng.random() < 0.5:
            message["content"] = rng.choice(STRINGS)
        if rng.random() < 0.3:
            call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": value(rng, 1)}}
            message["tool_calls"] = [call]
        if rng.random() < 0.2:
            message[rng.choice(KEYS)] = value(rng)
        messages.append(message)
    return messages


def case(seed: int, real: list[str] | None = None) -> Case:
    """The case of a seed. `real` are templates to mutate besides the grammar's."""
    rng = random.Random(seed)
    way = rng.random()
    if real and way < 0.25:
        source = mutated(rng, rng.choice(real))
    else:
        source = Grammar(rng).body(0)
        if way > 0.75:
            source = mutated(rng, source)
    tools = [
        {"type": "function", "function": {"name": "f", "description": rng.choice(STRINGS), "parameters": value(rng)}}
    ]
    variables: Variables = {
        "tools": rng.choice((None, tools)),
        "documents": None,
        "add_generation_prompt": rng.choice((True, False)),
        "bos_token": "<s>",
        "eos_token": "</s>",
    }
    for name in "abcd":
        if rng.random() < 0.85:
            made = value(rng)
            variables[name] = made
    if rng.random() < 0.7:
        variables["a"] = rng.choice(STRINGS)
    if rng.random() < 0.7:
        variables["d"] = {rng.choice(KEYS): value(rng, 1) for _ in range(3)}
    return Case(source, conversation(rng), variables)


class Slow(Exception):  # noqa: N818  # no error: the case is dropped
    """The reference took too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stops what runs inside after a while."""

    def stop(*_: int | FrameType | None) -> None:
        raise Slow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(tested: Case) -> Result:  # noqa: PLR0911  # one return a verdict
    """Renders a case on both sides."""
    template = _native.Template(tested.source)
    if template.reason is not None:
        return Result("different" if template.reason.startswith("panic") else "refused", template.reason)
    # The clock is not what is tested here.
    clock = dict.fromkeys(template.clock_formats, "now")
    prompt = template.render(tested.messages, tested.variables, clock, 0)
    if prompt.reason is not None:
        return Result("different" if prompt.reason.startswith("panic") else "refused", prompt.reason)
    try:
        with limited(5), warnings.catch_warnings(action="ignore"):
            compiled = chat_template_utils._compile_jinja_template(tested.source)
            theirs = compiled.render(messages=tested.messages, **tested.variables)
    except (Slow, MemoryError):
        return Result("skipped", "slow")
    except Exception as error:  # noqa: BLE001  # whatever it is: we gave a text
        return Result("different", f"ours {prompt.text!r}, reference raises {type(error).__name__}: {error}")
    if prompt.text == theirs:
        return spans(tested, template, clock, compiled)
    if " at 0x" in theirs or clock:
        return Result("skipped", "address or clock")
    return Result("different", f"ours {prompt.text!r}, reference {theirs!r}")


def spans(tested: Case, template: _native.Template, clock: dict[str, str], compiled: Any) -> Result:
    """Compares what is said about `generation` tags, if there are any, in texts that are equal."""
    rules = assistant_mask.rules(tested.source)
    if isinstance(rules, str):
        return Result("equal", "")
    prompt, ours = template.spans(tested.messages, tested.variables, clock, rules)
    if prompt.reason is not None:
        refused = prompt.reason.startswith("template:for:macro-in-filter")
        return Result("equal" if refused else "different", f"spans: {prompt.reason}")
    everything = {"tools": None, "documents": None, "add_generation_prompt": None, **tested.variables}
    text, theirs = chat_template_utils._render_with_assistant_indices(compiled, tested.messages, **everything)
    if (prompt.text, ours) == (text, theirs):
        return Result("equal", "spans" if theirs else "")
    return Result("different", f"spans: ours {ours} of {prompt.text!r}, reference {theirs} of {text!r}")


def reduced(tested: Case) -> Case:
    """A smaller case that still differs: tokens are taken away as long as it does."""
    best, tokens = tested, TOKEN.findall(tested.source)
    for size in (32, 16, 8, 4, 2, 1, 2, 1):
        at = 0
        while at < len(tokens):
            fewer = tokens[:at] + tokens[at + size :]
            candidate = best._replace(source="".join(fewer))
            if run(candidate).verdict == "different":
                best, tokens = candidate, fewer
            else:
                at += size
    for name in list(best.variables):
        candidate = best._replace(variables={k: v for k, v in best.variables.items() if k != name})
        if run(candidate).verdict == "different":
            best = candidate
    for size in range(len(best.messages)):
        candidate = best._replace(messages=best.messages[:size])
        if run(candidate).verdict == "different":
            best = candidate
            break
    return best


def main() -> int:
    """Runs for a while and prints what it found."""
    parser = argparse.ArgumentParser(description="Differential fuzzing of the native renderer against jinja2")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--templates", type=Path, help="a folder of *.jinja files to mutate besides the grammar's")
    parser.add_argument("--show", type=int, default=20, help="differences to print, each reduced")
    options = parser.parse_args()
    paths = sorted(options.templates.glob("*.jinja")) if options.templates else []
    real = [path.read_text(encoding="utf-8") for path in paths]
    seen: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    end, seed = time.monotonic() + 60 * options.minutes, options.seed
    while time.monotonic() < end:
        result = run(case(seed, real))
        seen[result.verdict] += 1
        if result.verdict == "refused":
            refused[":".join(result.detail.split(":")[:2])] += 1
        if result.verdict == "different" and seen["different"] <= options.show:
            print(seed, result.detail, reduced(case(seed, real)))  # noqa: T201  # a command
        seed += 1
    totals = {"seeds": [options.seed, seed - 1], **seen, "refusals": dict(refused.most_common(25))}
    print(json.dumps(totals))  # noqa: T201  # a command
    return 1 if seen["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
