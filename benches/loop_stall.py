"""How long an event loop stands still while another thread prepares a prompt: `python benches/loop_stall.py`.

A heartbeat wakes up every 5 ms on the loop while the turns of the window run, one after the other, in a worker thread.
The stall of a run is the longest gap between two beats, minus the period; printed is the median over several runs, with
the same heartbeat on an idle loop beside it, which is what the machine itself does.
"""

import argparse
import asyncio
import time
from collections.abc import Callable
from statistics import median

import replays
from replays import ArrayCall, ListCall, Reference, Route, Turn, chosen, turns
from run import environment

PERIOD = 0.005


async def _longest_gap(work: Callable[[], object]) -> float:
    """Milliseconds by which the longest gap of the heartbeat exceeds its period, while `work` runs in a thread."""
    longest = 0.0
    running = asyncio.create_task(asyncio.to_thread(work))
    before = time.perf_counter()
    while not running.done():
        await asyncio.sleep(PERIOD)
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    await running
    return max(longest - PERIOD, 0.0) * 1e3


def stall(route: type[Route] | None, runs: int) -> list[float]:
    """The stalls of several runs, each with a fresh tokenizer; None is the idle loop."""
    given = chosen()
    every = turns(given.recording)
    before, window = every[: -replays.WINDOW], every[-replays.WINDOW :]
    found = []
    for _ in range(runs):
        work: Callable[[], object] = lambda: time.sleep(1.0)  # noqa: E731  # the same name, another work
        if route is not None:
            made = route(given.model)
            for turn in before if route is not Reference else ():
                made(turn.messages, turn.new, turn.tools)
            work = _calls(made, window)
        found.append(asyncio.run(_longest_gap(work)))
    return found


def _calls(route: Route, window: list[Turn]) -> Callable[[], object]:
    """The turns of the window, each called once."""
    return lambda: [route(turn.messages, turn.new, turn.tools) for turn in window]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=replays.REPLAYS)
    options = parser.parse_args()
    print(f"{environment()}\n")
    print(f"longest stall of a {PERIOD * 1e3:.0f} ms heartbeat, median of {options.runs} runs")
    cases = {"idle loop": None, "HF, list": Reference, "turntrie, list": ListCall, "turntrie, array": ArrayCall}
    for name, route in cases.items():
        found = stall(route, options.runs)
        print(f"{name:18}{median(found):>10.2f} ms   (runs: {', '.join(f'{value:.2f}' for value in found)})")


if __name__ == "__main__":
    main()
