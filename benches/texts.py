"""Texts for benchmarks of encoders, in pieces of 4 KB, none twice.

Real ones: `code` is the interpreter's own standard library; `logs` are the tool results and `cjk` the messages that are
mostly Chinese of the recordings in TURNTRIE_CONVERSATIONS; TURNTRIE_TEXTS may name a folder with more text files, in
folders named like the kinds.

Kinds with a star are generated, as in `benches/encoders.rs`: code, log lines, prose and CJK of syllables joined at
random, so that most words are no tokens, few are met twice, and no cache of words is of much use.
"""

import os
import random
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from turntrie.cli import recordings

BYTES = 4096
PIECES = 200
WARM_UP = 40


def split(every: list[str]) -> tuple[list[str], list[str]]:
    """The pieces to warm up on, and those to time."""
    warm = min(WARM_UP, len(every) // 4)
    return every[:warm], every[warm:][:PIECES]


# --- real ---


def pieces(text: str) -> Iterator[str]:
    """Cuts a text into pieces of about 4 KB; what is left over is dropped."""
    raw = text.encode(errors="ignore")
    for start in range(0, len(raw) - BYTES + 1, BYTES):
        yield raw[start : start + BYTES].decode(errors="ignore")


def real(kind: str) -> list[str]:
    """Pieces of real text of a kind, none twice, shuffled with a fixed seed."""
    texts: list[str] = []
    if kind == "code":
        texts += [_read(file) for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))]
    elif folder := os.environ.get("TURNTRIE_CONVERSATIONS"):
        texts += ["\n".join(dict.fromkeys(_messages(Path(folder), kind)))]
    if folder := os.environ.get("TURNTRIE_TEXTS"):
        texts += [_read(file) for file in sorted((Path(folder) / kind).glob("*"))]
    found = list(dict.fromkeys(piece for text in texts for piece in pieces(text)))
    random.Random(5).shuffle(found)  # noqa: S311  # a fixed order
    return found


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="ignore")


def _messages(folder: Path, kind: str) -> Iterator[str]:
    for file in sorted(folder.glob("*.jsonl*")):
        for recording in recordings.read(file):
            for message in recording.messages:
                content = message.get("content")
                if not isinstance(content, str):
                    continue
                wide = sum(c >= "\u3000" for c in content)
                if (kind == "logs" and message["role"] == "tool" and not wide) or (
                    kind == "cjk" and 2 * wide > len(content)
                ):
                    yield content


# --- generated ---

_SYLLABLES = [
    *("in", "ter", "con", "pro", "ment", "able", "re", "ver", "sion", "ta", "ble", "com", "mit", "val", "ue", "ist"),
    *("ory", "fig", "ure", "lo", "ad", "er", "sta", "tus", "mes", "sage", "to", "ken", "set", "get", "par", "se"),
]


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(1, 4)))


def _code(rng: random.Random) -> str:
    a, b, c = _word(rng), _word(rng), _word(rng)
    n = rng.randrange(1000)
    line = rng.choice(
        (
            f"def {a}_{b}(self, {c}: int = {n}) -> list[str]:",
            f'if {a}.{b} is not None and {c}[{n}] != "{a}":',
            f"{a}.{b}({c}={n}, key=lambda x: x.{c})",
            f"return [{a} for {a} in {b} if {a}.{c} >= {n}]",
            f"# {a} the {b} of each {c}, see {a}.py:{n}\n",
            f'raise ValueError(f"{{{a}}} {b} {c}")',
        )
    )
    return "    " * rng.randrange(4) + line + "\n"


def _logs(rng: random.Random) -> str:
    x, y = rng.getrandbits(64), rng.getrandbits(64)
    return (
        f"2026-11-{1 + x % 28:02}T{x % 24:02}:{y % 60:02}:{x % 60:02}.{x % 1_000_000:06}Z "
        f"INFO {_word(rng)}::{_word(rng)} request_id={x:016x}-{y:08x} status={200 + y % 300} took {y % 10_000} ms\n"
    )


def _prose(rng: random.Random) -> str:
    words = (_word(rng) + rng.choice((" ", " ", " ", ", ", " the ", " of ")) for _ in range(rng.randint(6, 20)))
    return "".join(words) + rng.choice((".\n", ". ", "?\n\n", "! "))


def _cjk(rng: random.Random) -> str:
    starts = ((0x4E00, 0x1500),) * 7 + ((0x3042, 80),) * 2 + ((0xAC00, 2000),)
    chosen = (rng.choice(starts) for _ in range(rng.randint(4, 30)))
    return "".join(chr(start + rng.randrange(size)) for start, size in chosen) + rng.choice("。、\n ")


GENERATED: dict[str, Callable[[random.Random], str]] = {"code": _code, "logs": _logs, "prose": _prose, "cjk": _cjk}


def generated(kind: str) -> list[str]:
    """Pieces of generated text."""
    rng = random.Random(11)  # noqa: S311  # test data
    made = []
    for _ in range(WARM_UP + PIECES):
        text = ""
        while len(text.encode()) < BYTES:
            text += GENERATED[kind](rng)
        made.append(text)
    return made


KINDS: dict[str, Callable[[], list[str]]] = {
    **{kind: (lambda kind=kind: real(kind)) for kind in ("code", "logs", "cjk")},
    **{f"{kind}*": (lambda kind=kind: generated(kind)) for kind in GENERATED},
}
