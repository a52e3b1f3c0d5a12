"""Calls per second of 1, 2, 4 and 8 threads that replay different sessions: `python benches/threads.py`.

Each thread replays a conversation of its own, turn by turn, on one tokenizer that all share, as an inference server or
a rollout worker does. turntrie and transformers are measured in the same way, one after the other; ids are compared
once the clock has stopped.
"""

import argparse
import threading
import time
from typing import Any

import replays
from replays import ListCall, Reference, Route, generated, turns
from run import environment

THREADS = (1, 2, 4, 8)


def replay(route: Route, sessions: list[list[replays.Turn]]) -> tuple[list[float], float, list[list[Any]]]:
    """All sessions at a time; the seconds of each call, those of everything, and the results."""
    spent: list[list[float]] = [[] for _ in sessions]
    results: list[list[Any]] = [[] for _ in sessions]
    barrier = threading.Barrier(len(sessions) + 1)

    def work(number: int) -> None:
        barrier.wait()
        for turn in sessions[number]:
            start = time.perf_counter()
            result = route(turn.messages, turn.new, turn.tools)
            spent[number].append(time.perf_counter() - start)
            results[number].append(result)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(sessions))]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return [one for each in spent for one in each], time.perf_counter() - start, results


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=40, help="turns of each session")
    options = parser.parse_args()
    print(f"{environment()}\n")
    model = replays.chosen().model
    print(f"{model.name}, sessions of {options.turns} turns; calls per second, p50 and p99 in ms")
    for count in THREADS:
        sessions = [turns(generated(options.turns, seed, model).recording) for seed in range(1, count + 1)]
        cells = []
        kept = []
        for kind in (Reference, ListCall):
            route = kind(model)
            spent, seconds, results = replay(route, sessions)
            spent.sort()
            cells.append(
                f"{len(spent) / seconds:8.0f}/s {spent[len(spent) // 2] * 1e3:8.2f} "
                f"{spent[min(len(spent) - 1, len(spent) * 99 // 100)] * 1e3:8.2f}"
            )
            kept.append([[route.look(result).ids() for result in each] for each in results])
        assert kept[0] == kept[1]
        print(f"  {count} threads: HF {cells[0]}   turntrie {cells[1]}")


if __name__ == "__main__":
    main()
