"""Makes the demo's tokenizer: `python -m turntrie.demo.make [DIRECTORY]`.

A byte-level BPE of the usual kind: NFC, a split regex that separates words, numbers, punctuation and blanks, and
control tokens that the chat template uses. It is trained on conversations of other seeds than the one that the demo
replays. Needs `tokenizers`. Without a directory it rewrites the package's own data; the chat template beside them is
written by hand and left alone.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from turntrie.demo import TOKENIZER
from turntrie.demo.conversation import conversation

VOCABULARY = 6144
"""Entries, control tokens included."""

SEEDS = range(1000, 1040)
"""Of the conversations that it is trained on."""

# Words with one leading mark or blank, single digits, punctuation with its line ends, line ends, blanks.
SPLIT = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

# True: special, so `skip_special_tokens` drops it. The rest is text that a caller wants to see and to parse.
CONTROL = {
    "<|pad|>": True,
    "<|turn|>": True,
    "<|end|>": True,
    "<|think|>": False,
    "<|end_think|>": False,
    "<|call|>": False,
    "<|end_call|>": False,
    "<|result|>": False,
    "<|end_result|>": False,
}

CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "model_max_length": 1_000_000,
    "clean_up_tokenization_spaces": False,
    "pad_token": "<|pad|>",
    "eos_token": "<|end|>",
    "bos_token": None,
    "unk_token": None,
}


def corpus() -> Iterator[str]:
    """Every text of the training conversations."""
    for seed in SEEDS:
        messages, tools = conversation(turns=60, seed=seed)
        yield json.dumps(tools)
        for message in messages:
            yield message["content"]
            yield message.get("reasoning_content", "")
            for call in message.get("tool_calls", []):
                yield call["function"]["arguments"]


def train() -> str:
    """Trains the tokenizer and returns its tokenizer.json."""
    from tokenizers import (  # noqa: PLC0415  # an extra, and only this function needs it
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        trainers,
    )

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(CONTROL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    for content, special in CONTROL.items():
        token = AddedToken(content, special=special, normalized=False)
        if special:
            tokenizer.add_special_tokens([token])
        else:
            tokenizer.add_tokens([token])
    return str(tokenizer.to_str())


def main() -> None:
    """Writes tokenizer.json and tokenizer_config.json."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else TOKENIZER
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in (("tokenizer.json", train()), ("tokenizer_config.json", json.dumps(CONFIG, indent=2))):
        (directory / name).write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
