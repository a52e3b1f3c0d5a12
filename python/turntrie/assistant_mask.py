"""The assistant mask: which of the installed transformers' rules makes it, found out rather than looked up.

A chat template marks what an assistant said with `generation` tags; `return_assistant_tokens_mask=True` asks for a 1
for each such token. Where the tags' texts are, and which tokens that makes, native code repeats
(`src/template/tracker.rs`, `src/mask.rs`) under four combinations of rules. Once per process the installed method is
called on a toy tokenizer with templates on which the four differ, and the combination that gives all its masks is used.
If none does, masks are transformers' (`reference:assistant-mask`). Cost: some ten milliseconds, at the first mask.
"""

import itertools
import json
import re
import sys
from typing import Any

from turntrie import _native, reference
from turntrie.reason import Reason

# Where transformers warns that a template has no such tag; it looks at nothing else.
_TAG = re.compile(r"\{%-?\s*generation\s*-?%\}")
_RULES = (_native.RULE_MASK_OVERLAP, _native.RULE_LATE_TRACKER)

# Tokens of one character, but for `ab` (two) and the two bytes of an e with an accent; blanks have none.
_BACKEND = json.dumps(
    {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            ],
        },
        "post_processor": None,
        "decoder": None,
        "truncation": None,
        "padding": None,
        "model": {
            "type": "BPE",
            "vocab": {"a": 0, "b": 1, "c": 2, "\u00c3": 3, "\u00a9": 4, "ab": 5},
            "merges": [["a", "b"]],
        },
    }
)
_START, _END = "{% generation %}", "{% endgeneration %}"
_MACRO = f"{{% macro m(x) %}}c{_START}{{{{ x }}}}{_END}{{% endmacro %}}"
_PROBES = (
    f"{_START}ab{_END} c{_START}c{_END}c",
    f"ca{_START}b\u00e9a{_END}bc{_START}\u00e9{_END}{_START} c {_END}",
    f"{{{{ '' }}}}{_START}a{_END}c{_START}{_END} a{_START}{_END}b {_START} {_END}c{_START}c{_END}",
    f"c{_START}a{_START}b\u00e9{_END}c{_END}c{{% set x %}}c{_START}a{_END}{{% endset %}}{{{{ x }}}}c",
    f"{_MACRO}c{{{{ m('\u00e9c') }}}}c{{% filter upper|lower %}}c{_START}c{_END}{{% endfilter %}}c",
    f"c{{% for x in 'abc' %}}{_START}{{{{ x }}}}{_END}{{{{ x }}}}\u00e9 {{% endfor %}}",
)

_known: dict[tuple[Any, ...], int | Reason] = {}


def rules(source: str) -> int | Reason:
    """The `RULE_*` bits of a mask for this template, or why transformers makes it."""
    if _TAG.search(source) is None:
        return Reason("template:no-generation")  # all zeros, and transformers warns
    base: Any = reference.base()
    key = (base.apply_chat_template, sys.modules[base.__module__].render_jinja_template)
    found = _known.get(key)
    if found is None:
        found = _known[key] = _probe(base)
    return found


def _probe(base: Any) -> int | Reason:
    wanted = [_theirs(base, source) for source in _PROBES]
    engine = _native.Engine(_BACKEND, 0)
    for bits in itertools.product(*((0, bit) for bit in _RULES)):
        flags = sum(bits)
        ours = (engine.masked(_native.Template(source), [], {}, {}, flags).mask() for source in _PROBES)
        if None not in wanted and all(mask == want for mask, want in zip(ours, wanted, strict=True)):
            return flags
    return Reason("reference:assistant-mask")


def _theirs(base: Any, source: str) -> list[int] | None:
    """The mask that the installed transformers makes of a template's text on the toy tokenizer."""
    backend = sys.modules["tokenizers"].Tokenizer.from_str(_BACKEND)

    def encode(_: Any, text: str, **options: Any) -> Any:
        del options
        encoding = backend.encode(text, add_special_tokens=False)
        return reference.batch_encoding()({"input_ids": encoding.ids}, encoding, n_sequences=1)

    methods: dict[str, Any] = {"chat_template": None, "special_tokens_map": {}, "__call__": encode}
    blank: Any = object.__new__(type("Blank", (base,), methods))
    try:
        encoded = base.apply_chat_template(
            blank,
            [{"role": "user", "content": ""}],
            chat_template=source,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        mask: list[int] = encoded["assistant_masks"]
    except Exception:  # noqa: BLE001  # foreign code; whatever it raises, we do not understand it
        return None
    return mask
