"""Peers beside transformers: `python benches/peers.py [turns] [encode]`; those that are not installed are named.

- `turns`: one conversation, turn by turn, each call the first of its turn; every engine in a process of its own. A
  table of milliseconds by length of the history, the whole episode, and at how many turns the ids are those of
  transformers; and a picture of every turn, `peers.png`, if matplotlib is there.
- `encode`: MB of text a second of CPU time, on the first 4 KB after loading and, by kind, on later ones that were not
  seen before. Every text's ids are compared with those of transformers.

`pip install .[peers]` installs what can live beside transformers. The pre-release of `tokenizers` cannot: install it
into a folder (`pip install --no-deps --pre --target DIR tokenizers==1.0.0rc3`), to be named in
TURNTRIE_PEER_TOKENIZERS. It only encodes; its texts are rendered beforehand, outside of the measurement. Models and
conversations are found as by `benches/run.py`.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import texts

Ids = list[int]
Turn = Callable[[list[dict[str, Any]], Any], Ids]

MODELS = ("qwen3", "gpt-oss", "gemma-3", "deepseek-v3")
LENGTHS = (10, 50, 100, 150, 200)
NEXT = "tokenizers-next"
RENDERED = "TURNTRIE_RENDERED"


# --- one engine, in its own process ---


def _transformers(model: Path) -> Any:
    import transformers  # noqa: PLC0415  # not in every process

    transformers.logging.set_verbosity_error()
    return transformers.AutoTokenizer.from_pretrained(str(model))


def _of_transformers(tok: Any) -> Turn:
    return lambda messages, tools: list(
        tok.apply_chat_template(messages, tools=tools, add_generation_prompt=True, return_dict=False)
    )


def turns_transformers(model: Path) -> Turn:
    return _of_transformers(_transformers(model))


def turns_turntrie(model: Path) -> Turn:
    import turntrie  # noqa: PLC0415

    tok = turntrie.wrap(_transformers(model))
    tok.turntrie.warmup()
    return _of_transformers(tok)


def turns_patched(model: Path, module: str) -> Turn:
    __import__(module)
    sys.modules[module].patch_transformers()
    return _of_transformers(_transformers(model))


def turns_renderers(model: Path) -> Turn:
    from renderers import config_from_name, create_renderer  # noqa: PLC0415

    # It goes by names; a model directory says only what it is called.
    renderer = create_renderer(_transformers(model), config_from_name(model.name))
    return lambda messages, tools: list(renderer.render_ids(messages, tools=tools, add_generation_prompt=True))


def turns_next(model: Path) -> Turn:
    encode = encode_next(model)
    rendered = iter(json.loads(Path(os.environ[RENDERED]).read_text(encoding="utf-8")))
    return lambda _messages, _tools: encode(next(rendered))


def encode_transformers(model: Path) -> Callable[[str], Ids]:
    tok = _transformers(model)
    return lambda text: list(tok.encode(text, add_special_tokens=False))


def encode_turntrie(model: Path) -> Callable[[str], Ids]:
    import turntrie  # noqa: PLC0415
    from turntrie import path  # noqa: PLC0415

    backend = path.engine(turntrie.wrap(_transformers(model), verify="off"))
    engine = backend.engine  # type: ignore[union-attr]
    return lambda text: list(engine.encode(text, 0, 0).tolist(0))


def encode_module(model: Path, module: str) -> Callable[[str], Ids]:
    __import__(module)
    tok = sys.modules[module].Tokenizer.from_file(str(model / "tokenizer.json"))
    return lambda text: list(tok.encode(text, add_special_tokens=False).ids)


def encode_next(model: Path) -> Callable[[str], Ids]:
    from tokenizers import Tokenizer  # noqa: PLC0415

    tok = Tokenizer.from_file(str(model / "tokenizer.json"))

    def encode(text: str) -> Ids:
        result = tok.encode(text, add_special_tokens=False)
        return list(getattr(result, "ids", result))

    return encode


TURNS: dict[str, Callable[[Path], Turn]] = {
    "transformers": turns_transformers,
    "turntrie": turns_turntrie,
    "fastokens": lambda model: turns_patched(model, "fastokens"),
    "basetenkenizer": lambda model: turns_patched(model, "basetenkenizer"),
    "renderers": turns_renderers,
    NEXT: turns_next,
}
ENCODE: dict[str, Callable[[Path], Callable[[str], Ids]]] = {
    "transformers": encode_transformers,
    "turntrie": encode_turntrie,
    "fastokens": lambda model: encode_module(model, "fastokens"),
    "basetenkenizer": lambda model: encode_module(model, "basetenkenizer"),
    NEXT: encode_next,
}


def checksum(ids: Ids) -> str:
    return hashlib.blake2b(json.dumps(ids).encode(), digest_size=12).hexdigest()


def child_turns(engine: str, conversation: Path) -> dict[str, Any]:
    """Milliseconds of every turn, and what the ids were."""
    given = json.loads(conversation.read_text(encoding="utf-8"))
    call = TURNS[engine](Path(given["model"]))
    if engine != NEXT:
        call([{"role": "user", "content": "warm up"}], None)
    milliseconds, ids = [], []
    for end in given["ends"]:
        messages = given["messages"][:end]
        start = time.perf_counter()
        got = call(messages, given["tools"])
        milliseconds.append((time.perf_counter() - start) * 1e3)
        ids.append(checksum(got))
    return {"ms": milliseconds, "ids": ids}


def child_encode(engine: str, model: Path, kinds: list[str]) -> dict[str, Any]:
    """MB/s on the first piece of all and on later ones by kind, and what the ids were."""
    encode = ENCODE[engine](model)
    result: dict[str, Any] = {"first": None, "later": {}, "ids": []}
    for kind in kinds:
        warm, timed = texts.split(texts.KINDS[kind]())
        speeds = []
        for text in [*warm, *timed]:
            start = time.process_time()
            got = encode(text)
            speeds.append(len(text.encode()) * 1e-6 / max(time.process_time() - start, 1e-9))
            result["ids"].append(checksum(got))
        result["first"] = result["first"] or speeds[0]
        result["later"][kind] = median(speeds[len(warm) :])
    return result


# --- all of them ---


def installed() -> dict[str, str]:
    """The engines that can be measured, with their versions; the others are named on the way."""
    found = {}
    for engine in TURNS:
        if engine == NEXT:
            folder = os.environ.get("TURNTRIE_PEER_TOKENIZERS")
            if folder and any(Path(folder).glob("tokenizers-*.dist-info")):
                found[engine] = (
                    next(Path(folder).glob("tokenizers-*.dist-info")).name.split("-")[1].removesuffix(".dist")
                )
            else:
                print(f"{engine}: absent (TURNTRIE_PEER_TOKENIZERS names no folder with it)")
        elif importlib.util.find_spec(engine) is None:
            print(f"{engine}: absent")
        else:
            try:
                found[engine] = version(engine)
            except PackageNotFoundError:
                found[engine] = "this checkout"
    return found


def run(engine: str, *arguments: str) -> Any:
    """What a child prints, or the error as a text."""
    environment = dict(os.environ)
    if engine == NEXT:
        folder = os.environ["TURNTRIE_PEER_TOKENIZERS"]
        environment["PYTHONPATH"] = os.pathsep.join([folder, environment.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return lines[-1][:160]
    return json.loads(done.stdout.splitlines()[-1])


def table_turns(engines: dict[str, str], picture: Path, turns: int) -> None:
    import replays  # noqa: PLC0415  # needs transformers

    given = replays.chosen(turns)
    ends = given.recording.asks()[:turns]
    with tempfile.TemporaryDirectory() as folder:
        conversation, rendered = Path(folder) / "conversation.json", Path(folder) / "rendered.json"
        record = {"model": str(given.model), "messages": given.recording.messages, "tools": given.recording.tools}
        conversation.write_text(json.dumps({**record, "ends": ends}), encoding="utf-8")
        os.environ[RENDERED] = str(rendered)
        if NEXT in engines:
            tok, made = _transformers(given.model), []
            for end in ends:
                messages = given.recording.messages[:end]
                keywords: dict[str, Any] = {"tools": given.recording.tools, "add_generation_prompt": True}
                made.append(tok.apply_chat_template(messages, tokenize=False, **keywords))
            rendered.write_text(json.dumps(made), encoding="utf-8")
        results = {engine: run(engine, "--child-turns", engine, str(conversation)) for engine in engines}
    print(f"\n## {given.name}: ms a turn, median of the last five turns\n")
    lengths = [n for n in LENGTHS if n <= len(ends)] or [len(ends)]
    print(f"| engine | version | {' | '.join(map(str, lengths))} | episode, s | turns with the ids of transformers |")
    print("|---|---|" + "---|" * (len(lengths) + 2))
    series = {}
    for engine, result in results.items():
        if isinstance(result, str):
            print(f"| {engine} | {engines[engine]} | failed: {result} |{' |' * (len(lengths) + 1)}")
            continue
        series[engine] = result["ms"]
        shown = [f"{median(result['ms'][max(0, n - 5) : n]):.2f}" for n in lengths]
        want = results["transformers"]["ids"]
        equal = sum(a == b for a, b in zip(result["ids"], want, strict=True))
        total = sum(result["ms"]) / 1e3
        print(f"| {engine} | {engines[engine]} | {' | '.join(shown)} | {total:.2f} | {equal} of {len(want)} |")
    draw(series, picture)


def draw(series: dict[str, list[float]], picture: Path) -> None:
    """Milliseconds of every turn, as a picture."""
    if importlib.util.find_spec("matplotlib") is None:
        print(f"\nno {picture.name}: matplotlib is absent")
        return
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 5))
    for engine, milliseconds in series.items():
        axes.plot(range(1, len(milliseconds) + 1), milliseconds, label=engine)
    axes.set(xlabel="turn", ylabel="ms", yscale="log", title="one call, by turns of history")
    axes.legend()
    figure.savefig(picture, dpi=120)
    print(f"\n{picture}")


def table_encode(engines: dict[str, str], models: list[str], kinds: list[str]) -> None:
    folder = Path(os.environ.get("TURNTRIE_MODELS", "models"))
    print("\n## MB a second of CPU time: the first 4 KB after loading, and later ones not seen before\n")
    print(f"| model | engine | version | first, {kinds[0]} | {' | '.join(kinds)} | ids of transformers |")
    print("|---|---|---|---|" + "---|" * (len(kinds) + 1))
    for model in [folder / name for name in models if (folder / name).is_dir()]:
        want = None
        for engine in (engine for engine in engines if engine in ENCODE):
            result = run(engine, "--child-encode", engine, str(model), *kinds)
            row = f"| {model.name} | {engine} | {engines[engine]} |"
            if isinstance(result, str):
                print(f"{row} failed: {result} |{' |' * (len(kinds) + 1)}", flush=True)
                continue
            want = want or result["ids"]
            equal = sum(a == b for a, b in zip(result["ids"], want, strict=True))
            speeds = [result["first"], *result["later"].values()]
            print(f"{row} {' | '.join(f'{s:.1f}' for s in speeds)} | {equal} of {len(want)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="turns, encode; by default both")
    parser.add_argument("--model", action="append", default=[], help=f"for `encode`; by default {', '.join(MODELS)}")
    parser.add_argument("--kind", action="append", default=[], help="for `encode`; by default code, logs, prose*, cjk")
    parser.add_argument("--turns", type=int, default=max(LENGTHS), help="for `turns`: how many")
    parser.add_argument("--picture", type=Path, default=Path("peers.png"))
    parser.add_argument("--child-turns", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--child-encode", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child_turns:
        engine, conversation = options.child_turns
        print(json.dumps(child_turns(engine, Path(conversation))))
    elif options.child_encode:
        engine, model, *kinds = options.child_encode
        print(json.dumps(child_encode(engine, Path(model), kinds)))
    else:
        engines = installed()
        wanted = options.tables or ["turns", "encode"]
        if "turns" in wanted:
            table_turns(engines, options.picture, options.turns)
        if "encode" in wanted:
            table_encode(engines, options.model or list(MODELS), options.kind or ["code", "logs", "prose*", "cjk"])


if __name__ == "__main__":
    main()
