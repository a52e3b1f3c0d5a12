"""A native BatchEncoding is the one transformers makes, and what costs a full encode comes only when asked for."""

# ruff: noqa: RUF005, RUF015  # the many ways to use a list are what is tested

import copy
import logging
import pickle
from typing import Any

import pytest
import transformers

import toys
import turntrie
from toys import MESSAGES

NAMES = [
    ["input_ids", "attention_mask"],
    ["input_ids", "token_type_ids", "attention_mask"],
    ["attention_mask", "input_ids"],
    ["input_ids"],
]


def _pair(names: list[str] | None = None) -> tuple[Any, Any, Any]:
    keywords = {} if names is None else {"model_input_names": names}
    tok, plain = toys.wrapped(**keywords), toys.fresh(**keywords)
    call = {"return_dict": True, "add_generation_prompt": True}
    return tok, tok.apply_chat_template(MESSAGES, **call), plain.apply_chat_template(MESSAGES, **call)


@pytest.mark.parametrize("names", NAMES)
def test_the_data(names: list[str]) -> None:
    tok, got, want = _pair(names)
    assert type(got) is type(want) is transformers.BatchEncoding
    assert list(got.items()) == list(want.items())
    assert type(got.data) is type(want.data)
    assert [type(value) for value in got.values()] == [list] * len(got)
    assert got.n_sequences == want.n_sequences
    assert got.is_fast == want.is_fast
    assert vars(got).keys() == vars(want).keys()
    assert got.input_ids == want.input_ids
    assert toys.calls(tok) == {"native": 1, "reference": 0}
    assert got._encodings._pending is not None, "the encoding was made although nobody asked"


def test_what_needs_the_encoding() -> None:
    _, got, want = _pair()
    assert got.tokens() == want.tokens()
    assert got._encodings._pending is None
    assert got.word_ids() == want.word_ids()
    assert got.sequence_ids() == want.sequence_ids()
    for char in range(0, 60, 7):
        assert got.char_to_token(char) == want.char_to_token(char)
        assert got.char_to_word(char) == want.char_to_word(char)
    for token in range(0, len(want["input_ids"]), 5):
        assert got.token_to_chars(token) == want.token_to_chars(token)
        assert got.token_to_word(token) == want.token_to_word(token)
    assert got[0].offsets == want[0].offsets
    assert len(got.encodings) == len(want.encodings) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda encodings: list(encodings)[0],
        lambda encodings: encodings[0],
        lambda encodings: encodings[-1:][0],
        lambda encodings: ([] + encodings)[0],
        lambda encodings: (encodings + [])[0],
        lambda encodings: [*encodings][0],
        lambda encodings: encodings.copy()[0],
        lambda encodings: encodings.pop(),
        lambda encodings: next(iter(encodings)),
        lambda encodings: next(reversed(encodings)),
        lambda encodings: (encodings * 2)[1],
        lambda encodings: max(encodings, key=id),
        lambda encodings: [].extend(encodings) or encodings[0],
        lambda encodings: tuple(encodings)[0],
        lambda encodings: copy.deepcopy(encodings)[0],
    ],
)
def test_the_list_of_encodings_is_a_list(use: Any) -> None:
    _, got, want = _pair()
    assert isinstance(got.encodings, list)
    assert len(got.encodings) == 1
    assert bool(got.encodings)
    assert use(got.encodings).offsets == want[0].offsets


def test_comparisons_and_text_of_the_list_of_encodings() -> None:
    _, got, want = _pair()
    assert got.encodings != []
    assert repr(got.encodings) == repr(want.encodings)
    _, got, _ = _pair()
    assert got.encodings != []
    assert got.encodings[0] in got.encodings
    got.encodings.clear()
    assert len(got.encodings) == 0
    assert not got.encodings


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol: int) -> None:
    _, got, want = _pair()
    got, want = (pickle.loads(pickle.dumps(each, protocol)) for each in (got, want))
    assert type(got.encodings) is type(want.encodings) is list
    assert dict(got) == dict(want)
    assert got.encodings[0].offsets == want.encodings[0].offsets


def test_copies() -> None:
    for copied in (copy.copy, copy.deepcopy, lambda encoding: encoding.copy()):
        _, got, want = _pair()
        assert copied(got).tokens() == copied(want).tokens()
        assert dict(copied(got)) == dict(want)


def test_as_tensors() -> None:
    _, got, want = _pair()
    got, want = (each.convert_to_tensors("np") for each in (got, want))
    assert [(key, value.tolist(), value.dtype) for key, value in got.items()] == [
        (key, value.tolist(), value.dtype) for key, value in want.items()
    ]


def test_a_tokenizer_that_has_changed_meanwhile() -> None:
    tok, got, _ = _pair()
    tok.add_tokens(["Which", "files"])
    with pytest.raises(RuntimeError, match="the tokenizer has changed"):
        got.tokens()
    assert len(got["input_ids"]) > 0


def test_a_tokenizer_that_was_restored_meanwhile() -> None:
    tok, got, want = _pair()
    turntrie.restore(tok)
    assert got.tokens() == want.tokens()
    assert not set(vars(tok)) - set(vars(toys.fresh()))


def test_the_encoding_leaves_no_trace_on_the_backend() -> None:
    tok, got, _ = _pair()
    tok.backend_tokenizer.enable_truncation(max_length=3)
    before = tok.backend_tokenizer.truncation
    assert len(got.tokens()) == len(got["input_ids"])
    assert tok.backend_tokenizer.truncation == before


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.mark.parametrize("return_dict", [True, False])
def test_the_warning_of_a_prompt_that_is_too_long(return_dict: bool) -> None:
    logger = logging.getLogger("transformers.tokenization_utils_base")
    level = logger.level
    logger.setLevel(logging.WARNING)
    heard = []
    for tok in (toys.wrapped(), toys.fresh()):
        tok.model_max_length = 11
        logger.addHandler(handler := _Heard())
        try:
            for _ in range(2):  # it comes once
                tok.apply_chat_template(MESSAGES, return_dict=return_dict)
            tok.apply_chat_template(MESSAGES, tokenize=False)
            tok.deprecation_warnings.clear()
            tok.apply_chat_template(MESSAGES, max_length=3, return_dict=return_dict)
        finally:
            logger.removeHandler(handler)
        heard.append((handler.texts, dict(tok.deprecation_warnings)))
    logger.setLevel(level)
    assert heard[0] == heard[1]
    assert len(heard[0][0]) == 1
    assert "Token indices sequence length is longer" in heard[0][0][0]
