"""Recorded conversations: JSON Lines, plain or xz, one conversation an object with `messages` and, maybe, `tools`.

The format is OpenAI's: `arguments` of a tool call are JSON text. Some chat templates want them parsed and some want
them as they are, and nothing but trying tells which, so a recording can be had in both spellings.
"""

import copy
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from turntrie.cli.errors import UsageError, one_line

Arguments = Literal["dict", "str"]
"""How the arguments of tool calls are passed: parsed, or as JSON text."""


class Recording(NamedTuple):
    """One conversation."""

    name: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None

    def spelled(self, arguments: Arguments) -> "Recording":
        """A copy with the arguments of every tool call in this spelling; what does not parse to a dict stays."""
        messages = copy.deepcopy(self.messages)
        for message in messages:
            for call in message.get("tool_calls") or ():
                function = call.get("function", call)
                function["arguments"] = _spell(function.get("arguments"), arguments)
        return self._replace(messages=messages)

    def first(self, turns: int | None) -> "Recording":
        """The conversation up to and including its n-th answer; all of it for None."""
        if turns is None:
            return self
        answers = [i for i, message in enumerate(self.messages) if message["role"] == "assistant"]
        return self if len(answers) <= turns else self._replace(messages=self.messages[: answers[turns - 1] + 1])

    def asks(self) -> list[int]:
        """How many messages the model had before it each time it was asked for an answer.

        That is before every assistant message, and at the end if the last message is not the model's own.
        """
        ends = [i for i, message in enumerate(self.messages) if message["role"] == "assistant"]
        if self.messages and self.messages[-1]["role"] != "assistant":
            ends.append(len(self.messages))
        return [end for end in ends if end > 0]


def _spell(value: Any, arguments: Arguments) -> Any:
    """One call's arguments in the spelling asked for."""
    if arguments == "str":
        return value if isinstance(value, str) or value is None else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return parsed if isinstance(parsed, dict) else value


def read(path: Path) -> Iterator[Recording]:
    """Yields the conversations of a file, in order.

    Raises:
        UsageError: The file cannot be read, or a line of it is not a conversation. The text names the line.
    """
    number = 0
    try:
        with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _recording(line, f"{path}:{number}", number)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or one_line(error)}") from error
    except (lzma.LZMAError, EOFError) as error:
        raise UsageError(f"{path}: not a complete xz file: {one_line(error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text after line {number}: {one_line(error)}") from error


def _recording(line: str, place: str, number: int) -> Recording:
    """One line, checked as far as a replay depends on it."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place}: not valid JSON: {one_line(error)}") from error
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise UsageError(f"{place}: expected an object with a list 'messages'")
    for index, message in enumerate(value["messages"]):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise UsageError(f"{place}: message {index} is not an object with a text 'role'")
        calls = message.get("tool_calls")
        if not isinstance(calls, list | None) or not all(
            isinstance(call, dict) and isinstance(call.get("function", call), dict) for call in calls or ()
        ):
            raise UsageError(f"{place}: 'tool_calls' of message {index} is not a list of calls")
    tools = value.get("tools")
    if not isinstance(tools, list | None):
        raise UsageError(f"{place}: 'tools' is neither a list nor null")
    return Recording(str(value.get("id", f"line {number}")), value["messages"], tools)
