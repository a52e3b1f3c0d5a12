"""Tokenizers for tests of the adapters: the package's own and, if there are any, real ones; loaded once, copied never.

`plain(name)` is as transformers loads it and stays so; `ours(name)` is another one, which the adapters wrap when they
meet it. Both are kept for the process: loading is what takes time, and that ids are remembered across tests only makes
them harder to pass.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import transformers

import real_data
import turntrie
from turntrie.demo import TOKENIZER

DEMO = "demo"


def directory(name: str) -> Path | None:
    """Where a model lies; None if it is not there."""
    if name == DEMO:
        return TOKENIZER
    folder = real_data.folder("TURNTRIE_MODELS")
    found = None if folder is None else folder / name
    return found if found is not None and found.is_dir() else None


def needs(*names: str) -> list[Any]:
    """Parameters for a test: each model, skipped where it is not there."""
    return [
        pytest.param(
            name,
            id=name,
            marks=[]
            if name == DEMO
            else [
                pytest.mark.real_model,
                pytest.mark.skipif(directory(name) is None, reason=f"needs {name} in TURNTRIE_MODELS"),
            ],
        )
        for name in names
    ]


def load(name: str) -> Any:
    """A fresh tokenizer."""
    found = directory(name)
    assert found is not None, name
    return transformers.AutoTokenizer.from_pretrained(str(found))


def plain(name: str) -> Any:
    """The tokenizer as it is. An oracle that somebody wrapped is none."""
    tok = _plain(name)
    assert not turntrie.is_wrapped(tok), f"a test has wrapped the plain {name}"
    return tok


@cache
def _plain(name: str) -> Any:
    return load(name)


@cache
def ours(name: str) -> Any:
    """Another one, for the adapters."""
    return load(name)
