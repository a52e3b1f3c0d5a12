# ruff: noqa: E501  # templates of one line
"""`return_assistant_tokens_mask`: mask, ids, types and order of keys are those of transformers.

Templates put the `generation` tag wherever one can stand: at the start and the end of a text, around nothing, around
half a token, in loops and branches, in macros, in blocks that are collected, inside itself. What a span means there
is transformers' own, oddities included, and both major versions have other ones. Tokenizers are of every kind, as
offsets depend on all of it: blanks that belong to no token, characters of several tokens, stripped blanks.
"""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

import kinds
import real_data
import toys
import turntrie
from test_parity_models import NOT_IN_4
from turntrie import _native, assistant_mask, reference
from turntrie.check.scenarios import scenarios

V5 = (
    "sanitize_control_tokens"
    in reference.Parameters.of(transformers.PreTrainedTokenizerBase.apply_chat_template).defaults
)
MASK = {"return_dict": True, "return_assistant_tokens_mask": True}
SAID = "{% generation %}{{ m.content }}{% endgeneration %}"
EACH = "{% for m in messages %}"
LOOP = (
    EACH
    + "<|turn|>{{ m.role }}\n{% if m.role == 'assistant' %}"
    + SAID
    + "{% else %}{{ m.content }}{% endif %}<|end|>{% endfor %}"
)
TEMPLATES = {
    "of answers": LOOP,
    "with blank control": EACH + "{{ m.role }} {%- generation -%} {{ m.content }} {%- endgeneration -%} \n {% endfor %}",
    "at the start": "{% generation %}{{ messages[0].content }}{% endgeneration %}x" + LOOP,
    "at the start, after an empty text": "{{ '' }}" + EACH + SAID + "{% endfor %}",
    "at the start, after nothing": "{{ nothing }}{# c #}{% if 1 %}{% endif %}" + EACH + SAID + "{% endfor %}",
    "of everything": EACH + SAID + "{% endfor %}",
    "of nothing": "x{% generation %}{% endgeneration %} y {% generation %}{% endgeneration %}" + LOOP + "{% generation %}{% endgeneration %}",
    "of nothing at the start": "{{ '' }}{% generation %}{% endgeneration %}" + LOOP,
    "of blanks": "x{% generation %}  {% endgeneration %}y{% generation %}\n{% endgeneration %}" + LOOP,
    "of half a word": "ass{% generation %}is{% endgeneration %}tant <|im_{% generation %}end|>{% endgeneration %}" + LOOP,
    "of numbers": EACH + "{{ loop.index }}{% generation %}{{ loop.index * 1000 }}{{ none }}{{ [1.5, m.role] }}{% endgeneration %}{{ 1e300|string if 0 else 2.5 }}{% endfor %}".replace("1e300|string if 0 else ", ""),
    "in itself": EACH + "{{ m.role }}{% generation %}a{{ m.content }}{% generation %}b {{ m.role }}{% endgeneration %}c{% endgeneration %}{% endfor %}",
    "with names of its own": EACH + "{% generation %}{% set t = m.content %}{{ t }}{% endgeneration %}{{ t }}{% endfor %}",
    "with a loop inside": "x{% generation %}" + EACH + "{{ m.content }}{% if loop.last %}{% else %}, {% endif %}{% endfor %}{% endgeneration %}y",
    "in a with": EACH + "{% with c = m.content %}{{ m.role }}{% generation %}{{ c }}{% endgeneration %}{% endwith %}{% endfor %}",
    "in a macro": "{% macro say(m) %}<|turn|>{{ m.role }}" + SAID + "<|end|>{% endmacro %}s" + EACH + "{{ say(m) }}\n{% endfor %}",
    "in a macro, trimmed": "{% macro say(m) %}  {{ m.role }}" + SAID + "{% endmacro %}" + EACH + "{{ say(m)|trim }}{{ say(m)|length }}{% endfor %}",
    "in a macro that another calls": "{% macro a(m) %}" + SAID + "{% endmacro %}{% macro b(m) %}x{{ a(m) }}{% generation %}y{{ a(m) }}{% endgeneration %}{% endmacro %}é" + EACH + "{{ b(m) }}{% endfor %}",
    "in a macro, in conditions": "{% macro a(m) %}" + SAID + "{% endmacro %}é" + EACH + "{% if a(m) and a(m) %}{{ m.role }}{% endif %}{% for c in a(m)[:2] %}{{ c }}{% endfor %}{{ a(m) if a(m) else '' }}{% endfor %}",
    "in a macro, not shown": "{% macro a(m) %}" + SAID + "{% endmacro %}é" + EACH + "{% set x = a(m) %}{{ m.role }}{% endfor %}",
    "in a block set": EACH + "{{ m.role }}{% set x %}y" + SAID + "{% endset %}{{ x }}{{ x }}{% endfor %}",
    "in a block set, filtered": EACH + "{{ m.role }}{% set x | trim | replace('e', 'eé') %} " + SAID + "{% endset %}{{ x }}{% endfor %}",
    "in a filter block": EACH + "{{ m.role }}{% filter trim|replace('e', 'eé') %} " + SAID + " {% endfilter %}z{% endfor %}",
    "around a filter block": EACH + "{{ m.role }}{% generation %}{% filter trim %} {{ m.content }} {% endfilter %}{% endgeneration %}z{% endfor %}",
    "around a block set": EACH + "{{ m.role }}{% generation %}{% set x %} {{ m.content }}{% endset %}{{ x }}{{ x }}{% endgeneration %}z{% endfor %}",
    "deep inside": "x" + "{% generation %}a" * 20 + "{{ messages[0].content }}" + "b{% endgeneration %}" * 20 + LOOP,
    "left by a break": EACH + "{{ m.role }}" + SAID + "{% if loop.index > 1 %}{% break %}{% endif %}.{% endfor %}",
    "text past ASCII": EACH + "日本{% generation %}é{{ m.content }}\U0001f44b\U0001f3fd{% endgeneration %}\u2028e\u0301{% endfor %}",
    "text of control characters": EACH + "\x00\ufdd0" + SAID + "\uffff{% endfor %}",
}  # fmt: skip
REFUSED = {
    "spelled so that transformers warns": ("{%+ generation %}x{% endgeneration %}", "template:no-generation"),
    "no tag": ("{{ messages[0].content }}", "template:no-generation"),
    "in the condition of a loop": (
        "{% macro a(m) %}" + SAID + "{% endmacro %}{% for m in messages if a(m) %}{{ m.content }}{% endfor %}",
        "template:for:macro-in-filter",
    ),
    "left by a break of its own": (EACH + "{% generation %}{% break %}{% endgeneration %}{% endfor %}", "template:generation:break"),
    "an error inside": (EACH + "{% generation %}{{ m.content + 1 }}{% endgeneration %}{% endfor %}", "render:"),
}  # fmt: skip


def conversation(*contents: str) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]


CONVERSATIONS = [
    conversation("Which files?", "Three: a.py, b.py\n and c.py.", "Delete them.  ", "Done."),
    conversation(" lead", " trail \n\n", "", ""),
    conversation("", "x"),
    conversation("日本語 é\u0301", "\U0001f44b\U0001f3fd ﬁne naïve\xa0Ünï", "e\u0301\u0301", "\u2028\t ß"),
    conversation("<|end|> <|im_start|>x", "<think> a </think><|end|>", "  <|turn|>", "\n<|end|>  \n"),
    conversation("a" * 30, "assistantassistant user" * 3, " ", "\r\n\r\n  x  "),
    conversation("\ufdd0\x00\uffff", "{% generation %}\x00"),
    # Long enough for segments, some of them in ASCII only, some ending in blanks or in half a control token.
    conversation(
        *(
            text * repeat
            for repeat in (9, 40)
            for text in ("words ", "answer 日本é ", "\n", "x\u2028  <|en", "a\tb  ", "e\u0301")
        )
    ),
]


def outcome(tok: Any, messages: Any, **keywords: Any) -> Any:
    return toys.outcome(lambda: tok.apply_chat_template(copy.deepcopy(messages), **{**MASK, **keywords}))


@cache
def pair(kind: str) -> tuple[Any, Any]:
    return kinds.KINDS[kind](), turntrie.wrap(kinds.KINDS[kind](), verify="off")


@pytest.mark.parametrize("kind", kinds.KINDS)
@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.fallback
def test_mask(name: str, kind: str) -> None:
    plain, tok = pair(kind)
    covered = raised = 0
    for messages in CONVERSATIONS:
        before = real_data.fallbacks()
        wanted = outcome(plain, messages, chat_template=TEMPLATES[name])
        assert outcome(tok, messages, chat_template=TEMPLATES[name]) == wanted, messages
        fell = set(real_data.fallbacks() - before)
        if wanted[0] == "returned":
            assert not fell
            data = dict(wanted[2])
            assert [key for key, _ in wanted[2]][-1] == "assistant_masks"
            covered += sum(data["assistant_masks"])
        else:  # transformers 4 asks for the token of the character before the first
            assert fell == {"render:empty-generation"}
            raised += 1
    assert covered > 0 or (raised == len(CONVERSATIONS) and not V5)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.fallback
def test_refused(name: str) -> None:
    plain, tok = pair("split regex")
    source, reason = REFUSED[name]
    before = real_data.fallbacks()
    for messages in CONVERSATIONS:
        wanted = outcome(plain, messages, chat_template=source)
        assert outcome(tok, messages, chat_template=source) == wanted
    (found,) = real_data.fallbacks() - before
    assert found.startswith(reason)


@pytest.mark.fallback
@pytest.mark.parametrize(
    "keywords",
    [
        {"return_dict": False},
        {"tokenize": False},
        {"tokenize": False, "return_dict": False},
        {"continue_final_message": True},
        {"return_assistant_tokens_mask": 1},
    ],
    ids=str,
)
def test_calls_that_transformers_refuses_or_reads_in_its_own_way(keywords: dict[str, Any]) -> None:
    plain, tok = pair("split regex")
    before = real_data.fallbacks()
    wanted = outcome(plain, CONVERSATIONS[0], chat_template=LOOP, **keywords)
    assert outcome(tok, CONVERSATIONS[0], chat_template=LOOP, **keywords) == wanted
    assert set(real_data.fallbacks() - before) <= {"call:assistant-mask", "call:text-dict"}
    assert real_data.fallbacks() != before


@pytest.mark.fallback
@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"truncation": True, "max_length": 12}, "call:truncation"),
        ({"padding": "max_length", "max_length": 200}, "call:padding"),
        ({"return_tensors": "np"}, "call:tensors"),
    ],
    ids=str,
)
def test_a_mask_of_another_shape_is_made_by_transformers(keywords: dict[str, Any], reason: str) -> None:
    plain, tok = pair("split regex")
    before = real_data.fallbacks()
    call = {**MASK, "chat_template": LOOP, **keywords}
    want, got = (each.apply_chat_template(CONVERSATIONS[0], **call) for each in (plain, tok))
    assert [(key, np.asarray(value).tolist()) for key, value in want.items()] == [
        (key, np.asarray(value).tolist()) for key, value in got.items()
    ]
    assert set(real_data.fallbacks() - before) == {reason}


def test_a_batch() -> None:
    plain, tok = pair("metaspace, split")
    for batch in (CONVERSATIONS, CONVERSATIONS[:1]):
        wanted = outcome(plain, batch, chat_template=LOOP)
        assert outcome(tok, batch, chat_template=LOOP) == wanted
        assert len(dict(wanted[2])["assistant_masks"]) == len(batch)


def test_a_mask_that_is_asked_for_as_none_is_none() -> None:
    plain, tok = pair("split regex")
    for value in (None, False):
        wanted = outcome(plain, CONVERSATIONS[0], chat_template=LOOP, return_assistant_tokens_mask=value)
        assert outcome(tok, CONVERSATIONS[0], chat_template=LOOP, return_assistant_tokens_mask=value) == wanted
        assert "assistant_masks" not in dict(wanted[2])


def test_the_result_is_a_whole_batch_encoding() -> None:
    plain, tok = pair("split regex")
    want, got = (each.apply_chat_template(CONVERSATIONS[0], chat_template=LOOP, **MASK) for each in (plain, tok))
    assert type(got) is type(want)
    assert {type(value) for value in got["assistant_masks"]} == {int}
    assert got.tokens() == want.tokens()
    assert [got.token_to_chars(i) for i in range(len(got["input_ids"]))] == [
        want.token_to_chars(i) for i in range(len(want["input_ids"]))
    ]
    got["assistant_masks"].clear()
    again = tok.apply_chat_template(CONVERSATIONS[0], chat_template=LOOP, **MASK)
    assert again["assistant_masks"] == want["assistant_masks"]


def test_a_render_without_mask_is_what_it_was() -> None:
    plain, tok = pair("split regex")
    for _ in range(2):
        for keywords in ({}, MASK):
            call = {"chat_template": LOOP, "return_dict": True, **keywords}
            want, got = (each.apply_chat_template(CONVERSATIONS[0], **call) for each in (plain, tok))
            assert dict(got) == dict(want)


# --- the rules of the installed transformers ---


def test_the_rules_are_found() -> None:
    found = assistant_mask.rules(LOOP)
    assert not isinstance(found, str)
    assert (found & _native.RULE_LATE_TRACKER == 0) is V5
    assert bool(found & _native.RULE_MASK_OVERLAP) is V5


@pytest.mark.fallback
def test_rules_that_are_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, tok = pair("split regex")
    monkeypatch.setattr(assistant_mask, "_known", {})
    theirs = assistant_mask._theirs
    monkeypatch.setattr(assistant_mask, "_theirs", lambda base, source: [1 - m for m in theirs(base, source) or []])
    before = real_data.fallbacks()
    assert outcome(tok, CONVERSATIONS[0], chat_template=LOOP) == outcome(plain, CONVERSATIONS[0], chat_template=LOOP)
    assert set(real_data.fallbacks() - before) == {"reference:assistant-mask"}


def test_every_rule_is_told_from_the_others() -> None:
    engine = _native.Engine(assistant_mask._BACKEND, 0)
    seen = {
        tuple(
            tuple(engine.masked(_native.Template(source), [], {}, {}, flags).mask() or ())
            for source in assistant_mask._PROBES
        )
        for flags in (
            0,
            _native.RULE_LATE_TRACKER,
            _native.RULE_MASK_OVERLAP,
            _native.RULE_LATE_TRACKER | _native.RULE_MASK_OVERLAP,
        )
    }
    assert len(seen) == 4


# --- verification ---


@pytest.mark.fallback
def test_the_first_mask_of_a_template_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = turntrie.wrap(kinds.KINDS["split regex"](), verify="shapes")
    for _ in range(2):
        assert outcome(tok, CONVERSATIONS[0], chat_template=LOOP)[0] == "returned"
    assert tok.turntrie.stats()["verifications"]["full:equal"] == 1
    monkeypatch.setattr(assistant_mask, "rules", lambda _: 0 if V5 else _native.RULE_MASK_OVERLAP)
    other = TEMPLATES["of nothing"]
    want = outcome(pair("split regex")[0], CONVERSATIONS[0], chat_template=other)
    assert outcome(tok, CONVERSATIONS[0], chat_template=other) == want
    assert outcome(tok, CONVERSATIONS[0], chat_template=other) == want
    assert toys.fallbacks(tok) == {"quarantine:call": 1}


# --- real data ---

FOLDER = real_data.folder("TURNTRIE_TEMPLATES")
REAL = [path for path in sorted(FOLDER.glob("*.jinja")) if "endgeneration" in path.read_text("utf-8")] if FOLDER else []


def _compared(plain: Any, tok: Any, source: str, every: int) -> int:
    served = 0
    for scenario in list(scenarios())[::every]:
        call = {"chat_template": source, "tools": scenario.tools, **scenario.kwargs}
        before = real_data.fallbacks()
        wanted = outcome(plain, scenario.messages, **call)
        assert outcome(tok, scenario.messages, **call) == wanted, scenario.name
        fell = real_data.fallbacks() - before
        assert not any(reason.startswith(("panic", "reference", "call")) for reason in fell), fell
        served += not fell
    return served


@pytest.mark.fallback
@pytest.mark.usefixtures("frozen_clock")
@pytest.mark.parametrize("path", real_data.some(REAL, 3), ids=lambda path: path.stem)
def test_real_templates(path: Path) -> None:
    for kind in ("split regex, NFC", "metaspace, whole segments"):
        assert _compared(*pair(kind), path.read_text(encoding="utf-8"), 17) > 0


@pytest.mark.fallback
@pytest.mark.usefixtures("frozen_clock")
@pytest.mark.parametrize("path", real_data.some(real_data.model_directories(), 5), ids=lambda path: path.name)
def test_real_models(path: Path) -> None:
    if not V5 and path.name in NOT_IN_4:
        pytest.skip("transformers 4 cannot load it")
    tok = transformers.AutoTokenizer.from_pretrained(path)
    calls = [(m, {"chat_template": TEMPLATES[name]}) for name, m in zip(TEMPLATES, CONVERSATIONS * 9, strict=False)]
    if REAL:
        source = REAL[-1].read_text(encoding="utf-8")
        shapes = list(scenarios())[::61]
        calls += [(s.messages, {"chat_template": source, "tools": s.tools, **s.kwargs}) for s in shapes]
    wanted = [outcome(tok, messages, **keywords) for messages, keywords in calls]
    turntrie.wrap(tok, verify="off")
    refused = reference.original(tok).watch.refuse(tok)
    for (messages, keywords), want in zip(calls, wanted, strict=True):
        before = real_data.fallbacks()
        assert outcome(tok, messages, **keywords) == want, keywords
        if want[0] == "returned":
            fell = set(real_data.fallbacks() - before)
            assert fell == ({refused} if refused else set())
