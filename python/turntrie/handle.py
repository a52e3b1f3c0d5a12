"""`tok.turntrie`: what a wrapped tokenizer offers beyond `apply_chat_template`."""

from collections.abc import Mapping
from typing import Any

from turntrie import attachment, path
from turntrie.attachment import Attachment
from turntrie.dispatch import ask_reference, count
from turntrie.prompt import Prompt
from turntrie.reason import Reason

# Characters of a text that a turn may add.
_USUAL = 6000
# Parameters of apply_chat_template that make no sense where the result is always one prompt's ids.
_SHAPE = frozenset(("tokenize", "padding", "return_tensors", "return_dict", "return_assistant_tokens_mask"))


class Handle:
    """Prompts as arrays, statistics and warm-up of one wrapped tokenizer."""

    __slots__ = ("_tok",)

    def __init__(self, tok: Any) -> None:
        """Use `tok.turntrie`."""
        self._tok = tok

    def prompt(
        self,
        messages: list[dict[str, Any]],
        tools: list[Any] | None = None,
        documents: list[dict[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        **template_kwargs: Any,
    ) -> Prompt:
        """Renders and encodes a conversation.

        The ids are those of `tok.apply_chat_template` with the same arguments, whichever path serves the call.

        Args:
            messages: The conversation.
            tools: As for `apply_chat_template`.
            documents: As for `apply_chat_template`.
            chat_template: As for `apply_chat_template`.
            add_generation_prompt: As for `apply_chat_template`.
            **template_kwargs: Further keywords of `apply_chat_template` (`truncation`, `continue_final_message`), all
                others go to the template.

        Raises:
            TypeError: A keyword asks for another shape than one prompt's ids, `tokenize` or `return_tensors`.
        """
        keywords = arguments(tools, documents, chat_template, add_generation_prompt, template_kwargs)
        tok, attached = self._tok, Attachment.of(self._tok)
        served = prompt(tok, attached, (messages,), keywords)
        if isinstance(served, Reason):
            return reference_prompt(tok, attached, served, (messages,), keywords)
        return served

    def warmup(self) -> dict[str, float]:
        """Builds the engine now, unless the process has it already.

        Returns:
            Seconds spent when it was built: `to_str` (serialising the backend, GIL held), `hash`, `build` (everything
            else, GIL free), of which `parse` is the `tokenizers` crate's and `tables` the fast encoder's, at the same
            time where there are two threads; and `table_bytes`, the memory of those tables, 0 without a fast encoder.
            Empty if this tokenizer is left to the reference: the next call counts why.
        """
        backend = path.engine(self._tok)
        if isinstance(backend, Reason):
            return {}
        backend.engine.prepare_lists()  # else the first list would pay for its table of ints
        if not backend.engine.stats()["nodes"]:  # an engine in use is warm, and its checkpoints are worth more
            # Else the first call would wait for all that is not in memory yet: a long text asks for most of the
            # tables, on all threads, and a short one goes the way of a usual call.
            root = attachment.root(None)
            text = backend.engine.familiar()
            for part in (text, text[-_USUAL:]):
                backend.engine.encode(part, root, 0).buffer()
                backend.engine.drop_namespace(root)
        return dict(backend.timings)

    def stats(self) -> dict[str, Any]:
        """What happened on this tokenizer so far.

        Returns:
            `calls` by path, `fallbacks` by reason, `tokens` kept and encoded, `verifications` by `oracle:result`,
            `quarantines` that began, `reuse`: how many texts with iterations of earlier renders were compared with
            whole renders of this tokenizer's templates, and how many differed, and `engine`: statistics of the engine,
            shared with other tokenizers of the same backend, what the id oracle checked included; `None` if there is
            no engine yet.
        """
        attached = Attachment.of(self._tok)
        backend = attached.current()
        return {
            **attached.counters.snapshot(),
            "reuse": attached.record.reuse(),
            "engine": None if backend is None else backend.stats(),
        }

    def divergences(self, *, contents: bool = False) -> list[dict[str, Any]]:
        """The last differences from transformers that verification found, oldest first.

        Args:
            contents: With messages, template, texts and ids, so that the result is a reproducer that `json.dumps` can
                save. Prompts are private: by default only where and how much.

        Returns:
            `kind` (`"text"`, `"ids"`, or `"reuse"`: not the text of our own whole render), `template` (a short hash),
            `shape` (the key in quarantine, if it is a shape that is), `first` (index of the first character or id that
            differs), `got_length` and `want_length` (None if transformers raised).
        """
        attached = Attachment.of(self._tok)
        found = attached.record.all()
        backend = attached.current()
        if backend is not None:
            found += backend.divergences()
        return [divergence.report(contents=contents) for divergence in found]

    def reset(self) -> None:
        """Forgets this tokenizer's checkpoints and counters and looks at its backend afresh."""
        Attachment.of(self._tok).reset()

    def __repr__(self) -> str:
        """Without contents."""
        return f"<turntrie of {type(self._tok).__name__} at {id(self._tok):#x}>"


def arguments(
    tools: list[Any] | None,
    documents: list[dict[str, Any]] | None,
    chat_template: str | None,
    add_generation_prompt: bool,
    template_kwargs: dict[str, Any],
) -> dict[str, Any]:
    """The keywords as a caller of `apply_chat_template` would give them: only what is not the default.

    Raises:
        TypeError: A keyword asks for another shape than one prompt's ids.
    """
    shape = _SHAPE.intersection(template_kwargs)
    if shape:
        raise TypeError(f"a prompt is always the ids of one conversation: {min(shape)} cannot be given")
    given: dict[str, Any] = {"tools": tools, "documents": documents, "chat_template": chat_template}
    if add_generation_prompt is not False:
        given["add_generation_prompt"] = add_generation_prompt
    return {name: value for name, value in given.items() if value is not None} | template_kwargs


def prompt(
    tok: Any,
    attached: Attachment,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Prompt | Reason:
    """The native prompt of a call, counted, or the reason why there is none."""
    call = path.read(tok, args, keywords)
    if isinstance(call, Reason):
        return call
    ids = path.ids(tok, attached, call)
    if isinstance(ids, Reason):
        return ids
    count(tok, attached, [ids.prompt], call.max_length)
    return Prompt(ids.prompt)


def reference_prompt(
    tok: Any, attached: Attachment, reason: Reason, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Prompt:
    """The reference's ids, whether it returns a list or a mapping.

    Raises:
        TypeError: A batch of conversations was given.
    """
    if reason == "call:batch":
        raise TypeError("a prompt is the ids of one conversation, not of a batch")
    result = ask_reference(tok, attached, reason, args, keywords)
    return Prompt(result["input_ids"] if isinstance(result, Mapping) else result, reason=str(reason))
