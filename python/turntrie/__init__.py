"""Growing chats to token ids, exactly as transformers does it, at the price of what is new.

    tok = turntrie.wrap(AutoTokenizer.from_pretrained(path))
    ids = tok.apply_chat_template(messages, tools=tools, add_generation_prompt=True)

`wrap` changes a tokenizer in place; `tok.turntrie` offers arrays, statistics and warm-up; `Session` takes only the new
messages of a turn. What cannot be proved equal to transformers is served by transformers, and counted with a reason.
"""

from typing import Any

from turntrie import backend, counters
from turntrie.explain import Explanation, explain
from turntrie.handle import Handle
from turntrie.prompt import MessageSpan, Prompt
from turntrie.reason import TemplateLimitError
from turntrie.session import Session
from turntrie.wrapping import is_wrapped, restore, wrap

__all__ = [
    "Explanation",
    "Handle",
    "MessageSpan",
    "Prompt",
    "Session",
    "TemplateLimitError",
    "explain",
    "is_wrapped",
    "restore",
    "stats",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  # only when asked for

        return version("turntrie")
    raise AttributeError(f"module 'turntrie' has no attribute {name!r}")


def stats() -> dict[str, Any]:
    """What happened in this process so far, over all tokenizers.

    Returns:
        `calls` by path, `fallbacks` by reason, `tokens` kept and encoded, `verifications` by `oracle:result`,
        `quarantines` that began, and `engines`: one entry of statistics for each engine in use.
    """
    return {**counters.process.snapshot(), "engines": [loaded.stats() for loaded in backend.loaded()]}
