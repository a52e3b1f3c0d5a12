"""Anthropic Messages bodies to template messages. Opt-in: nothing else in turntrie changes messages.

Blocks become what chat templates know: text becomes content, thinking becomes `reasoning_content`, a tool's use becomes
a call, and each result a message of the role `tool`, in the order in which they stand. The input is never changed.
"""

from collections.abc import Mapping
from typing import Any, Literal

from turntrie.adapters import _contents
from turntrie.adapters._base import Message, Messages
from turntrie.adapters._contents import Arguments, Images

__all__ = ["Arguments", "Images", "messages", "tools"]

System = Literal["keep", "user"]
"""What becomes of a system message amid others: kept, or turned into a user's."""


def messages(
    body: Mapping[str, Any],
    *,
    arguments: Arguments = "dict",
    images: Images = "refuse",
    ids: bool = True,
    system: System = "keep",
) -> Messages:
    """A Messages body as a chat template takes it.

    Args:
        body: A request: `messages` and maybe `system`.
        arguments: How the arguments of calls are spelled. On this wire they are objects.
        images: What becomes of an image or a document.
        ids: Keep the ids of calls.
        system: What becomes of a message of the role `system` after the first one.

    Raises:
        ValueError: There is a block of another kind; the text names it.
    """
    made: Messages = []
    if body.get("system"):
        made.append({"role": "system", "content": _contents.text(body["system"], images, place="system", joint="\n")})
    for index, message in enumerate(body.get("messages") or ()):
        place = f"messages[{index}].content"
        role, content = message.get("role"), message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        if role == "assistant":
            made.append(_answer(blocks, place, arguments, images, ids=ids))
        elif role == "user":
            made += _question(blocks, place, images, ids=ids)
        elif role == "system":
            text = _contents.text(blocks, images, place=place, joint="\n")
            made.append({"role": "user" if made and system == "user" else "system", "content": text})
        else:
            raise ValueError(f"messages[{index}] has the role {role!r}")
    return made


def _answer(blocks: list[Any], place: str, spelling: Arguments, images: Images, *, ids: bool) -> Message:
    said, thought, calls = [], [], []
    for index, block in enumerate(blocks):
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "thinking":
            thought.append(str(block.get("thinking") or ""))
        elif kind == "redacted_thinking":
            continue  # encrypted: there is nothing that a template could show
        elif kind == "tool_use":
            calls.append(_call(block, f"{place}[{index}]", spelling, ids=ids))
        else:
            said.append(_contents.text([block], images, place=f"{place}[{index}]"))
    made: Message = {"role": "assistant", "content": "".join(said)}
    if any(thought):
        made["reasoning_content"] = "".join(thought)
    if calls:
        made["tool_calls"] = calls
    return made


def _call(block: Mapping[str, Any], place: str, spelling: Arguments, *, ids: bool) -> Message:
    name = block.get("name")
    if not isinstance(name, str):
        raise ValueError(f"{place} has no name")  # noqa: TRY004  # a bad body is a bad value
    made: Message = {"id": block["id"]} if ids and isinstance(block.get("id"), str) else {}
    given = block.get("input")
    function = {"name": name, "arguments": _contents.arguments({} if given is None else given, spelling)}
    return {**made, "type": "function", "function": function}


def _question(blocks: list[Any], place: str, images: Images, *, ids: bool) -> Messages:
    """Results as messages of their own; what is said between them, joined, as the user's."""
    made: Messages = []
    said: list[str] = []

    def end() -> None:
        if said:
            made.append({"role": "user", "content": "\n".join(said)})
            said.clear()

    for index, block in enumerate(blocks):
        spot = f"{place}[{index}]"
        if not (isinstance(block, Mapping) and block.get("type") == "tool_result"):
            said.append(_contents.text([block], images, place=spot))
            continue
        end()
        text = _contents.text(block.get("content"), images, place=f"{spot}.content", joint="\n")
        result: Message = {"role": "tool", "content": text}
        if ids and isinstance(block.get("tool_use_id"), str):
            result["tool_call_id"] = block["tool_use_id"]
        made.append(result)
    end()
    return made


def tools(given: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """Tools of a Messages body as a chat template takes them: `input_schema` becomes `parameters`.

    Raises:
        ValueError: A tool has no `input_schema`: it is one that the provider runs. The text names it.
    """
    if not given:
        return None
    made = []
    for index, tool in enumerate(given):
        if not isinstance(tool.get("input_schema"), Mapping) or not isinstance(tool.get("name"), str):
            raise ValueError(f"tools[{index}] has no name with an input_schema")  # noqa: TRY004  # a bad body
        made.append(
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool.get("description", ""),
                    "parameters": tool["input_schema"],
                },
            }
        )
    return made
