"""Messages, tools and lists recognised from earlier calls: what has changed since is always noticed.

Every change is made to the very objects that an earlier call was given, and the text and the ids afterwards are those
of the reference.
"""

import copy
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

import toys
from toys import LONG, MESSAGES, TOOLS

CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "function": {"name": "rm", "arguments": {"paths": ["a.py", "b.py"], "deep": {"n": [1, [2]]}}}},
]}  # fmt: skip


def conversation() -> list[dict[str, Any]]:
    return copy.deepcopy([*LONG, CALL, {"role": "tool", "content": "done"}, *MESSAGES])


def same(tok: Any, plain: Any, messages: list[dict[str, Any]], **keywords: Any) -> list[int]:
    ids = tok.apply_chat_template(messages, return_dict=False, **keywords)
    assert ids == plain.apply_chat_template(messages, return_dict=False, **keywords)
    text = tok.apply_chat_template(messages, tokenize=False, **keywords)
    assert text == plain.apply_chat_template(messages, tokenize=False, **keywords)
    assert type(ids) is list
    return ids


def arguments(messages: list[dict[str, Any]]) -> Any:
    return messages[len(LONG)]["tool_calls"][0]["function"]["arguments"]


def reorder(messages: list[dict[str, Any]]) -> None:
    paths = arguments(messages).pop("paths")
    arguments(messages)["paths"] = paths


CHANGES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "a text": lambda m: m[1].update(content="something else"),
    "a text to none": lambda m: m[1].update(content=""),
    "a role": lambda m: m[-1].update(role="assistant"),
    "a key more": lambda m: m[1].update(tool_calls=copy.deepcopy(CALL["tool_calls"])),
    "a key less": lambda m: m[len(LONG)].pop("tool_calls"),
    "an item of a nested list": lambda m: arguments(m)["paths"].append("c.py"),
    "an item replaced": lambda m: arguments(m)["paths"].__setitem__(0, "z.py"),
    "an item of a list in a list": lambda m: arguments(m)["deep"]["n"][1].append(3),
    "an item moved from one list to another": lambda m: arguments(m)["deep"]["n"].append(
        arguments(m)["deep"]["n"][1].pop()
    ),
    "the order of keys": reorder,
    "a number for a flag": lambda m: arguments(m)["deep"].update(n=True),
    "a message in the middle": lambda m: m.insert(3, {"role": "user", "content": "in between"}),
    "a message less": lambda m: m.pop(1),
    "two messages exchanged": lambda m: m.__setitem__(slice(0, 2), m[1::-1]),
    "a message twice": lambda m: m.insert(1, m[0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_place_is_noticed(plain: Any, change: str) -> None:
    tok = toys.wrapped()
    messages = conversation()
    before = same(tok, plain, messages)
    same(tok, plain, messages)
    CHANGES[change](messages)
    assert same(tok, plain, messages) != before
    same(tok, plain, messages[:-1])
    assert toys.calls(tok)["reference"] == 0


def test_tools_changed_in_place_are_noticed(plain: Any) -> None:
    tok = toys.wrapped()
    tools = copy.deepcopy(TOOLS)
    before = same(tok, plain, MESSAGES, tools=tools)
    tools[0]["function"]["parameters"]["properties"]["path"] = {"type": "string"}
    assert same(tok, plain, MESSAGES, tools=tools) != before
    tools.append(copy.deepcopy(tools[0]))
    same(tok, plain, MESSAGES, tools=tools, add_generation_prompt=True)
    assert toys.calls(tok)["reference"] == 0


def test_objects_at_the_address_of_earlier_ones(plain: Any) -> None:
    """Messages that live for one call only: their addresses are used again by other ones."""
    tok = toys.wrapped()
    rng = random.Random(5)
    for turn in range(60):
        length = rng.randrange(1, 9)
        messages = [
            {"role": ("user", "assistant")[i % 2], "content": "".join(rng.choices("ab \n", k=length))}
            for i in range(1 + turn % 7)
        ]
        same(tok, plain, messages)
        del messages
    assert toys.calls(tok)["reference"] == 0


def test_interleaved_conversations(plain: Any) -> None:
    tok = toys.wrapped()
    rng = random.Random(7)
    open_: list[list[dict[str, Any]]] = [conversation() for _ in range(20)]
    shared = conversation()
    open_ += [[*shared] for _ in range(6)]
    for turn in range(120):
        messages = rng.choice(open_)
        if rng.random() < 0.2:
            del messages[rng.randrange(1, len(messages)) :]
        messages.append({"role": rng.choice(["user", "assistant"]), "content": f"turn {turn}"})
        same(tok, plain, messages)
    assert toys.calls(tok)["reference"] == 0


def test_lists_are_fresh(plain: Any) -> None:
    tok = toys.wrapped()
    messages = conversation()
    want = plain.apply_chat_template(messages, return_dict=False)
    for spoil in (list.clear, list.reverse, lambda ids: ids.append(-1), lambda ids: ids.__setitem__(0, None)):
        got = tok.apply_chat_template(messages, return_dict=False)
        assert got == want
        spoil(got)
    prompt = tok.turntrie.prompt(messages)
    assert prompt.tolist() == want
    assert prompt.tolist() is not prompt.tolist()


def test_what_is_remembered_can_be_forgotten(plain: Any) -> None:
    tok = toys.wrapped()
    messages = conversation()
    counts = [sys.getrefcount(messages[0])]
    same(tok, plain, messages)
    counts.append(sys.getrefcount(messages[0]))
    tok.turntrie.reset()
    counts.append(sys.getrefcount(messages[0]))
    assert counts[1] > counts[0] == counts[2]
    same(tok, plain, messages)
