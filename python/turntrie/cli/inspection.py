"""`turntrie inspect`: what turntrie derived from a model, with the evidence, and what deriving it cost.

Nothing is compared here; that is `turntrie check`.
"""

import argparse
import json
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from turntrie.cli import models
from turntrie.cli.columns import entries
from turntrie.cli.options import add_model

if TYPE_CHECKING:
    from argparse import _SubParsersAction

T = TypeVar("T")

_MIB = 1024 * 1024


def add_command(commands: "_SubParsersAction[Any]") -> None:
    """Declares the subcommand."""
    parser = commands.add_parser(
        "inspect",
        help="show what turntrie derives from your model",
        description="Prints what turntrie derives from a model's tokenizer and chat template and from the installed "
        "transformers: pipeline and cuts, and why not more; whether the template is rendered natively, and which "
        "construct in which line is in the way; for some shapes of turns, of how many messages the text is located and "
        "how much of the old ones is rendered again; the rules found by probing; times and memory.",
    )
    add_model(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the facts; the exit code is 0."""
    template = None if options.template is None else models.read_template(options.template)
    load_seconds, tok = _timed(lambda: models.load_wrapped(options.model, template, verify="off"))

    from turntrie.check import facts  # noqa: PLC0415  # `--help` needs no extension
    from turntrie.check.turns import turns  # noqa: PLC0415  # as above

    before = facts.resident_bytes()
    template_seconds, templates = _timed(lambda: facts.templates(tok))
    rule_seconds, rules = _timed(lambda: facts.rules(tok))
    engine = facts.engine(tok)
    after = facts.resident_bytes()
    original = type(tok).__mro__[1]
    tried = [] if tok.chat_template is None else turns(tok)
    held = tok.turntrie.stats()["engine"] or {}
    value = {
        "model": str(options.model),
        "versions": {name: version(name) for name in ("turntrie", "transformers", "tokenizers")},
        "tokenizer": {"class": original.__qualname__, "module": original.__module__},
        "engine": engine._asdict(),
        "added_tokens": facts.added_tokens(tok),
        "templates": [template.document() for template in templates],
        "turns": [shape.document() for shape in tried],
        "rules": rules,
        "seconds": {"load": load_seconds, "templates": template_seconds, "rules": rule_seconds, **engine.seconds},
        "memory": {
            "resident_before": before,
            "resident_after": after,
            "checkpoints": held.get("bytes"),
            "checkpoints_budget": held.get("budget"),
        },
    }
    if options.json:
        print(json.dumps(value, indent=1))
    else:
        lines = [line for template in templates for line in _template(template.document())]
        lines += [("turns", f"{shape.shape}: {shape.text()}") for shape in tried]
        print(_text(value, engine.describe(), lines))
    return 0


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    """Calls once; the seconds and the result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _text(value: dict[str, Any], policy: list[tuple[str, str]], templates: list[tuple[str, str]]) -> str:
    """The facts for people."""
    tokenizer, seconds = value["tokenizer"], value["seconds"]
    rules, check = value["rules"], value["engine"]["self_check"]
    tokens = dict(value["added_tokens"])
    flags = ", ".join(f"{count} {flag}" for flag, count in tokens.items() if flag != "all")
    return entries(
        [
            ("model", value["model"]),
            ("versions", ", ".join(f"{name} {number}" for name, number in value["versions"].items())),
            ("tokenizer", f"{tokenizer['class']} of {tokenizer['module']}"),
            *policy,
            ("token flags", f"{tokens['all']} added tokens in the live backend: {flags}" if tokens else "not read"),
            *([("self-check", _check(check))] if check else []),
            *templates,
            *_rules(rules),
            ("seconds", ", ".join(f"{name} {spent:.3f}" for name, spent in seconds.items() if name != "table_bytes")),
            ("memory", _memory(value["memory"])),
        ]
    )


def _check(check: dict[str, Any]) -> str:
    how = "incremental encoding is on" if check["incremental"] else "incremental encoding is OFF"
    return f"{check['ids_checked']} texts encoded both ways, {check['ids_different']} differ; {how}"


def _template(template: dict[str, Any]) -> list[tuple[str, str]]:
    served = "native"
    if not template["native"]:
        place = "" if template["line"] is None else f", line {template['line']}"
        served = f"rendered by transformers: {template['reason']}{place}"
    clock = template["clock_formats"]
    return [
        ("template", f"{template['name']}, {template['id']}, {template['characters']:,} characters: {served}"),
        ("old turns", _loops(template["reusing_loops"], template["other_loops"])),
        ("clock", f"the template prints it as {', '.join(map(repr, clock))}" if clock else "not printed"),
    ]


def _loops(reusing: int, others: list[tuple[str, int]]) -> str:
    reused = f"{reusing} of {reusing + len(others)} loops over messages reuse what they rendered before"
    return "; ".join([reused, *(f"not the one in line {line}: {reason}" for reason, line in others)])


def _rules(rules: dict[str, Any]) -> list[tuple[str, str]]:
    if not rules["understood"]:
        what = rules["reason"] or "messages with null keys or reasoning fields go to transformers"
        probed = f"the installed transformers changes messages in a way that is not understood: {what}"
    else:
        null = "drops null keys" if rules["drops_null_keys"] else "keeps null keys"
        copied = "copies reasoning fields to each other" if rules["copies_reasoning_fields"] else "copies no fields"
        probed = f"the installed transformers {null}, {copied}"
    return [("rules", f"{probed} (probed)"), ("return_dict", f"{rules['return_dict_default']} by default")]


def _memory(memory: dict[str, Any]) -> str:
    parts = []
    if memory["resident_before"] is not None and memory["resident_after"] is not None:
        grown = (memory["resident_after"] - memory["resident_before"]) / _MIB
        parts.append(f"engine and templates took {grown:,.0f} MiB")
    if memory["checkpoints_budget"] is not None:
        held, budget = memory["checkpoints"] / _MIB, memory["checkpoints_budget"] / _MIB
        parts.append(f"checkpoints {held:,.0f} of at most {budget:,.0f} MiB")
    return "; ".join(parts) or "not known"
