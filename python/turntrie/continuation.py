"""`continue_final_message`: the conversation with transformers' mark in it, and the text up to the mark.

transformers appends a mark to the last message, renders, and cuts the text where the mark came out. Both halves are
repeated here around a native render; what is encoded then is an ordinary text. Whatever transformers refuses, and
whatever else is not a plain text or list of text blocks, is left to it. The rule is not taken for granted: once per
process the installed method continues a few small conversations, and ours must come to the same texts; whether a field
can be named (5.x) or only `content` continued (4.x) is found out in the same way.
"""

import sys
from typing import Any, NamedTuple

from turntrie import reference
from turntrie._native import RULE_ALIAS_REASONING, RULE_DROP_NULL, Template
from turntrie.reason import Reason

_MARK = "CONTINUE_FINAL_MESSAGE_TAG "
_FIELDS = ("reasoning_content", "thinking", "reasoning")
_REFUSED = Reason("call:continue")

Messages = list[dict[str, Any]]


class Continuation(NamedTuple):
    """A conversation to render instead, and what its last message said."""

    messages: Messages
    final: str

    def cut(self, text: str) -> str | Reason:
        """The rendered text up to the mark."""
        mark = _MARK.strip()
        if self.final.strip() not in text or mark not in text:
            return _REFUSED
        at = text.rindex(mark)
        return text[:at] if text[at : at + len(_MARK)] == _MARK else text[:at].rstrip()


def of(messages: Messages, field: bool | str, source: str) -> Continuation | Reason:
    """The conversation with the mark, or why transformers serves the call.

    Args:
        messages: The conversation, as the caller gave it; left alone.
        field: The value of `continue_final_message`, true.
        source: The chat template.
    """
    if not _understood(named=field is not True):
        return _REFUSED
    return _marked(messages, "content" if field is True else str(field), source, reference.rules().flags)


def _marked(messages: Messages, field: str, source: str, rules: int) -> Continuation | Reason:
    if not messages or type(messages[-1]) is not dict:
        return _REFUSED
    last = messages[-1]
    if rules & RULE_ALIAS_REASONING:
        reasoning = next((last[name] for name in _FIELDS if last.get(name) is not None), None)
        if reasoning is not None:
            given = {name: value for name, value in last.items() if value is not None or not rules & RULE_DROP_NULL}
            last = {"thinking": reasoning, **given, "reasoning_content": reasoning}
    final = last.get(field)
    fields = [field]
    if field in _FIELDS and type(final) is str:
        fields = [name for name in _FIELDS if type(last.get(name)) is str and last[name] == final]
    if not any(name in source for name in fields):
        return _REFUSED
    if type(final) is str:
        marked = {**last, **dict.fromkeys(fields, final + _MARK)}
    elif type(final) is list and field not in _FIELDS:
        blocks = _blocks(final)
        if blocks is None:
            return _REFUSED
        marked, final = {**last, field: blocks[0]}, blocks[1]
    else:
        return _REFUSED
    return Continuation([*messages[:-1], marked], final)


def _blocks(content: list[Any]) -> tuple[list[Any], str] | None:
    """Content blocks with the mark on the last one that has a text, and that text."""
    for at in range(len(content) - 1, -1, -1):
        block = content[at]
        if type(block) is not dict:
            return None
        if "text" in block:
            text = block["text"]
            if type(text) is not str:
                return None
            return [*content[:at], {**block, "text": text + _MARK}, *content[at + 1 :]], text
    return None


_PRINTER = "{{ messages|tojson }} content thinking|{{ messages[-1].content }}|{{ messages[-1].reasoning_content }}"
_TRIMMING = "{{ messages[-1].content|trim }} <end> {# reasoning_content #}"
_FLAGGED: list[tuple[str, Messages]] = [
    (_PRINTER, [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b "}]),
    (_PRINTER, [{"content": [{"type": "text", "text": "x"}, {"type": "image"}], "role": "assistant", "name": "n"}]),
    (_PRINTER, [{"role": "assistant", "content": "", "thinking": "t"}]),
    (_TRIMMING, [{"role": "assistant", "content": "a \n"}]),
    (_TRIMMING, [{"role": "assistant", "content": "a"}]),
]
_NAMED: list[tuple[str, Messages]] = [
    (_PRINTER, [{"role": "assistant", "content": "a", "reasoning_content": "r "}]),
    (_PRINTER, [{"role": "assistant", "content": "a", "thinking": "t", "reasoning": "t"}]),
    (_PRINTER, [{"role": "assistant", "content": "a", "thinking": "t", "reasoning_content": "r"}]),
]
_known: dict[tuple[Any, ...], bool] = {}


def _understood(*, named: bool) -> bool:
    """Whether the installed transformers does as is done here; probed on first use."""
    base: Any = reference.base()
    key = (base.apply_chat_template, sys.modules[base.__module__].render_jinja_template, named)
    if key not in _known:
        rules = reference.rules()
        probes = _NAMED if named else _FLAGGED
        _known[key] = rules.special and all(_agrees(base, probe, rules.flags, named=named) for probe in probes)
    return _known[key]


def _agrees(base: Any, probe: tuple[str, Messages], rules: int, *, named: bool) -> bool:
    source, messages = probe
    blank: Any = object.__new__(type("Blank", (base,), {"chat_template": None, "special_tokens_map": {}}))
    field = "reasoning_content" if named else True
    try:
        theirs = base.apply_chat_template(
            blank, messages, chat_template=source, tokenize=False, continue_final_message=field
        )
    except Exception:  # noqa: BLE001  # foreign code; whatever it raises, we do not understand it
        return False
    ours = _marked(messages, "reasoning_content" if named else "content", source, rules)
    if isinstance(ours, Reason):
        return False
    rendered = Template(source).render(ours.messages, {}, {}, rules)
    return rendered.reason is None and ours.cut(rendered.text) == theirs
