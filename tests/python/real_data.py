"""Where real models and recorded conversations are found, and what ran on them.

Four variables name folders: TURNTRIE_MODELS (Hugging Face model directories), TURNTRIE_TEMPLATES (*.jinja),
TURNTRIE_CONVERSATIONS (*.jsonl, *.jsonl.xz), TURNTRIE_CASES (open_cases.jsonl). Without them the suite runs on the
package's own data. With TURNTRIE_EXPECT_MODELS=N the run fails if fewer than N models ran.

The suite may run in several processes (`pytest -n 2`). Each of them counts for itself; `handed_over`
is what a worker hands to the controller, which adds it up with `take_over` before it reports.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import turntrie

VARIABLES = ("TURNTRIE_MODELS", "TURNTRIE_TEMPLATES", "TURNTRIE_CONVERSATIONS", "TURNTRIE_CASES")

RAN: dict[str, Counter[str]] = {}
"""For each real model that ran: how many calls were native, or fell back for which reason."""

TEMPLATES: Counter[str] = Counter()
"""How most calls of each real template were served: numbers of templates."""


def folder(variable: str) -> Path | None:
    """The folder that a variable names, or None if it is not set."""
    value = os.environ.get(variable)
    if not value:
        return None
    path = Path(value)
    if not path.exists():
        raise pytest.UsageError(f"{variable}={value}: no such folder")
    return path


def model_directories() -> list[Path]:
    """The real models, in the order of their names."""
    models = folder("TURNTRIE_MODELS")
    return sorted(path for path in models.iterdir() if path.is_dir()) if models else []


def some(paths: list[Path], every: int) -> list[Path]:
    """One in so many, or all of them with TURNTRIE_THOROUGH: for what differs little from one to the next."""
    return paths if os.environ.get("TURNTRIE_THOROUGH") else paths[::every]


def handed_over() -> dict[str, dict[str, Any]]:
    """What ran in this process, as values that cross a process border."""
    return {"ran": {name: dict(calls) for name, calls in RAN.items()}, "templates": dict(TEMPLATES)}


def take_over(counts: dict[str, dict[str, Any]]) -> None:
    """Adds what ran in another process."""
    for name, calls in counts["ran"].items():
        RAN.setdefault(name, Counter()).update(calls)
    TEMPLATES.update(counts["templates"])


def missing() -> str | None:
    """What to say if fewer models ran than were expected."""
    expected = int(os.environ.get("TURNTRIE_EXPECT_MODELS", "0"))
    return f"{len(RAN)} real models ran, expected {expected}" if len(RAN) < expected else None


def fallbacks() -> Counter[str]:
    """How often each reason sent a call to the reference, in this process so far."""
    return Counter(turntrie.stats()["fallbacks"])
