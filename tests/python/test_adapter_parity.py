"""Every adapter, turn by turn: the ids, or the exception, of the system's own path, and natively.

In CI a few models and the first turns of a few conversations of each kind. All of them, by hand:
`python benches/adapters_parity.py --help`.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import pytest

import adapter_models
import episodes
import real_data
from adapter_paths import SYSTEMS
from turntrie.adapters import openai
from turntrie.cli import recordings
from turntrie.cli.recordings import Recording

TURNS = 3
RECORDED = {
    "nemo_gym_swe.jsonl.xz": 1,
    "nemo_gym_tools.jsonl.xz": 2,
    "nemo_gym_chat.jsonl.xz": 1,
    "tau_bench_airline.jsonl.xz": 1,
    "openhands_sdk_requests.jsonl.xz": 2,
    "bfcl_parallel.jsonl.xz": 2,
    "api_bank.jsonl.xz": 1,
    "crosswoz_zh.jsonl.xz": 1,
    "unicode_stress.jsonl": 6,
}


@cache
def conversations(name: str) -> list[Recording]:
    """Those of `_conversations`."""
    return list(_conversations(name))


def _conversations(name: str) -> Iterator[Recording]:
    """Generated and recorded conversations, their first turns, in a spelling that the template renders."""
    plain = adapter_models.plain(name)
    yield episodes.fitting(plain, episodes.own(turns=14, seed=31))
    folder = real_data.folder("TURNTRIE_CONVERSATIONS")
    for file, count in RECORDED.items() if folder else ():
        for recording in islice(recordings.read(folder / file), count):
            yield spelled(plain, recording.first(TURNS))


def spelled(plain: Any, recording: Recording) -> Recording:
    """The recording as the template takes it: arguments parsed or as text, tidied if need be; else as it came."""
    for given in (recording, tidied(recording)):
        for arguments in ("dict", "str"):
            shape = given.spelled(arguments)
            call = episodes.Call(shape.messages, shape.tools, {"tokenize": False})
            if episodes.outcome(plain, call)[0] == "returned":
                return shape
    return recording


def tidied(recording: Recording) -> Recording:
    """Contents that are texts, and ids of nine letters and digits: a few templates demand that."""

    def short(name: str) -> str:
        return hashlib.sha256(name.encode()).hexdigest()[:9]

    messages = openai.chat_messages(recording.messages, arguments="as-is", images="mark")
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["id"] = short(call.get("id", ""))
        if "tool_call_id" in message:
            message["tool_call_id"] = short(message["tool_call_id"])
    return recording._replace(messages=messages)


def outcome(call: Callable[..., Any], *args: Any, **keywords: Any) -> tuple[Any, ...]:
    """Ids and their type, or class and text of the exception."""
    try:
        value = call(*args, **keywords)
    except Exception as error:  # noqa: BLE001  # whatever it is must be the same on both sides
        return ("raised", type(error), str(error))
    assert set(map(type, value)) <= {int}, "ids must be plain integers"
    return ("returned", type(value), value)


ALL = [(name, system) for name in ("demo", "qwen3") for system in SYSTEMS]
SOME = [(name, system) for name in ("qwen3.5", "glm-4.7-flash") for system in ("slime", "areal incremental", "nemo")]


@pytest.mark.fallback  # for turns that a template refuses: then transformers has to speak
@pytest.mark.parametrize(
    ("name", "system"),
    [
        pytest.param(name, system, marks=parameter.marks, id=f"{name}-{system}")
        for name, system in (*ALL, *SOME)
        for parameter in adapter_models.needs(name)
    ],
)
def test_turn_by_turn(name: str, system: str) -> None:
    plain, tok = adapter_models.plain(name), adapter_models.ours(name)
    returned = 0
    for recording in conversations(name):
        own, ours = SYSTEMS[system].own(plain), SYSTEMS[system].ours(tok)
        for end in recording.asks():
            messages = recording.messages[:end]
            wanted = outcome(own, messages, recording.tools)
            before = real_data.fallbacks()
            assert outcome(ours, messages, recording.tools) == wanted, f"{recording.name}, {end} messages"
            if wanted[0] == "returned":
                reasons = set(real_data.fallbacks() - before)
                assert reasons <= expected_reasons(messages), f"{recording.name}, {end} messages"
                returned += not reasons
    assert returned > 10


def expected_reasons(messages: list[dict[str, Any]]) -> set[str]:
    """Transformers 5 drops null contents; what a template then does with a missing one may be left to it."""
    null = any(message.get("content", "") is None for message in messages)
    return {"render:undefined-argument"} if null else set()
