"""Encoding new text beside transformers: `python benches/encoding.py [4kb] [cold] [worst] [load]`, `--help`.

Four tables, each transformers / turntrie for the same text in the same run, ids compared, interleaved unless said:

- `4kb`: pieces of 4 KB that the process has never seen, through the engine that serves the calls, into an array;
  CPU time. Twice, on different pieces: each side by itself, behind other pieces of the kind, with the processor's
  caches as it left them, which is what a process does that has only one of them; and in turns, where each call finds
  them full of the other's. Beside it the first call of a process after `warmup()`.
- `cold`: the first call for a long recorded conversation, in a fresh process after `warmup()`, by number of threads.
- `worst`: one megabyte of one kind of character.
- `load`: `from_pretrained` beside what `warmup()` reports.

The texts are those of `texts.py`; kinds with a star are generated, of rare words, and harder than real text.
transformers is called as its users call it, `tok.encode(text, add_special_tokens=False)`, whose inner call is that of
`apply_chat_template`. Where calls of both are in turns, the allocator settles between them, as in `replays.py`.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import transformers

import turntrie
from replays import settle
from texts import KINDS, WARM_UP, split
from turntrie import path
from turntrie.cli import recordings
from turntrie.cli.replay import RefusalError, spelling
from turntrie.reason import Reason

MODELS = ("qwen3", "gpt-oss", "gemma-3", "deepseek-v3", "llama-3.1")
CHILDREN = 5

transformers.logging.set_verbosity_error()


# --- both sides ---


class Result(NamedTuple):
    """What a call took, and its ids for when the clock has stopped."""

    seconds: float
    ids: Callable[[], list[int]]


class Both:
    """A tokenizer of transformers and a wrapped one of the same files."""

    def __init__(self, model: Path, *, warm: bool = True) -> None:
        """Loads both."""
        start = time.perf_counter()
        self.theirs = transformers.AutoTokenizer.from_pretrained(str(model))
        self.loading = time.perf_counter() - start
        if warm:
            self.theirs.encode("warm up", add_special_tokens=False)
        self.wrapped = turntrie.wrap(transformers.AutoTokenizer.from_pretrained(str(model)), verify="off")
        self.timings = self.wrapped.turntrie.warmup()
        backend = path.engine(self.wrapped)
        assert not isinstance(backend, Reason), backend
        self.engine = backend.engine
        self.name = self.engine.encoder()[0]

    def reference(self, text: str) -> Result:
        """CPU seconds and ids of transformers."""
        start = time.process_time()
        ids = self.theirs.encode(text, add_special_tokens=False)
        return Result(time.process_time() - start, lambda: ids)

    def ours(self, text: str) -> Result:
        """CPU seconds of all threads, and ids, of turntrie."""
        start = time.process_time()
        prompt = self.engine.encode(text, 0, 0)
        prompt.buffer(0)
        return Result(time.process_time() - start, lambda: prompt.tolist(0))

    def warm_up(self, side: Callable[[str], Result], texts: list[str]) -> None:
        """Has a side encode these, whether it has seen them or not; what the other side freed is put away before."""
        settle()
        for text in texts:
            self.engine.drop_namespace(0)
            side(text)


def models(names: list[str]) -> list[Path]:
    """The model directories; those that are not there are named."""
    folder = Path(os.environ.get("TURNTRIE_MODELS", "models"))
    found = [folder / name for name in names or MODELS]
    for model in found:
        if not model.is_dir():
            print(f"no model {model}: set TURNTRIE_MODELS")
    return [model for model in found if model.is_dir()]


def child(*arguments: str, threads: int | None = None) -> Any:
    """What this script prints as JSON in a process of its own."""
    environment = dict(os.environ)
    if threads is not None:
        environment["TURNTRIE_THREADS"] = str(threads)
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)  # noqa: S603
    return json.loads(done.stdout)


# --- tables ---


def table_4kb(chosen: list[Path], kinds: list[str]) -> None:
    print("\n## never-seen 4 KB: MB/s, median over pieces; each by itself, then in turns\n")
    print("| model | text | pieces | transformers | turntrie | ratio | in turns: transformers | turntrie | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    texts = {kind: KINDS[kind]() for kind in kinds}
    for model in chosen:
        both = Both(model)
        for kind, every in texts.items():
            if not every:
                print(f"| {model.name} | {kind} | none: set TURNTRIE_CONVERSATIONS | | | | | | |")
                continue
            warm, timed = split(every)
            apart, turns = timed[::2], timed[1::2]
            alone = pieces(both, warm, apart, in_turns=False)
            beside = pieces(both, warm, turns, in_turns=True)
            shown = [f"{r:.2f} | {o:.1f} | {o / r:.1f}" for r, o in (alone, beside)]
            print(f"| {model.name} | {kind} | {len(apart)} + {len(turns)} | {' | '.join(shown)} |", flush=True)
    print("\n## first 4 KB of a process after warmup() beside the later ones (code), and beside transformers\n")
    print("| model | first / later | transformers / first |")
    print("|---|---|---|")
    for model in chosen:
        runs = [child("--child-first", str(model), str(n)) for n in range(CHILDREN)]
        first = [run["first"] / run["later"] for run in runs]
        ratio = [run["reference"] / run["first"] for run in runs]
        print(f"| {model.name} | {median(first):.2f} | {median(ratio):.1f} |", flush=True)


def settled(side: Callable[[str], Result], text: str) -> Result:
    """A call that does not pay for what the other side has freed."""
    settle()
    return side(text)


def pieces(both: Both, warm: list[str], texts: list[str], *, in_turns: bool) -> tuple[float, float]:
    """MB/s of transformers and of turntrie on texts that neither has seen: in turns, or one after the other."""
    both.warm_up(both.reference, warm)
    if in_turns:
        both.warm_up(both.ours, warm)
        found = [(settled(both.reference, text), settled(both.ours, text)) for text in texts]
    else:
        theirs = [both.reference(text) for text in texts]
        both.warm_up(both.ours, warm)
        found = list(zip(theirs, [both.ours(text) for text in texts], strict=True))
    assert all(theirs.ids() == ours.ids() for theirs, ours in found), "ids differ"
    sizes = [len(text.encode()) for text in texts]

    def rate(side: int) -> float:
        return 1e-6 / median(result[side].seconds / size for result, size in zip(found, sizes, strict=True))

    return rate(0), rate(1)


def child_first(model: Path, number: int) -> dict[str, float]:
    """The first piece after warmup(), the median of later ones, and of transformers."""
    texts = KINDS["code"]()[number * 60 :][:60]
    both = Both(model)
    first = both.ours(texts[0])
    later = median(both.ours(text).seconds for text in texts[WARM_UP:])
    assert both.reference(texts[0]).ids() == first.ids()
    reference = median(both.reference(text).seconds for text in texts[WARM_UP:])
    return {"first": first.seconds, "later": later, "reference": reference}


def table_cold(chosen: list[Path]) -> None:
    print("\n## cold call, a long recorded conversation: ms, median over fresh processes\n")
    print("| model | tokens | threads | transformers | turntrie | ratio, wall | ratio, CPU |")
    print("|---|---|---|---|---|---|---|")
    for model in chosen:
        for threads in (1, 2):
            runs = [child("--child-cold", str(model), threads=threads) for _ in range(CHILDREN)]
            ratios = median(run["reference"] / run["ours"] for run in runs)
            cpu = median(run["reference_cpu"] / run["ours_cpu"] for run in runs)
            print(
                f"| {model.name} | {runs[0]['tokens']} | {threads} | {1e3 * median(r['reference'] for r in runs):.0f} "
                f"| {1e3 * median(r['ours'] for r in runs):.1f} | {ratios:.1f} | {cpu:.1f} |",
                flush=True,
            )


def long_conversation(tok: Any) -> recordings.Recording:
    """A recorded conversation of 200 turns: with tools, unless the template refuses them."""
    folder = os.environ.get("TURNTRIE_CONVERSATIONS")
    assert folder, "set TURNTRIE_CONVERSATIONS"
    found = list(recordings.read(Path(folder) / "long_chained.jsonl.xz"))
    for kind in ("coding", "text"):
        recording = next(r for r in found if r.name.startswith(f"long/{kind}/turns200/"))
        try:
            return recording.spelled(spelling(tok, recording))
        except RefusalError:
            continue
    raise SystemExit("the template refuses both conversations")


def child_cold(model: Path) -> dict[str, float]:
    """One cold call, and transformers before and after it."""
    both = Both(model)
    recording = long_conversation(both.theirs)
    keywords: dict[str, Any] = {"tools": recording.tools, "add_generation_prompt": True, "return_dict": False}

    def timed(tok: Any) -> tuple[float, float, list[int]]:
        settle()
        wall, cpu = time.perf_counter(), time.process_time()
        ids = tok.apply_chat_template(recording.messages, **keywords)
        return time.perf_counter() - wall, time.process_time() - cpu, ids

    timed(both.theirs)
    before = timed(both.theirs)
    # The template is compiled at the first call with it; the conversation itself is new.
    both.wrapped.apply_chat_template([{"role": "user", "content": "warm up"}], return_dict=False)
    ours = timed(both.wrapped)
    after = timed(both.theirs)
    assert ours[2] == before[2]
    assert both.wrapped.turntrie.stats()["calls"]["native"] == 2, both.wrapped.turntrie.stats()
    return {
        "tokens": len(ours[2]),
        "ours": ours[0],
        "ours_cpu": ours[1],
        "reference": (before[0] + after[0]) / 2,
        "reference_cpu": (before[1] + after[1]) / 2,
    }


WORST = {
    "a": "a",
    "blanks": " ",
    "newlines": "\n",
    "digits": "7",
    "base64": "",
    "CJK": "",
    "one CJK": "漢",
    "emoji": "",
    "ZWJ emoji": "👩\u200d💻",
    "stacked marks": "e\u0301\u0323",
    "capitals": "A",
    "punctuation": "=",
}


def worst_text(kind: str, size: int = 1 << 20) -> str:
    """One megabyte of a kind, without a place to split at."""
    rng = random.Random(3)  # noqa: S311  # test data
    if kind == "base64":
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        return "".join(rng.choices(letters, k=size))
    if kind == "CJK":
        return "".join(chr(rng.randrange(0x4E00, 0x9FA6)) for _ in range(size // 3))
    if kind == "emoji":
        return "".join(chr(rng.randrange(0x1F300, 0x1F650)) for _ in range(size // 4))
    unit = WORST[kind]
    return unit * (size // len(unit.encode()))


def table_worst(chosen: list[Path]) -> None:
    print("\n## worst cases, 1 MB each: ms\n")
    print("| model | text | transformers | turntrie | ratio | ratio, 2 MB |")
    print("|---|---|---|---|---|---|")
    for model in chosen:
        both = Both(model)
        for kind in WORST:
            row: list[float] = []
            for size in (1 << 20, 1 << 21):
                text = worst_text(kind, size)
                theirs = settled(both.reference, text)
                # What is kept of an earlier text would serve a part of this one.
                both.engine.drop_namespace(0)
                ours = settled(both.ours, text)
                assert theirs.ids() == ours.ids(), f"{model.name}, {kind}: ids differ"
                row += [theirs.seconds, ours.seconds]
            print(
                f"| {model.name} | {kind} | {1e3 * row[0]:.0f} | {1e3 * row[1]:.1f} | {row[0] / row[1]:.1f} "
                f"| {row[2] / row[3]:.1f} |",
                flush=True,
            )


def table_load(chosen: list[Path]) -> None:
    print("\n## loading: ms, median over fresh processes\n")
    print("| model | from_pretrained | to_str | hash | build | of which parse | tables, beside it | share | MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for model in chosen:
        runs = [child("--child-load", str(model)) for _ in range(CHILDREN)]
        t = {key: median(run[key] for run in runs) for key in runs[0]}
        shown = [f"{1e3 * t[key]:.0f}" for key in ("from_pretrained", "to_str", "hash", "build", "parse", "tables")]
        share = median((r["to_str"] + r["hash"] + r["build"]) / r["from_pretrained"] for r in runs)
        print(f"| {model.name} | {' | '.join(shown)} | {share:.0%} | {t['table_bytes'] / 1e6:.1f} |", flush=True)


def child_load(model: Path) -> dict[str, float]:
    """Loads once to have the file cached, then what is timed."""
    transformers.AutoTokenizer.from_pretrained(str(model))
    both = Both(model, warm=False)
    return {"from_pretrained": both.loading, **both.timings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="4kb, cold, worst, load; by default all")
    parser.add_argument("--model", action="append", default=[], help=f"by default {', '.join(MODELS)}")
    parser.add_argument("--kind", action="append", default=[], help=f"by default {', '.join(KINDS)}")
    for hidden in ("--child-first", "--child-cold", "--child-load"):
        parser.add_argument(hidden, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child_first:
        print(json.dumps(child_first(Path(options.child_first[0]), int(options.child_first[1]))))
    elif options.child_cold:
        print(json.dumps(child_cold(Path(options.child_cold[0]))))
    elif options.child_load:
        print(json.dumps(child_load(Path(options.child_load[0]))))
    else:
        chosen = models(options.model)
        tables: dict[str, Callable[[], None]] = {
            "4kb": lambda: table_4kb(chosen, options.kind or list(KINDS)),
            "cold": lambda: table_cold(chosen),
            "worst": lambda: table_worst(chosen),
            "load": lambda: table_load(chosen),
        }
        for name in options.tables or tables:
            tables[name]()


if __name__ == "__main__":
    main()
