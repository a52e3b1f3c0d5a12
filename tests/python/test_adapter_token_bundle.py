"""The token bundle: where it is read, in which order, and everything that is refused, by the name of its field."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from turntrie.adapters import nemo
from turntrie.adapters.token_bundle import TokenBundle, TokenBundleError

PROMPT, GENERATED, PROBS = [1, 2, 3], [4, 5], [-0.1, -0.2]
FIELDS = {"prompt_token_ids": PROMPT, "generation_token_ids": GENERATED, "generation_log_probs": PROBS}
WANT = TokenBundle(PROMPT, GENERATED, PROBS)


def spelled(ids: list[Any] = GENERATED, probs: list[Any] = PROBS, prefix: str = "token_id:") -> dict[str, Any]:
    return {"content": [{"token": f"{prefix}{i}", "logprob": p} for i, p in zip(ids, probs, strict=True)]}


def response(message: Any = None, *, told: Any = None, logprobs: Any = None, **choice: Any) -> dict[str, Any]:
    """A chat completion; `told` are prompt and generated ids at the places where vLLM puts them."""
    made: dict[str, Any] = {"role": "assistant", "content": "text", **(message or {})}
    body: dict[str, Any] = {"id": "x", "choices": [{"index": 0, "message": made, "finish_reason": "stop", **choice}]}
    if told is not None:
        body["prompt_token_ids"], body["choices"][0]["token_ids"] = told
    if logprobs is not None:
        body["choices"][0]["logprobs"] = logprobs
    return body


def never() -> Any:
    raise AssertionError("tokenized although a source told")


SOURCES = {
    "message": response(FIELDS),
    "message and response": response(FIELDS, told=(PROMPT, GENERATED)),
    "message and logprobs": response(FIELDS, logprobs=spelled()),
    "message and plain logprobs": response(FIELDS, logprobs=spelled(prefix="word")),
    "response": response(told=(PROMPT, GENERATED), logprobs=spelled()),
    "response, plain logprobs": response(told=(PROMPT, GENERATED), logprobs=spelled(prefix="word")),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_tells_is_read_and_nothing_tokenized(name: str) -> None:
    assert nemo.resolve(copy.deepcopy(SOURCES[name]), never) == WANT


def test_the_last_source_tokenizes_the_prompt_once() -> None:
    calls: list[int] = []

    def prompt() -> list[int]:
        calls.append(1)
        return PROMPT

    assert nemo.resolve(response(logprobs=spelled()), prompt) == WANT
    assert calls == [1]
    with pytest.raises(TokenBundleError, match=r"^`prompt_token_ids`"):
        nemo.resolve(response(logprobs=spelled()))


@pytest.mark.parametrize("name", [*SOURCES, "tokenized"])
def test_attach_leaves_one_version(name: str) -> None:
    body = copy.deepcopy(SOURCES.get(name) or response(logprobs=spelled()))
    assert nemo.attach(body, lambda: PROMPT) == WANT
    choice = body["choices"][0]
    assert {key: choice["message"][key] for key in FIELDS} == FIELDS
    assert choice["message"]["content"] == "text"
    assert "prompt_token_ids" not in body
    assert "token_ids" not in choice
    assert ("logprobs" in choice) is (name in ("message and logprobs", "message and plain logprobs"))
    assert TokenBundle.read(choice["message"]) == WANT
    # What was attached is the first source from now on.
    assert nemo.resolve(body, never) == WANT


def test_routed_experts_travel_along() -> None:
    experts = "nrlre1:opaque"
    for body in (
        response({**FIELDS, "routed_experts": experts}),
        response({"routed_experts": experts}, logprobs=spelled()),
    ):
        bundle = nemo.attach(body, lambda: PROMPT)
        assert bundle.routed_experts == experts
        assert bundle.fields() == {**FIELDS, "routed_experts": experts}
    assert "routed_experts" not in WANT.fields()
    assert TokenBundle.read({"routed_experts": experts}) is None


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"message without {field}": (
            response({key: value for key, value in FIELDS.items() if key != field}),
            f"choice.message.{field}",
        )
        for field in FIELDS
    },
    **{f"{field} is null": (response({**FIELDS, field: None}), f"choice.message.{field}") for field in FIELDS},
    "only the prompt is told": (response(told=(PROMPT, None), logprobs=spelled()), "choice.token_ids"),
    "only the answer is told": (response(told=(None, GENERATED), logprobs=spelled()), "prompt_token_ids"),
    "partial response beside a message": (response(FIELDS, told=(PROMPT, None)), "choice.token_ids"),
    "message and response disagree on the prompt": (response(FIELDS, told=([9], GENERATED)), "prompt_token_ids"),
    "message and response disagree on the answer": (response(FIELDS, told=(PROMPT, [4, 6])), "choice.token_ids"),
    "message and logprobs disagree": (response(FIELDS, logprobs=spelled([4, 6])), "choice.logprobs"),
    "response and logprobs disagree": (
        response(told=(PROMPT, GENERATED), logprobs=spelled([4, 6])),
        "choice.logprobs",
    ),
    "more log-probabilities than ids": (
        response({**FIELDS, "generation_log_probs": [*PROBS, -0.3]}),
        "choice.message.generation_log_probs",
    ),
    "fewer log-probabilities than ids": (
        response({**FIELDS, "generation_log_probs": PROBS[:1]}),
        "choice.message.generation_log_probs",
    ),
    "response and plain logprobs of another length": (
        response(told=(PROMPT, GENERATED), logprobs=spelled(["a"], [-0.1], "word")),
        "response.generation_log_probs",
    ),
    "no logprobs": (response(told=(PROMPT, GENERATED)), "choice.logprobs"),
    "logprobs without content": (response(told=(PROMPT, GENERATED), logprobs={"content": None}), "choice.logprobs"),
    "no source": (response(), "choice.logprobs"),
    "plain logprobs alone": (response(logprobs=spelled(prefix="word")), "choice.logprobs.content[0].token"),
    "a token that is no number": (response(logprobs=spelled([4, "x"])), "choice.logprobs.content[1].token"),
    "a negative token": (response(logprobs=spelled([-4, 5])), "choice.logprobs.content[0].token"),
    **{
        f"tokens {tokens}": (
            response(logprobs={"content": [{"token": token, "logprob": -0.1} for token in tokens]}),
            f"choice.logprobs.content[{index}].token",
        )
        for tokens, index in (
            (("token_id:1", "2"), 1),
            (("token_id:1token_id:2", ""), 0),
            (("token_id:1\ntoken_id:2", "token_id:3"), 0),
            (("token_id:1\ntoken_id:2",), 0),
            (("token_id:",), 0),
            (("token_id:1", "token_id:"), 1),
            (("token_id:1", "token_id: 2"), 1),
            (("token_id:1", "token_id:\u0662"), 1),
            (("token_id:1", "token_id:1_0"), 1),
            (("xtoken_id:1",), 0),
            ((None,), 0),
            ((b"token_id:1",), 0),
        )
    },
    "mixed spellings": (
        response(
            told=(PROMPT, GENERATED),
            logprobs={"content": [{"token": "token_id:4", "logprob": -0.1}, {"token": "word", "logprob": -0.2}]},
        ),
        "choice.logprobs.content[1].token",
    ),
    "a logprob that is text": (
        response(logprobs=spelled(GENERATED, [-0.1, "-0.2"])),
        "choice.logprobs.content[1].logprob",
    ),
    "a logprob that is null": (
        response(logprobs=spelled(GENERATED, [None, -0.2])),
        "choice.logprobs.content[0].logprob",
    ),
    "a logprob that is a bool": (
        response(logprobs=spelled(GENERATED, [-0.1, True])),
        "choice.logprobs.content[1].logprob",
    ),
    "an entry without logprob": (
        response(logprobs={"content": [{"token": "token_id:4"}]}),
        "choice.logprobs.content[0].logprob",
    ),
    "an entry that is none": (response(logprobs={"content": [3]}), "choice.logprobs.content[0]"),
    "ids that are text": (response({**FIELDS, "prompt_token_ids": "123"}), "choice.message.prompt_token_ids"),
    "an id that is text": (response({**FIELDS, "prompt_token_ids": [1, "2"]}), "choice.message.prompt_token_ids"),
    "an id that is a float": (
        response({**FIELDS, "generation_token_ids": [4.0, 5]}),
        "choice.message.generation_token_ids",
    ),
    "a negative id": (response({**FIELDS, "generation_token_ids": [4, -5]}), "choice.message.generation_token_ids"),
    "a tuple": (response({**FIELDS, "prompt_token_ids": (1, 2)}), "choice.message.prompt_token_ids"),
    "two choices": ({"choices": response()["choices"] * 2}, "choices"),
    "no choice": ({"choices": []}, "choices"),
    "no choices": ({}, "choices"),
    "no message": ({"choices": [{"message": None}]}, "choice.message"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_the_name_of_the_field_and_nothing_is_changed(name: str) -> None:
    body, field = REFUSED[name]
    before = copy.deepcopy(body)
    for act in (nemo.resolve, nemo.attach):
        with pytest.raises(TokenBundleError) as error:
            act(body, lambda: PROMPT)
        assert error.value.field == field
        assert str(error.value).startswith(f"`{field}` ")
        assert body == before


def test_spelled_ids_of_every_length() -> None:
    for count in (0, 1, 2, 1000):
        ids = list(range(0, count * 151, 151))
        bundle = nemo.resolve(response(logprobs=spelled(ids, [-0.5] * count)), lambda: PROMPT)
        assert bundle == TokenBundle(PROMPT, ids, [-0.5] * count)


def test_several_answers_are_refused_in_the_request() -> None:
    for body in ({}, {"n": None}, {"n": 1}):
        nemo.require_single_choice(body)
    for n in (2, 0, "1"):
        with pytest.raises(TokenBundleError, match=r"^`n` must be 1") as error:
            nemo.require_single_choice({"n": n})
        assert error.value.field == "n"


def test_the_error_is_what_both_systems_catch() -> None:
    """NeMo-Gym raises RuntimeError for a response and ValueError for a request; and it crosses processes."""
    error = TokenBundleError("choice.token_ids", "is missing")
    assert isinstance(error, RuntimeError)
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.field) == (str(error), error.field)


def test_a_bundle_is_built_from_arrays_as_from_lists() -> None:
    built = TokenBundle.build(np.array(PROMPT, dtype=np.uint32), np.array(GENERATED), np.array(PROBS, dtype=np.float64))
    assert built == WANT
    assert [type(field) for field in built[:3]] == [list, list, list]
    assert {type(id_) for id_ in built.prompt_token_ids} == {int}
    for wrong in (np.array([1.5]), np.array([[1]]), np.array(["1"])):
        with pytest.raises(TokenBundleError, match=r"^`bundle\.prompt_token_ids`"):
            TokenBundle.build(wrong, GENERATED, PROBS)
    assert TokenBundle.build([], [], []) == TokenBundle([], [], [])
    assert TokenBundle.build(PROMPT, [4], [0]).generation_log_probs == [0]


def test_a_bundle_of_a_message_is_not_copied() -> None:
    bundle = nemo.resolve(response(FIELDS))
    assert bundle.prompt_token_ids is PROMPT
    assert bundle.generation_log_probs is PROBS
