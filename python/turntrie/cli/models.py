"""Loads the two tokenizers of a replay: one left alone, one wrapped.

They are loaded separately, so that nothing the one does can help or hurt the other.
"""

import os
from pathlib import Path
from typing import Any

from turntrie.cli.errors import UsageError, one_line


def load(directory: Path) -> Any:
    """Loads a tokenizer from a local directory with transformers, without network.

    Raises:
        UsageError: transformers is missing, or the directory has no tokenizer with a chat template.
    """
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        from transformers import AutoTokenizer  # noqa: PLC0415  # an extra; and it takes a second to import
    except ImportError as error:
        raise UsageError(
            f"this compares with transformers, which cannot be imported ({one_line(error)}): "
            "pip install 'turntrie[transformers]'"
        ) from error
    if not directory.is_dir():
        raise UsageError(f"{directory}: no such directory")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(directory))
    except Exception as error:
        raise UsageError(f"{directory}: transformers finds no tokenizer in it: {one_line(error)}") from error
    if not tokenizer.chat_template:
        raise UsageError(f"{directory}: the tokenizer has no chat template")
    return tokenizer


def load_wrapped(directory: Path) -> Any:
    """Loads a tokenizer and wraps it.

    Raises:
        UsageError: As `load`; or turntrie does not take this kind of tokenizer.
    """
    from turntrie import wrap  # noqa: PLC0415  # `--help` needs no extension

    tokenizer = load(directory)
    try:
        return wrap(tokenizer)
    except TypeError as error:
        raise UsageError(f"{directory}: {one_line(error)}") from error
