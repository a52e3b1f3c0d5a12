"""What verification costs once everything has been seen: `make bench-verification`.

The conversation of `replays` is replayed turn by turn under `verify="off"` and under `verify="shapes"`, each on a fresh
tokenizer with an empty trie, after a first replay that has shown the template's shapes to the text oracle. What is left
is what every call pays for ever: computing and looking up the shape, and the id oracle's samples.

- *Instructions*, by callgrind (`apt install valgrind`), of the second replay. Those of the calling thread are compared:
  they follow from the code alone. The id oracle has threads of its own, bounded by time (1 % of one core and a first
  half second, see `src/verify.rs`), and callgrind stretches time: their instructions are printed apart.
- *Wall clock*: turns of two tokenizers interleaved, the order changing; the median over all turns of the ratio of a
  turn's two times, for each replay.

Every call asserts that it was native.
"""

import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import replays
import turntrie
from replays import Input, Turn, chosen, generated, load, turns
from run import environment

POLICIES = ("off", "shapes")


def _fresh(given: Input, policy: str) -> Any:
    """A wrapped tokenizer whose engine is built."""
    tokenizer = turntrie.wrap(load(given.model), verify=policy)
    tokenizer.turntrie.warmup()
    return tokenizer


def _call(tokenizer: Any, turn: Turn) -> list[int]:
    ids: list[int] = tokenizer.apply_chat_template(
        turn.messages, tools=turn.tools, add_generation_prompt=True, return_dict=False
    )
    return ids


def _replay(tokenizer: Any, every: list[Turn]) -> None:
    """Calls each turn once and asserts that all of them were native."""
    before = tokenizer.turntrie.stats()["calls"]["native"]
    for turn in every:
        _call(tokenizer, turn)
    calls = tokenizer.turntrie.stats()["calls"]
    assert (calls["native"] - before, calls["reference"]) == (len(every), 0), tokenizer.turntrie.stats()


# --- instructions ---


def _control(switch: str) -> None:
    """Switches callgrind's instrumentation of this process; spins meanwhile, since it is obeyed by running code."""
    command = subprocess.Popen(["callgrind_control", "-i", switch, str(os.getpid())], stdout=subprocess.DEVNULL)  # noqa: S603, S607
    while command.poll() is None:
        pass
    assert command.returncode == 0, f"callgrind_control -i {switch} failed"


def instrumented(given: Input, policy: str) -> None:
    """In a process under callgrind: one replay to learn the shapes, one that is counted."""
    every = turns(given.recording)
    learner = _fresh(given, policy)
    _replay(learner, every)
    tokenizer = _fresh(given, policy)
    checked = tokenizer.turntrie.stats()["engine"]["ids_checked"]
    gc.collect()
    gc.disable()
    _control("on")
    _replay(tokenizer, every)
    _control("off")
    stats = tokenizer.turntrie.stats()
    assert learner is not tokenizer
    print(f"checked {stats['engine']['ids_checked'] - checked} texts {stats['verifications']}")


class Counted(NamedTuple):
    """Instructions of one replay."""

    caller: int
    others: int
    """Those of all other threads."""
    verified: str


def instructions(policy: str, options: argparse.Namespace) -> Counted:
    """Counts one replay in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = [
            "valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no", "--separate-threads=yes",
            f"--callgrind-out-file={out}",
            sys.executable, __file__, "--instrumented", policy, "--turns", str(options.turns),
            *(["--generated"] if options.generated else []),
        ]  # fmt: skip
        # The same hashes, and so the same dict and set layouts, in both processes.
        done = subprocess.run(  # noqa: S603
            command, env={**os.environ, "PYTHONHASHSEED": "0"}, stdout=subprocess.PIPE, text=True, check=True
        )
        # A file for each thread, `out-01` that of the main one.
        counts: dict[bool, int] = {True: 0, False: 0}
        for file in out.parent.iterdir():
            found = re.findall(r"^totals: (\d+)", file.read_text(), re.MULTILINE)
            counts[file.name.endswith("-01")] += sum(map(int, found))
        return Counted(counts[True], counts[False], done.stdout.strip())


# --- wall clock ---


def wall(given: Input) -> float:
    """The median over all turns of shapes' time by off's, both on fresh tokenizers, interleaved."""
    tokenizers = {policy: _fresh(given, policy) for policy in POLICIES}
    ratios = []
    for turn in turns(given.recording):
        seconds = {}
        results = []
        for policy in POLICIES if turn.number % 2 else reversed(POLICIES):
            start = time.perf_counter()
            ids = _call(tokenizers[policy], turn)
            seconds[policy] = time.perf_counter() - start
            results.append(ids)
        assert results[0] == results[1]
        ratios.append(seconds["shapes"] / seconds["off"])
    for tokenizer in tokenizers.values():
        assert tokenizer.turntrie.stats()["calls"]["reference"] == 0
    return median(ratios)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=replays.TURNS)
    parser.add_argument("--runs", type=int, default=replays.REPLAYS)
    parser.add_argument("--generated", action="store_true", help="the generated conversation, whatever is set")
    parser.add_argument("--no-callgrind", action="store_true", help="wall clock only")
    parser.add_argument("--instrumented", choices=POLICIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    given = generated(options.turns) if options.generated else chosen(options.turns)
    if options.instrumented:
        instrumented(given, options.instrumented)
        return
    print(f"{environment()}\n{given.name}, {options.turns} turns\n")
    _replay(_fresh(given, "shapes"), turns(given.recording))
    found = [wall(given) for _ in range(options.runs)]
    print(
        f"wall, shapes / off: {median(found):.3f}   (runs: {', '.join(f'{value:.3f}' for value in found)})", flush=True
    )
    if options.no_callgrind:
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("error: no valgrind: apt install valgrind, or --no-callgrind")
    counts = {}
    for policy in POLICIES:
        counts[policy] = counted = instructions(policy, options)
        others = f"other threads {counted.others:,}, {counted.verified}"
        print(f"instructions, {policy:8}{counted.caller:>18,}   ({others})", flush=True)
    print(f"instructions, shapes / off: {counts['shapes'].caller / counts['off'].caller:.4f}")


if __name__ == "__main__":
    main()
