"""Random walks of a conversation, rendered with and without taking iterations over from earlier renders.

A walk grows a conversation, mostly as a chat would, and now and then edits it, cuts it, branches off, repeats an
object, changes a message in place, or replaces everything by equal objects; tools and switches flip. After each step
the template is rendered whole and with what the steps before have left; reason and text must be equal. The whole render
is the oracle: what it is worth against transformers is asked elsewhere.

By hand, for as long as one likes: `python tests/python/reuse_walks.py --minutes 30 --seed 1 --templates FOLDER`.
"""

import argparse
import copy
import json
import random
import time
from pathlib import Path
from typing import Any, NamedTuple

from turntrie import _native

Message = dict[str, Any]

TEXTS = (
    "",
    "hi",
    "<think>\nreason\n</think>\n\nanswer",
    "<think>x</think>",
    "a</think>b",
    "  spaced \n",
    "<tool_response>x</tool_response>",
    "\n\nline\n",
    "é漢👩🏽‍💻",  # other scripts are the point
    "<|im_start|>user\n",
    '{"a": 1}',
    "</s>",
    # What the renderer itself puts where a loop was.
    "\ufdd0\0turntrie:loop\0\ufdd1",
)
TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
TOOLS: tuple[list[Message] | None, ...] = (None, [], [TOOL], [TOOL, TOOL])
LONGEST = 14
SPACE = 1


class Counts(NamedTuple):
    """What walks came to."""

    renders: int = 0
    texts: int = 0
    reused: int = 0
    rendered: int = 0

    def plus(self, whole: _native.Prompt, again: _native.Prompt) -> "Counts":
        """With one more pair of renders."""
        reused, rendered = again.iterations
        return Counts(
            self.renders + 1, self.texts + (whole.reason is None), self.reused + reused, self.rendered + rendered
        )


def anything(rng: random.Random) -> Message:
    """Any message, well-formed or not."""
    roles = ("user", "user", "assistant", "assistant", "tool", "system", "developer", "observation", "")
    text = rng.choice(TEXTS)
    message: Message = {"role": rng.choice(roles), "content": text}
    if rng.random() < 0.05:
        message["content"] = None
    elif rng.random() < 0.05:
        message["content"] = [{"type": "text", "text": text}]
    elif rng.random() < 0.03:
        del message["content"]
    if message["role"] == "assistant":
        if rng.random() < 0.4:
            message["reasoning_content"] = rng.choice(TEXTS)
        if rng.random() < 0.5:
            message["tool_calls"] = [called(rng, at) for at in range(rng.choice((1, 1, 2, 3)))]
    if message["role"] == "tool":
        message |= {"tool_call_id": "call00000", "name": "f"}
    return message


def called(rng: random.Random, at: int) -> Message:
    """One tool call."""
    arguments = rng.choice(({"a": 1}, {"b": [1, 2.5, None, True]}, '{"a": 1}', {}))
    return {"id": f"call{at:05}", "type": "function", "function": {"name": rng.choice("fgh"), "arguments": arguments}}


def following(rng: random.Random, last: Message | None) -> Message:
    """A message as a chat has it after `last`."""
    text = rng.choice(TEXTS)
    role = None if last is None else last.get("role")
    if role is None:
        return {"role": rng.choice(("system", "user")), "content": text}
    if role == "user" or (role == "tool" and rng.random() < 0.8):
        message: Message = {"role": "assistant", "content": text}
        if rng.random() < 0.3:
            message["reasoning_content"] = rng.choice(TEXTS)
        if rng.random() < 0.3:
            message["tool_calls"] = [called(rng, 0)]
        return message
    if last is not None and last.get("tool_calls"):
        return {"role": "tool", "content": text, "tool_call_id": "call00000", "name": "f"}
    return {"role": "user", "content": text}


def variables(rng: random.Random) -> dict[str, Any]:
    """Everything a template sees but the messages."""
    given: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "documents": None, "tools": rng.choice(TOOLS)}
    given["add_generation_prompt"] = rng.random() < 0.5
    for name in ("enable_thinking", "preserve_thinking", "clear_thinking", "keep_all_reasoning"):
        if rng.random() < 0.15:
            given[name] = rng.random() < 0.5
    return given


def grow(rng: random.Random, chat: list[Message]) -> None:
    """Appends a message, mostly one that follows."""
    chat.append(following(rng, chat[-1] if chat else None) if rng.random() < 0.8 else anything(rng))


def edit(rng: random.Random, chat: list[Message]) -> None:
    """Does to an old message what can be done to one."""
    at = rng.randrange(len(chat))
    kind = rng.choice(("replace", "change", "change", "insert", "delete", "repeat"))
    if kind == "replace":
        chat[at] = anything(rng)
    elif kind == "change":
        chat[at]["content"] = rng.choice(TEXTS)  # in place
    elif kind == "insert":
        chat.insert(at, anything(rng))
    elif kind == "delete":
        del chat[at]
    else:
        chat.append(chat[at])  # the same object again


def copied(rng: random.Random, chat: list[Message]) -> list[Message]:
    """The same conversation in other objects."""
    return copy.deepcopy(chat) if rng.random() < 0.5 else json.loads(json.dumps(chat))


def step(rng: random.Random, chat: list[Message], branches: list[list[Message]]) -> None:
    """Changes the conversation, as a chat would as a rule."""
    kind = rng.random()
    if kind < 0.6 or len(chat) < 2:
        grow(rng, chat)
    elif kind < 0.64:
        chat.pop()
    elif kind < 0.82:
        edit(rng, chat)
    elif kind < 0.89:
        chat[:] = copied(rng, chat)
    elif kind < 0.92:
        branches.append(list(chat))
    elif kind < 0.95 and branches:
        chat[:] = rng.choice(branches)
    else:
        chat[:] = [following(rng, None)]
    if len(chat) > LONGEST:
        del chat[: rng.randrange(1, LONGEST - 2)]


def walk(source: str, seed: str, steps: int, rules: int, fault: str | None = None) -> Counts:
    """Walks through one conversation; asserts that both renders agree after each step."""
    template = _native.Template(source) if fault is None else _native.Template.with_fault(source, fault)
    clock = dict.fromkeys(template.clock_formats, "2031")
    rng = random.Random(seed)
    chat: list[Message] = []
    branches: list[list[Message]] = []
    given = variables(rng)
    counts = Counts()
    for number in range(steps):
        step(rng, chat, branches)
        if rng.random() < 0.15:
            given = variables(rng)
        whole = template.render(chat, given, clock, rules)
        again = template.render(chat, given, clock, rules, SPACE)
        assert (again.reason, again.text) == (whole.reason, whole.text), (seed, number, chat, given)
        counts = counts.plus(whole, again)
    return counts


def main() -> None:
    """Walks until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--templates", type=Path, required=True)
    options = parser.parse_args()
    sources = {path.stem: path.read_text(encoding="utf-8") for path in sorted(options.templates.glob("*.jinja"))}
    compiled = {name: _native.Template(source) for name, source in sources.items()}
    planned = [name for name, template in compiled.items() if template.reason is None and template.loops[0]]
    total, rounds, end = Counts(), 0, time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        rounds += 1
        for name in planned:
            rules = rounds % 4  # with and without what each transformers does to messages
            counts = walk(sources[name], f"{options.seed} {rounds} {name}", options.steps, rules)
            total = Counts(*map(sum, zip(total, counts, strict=True)))
    print(f"{len(planned)} templates, {rounds} rounds: {total}; 0 different")  # noqa: T201  # its result


if __name__ == "__main__":
    main()
