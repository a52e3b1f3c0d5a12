"""Loops that only look for something, which are not run but asked as one condition: against jinja2."""

import itertools
from typing import Any

import pytest
from transformers.utils import chat_template_utils

from turntrie import _native

ITEMS: tuple[Any, ...] = (
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "f"}]},
    {"role": 1, "items": "x", "0": 0},
    {},
)
OTHERS: tuple[Any, ...] = ("role", "", 1, 0.5, None, True, ["role"], (1, "a"), [{"role": "user"}])
CONDITIONS = (
    "x.role == 'user'",
    "x['role'] != 'assistant'",
    "'tool_calls' in x",
    "'role' not in x",
    "x.tool_calls",
    "x['content'] and not x.tool_calls",
    "x.role == 'assistant' and 'tool_calls' not in x",
    "x.content == '' or x.missing",
    "not (x.role == 'user' or x['tool_calls'])",
    "x.items",
    "x['items'] == 'x'",
    "x['0']",
    "not not x.role",
)


def template(condition: str, of: str = "xs") -> str:
    """One that looks for something from each place on, and says where it found it."""
    return (
        "{%- for y in [0, 1, 2] -%}{%- set ns = namespace(found=false, n=0) -%}"
        f"{{%- for x in {of}[loop.index0:] -%}}{{%- if {condition} -%}}"
        "{%- set ns.found = true -%}{%- set ns.n = 'some' -%}"
        "{%- endif -%}{%- endfor -%}{{ y }}{{ ns.found }}{{ ns.n }}{{ x is defined }};{%- endfor -%}"
    )


def both(source: str, variables: dict[str, Any]) -> tuple[str | None, str | None]:
    """What ours and jinja2 write: `None` if ours leaves it to jinja2, if jinja2 raises."""
    prompt = _native.Template(source).render([], variables, {}, 0)
    ours = prompt.text if prompt.reason is None else None
    try:
        theirs = chat_template_utils._compile_jinja_template(source).render(messages=[], **variables)
    except Exception:  # noqa: BLE001  # whatever it raises
        return ours, None
    return ours, theirs


@pytest.mark.parametrize("condition", CONDITIONS)
def test_messages(condition: str) -> None:
    """Every list of up to three messages, natively unless Python's own attributes are asked for."""
    for count in range(4):
        for items in itertools.product(ITEMS, repeat=count):
            ours, theirs = both(template(condition), {"xs": list(items)})
            assert ours == theirs or (ours is None and "items" in condition), (condition, items)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_other_items(condition: str) -> None:
    """Never another text, whatever the items are; also behind one that was found."""
    for items in itertools.product((*OTHERS, ITEMS[0]), repeat=2):
        ours, theirs = both(template(condition), {"xs": list(items)})
        assert ours in (theirs, None), (condition, items)


@pytest.mark.parametrize("item", ["range(3)", "d.keys()", "d.values()", "xs|select", "'user'", "xs", "(1, 2)"])
def test_items_that_are_made_in_the_template(item: str) -> None:
    """What has no attribute of a name has none, natively."""
    for condition in ("x.foo", "x['foo'] == 'a'", "x.foo != 'a'", "not x.role or x.role == 'user'"):
        ours, theirs = both(template(condition, f"[{item}, {item}]"), {"d": {"role": 1}, "xs": [1]})
        assert ours == theirs, condition


@pytest.mark.parametrize("items", ["user", {"role": "user"}, None, 1, ()])
def test_other_lists(items: object) -> None:
    """Never another text, whatever is gone through."""
    for condition in CONDITIONS:
        for of in ("xs", "(xs)", "missing"):
            ours, theirs = both(template(condition, of), {"xs": items})
            assert ours in (theirs, None), (condition, items)


@pytest.mark.parametrize(
    "body",
    [
        "{%- if x.a -%}{%- set x.b = 1 -%}{%- endif -%}",
        "{%- if x.a -%}{%- set ns.b = x.a -%}{%- endif -%}",
        "{%- if x.a -%}{%- set ns.b = ns.b + 1 -%}{%- endif -%}",
        "{%- if x.a -%}{%- set ns.b = 1 -%}{%- else -%}{%- set ns.b = 2 -%}{%- endif -%}",
        "{%- if x.a -%}{%- set ns.b = 1 -%}{%- break -%}{%- endif -%}",
        "{%- if x.a -%}{{ x.a }}{%- set ns.b = 1 -%}{%- endif -%}",
        "{%- if x.a == ns.b -%}{%- set ns.b = 1 -%}{%- endif -%}",
        "{%- if x.a and loop.last -%}{%- set ns.b = 1 -%}{%- endif -%}",
        "{%- if x.a -%}{%- set ns.b = 1 -%}{%- endif -%} ",
    ],
)
def test_loops_that_do_more(body: str) -> None:
    """What looks similar and is none."""
    source = (
        "{%- for y in [0, 1] -%}{%- set ns = namespace(b=0) -%}{%- for x in xs -%}"
        + body
        + "{%- endfor -%}{{ ns.b }};{%- endfor -%}"
    )
    for values in itertools.product((0, 1, 2), repeat=3):
        ours, theirs = both(source, {"xs": [{"a": value} for value in values]})
        assert ours == theirs, values


def test_name_of_an_item_that_is_set() -> None:
    """An item that has the name of the namespace hides it."""
    source = (
        "{%- set x = namespace(b=0) -%}{%- for y in [0] -%}{%- for x in xs -%}{%- if x.a -%}{%- set x.b = 1 -%}"
        "{%- endif -%}{%- endfor -%}{%- endfor -%}{{ x.b }}"
    )
    for xs in ([], [{"a": 0}], [{"a": 1}]):
        ours, theirs = both(source, {"xs": xs})
        assert ours in (theirs, None), xs
