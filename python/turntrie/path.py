"""The native path of one call: the template's context, the text, the ids, or the reason for the reference.

The context is the one transformers builds: its special tokens, the caller's keywords over them, tools, documents and
`add_generation_prompt`. Template and special tokens are asked from the tokenizer at each call, so a change of either is
seen. The native code walks messages and context once and works without the GIL from there on.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from turntrie import _native, reference
from turntrie.attachment import Attachment
from turntrie.backend import Backend
from turntrie.calls import Call
from turntrie.reason import Reason


class Context(NamedTuple):
    """What a template sees, except for the messages."""

    template: _native.Template
    variables: dict[str, Any]
    clock: dict[str, str]
    rules: int


class Ids(NamedTuple):
    """A native prompt and the backend that made it."""

    prompt: _native.Prompt
    backend: Backend


def ids(
    tok: Any,
    attached: Attachment,
    call: Call,
    messages: _native.Conversation | None = None,
    root: int | None = None,
) -> Ids | Reason:
    """Renders and encodes a call.

    Args:
        tok: The wrapped tokenizer.
        attached: Its attachment.
        call: The call.
        messages: The call's conversation, if it is converted already.
        root: The trie root; the tokenizer's own by default.
    """
    context = _context(tok, call)
    if isinstance(context, Reason):
        return context
    backend = attached.engine(tok, reference.original(tok).watch)
    if isinstance(backend, Reason):
        return backend
    prompt = backend.engine.prompt(
        context.template,
        call.conversation if messages is None else messages,
        context.variables,
        context.clock,
        context.rules,
        attached.root if root is None else root,
    )
    return Ids(prompt, backend) if prompt.reason is None else Reason(prompt.reason)


def text(tok: Any, call: Call) -> str | Reason:
    """Renders a call. Needs no engine."""
    override = reference.original(tok).watch.refuse(tok)
    if override is not None:
        return override
    context = _context(tok, call)
    if isinstance(context, Reason):
        return context
    prompt = context.template.render(call.conversation, context.variables, context.clock, context.rules)
    return prompt.text if prompt.reason is None else Reason(prompt.reason)


def _context(tok: Any, call: Call) -> Context | Reason:
    rules = reference.rules()
    refusal = rules.refuse(call.conversation)
    if refusal is not None:
        return refusal
    try:
        source = tok.get_chat_template(call.chat_template, call.tools)
    except Exception:  # noqa: BLE001  # transformers' own error; the reference call raises it to the caller
        return Reason("call:template")
    template = compiled(source) if type(source) is str else None
    if template is None:
        return Reason("call:template")
    if template.reason is not None:
        return Reason(template.reason)
    formats = template.clock_formats
    try:
        clock = {text: reference.clock().now().strftime(text) for text in formats}
    except ValueError:  # a format that this platform's strftime refuses
        return Reason("call:clock")
    variables = {
        **tok.special_tokens_map,
        **call.variables,
        "tools": call.tools,
        "documents": call.documents,
        "add_generation_prompt": call.add_generation_prompt,
    }
    return Context(template, variables, clock, rules.flags)


@lru_cache(maxsize=128)
def compiled(source: str) -> _native.Template | None:
    """The compiled template; `None` for a text that is not Unicode. 128 templates are kept per process."""
    try:
        return _native.Template(source)
    except UnicodeEncodeError:
        return None
