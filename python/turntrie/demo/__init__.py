"""What the demo runs on when nothing else is given: a small tokenizer, a chat template, and a conversation.

All of it is made here. The tokenizer is a byte-level BPE trained on text that `writer` invents, the chat template is
written for it, and the conversation is generated from a seed when it is asked for. So the demo, the tests and the
benchmarks need no download, and every figure they print can be had again from the same seed.

`python -m turntrie.demo.make` makes the tokenizer again.
"""

from pathlib import Path

from turntrie.demo.conversation import Conversation, conversation

__all__ = ["TOKENIZER", "Conversation", "conversation"]

TOKENIZER = Path(__file__).parent / "tokenizer"
"""A directory for `AutoTokenizer.from_pretrained`: tokenizer.json, tokenizer_config.json, chat_template.jinja."""
