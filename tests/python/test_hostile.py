# ruff: noqa: E501  # templates of one line
"""Templates that would hang or exhaust the process: stopped soon, with an error, and nothing worse.

Those that the reference serves run in a process of their own with a limit of time and of memory, so that a failure is a
failed test and not a dead machine. What the reference can do, if slowly, or refuses by itself (recursion, sizes that its sandbox forbids), is left
to it; where it would go on for hours, `TemplateLimitError` is raised.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from turntrie import _native

MEMORY = 6 << 30
SECONDS = 120
BIG = "{% set n = namespace(s='0123456789abcdef') %}"
DOUBLED = BIG + "{% for i in range(20) %}{% set n.s = n.s ~ n.s %}{% endfor %}"
"""A text of 16 MiB."""
SHARED = "{% set n = namespace(v=[1]) %}{% for i in range(90) %}{% set n.v = [n.v, n.v] %}{% endfor %}"
"""A list of 90 levels and 2 to the power of 90 leaves."""

STOPPED = {
    "loops": "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{{ c }}{% endfor %}{% endfor %}{% endfor %}",
    "loops that end at once": "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% break %}{% endfor %}{% endfor %}{% endfor %}",
    "output": DOUBLED + "{% for a in range(100000) %}{{ n.s }}{% endfor %}",
    "raw output": "{% for a in range(100000) %}{% for b in range(100000) %}" + "x" * 5000 + "{% endfor %}{% endfor %}",
    "doubling": BIG + "{% for i in range(100) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "doubling by +": BIG + "{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "doubling of what is text": BIG + "{% for i in range(100) %}{% set n.s = (n.s ~ 'x') + (n.s|string) %}{% endfor %}",
    "doubling of lists": "{% set n = namespace(v=[1]) %}{% for i in range(100) %}{% set n.v = n.v + n.v %}{% endfor %}",
    "many texts": DOUBLED + "{% set n.v = [] %}{% for i in range(100000) %}{% set n.v = n.v + [n.s ~ i] %}{% endfor %}",
    "replace": DOUBLED + "{{ n.s|replace('a', n.s)|length }}",
    "replace of nothing": DOUBLED + "{{ n.s.replace('', n.s)|length }}",
    "join": DOUBLED + "{{ range(100000)|join(n.s)|length }}",
    "join method": DOUBLED + "{{ n.s.join(range(100000)|map('string')|list)|length }}",
    "indent": DOUBLED + "{{ ('\\n' * 1000000)|indent(n.s, true, true)|length }}",
    "format": DOUBLED + "{{ ('{0}' * 100000).format(n.s)|length }}",
    "percent": DOUBLED + "{% for i in range(100000) %}{% set n.t = '%s%s%s' % (n.s, n.s, n.s) %}{% endfor %}",
    "repeated text": "{{ ('a' * 10000000000)|length }}",
    "repeated list": "{{ ([1] * 10000000000)|length }}",
    "wide": "{{ 'a'.center(10000000000)|length }}{{ 'a'.zfill(10000000000) }}",
    "padding": "{% for i in range(100000) %}{% set x = 'a'.center(1000000) %}{% endfor %}",
    "padding in map": "{{ range(100000)|map('center', 1000000)|list|length }}",
    "tabs": "{{ ('\\t' * 10000000).expandtabs(1000000)|length }}",
    "batch": "{% for i in range(100000) %}{{ [1]|batch(10000000, 0)|list|length }}{% endfor %}",
    "json": SHARED + "{{ n.v|tojson }}",
    "json separators": DOUBLED + "{{ range(100000)|list|tojson(separators=(n.s, ':')) }}",
    "print": SHARED + "{{ n.v }}",
    "compare": SHARED + "{% set n.w = [1] %}{% for i in range(90) %}{% set n.w = [n.w, n.w] %}{% endfor %}{{ n.v == n.w }}",
    "contains": "{% set v = range(100000)|list %}{% for i in range(100000) %}{% if 'x' in v %}{% endif %}{% endfor %}",
    "sort": "{% for i in range(100000) %}{{ range(100000)|sort(reverse=true)|first }}{% endfor %}",
    "unique": "{{ range(100000)|unique|list|length }}{% for i in range(1000) %}{{ range(100000)|unique|list|length }}{% endfor %}",
    "search": DOUBLED + "{% for i in range(100000) %}{% if 'zz' in n.s %}{% endif %}{{ n.s.count('q') }}{% endfor %}",
    "strip": DOUBLED + "{% for i in range(100000) %}{% set n.t = n.s.upper() %}{% endfor %}",
    "slices": DOUBLED + "{% for i in range(100000) %}{% set n.t = n.s[1:] %}{% endfor %}",
    "characters": DOUBLED + "{% for i in range(100000) %}{{ n.s|length }}{{ n.s|list|length }}{% endfor %}",
    "macros": "{% macro m(x) %}" + "{{ x }}" * 50 + "{% endmacro %}{% for i in range(100000) %}{% for j in range(100000) %}{{ m(i) }}{% endfor %}{% endfor %}",
    "recursion that branches": "{% macro m(x) %}{% if x %}{{ m(x - 1) }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
}  # fmt: skip

REFERENCE = {
    "recursion": "{% macro m(x) %}{{ m(x + 1) }}{% endmacro %}{{ m(0) }}",
    "range": "{{ range(100001)|list|length }}",
    "nesting": "{% set n = namespace(v=[]) %}{% for i in range(40000) %}{% set n.v = [n.v] %}{% endfor %}{{ n.v|length }}",
    "nesting by filters": "{% set n = namespace(v=[1]) %}{% for i in range(40000) %}{% set n.v = n.v|batch(1)|list %}{% endfor %}"
    "{{ n.v|length }}",
    "nesting by dicts": "{% set n = namespace(v={}) %}{% for i in range(40000) %}{% set n.v = {'a': n.v}.items()|list %}{% endfor %}x",
    "nesting of an argument": "{% macro m(x, d) %}{% if d %}{{ m([[[[[x]]]]], d - 1) }}{% endif %}{% endmacro %}{{ m(1, 80) }}y",
    "long chain": "{{ 'a'" + "|trim" * 300 + " }}",
    "longer chain": "{{ 'a'" + "|trim" * 40_000 + " }}",
    "long sum": "{{ 1" + " + 1" * 40_000 + " }}",
    "long path": "{{ a" + ".b" * 40_000 + " }}",
    "long concatenation": "{{ 'x'" + " ~ 'x'" * 3000 + " }}",
    "many branches": "{% if x %}" + "{% elif x %}" * 8_000 + "{% endif %}",
    "deep parentheses": "{{ " + "(" * 10_000 + "1" + ")" * 10_000 + " }}",
    "deep lists": "{{ " + "[" * 10_000 + "]" * 10_000 + " }}",
    "deep blocks": "{% if true %}" * 10_000 + "{% endif %}" * 10_000,
    "deep nots": "{{ " + "not " * 50_000 + "1 }}",
    "deep signs": "{{ " + "-" * 50_000 + "1 }}",
    "large number": "{{ 10 ** 38 }}",
}
"""Templates that the reference serves, with a text or an exception of its own."""

SCRIPT = """
import json, sys, turntrie, toys
stopped = "stopped: "
for name, source in json.load(sys.stdin).items():
    print(name, end="|", flush=True)
    tok, outcomes = toys.wrapped(), []
    for each in (tok, toys.fresh()) if stopped not in name else (tok,):
        try:
            text = each.apply_chat_template([{"role": "user", "content": "x"}], chat_template=source, tokenize=False)
        except Exception as error:
            text = type(error).__name__
        outcomes.append(text)
    reason = next(iter(toys.fallbacks(tok)), "native")
    print(reason, outcomes[0] if stopped in name else outcomes[0] == outcomes[1], sep="|", flush=True)
"""


def run(sources: dict[str, str]) -> dict[str, list[str]]:
    """The reason and the outcome of each template, from a process with limits."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(sources).encode(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        preexec_fn=limits,
    )
    lines = [line.split("|", 2) for line in done.stdout.decode().splitlines()]
    assert done.returncode == 0, (lines[-1:], done.stderr.decode()[-2000:])
    return {name: outcome for name, *outcome in lines}


@pytest.mark.parametrize("name", STOPPED)
def test_a_template_that_never_ends_is_stopped(name: str) -> None:
    prompt = _native.Template(STOPPED[name]).render([{"role": "user", "content": "x"}], {}, {}, 0)
    assert prompt.reason == "limit:work"


@pytest.mark.parametrize("name", ["loops", "output", "raw output", "doubling", "print"])
def test_a_template_that_never_ends_is_stopped_while_it_is_tracked(name: str) -> None:
    for source in (STOPPED[name], "{% generation %}" + STOPPED[name] + "{% endgeneration %}"):
        prompt, spans = _native.Template(source).spans([{"role": "user", "content": "x"}], {}, {}, 0)
        assert (prompt.reason, spans) == ("limit:work", [])


@pytest.mark.timeout(2 * SECONDS)
def test_the_process_lives_and_the_reference_does_what_it_can() -> None:
    stopped = {f"stopped: {name}": STOPPED[name] for name in ("output", "print", "doubling of lists")}
    served = run({**REFERENCE, **stopped})
    for name in REFERENCE:
        reason, equal = served[name]
        assert not reason.startswith(("panic", "limit")), (name, reason)
        assert equal == "True", (name, reason)
    for name in stopped:
        assert served[name] == ["limit:work", "TemplateLimitError"]


def test_one_large_message_is_not_stopped() -> None:
    messages = [{"role": "user", "content": "words and more of them " * 2_000_000}]
    source = "{% for m in messages %}" + "{{ (m.content|trim|upper|lower)|length }}" * 10 + "{% endfor %}"
    assert _native.Template(source).render(messages, {}, {}, 0).reason is None


def test_honest_work_is_not_stopped() -> None:
    # As many messages as a long episode has, each looking at all others, texts of a million tokens.
    messages = [{"role": "user", "content": "some words and more of them " * 75} for _ in range(2000)]
    source = (
        "{% set n = namespace(s='', c=0) %}{% for m in messages %}{% for o in messages[loop.index:] %}"
        "{% if o.role == 'assistant' %}{% set n.c = n.c + 1 %}{% endif %}{% endfor %}"
        "{{ (m.content|trim).split('x')[0] }}{% endfor %}"
    )
    prompt = _native.Template(source).render(messages, {}, {}, 0)
    assert prompt.reason is None
    assert len(prompt.text) > 2000 * 75 * 20
