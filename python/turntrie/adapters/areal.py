"""AReaL: the one function through which it tokenizes, and a renderer of prompts in the shape of its incremental one.

`apply_chat_template` stands in for the function of that name in areal/utils/hf_utils.py; all of AReaL's own calls go
through it. `IncrementalPromptRenderer` has the methods of the class proposed in its pull request 1663. It needs neither
its probes nor its guards: nothing is appended to old ids. The whole conversation is rendered, natively, and what was
encoded before is recognised by its text, so superseded reasoning, changed tools and edited history give other text and
are encoded again. The base ids of a turn are kept for the caller, who stores them, and as the place where the next turn
finds the messages they stand for.
"""

from collections.abc import Iterable
from typing import Any, Literal, Self, overload

from turntrie.adapters._base import ChatTokenizer, Messages, call, ready, transformers_major

__all__ = ["BaseTokenIds", "ChatTokenizer", "IncrementalPromptRenderer", "apply_chat_template"]


@overload
def apply_chat_template(
    tokenizer: ChatTokenizer, messages: Messages, *, tokenize: Literal[True] = ..., **kwargs: Any
) -> list[int]: ...
@overload
def apply_chat_template(
    tokenizer: ChatTokenizer, messages: Messages, *, tokenize: Literal[False], **kwargs: Any
) -> str: ...
@overload
def apply_chat_template(
    tokenizer: ChatTokenizer, messages: Messages, *, tokenize: bool, **kwargs: Any
) -> list[int] | str: ...
def apply_chat_template(tokenizer: ChatTokenizer, messages: Messages, *, tokenize: bool = True, **kwargs: Any) -> Any:
    """A list of ids under both majors of transformers, or text.

    Args:
        tokenizer: A tokenizer of transformers, or anything that behaves as the installed major does: under 5, a
            tokenized result has `input_ids`; under 4, it is returned as it is.
        messages: The conversation.
        tokenize: Ids or text.
        **kwargs: As for the tokenizer's `apply_chat_template`.
    """
    result = call(ready(tokenizer), messages, tokenize=tokenize, **kwargs)
    if result.listed or not tokenize or transformers_major() < 5:  # noqa: PLR2004  # from 5 on, a mapping by default
        return result.value
    return list(result.value["input_ids"])


class BaseTokenIds(list[int]):
    """The ids of a turn's messages without a generation prompt, with the messages they stand for.

    A list in every respect; slices and sums of it are plain lists, which stand for nothing any more.
    """

    __slots__ = ("messages",)

    messages: Messages
    """The messages, in a list of its own; the dicts are the caller's."""

    @classmethod
    def of(cls, ids: Iterable[int], messages: Messages) -> Self:
        """The ids, with a copy of the list of messages."""
        made = cls(ids)
        made.messages = list(messages)
        return made


class IncrementalPromptRenderer:
    """Prompts of growing conversations. All state is in the tokenizer and in the base ids that the caller holds."""

    @classmethod
    def is_supported(
        cls,
        tokenizer: Any,
        tools: Iterable[Any] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
    ) -> bool:
        """Whether there is a chat template: nothing else is asked of a tokenizer."""
        del tools, chat_template_kwargs
        return bool(getattr(tokenizer, "chat_template", None))

    @classmethod
    def is_history_safe(
        cls,
        tokenizer: Any,
        messages: Iterable[dict[str, Any]] | None,
        tools: Iterable[Any] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
    ) -> bool:
        """Always: a history that the template rewrites is a text that shares less with the one before."""
        del tokenizer, messages, tools, chat_template_kwargs
        return True

    @classmethod
    def render_initial(
        cls,
        tokenizer: ChatTokenizer,
        messages: Messages,
        tools: Iterable[Any] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
    ) -> tuple[list[int], list[int]]:
        """The ids of a conversation with its generation prompt, and without.

        Returns:
            Prompt ids, and base ids for the next turn's `render_incremental`.
        """
        keywords = chat_template_kwargs or {}
        if tools is not None and not isinstance(tools, list):
            tools = list(tools)  # rendered twice; an iterator would be empty the second time
        prompt = apply_chat_template(tokenizer, messages, tools=tools, add_generation_prompt=True, **keywords)
        base = apply_chat_template(tokenizer, messages, tools=tools, add_generation_prompt=False, **keywords)
        return prompt, BaseTokenIds.of(base, messages)

    @classmethod
    def render_incremental(  # noqa: PLR0917  # the signature is AReaL's
        cls,
        tokenizer: ChatTokenizer,
        parent_base_token_ids: list[int],
        delta_messages: Messages,
        tools: Iterable[Any] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        parent_tools_signature: str | None = "",
        parent_messages: Messages | None = None,
    ) -> tuple[list[int], list[int]] | None:
        """The ids of a conversation after more messages: those of its full render, whatever has changed.

        Args:
            tokenizer: The tokenizer.
            parent_base_token_ids: The base ids of the turn before.
            delta_messages: What came since.
            tools: The tools of this turn, maybe others than before.
            chat_template_kwargs: Keywords for the template.
            parent_tools_signature: Not needed: other tools are other text.
            parent_messages: The messages before the delta; by default those that the base ids stand for.

        Returns:
            Prompt ids and base ids; `None` if there is nothing new, if it is not known which messages came before, or
            if rendering fails: the caller's full render then raises what there is to raise.
        """
        del parent_tools_signature
        if not delta_messages:
            return None
        if parent_messages is None:
            if not isinstance(parent_base_token_ids, BaseTokenIds):
                return None
            parent_messages = parent_base_token_ids.messages
        try:
            return cls.render_initial(tokenizer, [*parent_messages, *delta_messages], tools, chat_template_kwargs)
        except Exception:  # noqa: BLE001  # a template raises what it likes, and the contract is None
            return None

    @classmethod
    def render_concat_child_tokens(
        cls,
        tokenizer: Any,
        parent_output_messages: Messages,
        message_list: Messages,
        tools: Iterable[Any] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
    ) -> list[int] | None:
        """Always `None`, which sends `concat` mode to AReaL's own code: it keeps sampled ids, this class has none."""
        del tokenizer, parent_output_messages, message_list, tools, chat_template_kwargs
        return None  # a value that the caller looks at
