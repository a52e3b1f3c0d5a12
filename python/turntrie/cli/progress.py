"""A progress bar on stderr, for people: none at all when stderr is not a terminal."""

import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_WIDTH = 32


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Yields the items; draws how many of `total` are done, and wipes the line at the end."""
    if not sys.stderr.isatty():
        yield from items
        return
    columns = shutil.get_terminal_size().columns
    try:
        _draw(0, total, label, columns)
        for done, item in enumerate(items, start=1):
            yield item
            _draw(done, total, label, columns)
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def _draw(done: int, total: int, label: str, columns: int) -> None:
    """One state of the bar, cut to the terminal so that it never wraps."""
    filled = _WIDTH * done // max(total, 1)
    line = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{total} {label}"
    sys.stderr.write(f"\r{line[: columns - 1]}\x1b[K")
    sys.stderr.flush()
