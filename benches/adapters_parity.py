"""Every adapter on recorded conversations, turn by turn, on every model: `python benches/adapters_parity.py --help`.

The full run behind tests/python/test_adapter_parity.py. Needs TURNTRIE_MODELS and TURNTRIE_CONVERSATIONS. For each
model, each conversation and each of its turns, transformers renders and encodes the whole conversation once, on a plain
tokenizer; every adapter has to give those ids, or the same exception. That the system's own call is that call is what
the tests show. Verification is off, so that nothing is corrected behind our back. A line a model: turns, turns that
transformers refused, and how often a turn was not served natively, with the reasons. Exit code 1 if anything differs.
"""

import argparse
import os
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["TURNTRIE_VERIFY"] = "off"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "python"))

import turntrie
from adapter_paths import SYSTEMS
from replays import load
from test_adapter_parity import outcome, spelled
from turntrie.cli import recordings
from turntrie.cli.recordings import Recording

TOO_LONG = "long_chained.jsonl.xz"
"""Made of the others, up to 2000 turns; benches/adapters.py replays one of them. Only if it is asked for by name."""


def conversations(every: int, files: list[str]) -> list[Recording]:
    """Every n-th conversation of each file."""
    folder = Path(os.environ["TURNTRIE_CONVERSATIONS"])
    found: list[Recording] = []
    for path in sorted(folder.iterdir()):
        wanted = path.name in files if files else path.name != TOO_LONG
        if path.name.endswith((".jsonl", ".jsonl.xz")) and wanted:
            found += islice(recordings.read(path), None, None, every)
    return found


def check(model: Path, found: list[Recording], turns: int | None, systems: list[str]) -> dict[str, Any]:
    """Compares on one model."""
    plain, tok = load(model), load(model)
    own = SYSTEMS["nemo"].own(plain)
    out: dict[str, Any] = {"turns": 0, "refused": 0, "differ": [], "native": 0, "fallbacks": Counter()}
    for recording in found:
        shape = spelled(plain, recording.first(turns))
        routes = {name: SYSTEMS[name].ours(tok) for name in systems}
        for end in shape.asks():
            messages = shape.messages[:end]
            wanted = outcome(own, messages, shape.tools)
            out["turns"] += 1
            out["refused"] += wanted[0] == "raised"
            for name, ours in routes.items():
                before = Counter(turntrie.stats()["fallbacks"])
                if outcome(ours, messages, shape.tools) != wanted:
                    out["differ"].append(f"{name}: {recording.name}, {end} messages")
                if wanted[0] == "returned":
                    reasons = Counter(turntrie.stats()["fallbacks"]) - before
                    out["fallbacks"].update(reasons)
                    out["native"] += not reasons
    return out


def main() -> None:
    """Runs and prints a line a model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", help="names of folders in TURNTRIE_MODELS; all by default")
    parser.add_argument("--every", type=int, default=1, help="only every n-th conversation of a file")
    parser.add_argument("--turns", type=int, help="only the first turns of a conversation")
    parser.add_argument("--system", action="append", choices=list(SYSTEMS), help="only these adapters")
    parser.add_argument("--file", action="append", default=[], help="only these files of conversations")
    options = parser.parse_args()
    folder = Path(os.environ["TURNTRIE_MODELS"])
    found = conversations(options.every, options.file)
    systems = options.system or list(SYSTEMS)
    print(f"{len(found)} conversations; {', '.join(systems)}", flush=True)
    failed = False
    for name in options.models or sorted(path.name for path in folder.iterdir() if path.is_dir()):
        start = time.monotonic()
        out = check(folder / name, found, options.turns, systems)
        left = ", ".join(f"{reason} {count}" for reason, count in out["fallbacks"].most_common())
        print(
            f"{name:24}{out['turns']:>7} turns, {out['refused']} refused; {out['native']} calls native"
            f"{'; ' + left if left else ''}; {len(out['differ'])} differ; {time.monotonic() - start:.0f} s",
            flush=True,
        )
        failed = failed or bool(out["differ"])
        for line in out["differ"][:5]:
            print(f"  {line}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
