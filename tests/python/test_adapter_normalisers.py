"""OpenAI and Anthropic bodies as template messages: what comes out, what is refused, and that nothing is changed."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

import toys
import turntrie
from turntrie.adapters import anthropic, openai

IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    return {**fields, "type": "function", "function": {"name": "f", "arguments": arguments}}


# --- Chat Completions ---

CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "rules"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "ann"},
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "reasoning": "why",
        "audio": None,
        "tool_calls": [
            call('{"x": 1, "y": "\\u00e9"}', id="c1", index=0),
            call("not json", id="c2"),
            call("", id="c3"),
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
    {"role": "assistant", "content": None, "refusal": "No."},
]


def test_chat_messages() -> None:
    before = copy.deepcopy(CHAT)
    assert openai.chat_messages(CHAT) == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "ab", "name": "ann"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "why",
            "tool_calls": [call({"x": 1, "y": "\u00e9"}, id="c1"), call("not json", id="c2"), call({}, id="c3")],
        },
        {"role": "tool", "content": "r", "tool_call_id": "c1"},
        {"role": "assistant", "content": "No."},
    ]
    assert before == CHAT


@pytest.mark.parametrize(
    ("spelling", "given", "want"),
    [
        ("dict", '{"x":1}', {"x": 1}),
        ("dict", {"x": 1}, {"x": 1}),
        ("dict", "[1]", "[1]"),
        ("dict", None, {}),
        ("json", {"x": "\u00e9"}, '{"x": "\u00e9"}'),
        ("json", '{"x":1}', '{"x":1}'),
        ("json", None, "{}"),
        ("as-is", '{"x":1}', '{"x":1}'),
        ("as-is", None, None),
    ],
)
def test_arguments(spelling: Any, given: Any, want: Any) -> None:
    (message,) = openai.chat_messages(
        [{"role": "assistant", "content": "", "tool_calls": [call(given)]}], arguments=spelling
    )
    assert message["tool_calls"][0]["function"]["arguments"] == want


def test_ids_can_be_left_out() -> None:
    made = openai.chat_messages(CHAT, ids=False)
    assert not any("tool_call_id" in message for message in made)
    assert "id" not in made[2]["tool_calls"][0]


def test_images_are_refused_or_marked() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "see "}, IMAGE]}]
    with pytest.raises(ValueError, match=r"^messages\[0\]\.content\[1\] is a part of type 'image_url'"):
        openai.chat_messages(messages)
    assert openai.chat_messages(messages, images="mark") == [{"role": "user", "content": "see [image omitted]"}]
    with pytest.raises(ValueError, match="'input_audio'"):
        openai.chat_messages([{"role": "user", "content": [{"type": "input_audio"}]}], images="mark")


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"content": "x"}, r"messages\[0\] has no role"),
        ({"role": "user", "content": 3}, r"messages\[0\]\.content is neither"),
        ({"role": "user", "content": [{"type": "text"}]}, r"content\[0\] has no text"),
        ({"role": "assistant", "tool_calls": [{"type": "custom", "custom": {}}]}, r"tool_calls\[0\] is not a function"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, r"tool_calls\[0\] has no name"),
    ],
)
def test_chat_messages_that_cannot_be_turned(message: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        openai.chat_messages([message])


# --- Responses ---


def test_responses_messages() -> None:
    body = {
        "instructions": "rules",
        "input": [
            {"role": "user", "content": "q"},
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
            },
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Calling."}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"x": 1}'},
            {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "r1"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "r2"}]},
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "more"}], "summary": []},
            {"type": "message", "role": "assistant", "content": "Done."},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "new rule"}]},
        ],
    }
    before = copy.deepcopy(body)
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": {}}},
    ]
    assert openai.responses_messages(body) == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "Calling.", "reasoning_content": "one\ntwo", "tool_calls": calls},
        {"role": "tool", "content": "r1", "tool_call_id": "c1"},
        {"role": "tool", "content": "r2", "tool_call_id": "c2"},
        {"role": "assistant", "content": "Done.", "reasoning_content": "more"},
        {"role": "system", "content": "new rule"},
    ]
    assert body == before


def test_responses_input_as_text_and_answers_in_a_row() -> None:
    assert openai.responses_messages({"input": "q"}) == [{"role": "user", "content": "q"}]
    said = [{"role": "assistant", "content": text} for text in ("one", "two")]
    assert openai.responses_messages({"input": said}) == said


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "input is neither"),
        ({"input": [{"type": "web_search_call"}]}, r"input\[0\] is an item of type 'web_search_call'"),
        ({"input": ["bare"]}, r"input\[0\] is an item of type None"),
        ({"input": [{"role": "nobody", "content": ""}]}, "role 'nobody'"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "'input_image'"),
        ({"input": [{"type": "function_call", "arguments": "{}"}]}, r"input\[0\] has no name"),
    ],
)
def test_responses_bodies_that_cannot_be_turned(body: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        openai.responses_messages(body)


def test_responses_tools() -> None:
    flat = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": None}
    want = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    assert openai.responses_tools([flat, want]) == [want, want]
    assert openai.responses_tools(None) is None
    assert openai.responses_tools([]) is None
    with pytest.raises(ValueError, match=r"tools\[0\] is of type 'web_search'"):
        openai.responses_tools([{"type": "web_search"}])


# --- Anthropic ---

BODY: dict[str, Any] = {
    "system": [{"type": "text", "text": "rules"}, {"type": "text", "text": "more", "cache_control": {}}],
    "messages": [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "why", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "Calling."},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "r1"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "content": [{"type": "text", "text": "r2"}, {"type": "image"}],
                },
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two"},
            ],
        },
        {"role": "system", "content": "reminder"},
        {"role": "assistant", "content": "Done."},
    ],
}


def test_anthropic_messages() -> None:
    before = copy.deepcopy(BODY)
    made = anthropic.messages(BODY, images="mark", system="user")
    assert made == [
        {"role": "system", "content": "rules\nmore"},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "Calling.",
            "reasoning_content": "why",
            "tool_calls": [call({"x": 1}, id="t1"), call({}, id="t2")],
        },
        {"role": "tool", "content": "r1", "tool_call_id": "t1"},
        {"role": "tool", "content": "r2\n[image omitted]", "tool_call_id": "t2"},
        {"role": "user", "content": "one\ntwo"},
        {"role": "user", "content": "reminder"},
        {"role": "assistant", "content": "Done."},
    ]
    assert before == BODY
    assert anthropic.messages(BODY, images="mark")[-2] == {"role": "system", "content": "reminder"}


def test_anthropic_without_wire_ids_and_with_json_arguments() -> None:
    made = anthropic.messages(BODY, images="mark", ids=False, arguments="json")
    assert made[2]["tool_calls"] == [call('{"x": 1}'), call("{}")]
    assert made[3] == {"role": "tool", "content": "r1"}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (BODY, r"messages\[2\]\.content\[1\]\.content\[1\] is a part of type 'image'"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "'document'"),
        ({"messages": [{"role": "assistant", "content": [{"type": "server_tool_use"}]}]}, "'server_tool_use'"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}, "has no name"),
        ({"messages": [{"role": "tool", "content": ""}]}, "role 'tool'"),
    ],
)
def test_anthropic_bodies_that_cannot_be_turned(body: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        anthropic.messages(body)


def test_anthropic_tools() -> None:
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}, "cache_control": {}}
    assert anthropic.tools([tool]) == [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    ]
    assert anthropic.tools([]) is None
    assert anthropic.tools(None) is None
    with pytest.raises(ValueError, match=r"tools\[0\]"):
        anthropic.tools([{"type": "web_search_20250305", "name": "web_search"}])


# --- what they are for ---


@pytest.mark.parametrize(
    "normalised",
    [
        lambda: openai.chat_messages([m for m in CHAT if m["role"] != "developer"]),
        lambda: openai.responses_messages({"instructions": "s", "input": "q"}),
        lambda: anthropic.messages(BODY, images="mark", system="user"),
    ],
)
def test_what_comes_out_is_native_and_json(normalised: Callable[[], Any]) -> None:
    plain, tok = toys.fresh(), turntrie.wrap(toys.fresh())
    messages = normalised()
    assert json.loads(json.dumps(messages)) == messages
    ids = tok.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert ids == plain.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert toys.fallbacks(tok) == {}
