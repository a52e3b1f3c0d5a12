"""NeMo-RL and NeMo-Gym: prompts from request bodies, tokenization without a round trip, and the token bundle.

`apply_chat_template` and `render_prompt_token_ids` stand in for `_apply_chat_template` and `_render_prompt_token_ids`
of nemo_rl/models/generation/dynamo/token_wrapper.py. `render_messages` is `_render_messages_via_chat_template` of
NeMo-Gym's responses_api_models/vllm_model/app.py without `self`. `InProcessTokenize` answers what that file awaits from
the engine's `/tokenize`, from the tokenizer at hand. The bundle is `turntrie.adapters.token_bundle`, under its names.

Canonical: the ids are those of the whole conversation. Keeping sampled ids (`required_prefix_token_ids`) is refused
here by name, never ignored.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from turntrie.adapters._base import ChatTokenizer, Messages, call, ready
from turntrie.adapters.token_bundle import (
    REQUIRED_TOKEN_METADATA_FIELDS,
    TOKEN_METADATA_FIELDS,
    TokenBundle,
    TokenBundleError,
    attach,
    choice_logprobs,
    require_single_choice,
    resolve,
    response_token_ids,
    strip,
)

__all__ = [
    "REQUIRED_TOKEN_METADATA_FIELDS",
    "TOKENIZE_CHAT_FIELDS",
    "TOKEN_METADATA_FIELDS",
    "ChatTokenizer",
    "InProcessTokenize",
    "TokenBundle",
    "TokenBundleError",
    "apply_chat_template",
    "attach",
    "choice_logprobs",
    "render_messages",
    "render_prompt_token_ids",
    "require_single_choice",
    "resolve",
    "response_token_ids",
    "strip",
]

TOKENIZE_CHAT_FIELDS = (
    "model",
    "messages",
    "tools",
    "chat_template_kwargs",
    "mm_processor_kwargs",
    "required_prefix_token_ids",
)
"""What of a chat request decides its prompt, as NeMo-Gym sends it to `/tokenize`."""

_PROMPT_FIELDS = (
    *TOKENIZE_CHAT_FIELDS,
    # NeMo-Gym leaves these out and would get the ids of another prompt; a request that has them means them.
    *("add_generation_prompt", "continue_final_message", "chat_template", "documents"),
)


def apply_chat_template(
    *,
    tokenizer: Any,
    request_body: Mapping[str, Any],
    messages: list[Any],
    tokenizer_chat_template_kwargs: dict[str, Any] | None,
    exclude_tools_when_tool_choice_none: bool,
    add_generation_prompt: bool,
    tokenize: bool,
) -> Any:
    """The call of a request: a list of ids, or text.

    It is made through the tokenizer's class, as NeMo-RL makes it, with the same keywords; a `TypeError` for arguments
    that a template cannot take (`Can only get item pairs from a mapping.`) is transformers' own, so NeMo-RL's retry
    with parsed arguments works.

    Args:
        tokenizer: A tokenizer of transformers, or anything whose class takes the keywords given below.
        request_body: A chat completion request.
        messages: Its messages, without token metadata: see `strip`.
        tokenizer_chat_template_kwargs: Keywords for the template; the request's own win.
        exclude_tools_when_tool_choice_none: Leave the tools out if the request's `tool_choice` is `"none"`.
        add_generation_prompt: As for the tokenizer's method.
        tokenize: Ids or text.

    Raises:
        ValueError: Keywords for the template are not an object.
    """
    tools = request_body.get("tools")
    if exclude_tools_when_tool_choice_none and request_body.get("tool_choice") == "none":
        tools = None
    tok = ready(tokenizer)
    return type(tok).apply_chat_template(
        tok,
        messages,
        tools=tools,
        documents=request_body.get("documents"),
        chat_template=request_body.get("chat_template"),
        add_generation_prompt=add_generation_prompt,
        continue_final_message=bool(request_body.get("continue_final_message", False)),
        tokenize=tokenize,
        return_tensors=None,
        return_dict=False,
        **_template_kwargs(request_body, tokenizer_chat_template_kwargs),
    )


def render_prompt_token_ids(
    *,
    tokenizer: Any,
    request_body: Mapping[str, Any],
    messages: list[Any],
    tokenizer_chat_template_kwargs: dict[str, Any] | None,
    exclude_tools_when_tool_choice_none: bool,
    add_generation_prompt: bool,
) -> list[int]:
    """The ids of a request, as one list.

    Args:
        tokenizer: As for `apply_chat_template`, as is everything else.
        request_body: See there.
        messages: See there.
        tokenizer_chat_template_kwargs: See there.
        exclude_tools_when_tool_choice_none: See there.
        add_generation_prompt: See there.

    Raises:
        ValueError: The tokenizer returned something else than the ids of one prompt.
    """
    ids = apply_chat_template(
        tokenizer=tokenizer,
        request_body=request_body,
        messages=messages,
        tokenizer_chat_template_kwargs=tokenizer_chat_template_kwargs,
        exclude_tools_when_tool_choice_none=exclude_tools_when_tool_choice_none,
        add_generation_prompt=add_generation_prompt,
        tokenize=True,
    )
    if isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], list):
        ids = ids[0]  # a batch of one
    if not isinstance(ids, list) or (ids and isinstance(ids[0], list)):
        raise ValueError("expected chat template rendering to return one list of prompt token IDs")
    try:
        return ids if set(map(type, ids)) <= {int} else [int(id_) for id_ in ids]
    except (TypeError, ValueError) as error:
        raise ValueError("prompt token IDs must contain only integer token IDs.") from error


def render_messages(
    tokenizer: ChatTokenizer,
    body: Mapping[str, Any],
    chat_template_kwargs: dict[str, Any] | None = None,
) -> str:
    """The text of a request, for an engine that takes text.

    Args:
        tokenizer: A tokenizer of transformers, or anything that takes the keywords given below.
        body: A chat completion request. `metadata.chat_template_kwargs`, JSON text, goes over the server's keywords.
        chat_template_kwargs: The server's keywords for the template.

    Raises:
        ValueError: A content is neither text nor a list of text parts.
    """
    messages = body.get("messages") or []
    for message in messages:
        _require_text(message)
    metadata = body.get("metadata") or {}
    keywords = {**(chat_template_kwargs or {}), **json.loads(metadata.get("chat_template_kwargs") or "{}")}
    text: str = ready(tokenizer).apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, tools=body.get("tools") or None, **keywords
    )
    return text


class InProcessTokenize:
    """The engine's `/tokenize`, answered by a tokenizer in this process.

    In place of an HTTP client: `await client.create_tokenize(**body)` gives an object with `tokens`, their `count`,
    `max_model_len` and `token_strs`. The ids are those of transformers for the messages as they are, without token
    metadata. An engine's server may change messages before that (it parses arguments and joins text parts): say so with
    `normalize`, for example `turntrie.adapters.openai.chat_messages`.
    """

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        *,
        max_model_len: int | None = None,
        normalize: Callable[[Messages], Messages] | None = None,
    ) -> None:
        """Holds the tokenizer.

        Args:
            tokenizer: A tokenizer of transformers.
            max_model_len: What to report under that name.
            normalize: Applied to the messages of a request first.
        """
        self._tokenizer = tokenizer
        self._max_model_len = max_model_len
        self._normalize = normalize

    async def create_tokenize(self, **body: Any) -> dict[str, Any]:
        """As `tokenize`, on a thread of its own: rendering and encoding leave the event loop alone."""
        return await asyncio.to_thread(self.tokenize, body)

    def tokenize(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The ids of a chat request (`messages`) or of a text (`prompt`).

        Args:
            body: The fields of `TOKENIZE_CHAT_FIELDS`, `add_generation_prompt` (by default true),
                `continue_final_message` and `chat_template`; or `prompt` and `add_special_tokens` (by default true).

        Raises:
            ValueError: A field asks for what cannot be had here: `mm_processor_kwargs`, `required_prefix_token_ids`, or
                `return_token_strs`.
        """
        for field in ("mm_processor_kwargs", "required_prefix_token_ids", "return_token_strs"):
            if body.get(field):
                raise ValueError(f"`{field}` is not supported by tokenization in this process")
        ids = self._prompt(body) if "messages" not in body else self._chat(body)
        return {"count": len(ids), "max_model_len": self._max_model_len, "tokens": ids, "token_strs": None}

    def prompt_token_ids(self, body: Mapping[str, Any]) -> list[int]:
        """The ids of a chat request, from those of its fields that decide its prompt; for `resolve` and `attach`."""
        ids: list[int] = self.tokenize({field: body[field] for field in _PROMPT_FIELDS if field in body})["tokens"]
        return ids

    def _chat(self, body: Mapping[str, Any]) -> list[int]:
        messages = strip(body["messages"])
        if self._normalize is not None:
            messages = self._normalize(messages)
        keywords: dict[str, Any] = {
            "tools": body.get("tools"),
            "add_generation_prompt": body.get("add_generation_prompt", True),
        }
        for name in ("chat_template", "continue_final_message", "documents"):
            if body.get(name):
                keywords[name] = body[name]
        result = call(ready(self._tokenizer), messages, **keywords, **(body.get("chat_template_kwargs") or {}))
        ids = result.value
        return ids if isinstance(ids, list) else list(ids["input_ids"])

    def _prompt(self, body: Mapping[str, Any]) -> list[int]:
        if not isinstance(body.get("prompt"), str):
            raise ValueError("`prompt` must be a text, or `messages` a conversation")  # noqa: TRY004  # a bad request
        tok: Any = self._tokenizer
        return list(tok.encode(body["prompt"], add_special_tokens=body.get("add_special_tokens", True)))


def _template_kwargs(body: Mapping[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    """The server's keywords for the template, the request's over them, and its reasoning effort over both."""
    keywords: dict[str, Any] = {}
    if given is not None:
        if not isinstance(given, dict):
            raise ValueError("tokenizer chat_template_kwargs must be a JSON object.")
        keywords.update(given)
    own = body.get("chat_template_kwargs")
    if own is not None:
        if not isinstance(own, dict):
            raise ValueError("chat_template_kwargs must be a JSON object.")
        keywords.update(own)
    if "reasoning_effort" in body:
        keywords["reasoning_effort"] = body["reasoning_effort"]
    return keywords


def _require_text(message: Mapping[str, Any]) -> None:
    content, role = message.get("content"), message.get("role")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise ValueError(  # noqa: TRY004  # NeMo-Gym's error
            "use_completions_api=true requires string or text-block-list content; "
            f"got {type(content).__name__} for role={role!r}."
        )
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        if not isinstance(part, Mapping) or kind not in ("text", "input_text"):
            raise ValueError(
                f"use_completions_api=true only accepts text content blocks; got block type {kind!r} for role={role!r}."
            )
