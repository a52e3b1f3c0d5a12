"""OpenAI bodies, Chat Completions and Responses, to template messages. Opt-in: nothing else changes messages.

Chat templates are written for messages that look like those of Chat Completions, but not quite: most want arguments
parsed, many fail on a content that is null or a list of parts, few know the role `developer`. The normalisers here make
such messages, and say what they cannot turn. The input is never changed.
"""

from collections.abc import Mapping
from typing import Any

from turntrie.adapters import _contents
from turntrie.adapters._base import Message, Messages
from turntrie.adapters._contents import Arguments, Images

__all__ = ["Arguments", "Images", "chat_messages", "responses_messages", "responses_tools"]


def chat_messages(
    messages: Messages,
    *,
    arguments: Arguments = "dict",
    images: Images = "refuse",
    ids: bool = True,
    developer: str = "system",
) -> Messages:
    """Messages of Chat Completions as a chat template takes them.

    Contents become texts, null ones empty. `reasoning` is spelled `reasoning_content`. Keys that a template cannot know
    (`index` of a call, `refusal`, `audio`, `annotations`, null values) are left out.

    Args:
        messages: `messages` of a request.
        arguments: How the arguments of calls are spelled.
        images: What becomes of an image.
        ids: Keep the ids of calls.
        developer: The role that `developer` becomes.

    Raises:
        ValueError: A message has a part that is not text, or a call that is not a function's; the text names it.
    """
    return [
        _chat_message(message, f"messages[{index}]", arguments, images, ids=ids, developer=developer)
        for index, message in enumerate(messages)
    ]


def _chat_message(
    message: Mapping[str, Any], place: str, spelling: Arguments, images: Images, *, ids: bool, developer: str
) -> Message:
    role = message.get("role")
    if not isinstance(role, str):
        raise ValueError(f"{place} has no role")  # noqa: TRY004  # a bad body is a bad value
    content = message.get("content")
    if content is None and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    made: Message = {
        "role": developer if role == "developer" else role,
        "content": _contents.text(content, images, place=f"{place}.content"),
    }
    if isinstance(message.get("name"), str):
        made["name"] = message["name"]
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str):
        made["reasoning_content"] = reasoning
    calls = message.get("tool_calls")
    if calls:
        made["tool_calls"] = [
            _chat_call(call, f"{place}.tool_calls[{index}]", spelling, ids=ids) for index, call in enumerate(calls)
        ]
    if ids and isinstance(message.get("tool_call_id"), str):
        made["tool_call_id"] = message["tool_call_id"]
    return made


def _chat_call(call: Mapping[str, Any], place: str, spelling: Arguments, *, ids: bool) -> Message:
    function = call.get("function")
    if call.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise ValueError(f"{place} is not a function's")
    return _call(call.get("id") if ids else None, function.get("name"), function.get("arguments"), place, spelling)


def _call(id_: Any, name: Any, arguments: Any, place: str, spelling: Arguments) -> Message:
    if not isinstance(name, str):
        raise ValueError(f"{place} has no name")  # noqa: TRY004  # a bad body is a bad value
    made: Message = {"id": id_} if isinstance(id_, str) else {}
    function = {"name": name, "arguments": _contents.arguments(arguments, spelling)}
    return {**made, "type": "function", "function": function}


def responses_messages(
    body: Mapping[str, Any],
    *,
    arguments: Arguments = "dict",
    images: Images = "refuse",
    ids: bool = True,
    developer: str = "system",
) -> Messages:
    """A Responses body as a chat template takes it.

    `instructions` is a first system message. `reasoning`, `message` and `function_call` items of one answer become one
    assistant's message; `function_call_output` items become tool messages.

    Args:
        body: A request: `input`, a text or a list of items, and maybe `instructions`.
        arguments: How the arguments of calls are spelled.
        images: What becomes of an image.
        ids: Keep the ids of calls.
        developer: The role that `developer` becomes.

    Raises:
        ValueError: `input` holds an item of another kind, or a part that is not text; the text names it.
    """
    made: Messages = []
    if body.get("instructions"):
        text = _contents.text(body["instructions"], images, place="instructions")
        made.append({"role": "system", "content": text})
    given = body.get("input")
    if isinstance(given, str):
        return [*made, {"role": "user", "content": given}]
    if not isinstance(given, list):
        raise ValueError(f"input is neither a text nor a list: {type(given).__name__}")  # noqa: TRY004  # a bad body
    answer = _Answer(made)
    for index, item in enumerate(given):
        place = f"input[{index}]"
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "reasoning":
            answer.reasoning(_reasoning(item, images, place))
        elif kind == "function_call":
            id_ = item.get("call_id") if ids else None
            answer.call(_call(id_, item.get("name"), item.get("arguments"), place, arguments))
        elif kind == "message" and item.get("role") == "assistant":
            answer.text(_contents.text(item.get("content"), images, place=f"{place}.content"))
        elif kind in ("message", "function_call_output"):
            answer.end()
            made.append(_other(item, kind, images, place, ids=ids, developer=developer))
        else:
            raise ValueError(f"{place} is an item of type {kind!r}, which is no message, call, result or reasoning")
    answer.end()
    return made


def _other(item: Mapping[str, Any], kind: str, images: Images, place: str, *, ids: bool, developer: str) -> Message:
    """A message that is not the model's."""
    if kind == "function_call_output":
        made: Message = {
            "role": "tool",
            "content": _contents.text(item.get("output"), images, place=f"{place}.output"),
        }
        if ids and isinstance(item.get("call_id"), str):
            made["tool_call_id"] = item["call_id"]
        return made
    role = item.get("role")
    if role not in ("user", "system", "developer"):
        raise ValueError(f"{place} has the role {role!r}")
    text = _contents.text(item.get("content"), images, place=f"{place}.content")
    return {"role": developer if role == "developer" else role, "content": text}


def _reasoning(item: Mapping[str, Any], images: Images, place: str) -> str:
    """What a reasoning item says: its content, or its summary. An encrypted one says nothing."""
    for key in ("content", "summary"):
        parts = item.get(key)
        if parts:
            plain = [
                {"type": "text", "text": part.get("text")} if isinstance(part, Mapping) else part for part in parts
            ]
            return _contents.text(plain, images, place=f"{place}.{key}", joint="\n")
    return ""


class _Answer:
    """Items of one answer, gathered into one message: text after text or after a call begins the next."""

    def __init__(self, made: Messages) -> None:
        self._made = made
        self._message: Message | None = None

    def _open(self) -> Message:
        if self._message is None:
            self._message = {"role": "assistant", "content": ""}
            self._made.append(self._message)
        return self._message

    def reasoning(self, text: str) -> None:
        if self._message is not None and (self._message["content"] or "tool_calls" in self._message):
            self.end()
        message = self._open()
        if text:
            message["reasoning_content"] = message.get("reasoning_content", "") + text

    def text(self, text: str) -> None:
        if self._message is not None and (self._message["content"] or "tool_calls" in self._message):
            self.end()
        self._open()["content"] = text

    def call(self, call: Message) -> None:
        self._open().setdefault("tool_calls", []).append(call)

    def end(self) -> None:
        self._message = None


def responses_tools(tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Tools of a Responses body as a chat template takes them: the function's fields under `function`.

    Raises:
        ValueError: A tool is not a function; the text names it.
    """
    if not tools:
        return None
    made = []
    for index, tool in enumerate(tools):
        if tool.get("type") != "function":
            raise ValueError(f"tools[{index}] is of type {tool.get('type')!r}, not a function")
        if isinstance(tool.get("function"), Mapping):
            made.append(tool)
            continue
        function = {key: value for key, value in tool.items() if key != "type" and value is not None}
        made.append({"type": "function", "function": function})
    return made
