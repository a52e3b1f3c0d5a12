"""Generates a coding agent's conversation: one system prompt, tools, and turns of calls and results.

A turn is one answer of the model. Most answers think, say a line and call one or two tools, whose results follow;
every few turns the work is done, the answer is text alone, and the user asks for the next thing. The chat template of
the demo drops the reasoning of answers before the last question, as those of most reasoning models do, so each new
question rewrites history: the case that makes "append the new messages" wrong and that turntrie has to get right.

Messages are in the OpenAI format, with `arguments` as JSON text and the reasoning in `reasoning_content`.
"""

import json
from typing import Any, NamedTuple

from turntrie.demo.lexicon import SCRIPTS
from turntrie.demo.writer import Writer

_SYSTEM = """You are a coding agent. You work in one repository, with the tools below, until the task is done.

Read before you change. Keep every change small. Run the tests after each change, and say what you did in one line.
Never guess what a file contains: open it. If a test fails, find out why before you touch anything else."""


class Conversation(NamedTuple):
    """Messages and the tools they call, in the OpenAI format."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


def _tool(name: str, description: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """One tool's declaration; every property is required."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def tools() -> list[dict[str, Any]]:
    """The tools of the agent."""
    text, number = {"type": "string"}, {"type": "integer"}
    return [
        _tool("run", "Run a command in the repository's root and return what it prints.", command=text, timeout=number),
        _tool("read_file", "Return the lines of a file, with their numbers.", path=text, first=number, last=number),
        _tool("edit_file", "Replace one passage of a file by another.", path=text, old=text, new=text),
        _tool("search", "Search all files for a pattern.", pattern=text, paths={"type": "array", "items": text}),
    ]


def _call(writer: Writer, number: int) -> dict[str, Any]:
    """One tool call, its arguments as JSON text."""
    name = writer.pick(("run", "run", "read_file", "read_file", "edit_file", "search"))
    arguments: dict[str, Any]
    if name == "run":
        arguments = {
            "command": f"python -m pytest {writer.path()} -k '{writer.name()}' 2>&1 | tail -40",
            "timeout": 120,
        }
    elif name == "read_file":
        first = writer.between(1, 600)
        arguments = {"path": writer.path(), "first": first, "last": first + writer.between(20, 90)}
    elif name == "edit_file":
        arguments = {
            "path": writer.path(),
            "old": writer.python(writer.between(2, 5)),
            "new": writer.python(writer.between(3, 8)),
        }
    else:
        arguments = {
            "pattern": rf"\b{writer.name()}\(.*\)",
            "paths": [writer.path() for _ in range(writer.between(0, 3))],
        }
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{number:05}", "type": "function", "function": function}


def _question(writer: Writer) -> str:
    """What the user asks for next."""
    parts = [writer.paragraph(writer.between(1, 3))]
    if writer.chance(0.4):
        parts.append(f"```\n{writer.log(writer.between(3, 8))}\n```")
    if writer.chance(0.4):
        parts.append(writer.pick(SCRIPTS))
    return "\n\n".join(parts)


def conversation(turns: int = 60, seed: int = 1) -> Conversation:
    """Generates a conversation.

    Args:
        turns: How many answers of the model it has. The last message is an answer.
        seed: The same seed and number of turns give the same conversation; more turns extend it.

    Returns:
        The messages and the tools.
    """
    writer = Writer(seed)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": _question(writer)},
    ]
    calls = 0
    until_question = writer.between(4, 9)
    for turn in range(turns):
        answer: dict[str, Any] = {"role": "assistant", "content": writer.sentence() if writer.chance(0.7) else ""}
        if writer.chance(0.6):
            answer["reasoning_content"] = writer.paragraph(writer.between(1, 6))
        messages.append(answer)
        until_question -= 1
        if until_question == 0:
            answer["content"] = writer.paragraph(writer.between(2, 5)) + f"\n\n```python\n{writer.python(4)}```"
            question = _question(writer)
            until_question = writer.between(4, 9)
            if turn < turns - 1:
                messages.append({"role": "user", "content": question})
            continue
        answer["tool_calls"] = [_call(writer, calls + i) for i in range(2 if writer.chance(0.2) else 1)]
        calls += len(answer["tool_calls"])
        results = [
            {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": writer.output()}
            for call in answer["tool_calls"]
        ]
        if turn < turns - 1:
            messages += results
    return Conversation(messages, tools())
