"""Where each message's text and tokens are.

Two oracles. Every message has words of its own, so a place in the text says whose it is. And transformers' own
character offsets say where tokens begin.
"""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import jinja2
import pytest
import transformers

import kinds
import real_data
import toys
import turntrie

FOLDER = real_data.folder("TURNTRIE_TEMPLATES")
TEMPLATES = sorted(FOLDER.glob("*.jinja")) if FOLDER else []
MODELS = [path for path in real_data.model_directories() if path.name in {"qwen3", "gemma-3", "llama-2", "gpt-oss"}]

PLAIN = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SEVERAL = (
    "{{ messages[0].content }}{% for m in messages[1:] %}({{ m.content }}){% endfor %}"
    "{% for m in messages|reverse %}{{ m.role }}{% endfor %}"
)
NOWHERE = "{% set t %}{% for m in messages %}{{ m.content }}{% endfor %}{% endset %}{{ t }}"


def word(at: int) -> str:
    """A word that no other message has."""
    return f"wörd{at:03}x"


def chat(length: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": f"{word(at)} and {word(at)} \N{GRINNING FACE}"} for at in range(length)]


def text_of(tok: Any, messages: list[dict[str, Any]], **keywords: Any) -> str:
    text: str = tok.apply_chat_template(messages, tokenize=False, **keywords)
    return text


def test_every_message_has_its_part() -> None:
    tok = toys.wrapped()
    tok.chat_template = PLAIN
    messages = chat(7)
    prompt = tok.turntrie.prompt(messages, add_generation_prompt=True)
    text = text_of(tok, messages, add_generation_prompt=True)
    assert (prompt.path, prompt.reason) == ("native", None)
    spans = prompt.spans
    assert [span.message for span in spans] == list(range(7))
    for span, message in zip(spans, messages, strict=True):
        assert text[span.start : span.end] == f"<|{message['role']}|>{message['content']}\n"
    assert text[spans[-1].end :] == "<|assistant|>"


def test_parts_are_in_the_order_of_the_text() -> None:
    tok = toys.wrapped()
    tok.chat_template = SEVERAL
    messages = chat(3)
    spans = tok.turntrie.prompt(messages).spans
    assert [span.message for span in spans] == [1, 2, 2, 1, 0]
    text = text_of(tok, messages)
    assert [text[span.start : span.end] for span in spans] == [
        *(f"({message['content']})" for message in messages[1:]),
        *("user", "assistant", "user"),
    ]


def test_the_same_object_twice_is_two_messages() -> None:
    tok = toys.wrapped()
    tok.chat_template = PLAIN
    one, two = chat(2)
    assert [span.message for span in tok.turntrie.prompt([one, two, one, two]).spans] == [0, 1, 2, 3]


def test_what_is_collected_first_is_nobody_s() -> None:
    tok = toys.wrapped()
    tok.chat_template = NOWHERE
    prompt = tok.turntrie.prompt(chat(3))
    assert prompt.spans == []
    assert set(prompt.message_index.tolist()) == {-1}


def test_loops_over_something_else_do_not_matter() -> None:
    """What a loop inside of an iteration writes is its message's, and what others write nobody's."""
    tok = toys.wrapped()
    tok.chat_template = (
        "{% macro count(messages) %}{% for m in messages %}.{% endfor %}{% endmacro %}"
        "{% for t in ['head'] %}{{ t }}{% endfor %}"
        "{% for m in messages %}[{% for c in m.parts %}<{{ c.x }}>{% endfor %}{{ m.role }}"
        "{% for next in messages[loop.index0 + 1:][:1] %}/{{ next.role }}{% endfor %}{{ count(messages) }}]{% endfor %}"
        "{% for t in ['tail'] %}{{ t }}{% endfor %}"
    )
    messages = [{"role": "a", "parts": [{"x": 1}, {"x": 2}]}, {"role": "b", "parts": []}]
    prompt = tok.turntrie.prompt(messages)
    assert (prompt.path, prompt.reason) == ("native", None)
    text = text_of(tok, messages)
    assert text == "head[<1><2>a/b..][b..]tail"
    assert [(span.message, text[span.start : span.end]) for span in prompt.spans] == [
        (0, "[<1><2>a/b..]"),
        (1, "[b..]"),
    ]


def test_a_list_under_the_name_of_messages_is_looked_through() -> None:
    tok = toys.wrapped()
    tok.chat_template = (
        "{% set messages = messages[1:] if messages[0].role == 'system' else messages %}"
        "{% for m in messages + [{'role': 'end', 'content': ''}] %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
    )
    messages = [{"role": "system", "content": "s"}, *chat(3)]
    spans = tok.turntrie.prompt(messages).spans
    assert [span.message for span in spans] == [1, 2, 3]


@pytest.mark.fallback
def test_a_prompt_of_transformers_has_none() -> None:
    tok = toys.wrapped()
    twice = "{% macro m() %}{% endmacro %}{% macro m() %}{% endmacro %}{{ messages[0].content }}"
    prompt = tok.turntrie.prompt(chat(3), chat_template=twice)
    assert prompt.path == "reference"
    assert (prompt.spans, prompt.message_index) == (None, None)


def test_later_changes_of_the_messages_do_not_show() -> None:
    tok = toys.wrapped()
    tok.chat_template = PLAIN
    messages = chat(4)
    prompt, again = tok.turntrie.prompt(messages), tok.turntrie.prompt(messages)
    wanted = again.spans
    messages[1]["content"] = "something else"
    del messages[2:]
    assert prompt.spans == wanted


def test_a_session_knows_where_its_messages_are() -> None:
    tok = toys.wrapped()
    tok.chat_template = PLAIN
    session = turntrie.Session(tok)
    messages = chat(6)
    session.prompt(messages[:2])
    prompt = session.extend(messages[2:])
    assert prompt.spans == tok.turntrie.prompt(messages).spans


def compare_tokens(tok: Any, messages: list[dict[str, Any]]) -> None:
    """Asserts that each id has the message in whose part its first character is."""
    prompt = tok.turntrie.prompt(messages, add_generation_prompt=True)
    assert (prompt.path, prompt.reason) == ("native", None)
    text = text_of(tok, messages, add_generation_prompt=True)
    encoding = tok(text, add_special_tokens=False, return_offsets_mapping=True)
    assert encoding["input_ids"] == prompt.tolist()
    index = prompt.message_index
    assert (index.dtype.name, index.shape) == ("int32", (len(prompt),))
    whose = [-1] * (len(text) + 1)
    for span in prompt.spans:
        whose[span.start : span.end] = [span.message] * (span.end - span.start)
    assert index.tolist() == [whose[start] for start, _ in encoding["offset_mapping"]]
    assert set(index.tolist()) >= set(range(len(messages)))


@pytest.mark.parametrize("name", kinds.KINDS)
def test_tokens_of_every_kind(name: str) -> None:
    tok = turntrie.wrap(kinds.KINDS[name]())
    tok.chat_template = PLAIN
    compare_tokens(tok, chat(9))


@pytest.mark.real_model
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_tokens_of_real_models(path: Path) -> None:
    tok = turntrie.wrap(transformers.AutoTokenizer.from_pretrained(path))
    compare_tokens(tok, chat(9))


def located(path: Path) -> tuple[int, int]:
    """How many words of messages a template prints, and how many of them lie in the part of their message."""
    tok = toys.wrapped()
    tok.chat_template = path.read_text(encoding="utf-8")
    messages = chat(5)
    try:
        prompt = tok.turntrie.prompt(messages)
    except (TypeError, ValueError, jinja2.TemplateError):  # this template wants other messages
        return 0, 0
    if prompt.path != "native":
        return 0, 0
    text, spans = text_of(tok, messages), prompt.spans
    assert all(a.end <= b.start for a, b in pairwise(spans)), path.stem
    printed = inside = 0
    for at in range(5):
        for found in re.finditer(word(at), text):
            printed += 1
            owners = {span.message for span in spans if span.start <= found.start() < span.end}
            assert owners <= {at}, (path.stem, at, owners)
            inside += owners == {at}
    return printed, inside


@pytest.mark.fallback
@pytest.mark.skipif(not TEMPLATES, reason="TURNTRIE_TEMPLATES is not set")
def test_real_templates_put_words_where_they_belong() -> None:
    counts = [located(path) for path in real_data.some(TEMPLATES, 4)]
    served = [(printed, inside) for printed, inside in counts if printed]
    assert len(served) > 0.7 * len(counts)
    # All of them, or none: some templates regroup messages before they go over them.
    assert all(inside in (0, printed) for printed, inside in served)
    assert sum(inside > 0 for _, inside in served) > 0.85 * len(served)
