"""NeMo's contract: request bodies to prompts, and `/tokenize` without the round trip."""

import asyncio
import threading
from typing import Any

import pytest

import adapter_models
import real_data
import toys
import turntrie
from adapter_paths import MAJOR
from turntrie.adapters import nemo, openai

USER = [{"role": "user", "content": "hi"}]


class Double:
    """Strict about keywords; notes what it was called with, and that it was called through its class."""

    def __init__(self, value: Any) -> None:
        self.value, self.calls = value, []

    def __getattribute__(self, name: str) -> Any:
        if name == "apply_chat_template":
            raise AssertionError("must be called through the class")
        return object.__getattribute__(self, name)

    def apply_chat_template(  # noqa: PLR0917  # as in transformers
        self,
        conversation: Any,
        tools: Any = None,
        documents: Any = None,
        chat_template: Any = None,
        add_generation_prompt: Any = False,
        continue_final_message: Any = False,
        tokenize: Any = True,
        return_tensors: Any = None,
        return_dict: Any = False,
        **keywords: Any,
    ) -> Any:
        given = {key: value for key, value in locals().items() if key not in ("self", "keywords")}
        self.calls.append((given, keywords))
        return self.value


def render(tok: Any, body: dict[str, Any], *, server: Any = None, exclude: bool = True, prompt: bool = True) -> Any:
    return nemo.render_prompt_token_ids(
        tokenizer=tok,
        request_body=body,
        messages=body["messages"],
        tokenizer_chat_template_kwargs=server,
        exclude_tools_when_tool_choice_none=exclude,
        add_generation_prompt=prompt,
    )


def test_the_call_goes_through_the_class_with_nemos_keywords() -> None:
    double = Double([1, 2])
    body = {
        "messages": USER,
        "tools": toys.TOOLS,
        "documents": [{"title": "t", "text": "x"}],
        "chat_template": "t",
        "chat_template_kwargs": {"a": "request", "b": 2},
        "reasoning_effort": "low",
    }
    assert render(double, body, server={"a": "server", "c": 3}) == [1, 2]
    ((given, keywords),) = double.calls
    assert given == {
        "conversation": USER,
        "tools": toys.TOOLS,
        "documents": body["documents"],
        "chat_template": "t",
        "add_generation_prompt": True,
        "continue_final_message": False,
        "tokenize": True,
        "return_tensors": None,
        "return_dict": False,
    }
    assert keywords == {"a": "request", "b": 2, "c": 3, "reasoning_effort": "low"}


@pytest.mark.parametrize(("exclude", "tools"), [(True, None), (False, toys.TOOLS)])
def test_tools_and_tool_choice_none(exclude: bool, tools: Any) -> None:
    double = Double([1])
    render(double, {"messages": USER, "tools": toys.TOOLS, "tool_choice": "none"}, exclude=exclude)
    assert double.calls[0][0]["tools"] == tools


@pytest.mark.parametrize("where", ["server", "request"])
def test_keywords_that_are_no_object(where: str) -> None:
    body = {"messages": USER, **({"chat_template_kwargs": [1]} if where == "request" else {})}
    with pytest.raises(ValueError, match="chat_template_kwargs must be a JSON object"):
        render(Double([1]), body, server=[1] if where == "server" else None)


@pytest.mark.parametrize(("value", "ids"), [([], []), ([[3, 4]], [3, 4]), ([3, True], [3, 1]), (["5"], [5])])
def test_what_becomes_one_list_of_ids(value: Any, ids: list[int]) -> None:
    got = render(Double(value), {"messages": USER})
    assert got == ids
    assert set(map(type, got)) <= {int}


@pytest.mark.parametrize("value", [{"input_ids": [1]}, "text", [[1], [2]], ["x"], [None], (1, 2)])
def test_what_is_not_the_ids_of_one_prompt(value: Any) -> None:
    with pytest.raises(ValueError, match="token IDs"):
        render(Double(value), {"messages": USER})


def test_a_wrapped_tokenizer_is_native_through_its_class() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    body = {"messages": toys.MESSAGES, "tools": toys.TOOLS, "chat_template_kwargs": {"enable_thinking": False}}
    want = plain.apply_chat_template(
        toys.MESSAGES, tools=toys.TOOLS, add_generation_prompt=True, return_dict=False, enable_thinking=False
    )
    assert render(tok, body) == want
    assert type(tok).apply_chat_template(
        tok, toys.MESSAGES, tools=toys.TOOLS, documents=None, chat_template=None, add_generation_prompt=True,
        continue_final_message=False, tokenize=True, return_tensors=None, return_dict=False, enable_thinking=False,
    ) == want  # fmt: skip
    assert toys.calls(tok) == {"native": 2, "reference": 0}


# --- text ---


def test_text_of_a_request() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    body = {
        "messages": toys.MESSAGES,
        "tools": [],
        "metadata": {"chat_template_kwargs": '{"enable_thinking": false}'},
    }
    text = nemo.render_messages(tok, body, {"enable_thinking": True})
    assert text == plain.apply_chat_template(
        toys.MESSAGES, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    assert toys.calls(tok) == {"native": 1, "reference": 0}
    for content in ([{"type": "image_url"}], 3, ["bare"]):
        with pytest.raises(ValueError, match="'user'"):
            nemo.render_messages(tok, {"messages": [{"role": "user", "content": content}]})


# --- /tokenize ---


def test_tokenize_answers_as_the_server_does() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    client = nemo.InProcessTokenize(tok, max_model_len=4096)
    want = plain.apply_chat_template(
        toys.MESSAGES, tools=toys.TOOLS, add_generation_prompt=True, return_dict=False, enable_thinking=False
    )
    body = {
        "model": "served",
        "messages": toys.MESSAGES,
        "tools": toys.TOOLS,
        "chat_template_kwargs": {"enable_thinking": False},
        "mm_processor_kwargs": None,
    }
    answer = asyncio.run(client.create_tokenize(**body))
    assert answer == {"count": len(want), "max_model_len": 4096, "tokens": want, "token_strs": None}
    assert client.prompt_token_ids({**body, "temperature": 1.0, "logprobs": True, "n": 1}) == want
    assert toys.calls(tok) == {"native": 2, "reference": 0}


@pytest.mark.fallback  # continue_final_message is served by transformers
def test_a_request_that_continues_an_answer_has_the_prompt_that_it_asks_for() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    talk = [*USER, {"role": "assistant", "content": "It is"}]
    body = {"messages": talk, "continue_final_message": True, "add_generation_prompt": False, "temperature": 0}
    want = plain.apply_chat_template(talk, continue_final_message=True, return_dict=False)
    assert nemo.InProcessTokenize(tok).prompt_token_ids(body) == want
    assert plain.decode(want).endswith("It is")


def test_tokenize_leaves_the_loop_alone() -> None:
    seen: list[bool] = []

    class Noting:
        def apply_chat_template(self, _: Any, **__: Any) -> list[int]:
            seen.append(threading.current_thread() is threading.main_thread())
            return [1]

    answer = asyncio.run(nemo.InProcessTokenize(Noting()).create_tokenize(messages=USER))
    assert answer["tokens"] == [1]
    assert seen == [False]


def test_tokenize_options() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    client = nemo.InProcessTokenize(tok)
    bare = client.tokenize({"messages": USER, "add_generation_prompt": False})["tokens"]
    assert bare == plain.apply_chat_template(USER, return_dict=False)
    for special in (True, False):
        ids = client.tokenize({"prompt": "hi<|end|>", "add_special_tokens": special})["tokens"]
        assert ids == plain.encode("hi<|end|>", add_special_tokens=special)
    assert client.tokenize({"prompt": "hi"})["tokens"] == plain.encode("hi")


@pytest.mark.parametrize(
    "body",
    [
        {"messages": USER, "required_prefix_token_ids": [1]},
        {"messages": USER, "mm_processor_kwargs": {"fps": 2}},
        {"messages": USER, "return_token_strs": True},
        {"model": "served"},
        {"prompt": [1, 2]},
    ],
)
def test_tokenize_refuses_by_name(body: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"^`(required_prefix_token_ids|mm_processor_kwargs|return_token_strs|prompt)`"
    ):
        nemo.InProcessTokenize(toys.fresh()).tokenize(body)


def test_token_metadata_never_reaches_the_template() -> None:
    """Neither its time nor its text: a template that prints whole messages shows the difference."""
    tok = toys.fresh()
    tok.chat_template = "{{ messages|tojson }}"
    carrying = [
        *USER,
        {
            "role": "assistant",
            "content": "a",
            "prompt_token_ids": list(range(1000)),
            "generation_token_ids": [1],
            "generation_log_probs": [-0.5],
            "routed_experts": "x",
        },
    ]
    ids = nemo.InProcessTokenize(tok).tokenize({"messages": carrying})["tokens"]
    assert tok.decode(ids) == '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}]'
    assert len(carrying[1]) == 6, "the caller keeps what is the caller's"
    assert nemo.strip(carrying)[0] is carrying[0]


def test_normalizing_is_asked_for() -> None:
    tok = toys.fresh()
    parts = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    client = nemo.InProcessTokenize(tok, normalize=openai.chat_messages)
    assert client.tokenize({"messages": parts}) == client.tokenize({"messages": USER})


@pytest.mark.fallback
def test_without_it_transformers_decides() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    parts = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    got = toys.outcome(lambda: nemo.InProcessTokenize(tok).tokenize({"messages": parts}))
    want = toys.outcome(lambda: plain.apply_chat_template(parts, add_generation_prompt=True))
    assert got == want
    assert got[:2] == ("raised", TypeError)


@pytest.mark.parametrize("name", adapter_models.needs("qwen3"))
def test_a_real_tool_conversation(name: str) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    call = {"id": "call-1", "type": "function", "function": {"name": "rm", "arguments": '{"city":"San Francisco"}'}}
    messages = [*USER, {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": "r"}]
    before = real_data.fallbacks()
    ids = render(tok, {"messages": messages, "tools": toys.TOOLS}, server={"enable_thinking": False})
    assert real_data.fallbacks() == before
    assert ids == plain.apply_chat_template(
        messages, tools=toys.TOOLS, add_generation_prompt=True, return_dict=False, enable_thinking=False
    )
    assert turntrie.is_wrapped(tok)
    assert MAJOR in (4, 5)
