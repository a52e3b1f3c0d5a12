"""Rendering alone: the native renderer beside jinja2, and whether the interpreter is free meanwhile.

`python benches/render.py`. The conversation is the last turn of the same episode that `benches/run.py` replays, the
template the model's. Both sides render the same messages again and again, alternating; the texts are compared first.
Two figures for the native side: from Python objects (`render`), and from a conversation that a session has converted
before. To see whether rendering holds the GIL, a second thread counts in Python: `counted` is its speed while the first
one renders all the time, as a share of its speed alone. A renderer in Python shares the interpreter (about a half).
"""

import argparse
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from transformers import AutoTokenizer
from transformers.utils import chat_template_utils

import replays
from replays import chosen, turns
from run import environment
from turntrie import _native, reference


def timed(call: Callable[[], Any]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def counted(call: Callable[[], Any] | None, seconds: float) -> float:
    """Loop rounds per second of this thread while another one makes calls."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            if call is not None:
                call()

    thread = threading.Thread(target=work) if call is not None else None
    if thread:
        thread.start()
    rounds, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        rounds += 1
    stop.set()
    if thread:
        thread.join()
    return rounds / seconds


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=replays.TURNS)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    given = chosen(options.turns)
    turn = turns(given.recording)[options.turns - 1]
    tok: Any = AutoTokenizer.from_pretrained(given.model)
    source = tok.get_chat_template(None, turn.tools)
    variables = {**tok.special_tokens_map, "tools": turn.tools, "documents": None, "add_generation_prompt": True}
    theirs = chat_template_utils._compile_jinja_template(source)  # noqa: SLF001  # as transformers itself calls it
    ours = _native.Template(source)
    # What transformers does to the messages before it renders is not measured on either side.
    flags = reference.rules().flags
    converted = _native.Conversation()
    assert converted.extend(turn.messages, flags) is None
    clock = dict.fromkeys(ours.clock_formats, "")

    def jinja() -> str:
        return theirs.render(messages=turn.messages, **variables)

    def render() -> _native.Prompt:
        return ours.render(turn.messages, variables, clock, flags)

    def session() -> _native.Prompt:
        return ours.render(converted, variables, clock, flags)

    text = tok.apply_chat_template(turn.messages, tools=turn.tools, add_generation_prompt=True, tokenize=False)
    for call in (render, session):
        assert call().reason is None
        assert call().text == text
    series: dict[str, list[float]] = {"jinja2": [], "render": [], "session": []}
    for _ in range(options.rounds):
        for name, call in (("jinja2", jinja), ("render", render), ("session", session)):
            series[name].append(timed(call))
    print(f"{given.name}; {len(turn.messages)} messages, {len(text):,} characters\n{environment()}\n")
    base = median(series["jinja2"])
    for name, values in series.items():
        print(f"{name:10}{median(values):>9.3f} ms   (fastest {min(values):.3f}){base / median(values):>8.1f}x")
    alone = counted(None, 1)
    for name, call in (("jinja2", jinja), ("session", session)):
        print(f"counted beside {name:10}{counted(call, 1) / alone:>7.0%}")


if __name__ == "__main__":
    main()
