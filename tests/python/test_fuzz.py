# ruff: noqa: E501  # templates of one line
"""The fuzzer, for a few seconds on fixed seeds, and what it found before.

`fuzzing.py` says what is generated and how to run it for long.
"""

import random

import pytest

import fuzzing
from fuzzing import Case

CASES = 2000
# The text of both sides where ours has one; else only that ours is refused.
FOUND = {
    **{
        f"an int that is no size: {where}": "{% set n = 18446744073709551616 %}{{ " + where + " }}"
        for where in (
            *("'a,b'.split(',', n)", "'a,b'.rsplit(',', -n)", "'a b'.split(maxsplit=n)", "'a'.replace('a', 'b', n)"),
            *("''.zfill(-n)", "'a'.center(-n)", "'a'.ljust(-n)", "'a'|center(-n)", "'a'|replace('a', 'b', n)"),
            *(
                "'a'|indent(-n)",
                "{}|tojson(indent=-n)",
                "[1]|tojson(indent=-n)",
                "'' * n",
                "'a' * -n",
                "n * []",
                "() * -n",
            ),
            *(
                "'a\\tb'.expandtabs(n)",
                "'a\\tb'.expandtabs(2147483648)",
                "'a'.splitlines(n)",
                "'a'.splitlines(2147483648)",
            ),
            *(
                "'abc'.find('b', -n, n)",
                "'abc'.count('b', -n)",
                "'abc'[-n:n]",
                "'abc'[::n]",
                "'abc'[n]",
                "[1, 2][-n:n]",
            ),
            *(
                "[1][n]",
                "'a'|truncate(n)",
                "[1, 2]|batch(n)|list",
                "'abc'.startswith('a', -n)",
                "n|string",
                "n|float",
                "n|int",
            ),
            *(
                "range(n)|list",
                "'%d' % n",
                "'%5.2f' % n",
                "n // 3",
                "n % 7",
                "-n // 7",
                "n / 3",
                "n ** 2",
                "'%*d' % (n, 1)",
            ),
        )
    },
    "a plus before the end of an expression": "{{ a +}}",
    "loop without a target": "{% for in c %}x{% endfor %}",
    "targets that end in a comma": "{% for x, in c %}{{ x }}{% endfor %}",
    "break out of a with": "{% for x in c %}{% with b = x %}{{ b }}{% break %}{% endwith %}{% endfor %}",
    "continue out of a with": "{% for x in c %}{% with b = x %}{{ b }}{% continue %}{% endwith %}{% endfor %}",
    "every iteration left early": "{% for x in c %}{% continue %}{% else %}none{% endfor %}",
    "set in a filter block": "{% filter upper %}{% set a = 1 %}{% endfilter %}{{ a }}",
    "set in a set block": "{% set b %}{% set a = 1 %}{% endset %}{{ a }}{{ b }}",
    "a block set that reads itself": "{% set a %}{{ a }}{% endset %}{{ a }}",
    "read in a loop, set later": "{% for x in c %}{{ a }}{% endfor %}{% set a = 2 %}",
    "read in the condition of a loop, set later": "{% for x in c if a %}{{ x }}{% endfor %}{% set a = 2 %}",
    "read in a with, set later": "{% with b = 1 %}{{ a }}{% endwith %}{% set a = 2 %}",
    "read in a generation tag, set later": "{% generation %}{{ a }}{% endgeneration %}{% set a = 2 %}",
    "unknown filter of a block in a branch": "{% if c %}{% else %}{% filter nosuch %}x{% endfilter %}{% endif %}",
    "unknown filter of a set block in a branch": "{% if c %}{% else %}{% set a | nosuch %}x{% endset %}{% endif %}",
    "set in every branch": "{% if c %}{{ a }}{% set a = 1 %}{% elif b %}{% set a = 4 %}{% else %}{% set a = 2 %}{% endif %}",
    "a name set in the else of a loop": "{% for x in b %}{% else %}{% set v = 1 %}{% endfor %}[{{ v }}]",
    "a name of the caller set in the else of a loop": "{% for x in b %}{% else %}{% set a %}x{% endset %}{% endfor %}{{ a }}",
    "a namespace made in the else of a loop": "{% for x in b %}{% else %}{% set n = namespace(p=1) %}{% endfor %}{{ n.p }}",
    "a branch in the else of a loop": "{% for x in b %}{% else %}{% if true %}{% set v = 1 %}{% endif %}{{ v }}{% endfor %}[{{ v }}]",
    "a break in the else of no loop around": "{% for x in b %}{% else %}{% break %}{% endfor %}",
    "a key without a hash, not reached": "{% if b is string %}{{ {[]: 1}.a }}{% endif %}",
    "a dict as a key, not reached": "{% if b is string %}{{ {{'a': 1}: b}.a }}{% endif %}",
    "a key without a hash after a choice": "{% if b is string %}{{ {([] and b): 1}.a }}{% endif %}",
    "a filter's list as a key": "{% if b is string %}{{ {'ab' | list: 1}.a }}{% endif %}",
    "a number too long to print, not reached": "{% if b is string %}{{ 10 ** 5000 }}{% endif %}",
    "more loops in each other than Python takes": "{% for x in [1] %}" * 21 + "x" + "{% endfor %}" * 21,
    "more branches in each other than Python takes": "{% if true %}" * 101 + "x" + "{% endif %}" * 101,
    "a keyword given twice": "{% set n = namespace(a=1, a=1) %}",
    "a keyword given twice, not reached": "{% if b is string %}{{ c | join(d=1, d=2) }}{% endif %}",
    "a parameter twice": "{% macro m(a, a) %}{{ a }}{% endmacro %}",
    "parameters that end in a comma": "{% macro m(a,) %}{{ a }}{% endmacro %}",
    "a macro named like a constant": "{% macro true() %}{% endmacro %}",
    "a test of a test": "{% if b is string %}{{ a is defined is b }}{% endif %}",
    "a sign after a test": "{{ 1 is eq -1 }}",
    "an operator after a test": "{{ [c is defined - 1] }}",
    "read in a loop before a branch sets it": "{% for x in c %}{{ a }}{% endfor %}{% if c %}{% set a = 1 %}{% endif %}",
}
"""One template for each kind of difference that it found, as small as it gets."""


@pytest.mark.parametrize("name", FOUND)
def test_found_before(name: str) -> None:
    for variables in ({"a": "A", "c": [1, 2]}, {"a": "", "b": 1, "c": []}, {"c": [(1,), (2,)]}):
        result = fuzzing.run(Case(FOUND[name], [], variables))
        assert result.verdict in {"equal", "refused"}, result.detail


def test_nothing_new() -> None:
    seen = dict.fromkeys(("equal", "refused", "skipped"), 0)
    for seed in range(CASES):
        case = fuzzing.case(seed)
        result = fuzzing.run(case)
        assert result.verdict != "different", f"seed {seed}: {case.source!r} {case.variables!r} {result.detail}"
        seen[result.verdict] += 1
    # A generator whose templates are all refused finds nothing.
    assert seen["equal"] > CASES // 10, seen


def test_the_fuzzer_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from turntrie import _native  # noqa: PLC0415  # the original of what is replaced below

    class Faulty:
        def __new__(cls, source: str) -> "_native.Template":  # type: ignore[misc]  # a stand-in
            return _native.Template.with_fault(source, "gate")

    monkeypatch.setattr(fuzzing, "_native", type("Module", (), {"Template": Faulty}))
    different = [seed for seed in range(400) if fuzzing.run(fuzzing.case(seed)).verdict == "different"]
    assert different
    small = fuzzing.reduced(fuzzing.case(different[0]))
    assert fuzzing.run(small).verdict == "different"
    assert len(small.source) <= len(fuzzing.case(different[0]).source)


def test_a_case_is_a_function_of_its_seed() -> None:
    assert repr(fuzzing.case(7)) == repr(fuzzing.case(7))
    assert fuzzing.mutated(random.Random(1), "{{ a }}") == fuzzing.mutated(random.Random(1), "{{ a }}")
