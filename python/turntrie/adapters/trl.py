"""TRL: the prompt ids of its asynchronous rollouts, the ids of tool results, and its check of a chat template.

`prompt_ids` is the call that `_generate_one` of trl/experimental/async_grpo/async_rollout_worker.py makes each turn,
`get_tool_suffix_ids` its `_get_tool_suffix_ids` (and that of the GRPO trainer) without `self`, and
`is_chat_template_prefix_preserving` the function of that name in trl/chat_template_utils.py.

TRL hands tools over as Python functions, which transformers' own code makes schemas of in each call.
"""

from typing import Any

from turntrie.adapters._base import ChatTokenizer, Message, Messages, StoppingTokenizer, ready

__all__ = [
    "ChatTokenizer",
    "StoppingTokenizer",
    "get_tool_suffix_ids",
    "is_chat_template_prefix_preserving",
    "prompt_ids",
]


def prompt_ids(
    tokenizer: ChatTokenizer,
    messages: Messages,
    *,
    tools: list[Any] | None = None,
    chat_template: str | None = None,
    chat_template_kwargs: dict[str, Any] | None = None,
) -> list[int]:
    """The ids of a conversation with its generation prompt.

    Args:
        tokenizer: A tokenizer of transformers, or anything that takes the keywords given below.
        messages: The conversation.
        tools: Functions or schemas. An empty list counts as none, as in TRL.
        chat_template: TRL's training template, or the tokenizer's own.
        chat_template_kwargs: Keywords for the template.
    """
    ids: list[int] = ready(tokenizer).apply_chat_template(
        messages,
        return_dict=False,
        add_generation_prompt=True,
        tools=tools or None,
        chat_template=chat_template,
        **(chat_template_kwargs or {}),
    )
    return ids


def get_tool_suffix_ids(
    tokenizer: StoppingTokenizer,
    tool_messages: Messages,
    *,
    chat_template: str | None = None,
    chat_template_kwargs: dict[str, Any] | None = None,
) -> list[int]:
    """The ids that tool results add behind an assistant's turn that ended with the end-of-text token.

    They are found as TRL finds them: the results are rendered behind a made-up question and call, and what is rendered
    without them is cut off, up to its last end-of-text token.

    Args:
        tokenizer: A tokenizer of transformers, or anything that takes the keywords given below.
        tool_messages: The results; the first one's `name` is that of the made-up call.
        chat_template: TRL's training template, or the tokenizer's own.
        chat_template_kwargs: Keywords for the template.

    Raises:
        ValueError: The template renders the call differently once results follow.
    """
    tok = ready(tokenizer)
    call = [{"type": "function", "function": {"name": tool_messages[0]["name"], "arguments": {}}}]
    made_up: Messages = [
        {"role": "user", "content": "dummy"},
        {"role": "assistant", "content": "", "tool_calls": call},
    ]

    def ids(messages: Messages, *, prompt: bool) -> list[int]:
        rendered: list[int] = tok.apply_chat_template(
            messages,
            add_generation_prompt=prompt,
            tokenize=True,
            chat_template=chat_template,
            return_dict=False,
            **(chat_template_kwargs or {}),
        )
        return rendered

    before, after = ids(made_up, prompt=False), ids(made_up + tool_messages, prompt=True)
    stop = tok.eos_token_id
    ends = [index for index, token in enumerate(before) if token == stop]
    if ends:  # templates that close a turn otherwise are not trimmed
        before = before[: ends[-1] + 1]
    if after[: len(before)] != before:
        raise ValueError("Unexpected tokenization: the EOS-trimmed prefix IDs are not a prefix of the full IDs.")
    return after[len(before) :]


def is_chat_template_prefix_preserving(tokenizer: Any) -> bool:
    """Whether a tool result leaves the ids of what is before it as they are.

    Args:
        tokenizer: A tokenizer of transformers, a processor, or anything that takes the keywords given below.
    """
    # A processor: its tokenizer lies in it. It takes contents as parts and returns a batch of one.
    processor = hasattr(tokenizer, "tokenizer")
    tok = tokenizer if processor else ready(tokenizer)
    try:
        before, after = _around_a_result(tok, {}, parts=processor)
    except TypeError:  # a template that takes arguments as JSON text only
        before, after = _around_a_result(tok, "{}", parts=processor)
    return after[: len(before)] == before


def _around_a_result(tok: Any, arguments: Any, *, parts: bool) -> tuple[list[int], list[int]]:
    def content(text: str) -> Any:
        return [{"type": "text", "text": text}] if parts else text

    call = [{"type": "function", "function": {"name": "dummy", "arguments": arguments}}]
    asked: Messages = [
        {"role": "user", "content": content("dummy")},
        {"role": "assistant", "content": content(""), "tool_calls": call},
    ]
    result: Message = {"role": "tool", "name": "dummy", "content": content("dummy")}
    before = tok.apply_chat_template(asked, tokenize=True, return_dict=False)
    after = tok.apply_chat_template([*asked, result], tokenize=True, return_dict=False, add_generation_prompt=True)
    return (before[0], after[0]) if parts else (before, after)
