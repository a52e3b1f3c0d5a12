"""What a replay is shown as: a table and a summary for people, a document for programs."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from turntrie.cli.replay import Turn

_COLUMNS = ("turn", "tokens", "kept", "new", "HF ms", "turntrie ms", "ratio", "identical", "path")
_LAST = 10
"""How many turns at the end stand for "a long conversation's next turn"."""


def _ratio(turns: Sequence[Turn]) -> float:
    """How many times longer the reference took over these turns."""
    ours = sum(turn.turntrie_seconds for turn in turns)
    return sum(turn.reference_seconds for turn in turns) / ours if ours else float("inf")


def table(turns: Sequence[Turn]) -> str:
    """One row a turn, columns aligned; nothing without turns."""
    if not turns:
        return ""
    rows = [
        (
            f"{turn.number}",
            f"{turn.tokens:,}",
            f"{turn.kept:,}",
            f"{turn.new:,}",
            f"{turn.reference_seconds * 1e3:.2f}",
            f"{turn.turntrie_seconds * 1e3:.2f}",
            f"{_ratio([turn]):.1f}x",
            "yes" if turn.identical else "NO",
            turn.path,
        )
        for turn in turns
    ]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in [_COLUMNS, *rows])


def faults(turns: Sequence[Turn]) -> list[str]:
    """A line for each turn that was not identical or not native."""
    lines = []
    for turn in turns:
        if not turn.identical:
            lines.append(f"turn {turn.number}: ids differ from those of transformers")
        if turn.path != "native" or turn.reason is not None:
            lines.append(f"turn {turn.number}: not served natively ({turn.path}, reason: {turn.reason})")
    return lines


def summary(turns: Sequence[Turn]) -> str:
    """The verdict, the cumulative times, and the typical times at the end; nothing without turns."""
    if not turns:
        return ""
    last = turns[-_LAST:]
    reference, ours = (
        (sum(times), median(times[-_LAST:]))
        for times in ([t.reference_seconds for t in turns], [t.turntrie_seconds for t in turns])
    )
    asked = sum(turn.tokens for turn in turns)
    kept = sum(turn.kept for turn in turns)
    heads = ("", "whole episode", f"last {len(last)} turns, median")
    rows = [
        heads,
        ("transformers", f"{reference[0] * 1e3:,.1f} ms", f"{reference[1] * 1e3:,.2f} ms"),
        ("turntrie", f"{ours[0] * 1e3:,.1f} ms", f"{ours[1] * 1e3:,.2f} ms"),
        ("ratio", f"{_ratio(turns):,.1f}x", f"{reference[1] / ours[1]:,.1f}x"),
    ]
    identical = sum(turn.identical for turn in turns)
    native = sum(turn.path == "native" and turn.reason is None for turn in turns)
    lines = [f"{row[0]:<14}{row[1]:>16}{row[2]:>26}" for row in rows]
    lines += [
        "",
        f"{len(turns)} turns, {turns[-1].tokens:,} tokens in the last prompt; kept {kept / asked:.1%} of all tokens",
        f"identical: {identical} of {len(turns)}; native: {native} of {len(turns)}",
        *faults(turns),
    ]
    return "\n".join(lines)


def document(turns: Sequence[Turn]) -> dict[str, Any]:
    """The same as a value for JSON: every turn, the totals, the verdict."""
    return {
        "turns": [turn._asdict() for turn in turns],
        "reference_seconds": sum(turn.reference_seconds for turn in turns),
        "turntrie_seconds": sum(turn.turntrie_seconds for turn in turns),
        "identical": all(turn.identical for turn in turns),
        "native": all(turn.path == "native" and turn.reason is None for turn in turns),
    }
