"""Every form of call: native, or handed to transformers exactly once, as it came, for the reason expected.

Each form is made on a wrapped tokenizer and on a plain one, and must come to the same: value and type, or class and
text of the exception. Forms are kept in a table with the reason they are to fall back for, None if they are native.
"""

import collections
import dataclasses
import enum
import functools
import re
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import transformers
from transformers.utils import chat_template_utils

import toys
from toys import MESSAGES, TOOLS
from turntrie import calls, reference
from turntrie.reason import Reason

BASE = transformers.PreTrainedTokenizerBase
V5 = "sanitize_control_tokens" in reference.Parameters.of(BASE.apply_chat_template).defaults
ANSWER = [*MESSAGES[:2]]
DOCUMENTS = [{"title": "t", "text": "x"}]
SHOWS = "{{ messages[0].content }}|{{ documents }}|{{ tools }}|{{ add_generation_prompt }}|{{ extra }}"
SHOWS_ROLES = "{% for m in messages %}{{ m.role }}{% endfor %}|{{ add_generation_prompt }}"
SHOWS_ALL = "{{ messages|tojson }}{{ messages[-1].reasoning_content }}{{ messages[-1].thinking }}"
TRIMS = "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }} {% endfor %}"
CONTINUED = [MESSAGES[0], {"role": "assistant", "content": "Three: a.py \n"}]
REASONED = [{"role": "assistant", "content": "c", "reasoning_content": "why"}]
METHOD = None if V5 else "call:function-tool"
FIELD = None if V5 else "call:continue"
GENERATION = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"


def tool(path: str) -> str:
    """Removes a file.

    Args:
        path: Which one.
    """
    return path


async def coroutine(path: str) -> str:
    """Removes a file.

    Args:
        path: Which one.
    """
    return path


def unhinted(path):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201  # what transformers refuses
    """Removes a file.

    Args:
        path: Which one.
    """
    return path


class Tools:
    def method(self, path: str) -> str:
        """Removes a file.

        Args:
            path: Which one.
        """
        return path

    @classmethod
    def of_class(cls, path: str) -> str:
        """Removes a file.

        Args:
            path: Which one.
        """
        return path

    @staticmethod
    def static(path: str) -> str:
        """Removes a file.

        Args:
            path: Which one.
        """
        return path


class Callable:
    def __call__(self, path: str) -> str:
        """Removes a file.

        Args:
            path: Which one.
        """
        return path


class Role(str, enum.Enum):  # noqa: UP042  # the kind that people have
    USER = "user"


@dataclasses.dataclass
class Message:
    role: str
    content: str


class Form(NamedTuple):
    """A call, and why it falls back."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reason: str | None


def form(*args: Any, reason: str | None, **kwargs: Any) -> Form:
    return Form(args, kwargs, reason)


def message(content: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content, **more}]


FORMS: dict[str, Form] = {
    # native
    "default": form(MESSAGES, reason=None),
    "list": form(MESSAGES, return_dict=False, reason=None),
    "dict": form(MESSAGES, return_dict=True, reason=None),
    "text": form(MESSAGES, tokenize=False, reason=None),
    "generation prompt": form(MESSAGES, add_generation_prompt=True, reason=None),
    "tools": form(MESSAGES, tools=TOOLS, reason=None),
    "no tools": form(MESSAGES, tools=[], reason=None),
    "documents": form(MESSAGES, documents=DOCUMENTS, chat_template=SHOWS, reason=None),
    "template given": form(MESSAGES, chat_template=SHOWS, extra=[1.5, None, {"k": (1, "x")}], reason=None),
    "positional": form(MESSAGES, TOOLS, DOCUMENTS, SHOWS, True, False, reason=None),
    "conversation by name": form(conversation=MESSAGES, reason=None),
    "neutral values": form(
        MESSAGES,
        continue_final_message=False,
        padding=False,
        truncation=False,
        max_length=None,
        return_tensors=None,
        return_assistant_tokens_mask=False,
        tokenizer_kwargs=None,
        reason=None,
    ),
    "max_length alone": form(MESSAGES, max_length=3, reason=None),
    "keyword that nobody reads": form(MESSAGES, split_special_tokens=True, reason=None),
    "special token as keyword": form(MESSAGES, chat_template="{{ eos_token }}!", eos_token="E", reason=None),  # noqa: S106  # a token
    "empty text": form(MESSAGES, chat_template="", reason=None),
    # shapes of the conversation
    "batch": form([MESSAGES, ANSWER], reason=None),
    "batch as dict": form([MESSAGES, ANSWER], return_dict=True, add_generation_prompt=True, reason=None),
    "batch as lists": form([MESSAGES, ANSWER], return_dict=False, tools=TOOLS, reason=None),
    "batch as text": form([MESSAGES, ANSWER], tokenize=False, reason=None),
    "batch of one": form([MESSAGES], return_dict=False, reason=None),
    "batch with an empty conversation": form([MESSAGES, []], chat_template=SHOWS_ROLES, reason=None),
    "batch of nothing": form([[]], chat_template=SHOWS_ROLES, return_dict=False, reason=None),
    "batch with what is none": form([MESSAGES, "hello"], reason="call:batch"),
    "batch with a message that is none": form([MESSAGES, ["hello"]], reason="value:message"),
    "batch that the template refuses": form([MESSAGES, [{"role": "critic", "content": ""}]], reason="render:"),
    "batch continued": form([ANSWER, CONTINUED], continue_final_message=True, return_dict=False, reason=None),
    "batch as tensors": form([ANSWER], return_tensors="np", return_dict=True, reason="call:tensors"),
    "batch of tuples": form([tuple(MESSAGES)], reason="call:batch"),
    "batch padded": form([MESSAGES, ANSWER], padding=True, reason="call:padding"),
    "batch of objects": form([SimpleNamespace(messages=MESSAGES)], reason="call:batch"),
    "object with messages": form(SimpleNamespace(messages=MESSAGES), reason="call:conversation"),
    "tuple": form(tuple(MESSAGES), reason="call:conversation"),
    "empty": form([], reason="call:empty"),
    "empty tuple": form((), reason="call:conversation"),
    "None": form(None, reason="call:conversation"),
    "text for a conversation": form("hello", reason="call:conversation"),
    "messages are no dicts": form(["hello"], reason="value:message"),
    "a later message is no dict": form([*MESSAGES, "hello"], reason="value:message"),
    # parameters
    "assistant mask": form(
        MESSAGES, chat_template=GENERATION, return_dict=True, return_assistant_tokens_mask=True, reason=None
    ),
    "assistant mask without dict": form(
        MESSAGES, return_dict=False, return_assistant_tokens_mask=True, reason="call:assistant-mask"
    ),
    "assistant mask without tag": form(
        MESSAGES, return_dict=True, return_assistant_tokens_mask=True, reason="template:no-generation"
    ),
    "assistant mask of a continued message": form(
        CONTINUED,
        chat_template=GENERATION,
        return_dict=True,
        return_assistant_tokens_mask=True,
        continue_final_message=True,
        reason="call:assistant-mask",
    ),
    "assistant mask of a batch": form(
        [MESSAGES, ANSWER], chat_template=GENERATION, return_dict=True, return_assistant_tokens_mask=True, reason=None
    ),
    "continue": form(ANSWER, continue_final_message=True, reason=None),
    "continue as list": form(CONTINUED, continue_final_message=True, return_dict=False, reason=None),
    "continue as text": form(CONTINUED, continue_final_message=True, tokenize=False, tools=TOOLS, reason=None),
    "continue what is trimmed": form(CONTINUED, chat_template=TRIMS, continue_final_message=True, reason=None),
    "continue blocks": form(
        message([{"type": "text", "text": "a"}, {"type": "text", "text": "b "}, {"type": "image"}]),
        chat_template="{{ messages|tojson }} content",
        continue_final_message=True,
        tokenize=False,
        reason=None,
    ),
    "continue blocks without text": form(
        message([{"type": "image"}]), chat_template=SHOWS, continue_final_message=True, reason="call:continue"
    ),
    "continue None": form(message(None), continue_final_message=True, reason="call:continue"),
    "continue an empty text": form(message(""), continue_final_message=True, tokenize=False, reason=None),
    "continue what the template does not name": form(
        ANSWER, chat_template="{{ messages|tojson }}", continue_final_message=True, reason="call:continue"
    ),
    "continue what the template drops": form(
        ANSWER, chat_template="{# content #}x", continue_final_message=True, reason="call:continue"
    ),
    "continue a field": form(
        REASONED, chat_template=SHOWS_ALL, continue_final_message="reasoning_content", reason=FIELD
    ),
    "continue a field's copies": form(
        [{**REASONED[0], "thinking": "why", "name": None}],
        chat_template=SHOWS_ALL,
        continue_final_message="thinking",
        reason=FIELD,
    ),
    "continue a field of another name": form(
        [{"role": "user", "reasoning": "why", "content": "c"}],
        chat_template=SHOWS_ALL,
        continue_final_message="reasoning_content",
        tokenize=False,
        reason=FIELD,
    ),
    "continue another field": form(
        message("x", note="a "), chat_template=SHOWS_ALL + "note", continue_final_message="note", reason=FIELD
    ),
    "continue a field that is missing": form(
        ANSWER, chat_template=SHOWS_ALL, continue_final_message="reasoning_content", reason="call:continue"
    ),
    "continue by number": form(ANSWER, continue_final_message=1, reason="call:continue"),
    "continue and generation prompt": form(
        ANSWER, continue_final_message=True, add_generation_prompt=True, reason="call:continue"
    ),
    "continue what the template strips": form(
        [*MESSAGES, {"role": "assistant", "content": " "}], continue_final_message=True, reason=None
    ),
    "truncation": form(MESSAGES, truncation=True, max_length=5, reason="call:truncation"),
    "truncation by name": form(MESSAGES, truncation="longest_first", max_length=5, reason="call:truncation"),
    "truncation that is none": form(MESSAGES, truncation="do_not_truncate", reason="call:truncation"),
    "truncation as None": form(MESSAGES, truncation=None, max_length=5, reason="call:truncation"),
    "padding": form(MESSAGES, padding="max_length", max_length=99, reason="call:padding"),
    "unknown padding": form(MESSAGES, padding="sideways", reason="call:padding"),
    "tensors": form(MESSAGES, return_tensors="np", reason="call:tensors"),
    "tensors as list": form(MESSAGES, return_tensors="np", return_dict=False, reason="call:tensors"),
    "unknown tensors": form(MESSAGES, return_tensors="xx", reason="call:tensors"),
    "tokenizer_kwargs": form(
        MESSAGES, return_dict=True, tokenizer_kwargs={"return_offsets_mapping": True}, reason="call:tokenizer-kwargs"
    ),
    "split by tokenizer_kwargs": form(
        MESSAGES, tokenizer_kwargs={"split_special_tokens": True}, reason="call:tokenizer-kwargs"
    ),
    "sanitize": form(message("<|turn|>"), sanitize_control_tokens=True, reason="call:sanitize" if V5 else None),
    "flags that are no bool": form(MESSAGES, tokenize=1, reason="call:flags"),
    "text and dict": form(MESSAGES, tokenize=False, return_dict=True, reason="call:text-dict"),
    "max_length that is no int": form(MESSAGES, max_length=3.0, reason="call:max-length"),
    "generation prompt of numpy": form(MESSAGES, add_generation_prompt=np.bool_(True), reason="value:object"),
    # tools and documents
    "function as tool": form(MESSAGES, tools=[tool], reason=None),
    "function as tool, shown": form(MESSAGES, tools=[*TOOLS, tool], chat_template=SHOWS, tokenize=False, reason=None),
    "method as tool": form(MESSAGES, tools=[Tools().method], reason=METHOD),
    "method as tool, shown": form(MESSAGES, tools=[tool, Tools().method], chat_template=SHOWS, reason=METHOD),
    "class method as tool": form(MESSAGES, tools=[Tools.of_class], chat_template=SHOWS, reason=METHOD),
    "static method as tool": form(MESSAGES, tools=[Tools.static], chat_template=SHOWS, reason=None),
    "coroutine function as tool": form(MESSAGES, tools=[coroutine], chat_template=SHOWS, reason=None),
    "object that can be called as tool": form(MESSAGES, tools=[Callable()], reason="call:function-tool"),
    "partial function as tool": form(MESSAGES, tools=[functools.partial(tool, "x")], reason="call:function-tool"),
    "class as tool": form(MESSAGES, tools=[Tools], reason="call:function-tool"),
    "function without hints": form(MESSAGES, tools=[unhinted], reason="call:function-tool"),
    "builtin as tool": form(MESSAGES, tools=[len], reason="call:function-tool"),
    "function without documentation": form(MESSAGES, tools=[lambda: 1], reason="call:function-tool"),
    "tools in a tuple": form(MESSAGES, tools=tuple(TOOLS), reason="call:tools"),
    "tools are no dicts": form(MESSAGES, tools=["rm"], reason="call:tools"),
    "documents in a tuple": form(MESSAGES, documents=tuple(DOCUMENTS), chat_template=SHOWS, reason="call:documents"),
    "documents are no dicts": form(MESSAGES, documents=["x"], reason="call:documents"),
    # signature
    "nothing": form(reason="call:conversation"),
    "too much": form(MESSAGES, *[None] * 20, reason="call:signature"),
    "twice": form(MESSAGES, conversation=MESSAGES, reason="call:signature"),
    "messages by keyword": form(MESSAGES, messages=MESSAGES, reason="call:keyword"),
    "conversations by keyword": form(MESSAGES, conversations=[MESSAGES], reason="call:keyword"),
    "a name of the template's own": form(MESSAGES, chat_template="{{ range }}", range="x", reason="call:keyword"),
    "function as keyword": form(MESSAGES, chat_template="{{ f is defined }}", f=len, reason="value:object"),
    # template
    "template that does not parse": form(MESSAGES, chat_template="{% if %}", reason="template:"),
    "template that is no text": form(MESSAGES, chat_template=3, reason="call:template"),
    "template in bytes": form(MESSAGES, chat_template=b"x", reason="call:template"),
    "template with a lone surrogate": form(MESSAGES, chat_template="\ud800", reason="call:template"),
    "template that raises": form([{"role": "critic", "content": ""}], reason="render:"),
    "template that adds to undefined": form(MESSAGES, chat_template="{{ nothing + 'x' }}", reason="render:"),
    "template of another engine": form(MESSAGES, chat_template="{% autoescape true %}x{% endautoescape %}", reason="t"),
    # values
    "OrderedDict": form([collections.OrderedDict(MESSAGES[0])], reason="value:message"),
    "UserDict": form([collections.UserDict(MESSAGES[0])], reason="value:message"),
    "dataclass": form([Message("user", "x")], reason="value:message"),
    "dataclass inside": form(message([Message("text", "x")]), chat_template="{{ messages }}", reason="value:object"),
    "dict of a kind of its own inside": form(
        message("x", extra=collections.OrderedDict(a=1)), chat_template="{{ messages }}", reason="value:object"
    ),
    "a tuple inside": form(message((1, "x", None)), chat_template="{{ messages }}", reason=None),
    "odd numbers": form(message([1e16, -0.0, float("nan"), 1 << 70]), chat_template="{{ messages }}", reason=None),
    "enum": form([{"role": Role.USER, "content": "x"}], reason="value:object"),
    "numpy": form(message("x", score=np.float64(1.5)), chat_template="{{ messages }}", reason="value:object"),
    "bytes": form(message(b"x"), chat_template="{{ messages }}", reason="value:object"),
    "set": form(message({"x"}), chat_template="{{ messages }}", reason="value:object"),
    "int as key": form(message({1: 2}), chat_template="{{ messages }}", reason="value:key"),
    "huge int": form(message(1 << 200), chat_template="{{ messages }}", reason="value:int"),
    "surrogate": form(message("\ud800"), reason="value:surrogate"),
    "surrogate in text": form(message("\ud800"), tokenize=False, reason="value:surrogate"),
    "surrogate as keyword": form(MESSAGES, chat_template="{{ x|length }}", x="\ud800", reason="value:surrogate"),
}


@pytest.mark.fallback
@pytest.mark.parametrize("name", FORMS)
def test_form(name: str, plain: Any) -> None:
    args, kwargs, reason = FORMS[name]
    tok = toys.wrapped()
    wanted = toys.outcome(lambda: plain.apply_chat_template(*args, **kwargs))
    with toys.spied(BASE) as seen:
        got = toys.outcome(lambda: tok.apply_chat_template(*args, **kwargs))
    assert got == wanted
    asked = [call for call in seen if call[0][0] is tok]  # the probes of the rules are made on another
    if reason is None:
        assert (asked, toys.fallbacks(tok)) == ([], {})
        assert toys.calls(tok) == {"native": 1, "reference": 0}
        return
    assert toys.calls(tok) == {"native": 0, "reference": 1}
    assert next(iter(toys.fallbacks(tok))).startswith(reason), toys.fallbacks(tok)
    assert len(asked) == 1
    (given, keywords) = asked[0]
    assert given[0] is tok
    assert [*map(id, given[1:])] == [*map(id, args)]
    assert {key: id(value) for key, value in keywords.items()} == {key: id(value) for key, value in kwargs.items()}


def test_reasons_hold_no_contents() -> None:
    for one in FORMS.values():
        assert one.reason is None or re.fullmatch(r"[a-z]+(:[a-z_-]*)?", one.reason)


@pytest.mark.fallback
def test_forms_one_after_the_other_on_one_tokenizer() -> None:
    def outcome(tok: Any, args: Any, kwargs: Any) -> Any:
        return toys.outcome(lambda: tok.apply_chat_template(*args, **kwargs))

    wanted = {name: outcome(toys.fresh(), args, kwargs) for name, (args, kwargs, _) in FORMS.items()}
    tok = toys.wrapped()
    for _ in range(2):
        for name, (args, kwargs, _) in FORMS.items():
            assert outcome(tok, args, kwargs) == wanted[name], name


def test_the_caller_s_objects_are_left_alone() -> None:
    tok = toys.wrapped()
    messages = [{"role": "user", "content": "x", "name": None}, {"role": "assistant", "content": "", "reasoning": "r"}]
    before = repr((messages, TOOLS))
    tok.apply_chat_template(messages, tools=TOOLS, add_generation_prompt=True)
    assert repr((messages, TOOLS)) == before


def test_a_parameter_that_is_not_known_here() -> None:
    parameters = reference.Parameters.of(BASE.apply_chat_template)
    newer = parameters._replace(defaults={**parameters.defaults, "return_magic": False})
    assert calls.read(newer, (MESSAGES,), {"return_magic": True}) == "call:parameter"
    assert isinstance(calls.read(newer, (MESSAGES,), {}), calls.Call)
    assert isinstance(calls.read(newer, (MESSAGES,), {"return_magic": True}), Reason)


# --- results ---


def test_every_list_is_the_caller_s_own(plain: Any) -> None:
    tok = toys.wrapped()
    first = tok.apply_chat_template(MESSAGES, return_dict=False)
    wanted = list(first)
    assert type(first) is list
    assert {type(number) for number in first} == {int}
    first.clear()
    assert tok.apply_chat_template(MESSAGES, return_dict=False) == wanted
    encoding = tok.apply_chat_template(MESSAGES, return_dict=True)
    encoding["input_ids"].append(5)
    encoding["attention_mask"].clear()
    assert dict(tok.apply_chat_template(MESSAGES, return_dict=True)) == dict(
        plain.apply_chat_template(MESSAGES, return_dict=True)
    )


def test_the_installed_default(plain: Any) -> None:
    assert type(toys.wrapped().apply_chat_template(MESSAGES)) is type(plain.apply_chat_template(MESSAGES))
    assert type(plain.apply_chat_template(MESSAGES)) is (transformers.BatchEncoding if V5 else list)


def test_encode_message_with_chat_template(plain: Any) -> None:
    tok = toys.wrapped()
    call = (MESSAGES[2], MESSAGES[:2])
    assert tok.encode_message_with_chat_template(*call) == plain.encode_message_with_chat_template(*call)
    assert toys.calls(tok) == {"native": 2, "reference": 0}


# --- what the tokenizer holds is read at each call ---


def test_chat_template_special_tokens_and_clock_are_read_at_each_call(
    plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok = toys.wrapped()
    text = {"tokenize": False}

    def same() -> str:
        shown: str = tok.apply_chat_template(MESSAGES, **text)
        assert shown == plain.apply_chat_template(MESSAGES, **text)
        return shown

    for each in (tok, plain):
        each.chat_template = "{{ pad_token }} {{ strftime_now('%d %b %Y, %H') }} {{ strftime_now('%% %j') }}"
    assert "<|pad|>" in same()
    for each in (tok, plain):
        each.pad_token = "<|end|>"  # noqa: S105  # a token
        each.bos_token = "<|turn|>"  # noqa: S105  # a token
    assert "<|end|>" in same()

    class Clock:
        @staticmethod
        def now() -> Any:
            return SimpleNamespace(strftime=lambda form: f"midnight {form}")

    monkeypatch.setattr(chat_template_utils, "datetime", Clock)
    assert "midnight %j" not in same()
    assert "midnight %% %j" in same()
    assert toys.fallbacks(tok) == {}


@pytest.mark.fallback
def test_named_templates(plain: Any) -> None:
    tok = toys.wrapped()
    for each in (tok, plain):
        each.chat_template = {"default": "d{{ messages|length }}", "tool_use": "t", "odd": "{% autoescape true %}"}
    for keywords in ({}, {"tools": TOOLS}, {"tools": []}, {"chat_template": "tool_use"}, {"chat_template": "other"}):
        got = tok.apply_chat_template(MESSAGES, tokenize=False, **keywords)
        assert got == plain.apply_chat_template(MESSAGES, tokenize=False, **keywords)
    assert toys.calls(tok) == {"native": 5, "reference": 0}
    for each in (tok, plain):
        each.chat_template = {"one": "x"}
    for each in (tok, plain):
        with pytest.raises(ValueError, match="multiple chat templates with no default"):
            each.apply_chat_template(MESSAGES)
    assert toys.fallbacks(tok) == {"call:template": 1}


@pytest.mark.fallback
def test_no_template(plain: Any) -> None:
    tok = toys.wrapped()
    tok.chat_template = plain.chat_template = None
    outcomes = [toys.outcome(lambda tok=each: tok.apply_chat_template(MESSAGES)) for each in (tok, plain)]
    assert outcomes[0] == outcomes[1]
    assert toys.fallbacks(tok) == {"call:template": 1}


# --- the shared backend ---


@pytest.mark.fallback
def test_no_state_outlives_a_reference_call() -> None:
    tok = toys.wrapped()
    backend = tok.backend_tokenizer
    tok.apply_chat_template(MESSAGES, truncation=True, max_length=5, padding="max_length")
    tok.apply_chat_template(MESSAGES, tokenizer_kwargs={"split_special_tokens": True})
    assert (backend.truncation, backend.padding, backend.encode_special_tokens) == (None, None, False)
    with pytest.raises(ValueError, match="sideways"):
        tok.apply_chat_template(MESSAGES, padding="sideways", truncation=True, max_length=5)
    assert (backend.truncation, backend.padding, backend.encode_special_tokens) == (None, None, False)


@pytest.mark.fallback
def test_the_backend_s_own_state_stays(plain: Any) -> None:
    tok = toys.wrapped()
    backend = tok.backend_tokenizer
    backend.enable_truncation(max_length=7, stride=2, direction="left")
    backend.enable_padding(length=9, pad_id=3, pad_token="<|pad|>")  # noqa: S106  # a token
    before = (backend.truncation, backend.padding)
    wanted = plain.apply_chat_template(MESSAGES, return_dict=False)
    assert tok.apply_chat_template(MESSAGES, return_dict=False) == wanted
    assert tok.apply_chat_template(tuple(MESSAGES), return_dict=False) == wanted
    assert tok.apply_chat_template(MESSAGES, truncation=True, max_length=3, return_dict=False) == wanted[:3]
    assert (backend.truncation, backend.padding) == before
    encoding = tok.apply_chat_template(MESSAGES, return_dict=True)
    assert encoding.tokens() == plain.apply_chat_template(MESSAGES, return_dict=True).tokens()
    assert (backend.truncation, backend.padding) == before


@pytest.mark.fallback
def test_a_tokenizer_that_splits_special_tokens(plain: Any) -> None:
    tok = toys.wrapped()
    for each in (tok, plain):
        each.split_special_tokens = True
    assert tok.apply_chat_template(MESSAGES) == plain.apply_chat_template(MESSAGES)
    for each in (tok, plain):
        each.split_special_tokens = False
    assert tok.apply_chat_template(MESSAGES) == plain.apply_chat_template(MESSAGES)
    assert toys.fallbacks(tok) == {"tokenizer:split-special-tokens": 1}
    assert toys.calls(tok) == {"native": 1, "reference": 1}


# --- methods that are not the generic ones ---


@pytest.mark.fallback
def test_a_class_with_its_own_apply_chat_template() -> None:
    tok = toys.wrapped(toys.Overriding)
    assert tok.apply_chat_template(MESSAGES, tools=None) == [3, 7]
    assert tok.seen == (MESSAGES, None, True)
    assert tok.seen[0] is MESSAGES
    with pytest.raises(TypeError, match="unexpected keyword argument 'tokenize'"):
        tok.apply_chat_template(MESSAGES, tokenize=True)
    prompt = tok.turntrie.prompt(MESSAGES, add_generation_prompt=True)
    assert (prompt.tolist(), prompt.path, prompt.kept) == ([3, 7], "reference", 0)
    assert tok.turntrie.warmup() == {}
    assert toys.fallbacks(tok) == {"tokenizer:override:apply_chat_template": 3}
    assert toys.calls(tok) == {"native": 0, "reference": 3}


@pytest.mark.fallback
def test_a_class_that_encodes_in_its_own_way() -> None:
    tok, plain = toys.wrapped(toys.Reencoding), toys.fresh(toys.Reencoding)
    assert tok.apply_chat_template(MESSAGES) == plain.apply_chat_template(MESSAGES)
    assert toys.fallbacks(tok) == {"tokenizer:override:_encode_plus": 1}


@pytest.mark.fallback
@pytest.mark.parametrize("name", ["apply_chat_template", "get_chat_template", "_get_padding_truncation_strategies"])
def test_a_method_patched_on_the_base_class(name: str, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = toys.wrapped()
    tok.apply_chat_template(MESSAGES)
    original = getattr(BASE, name)
    seen = []

    def patched(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(name)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(BASE, name, patched)
    assert tok.apply_chat_template(MESSAGES) == plain.apply_chat_template(MESSAGES)
    assert seen == [name, name]
    assert toys.fallbacks(tok) == {f"tokenizer:override:{name}": 1}
    monkeypatch.undo()
    tok.apply_chat_template(MESSAGES)
    assert toys.calls(tok) == {"native": 2, "reference": 1}


@pytest.mark.fallback
def test_a_method_patched_on_the_instance(plain: Any) -> None:
    tok = toys.wrapped()
    tok._encode_plus = plain._encode_plus
    assert tok.apply_chat_template(MESSAGES) == plain.apply_chat_template(MESSAGES)
    assert toys.fallbacks(tok) == {"tokenizer:override:_encode_plus": 1}


@pytest.mark.fallback
def test_the_renderer_patched(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = toys.wrapped()
    module = reference.module("transformers.tokenization_utils_base")
    monkeypatch.setattr(module, "render_jinja_template", lambda **_: (["patched"], []))
    assert tok.apply_chat_template(MESSAGES, tokenize=False) == "patched"
    assert toys.fallbacks(tok) == {"tokenizer:override:render_jinja_template": 1}
    del plain


# --- rules of the reference ---

SPECIAL = [
    {"role": "user", "content": "x", "name": None},
    {"role": "assistant", "content": "y", "thinking": "t"},
    {"role": "assistant", "reasoning": "r", "content": "y"},
    {"reasoning_content": "rc", "role": "assistant", "content": None, "tool_calls": None, "thinking": None},
]


def test_null_keys_and_reasoning_fields_natively(plain: Any) -> None:
    tok = toys.wrapped()
    for end in range(1, len(SPECIAL) + 1):
        call = {"chat_template": "{{ messages }}{{ messages|tojson }}", "tokenize": False}
        assert tok.apply_chat_template(SPECIAL[:end], **call) == plain.apply_chat_template(SPECIAL[:end], **call)
    assert toys.calls(tok) == {"native": len(SPECIAL), "reference": 0}


def _unknown(flavour: str) -> type:
    """A base class whose messages reach the template changed in a way that nobody knows."""

    class Base:
        def apply_chat_template(self, messages: Any, chat_template: Any, tokenize: Any) -> str:
            if flavour == "raises":
                raise RuntimeError("no")
            if flavour == "everything":
                messages = [{**message, "seen": True} for message in messages]
            if flavour == "nulls":
                messages = [{key: value or "" for key, value in message.items()} for message in messages]
            environment = chat_template_utils.jinja2.sandbox.ImmutableSandboxedEnvironment()
            environment.filters["tojson"] = lambda x: __import__("json").dumps(x, ensure_ascii=False)
            del tokenize
            return str(environment.from_string(chat_template).render(messages=messages))

    return Base


@pytest.mark.parametrize("flavour", ["raises", "everything", "nulls"])
def test_a_reference_that_is_not_understood(flavour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "base", lambda: _unknown(flavour))
    rules = reference.rules()
    special = [rules.refuse([message]) for message in SPECIAL]
    if flavour == "nulls":
        assert rules.refuse(MESSAGES) is None
        assert rules.refuse([*MESSAGES, "x"]) == "value:message"  # type: ignore[list-item]
        assert special == ["value:null-key", "value:reasoning", "value:reasoning", "value:null-key"]
    else:
        assert rules.refuse(MESSAGES) == "reference:messages"
        assert special == ["reference:messages"] * 4


@pytest.mark.fallback
def test_messages_whose_rules_are_unknown_go_to_the_reference(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "rules", lambda: reference.Rules(0, special=False, reason=None))
    tok = toys.wrapped()
    for messages in (MESSAGES, SPECIAL):
        assert tok.apply_chat_template(messages) == plain.apply_chat_template(messages)
    assert toys.fallbacks(tok) == {"value:null-key": 1}
    assert toys.calls(tok) == {"native": 1, "reference": 1}
