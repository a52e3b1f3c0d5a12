"""Shapes of turns: of how many messages the text is located, and how much of the old ones is rendered again.

What a template does with a conversation depends on what is in it, so this is tried: for each shape a small
conversation grows turn by turn, through the same calls that users make. The contents are made up and of no matter.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from turntrie.check.scenarios import TOOLS

Message = dict[str, Any]

ROUNDS = 6
"""Questions, or calls of tools, in each conversation."""


class Turns(NamedTuple):
    """What was seen of one shape of turns, at the last one."""

    shape: str
    messages: int
    located: int | None
    """Messages of which some text is located; None if no message's text can be."""
    missing: list[str]
    """The roles of the others."""
    taken_over: int
    """Iterations of loops over messages that were taken over from the turn before."""
    rendered: int
    """Those that were rendered."""
    reason: str | None
    """Why transformers served the turn; `refused` if the template refuses the shape."""

    def document(self) -> dict[str, Any]:
        """The facts as a value for JSON."""
        return self._asdict()

    def text(self) -> str:
        """The facts for people."""
        if self.reason is not None:
            return "the template refuses it" if self.reason == "refused" else f"by transformers: {self.reason}"
        if self.located is None:
            located = "no message is located"
        else:
            others = f" (not: {', '.join(sorted(set(self.missing)))})" if self.missing else ""
            located = f"{self.located} of {self.messages} messages located{others}"
        return f"{located}; the last turn rendered {self.rendered} of {self.rendered + self.taken_over} iterations"


def turns(tok: Any) -> list[Turns]:
    """Each shape on a wrapped tokenizer. Its statistics count these calls."""
    return [_of_shape(tok, shape) for shape in _SHAPES]


_SHAPES = ("plain", "system message", "calls", "parallel calls", "reasoning")


def _of_shape(tok: Any, shape: str) -> Turns:
    found = Turns(shape, 0, None, [], 0, 0, "refused")
    # Templates take arguments of calls as a dict or as JSON, and other roles in other orders: the first that works.
    for messages in _spellings(shape):
        found = _grown(tok, shape, messages)
        if found.reason is None:
            break
    return found


def _grown(tok: Any, shape: str, messages: list[Message]) -> Turns:
    tools = TOOLS if "call" in shape else None
    *earlier, last = [at + 1 for at, message in enumerate(messages) if message["role"] in ("user", "tool")]
    try:
        for end in earlier:
            tok.turntrie.prompt(copy.deepcopy(messages[:end]), tools=tools, add_generation_prompt=True)
        prompt = tok.turntrie.prompt(copy.deepcopy(messages[:last]), tools=tools, add_generation_prompt=True)
    except Exception:  # noqa: BLE001  # what the template raises is the answer
        return Turns(shape, last, None, [], 0, 0, "refused")
    spans = prompt.spans if prompt.reason is None else None
    located = {span.message for span in spans or ()}
    missing = [message["role"] for at, message in enumerate(messages[:last]) if at not in located]
    taken_over, rendered = prompt.iterations
    known = None if spans is None else len(located)
    return Turns(shape, last, known, missing, taken_over, rendered, prompt.reason)


def _spellings(shape: str) -> Iterator[list[Message]]:
    messages = list(_conversation(shape))
    yield messages
    if "call" in shape:
        yield [_as_json(message) for message in messages]


def _as_json(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls:
        return message
    functions = [{**call["function"], "arguments": json.dumps(call["function"]["arguments"])} for call in calls]
    spelled = [{**call, "function": function} for call, function in zip(calls, functions, strict=True)]
    return {**message, "tool_calls": spelled}


def _conversation(shape: str) -> Iterator[Message]:
    if shape == "system message":
        yield {"role": "system", "content": "Answer in one sentence."}
    for number in range(ROUNDS):
        if "call" not in shape or number == 0:
            yield {"role": "user", "content": f"Question {number}: what comes next?"}
        answer: Message = {"role": "assistant", "content": f"Answer {number}."}
        if shape == "reasoning":
            answer["reasoning_content"] = f"Thoughts about question {number}."
        if "call" not in shape:
            yield answer
            continue
        # Ids of nine letters and digits, as some templates want them.
        calls = [(f"call{number:03}{at:02}", at) for at in range(1 + (shape == "parallel calls"))]
        function = TOOLS[0]["function"]["name"]
        answer["tool_calls"] = [
            {"id": name, "type": "function", "function": {"name": function, "arguments": {"city": f"City {at}"}}}
            for name, at in calls
        ]
        yield {**answer, "content": ""}
        for name, at in calls:
            yield {"role": "tool", "tool_call_id": name, "name": function, "content": f"Result {number}.{at}"}
    if "call" not in shape:
        yield {"role": "user", "content": "The last question?"}
