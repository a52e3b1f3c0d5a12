"""Never stale: whatever changes on the live backend, the next call is what transformers gives for it now."""

from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

import toys
from toys import LONG
from turntrie.attachment import Attachment

Change = Any
TEXT = [{"role": "user", "content": "ABC e\u0301 12345 <turn> hello hello"}, *LONG]


def _add_through_the_tokenizer(tok: Any) -> None:
    tok.add_tokens(["hello", "<turn>"])


def _add_special(tok: Any) -> None:
    tok.add_special_tokens({"bos_token": "<turn>"})


def _add_on_the_backend(tok: Any) -> None:
    tok.backend_tokenizer.add_tokens([AddedToken("<turn>", lstrip=True, rstrip=True)])


def _mark_a_token_of_the_vocabulary(tok: Any) -> None:
    """No new id; but through the tokenizer, so that it is noticed."""
    known = next(token for token in ("ello", "llo", "he") if token in tok.get_vocab())
    tok.add_tokens([AddedToken(known, special=True)])


def _normalizer(tok: Any) -> None:
    tok.backend_tokenizer.normalizer = normalizers.Lowercase()


def _normalizer_changed_in_place(tok: Any) -> None:
    tok.backend_tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Strip()])
    tok.apply_chat_template(TEXT)
    tok.backend_tokenizer.normalizer[1] = normalizers.Lowercase()


def _pre_tokenizer(tok: Any) -> None:
    tok.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True)]
    )


def _model(tok: Any) -> None:
    backend = tok.backend_tokenizer
    vocabulary = backend.get_vocab(with_added_tokens=False)
    backend.model = models.BPE(vocab=vocabulary, merges=[], ignore_merges=True)


def _backend(tok: Any) -> None:
    made = Tokenizer.from_str(tok.backend_tokenizer.to_str())
    made.normalizer = normalizers.Replace("hello", "goodbye")
    tok._tokenizer = made


def _split(tok: Any) -> None:
    tok.split_special_tokens = True


def _post_processor(tok: Any) -> None:
    tok.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:1", pair="$A:1 $B:1", special_tokens=[]
    )


CHANGES = [
    _add_through_the_tokenizer,
    _add_special,
    _add_on_the_backend,
    _mark_a_token_of_the_vocabulary,
    _normalizer,
    _normalizer_changed_in_place,
    _pre_tokenizer,
    _model,
    _backend,
    _split,
    _post_processor,
]


@pytest.mark.fallback
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_backend(change: Change) -> None:
    names = ["input_ids", "token_type_ids", "attention_mask"]
    tok, plain = toys.wrapped(model_input_names=names), toys.fresh(model_input_names=names)
    before = dict(tok.apply_chat_template(TEXT, return_dict=True))
    assert before == dict(plain.apply_chat_template(TEXT, return_dict=True))
    for each in (tok, plain):
        change(each)
    for _ in range(2):
        assert dict(tok.apply_chat_template(TEXT, return_dict=True)) == dict(
            plain.apply_chat_template(TEXT, return_dict=True)
        )
    assert tok.turntrie.prompt(TEXT).tolist() == plain.apply_chat_template(TEXT, return_dict=False)
    assert set(toys.fallbacks(tok)) <= ({"tokenizer:split-special-tokens"} if change is _split else set())
    assert dict(plain.apply_chat_template(TEXT, return_dict=True)) != before


def test_a_change_undone_is_noticed_as_well(plain: Any) -> None:
    tok = toys.wrapped()
    normalizer = tok.backend_tokenizer.normalizer
    for number in range(4):
        for each in (tok, plain):
            each.backend_tokenizer.normalizer = normalizers.Lowercase() if number % 2 else normalizer
        assert tok.apply_chat_template(TEXT) == plain.apply_chat_template(TEXT)
    assert toys.calls(tok) == {"native": 4, "reference": 0}


def test_an_unchanged_backend_is_not_looked_at_twice() -> None:
    tok = toys.wrapped()
    tok.apply_chat_template(TEXT)
    engine = Attachment.of(tok).current()
    tok.add_tokens([])
    tok.encode("x", truncation=True, max_length=1)
    tok.pad_token = tok.eos_token = "<|pad|>"  # noqa: S105  # a token
    tok.apply_chat_template(TEXT)
    assert Attachment.of(tok).current() is engine
    assert toys.calls(tok) == {"native": 2, "reference": 0}


@pytest.mark.fallback
def test_a_backend_that_somebody_patched(plain: Any) -> None:
    tok = toys.wrapped()
    tok.apply_chat_template(TEXT)
    backend = tok.backend_tokenizer
    seen = []

    def encode_batch(*args: Any, **kwargs: Any) -> Any:
        seen.append(args)
        return type(backend).encode_batch(backend, *args, **kwargs)

    backend.encode_batch = encode_batch
    assert tok.apply_chat_template(TEXT) == plain.apply_chat_template(TEXT)
    assert len(seen) == 1
    del backend.encode_batch
    assert tok.apply_chat_template(TEXT) == plain.apply_chat_template(TEXT)
    assert toys.fallbacks(tok) == {"tokenizer:backend": 1}


@pytest.mark.fallback
def test_a_backend_that_is_no_backend(plain: Any) -> None:
    class Shim:
        """What engines put in the backend's place."""

        def __init__(self, backend: Any) -> None:
            self.backend = backend

        def __getattr__(self, name: str) -> Any:
            return getattr(self.backend, name)

    tok = toys.wrapped()
    tok._tokenizer = Shim(tok._tokenizer)
    assert tok.apply_chat_template(TEXT) == plain.apply_chat_template(TEXT)
    assert toys.fallbacks(tok) == {"tokenizer:backend": 1}


@pytest.mark.fallback
def test_a_component_written_in_python(plain: Any) -> None:
    class Words:
        def pre_tokenize(self, pretok: Any) -> None:
            pretok.split(lambda _, text: text.split(" ", "merged_with_next"))

    for tok in (wrapped := toys.wrapped(), plain):
        tok.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.PreTokenizer.custom(Words()), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    assert wrapped.apply_chat_template(TEXT) == plain.apply_chat_template(TEXT)
    assert toys.fallbacks(wrapped) == {"tokenizer:component": 1}


@pytest.mark.fallback
def test_a_model_that_draws_lots(plain: Any) -> None:
    tok = toys.wrapped()
    tok.apply_chat_template(TEXT)
    for each in (tok, plain):
        each.backend_tokenizer.model.dropout = 1.0  # no merge at all: the one dropout that is no lottery
    assert tok.apply_chat_template(TEXT) == plain.apply_chat_template(TEXT)
    tok.backend_tokenizer.model.dropout = 0.5
    assert len({tuple(tok.apply_chat_template(TEXT, return_dict=False)) for _ in range(5)}) > 1
    assert toys.fallbacks(tok) == {"tokenizer:dropout": 6}
