"""`turntrie demo`: replays conversations through transformers and turntrie, and shows what each turn cost.

Without options it runs on the package's own tokenizer and a generated conversation. With `--model` and
`--conversations` it does the same on a local model directory and recorded conversations.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turntrie.cli import models, recordings, report
from turntrie.cli.errors import RefusalError, UsageError
from turntrie.cli.options import positive
from turntrie.cli.progress import progress
from turntrie.cli.recordings import Arguments, Recording
from turntrie.cli.replay import Turn, replay, spelling, warm_up
from turntrie.demo import TOKENIZER, conversation

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_TURNS = 60
_SEED = 1


def add_command(commands: "_SubParsersAction[Any]") -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "demo",
        help="replay a conversation through transformers and turntrie",
        description="Replays conversations turn by turn through transformers and through turntrie (two separate "
        "tokenizers), compares the ids and prints what each turn cost. Exit code 1 if one turn's ids differ or a "
        "turn was not served natively. Arguments of tool calls are passed as dicts if the model's chat template "
        "takes them, else as JSON text.",
    )
    parser.add_argument("--model", type=Path, metavar="DIR", help="a local model directory (default: a built-in one)")
    parser.add_argument(
        "--conversations",
        type=Path,
        metavar="FILE",
        help="recorded conversations: .jsonl or .jsonl.xz, one object a line with 'messages' and maybe 'tools' "
        f"(default: a generated one of {_TURNS} turns)",
    )
    parser.add_argument("--turns", type=positive, metavar="N", help="at most this many turns of each conversation")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.set_defaults(run=run)


def _recordings(options: argparse.Namespace) -> Iterator[Recording]:
    """The conversations that the options name."""
    if options.conversations is not None:
        for recording in recordings.read(options.conversations):
            yield recording.first(options.turns)
    else:
        messages, tools = conversation(turns=options.turns or _TURNS, seed=_SEED)
        yield Recording(f"generated, seed {_SEED}", messages, tools)


def run(options: argparse.Namespace) -> int:
    """Runs the demo and returns the exit code."""
    chosen = [recording for recording in _recordings(options) if recording.asks()]
    if not chosen:
        raise UsageError(f"{options.conversations}: no conversation in it has a turn to replay")
    model = options.model or TOKENIZER
    plain, wrapped = models.load(model), models.load_wrapped(model)
    built = warm_up(plain, wrapped)
    versions = {name: version(name) for name in ("turntrie", "transformers", "tokenizers")}
    if not options.json:
        print(f"model {options.model or 'built in'}; {', '.join(f'{k} {v}' for k, v in versions.items())}")
        print(f"engine built in {built * 1e3:.0f} ms, once per tokenizer and process")
    episodes = []
    for recording in chosen:
        episode = _replay(plain, wrapped, recording)
        episodes.append(episode)
        if not options.json:
            print(f"\n{episode.title()}\n\n{report.table(episode.turns)}\n\n{report.summary(episode.turns)}".rstrip())
            sys.stdout.flush()
    everything = [turn for episode in episodes for turn in episode.turns]
    if not everything:
        raise UsageError(f"{options.conversations}: {episodes[0].recording.name}: {episodes[0].refusal}")
    good = all(turn.good for turn in everything)
    if options.json:
        head = {"model": str(model), "versions": versions, "warmup_seconds": built, "ok": good}
        print(json.dumps({**head, "conversations": [episode.document() for episode in episodes]}, indent=1))
    elif len(episodes) > 1:
        count = sum(turn.good for turn in everything)
        print(f"\nall {len(episodes)} conversations: {count} of {len(everything)} turns identical and native")
    return 0 if good else 1


class _Episode(NamedTuple):
    """One conversation's replay: its turns up to where the template refused one, if it did."""

    recording: Recording
    arguments: Arguments | None
    turns: list[Turn]
    refusal: str | None

    def title(self) -> str:
        """The line above the table."""
        text = f"conversation {self.recording.name}: {len(self.recording.messages)} messages"
        text += f", tool arguments as {self.arguments}" if self.arguments else ""
        return text + (f"; {self.refusal}" if self.refusal else "")

    def document(self) -> dict[str, Any]:
        """The replay as a value for JSON."""
        head = {"id": self.recording.name, "arguments": self.arguments, "refusal": self.refusal}
        return {**head, **report.document(self.turns)}


def _replay(plain: Any, wrapped: Any, recording: Recording) -> _Episode:
    """Replays one conversation as far as the template goes."""
    arguments = None
    turns: list[Turn] = []
    try:
        arguments = spelling(plain, recording)
        spelled = recording.spelled(arguments)
        turns.extend(progress(replay(plain, wrapped, spelled), len(spelled.asks()), recording.name))
    except RefusalError as refusal:
        return _Episode(recording, arguments, turns, str(refusal))
    return _Episode(recording, arguments, turns, None)
