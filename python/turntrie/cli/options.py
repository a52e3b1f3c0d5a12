"""Options that several subcommands share."""

import argparse
from pathlib import Path


def positive(text: str) -> int:
    """An argument that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 up, not {text!r}")
    return int(text)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model, its template, and the choice of output."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a local Hugging Face model directory")
    parser.add_argument(
        "--template", type=Path, metavar="FILE", help="a chat template to use in place of the model's own"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
