"""`turntrie check`: is turntrie exact on my model, how much of it is native, and what does it save?

Every call is made on two tokenizers of the model, one as transformers loads it and one wrapped, with verification off:
what is compared is the native path itself, not what verification would make of it. First the scenario matrix, then
recorded conversations turn by turn. What both sides refuse with the same exception is equal too.

Reports hold no message contents unless asked for: what a difference needs to be reproduced goes into a file.
"""

import argparse
import contextlib
import itertools
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turntrie.check.scenarios import Scenario, scenarios
from turntrie.cli import models, recordings
from turntrie.cli.check_report import Checked, Conversation, File, document, text
from turntrie.cli.errors import RefusalError, UsageError, one_line
from turntrie.cli.options import add_model, positive
from turntrie.cli.progress import progress
from turntrie.cli.recordings import Arguments, Recording
from turntrie.cli.replay import spelling, warm_up

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from turntrie.check.comparison import Pair

_TRIED = 20
"""How many turns decide the spelling of arguments in a conversation that the template refuses as a whole."""


def add_command(commands: "_SubParsersAction[Any]") -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "check",
        help="compare turntrie with transformers on your model",
        description="Makes the same calls of apply_chat_template on a plain and on a wrapped tokenizer of a model and "
        "compares results and exceptions: a matrix of scenarios, and the turns of recorded conversations. Prints what "
        "was native, what transformers served and why, and what differed. Exit code 1 if anything differed. Contents "
        "of messages are printed only with --contents, and written only to the file of --reproducer.",
    )
    add_model(parser)
    parser.add_argument(
        "--conversations",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="recorded conversations: .jsonl or .jsonl.xz, one object a line with 'messages' and maybe 'tools'",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="at most this many conversations of each file")
    parser.add_argument("--turns", type=positive, metavar="N", help="at most this many turns of each conversation")
    parser.add_argument(
        "--thorough", action="store_true", help="the whole matrix of scenarios, in every form of result"
    )
    parser.add_argument("--contents", action="store_true", help="show contents where results differ")
    parser.add_argument(
        "--reproducer", type=Path, metavar="FILE", help="write what differs as JSON, with template and contents"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the check and returns the exit code."""
    if options.reproducer is not None and not options.reproducer.parent.is_dir():
        raise UsageError(f"{options.reproducer.parent}: no such directory")
    template = None if options.template is None else models.read_template(options.template)
    files = [(file, _recordings(file, options)) for file in options.conversations]
    plain = models.load(options.model, template)
    wrapped = models.load_wrapped(options.model, template, verify="off")

    from turntrie.check import comparison, facts  # noqa: PLC0415  # `--help` needs no extension

    warmup = warm_up(plain, wrapped)
    checked = Checked(
        model=str(options.model),
        versions={name: version(name) for name in ("turntrie", "transformers", "tokenizers")},
        tokenizer=type(plain).__name__,
        templates=facts.templates(wrapped),
        engine=facts.engine(wrapped),
        warmup_seconds=warmup,
    )
    pair = comparison.Pair(plain, wrapped)
    _matrix(pair, checked, thorough=options.thorough)
    for file, chosen in files:
        checked.files.append(_file(pair, checked, file, chosen))
    if not checked.compared():
        raise UsageError(f"{options.template or options.model}: transformers refuses every call: {_refusal(pair)}")
    if options.json:
        print(json.dumps(document(checked, contents=options.contents), indent=1, default=repr))
    else:
        print(text(checked, contents=options.contents, saved=options.reproducer))
    if options.reproducer is not None and checked.differences:
        _save(options.reproducer, checked, plain.chat_template)
    return 1 if checked.differences else 0


def _recordings(file: Path, options: argparse.Namespace) -> list[Recording]:
    """The conversations of a file that have turns, as many and as long as the options say."""
    usable = (recording for recording in recordings.read(file) if recording.asks())
    found = [recording.first(options.turns) for recording in itertools.islice(usable, options.limit)]
    if not found:
        raise UsageError(f"{file}: no conversation in it has a turn to replay")
    return found


def _call(scenario: Scenario) -> dict[str, Any]:
    return {"conversation": scenario.messages, "tools": scenario.tools, **scenario.kwargs}


def _matrix(pair: "Pair", checked: Checked, *, thorough: bool) -> None:
    """Goes through the scenarios. Without `thorough`, in the form the caller gets by default, and as text."""
    chosen = list(scenarios(thorough=thorough))
    forms = ("default", "ids", "dict", "text") if thorough else ("default", "text")
    for scenario in progress(chosen, len(chosen), "scenarios"):
        finding = pair.compare(f"scenario {scenario.name}", _call(scenario), forms)
        checked.scenario(scenario.axes, finding)


def _file(pair: "Pair", checked: Checked, path: Path, chosen: list[Recording]) -> File:
    """Replays the conversations of a file."""
    file = File(str(path))
    turns = sum(len(recording.asks()) for recording in chosen)
    for conversation, place, call in progress(_turns(pair, file, chosen), turns, path.name):
        checked.turn(file, conversation, pair.compare(place, call, ("ids", "text")))
    return file


def _turns(pair: "Pair", file: File, chosen: list[Recording]) -> Iterator[tuple[Conversation, str, dict[str, Any]]]:
    """Every point where the model is asked, as a call."""
    for recording in chosen:
        arguments = _spelling(pair.plain, recording)
        spelled = recording.spelled(arguments)
        conversation = Conversation(recording.name, arguments)
        file.conversations.append(conversation)
        for number, end in enumerate(spelled.asks(), start=1):
            call = {"conversation": spelled.messages[:end], "tools": spelled.tools, "add_generation_prompt": True}
            yield conversation, f"{file.name}: conversation {recording.name}, turn {number}", call


def _spelling(plain: Any, recording: Recording) -> Arguments:
    """How the template wants arguments; for a conversation that it refuses, the spelling that goes further."""
    try:
        return spelling(plain, recording)
    except RefusalError:
        choices: tuple[Arguments, ...] = ("dict", "str")
        return max(choices, key=lambda arguments: _rendered(plain, recording.spelled(arguments)))


def _rendered(plain: Any, recording: Recording) -> int:
    """How many of the first turns the template renders."""
    count = 0
    for end in recording.asks()[:_TRIED]:
        with contextlib.suppress(Exception):  # a template raises what it likes
            plain.apply_chat_template(recording.messages[:end], tools=recording.tools, tokenize=False)
            count += 1
    return count


def _refusal(pair: "Pair") -> str:
    """What transformers says to the first scenario. Its contents are ours, so that nothing private is shown."""
    try:
        pair.plain.apply_chat_template(**_call(next(scenarios())), tokenize=False)
    except Exception as error:  # noqa: BLE001  # a template raises what it likes
        return one_line(error)
    return "it renders the messages, but cannot make ids of them"


def _save(file: Path, checked: Checked, chat_template: Any) -> None:
    """Writes what is needed to reproduce the differences.

    Raises:
        UsageError: The file cannot be written.
    """
    head = {"model": checked.model, "versions": checked.versions, "chat_template": chat_template}
    value = {**head, "differences": [difference.reproducer() for difference in checked.kept]}
    try:
        file.write_text(json.dumps(value, indent=1, default=repr), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or one_line(error)}") from error
