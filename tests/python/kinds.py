"""Small tokenizers of every kind that cuts depend on, made here and loaded by transformers as any other.

Each differs from its neighbours in one thing: the normalizer, the way text is split, the model, the flags of the added
tokens, or how they overlap. All share one chat template, the demo's.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from turntrie.demo import TOKENIZER, conversation

GPT_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CONTROL = (
    *("<|turn|>", "<|end|>", "<|think|>", "<|end_think|>", "<|call|>", "<|end_call|>", "<|result|>", "<|end_result|>"),
    *("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<s>", "</s>"),
)
"""The control tokens of the demo's template, and those of common ones."""


def _corpus() -> Iterator[str]:
    """A little text of every sort."""
    messages, tools = conversation(turns=30, seed=77)
    yield json.dumps(tools)
    for message in messages:
        yield message["content"]


def _trained(tokenizer: Tokenizer, **options: Any) -> Tokenizer:
    """The tokenizer, trained: small, so that almost every word is several tokens."""
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False, **options)
    tokenizer.train_from_iterator(_corpus(), trainer)
    return tokenizer


@cache
def _byte_level_json(regex: str | None) -> str:
    tokenizer = Tokenizer(models.BPE())
    if regex:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(regex), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return str(_trained(tokenizer, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())).to_str())


def _byte_level(regex: str | None = GPT_SPLIT) -> Tokenizer:
    return Tokenizer.from_str(_byte_level_json(regex))


@cache
def _metaspace_json() -> str:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))  # noqa: S106  # a token
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return str(_trained(tokenizer, special_tokens=tokens, limit_alphabet=120).to_str())


def _metaspace(*, split: bool) -> Tokenizer:
    """Words marked by a visible blank; with `split` off the whole segment goes to the model at once."""
    document = json.loads(_metaspace_json())
    document["added_tokens"] = [token for token in document["added_tokens"] if token["content"] == "<unk>"]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    if split:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    else:
        tokenizer.pre_tokenizer = None
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def _with(tokenizer: Tokenizer, *extra: AddedToken, normalizer: Any = None, **flags: bool) -> Any:
    """A transformers tokenizer: the control tokens with these flags, and further added tokens."""
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens([AddedToken("<|pad|>", normalized=False, special=True)])
    tokenizer.add_tokens([AddedToken(text, **{"normalized": False, **flags}) for text in CONTROL])
    tokenizer.add_tokens(list(extra))
    names = {"bos_token": "<s>", "eos_token": "<|im_end|>", "pad_token": "<|pad|>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.chat_template = (TOKENIZER / "chat_template.jinja").read_text(encoding="utf-8")
    return fast


def _added(*texts: str, **flags: bool) -> list[AddedToken]:
    return [AddedToken(text, **{"normalized": False, **flags}) for text in texts]


def _template_processing() -> Any:
    """A tokenizer whose post-processor adds a token, which chat templates must not get twice."""
    tokenizer = _with(_byte_level())
    number = tokenizer.convert_tokens_to_ids("<|turn|>")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|turn|> $A", pair="<|turn|> $A $B", special_tokens=[("<|turn|>", number)]
    )
    return tokenizer


KINDS: dict[str, Callable[[], Any]] = {
    "split regex": lambda: _with(_byte_level()),
    "split regex, NFC": lambda: _with(_byte_level(), normalizer=normalizers.NFC()),
    "byte level's own regex": lambda: _with(_byte_level(None)),
    "template processing": _template_processing,
    "metaspace, split": lambda: _with(_metaspace(split=True)),
    "metaspace, whole segments": lambda: _with(_metaspace(split=False)),
    "strips on the right": lambda: _with(_byte_level(), rstrip=True),
    "strips on the left": lambda: _with(_byte_level(), lstrip=True),
    "strips on both sides": lambda: _with(_byte_level(), lstrip=True, rstrip=True),
    "single words": lambda: _with(_byte_level(), *_added("assistant", "user", single_word=True)),
    "normalized tokens": lambda: _with(_byte_level(), normalizer=normalizers.NFC(), normalized=True),
    "lowercase normalizer": lambda: _with(_byte_level(), normalizer=normalizers.Lowercase()),
    "nested tokens": lambda: _with(
        _byte_level(),
        *_added(
            "<|", "|>", "<|turn|>user", "<|turn|>assistant\n", "<|end|>\n", "<|end|>\n<|turn|>", "<|im_end|>", "<|im_"
        ),
    ),
    "runs of blanks as tokens": lambda: _with(
        _byte_level(), *_added(*("\n" * n for n in range(1, 9)), *(" " * n for n in range(2, 17)), "\t", "\r\n")
    ),
}
"""Names and makers; every call makes a fresh one."""
