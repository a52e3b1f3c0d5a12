"""What an adapter saves its system: `python benches/adapters.py --help`.

One episode: every turn by the system's own path on a plain tokenizer, and by each adapter on a tokenizer and an engine
of its own, interleaved, ids compared. Reported are the CPU seconds of all turns and the median of the warm call, the
first call of a turn, over the last ones. Own and ours are the very functions that the tests compare. Systems whose own
path is the same call (slime's and AReaL's returns the installed default, NeMo's and TRL's a list) share the one that is
timed, and a process; each such group has its own.

Then the token bundle at 100,000 tokens: reading it from each source, and tokenizing the prompt where none tells.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "python"))

import adapter_paths
import replays
import turntrie
from adapter_paths import SYSTEMS
from replays import Messages, Turn, chosen, load, turns
from run import environment
from turntrie.adapters import nemo, slime
from turntrie.attachment import DEFAULT_BUDGET

DELTAS = "slime get_token_delta"
"""Not a prompt, but the ids that each message of a turn adds."""

GROUPS = (("slime", "areal", "areal incremental"), ("nemo", "nemo /tokenize", "trl"), (DELTAS,))
"""Systems with the same own path; the first one's is timed."""


def deltas(delta: Callable[..., Any], tokenizer: Any) -> Callable[[Turn], Any]:
    """The ids of every message of a turn that has not been there before, or what slime says against one."""

    def one(messages: Messages) -> Any:
        try:
            return delta(tokenizer, messages)
        except ValueError as error:
            return str(error)

    def route(turn: Turn) -> list[Any]:
        first = max(len(turn.messages) - len(turn.new), 2) + 1
        return [one(turn.messages[:end]) for end in range(first, len(turn.messages) + 1)]

    return route


def own_route(system: str, model: Path) -> Callable[[Turn], Any]:
    """The system's own way through a turn."""
    if system == DELTAS:
        return deltas(adapter_paths.slime_delta, load(model))
    own = SYSTEMS[system].own(load(model))
    return lambda turn: own(turn.messages, turn.tools)


def our_route(system: str, model: Path, number: int) -> Callable[[Turn], Any]:
    """The adapter's way. Templates are compiled and the engine is built before: both happen once a process."""
    tok = load(model)
    turntrie.wrap(tok, budget=DEFAULT_BUDGET + number)  # another budget: another engine, that nobody has warmed
    replays.warm_up(load(model), tok)
    if system == DELTAS:
        return deltas(slime.get_token_delta, tok)
    ours = SYSTEMS[system].ours(tok)
    return lambda turn: ours(turn.messages, turn.tools)


def episode(systems: list[str], total: int, window: int) -> dict[str, Any]:
    """Replays one episode through the own path and the adapters."""
    given = chosen(total)
    routes = {OWN: own_route(systems[0], given.model)}
    routes |= {name: our_route(name, given.model, number) for number, name in enumerate(systems)}
    cpu, warm = dict.fromkeys(routes, 0.0), {name: [] for name in routes}
    tokens, before = 0, sum(turntrie.stats()["fallbacks"].values())
    for turn in turns(given.recording)[:total]:
        wanted: Any = None
        for name, route in routes.items():
            used, wall = time.process_time(), time.perf_counter()
            got = route(turn)
            wall, used = time.perf_counter() - wall, time.process_time() - used
            cpu[name] += used
            if turn.number > total - window:
                warm[name].append(wall * 1e3)
            wanted = got if name == OWN else wanted
            assert got == wanted, f"{name}, turn {turn.number}: ids differ"
        assert sum(turntrie.stats()["fallbacks"].values()) == before, turntrie.stats()["fallbacks"]
        tokens = len(wanted)
    return {"input": given.name, "tokens": tokens, "cpu": cpu, "warm": {name: median(warm[name]) for name in warm}}


OWN = "own"


def child(systems: list[str], turns: int) -> dict[str, Any]:
    """One episode in a process of its own."""
    command = [sys.executable, __file__, "--turns", str(turns), *(f"--child={name}" for name in systems)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)  # noqa: S603  # ourselves
    return dict(json.loads(done.stdout))


# --- the bundle ---


def _response(prompt: list[int], generated: list[int], source: str) -> dict[str, Any]:
    probs = [-0.25] * len(generated)
    choice: dict[str, Any] = {"message": {"role": "assistant", "content": "x"}}
    body: dict[str, Any] = {"choices": [choice]}
    if source == "message":
        choice["message"].update(prompt_token_ids=prompt, generation_token_ids=generated, generation_log_probs=probs)
        return body
    choice["logprobs"] = {
        "content": [{"token": f"token_id:{i}", "logprob": p} for i, p in zip(generated, probs, strict=True)]
    }
    if source == "response":
        body["prompt_token_ids"], choice["token_ids"] = list(prompt), list(generated)
    return body


def bundle(tokens: int = 100_000, repeats: int = 9) -> list[tuple[str, float]]:
    """Milliseconds by source, the median; a fresh response each time."""
    rng = random.Random(1)  # noqa: S311  # numbers to read
    prompt = [rng.randrange(150_000) for _ in range(tokens)]
    rows = []
    for count in (1_000, tokens):
        generated = [rng.randrange(150_000) for _ in range(count)]
        for source in ("message", "response", "logprobs"):
            times = []
            for _ in range(repeats):
                body = _response(prompt, generated, source)
                start = time.perf_counter()
                got = nemo.attach(body, lambda: prompt)
                times.append((time.perf_counter() - start) * 1e3)
                assert (len(got.prompt_token_ids), len(got.generation_token_ids)) == (tokens, count)
            rows.append((f"{source}, {tokens:,} prompt, {count:,} generated", median(times)))
    return rows


def tokenized(tokens: int = 100_000) -> list[tuple[str, float]]:
    """Milliseconds of tokenizing the prompt of the first turn beyond a length: transformers, cold, and warm.

    Warm: the turns before it were asked for, and this turn's messages have not been seen.
    """
    given = chosen()
    plain = load(given.model)
    own = SYSTEMS["nemo"].own(plain)
    asked = turns(given.recording)
    low, high = 0, len(asked) - 1  # the first turn that is long enough; turns only grow
    while low < high:
        middle = (low + high) // 2
        if len(own(asked[middle].messages, asked[middle].tools)) < tokens:
            low = middle + 1
        else:
            high = middle
    bodies = [{"messages": turn.messages, "tools": turn.tools} for turn in asked[: low + 1]]
    start = time.perf_counter()
    want = own(asked[low].messages, asked[low].tools)
    rows = [(f"transformers, {len(want):,} tokens", (time.perf_counter() - start) * 1e3)]
    for name, before in (("cold", []), ("warm", bodies[:-1])):
        tok = turntrie.wrap(load(given.model))
        replays.warm_up(plain, tok)
        client = nemo.InProcessTokenize(tok)
        for body in before:
            client.tokenize(body)
        start = time.perf_counter()
        ids = client.prompt_token_ids(bodies[-1])
        rows.append((f"in process, {name}", (time.perf_counter() - start) * 1e3))
        assert ids == want
        assert tok.turntrie.stats()["fallbacks"] == {}
    return rows


def main() -> None:
    """Measures and prints; or, as a child, replays one episode and prints its numbers."""
    names = [name for group in GROUPS for name in group]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=replays.TURNS)
    parser.add_argument("--system", action="append", choices=[*names, "bundle"], help="only these")
    parser.add_argument("--child", action="append", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        json.dump(episode(options.child, options.turns, replays.WINDOW), sys.stdout)
        return
    wanted = options.system or [*names, "bundle"]
    print(environment(), flush=True)
    for group in GROUPS:
        systems = [name for name in group if name in wanted]
        if not systems:
            continue
        out = child(systems, options.turns)
        print(f"\n{out['input']}; {out['tokens']:,} tokens (or deltas) at the end; own path: {systems[0]}")
        print(
            f"{options.turns} turns{'':18}{'own s':>9}{'ours s':>9}{'ratio':>8}{'own ms':>10}{'ours ms':>9}{'ratio':>8}"
        )
        cpu, warm = out["cpu"], out["warm"]
        for name in systems:
            print(
                f"{name:26}{cpu[OWN]:>9.2f}{cpu[name]:>9.2f}{cpu[OWN] / cpu[name]:>7.1f}x"
                f"{warm[OWN]:>10.1f}{warm[name]:>9.2f}{warm[OWN] / warm[name]:>7.1f}x",
                flush=True,
            )
    if "bundle" in wanted:
        print(f"\n{'token bundle':52}{'ms':>9}")
        for name, cost in [*bundle(), *tokenized()]:
            print(f"{name:52}{cost:>9.2f}")


if __name__ == "__main__":
    main()
