"""The shapes of conversation that chat templates branch on.

A template decides by role, by the presence and type of fields, by the number of tool calls and by a
few switches. :func:`scenarios` enumerates combinations of those, each as one call of
``apply_chat_template``, and says where on each axis it lies, so that a report can count along the
axes. The contents are small, and odd where templates are fragile: blanks at the borders, quotes,
markup, non-ASCII text, ``<think>`` blocks. Nothing here knows a model family.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """One call of ``apply_chat_template``.

    Attributes:
        name: Which combination this is, for reports.
        messages: The conversation.
        tools: JSON schemas of the tools, or None.
        kwargs: Further keywords: ``add_generation_prompt`` and template variables.
        axes: What is particular about it: the name of an axis to the value on it.
    """

    name: str
    messages: list[Message]
    tools: list[dict[str, Any]] | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)


def _tool(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": required},
        },
    }


TOOLS: list[dict[str, Any]] = [
    _tool(
        "get_weather",
        "Weather of a city, e.g. 'Zürich' & \"Basel\" <now>.",
        {
            "city": {"type": "string", "description": "The city's name"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        },
        ["city"],
    ),
    _tool(
        "search",
        "Search files\nover several lines.",
        {
            "query": {"type": "string"},
            "limit": {"type": "integer", "description": "at most", "default": 10},
            "paths": {"type": "array", "items": {"type": "string"}},
            "options": {
                "type": "object",
                "properties": {"case": {"type": "boolean"}, "depth": {"type": ["integer", "null"]}},
            },
        },
        ["query"],
    ),
    _tool("noop", "", {}, []),
]


def _call(name: str, arguments: dict[str, Any] | str, number: int) -> dict[str, Any]:
    return {
        "id": f"call{number:05d}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


_DICT_ARGUMENTS: list[dict[str, Any]] = [
    {"city": "Zürich", "unit": "celsius"},
    {"query": 'a "b" <c>\n', "limit": 3, "paths": ["x", "y z"], "options": {"case": True, "depth": None}},
]
_STR_ARGUMENTS = ['{"city":"Zürich", "unit": "celsius"}', '{"query": "a \\"b\\"", "limit": 3, "ratio": 1e-06}']

_SYSTEM: dict[str, Message | None] = {
    "none": None,
    "system": {"role": "system", "content": "You are helpful.\n"},
    "developer": {"role": "developer", "content": "Be brief."},
    "system-empty": {"role": "system", "content": ""},
    "system-parts": {"role": "system", "content": [{"type": "text", "text": "In parts."}]},
}


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _assistant(text: str | None, **fields: Any) -> Message:
    return {"role": "assistant", "content": text, **fields}


def _tool_result(text: Any, number: int, name: str) -> Message:
    return {"role": "tool", "tool_call_id": f"call{number:05d}", "name": name, "content": text}


def _plain_bodies() -> Iterator[tuple[str, list[Message]]]:
    yield "one", [_user("Hello, Wörld! 你好 👋🏽")]
    yield "blanks", [_user("  lead and trail \n\n"), _assistant("\n answer \n"), _user("")]
    yield "three", [_user("a"), _assistant("b"), _user("c")]
    yield "five", [_user("1"), _assistant("2"), _user("3"), _assistant("4"), _user("5")]
    yield "ends-in-assistant", [_user("a"), _assistant("b")]
    yield "two-users", [_user("a"), _user("b")]
    yield "assistant-first", [_assistant("b"), _user("a")]
    yield (
        "think-tags",
        [
            _user("a"),
            _assistant("<think>\nwhy\n</think>\n\nbecause"),
            _user("b"),
            _assistant("<think>\n\n</think>\n\nx"),
        ],
    )
    for name in ("reasoning_content", "reasoning", "thinking"):
        yield name, [_user("a"), _assistant("b", **{name: " r1\n"}), _user("c"), _assistant("d", **{name: "r2"})]
    yield "reasoning-empty", [_user("a"), _assistant("b", reasoning_content=""), _user("c")]
    yield "reasoning-null", [_user("a"), _assistant("b", reasoning_content=None), _user("c")]
    yield "content-null", [_user("a"), _assistant(None), _user("c")]
    yield "content-missing", [_user("a"), {"role": "assistant"}, _user("c")]
    yield (
        "parts",
        [
            {"role": "user", "content": [{"type": "text", "text": "p1 "}, {"type": "text", "text": "p2"}]},
            _assistant("b"),
        ],
    )
    yield "parts-empty", [{"role": "user", "content": []}]
    yield "content-null-user", [{"role": "user", "content": None}, _assistant("b"), _user("c")]
    yield "image-part", [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "what?"}]}]
    yield "role-unknown", [_user("a"), {"role": "critic", "content": "c"}]
    yield "extra-keys", [{"role": "user", "content": "a", "name": "bob", "weight": 1.5, "id": 7, "items": [1]}]
    yield (
        "control-text",
        [_user("x<|im_end|>\n<|im_start|>system\n<tool_call></s>[INST]"), _assistant("</think> <eos>")],
    )


def _tool_bodies(arguments: list[Any], label: str) -> Iterator[tuple[str, list[Message]]]:
    one = [_call("get_weather", arguments[0], 1)]
    two = [_call("get_weather", arguments[0], 1), _call("search", arguments[1], 2)]
    result1 = _tool_result('{"temp": 21.5}', 1, "get_weather")
    result2 = _tool_result("line 1\nline 2  ", 2, "search")
    yield f"call-{label}", [_user("w?"), _assistant("", tool_calls=one), result1]
    yield f"call-done-{label}", [_user("w?"), _assistant("", tool_calls=one), result1, _assistant("21.5"), _user("thx")]
    yield f"call-text-{label}", [_user("w?"), _assistant("Let me look.", tool_calls=one), result1, _assistant("ok")]
    yield f"call-null-{label}", [_user("w?"), _assistant(None, tool_calls=one), result1]
    yield (
        f"call-reasoning-{label}",
        [
            _user("w?"),
            _assistant("", reasoning_content="think", tool_calls=one),
            result1,
            _assistant("ok", reasoning_content="t2"),
            _user("b"),
        ],
    )
    yield (
        f"parallel-{label}",
        [_user("w?"), _assistant("", tool_calls=two), result1, result2, _assistant("both"), _user("ok")],
    )
    yield f"parallel-open-{label}", [_user("w?"), _assistant("", tool_calls=two), result1]
    merged = _tool_result(f"{result1['content']}\n{result2['content']}", 1, "get_weather")
    yield f"parallel-merged-{label}", [_user("w?"), _assistant("", tool_calls=two), merged, _assistant("both")]
    yield (
        f"chained-{label}",
        [
            _user("w?"),
            _assistant("", tool_calls=one),
            result1,
            _assistant("", tool_calls=[two[1]]),
            result2,
            _assistant("done"),
        ],
    )
    yield f"ends-in-call-{label}", [_user("w?"), _assistant("", tool_calls=one)]
    if label == "dict":
        yield "calls-empty", [_user("w?"), _assistant("x", tool_calls=[]), _user("b")]
        yield "calls-null", [_user("w?"), _assistant("x", tool_calls=None), _user("b")]
        yield (
            "tool-parts",
            [
                _user("w?"),
                _assistant("", tool_calls=one),
                _tool_result([{"type": "text", "text": "r"}], 1, "get_weather"),
            ],
        )
        yield (
            "tool-dict",
            [
                _user("w?"),
                _assistant("", tool_calls=one),
                _tool_result({"temp": 1.0, "ok": True, "n": None}, 1, "get_weather"),
            ],
        )
        bare = {"name": "get_weather", "arguments": arguments[0]}
        yield "call-bare", [_user("w?"), _assistant("", tool_calls=[bare]), result1]
        yield (
            "tool-parts-merged",
            [
                _user("w?"),
                _assistant("", tool_calls=two),
                _tool_result([{"type": "text", "text": "r1"}, {"type": "text", "text": "r2 "}], 1, "get_weather"),
            ],
        )
        yield "tool-null", [_user("w?"), _assistant("", tool_calls=one), _tool_result(None, 1, "get_weather")]
        yield (
            "tool-missing",
            [_user("w?"), _assistant("", tool_calls=one), {"role": "tool", "tool_call_id": "call00001"}],
        )
        for name, function in (
            ("null", {"name": "noop", "arguments": None}),
            ("missing", {"name": "noop"}),
            ("empty-str", {"name": "noop", "arguments": ""}),
        ):
            call = {"id": "call00001", "type": "function", "function": function}
            yield f"arguments-{name}", [_user("w?"), _assistant("", tool_calls=[call]), _tool_result("r", 1, "noop")]
        yield (
            "no-arguments",
            [_user("w?"), _assistant("", tool_calls=[_call("noop", {}, 1)]), _tool_result("", 1, "noop")],
        )


_SWITCHES: list[dict[str, Any]] = [
    {},
    {"enable_thinking": False},
    {"enable_thinking": True, "documents": [{"title": "T", "text": "body"}]},
    {"thinking": True, "reasoning_effort": "high"},
]

# What a body is about, by how its name begins; the first that fits. Everything else is about turns.
_TOPICS = (
    ("reasoning", "reasoning fields"),
    ("thinking", "reasoning fields"),
    ("think-tags", "reasoning in the text"),
    ("call-reasoning", "reasoning with calls"),
    ("content", "content None or missing"),
    ("call-null", "content None or missing"),
    ("parts", "content in parts"),
    ("image", "content in parts"),
    ("parallel-merged", "parallel calls, results in one message"),
    ("tool-parts-merged", "parallel calls, results in one message"),
    ("parallel", "parallel calls, results in several messages"),
    ("tool-", "tool result: parts, dict, None, missing"),
    ("arguments", "arguments None, missing, empty"),
    ("calls-", "tool_calls empty or None"),
    ("call", "calls"),
    ("chained", "calls"),
    ("ends-in-call", "calls"),
    ("no-arguments", "calls"),
    ("control", "odd text, roles and keys"),
    ("blanks", "odd text, roles and keys"),
    ("role", "odd text, roles and keys"),
    ("extra", "odd text, roles and keys"),
)


def _topic(body: str) -> str:
    topic = next((topic for start, topic in _TOPICS if body.startswith(start)), "turns")
    spelling = body.rpartition("-")[2]
    return f"{topic}, arguments {spelling}" if topic == "calls" and spelling in {"dict", "str"} else topic


def _axes(body: str, system: str, tools: int, kwargs: dict[str, Any]) -> dict[str, str]:
    switches = [f"{name}={value}" for name, value in kwargs.items() if isinstance(value, bool | str)]
    return {
        "system message": system,
        "conversation": _topic(body),
        "tools": str(tools),
        "generation prompt": "yes" if "add_generation_prompt=True" in switches else "no",
        "switches": ", ".join([*switches[1:], *(["documents"] if "documents" in kwargs else [])]) or "none",
    }


def scenarios(*, thorough: bool = False) -> Iterator[Scenario]:
    """All scenarios.

    Args:
        thorough: Cross every body with every system message, tool set and switch (about 6,000 calls);
            otherwise the switches and odd system messages go with a few bodies only (about 700).

    Yields:
        Scenarios whose messages are fresh copies; the caller may change them.
    """
    bodies = [
        *_plain_bodies(),
        *_tool_bodies(_DICT_ARGUMENTS, "dict"),
        *_tool_bodies(list(_STR_ARGUMENTS), "str"),
    ]
    for (body_name, body), (system_name, system), count, prompt, (number, switches) in itertools.product(
        bodies, _SYSTEM.items(), (0, 1, 3), (False, True), enumerate(_SWITCHES)
    ):
        odd = number > 0 or system_name not in {"none", "system"}
        if not thorough and odd and body_name not in {"five", "parallel-dict", "reasoning_content"}:
            continue
        if not thorough and count == len(TOOLS) and not body_name.startswith(("parallel", "call", "one")):
            continue
        messages = copy.deepcopy(body if system is None else [system, *body])
        kwargs = {"add_generation_prompt": prompt, **copy.deepcopy(switches)}
        yield Scenario(
            name=f"{system_name}/{body_name}/tools{count}/{'prompt' if prompt else 'open'}/{number}",
            messages=messages,
            tools=copy.deepcopy(TOOLS[:count]) or None,
            kwargs=kwargs,
            axes=_axes(body_name, system_name, count, kwargs),
        )
