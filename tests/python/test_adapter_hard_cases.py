"""The cases at which other incremental tokenizers went wrong, through every adapter, each with its right value.

The right value is always what the system's own path gives on a plain tokenizer. Each test also asserts that the case is
what it claims to be (a prefix that is none, a text that must be there): an equality alone would hold if it were not.
Named by what happens; the numbers are those of the list that the cases come from.
"""

import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import adapter_models
import real_data
from adapter_paths import MAJOR, SYSTEMS
from turntrie.adapters import areal, nemo, openai
from turntrie.adapters.slime import common_prefix

Messages = list[dict[str, Any]]

TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}},
    }
    for name in ("first_tool", "second_tool")
]


def user(text: Any = "Which is it?") -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: Any = "This one.", **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def call(arguments: Any = None, name: str = "first_tool", **fields: Any) -> dict[str, Any]:
    return {**fields, "type": "function", "function": {"name": name, "arguments": arguments or {}}}


def result(text: str = "a result") -> dict[str, Any]:
    return {"role": "tool", "content": text}


class Episode:
    """One conversation through one system: own path and ours; every turn must agree and be native."""

    def __init__(self, name: str, system: str) -> None:
        self.plain = adapter_models.plain(name)
        tok = adapter_models.ours(name)
        self._own, self._ours = SYSTEMS[system].own(self.plain), SYSTEMS[system].ours(tok)

    def ids(self, *messages: dict[str, Any], tools: Any = None, **keywords: Any) -> list[int]:
        """The ids of the turn, by both ways."""
        given: Messages = list(messages)
        before_messages, before = copy.deepcopy(given), real_data.fallbacks()
        ours = self._ours(given, tools, **keywords)
        assert real_data.fallbacks() == before, "served by transformers"
        assert given == before_messages, "the caller's messages were changed"
        assert ours == self._own(given, tools, **keywords)
        return ours

    def refused(self, *messages: dict[str, Any], tools: Any = None) -> tuple[type[BaseException], str]:
        """What both ways raise."""
        with pytest.raises(Exception) as own:  # noqa: PT011  # whatever it is, it must be the same
            self._own(list(messages), tools)
        with pytest.raises(own.type) as ours:  # same
            self._ours(list(messages), tools)
        assert type(ours.value) is type(own.value)
        assert str(ours.value) == str(own.value)
        return own.type, str(own.value)

    def text(self, ids: list[int]) -> str:
        return str(self.plain.decode(ids))


def starts(ids: list[int], head: list[int]) -> bool:
    return common_prefix(head, ids) == len(head)


SOME = tuple(SYSTEMS)
WITH_KEYWORDS = tuple(name for name, system in SYSTEMS.items() if system.keywords)


@pytest.fixture(params=SOME)
def system(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- 1 ---


class Thinking(NamedTuple):
    """How a model's messages carry reasoning."""

    name: str
    fields: Callable[[str, str], dict[str, Any]]


def _inline(reason: str, text: str) -> dict[str, Any]:
    return answer(f"<think>\n{reason}\n</think>\n\n{text}")


def _field(reason: str, text: str) -> dict[str, Any]:
    return answer(text, reasoning_content=reason)


THINKING = {"demo": _field, "qwen3": _inline, "qwen3.5": _field, "glm-4.7-flash": _field}


@pytest.mark.parametrize("name", adapter_models.needs(*THINKING))
def test_01_reasoning_of_an_old_answer_disappears_when_the_user_asks_again(name: str, system: str) -> None:
    episode = Episode(name, system)
    thought = THINKING[name]("SECRETREASON", "An answer.")
    prompt = episode.ids(user())
    while_last = episode.ids(user(), thought, user("More."))
    assert "SECRETREASON" not in episode.text(while_last)
    # What appending would give: the prompt, what was sampled, the rest. The canonical ids are something else.
    sampled = episode.plain.encode("SECRETREASON", add_special_tokens=False)
    appended = prompt + sampled
    assert not starts(while_last, appended)
    assert "More." in episode.text(while_last)


# --- 2 ---


@pytest.mark.parametrize("name", adapter_models.needs(*THINKING))
def test_02_reasoning_before_a_tool_result_stays_and_the_turn_is_incremental(name: str, system: str) -> None:
    episode = Episode(name, system)
    thought = {**THINKING[name]("KEPTREASON", "Calling."), "tool_calls": [call()]}
    first = episode.ids(user(), tools=TOOLS)
    second = episode.ids(user(), thought, result(), tools=TOOLS)
    assert "KEPTREASON" in episode.text(second)
    # Up to the generation prompt, which may hold an opened think block that the turn writes otherwise.
    assert common_prefix(first, second) >= len(first) - 3


@pytest.mark.parametrize("name", adapter_models.needs("qwen3"))
def test_02_the_text_of_a_user_message_decides_not_its_role(name: str, system: str) -> None:
    episode = Episode(name, system)
    head = [user(), {**_inline("REASON", "Calling."), "tool_calls": [call()]}]
    wrapped = episode.ids(*head, user("<tool_response>\nR\n</tool_response>"))
    bare = episode.ids(*head, user("R"))
    assert "REASON" in episode.text(wrapped)
    assert "REASON" not in episode.text(bare)


# --- 3 ---


@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3", "glm-4.7-flash"))
def test_03_a_tool_added_between_turns_reaches_the_model(name: str, system: str) -> None:
    episode = Episode(name, system)
    turn = [user(), answer("", tool_calls=[call()]), result()]
    one = episode.ids(user(), tools=TOOLS[:1])
    stale = episode.ids(*turn, tools=TOOLS[:1])
    fresh = episode.ids(*turn, tools=TOOLS)
    assert "second_tool" in episode.text(fresh)
    assert "second_tool" not in episode.text(stale)
    assert not starts(fresh, one)


@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
def test_03_the_order_of_keys_and_a_new_key_of_a_tool_change_the_ids(name: str, system: str) -> None:
    episode = Episode(name, system)
    tool = TOOLS[0]
    reordered = {"function": dict(reversed(tool["function"].items())), "type": "function"}
    strict = {"type": "function", "function": {**tool["function"], "strict": False}}
    texts = {episode.text(episode.ids(user(), tools=[each])) for each in (tool, reordered, strict, tool)}
    assert len(texts) == 3


# --- 4 ---


@pytest.mark.parametrize("name", adapter_models.needs("qwen3"))
def test_04_the_empty_think_block_of_a_last_answer_goes_when_another_message_follows(name: str) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    lengths = []
    for messages in ([user(), answer()], [user(), answer(), user("More.")]):
        ids = areal.apply_chat_template(tok, messages, add_generation_prompt=False)
        want = plain.apply_chat_template(messages, add_generation_prompt=False, return_dict=False)
        assert ids == want
        lengths.append(len(ids))
        last = len(messages) == 2
        assert ("<think>" in plain.decode(ids)) is last
    assert lengths[0] > 0
    # The renderer keeps base ids that end in such an answer; the next turn must not be built on them.
    render = areal.IncrementalPromptRenderer
    _, base = render.render_initial(tok, [user(), answer()])
    rendered = render.render_incremental(tok, base, [user("More.")])
    assert rendered is not None
    assert rendered[0] == plain.apply_chat_template(
        [user(), answer(), user("More.")], add_generation_prompt=True, return_dict=False
    )
    assert not starts(rendered[0], base)


# --- 5 ---


@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3", "glm-4.7-flash"))
def test_05_parallel_results_over_two_requests_are_one_group(name: str, system: str) -> None:
    episode = Episode(name, system)
    head = [user(), answer("", tool_calls=[call(), call(name="second_tool")])]
    one = episode.ids(*head, result("RESULT A"), tools=TOOLS)
    two = episode.ids(*head, result("RESULT A"), result("RESULT B"), tools=TOOLS)
    assert not starts(two, one), "the first group was left closed"
    opener = {"demo": "<|turn|>tool", "qwen3": "<|im_start|>user", "glm-4.7-flash": "<|observation|>"}[name]
    assert episode.text(two).count(opener) == episode.text(one).count(opener)
    assert episode.text(two).index("RESULT A") < episode.text(two).index("RESULT B")


# --- 6 ---


@pytest.mark.parametrize("system", WITH_KEYWORDS)
@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
def test_06_without_thinking_the_prompt_has_a_block_that_the_history_has_not(name: str, system: str) -> None:
    episode = Episode(name, system)
    first = episode.ids(user(), enable_thinking=False)
    thinking = episode.ids(user(), enable_thinking=True)
    second = episode.ids(user(), answer(), user("More."), enable_thinking=False)
    block = {"demo": "<|think|>", "qwen3": "<think>"}[name]
    assert episode.text(first).count(block) == 1
    assert episode.text(thinking).count(block) == 0
    assert episode.text(second).count(block) == 1, "only the one of the generation prompt"
    assert not starts(second, first)


# --- 9 ---


@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
def test_09_an_end_of_turn_token_written_in_a_message_loses_nothing(name: str, system: str) -> None:
    episode = Episode(name, system)
    stop = {"demo": "<|end|>", "qwen3": "<|im_end|>"}[name]
    number = episode.plain.convert_tokens_to_ids(stop)
    thought = THINKING[name](f"{stop} {stop}", "An answer.")
    episode.ids(user(), thought)
    stripped = episode.ids(user(), thought, user("NEW MESSAGE"))
    assert "NEW MESSAGE" in episode.text(stripped), "counting end-of-turn tokens would have cut it off"
    assert stripped.count(number) == 3
    # In a content it becomes the token itself, as it does in transformers.
    spelled = episode.ids(user(f"a {stop} b"))
    assert spelled.count(number) == 2


# --- 11 ---


@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
def test_11_arguments_as_text_and_as_an_object_are_different_ids(name: str, system: str) -> None:
    episode = Episode(name, system)
    texts = {}
    for spelling in ('{"x":1}', '{"x": 1}', {"x": 1}):
        ids = episode.ids(user(), answer("", tool_calls=[call(spelling)]), result())
        texts[json.dumps(spelling)] = episode.text(ids)
    compact, spaced, parsed = texts.values()
    assert '"arguments": {"x":1}' in compact
    assert compact != parsed
    assert spaced == parsed


@pytest.mark.fallback  # what a template refuses, transformers refuses
@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        pytest.param(*case, marks=parameter.marks, id=case[0])
        for case in (
            ("qwen3.5", '{"x": 1}', "Can only get item pairs from a mapping."),
            ("glm-4.7-flash", '{"x": 1}', "'str object' has no attribute 'items'"),
            ("deepseek-v3.1", {"x": 1}, "can only concatenate str"),
        )
        for parameter in adapter_models.needs(case[0])
    ],
)
def test_11_the_spelling_that_a_template_refuses_is_refused_alike(
    name: str, arguments: Any, error: str, system: str
) -> None:
    episode = Episode(name, system)
    _, text = episode.refused(user(), answer("", tool_calls=[call(arguments)]), result(), tools=TOOLS)
    assert error in text


@pytest.mark.fallback
@pytest.mark.parametrize("name", adapter_models.needs("qwen3.5"))
def test_11_nemos_retry_with_parsed_arguments_works(name: str) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    messages = [user(), answer("", tool_calls=[call('{"x": 1}')]), result()]

    def render(given: Messages) -> list[int]:
        return nemo.render_prompt_token_ids(
            tokenizer=tok,
            request_body={"messages": given},
            messages=given,
            tokenizer_chat_template_kwargs=None,
            exclude_tools_when_tool_choice_none=True,
            add_generation_prompt=True,
        )

    with pytest.raises(TypeError) as error:
        render(messages)
    assert str(error.value) == "Can only get item pairs from a mapping."
    parsed = openai.chat_messages(messages, arguments="dict")
    assert render(parsed) == plain.apply_chat_template(parsed, add_generation_prompt=True, return_dict=False)


# --- 12 ---


@pytest.mark.fallback
@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([result()], "No user query found in messages."),
        ([{"role": "system", "content": "s"}, answer()], "No user query found in messages."),
        ([user(), {"role": "system", "content": "s"}], "System message must be at the beginning."),
    ],
)
@pytest.mark.parametrize("name", adapter_models.needs("qwen3.5"))
def test_12_a_template_that_wants_a_user_raises_its_own_error(
    name: str, messages: Messages, error: str, system: str
) -> None:
    kind, text = Episode(name, system).refused(*messages)
    assert kind.__name__ == "TemplateError"
    assert text == error


@pytest.mark.fallback
def test_12_a_late_system_message_raises_the_templates_error(system: str) -> None:
    kind, text = Episode("demo", system).refused(user(), {"role": "system", "content": "s"})
    assert (kind.__name__, text) == ("TemplateError", "A system message must be the first message.")


# --- 14 ---


@pytest.mark.parametrize("name", adapter_models.needs("qwen3"))
def test_14_a_content_of_parts_is_an_empty_message(name: str, system: str) -> None:
    episode = Episode(name, system)
    ids = episode.ids(user([{"type": "text", "text": "UNSEEN"}]))
    assert ids == episode.ids(user(""))
    assert "UNSEEN" not in episode.text(ids)
    # Whoever wants it to be seen asks for that.
    flat = openai.chat_messages([user([{"type": "text", "text": "SEEN"}])])
    assert "SEEN" in episode.text(episode.ids(*flat))


# --- 17 ---


@pytest.mark.parametrize("name", adapter_models.needs("qwen3"))
def test_17_null_empty_and_missing_contents_and_foreign_keys_are_one_prompt(name: str, system: str) -> None:
    episode = Episode(name, system)
    missing = answer(tool_calls=[call({"x": 1})])
    del missing["content"]
    shapes = [
        answer(None, tool_calls=[call({"x": 1})]),
        answer("", tool_calls=[call({"x": 1})]),
        answer("", tool_calls=[call({"x": 1}, index=0, id="call_1")], function_call=None, provider_specific_fields={}),
    ]
    if MAJOR >= 5:  # the same as null: this major drops null keys
        shapes.append(missing)
    first, *others = (episode.ids(user(), shape, result(), user("More.")) for shape in shapes)
    assert all(ids == first for ids in others)


# --- 18 ---

MACROS = (
    "{% macro say(role, text) %}<|turn|>{{ role }}: {{ text }}{% endmacro %}"
    "{{ strftime_now('%d %B %Y') }}{% for m in messages %}{{ say(m.role, m.content) }}{% endfor %}"
)
GENERATION = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% else %}<|turn|>{{ m.content }}{% endif %}{% endfor %}"
)


@pytest.mark.fallback
def test_18_a_construct_that_is_not_proved_goes_to_transformers_with_a_reason() -> None:
    plain, tok = adapter_models.load("demo"), adapter_models.load("demo")
    for source, reason in (
        ("{{ messages|pprint }}", "render:filter"),
        (GENERATION, None),
        (MACROS, None),
    ):
        plain.chat_template = tok.chat_template = source
        for name, system in SYSTEMS.items():
            before = real_data.fallbacks()
            assert system.ours(tok)([user(), answer()], None) == system.own(plain)([user(), answer()], None), name
            assert set(real_data.fallbacks() - before) == ({reason} if reason else set()), name


def test_18_an_assistant_mask_is_native() -> None:
    plain, tok = adapter_models.load("demo"), adapter_models.load("demo")
    keywords = {"chat_template": GENERATION, "return_dict": True, "return_assistant_tokens_mask": True}
    before = real_data.fallbacks()
    areal.apply_chat_template(tok, [user()])  # the adapters' first look at it
    encoded = tok.apply_chat_template([user(), answer()], **keywords)
    want = plain.apply_chat_template([user(), answer()], **keywords)
    assert encoded["assistant_masks"] == want["assistant_masks"]
    assert sum(encoded["assistant_masks"]) > 0
    assert real_data.fallbacks() == before
