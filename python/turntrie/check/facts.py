"""What turntrie derived from a tokenizer, with the evidence for it.

Nothing is looked up by a model's name: the facts come from the live backend, the chat template and the installed
transformers, the same way the native path gets them, and they are asked for here from the very objects it uses.
"""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from turntrie import _native, path, reference
from turntrie.reason import Reason
from turntrie.verification import template_id

_FLAGS = ("special", "normalized", "lstrip", "rstrip", "single_word")
_STATUS = Path("/proc/self/status")


class Template(NamedTuple):
    """One chat template of a tokenizer."""

    name: str
    id: str
    """A short hash of its text."""
    characters: int
    reason: str | None
    """Why transformers renders it; None if it is rendered natively."""
    line: int | None
    """The line of the construct that the reason names."""
    clock_formats: list[str]
    """The formats in which it prints the date, as far as they are constants."""
    reusing_loops: int
    """Loops over messages that take over iterations of earlier renders."""
    other_loops: list[tuple[str, int]]
    """Why other loops over messages cannot, and their lines."""

    @property
    def native(self) -> bool:
        """Whether it is rendered natively."""
        return self.reason is None

    def served(self) -> str:
        """How it is served, for people."""
        if self.reason is None:
            return "native"
        return f"by transformers: {self.reason}" + (f", line {self.line}" if self.line is not None else "")

    def document(self) -> dict[str, Any]:
        """The facts as a value for JSON."""
        return {**self._asdict(), "native": self.native}


def templates(tok: Any) -> list[Template]:
    """The chat templates of a tokenizer: one, or several with names (`default`, `tool_use`)."""
    found = tok.chat_template
    named = found if isinstance(found, dict) else {"default": found}
    return [_template(name, source) for name, source in named.items()]


def _template(name: str, source: Any) -> Template:
    compiled = path.compiled(source) if type(source) is str else None
    if compiled is None:
        return Template(name, "", 0, "call:template", None, [], 0, [])
    known = (template_id(source), len(source), compiled.reason, compiled.line, list(compiled.clock_formats))
    return Template(name, *known, *compiled.loops)


class Engine(NamedTuple):
    """What was derived from the backend."""

    reason: str | None
    """Why there is no engine; None if there is one."""
    policy: dict[str, str]
    """The cut policy: pipeline, added tokens, cuts, hold-back, segments; `no cuts` says where not, and why."""
    self_check: dict[str, Any]
    """Texts encoded both ways when the engine was built, and how many differed."""
    seconds: dict[str, float]
    """What building it took; empty if the process had it."""

    def describe(self) -> list[tuple[str, str]]:
        """The policy in lines of a name and a text."""
        if self.reason is not None:
            return [("engine", f"none, transformers makes the ids: {self.reason}")]
        return list(self.policy.items())


def engine(tok: Any) -> Engine:
    """Builds the engine of a wrapped tokenizer, if it has none yet, and reads what it derived."""
    seconds = tok.turntrie.warmup()
    backend = path.engine(tok)
    if isinstance(backend, Reason):
        return Engine(str(backend), {}, {}, {})
    policy: dict[str, str] = {}
    for line in backend.engine.describe().splitlines():
        name, _, text = line.partition(":")
        policy[name] = f"{policy[name]}; {text.strip()}" if name in policy else text.strip()
    statistics = backend.stats()
    check = {name: statistics[name] for name in ("ids_checked", "ids_different", "incremental")}
    return Engine(None, policy, check, seconds)


def added_tokens(tok: Any) -> dict[str, int]:
    """How many added tokens the live backend has, in all and with each flag; empty if it is not one we read."""
    backend = tok.__dict__.get("_tokenizer")
    if not reference.is_backend(backend):
        return {}
    tokens = list(backend.get_added_tokens_decoder().values())
    flags = Counter(flag for token in tokens for flag in _FLAGS if getattr(token, flag))
    return {"all": len(tokens), **{flag: flags[flag] for flag in _FLAGS}}


def rules(tok: Any) -> dict[str, Any]:
    """What the installed transformers does with messages before the template, and returns by default."""
    probed = reference.rules()
    defaults = reference.original(tok).parameters.defaults
    return {
        "drops_null_keys": bool(probed.flags & _native.RULE_DROP_NULL),
        "copies_reasoning_fields": bool(probed.flags & _native.RULE_ALIAS_REASONING),
        "understood": probed.special and probed.reason is None,
        "reason": None if probed.reason is None else str(probed.reason),
        "return_dict_default": defaults.get("return_dict"),
    }


def resident_bytes() -> int | None:
    """Memory of this process that is in RAM now; None where the system does not say."""
    try:
        status = _STATUS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    sizes = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return next((int(size) * 1024 for size in sizes), None)
