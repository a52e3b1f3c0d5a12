"""What an adapter saves its system: `python benches/adapters.py --help`.

For each system one episode, in a process of its own: every turn by the system's own path on a plain tokenizer, and by
the adapter on another one, interleaved, ids compared. Reported are the CPU seconds of all turns and the median of the
warm call, the first call of a turn, over the last ones. Own and ours are the very functions that the tests compare.

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
from replays import Turn, chosen, load, turns
from run import environment
from turntrie.adapters import nemo, slime

DELTAS = "slime get_token_delta"
"""Not a prompt, but the ids that each message of a turn adds."""


def routes(system: str, model: Path) -> tuple[Callable[[Turn], Any], Callable[[Turn], Any], Any]:
    """The system's own way through a turn, ours, and the tokenizer that ours uses."""
    plain, tok = load(model), load(model)
    if system == DELTAS:

        def deltas(delta: Callable[..., Any], tokenizer: Any) -> Callable[[Turn], Any]:
            return lambda turn: [
                delta(tokenizer, turn.messages[:end])
                for end in range(max(len(turn.messages) - len(turn.new), 2) + 1, len(turn.messages) + 1)
            ]

        return deltas(adapter_paths.slime_delta, plain), deltas(slime.get_token_delta, tok), tok
    own, ours = SYSTEMS[system].own(plain), SYSTEMS[system].ours(tok)
    return (lambda turn: own(turn.messages, turn.tools)), (lambda turn: ours(turn.messages, turn.tools)), tok


def episode(system: str, total: int, window: int) -> dict[str, Any]:
    """Replays one episode both ways."""
    given = chosen(total)
    own, ours, tok = routes(system, given.model)
    # Templates are compiled and the engine is built before: both happen once a process.
    turntrie.wrap(tok)
    replays.warm_up(load(given.model), tok)
    out: dict[str, Any] = {"input": given.name, "own": 0.0, "ours": 0.0, "own_warm": [], "ours_warm": [], "tokens": 0}
    for turn in turns(given.recording)[:total]:
        wanted, results = None, []
        for name, route in (("own", own), ("ours", ours)):
            before = sum(turntrie.stats()["fallbacks"].values())
            cpu, wall = time.process_time(), time.perf_counter()
            try:
                value = route(turn)
            except ValueError as error:  # a delta that slime refuses: both have to
                value = str(error)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            results.append(value)
            out[name] += cpu
            if turn.number > total - window:
                out[f"{name}_warm"].append(wall * 1e3)
            assert sum(turntrie.stats()["fallbacks"].values()) == before, turntrie.stats()["fallbacks"]
        wanted, got = results
        assert got == wanted, f"{system}, turn {turn.number}: ids differ"
        out["tokens"] = len(got)
    return out


def child(system: str, options: argparse.Namespace) -> dict[str, Any]:
    """One episode in a process of its own."""
    command = [sys.executable, __file__, "--child", system, "--turns", str(options.turns)]
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
    names = [*SYSTEMS, DELTAS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=replays.TURNS)
    parser.add_argument("--system", action="append", choices=[*names, "bundle"], help="only these")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        json.dump(episode(options.child, options.turns, replays.WINDOW), sys.stdout)
        return
    wanted = options.system or [*names, "bundle"]
    print(environment())
    header = f"\n{'episode of ' + str(options.turns) + ' turns':26}{'own s':>9}{'ours s':>9}{'ratio':>8}"
    for number, system in enumerate(name for name in names if name in wanted):
        out = child(system, options)
        if number == 0:
            print(
                f"{out['input']}; {out['tokens']:,} tokens at the end\n{header}{'own ms':>10}{'ours ms':>9}{'ratio':>8}"
            )
        own, ours = median(out["own_warm"]), median(out["ours_warm"])
        print(
            f"{system:26}{out['own']:>9.2f}{out['ours']:>9.2f}{out['own'] / out['ours']:>7.1f}x"
            f"{own:>10.1f}{ours:>9.2f}{own / ours:>7.1f}x",
            flush=True,
        )
    if "bundle" in wanted:
        print(f"\n{'token bundle':52}{'ms':>9}")
        for name, cost in [*bundle(), *tokenized()]:
            print(f"{name:52}{cost:>9.2f}")


if __name__ == "__main__":
    main()
