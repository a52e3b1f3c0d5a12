"""The command `turntrie`: arguments in, an exit code out.

Exit codes: 0 done; 1 the command's own verdict (the demo: ids differed or a turn was not native; the check: something
differed); 2 misuse, with one line on stderr that says what is wrong; 130 interrupted; 141 the reader of a pipe went
away. A traceback means a fault of ours.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from turntrie.cli import check, demo, inspection
from turntrie.cli.errors import UsageError

__all__ = ["main"]

_INTERRUPTED = 130
_BROKEN_PIPE = 141


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, like every other complaint of the command."""

    def error(self, message: str) -> NoReturn:
        """Hands the complaint to the place that prints all of them."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    """The command and its subcommands."""
    parser = _Parser(prog="turntrie", description="Exact, incremental apply_chat_template for growing conversations.")
    parser.add_argument("--version", action="version", version=f"turntrie {version('turntrie')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    demo.add_command(commands)
    check.add_command(commands)
    inspection.add_command(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: The arguments after the program's name; None takes those of the process.

    Returns:
        The exit code.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name in another script, an ASCII terminal
    try:
        options = _parser().parse_args(argv)
        code = int(options.run(options))
        sys.stdout.flush()
    except UsageError as error:
        print(f"turntrie: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it exits: give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    return code
