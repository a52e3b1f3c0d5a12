"""`apply_chat_template` of a wrapped tokenizer: native, or one call of the reference.

The order of things: read the arguments, render and encode natively, build the value transformers would return. Any
reason on the way, and the reference serves the call, once, with the caller's arguments as they came; it also raises
what there is to raise, so errors are transformers' own. Nothing the native path does is seen by the caller before that.
"""

from typing import Any

from turntrie import encoding, path, reference, verification
from turntrie.attachment import Attachment
from turntrie.calls import Call
from turntrie.reason import Reason, TemplateLimitError


def apply(tok: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Serves `tok.apply_chat_template(*args, **kwargs)`: the value and type the installed transformers returns."""
    attached = Attachment.of(tok)
    served = _native(tok, attached, args, kwargs)
    if isinstance(served, Reason):
        return ask_reference(tok, attached, served, args, kwargs)
    if attached.policy.draw() or (_is_masked(served) and _is_new_mask(tok, attached, served, kwargs)):
        return _compared(tok, attached, served, args, kwargs)
    return served


def _is_masked(served: Any) -> bool:
    return not isinstance(served, list | str) and "assistant_masks" in served


def _is_new_mask(tok: Any, attached: Attachment, served: Any, kwargs: dict[str, Any]) -> bool:
    """Whether this is the first mask for a template, short enough to be made by transformers as well."""
    if not attached.policy.shapes:
        return False
    masks = served["assistant_masks"]
    size = sum(map(len, masks)) if masks and isinstance(masks[0], list) else len(masks)
    source = tok.get_chat_template(kwargs.get("chat_template"), kwargs.get("tools"))
    return size <= verification.LONGEST_MASK and attached.meet(source)


def _compared(tok: Any, attached: Attachment, served: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A native value, after the reference has served the call as well; its value or exception if they differ."""
    call: dict[str, Any] = {"args": list(args), "kwargs": kwargs}
    source = tok.get_chat_template(kwargs.get("chat_template"), kwargs.get("tools"))
    try:
        with attached.lock.now, reference.preserved(tok.__dict__.get("_tokenizer")):
            want = reference.original(tok).cls.apply_chat_template(tok, *args, **kwargs)
    except Exception:
        attached.record.note(verification.full_divergence(source, served, None, call))
        attached.distrusted = Reason("quarantine:call")
        raise
    if not _same(want, served) and _tells_time(source):
        again = _native(tok, attached, args, kwargs)  # the clock may have ticked between the two sides
        served = again if _same(want, again) else served
    if _same(want, served):
        attached.counters.verified("full", "equal")
        return served
    attached.record.note(verification.full_divergence(source, served, want, call))
    attached.distrusted = Reason("quarantine:call")
    return want


def _same(want: Any, got: Any) -> bool:
    return type(want) is type(got) and bool(_data(want) == _data(got))


def _tells_time(source: Any) -> bool:
    """Whether a template prints the clock."""
    template = path.compiled(source) if type(source) is str else None
    return template is not None and bool(template.clock_formats)


def _data(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else value


def ask_reference(tok: Any, attached: Attachment, reason: Reason, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Hands a call to the original class, once, and counts it, also if it raises.

    Raises:
        TemplateLimitError: The template was stopped; transformers would not stop.
    """
    attached.counters.reference(reason)
    if reason.startswith("limit:"):
        raise TemplateLimitError(f"the chat template was stopped, it does more work than any template may: {reason}")
    with attached.lock.now, reference.preserved(tok.__dict__.get("_tokenizer")):
        return reference.original(tok).cls.apply_chat_template(tok, *args, **kwargs)


def count(tok: Any, attached: Attachment, prompts: list[Any], max_length: int | None) -> None:
    """Counts a native call and warns, as transformers does after encoding, of prompts too long for the model."""
    kept = sum(prompt.kept for prompt in prompts)
    attached.counters.native(kept, sum(map(len, prompts)) - kept)
    for prompt in prompts:
        tok._eventual_warn_about_too_long_sequence(prompt, max_length, True)  # noqa: SLF001  # their method: their logger


def _native(tok: Any, attached: Attachment, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = path.read(tok, args, kwargs)
    if isinstance(call, Reason):
        return call
    return _ids(tok, attached, call) if call.tokenize else _text(tok, attached, call)


def _text(tok: Any, attached: Attachment, call: Call) -> Any:
    texts = []
    for one in call.each():
        text = path.text(tok, attached, one)
        if isinstance(text, Reason):
            return text
        texts.append(text)
    attached.counters.native()
    return texts if call.batched else texts[0]


def _ids(tok: Any, attached: Attachment, call: Call) -> Any:
    served = []
    for one in call.each():
        ids = path.ids(tok, attached, one)
        if isinstance(ids, Reason):
            return ids
        served.append(ids)
    prompts, backend = [ids.prompt for ids in served], served[0].backend
    if any(ids.backend is not backend for ids in served):
        return Reason("tokenizer:changing")
    if call.return_dict:
        result = encoding.batch_encoding(tok, attached, prompts, backend.type_id, batched=call.batched)
    else:
        lists = [prompt.tolist() for prompt in prompts]
        result = lists if call.batched else lists[0]
    if not isinstance(result, Reason):
        count(tok, attached, prompts, call.max_length)
    return result
