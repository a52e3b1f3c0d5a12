"""What `turntrie check` found, and how it is shown: text for people, a document for programs.

Nothing in either has contents of messages unless `contents` is set. Names of scenarios, ids of conversations, reasons
and classes of exceptions are no contents; the text of an exception may be.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turntrie.cli.columns import columns, entries
from turntrie.cli.recordings import Arguments

if TYPE_CHECKING:
    from turntrie.check.comparison import Difference, Finding, Tally
    from turntrie.check.facts import Engine, Template

_KEPT = 10
"""How many differences of scenarios, and of turns, are kept with everything that reproduces them, and shown."""
_HEADS = ("native", "by HF", "both refuse", "different")
_AROUND = {str: 60, list: 8}
"""How many characters or ids are shown on each side of a difference."""


def _tally() -> "Tally":
    from turntrie.check.comparison import Tally  # noqa: PLC0415  # `--help` needs no extension

    return Tally()


@dataclass
class Conversation:
    """One recorded conversation: its id, how arguments were spelled, and its turns counted."""

    name: str
    arguments: Arguments
    tally: "Tally" = field(default_factory=_tally)


@dataclass
class File:
    """One file of recorded conversations."""

    name: str
    conversations: list[Conversation] = field(default_factory=list)
    tally: "Tally" = field(default_factory=_tally)


@dataclass
class Checked:
    """Everything that a check found."""

    model: str
    versions: dict[str, str]
    tokenizer: str
    templates: "list[Template]"
    engine: "Engine"
    warmup_seconds: float
    scenarios: "Tally" = field(default_factory=_tally)
    axes: "dict[str, dict[str, Tally]]" = field(default_factory=dict)
    """The scenarios counted along each axis."""
    files: list[File] = field(default_factory=list)
    turns: "Tally" = field(default_factory=_tally)
    differences: list[dict[str, Any]] = field(default_factory=list)
    """Where all the differences are, without contents."""
    kept_scenarios: "list[Difference]" = field(default_factory=list)
    kept_turns: "list[Difference]" = field(default_factory=list)

    @property
    def kept(self) -> "list[Difference]":
        """The first differences, with contents."""
        return [*self.kept_scenarios, *self.kept_turns]

    def scenario(self, axes: dict[str, str], finding: "Finding") -> None:
        """Counts a scenario."""
        self.scenarios.add(finding)
        for axis, value in axes.items():
            self.axes.setdefault(axis, {}).setdefault(value, _tally()).add(finding)
        self._keep(finding, self.kept_scenarios)

    def turn(self, file: File, conversation: Conversation, finding: "Finding") -> None:
        """Counts a turn."""
        for tally in (self.turns, file.tally, conversation.tally):
            tally.add(finding)
        self._keep(finding, self.kept_turns)

    def compared(self) -> bool:
        """Whether there was a call that at least one side served."""
        return any(tally.total > tally.verdicts["refused"] for tally in (self.scenarios, self.turns))

    def _keep(self, finding: "Finding", kept: "list[Difference]") -> None:
        self.differences += [difference.document() for difference in finding.differences]
        kept += finding.differences[: max(_KEPT - len(kept), 0)]


def document(checked: Checked, *, contents: bool) -> dict[str, Any]:
    """The findings as a value for JSON."""
    return {
        "model": checked.model,
        "versions": checked.versions,
        "ok": not checked.differences,
        "tokenizer": checked.tokenizer,
        "engine": checked.engine._asdict(),
        "templates": [template.document() for template in checked.templates],
        "warmup_seconds": checked.warmup_seconds,
        "scenarios": {
            **checked.scenarios.document(),
            "axes": {
                axis: {value: tally.document() for value, tally in values.items()}
                for axis, values in checked.axes.items()
            },
        },
        "turns": checked.turns.document(),
        "files": [
            {
                "file": file.name,
                **file.tally.document(),
                "conversations": [
                    {"id": conversation.name, "arguments": conversation.arguments, **conversation.tally.document()}
                    for conversation in file.conversations
                ],
            }
            for file in checked.files
        ],
        "differences": [kept.reproducer() for kept in checked.kept] if contents else checked.differences,
    }


def text(checked: Checked, *, contents: bool, saved: Path | None) -> str:
    """The findings for people.

    Args:
        checked: The findings.
        contents: Whether differences are shown with the contents around them.
        saved: The file that reproducers are written to, if any.
    """
    parts = [_head(checked), _scenarios(checked), _turns(checked), _reasons(checked)]
    if checked.differences:
        parts.append(_differences(checked, contents=contents, saved=saved))
    parts.append(_verdict(checked))
    return "\n\n".join(part for part in parts if part)


def _head(checked: Checked) -> str:
    named = len(checked.templates) > 1
    return entries(
        [
            ("model", checked.model),
            ("versions", ", ".join(f"{name} {number}" for name, number in checked.versions.items())),
            ("tokenizer", checked.tokenizer),
            *checked.engine.describe(),
            *(
                ("template", f"{template.id}{f' ({template.name})' if named else ''}: {template.served()}")
                for template in checked.templates
            ),
            ("warm-up", f"{checked.warmup_seconds * 1e3:,.0f} ms, once per tokenizer and process"),
        ]
    )


def _row(name: str, tally: "Tally") -> tuple[str, ...]:
    return (name, f"{tally.total:,}", *(f"{count:,}" if count else "." for count in tally.counts()))


def _scenarios(checked: Checked) -> str:
    rows: list[tuple[str, ...]] = [("scenarios", "calls", *_HEADS)]
    empty = ("",) * (len(rows[0]) - 1)
    for axis, values in checked.axes.items():
        rows.append((f"  {axis}", *empty))
        rows += [_row(f"    {value}", tally) for value, tally in values.items()]
    rows.append(_row("  all", checked.scenarios))
    return columns(rows)


def _turns(checked: Checked) -> str:
    if not checked.files:
        return ""
    rows: list[tuple[str, ...]] = [("recorded conversations", "turns", *_HEADS, "tokens", "HF:turntrie")]
    tallies = [(f"  {Path(file.name).name} ({len(file.conversations)})", file.tally) for file in checked.files]
    for name, tally in (*tallies, ("  all", checked.turns)):
        rows.append((*_row(name, tally), f"{tally.tokens:,}", _ratio(tally.ratio)))
    return columns(rows)


def _ratio(ratio: float | None) -> str:
    return "." if ratio is None else f"{ratio:.1f}x"


def _reasons(checked: Checked) -> str:
    total: Counter[str] = checked.scenarios.reasons + checked.turns.reasons
    if not total:
        return ""
    rows = [("served by transformers because", "scenarios", "turns")]
    for reason, _ in total.most_common():
        rows.append((f"  {reason}", f"{checked.scenarios.reasons[reason]:,}", f"{checked.turns.reasons[reason]:,}"))
    return columns(rows)


def _differences(checked: Checked, *, contents: bool, saved: Path | None) -> str:
    lines = [f"different: {len(checked.differences)}"]
    for difference in checked.kept:
        where = difference.parting
        lines.append(
            f"  {where.kind}: {difference.place}, as {difference.form}: first={where.first}; "
            f"turntrie {where.got}, length {where.got_length}; transformers {where.want}, length {where.want_length}"
        )
        if contents:
            lines += [f"    turntrie      {_around(difference.got.value, where.first)}"]
            lines += [f"    transformers  {_around(difference.want.value, where.first)}"]
    if len(checked.differences) > len(checked.kept):
        lines.append(f"  and {len(checked.differences) - len(checked.kept)} more")
    if saved is None:
        lines.append("  run again with --reproducer FILE for everything that reproduces them (with contents)")
    else:
        lines.append(f"  what reproduces the {len(checked.kept)} above is in {saved} (with contents)")
    return "\n".join(lines)


def _around(value: Any, first: int) -> str:
    """The part of a value around a position."""
    if isinstance(value, dict):
        value = value.get("input_ids")
    if not isinstance(value, str | list):
        return repr(value)[: 2 * _AROUND[str]]
    around = _AROUND[str if isinstance(value, str) else list]
    start = max(first - around, 0)
    return f"from {start}: {value[start : first + around]!r}"


def _verdict(checked: Checked) -> str:
    total: Counter[str] = checked.scenarios.verdicts + checked.turns.verdicts
    served = total["native"] + total["transformers"]
    lines = [f"{total['different']} of {total.total():,} calls differ from transformers"]
    if served:
        lines.append(f"{total['native'] / served:.1%} of the {served:,} calls that were served equally were native")
    ratio = checked.turns.ratio or checked.scenarios.ratio
    if ratio is not None:
        what = "over all turns" if checked.files else "over the scenarios, which are short: see --conversations"
        lines.append(f"transformers took {ratio:.1f} times as long {what}")
    return "\n".join(lines)
