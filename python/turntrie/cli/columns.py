"""Text in columns."""

from collections.abc import Iterable, Sequence

_GAP = "  "


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Aligns rows of equal length: the first column to the left, the others to the right."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        right = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        lines.append(_GAP.join([first.ljust(widths[0]), *right]).rstrip())
    return "\n".join(lines)


def entries(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what belongs to them, in two columns, both to the left."""
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    return "\n".join(f"{name.ljust(width)}{_GAP}{text}".rstrip() for name, text in listed)
