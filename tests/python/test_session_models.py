"""Sessions and drop-in results on real models: native, turn by turn equal to transformers, in every kind of result.

Runs when TURNTRIE_MODELS names a folder of model directories; then each model named here has to be in it.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import transformers

import episodes
import real_data
import turntrie

NATIVE = ("qwen3", "qwen3.5", "llama-3.1", "deepseek-v3.1", "glm-4.6")

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(real_data.folder("TURNTRIE_MODELS") is None, reason="TURNTRIE_MODELS is not set"),
    pytest.mark.timeout(280),
]


def _directory(name: str) -> Path:
    models = real_data.folder("TURNTRIE_MODELS")
    assert models is not None
    assert (models / name / "tokenizer.json").exists(), f"TURNTRIE_MODELS has no model {name}"
    return models / name


@pytest.mark.parametrize("name", NATIVE)
def test_a_session(name: str) -> None:
    directory = _directory(name)
    plain, tok = (transformers.AutoTokenizer.from_pretrained(directory) for _ in range(2))
    turntrie.wrap(tok)
    recording = episodes.fitting(plain, episodes.own(turns=14, seed=21))
    given, previous = 0, []
    served: Counter[str] = Counter()
    with turntrie.Session(tok) as session:
        for end in recording.asks():
            call: dict[str, Any] = {"tools": recording.tools, "add_generation_prompt": True}
            if given:
                prompt = session.extend(recording.messages[given:end])
            else:
                prompt = session.prompt(recording.messages[:end], **call)
            given = end
            assert (prompt.path, prompt.reason) == ("native", None)
            assert prompt.tolist() == plain.apply_chat_template(recording.messages[:end], return_dict=False, **call)
            assert previous[: prompt.kept] + prompt.new_ids.tolist() == prompt.tolist()
            previous = prompt.tolist()
            served["native"] += 1
            got, want = (
                each.apply_chat_template(recording.messages[:end], return_dict=True, **call) for each in (tok, plain)
            )
            assert type(got) is type(want)
            assert list(got.items()) == list(want.items())
        assert prompt.reused > len(prompt) // 2
        assert got.tokens() == want.tokens()
        assert got.char_to_token(100) == want.char_to_token(100)
    assert tok.turntrie.stats()["calls"] == {"native": 2 * served["native"], "reference": 0}
