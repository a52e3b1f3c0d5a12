"""Native results against the reference, without making anybody wait for it.

Two oracles. *Text*: the first time a template meets a shape of message, a pair of neighbouring roles or a switch (the
native code names what is new), the same messages are rendered by transformers as well, and the texts compared. *Ids*:
sampled texts are encoded again in full, by the native code on a thread of its own.

A template's first assistant mask is made by transformers as well, if it is short: that call is compared as a whole.

The text oracle costs what jinja2 costs, so it looks at `LIMIT` characters a call. A longer conversation is looked at in
windows around the messages that show something new: the head (up to the first user message) and a run of messages that
ends at the new one or a little behind it. A window consists of real messages in their real order, and is only used if
each of its shapes also occurs in the whole call: nothing is checked that was not asked for. What is left over, the next
call goes on with.

A difference is a bug of ours. The caller gets transformers' value where it is known, the shape goes into quarantine
(its calls are served by transformers from then on), one warning without contents is logged, and a reproducer is kept.

How much is looked at, `verify=` of `wrap` or TURNTRIE_VERIFY: `"shapes"` (the above, default), `"off"`, `"always"`, or
the share of calls, a number from 0 to 1, that transformers serves as well, in full, exceptions included. The last two
keep the shape checks.
"""

import copy
import hashlib
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from turntrie import _native
from turntrie.counters import Counters

LIMIT = 64 * 1024
"""Characters of text that the text oracle renders again in one call, at most."""

LONGEST_MASK = 16 * 1024
"""Tokens of an assistant mask that transformers makes as well, once for each template."""

_KEPT = 8
_logger = logging.getLogger("turntrie")
# Not the global generator: a trainer's seeded draws are not ours to consume.
_random = random.Random()  # noqa: S311

Messages = list[dict[str, Any]]
Render = Callable[[Messages], _native.Prompt]
Shape = Callable[[Messages], list[int]]
Reference = Callable[[Messages], str]


class Policy(NamedTuple):
    """How much is verified."""

    shapes: bool
    """Whether new shapes and sampled ids are checked."""
    share: float
    """The share of calls that transformers serves as well."""

    @classmethod
    def of(cls, verify: str | float | None) -> "Policy":
        """Reads `verify=`; None means TURNTRIE_VERIFY, or `"shapes"`.

        Raises:
            ValueError: It is none of the values listed in this module.
        """
        source = "verify"
        if verify is None:
            verify = os.environ.get("TURNTRIE_VERIFY") or "shapes"
            source = "TURNTRIE_VERIFY"
        named = {"shapes": cls(True, 0.0), "off": cls(False, 0.0), "always": cls(True, 1.0)}
        if isinstance(verify, str) and verify in named:
            return named[verify]
        try:
            # Not True and False: whoever says False means "off", which is not what a share of 0 is.
            share = -1.0 if isinstance(verify, bool) else float(verify)
        except (TypeError, ValueError):
            share = -1.0
        if not 0.0 <= share <= 1.0:
            raise ValueError(f'{source} must be "shapes", "always", "off" or a share from 0 to 1, got {verify!r}')
        return cls(True, share)

    @property
    def rules(self) -> int:
        """The `RULE_WATCH_*` bits for the native code."""
        return _native.RULE_WATCH_SHAPES | _native.RULE_WATCH_IDS if self.shapes else 0

    def draw(self) -> bool:
        """Whether this call is one that transformers serves as well."""
        return self.share >= 1.0 or (self.share > 0.0 and _random.random() < self.share)


class Divergence(NamedTuple):
    """Something native that was not what transformers gives."""

    kind: str
    """`"text"` or `"ids"`; `"reuse"` for a text that differs from our own whole render."""
    template: str
    """A short hash of the chat template; empty if it does not matter."""
    shape: str
    """The first of the shape keys that are in quarantine for it; empty if it is not the shape that is."""
    first: int
    """The first character, or index of the first id, that differs."""
    offset: int | None
    """The character where that is in the text, if known."""
    got_length: int
    want_length: int | None
    """None if transformers raised instead."""
    contents: dict[str, Any]
    """What reproduces it. Private to the user."""

    def report(self, *, contents: bool) -> dict[str, Any]:
        """The divergence as JSON-able values, with or without contents."""
        report = {name: getattr(self, name) for name in self._fields if name != "contents"}
        return {**report, **copy.deepcopy(self.contents)} if contents else report


class Record:
    """What verification found on one tokenizer."""

    __slots__ = ("_doubted", "counters", "divergences", "templates")

    def __init__(self, counters: Counters) -> None:
        """Starts empty."""
        self.counters = counters
        self.templates: dict[str, _native.Template] = {}
        """The latest templates of native calls, by source."""
        self._doubted: set[str] = set()
        self.divergences: deque[Divergence] = deque(maxlen=_KEPT)

    def used(self, source: str, template: _native.Template) -> None:
        """Remembers a template, and says so, once, if reuse was found wrong for it and switched off."""
        if source not in self.templates:
            if len(self.templates) >= _KEPT:
                del self.templates[next(iter(self.templates))]
            self.templates[source] = template
        _, different, _ = template.verification()
        if different and source not in self._doubted:
            self._doubted.add(source)
            first = reuse_divergences(source, template)[0]
            _logger.warning(
                "turntrie: a text with iterations of an earlier render differs from a whole render: template=%s "
                "first=%d got_length=%d want_length=%s; texts of this template are rendered whole from now on",
                first.template,
                first.first,
                first.got_length,
                first.want_length,
            )

    def reuse(self) -> dict[str, int]:
        """How many texts with iterations of earlier renders were compared with whole renders, and how many differed."""
        seen = [template.verification() for template in self.templates.values()]
        return {"texts_checked": sum(s[0] for s in seen), "texts_different": sum(s[1] for s in seen)}

    def all(self) -> list[Divergence]:
        """Everything found on this tokenizer and its templates."""
        pairs = list(self.templates.items())
        return [*self.divergences, *(found for pair in pairs for found in reuse_divergences(*pair))]

    def note(self, divergence: Divergence) -> None:
        """Keeps, counts and logs a divergence, whose calls are in quarantine from now on."""
        self.divergences.append(divergence)
        self.counters.verified(divergence.kind, "different")
        self.counters.quarantined("shape" if divergence.shape else "call")
        _logger.warning(
            "turntrie differs from transformers: kind=%s template=%s shape=%s first=%d offset=%s "
            "got_length=%d want_length=%s; "
            "transformers serves such calls from now on",
            *divergence[:-1],
            extra={"turntrie": divergence.report(contents=False)},
        )


def template_id(source: str) -> str:
    """A short name for a template text."""
    return hashlib.blake2b(source.encode(errors="surrogatepass"), digest_size=6).hexdigest()


class TextOracle(NamedTuple):
    """One template in one context, rendered by both sides."""

    record: Record
    """Where findings go."""
    template: _native.Template
    source: str
    render: Render
    """Renders messages natively."""
    shape: Shape
    """The shape keys of messages."""
    reference: Reference
    """Renders messages with transformers; raises what it raises."""
    keywords: dict[str, Any]
    """The call without its messages, for the reproducer."""

    def agrees(self, prompt: _native.Prompt, messages: Messages) -> bool:
        """Checks what is new in a native prompt.

        Args:
            prompt: The native prompt of `messages`, with `unseen` shapes.
            messages: The whole conversation.

        Returns:
            False if the call has to be served by transformers.
        """
        if len(prompt.text) <= LIMIT:
            return self._equal(prompt, messages)
        shapes = set(self.shape(messages))
        spent = 0
        given_up = []
        for key, index in prompt.unseen:
            window = _window(messages, index)
            rendered = self.render(window)
            if key not in (known for known, _ in rendered.unseen):
                if rendered.reason is not None or key not in self.shape(window):
                    given_up.append(key)
                continue  # else an earlier window has shown it
            if not shapes.issuperset(self.shape(window)) or len(rendered.text) > LIMIT:
                given_up.append(key)
                continue
            spent += len(rendered.text)
            if spent > LIMIT:
                break
            if not self._equal(rendered, window):
                return False
        if given_up:
            # Whatever no window shows at this price is left to the checks that do not depend on shapes.
            self.template.accept(given_up)
            self.record.counters.verified("text", "skipped")
        return True

    def _equal(self, prompt: _native.Prompt, messages: Messages) -> bool:
        try:
            want: str | None = self.reference(messages)
        except Exception:  # noqa: BLE001  # the reference's own error, whatever it is: we gave a text where it raises
            want = None
        if want == prompt.text or (want is not None and self._ticked(want, messages)):
            self.template.accept([key for key, _ in prompt.unseen])
            self.record.counters.verified("text", "equal")
            return True
        self.template.quarantine([key for key, _ in prompt.unseen])
        got_length, want_length = len(prompt.text), None if want is None else len(want)
        contents = {
            "chat_template": self.source,
            "messages": copy.deepcopy(messages),
            "keywords": copy.deepcopy(self.keywords),
            "got": prompt.text,
            "want": want,
        }
        first = _common(prompt.text, want or "")
        shape = f"{prompt.unseen[0][0]:016x}"
        template = template_id(self.source)
        self.record.note(Divergence("text", template, shape, first, first, got_length, want_length, contents))
        return False

    def _ticked(self, want: str, messages: Messages) -> bool:
        """Whether the template prints the clock, and only the clock has moved on between the two sides."""
        return bool(self.template.clock_formats) and self.render(messages).text == want


def _window(messages: Messages, index: int) -> Messages:
    """The head and the run of messages around one of them.

    The run starts where the head could go on (a message with the role that follows the head) and ends with the role
    that the whole conversation ends with, so that its borders are like those of the whole.
    """
    roles = [message.get("role") for message in messages]
    head = roles.index("user") + 1 if "user" in roles else 0
    if index < head:
        start, index = head, head
    else:
        start = max(index - 1, head)  # with the message before: the pair may be what is new
        while start > head and (roles[start] != roles[head] or roles[start - 1] == roles[start]):
            start -= 1
    end = min(index + 1, len(messages))
    while end < len(messages) and roles[end - 1] != roles[-1]:
        end += 1
    # A result that follows belongs to the same group.
    while end < len(messages) and roles[end] == roles[end - 1]:
        end += 1
    return [*messages[:head], *messages[start:end]]


def _common(got: Sequence[Any], want: Sequence[Any]) -> int:
    """How many leading items two sequences share."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(got, want, strict=False)))


def ids_divergence(text: str, got: list[int], want: list[int], offset: int | None) -> Divergence:
    """Incremental ids that are not those of a full encode of the same text."""
    contents = {"text": text, "got": got, "want": want}
    return Divergence("ids", "", "", _common(got, want), offset, len(got), len(want), contents)


def reuse_divergences(source: str, template: _native.Template) -> list[Divergence]:
    """The first texts with iterations of earlier renders that were not those of a whole render."""
    found = []
    for got, want in template.differences():
        first = _common(got, want or "")
        want_length = None if want is None else len(want)
        contents = {"chat_template": source, "got": got, "want": want}
        found.append(Divergence("reuse", template_id(source), "", first, first, len(got), want_length, contents))
    return found


def full_divergence(source: str, got: Any, want: Any, call: dict[str, Any]) -> Divergence:
    """A native value that is not the reference's, for a call that both served.

    Args:
        source: The template text.
        got: The native value: a text, a list of ids or a BatchEncoding.
        want: The reference's value, or None if it raised.
        call: What reproduces the call.
    """
    got_ids, want_ids = _plain(got), _plain(want)
    same = _common(got_ids, want_ids)
    kind = "text" if isinstance(got, str) else "ids"
    contents = {**copy.deepcopy(call), "got": got_ids, "want": want_ids}
    want_length = None if want is None else len(want_ids)
    offset = same if kind == "text" else None
    return Divergence(kind, template_id(source), "", same, offset, len(got_ids), want_length, contents)


def _plain(value: Any) -> Any:
    if value is None:
        return []
    return value if isinstance(value, str | list) else value["input_ids"]
