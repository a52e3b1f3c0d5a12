"""Loads the two tokenizers of a comparison: one left alone, one wrapped.

They are loaded separately, so that nothing the one does can help or hurt the other.
"""

import os
from pathlib import Path
from typing import Any

from turntrie.cli.errors import UsageError, one_line


def load(directory: Path, template: str | None = None) -> Any:
    """Loads a tokenizer from a local directory with transformers, without network.

    Args:
        directory: Where the model is.
        template: A chat template in place of the model's own.

    Raises:
        UsageError: transformers is missing, or the directory has no tokenizer with a chat template.
    """
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import jinja2  # noqa: F401, PLC0415  # transformers imports without it, and then renders nothing
        from transformers import AutoTokenizer  # noqa: PLC0415  # an extra; and it takes a second to import
    except ImportError as error:
        raise UsageError(
            f"this needs transformers, which cannot be used ({one_line(error)}): pip install 'turntrie[transformers]'"
        ) from error
    if not directory.is_dir():
        raise UsageError(f"{directory}: {'not a' if directory.exists() else 'no such'} directory")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(directory))
    except Exception as error:
        raise UsageError(f"{directory}: transformers finds no tokenizer in it: {one_line(error)}") from error
    if template is not None:
        tokenizer.chat_template = template
    if not tokenizer.chat_template:
        raise UsageError(f"{directory}: the tokenizer has no chat template")
    return tokenizer


def load_wrapped(directory: Path, template: str | None = None, **options: Any) -> Any:
    """Loads a tokenizer and wraps it.

    Args:
        directory: Where the model is.
        template: A chat template in place of the model's own.
        **options: As for `turntrie.wrap`.

    Raises:
        UsageError: As `load`; or turntrie does not take this kind of tokenizer.
    """
    from turntrie import wrap  # noqa: PLC0415  # `--help` needs no extension

    tokenizer = load(directory, template)
    try:
        return wrap(tokenizer, **options)
    except TypeError as error:
        raise UsageError(f"{directory}: {one_line(error)}") from error


def read_template(file: Path) -> str:
    """Reads a chat template.

    Raises:
        UsageError: The file cannot be read, or is empty.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or one_line(error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not UTF-8 text: {one_line(error)}") from error
    if not text.strip():
        raise UsageError(f"{file}: the chat template is empty")
    return text
