"""Text that depends on tables and rounding: every Unicode character, floats at their hardest, JSON of every keyword.

Python's Unicode tables belong to the interpreter. Ours are those of CPython 3.11 (Unicode 14): a character that it does
not know is refused, and one that it knows prints and changes case as in the running Python, whichever that is.
"""

import math
import random
import struct
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest

from test_semantics import check, outcome

OLDEST = tuple(map(int, unicodedata.unidata_version.split("."))) == (14, 0, 0)
"""Whether the running Python is one whose tables ours are made from."""


def _characters() -> Iterator[str]:
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            yield chr(code)


def _blocks(characters: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(characters), size):
        yield characters[start : start + size]


def _refused(source: str, characters: list[str]) -> set[str]:
    """The characters that ours refuses, found by halving; for all others the texts are equal."""
    if outcome(source, {"v": characters}) == "native":
        return set()
    if len(characters) == 1:
        return {*characters}
    half = len(characters) // 2
    return _refused(source, characters[:half]) | _refused(source, characters[half:])


def test_every_character_prints() -> None:
    known = [c for c in _characters() if unicodedata.category(c) != "Cn"]
    unknown = [c for c in _characters() if unicodedata.category(c) == "Cn"]
    for source in ("{{ v }}", "{% for c in v %}{{ c.isprintable() }}{% endfor %}"):
        refused = {c for block in _blocks(known, 20_000) for c in _refused(source, block)}
        assert not (refused and OLDEST), sorted(refused)[:20]
        # Private use apart, no more than what was added since Unicode 14.
        assert len(refused) < 40_000
        # Of what this Python does not know nothing may be served: a later one might.
        for c in random.Random(1).sample(unknown, 500):
            assert outcome(source, {"v": [c]}) == "refused"


@pytest.mark.parametrize(
    "method", ["upper", "lower", "title", "capitalize", "swapcase", "islower", "isupper", "isspace"]
)
def test_every_character_changes_case(method: str) -> None:
    letters = [c for c in _characters() if unicodedata.category(c) not in {"Cn", "Co", "Lo", "So", "Po", "Sm"}]
    source = f"{{% for c in v %}}{{{{ c.{method}() }}}}{{{{ ('a' ~ c ~ 'Bc').{method}() }}}}{{% endfor %}}"
    refused = {c for block in _blocks(letters, 2_000) for c in _refused(source, block)}
    # Ten that a newer Unicode treats otherwise, and title case where it is not upper case.
    assert len(refused) < (350 if OLDEST else 6_000), sorted(refused)
    if method == "isspace":
        assert not refused


def test_final_sigma() -> None:
    around = ["", "a", "Σ", " ", ".", "\u0301", "'", "1", "\u0391\u02b9", "ª"]
    texts = [
        f"{before}{more}Σ{after}{less}" for before in around for more in around for after in around for less in around
    ]
    seen = check((f"{{{{ v.{method}() }}}}", {"v": text}) for method in ("lower", "capitalize") for text in texts)
    assert seen["refused"] == 0, seen


def test_every_character_is_white_space_or_not() -> None:
    blocks = ["".join(block) for block in _blocks(list(_characters()), 5_000)]
    sources = [
        "{{ v.split() }}",
        "{{ v.splitlines()|length }}",
        "{% for c in v %}{{ (c ~ 'x' ~ c)|trim|length }}{% endfor %}",
    ]
    for source in sources:
        for block in blocks:
            # Printing a list shows characters that no Python knows: ask for lengths there.
            shown = source.replace("v.split()", "v.split()|map('length')|list")
            assert outcome(shown, {"v": block}) == "native"


def test_every_character_in_json() -> None:
    blocks = ["".join(block) for block in _blocks(list(_characters()), 20_000)]
    for block in blocks:
        assert outcome("{{ v|tojson }}", {"v": block}) == "native"
        assert outcome("{{ v|tojson(ensure_ascii=true) }}", {"v": {block: [block]}}) == "native"


def _floats(seed: int) -> Iterator[float]:
    yield from (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7976931348623157e308)
    for exponent in range(-1074, 1024):
        power = math.ldexp(1.0, exponent)
        yield from (power, math.nextafter(power, 0), math.nextafter(power, math.inf))
    for exponent in range(-320, 309):
        yield from (float(f"{digits}e{exponent}") for digits in ("1", "9.5", "9.999999999999999"))
    rng = random.Random(seed)
    for _ in range(20_000):
        yield struct.unpack("<d", rng.randbytes(8))[0]
        # Few binary digits after the point: halfway between two shortest texts, now and then.
        yield rng.randint(2**49, 2**53) / rng.choice((2, 4, 8, 16))
        yield math.ldexp(rng.getrandbits(53), -rng.randint(1, 60))
        yield round(rng.uniform(-1e6, 1e6), rng.randint(0, 6))


@pytest.mark.parametrize("seed", range(3))
def test_floats_print(seed: int) -> None:
    values = list(_floats(seed))
    assert outcome("{{ v }}", {"v": values}) == "native"
    assert outcome("{{ v|tojson }}", {"v": values}) == "native"
    assert outcome("{{ v|join(' ') }}", {"v": values}) == "native"
    texts = [repr(value) for value in values] + [f"{value:.20e}" for value in values[::7]]
    assert outcome("{{ v|map('float')|list }}", {"v": texts}) == "native"


def test_floats_are_formatted_and_rounded() -> None:
    rng = random.Random(2)
    values = [rng.randint(-4000, 4000) / rng.choice((8, 16, 100, 1000)) for _ in range(2_000)]
    values += [0.5, 1.5, 2.5, 0.125, 2.675, 1.005, 12345678.5, 1e-9, 123456.789]
    for precision in range(5):
        assert (
            outcome(
                f"{{% for x in v %}}{{{{ '%.{precision}f %+08.{precision}f' % (x, x) }}}} {{% endfor %}}", {"v": values}
            )
            == "native"
        )
        for method in ("common", "ceil", "floor"):
            source = f"{{% for x in v %}}{{{{ x|round({precision}, '{method}') }}}} {{% endfor %}}"
            assert outcome(source, {"v": values}) == "native"
    assert outcome("{% for x in v %}{{ x|int }} {{ '%d' % x }} {% endfor %}", {"v": values}) == "native"


@pytest.mark.parametrize("seed", range(4))
def test_arithmetic(seed: int) -> None:
    rng = random.Random(seed)

    def number() -> Any:
        if rng.random() < 0.5:
            size = 10 ** rng.randint(1, 36)
            return rng.randint(-size, size)
        return rng.choice([rng.uniform(-100, 100), float(rng.randint(-9, 9)), rng.randint(-50, 50) / 8])

    pairs = [(number(), number()) for _ in range(3_000)]
    pairs += [(a, float(a)) for a, _ in pairs] + [(a, math.nextafter(float(a), 0)) for a, _ in pairs]
    for operator in ("+", "-", "*", "/", "//", "%", "==", "<", ">="):
        seen = check((f"{{{{ a {operator} b }}}}", {"a": a, "b": b}) for a, b in pairs)
        assert seen["native"] > 1_000, (operator, seen)


def _json(rng: random.Random, depth: int) -> Any:
    """Any value that has a JSON text, nested up to `depth`."""
    scalars = [
        lambda: rng.choice([None, True, False]),
        lambda: rng.randint(-(10**6), 10**20),
        lambda: rng.choice([rng.uniform(-1e3, 1e3), 1e16, 1e-7, float("nan"), float("inf")]),
        lambda: "".join(rng.choices("ab\"\\/\b\f\n\r\t\x00\x1f\x7f<>&'é\u2028\ufeff日😀 ", k=rng.randrange(9))),
    ]
    containers = [
        lambda: tuple(_json(rng, depth - 1) for _ in range(rng.randrange(5))),
        lambda: [_json(rng, depth - 1) for _ in range(rng.randrange(5))],
        lambda: {f"{rng.choice('zyxé')}{at % 3}": _json(rng, depth - 1) for at in range(rng.randrange(5))},
    ]
    return rng.choice(scalars + containers if depth else scalars)()


def test_json_of_everything() -> None:
    rng = random.Random(4)
    values = [_json(rng, 5) for _ in range(1_500)]
    keywords = [
        *("", "ensure_ascii=true", "ensure_ascii=false, indent=4", "indent=0", "indent='\\t'", "sort_keys=true"),
        *("separators=(',', ':')", "indent=2, separators=(' ,', ' : ')", "indent=1, sort_keys=true, ensure_ascii=true"),
    ]
    for keyword in keywords:
        assert outcome(f"{{% for x in v %}}{{{{ x|tojson({keyword}) }}}}\n{{% endfor %}}", {"v": values}) == "native"
    assert outcome("{{ v }}{{ v|string }}{{ v ~ '' }}", {"v": values}) == "native"
