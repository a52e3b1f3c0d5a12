"""TRL's contract: functions as tools, the ids of tool results, and its check of a template."""

from collections import Counter
from typing import Any

import pytest

import adapter_models
import adapter_paths
import real_data
import toys
from adapter_paths import MAJOR
from turntrie.adapters import trl

USER = [{"role": "user", "content": "hi"}]
RESULTS = [
    {"role": "tool", "name": "look_up", "content": "found"},
    {"role": "tool", "name": "look_up", "content": "<|end|>"},
]


def look_up(word: str, times: int = 1) -> str:
    """Looks a word up.

    Args:
        word: The word.
        times: How often.

    Returns:
        str: What was found.
    """
    return word * times


class Environment:
    def step(self, action: str) -> str:
        """Takes a step.

        Args:
            action: Which.
        """
        return action


def own(tok: Any, messages: Any, tools: Any, **keywords: Any) -> Any:
    """TRL's call."""
    return tok.apply_chat_template(
        messages, return_dict=False, add_generation_prompt=True, tools=tools or None, **keywords
    )


@pytest.mark.parametrize("name", adapter_models.needs("demo", "qwen3"))
@pytest.mark.parametrize("kind", ["none", "empty", "schemas", "functions", "mixed"])
def test_functions_as_tools_are_native(name: str, kind: str) -> None:
    tools: Any = {
        "none": None,
        "empty": [],
        "schemas": toys.TOOLS,
        "functions": [look_up],
        "mixed": [look_up, *toys.TOOLS],
    }[kind]
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    assert trl.prompt_ids(tok, USER, tools=tools) == own(plain, USER, tools)


@pytest.mark.fallback  # transformers 4 refuses methods
def test_methods_as_tools_are_what_the_installed_transformers_makes_of_them() -> None:
    plain, tok, tools = toys.fresh(), toys.fresh(), [Environment().step]
    got = toys.outcome(lambda: trl.prompt_ids(tok, USER, tools=tools))
    assert got == toys.outcome(lambda: own(plain, USER, tools))
    assert got[0] == ("returned" if MAJOR >= 5 else "raised")
    if MAJOR >= 5:
        assert toys.fallbacks(tok) == {}


@pytest.mark.fallback
@pytest.mark.parametrize("tool", [lambda: None, 3, print, toys.fresh])
def test_what_is_no_tool_raises_as_in_transformers(tool: Any) -> None:
    plain, tok = toys.fresh(), toys.fresh()
    got = toys.outcome(lambda: trl.prompt_ids(tok, USER, tools=[tool]))
    assert got == toys.outcome(lambda: own(plain, USER, [tool]))
    assert got[0] == "raised"


def test_a_training_template_and_keywords_reach_the_template() -> None:
    plain, tok = toys.fresh(), toys.fresh()
    source = "{{ messages[0].content }}{{ mood }}<|turn|>"
    ids = trl.prompt_ids(tok, USER, chat_template=source, chat_template_kwargs={"mood": "calm"})
    assert ids == own(plain, USER, None, chat_template=source, mood="calm")
    assert plain.decode(ids) == "hicalm<|turn|>"


TEMPLATES = real_data.folder("TURNTRIE_TEMPLATES")


@pytest.mark.fallback  # what a template refuses, transformers refuses
@pytest.mark.skipif(TEMPLATES is None, reason="needs TURNTRIE_TEMPLATES")
def test_trls_training_templates_are_native_with_functions_as_tools() -> None:
    """All of them, with their generation tags, on one tokenizer: ids or exceptions as transformers'."""
    plain, tok = adapter_models.plain("demo"), adapter_models.ours("demo")
    call = {"type": "function", "function": {"name": "look_up", "arguments": {"word": "x"}}}
    talks: list[Any] = [
        USER,
        [
            *USER,
            {"role": "assistant", "content": "c", "tool_calls": [call]},
            {"role": "tool", "name": "f", "content": "r"},
        ],
        [*USER, {"role": "assistant", "content": "c"}, *USER],
    ]
    assert TEMPLATES is not None
    served: Counter[str] = Counter()
    for path in sorted(TEMPLATES.glob("trl--*_training.jinja")):
        source = path.read_text(encoding="utf-8")
        for talk in talks:
            before = real_data.fallbacks()
            got = toys.outcome(lambda t=talk, s=source: trl.prompt_ids(tok, t, tools=[look_up], chat_template=s))
            reasons = real_data.fallbacks() - before
            want = toys.outcome(lambda t=talk, s=source: own(plain, t, [look_up], chat_template=s))
            assert got == want, path.name
            assert not reasons or want[0] == "raised", f"{path.name}: {reasons}"
            served[want[0]] += 1
    assert served["returned"] > 40


MODELS = ("demo", "qwen3", "qwen3.5", "deepseek-v3.1", "glm-4.7-flash")


@pytest.mark.fallback  # a template may refuse the made-up call
@pytest.mark.parametrize("name", adapter_models.needs(*MODELS))
def test_suffixes_and_the_check_are_trls_own(name: str) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    for results in (RESULTS[:1], RESULTS):
        for keywords in ({}, {"enable_thinking": False}):
            got = toys.outcome(lambda r=results, k=keywords: trl.get_tool_suffix_ids(tok, r, chat_template_kwargs=k))
            assert got == toys.outcome(lambda r=results, k=keywords: adapter_paths.trl_suffix(plain, r, **k))
    got = toys.outcome(lambda: trl.is_chat_template_prefix_preserving(tok))
    assert got == toys.outcome(lambda: adapter_paths.trl_preserving(plain))
    assert got[1:] in ((bool, True), (bool, False))


@pytest.mark.parametrize(
    ("name", "preserving"),
    [
        pytest.param(name, value, marks=p.marks, id=name)
        for name, value in (("demo", True), ("qwen3", False), ("qwen3.5", True))
        for p in adapter_models.needs(name)
    ],
)
def test_known_answers(name: str, preserving: bool) -> None:
    assert trl.is_chat_template_prefix_preserving(adapter_models.ours(name)) is preserving


def test_a_suffix_starts_behind_the_end_of_text_token() -> None:
    """What follows it, a newline, belongs to the suffix: the engine stopped before."""
    tok = toys.fresh()
    tok.eos_token = "<|end|>"  # noqa: S105  # a token of the other kind
    ids = trl.get_tool_suffix_ids(tok, RESULTS[:1])
    assert tok.decode(ids) == "\n<|turn|>tool\n<|result|>\nfound\n<|end_result|><|end|>\n<|turn|>assistant\n"


def test_a_template_that_rewrites_the_call_is_refused() -> None:
    class Double:
        eos_token_id = 2

        def apply_chat_template(self, messages: Any, **_: Any) -> list[int]:
            return [len(messages), 2, 9]

    assert isinstance(Double(), trl.StoppingTokenizer)
    with pytest.raises(ValueError, match="EOS-trimmed prefix IDs are not a prefix"):
        trl.get_tool_suffix_ids(Double(), RESULTS)
    assert trl.is_chat_template_prefix_preserving(Double()) is False


def test_a_processor_gets_parts_and_returns_a_batch() -> None:
    class Processor:
        tokenizer = None

        def apply_chat_template(self, messages: Any, *, tokenize: bool, return_dict: bool, **_: Any) -> Any:
            assert (tokenize, return_dict) == (True, False)
            assert all(part["type"] == "text" for message in messages for part in message["content"])
            return [list(range(len(messages)))]

    assert trl.is_chat_template_prefix_preserving(Processor()) is True
