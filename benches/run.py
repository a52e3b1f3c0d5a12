"""The figures of the README: `make bench`, or `python benches/run.py --help`.

Three tables. The warm call at the end of a long conversation, by kind of result: the median over the last turns of
several replays, each in a process of its own, so that no cache of an earlier one can help; both sides take turns. The
same with each side by itself, transformers behind turntrie's whole episode: a process that has only one of them finds
the processor's caches as it left them, and not full of the other's work. And the CPU seconds of a whole episode by its
number of turns, with the slope in log-log scale: 2 means that every turn pays for the whole history, 1 that it pays for
what is new.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import replays
from replays import ROWS, Turn, chosen, settle, turns

LENGTHS = (10, 50, 100, 200)
"""Numbers of turns of the episodes whose cost is summed up."""
EARLY = 20
"""The turn whose cost is set beside that of the last ones."""
APART = ", apart"
"""After the name of a row: each side was measured by itself."""


# --- one replay, in its own process ---


def replay(row: str, total: int, window: int, *, every_turn: bool) -> dict[str, Any]:
    """Replays an episode once through one row's route.

    Args:
        row: The name of the row.
        total: How many turns.
        window: How many turns at the end are compared with the reference and reported.
        every_turn: Compare every turn, and report the CPU seconds of each: for the cumulative table.

    Returns:
        Milliseconds of the window's turns (`reference`, `ours`), delta tokens and kept ids where the route tells, and
        CPU seconds of every turn (`reference_cpu`, `ours_cpu`).
    """
    given = chosen(total)
    spec = ROWS[row]
    reference, ours = spec.reference(given.model), spec.route(given.model)
    out: dict[str, Any] = {"input": given.name, **{key: [] for key in _SERIES}}
    for turn in turns(given.recording)[:total]:
        in_window = turn.number > total - window
        expected = None
        if in_window or every_turn:
            wall, cpu, result = _timed(reference, turn)
            expected = reference.look(result).ids()
            out["reference_cpu"].append(cpu)
            if in_window:
                out["reference"].append(wall)
        wall, cpu, result = _timed(ours, turn)
        if spec.repeated:
            wall, _, result = _timed(ours, turn)
        answer = ours.look(result)
        out["ours_cpu"].append(cpu)
        if expected is not None:
            assert answer.ids() == expected, f"{row}, turn {turn.number}: ids differ"
        if in_window:
            out["ours"].append(wall)
            out["tokens"].append(len(expected or ()))
            if answer.kept is not None:
                out["kept"].append(answer.kept)
                out["new"].append(answer.new)
    return out


def apart(row: str, total: int, window: int) -> dict[str, Any]:
    """The same, each side by itself: all turns through the row's route, then the window's through the reference.

    Returns:
        As `replay`, without CPU seconds, and for the turns around the twentieth `early` and `early_new`.
    """
    given = chosen(total)
    spec = ROWS[row]
    reference, ours = spec.reference(given.model), spec.route(given.model)
    out: dict[str, Any] = {"input": given.name, **{key: [] for key in (*_SERIES, "early", "early_new")}}
    results: list[tuple[Turn, Any]] = []
    for turn in turns(given.recording)[:total]:
        wall, _, result = _timed(ours, turn, settled=False)
        if turn.number > total - window:
            out["ours"].append(wall)
            results.append((turn, result))
        elif abs(turn.number - EARLY) <= window // 2:
            out["early"].append(wall)
            out["early_new"].append(ours.look(result).new or 0)
    for turn, result in results:
        wall, _, expected = _timed(reference, turn, settled=False)
        out["reference"].append(wall)
        answer, ids = ours.look(result), reference.look(expected).ids()
        assert answer.ids() == ids, f"{row}, turn {turn.number}: ids differ"
        out["tokens"].append(len(ids))
        if answer.kept is not None:
            out["kept"].append(answer.kept)
            out["new"].append(answer.new)
    return out


_SERIES = ("reference", "ours", "tokens", "kept", "new", "reference_cpu", "ours_cpu")


def _timed(route: Any, turn: Turn, *, settled: bool = True) -> tuple[float, float, Any]:
    """Milliseconds of wall clock, CPU seconds of the process, and the result of one call."""
    if settled:
        settle()
    cpu, wall = time.process_time(), time.perf_counter()
    result = route(turn.messages, turn.new, turn.tools)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall * 1e3, cpu, result


# --- all replays ---


def _child(row: str, options: argparse.Namespace, *flags: str) -> dict[str, Any]:
    """Runs one replay in a fresh process."""
    command = [sys.executable, __file__, "--child", row, "--turns", str(options.turns), "--window", str(options.window)]
    done = subprocess.run(  # noqa: S603  # ourselves
        [*command, *flags], stdout=subprocess.PIPE, check=True, text=True
    )
    return dict(json.loads(done.stdout))


def slope(points: list[tuple[int, float]]) -> float:
    """The least-squares slope of log(cost) over log(turns)."""
    xs, ys = [math.log(n) for n, _ in points], [math.log(cost) for _, cost in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Runs all replays, rows interleaved, and returns the series of each, in turns and apart."""
    series: dict[str, list[dict[str, Any]]] = {row: [] for row in options.row or ROWS}
    series |= {f"{row}{APART}": [] for row in series if not ROWS[row].repeated}
    for number in range(options.replays):
        for name, runs in series.items():
            if sys.stderr.isatty():
                print(f"\r\x1b[Kreplay {number + 1} of {options.replays}: {name}", end="", file=sys.stderr, flush=True)
            row = name.removesuffix(APART)
            if name != row:
                runs.append(_child(row, options, "--apart"))
            else:
                runs.append(_child(row, options, *(["--every-turn"] if _sums_up(row, options) else [])))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return series


def _sums_up(row: str, options: argparse.Namespace) -> bool:
    """Whether the table of whole episodes is made from this row."""
    return row == "list" and not options.no_episode


def _over(runs: list[dict[str, Any]], key: str) -> list[float]:
    """One series, all replays in a row."""
    return [value for run in runs for value in run[key]]


def show(series: dict[str, Any], options: argparse.Namespace) -> None:
    """Prints the tables."""
    first, last = options.turns - options.window + 1, options.turns
    runs = [run for row in series.values() for run in row]
    print(f"{runs[0]['input']}; {median(_over(runs, 'tokens')):,.0f} tokens at turns {first}-{last}")
    if _over(runs, "new"):
        print(f"delta {median(_over(runs, 'new')):,.0f} tokens, kept {median(_over(runs, 'kept')):,.0f} (medians)")
    print(f"{environment()}\n")
    print(f"warm call: first call of a turn, median over turns {first}-{last} of {options.replays} replays")
    print(f"{'':22}{'HF ms':>10}{'turntrie ms':>14}{'replay medians':>18}{'ratio':>9}")
    for row, runs in series.items():
        if row.endswith(APART):
            continue
        _line(row, runs)
    print("\nthe same, each side by itself")
    for row, runs in series.items():
        if row.endswith(APART):
            _line(row.removesuffix(APART), runs)
            early = median(_over(runs, "early"))
            new = f", of {median(_over(runs, 'early_new')):,.0f} new tokens" if _over(runs, "new") else ""
            growth = median(_over(runs, "ours")) / early
            print(f"{'':22}{'':>10}{early:>14.3f}  around turn {EARLY}{new}: growth {growth:.2f}")
    if options.no_episode or "list" not in series:
        return
    print(f"\nwhole episode, list call: CPU seconds, median of {options.replays} replays")
    print(f"{'turns':>8}{'HF s':>12}{'turntrie s':>14}{'ratio':>9}")
    points: dict[str, list[tuple[int, float]]] = {"reference_cpu": [], "ours_cpu": []}
    for length in [n for n in LENGTHS if n <= options.turns]:
        for key, values in points.items():
            values.append((length, median(sum(run[key][:length]) for run in series["list"])))
        reference, ours = points["reference_cpu"][-1][1], points["ours_cpu"][-1][1]
        print(f"{length:>8}{reference:>12.3f}{ours:>14.4f}{reference / ours:>8.1f}x")
    if len(points["ours_cpu"]) > 1:
        print(f"{'slope':>8}{slope(points['reference_cpu']):>12.2f}{slope(points['ours_cpu']):>14.2f}")


def _line(row: str, runs: list[dict[str, Any]]) -> None:
    reference, ours = median(_over(runs, "reference")), median(_over(runs, "ours"))
    spread = sorted(median(run["ours"]) for run in runs)
    extent = f"{spread[0]:.2f}-{spread[-1]:.2f}"
    print(f"{row:22}{reference:>10.1f}{ours:>14.3f}{extent:>18}{reference / ours:>8.1f}x")


def environment() -> str:
    """Where and with what this was measured."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    packages = ", ".join(f"{name} {version(name)}" for name in ("turntrie", "transformers", "tokenizers"))
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} x {cpu}{load}; Python {platform.python_version()}, {packages}"


def main() -> None:
    """Measures and prints; or, as a child, runs one replay and prints its series."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=replays.TURNS)
    parser.add_argument("--window", type=int, default=replays.WINDOW)
    parser.add_argument("--replays", type=int, default=replays.REPLAYS)
    parser.add_argument("--row", action="append", choices=ROWS, help="only these rows; all by default")
    parser.add_argument("--no-episode", action="store_true", help="leave out the table of whole episodes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measured value there, too")
    parser.add_argument("--child", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--every-turn", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child and options.apart:
        print(json.dumps(apart(options.child, options.turns, options.window)))
        return
    if options.child:
        print(json.dumps(replay(options.child, options.turns, options.window, every_turn=options.every_turn)))
        return
    series = measure(options)
    show(series, options)
    if options.json:
        options.json.write_text(json.dumps({"environment": environment(), "series": series}), encoding="utf-8")


if __name__ == "__main__":
    main()
