"""AReaL's contract: the one function under both majors, and the renderer that hands out base ids."""

import copy
import itertools
import pickle
from typing import Any

import pytest

import adapter_models
import episodes
import real_data
import toys
import turntrie
from adapter_paths import MAJOR
from turntrie.adapters import areal

Render = areal.IncrementalPromptRenderer
USER = [{"role": "user", "content": "hi"}]


def own(tok: Any, messages: Any, *, tokenize: bool = True, **keywords: Any) -> Any:
    """AReaL's function, in one line a major."""
    encoded = tok.apply_chat_template(messages, tokenize=tokenize, **keywords)
    return list(encoded["input_ids"]) if tokenize and MAJOR >= 5 else encoded


KEYWORDS: list[dict[str, Any]] = [
    {},
    {"add_generation_prompt": True},
    {"add_generation_prompt": True, "tools": None},
    {"add_generation_prompt": True, "tools": []},
    {"add_generation_prompt": True, "tools": toys.TOOLS, "enable_thinking": False},
    {"tokenize": False},
    {"tokenize": False, "add_generation_prompt": True, "tools": toys.TOOLS},
    {"return_dict": True},
]


@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
def test_the_result_is_that_of_areals_function(name: str, keywords: dict[str, Any]) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    got, want = areal.apply_chat_template(tok, toys.MESSAGES, **keywords), own(plain, toys.MESSAGES, **keywords)
    assert type(got) is type(want)
    assert got == want


@pytest.mark.fallback
@pytest.mark.parametrize(
    "keywords",
    [
        {"return_tensors": "np"},
        {"return_dict": True, "return_assistant_tokens_mask": True},
        {"truncation": True, "max_length": 5},
        {"continue_final_message": True},
    ],
    ids=str,
)
def test_keywords_that_change_the_shape_of_a_result(keywords: dict[str, Any]) -> None:
    plain, tok = toys.fresh(), toys.fresh()
    got, want = areal.apply_chat_template(tok, toys.MESSAGES, **keywords), own(plain, toys.MESSAGES, **keywords)
    assert type(got) is type(want)
    assert str(got) == str(want)


@pytest.mark.fallback
@pytest.mark.parametrize("messages", [[], [[]], [{"role": "nobody", "content": "x"}], [{"content": "x"}], "text", None])
def test_errors_are_those_of_areals_function(messages: Any) -> None:
    plain, tok = toys.fresh(), toys.fresh()
    assert toys.outcome(lambda: areal.apply_chat_template(tok, messages)) == toys.outcome(lambda: own(plain, messages))


def test_a_double_behaves_as_the_installed_major_does() -> None:
    class Double:
        def __init__(self, value: Any) -> None:
            self.value, self.seen = value, []

        def apply_chat_template(self, _: Any, **keywords: Any) -> Any:
            self.seen.append(keywords)
            return self.value

    ids = {"input_ids": (3, 4)} if MAJOR >= 5 else [3, 4]
    double = Double(ids)
    got = areal.apply_chat_template(double, USER, tools=None)
    assert got == ([3, 4] if MAJOR >= 5 else ids)
    assert double.seen == [{"tokenize": True, "tools": None}]
    assert areal.apply_chat_template(Double("text"), USER, tokenize=False) == "text"
    if MAJOR >= 5:
        with pytest.raises(TypeError):
            areal.apply_chat_template(Double([3, 4]), USER)


# --- the renderer ---


@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
def test_every_turn_is_the_full_render_with_base_ids_to_go_on_from(name: str) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    recording = episodes.fitting(plain, episodes.own(turns=10, seed=44))
    ends = recording.asks()
    prompt, base = Render.render_initial(tok, recording.messages[: ends[0]], recording.tools)
    for start, end in itertools.pairwise(ends):
        assert isinstance(base, list)
        delta = recording.messages[start:end]
        # Both ways to say what came before.
        given = Render.render_incremental(
            tok, list(base), delta, recording.tools, parent_messages=recording.messages[:start]
        )
        rendered = Render.render_incremental(tok, base, delta, recording.tools)
        assert rendered is not None
        assert given == rendered
        prompt, base = rendered
        for ids, asked in ((prompt, True), (base, False)):
            assert ids == own(plain, recording.messages[:end], tools=recording.tools, add_generation_prompt=asked)


def test_changed_tools_and_superseded_reasoning_need_no_guard() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    thought = {"role": "assistant", "content": "a", "reasoning_content": "SECRET"}
    _, base = Render.render_initial(tok, [*USER, thought])
    assert Render.is_history_safe(tok, [*USER, thought, *USER])
    rendered = Render.render_incremental(tok, base, USER, toys.TOOLS, parent_tools_signature="something else")
    assert rendered is not None
    assert rendered[0] == own(plain, [*USER, thought, *USER], tools=toys.TOOLS, add_generation_prompt=True)
    assert "SECRET" not in plain.decode(rendered[0])
    assert '"rm"' in plain.decode(rendered[0])
    assert rendered[0][: len(base)] != base


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_tools_may_be_any_iterable(kind: Any) -> None:
    plain, tok = toys.fresh(), toys.fresh()
    for ids, asked in zip(Render.render_initial(tok, USER, kind(toys.TOOLS)), (True, False), strict=True):
        assert ids == own(plain, USER, tools=toys.TOOLS, add_generation_prompt=asked)


def test_what_cannot_be_known_is_none() -> None:
    tok = toys.fresh()
    _, base = Render.render_initial(tok, USER)
    assert Render.render_incremental(tok, base, []) is None
    assert Render.render_incremental(tok, list(base), USER) is None, "plain ids do not say which messages they are"
    assert Render.render_incremental(tok, [*base, 1], USER) is None
    assert Render.render_concat_child_tokens(tok, USER, USER) is None


@pytest.mark.fallback
def test_a_failed_render_is_none_and_the_full_render_says_why() -> None:
    tok = toys.fresh()
    _, base = Render.render_initial(tok, USER)
    late = [{"role": "system", "content": "s"}]
    assert Render.render_incremental(tok, base, late) is None
    with pytest.raises(Exception, match="must be the first message"):
        areal.apply_chat_template(tok, [*USER, *late])


def test_base_ids_are_a_list_that_travels_and_outlives_the_callers() -> None:
    tok = toys.fresh()
    messages = list(USER)
    _, base = Render.render_initial(tok, messages)
    messages.append({"role": "assistant", "content": "later"})
    for each in (base, copy.copy(base), copy.deepcopy(base), pickle.loads(pickle.dumps(base))):
        assert isinstance(each, areal.BaseTokenIds)
        assert each.messages == USER
        assert each == list(base)
    assert type(base[:2]) is list


def test_supported_means_that_there_is_a_template() -> None:
    class Double:
        chat_template = None

    tok = toys.fresh()
    before = real_data.fallbacks()
    assert Render.is_supported(tok, toys.TOOLS, {"enable_thinking": False})
    assert not Render.is_supported(Double())
    assert not Render.is_supported(object())
    assert not turntrie.is_wrapped(tok), "nothing was rendered to find out"
    assert real_data.fallbacks() == before
