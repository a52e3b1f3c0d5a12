# ruff: noqa: E501  # templates of one line
"""Iterations of message loops taken over from earlier renders: what is reused, and that nothing else is.

The oracle is the whole render of the same template by the same engine.
"""

import threading
from pathlib import Path
from typing import Any

import pytest

import real_data
import reuse_walks
import toys
import turntrie
from turntrie import _native

FOLDER = real_data.folder("TURNTRIE_TEMPLATES")
TEMPLATES = sorted(FOLDER.glob("*.jinja")) if FOLDER else []
SPACE = 1


def can_reuse(path: Path) -> bool:
    template = _native.Template(path.read_text(encoding="utf-8"))
    return template.reason is None and template.loops[0] > 0


REAL = [path for path in TEMPLATES if can_reuse(path)]

PLANNED = {
    "plain": "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}",
    "a slice": "{% for m in messages[1:] %}{{ m.content }}{% endfor %}",
    "an alias": "{% set rest = messages[1:] if false else messages %}{% set all = messages[0:] %}"
    "{% for m in all %}{{ m.content }}{% endfor %}",
    "places": "{% for m in messages %}{{ loop.index }}{{ loop.first }}{{ m.content }}{% endfor %}",
    "the last one": "{% for m in messages %}{{ m.content }}{% if not loop.last %},{% endif %}{% endfor %}",
    "neighbours": "{% for m in messages %}{{ (loop.previtem or m).content }}{{ m.content }}{{ (loop.nextitem or m).role }}{% endfor %}",
    "neighbours by index": "{% for m in messages %}{% if loop.first or messages[loop.index0 - 1].role != m.role %}"
    "[{% endif %}{{ m.content }}{% if loop.last or messages[loop.index0 + 1].role != m.role %}]{% endif %}{% endfor %}",
    "the first one": "{% for m in messages %}{{ messages[0].role }}{{ m.content }}{{ messages|first }}{% endfor %}",
    "a distance from the end": "{% for m in messages %}{% if loop.index0 >= messages|length - 2 %}{{ m.role }}{% endif %}"
    "{{ m.content }}{% endfor %}",
    "a counter": "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.n = ns.n + 1 %}"
    "{% endif %}{{ ns.n }}{{ m.content }}{% endfor %}{{ ns.n }}",
    "the last question": "{% set ns = namespace(waits=true, last=messages|length - 1) %}{% for m in messages[::-1] %}"
    "{% set index = (messages|length - 1) - loop.index0 %}{% if ns.waits and m.role == 'user' %}"
    "{% set ns.waits = false %}{% set ns.last = index %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if loop.index0 > ns.last %}<{{ m.content }}>{% else %}{{ m.content }}{% endif %}{% endfor %}",
    "a variable as a mark": "{% set n = namespace(i=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set n.i = loop.index0 %}{% endif %}{% endfor %}{% set last = n.i %}"
    "{% for m in messages %}{{ m.content }}{{ '!' if loop.index0 == last }}{% endfor %}",
    "switches": "{% for m in messages %}{{ m.content }}{% if enable_thinking is defined and enable_thinking %}t{% endif %}"
    "{{ tools|tojson }}{% endfor %}",
    "a macro": "{% macro shown(m) %}{{ bos_token }}{{ m.content }}{% endmacro %}"
    "{% for m in messages %}{{ shown(m) }}{% endfor %}",
    "several loops": "{% for m in messages %}{{ m.role }}{% endfor %}|{% for m in messages %}{{ m.content }}{% endfor %}",
    "a branch": "{% if tools %}T{% for m in messages %}{{ m.content }}{% endfor %}{% else %}"
    "{% for m in messages %}{{ m.role }}{% endfor %}{% endif %}",
    "inner loops": "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ loop.index }}{{ c.function.name }}"
    "{{ loop.last }}{% endfor %}{{ m.content }}{% endfor %}",
    "texts of its own": "{% for m in messages %}{% set text %}{{ m.content }}{% endset %}{{ text|trim }}{% endfor %}",
    "nothing": "{% for m in messages %}{% endfor %}x",
}  # fmt: skip
UNPLANNED = {
    "iterates:filtered": "{% for m in messages if m.role %}{{ m.content }}{% endfor %}",
    "iterates:left": "{% for m in messages %}{% if m.role == 'x' %}{% break %}{% endif %}{{ m.content }}{% endfor %}",
    "iterates:other": "{% for m in messages|list %}{{ m.content }}{% endfor %}",
    "reads:history": "{% for m in messages %}{{ messages|map(attribute='role')|join }}{% endfor %}",
    "reads:length": "{% for m in messages %}{{ loop.length }}{% endfor %}",
    "reads:index": "{% for m in messages[::-1] %}{{ loop.index }}{% endfor %}",
    "calls:impure": "{% for m in messages %}{{ strftime_now('%Y') }}{% endfor %}",
    "namespace:within": "{% for m in messages %}{% set n = namespace(a=1) %}{{ n.a }}{% endfor %}",
    "assigns:other": "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t %}{{ m.content }}{% endset %}{% endfor %}{{ ns.t }}",
    "name:conditional": "{% if tools %}{% macro f() %}x{% endmacro %}{% endif %}{% for m in messages %}{{ f is defined }}{% endfor %}",
    "captured": "{% set t %}{% for m in messages %}{{ m.content }}{% endfor %}{% endset %}{{ t }}",
}


def chat(length: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": f"text {at}"} for at in range(length)]


def given(**more: Any) -> dict[str, Any]:
    return {"bos_token": "<s>", "tools": None, "add_generation_prompt": False, **more}


def both(template: Any, messages: list[dict[str, Any]], variables: dict[str, Any]) -> tuple[int, int]:
    """Renders twice, asserts that the texts are equal, and says how many iterations were reused and rendered."""
    whole = template.render(messages, variables, {}, 0)
    again = template.render(messages, variables, {}, 0, SPACE)
    assert whole.reason is None
    assert (again.reason, again.text) == (None, whole.text)
    assert whole.iterations == (0, 0)
    reused, rendered = again.iterations
    return reused, rendered


@pytest.mark.parametrize("name", PLANNED)
def test_old_iterations_are_not_rendered_again(name: str) -> None:
    template = _native.Template(PLANNED[name])
    loops, others = template.loops
    assert (template.reason, others) == (None, [])
    assert loops > 0
    messages = chat(40)
    variables = given()
    both(template, messages[:20], variables)
    for turn in range(20, 41, 2):
        reused, rendered = both(template, messages[:turn], variables)
        assert rendered <= 5 * loops, (turn, reused, rendered)
        assert reused >= turn - 5


@pytest.mark.parametrize("reason", UNPLANNED)
def test_what_cannot_be_reused_is_named(reason: str) -> None:
    template = _native.Template(UNPLANNED[reason])
    assert template.reason is None
    assert template.loops == (0, [(reason, 1)])
    assert template.render(chat(3), given(), dict.fromkeys(template.clock_formats, "2031"), 0, SPACE).iterations == (
        0,
        0,
    )


MARKED = "{% for m in messages[::-1] %}{% if loop.index0 < keep %}new{% else %}old{% endif %};{% endfor %}"
ADVERSARIAL = {
    "a set block sets an attribute": "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t %}{{ m.content }}{% endset %}{% endfor %}{{ ns.t }}",
    "unpacking sets an attribute": "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t, b = m.content, 1 %}{% endfor %}{{ ns.t }}",
    "a macro sets an attribute by a block": "{% set ns = namespace(t='') %}{% macro f(m) %}{% set ns.t %}{{ m.content }}{% endset %}{% endmacro %}"
    "{% for m in messages %}{{ loop.index0 }}{{ f(m) }}{{ ns.t }}{% endfor %}",
    "a macro that may not be there": "{% if a %}{% macro f() %}x{% endmacro %}{% endif %}{% for m in messages %}{{ f is defined }}{{ f() if a }}{% endfor %}",
    "one that calls such a macro": "{% if a %}{% macro g() %}x{% endmacro %}{% endif %}{% macro f() %}{% if g is defined %}{{ g() }}{% endif %}{% endmacro %}"
    "{% for m in messages %}{{ f() }}{% endfor %}",
    "a namespace that may not be there": "{% if a %}{% set ns = namespace(x=1) %}{% endif %}{% for m in messages %}{{ ns is defined }}{% if a %}{{ ns.x }}{% endif %}{% endfor %}",
    "a namespace of a macro's own": "{% macro f() %}{% set ns = namespace(a=1) %}{{ ns.a }}{% endmacro %}{% for m in messages %}{{ ns is defined }}{% endfor %}",
    "a mark that is no integer, backwards": MARKED,
    "a mark that changes before it is compared": "{% set ns = namespace(x=100) %}{% for m in messages[::-1] %}{% set ns.x = 1 %}{{ loop.index0 > ns.x }},{% set ns.x = 100 %}{% endfor %}",
    "a variable that hides a mark": "{% set last = 100 %}{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set last = 1 %}{% endif %}{{ loop.index0 > last }},{% endfor %}",
    "a function that is hidden": "{% for m in messages %}{% for i in range(2) %}{{ i }}{% endfor %}{% endfor %}",
    "an alias that is no list": "{% if tools %}{% set all = messages %}{% endif %}{% for m in all or [] %}{{ m }}.{% endfor %}{% for m in messages %}{{ all|length if tools }}{% endfor %}",
}  # fmt: skip
"""Inputs that are easily missed."""


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_no_input_is_missed(name: str) -> None:
    template = _native.Template(ADVERSARIAL[name])
    assert template.reason is None
    switches: list[dict[str, Any]] = [
        {},
        {"a": 1},
        {"a": 0},
        {"ns": 1},
        {"ns": {"x": 2}},
        {"f": 1},
        {"g": "x"},
        {"range": 5},
    ]
    switches += [{"keep": keep} for keep in (2, 2.0, True, False, 2**70)] + [{"all": ("x",)}, {"all": {"x": 1}}]
    for _ in range(2):
        for given_ in switches:
            for tools in (None, [reuse_walks.TOOL]):
                for length in (3, 3, 4, 5, 6, 4):
                    variables = given(tools=tools, keep=2) | given_
                    whole = template.render(chat(length), variables, {}, 0)
                    again = template.render(chat(length), variables, {}, 0, SPACE)
                    assert (again.reason, again.text) == (whole.reason, whole.text), (given_, length)


def test_runs_are_bounded_by_all_that_they_hold() -> None:
    """Values that grow with each iteration: a run of a few messages may be too large to keep."""
    template = _native.Template(
        "{% set ns = namespace(t='') %}{% for m in messages %}{% set ns.t = ns.t + m.content %}{% endfor %}"
    )
    assert template.loops == (1, [])
    for size, kept in ((10, 60), (20_000, 0)):
        messages = [{"role": "user", "content": "x" * size} for _ in range(60)]
        template.render(messages, given(), {}, 0, SPACE)
        assert template.render(messages, given(), {}, 0, SPACE).iterations == (kept, 60 - kept)


def test_the_clock_is_not_remembered() -> None:
    source = "{% macro day() %}{{ strftime_now('%d') }}{% endmacro %}{% for m in messages %}{{ day() }}{% endfor %}"
    template = _native.Template(source)
    assert template.loops == (0, [("calls:impure", 1)])
    for today in ("01", "02"):
        assert template.render(chat(2), given(), {"%d": today}, 0, SPACE).text == 2 * today


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 0.0}, {"a": -0.0}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}),
        ({"a": [1]}, {"a": (1,)}),
        ({"a": None}, {}),
        ({"a": [None]}, {"a": []}),
    ],
)
def test_equal_in_python_is_not_the_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    template = _native.Template("{% for m in messages %}{{ m.a }}{{ a }}{{ m|tojson }}{% endfor %}")
    assert template.loops == (1, [])
    for value in (before, after, before):
        both(template, [{"role": "user", **value}, {"role": "user", **before}], given())
        both(template, chat(2), given(**value))


def test_a_change_in_place_is_noticed() -> None:
    template = _native.Template(PLANNED["plain"])
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "user", "content": "c"}]
    both(template, messages, given())
    messages[1]["content"] = "B"
    assert both(template, messages, given()) == (2, 1)
    messages[1]["name"] = "x"
    assert both(template, messages, given()) == (2, 1)


def test_equal_objects_are_as_good_as_the_same() -> None:
    template = _native.Template(PLANNED["plain"])
    both(template, chat(10), given())
    assert both(template, chat(12), given()) == (10, 2)


def test_an_edit_costs_what_it_touches() -> None:
    template = _native.Template(PLANNED["neighbours by index"])
    messages = chat(40)
    both(template, messages, given())
    messages[7] = {"role": "assistant", "content": "edited"}
    assert both(template, messages, given()) == (37, 3)


def test_branches_do_not_drive_each_other_out() -> None:
    template = _native.Template(PLANNED["plain"])
    trunk = chat(20)
    for _ in range(3):
        for branch in range(10):
            both(template, [*trunk, {"role": "user", "content": f"branch {branch}"}], given())
    assert both(template, [*trunk, {"role": "user", "content": "branch 0"}], given()) == (21, 0)


def test_spaces_share_nothing_and_reset_forgets() -> None:
    template = _native.Template(PLANNED["plain"])
    messages = chat(10)
    both(template, messages, given())
    assert template.render(messages, given(), {}, 0, SPACE + 1).iterations == (0, 10)
    assert both(template, messages, given()) == (10, 0)
    _native.forget()
    assert both(template, messages, given()) == (0, 10)


@pytest.mark.parametrize("where", ["message", "variable", "template"])
def test_a_text_that_looks_like_a_mark(where: str) -> None:
    mark = "\ufdd0\0turntrie:loop\0\ufdd1"
    source = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}" + (mark if where == "template" else "")
    messages = [*chat(3), {"role": "user", "content": mark if where == "message" else "x"}]
    for _ in range(3):
        both(_native.Template(source), messages, given(bos_token=mark if where == "variable" else ""))


def test_an_iteration_that_raises_leaves_nothing_behind() -> None:
    source = "{% for m in messages %}{% if m.content == bad %}{{ raise_exception('no') }}{% endif %}{{ m.content }}{% endfor %}"
    template = _native.Template(source)
    messages = chat(10)
    both(template, messages, given(bad="none"))
    for bad in ("text 5", "none", "text 5"):
        whole = template.render(messages, given(bad=bad), {}, 0)
        again = template.render(messages, given(bad=bad), {}, 0, SPACE)
        assert (again.reason, again.text) == (whole.reason, whole.text)
        assert (again.reason is None) == (bad == "none")


def test_a_wrapped_tokenizer_reuses_what_it_rendered() -> None:
    tok, plain = toys.wrapped(), toys.fresh()
    source = PLANNED["the last one"]
    tok.chat_template = plain.chat_template = source
    messages = chat(30)
    session = turntrie.Session(tok)
    for turn in range(2, 31, 2):
        wanted = plain.apply_chat_template(messages[:turn], return_dict=False)
        for prompt in (tok.turntrie.prompt(messages[:turn]), session.extend(messages[turn - 2 : turn])):
            assert (prompt.path, prompt.reason, prompt.tolist()) == ("native", None, wanted)
        assert tok.apply_chat_template(messages[:turn], tokenize=False) == plain.apply_chat_template(
            messages[:turn], tokenize=False
        )


def test_threads_take_over_from_each_other() -> None:
    template = _native.Template(PLANNED["the last question"])
    messages = chat(60)
    wanted = [template.render(messages[:turn], given(), {}, 0).text for turn in range(61)]
    wrong: list[int] = []

    def work(start: int) -> None:
        turns = [*range(start, 61), *range(60, start, -1)]
        got = [template.render(messages[:turn], given(), {}, 0, SPACE).text for turn in turns]
        wrong.extend(turn for turn, text in zip(turns, got, strict=True) if text != wanted[turn])

    threads = [threading.Thread(target=work, args=(start,)) for start in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("name", PLANNED)
def test_random_walks(name: str) -> None:
    counts = reuse_walks.walk(PLANNED[name], name, steps=150, rules=3)
    assert counts.texts > 100
    assert counts.reused > 100 or "{% endfor %}x" in PLANNED[name]


@pytest.mark.parametrize(
    "name", ["the last one", "neighbours", "neighbours by index", "the last question", "a counter"]
)
def test_random_walks_notice_an_input_that_is_ignored(name: str) -> None:
    with pytest.raises(AssertionError):
        reuse_walks.walk(PLANNED[name], name, steps=150, rules=3, fault="reuse")


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_random_walks_of_real_templates(path: Path) -> None:
    counts = reuse_walks.walk(path.read_text(encoding="utf-8"), path.stem, steps=25, rules=3)
    assert counts.renders == 25


@pytest.mark.skipif(not TEMPLATES, reason="TURNTRIE_TEMPLATES is not set")
def test_most_real_templates_can_reuse() -> None:
    assert len(REAL) >= 0.8 * len(TEMPLATES)
