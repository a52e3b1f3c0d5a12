"""The pages in docs/adapters: every name of ours on them exists, and every adapter has a page."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import turntrie.adapters

PAGES = Path(__file__).parents[2] / "docs" / "adapters"
NAME = re.compile(r"turntrie\.adapters\.([a-z_]+)\.([A-Za-z_]+)")
SYSTEMS = ("slime", "areal", "nemo", "trl")


def named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"turntrie.adapters.{module}"), name)


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_names_exist_and_are_exported(page: Path) -> None:
    found = NAME.findall(page.read_text(encoding="utf-8"))
    assert found
    for module, name in found:
        assert named(module, name) is not None
        assert name in importlib.import_module(f"turntrie.adapters.{module}").__all__


def test_every_adapter_has_a_page() -> None:
    folder = Path(turntrie.adapters.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")} - {"token_bundle"}
    assert modules == {page.stem for page in PAGES.glob("*.md")}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_page_says_how_to_go_back_and_how_to_watch(system: str) -> None:
    text = (PAGES / f"{system}.md").read_text(encoding="utf-8")
    for word in ("## Before and after", "## What changes", "## What stays", "turntrie.restore", "turntrie.stats()"):
        assert word in text
