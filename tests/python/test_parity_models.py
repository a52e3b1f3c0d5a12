"""Real models, turn by turn: every outcome equals that of transformers, and the models we promise are native.

Each model is loaded once, in one process (`pytest_xdist_make_scheduler` in conftest.py). The reference outcomes of all
episodes are taken from the tokenizer as it came; then the same object is wrapped in place and has to give them again.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import transformers

import episodes
import real_data
import turntrie
from episodes import Call
from turntrie.check.scenarios import scenarios
from turntrie.cli import recordings

pytestmark = [pytest.mark.real_model, pytest.mark.fallback, pytest.mark.usefixtures("frozen_clock")]

NATIVE = frozenset({"qwen3", "qwen3.5", "qwen3-coder", "llama-3.1", "deepseek-v3.1", "glm-4.6"})
"""Models for which every call that the template accepts must be served natively."""

NOT_IN_4 = frozenset({"gemma-4", "glm-5"})
"""Model directories that transformers 4 cannot load."""

RECORDED = {
    "tau_bench_airline.jsonl.xz": 1,
    "nemo_gym_swe.jsonl.xz": 2,
    "crosswoz_zh.jsonl.xz": 1,
    "unicode_stress.jsonl": 12,
}
"""Recorded conversations to replay: files, and how many of each."""

MAJOR = int(transformers.__version__.partition(".")[0])


class Model(NamedTuple):
    """A model whose tokenizer is wrapped, with the outcomes it gave before."""

    name: str
    tokenizer: Any
    calls: dict[str, list[Call]]
    expected: dict[str, list[tuple[Any, ...]]]


def _episodes(tokenizer: Any) -> dict[str, list[Call]]:
    """The episodes of a model, in shapes that its template takes."""
    one, two, three = (episodes.fitting(tokenizer, episodes.own(turns=9, seed=seed)) for seed in (11, 12, 13))
    builders: dict[str, Callable[[], list[Call]]] = {
        "growing": lambda: episodes.growing(one),
        "interleaved": lambda: episodes.interleaved(one, two, three),
        "edited": lambda: episodes.edited(two.first(5)),
        "retooled": lambda: episodes.retooled(three.first(5)),
        "switched": lambda: episodes.switched(one.first(6)),
        "returned": lambda: episodes.returned(two),
        "odd texts": episodes.odd_texts,
        "shapes": lambda: [Call(s.messages, s.tools, s.kwargs) for s in scenarios()],
        "recorded": lambda: [call for recording in _recorded(tokenizer) for call in episodes.growing(recording)],
    }
    return {name: build() for name, build in builders.items()}


def _recorded(tokenizer: Any) -> Iterator[recordings.Recording]:
    """A few recorded conversations, their first turns."""
    folder = real_data.folder("TURNTRIE_CONVERSATIONS")
    if folder is None:
        return
    for name, count in RECORDED.items():
        for _, recording in zip(range(count), recordings.read(folder / name), strict=False):
            short = recording.first(8)
            spellings: tuple[recordings.Arguments, ...] = ("dict", "str")
            for arguments in spellings:
                spelled = short.spelled(arguments)
                probe = Call(spelled.messages, spelled.tools, {"tokenize": False})
                if episodes.outcome(tokenizer, probe)[0] == "returned":
                    yield spelled
                    break


@pytest.fixture(scope="module", params=real_data.model_directories(), ids=lambda path: path.name)
def model(request: pytest.FixtureRequest, frozen_clock: None) -> Iterator[Model]:
    """A model: loaded, asked for all reference outcomes, wrapped."""
    del frozen_clock
    directory: Path = request.param
    if MAJOR < 5 and directory.name in NOT_IN_4:
        pytest.skip("transformers 4 cannot load it")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(directory))
    calls = _episodes(tokenizer)
    expected = {name: [episodes.outcome(tokenizer, call) for call in calls[name]] for name in calls}
    yield Model(directory.name, turntrie.wrap(tokenizer), calls, expected)
    del tokenizer, calls, expected
    gc.collect()


EPISODES = ("growing", "interleaved", "edited", "retooled", "switched", "returned", "odd texts", "shapes", "recorded")


@pytest.mark.parametrize("episode", EPISODES)
def test_every_outcome_is_that_of_transformers(model: Model, episode: str) -> None:
    served = episodes.compare(model.tokenizer, model.calls[episode], model.expected[episode])
    real_data.RAN.setdefault(model.name, Counter()).update(served)
    if model.name in NATIVE:
        assert set(served) <= {"native"}, f"{model.name} must be native: {served}"
    if episode == "growing":
        assert served, "not one call of the growing conversation was compared"


@pytest.mark.skipif(not real_data.folder("TURNTRIE_CONVERSATIONS"), reason="needs recorded conversations")
@pytest.mark.parametrize("name", sorted(NATIVE))
def test_a_long_recorded_episode_is_native(name: str) -> None:
    folders = {path.name: path for path in real_data.model_directories()}
    folder = real_data.folder("TURNTRIE_CONVERSATIONS")
    if name not in folders or folder is None:
        pytest.skip("needs the model and recorded conversations")
    plain = transformers.AutoTokenizer.from_pretrained(str(folders[name]))
    wrapped = turntrie.wrap(transformers.AutoTokenizer.from_pretrained(str(folders[name])))
    recording = next(r for r in recordings.read(folder / "long_chained.jsonl.xz") if "agent/turns50" in r.name)
    recording = episodes.fitting(plain, recording.first(30))
    kept = total = 0
    for call in episodes.growing(recording):
        expected = call.on(plain)
        prompt = wrapped.turntrie.prompt(call.messages, tools=call.tools, add_generation_prompt=True)
        assert (prompt.path, prompt.reason) == ("native", None)
        assert prompt.tolist() == expected
        assert prompt.ids[prompt.kept :].tolist() == prompt.new_ids.tolist()
        kept, total = kept + prompt.kept, total + len(expected)
    assert kept > total / 2, "most of the history was encoded again"
