"""The native path of one call: the template's context, the text, the ids, or the reason for the reference.

The context is the one transformers builds: its special tokens, the caller's keywords over them, tools, documents and
`add_generation_prompt`. Template and special tokens are asked from the tokenizer at each call, so a change of either is
seen. The native code walks messages and context once and works without the GIL from there on.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from turntrie import _native, assistant_mask, calls, continuation, reference
from turntrie.attachment import Attachment
from turntrie.backend import Backend
from turntrie.calls import Call
from turntrie.reason import Reason
from turntrie.verification import TextOracle


class Context(NamedTuple):
    """What a template sees, except for the messages."""

    template: _native.Template
    source: str
    variables: dict[str, Any]
    clock: dict[str, str]
    rules: int


class Ids(NamedTuple):
    """A native prompt and the backend that made it."""

    prompt: _native.Prompt
    backend: Backend


def read(tok: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | Reason:
    """Reads a call on a tokenizer, or says why the reference serves it.

    A class with methods of its own is recognised before any of them is called.
    """
    original = reference.original(tok)
    return original.watch.refuse(tok) or calls.read(original.parameters, args, kwargs)


def engine(tok: Any) -> Backend | Reason:
    """The engine of a wrapped tokenizer, built if need be, or why there is none."""
    return reference.original(tok).watch.refuse(tok) or Attachment.of(tok).engine(tok)


def ids(
    tok: Any,
    attached: Attachment,
    call: Call,
    *,
    messages: _native.Conversation | None = None,
    root: int | None = None,
    everything: Callable[[], list[dict[str, Any]]] | None = None,
    previous: _native.Prompt | None = None,
) -> Ids | Reason:
    """Renders and encodes a call.

    Args:
        tok: The wrapped tokenizer.
        attached: Its attachment.
        call: The call.
        messages: The call's conversation, if it is converted already.
        root: The trie root; the tokenizer's own by default.
        everything: The whole conversation, if `call` holds only its end.
        previous: A prompt that this one may begin like; what they have in common costs nothing then.
    """
    if call.batched or call.continue_final_message is not False:
        return _of_another_form(tok, attached, call, root, messages)
    context = _context(tok, attached, call)
    if isinstance(context, Reason):
        return context
    backend = attached.engine(tok)
    if isinstance(backend, Reason):
        return backend
    given = call.conversation if messages is None else messages
    fixed = (context.template, given, context.variables, context.clock)
    if call.return_assistant_tokens_mask:
        masking = assistant_mask.rules(context.source)
        prompt = masking if isinstance(masking, Reason) else backend.engine.masked(*fixed, context.rules | masking)
    else:
        root = attached.root if root is None else root
        prompt = backend.engine.prompt(*fixed, context.rules, root, previous)
    if isinstance(prompt, Reason) or prompt.reason is not None:
        return Reason(prompt if isinstance(prompt, Reason) else prompt.reason)
    backend.watch()
    if prompt.unseen and not _verified(tok, attached, (call, context, prompt), everything):
        return Reason("quarantine:shape")
    return Ids(prompt, backend)


def _of_another_form(
    tok: Any, attached: Attachment, call: Call, root: int | None, messages: _native.Conversation | None
) -> Ids | Reason:
    if call.batched:
        return Reason("call:batch")
    if messages is not None:
        # A session's messages are converted already, and the mark belongs into them.
        return Reason("call:continue")
    return _continued(tok, attached, call, root)


def _continued(tok: Any, attached: Attachment, call: Call, root: int | None) -> Ids | Reason:
    rendered = text(tok, attached, call)
    if isinstance(rendered, Reason):
        return rendered
    backend = attached.engine(tok)
    if isinstance(backend, Reason):
        return backend
    root = attached.root if root is None else root
    prompt = backend.engine.encode(rendered, root, attached.policy.rules)
    if prompt.reason is not None:
        return Reason(prompt.reason)
    backend.watch()
    return Ids(prompt, backend)


def _verified(
    tok: Any,
    attached: Attachment,
    served: tuple[Call, Context, _native.Prompt],
    everything: Callable[[], list[dict[str, Any]]] | None,
) -> bool:
    """Whether the shapes of a native prompt that are new give transformers' text."""
    call, context, prompt = served

    def render(messages: list[dict[str, Any]]) -> _native.Prompt:
        clock = _clock(context.template)  # as it is now: the reference looks at it a moment from now
        return context.template.render(messages, context.variables, clock, context.rules)

    def shape(messages: list[dict[str, Any]]) -> list[int]:
        return context.template.shape(messages, context.variables, context.rules)

    keywords = {
        "tools": call.tools,
        "documents": call.documents,
        "add_generation_prompt": call.add_generation_prompt,
        **call.variables,
    }

    def ask(messages: list[dict[str, Any]]) -> str:
        with attached.lock.now:
            text: str = reference.original(tok).cls.apply_chat_template(
                tok, messages, chat_template=call.chat_template, tokenize=False, **keywords
            )
            return text

    messages = call.conversation if everything is None else everything()
    oracle = TextOracle(attached.record, context.template, context.source, render, shape, ask, keywords)
    return oracle.agrees(prompt, messages)


def text(tok: Any, attached: Attachment, call: Call) -> str | Reason:
    """Renders a call. Needs no engine."""
    context = _context(tok, attached, call)
    if isinstance(context, Reason):
        return context
    if call.continue_final_message is False:
        return _rendered(tok, attached, call, context)
    marked = continuation.of(call.conversation, call.continue_final_message, context.source)
    if isinstance(marked, Reason):
        return marked
    rendered = _rendered(tok, attached, call._replace(conversation=marked.messages), context)
    return rendered if isinstance(rendered, Reason) else marked.cut(rendered)


def _rendered(tok: Any, attached: Attachment, call: Call, context: Context) -> str | Reason:
    prompt = context.template.render(call.conversation, context.variables, context.clock, context.rules, attached.root)
    if prompt.reason is not None:
        return Reason(prompt.reason)
    if prompt.unseen and not _verified(tok, attached, (call, context, prompt), None):
        return Reason("quarantine:shape")
    return prompt.text


def _context(tok: Any, attached: Attachment, call: Call) -> Context | Reason:
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
    attached.record.used(source, template)
    try:
        clock = _clock(template)
    except ValueError:  # a format that this platform's strftime refuses
        return Reason("call:clock")
    variables = {
        **tok.special_tokens_map,
        **call.variables,
        "tools": call.tools,
        "documents": call.documents,
        "add_generation_prompt": call.add_generation_prompt,
    }
    return Context(template, source, variables, clock, rules.flags | attached.policy.rules)


def _clock(template: _native.Template) -> dict[str, str]:
    """What each of the template's formats prints now. Raises ValueError for one that the platform refuses."""
    return {text: reference.clock().now().strftime(text) for text in template.clock_formats}


@lru_cache(maxsize=128)
def compiled(source: str) -> _native.Template | None:
    """The compiled template; `None` for a text that is not Unicode. 128 templates are kept per process."""
    try:
        return _native.Template(source)
    except UnicodeEncodeError:
        return None
