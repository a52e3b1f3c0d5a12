"""Ray actors: a wrapped tokenizer travels to another process, and threads of an actor share it.

Needs the package `ray`, which the environment of the newest transformers has in `.ci/run`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toys
from episodes import growing, own

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Two workers of this machine, which import what the tests import."""
    paths = [str(Path(__file__).parent), *(path for path in sys.path if path)]
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=100 << 20,
        runtime_env={"env_vars": {"PYTHONPATH": ":".join(paths)}},
    )
    yield
    ray.shutdown()


@pytest.mark.parametrize("threads", [1, 4])
def test_an_actor_gives_the_same_ids(plain: Any, threads: int) -> None:
    calls = growing(own(turns=12, seed=3))
    tok = toys.wrapped()
    tok.turntrie.warmup()  # an engine with threads and checkpoints in it, none of which may travel
    actor = ray.remote(toys.Rollout).options(max_concurrency=threads, num_cpus=1).remote(tok)
    asked = [actor.ids.remote(call.messages, call.tools) for call in calls]
    for call, (ids, path, reason) in zip(calls, ray.get(asked), strict=True):
        assert (path, reason) == ("native", None)
        assert ids == call.on(plain)
    served = ray.get(actor.stats.remote())
    assert served["calls"]["native"] == len(calls)
    ray.kill(actor)


def test_a_prompt_comes_back(plain: Any) -> None:
    *_, call = growing(own(turns=5, seed=4))
    actor = ray.remote(toys.Rollout).options(num_cpus=1).remote(toys.wrapped())
    prompt = ray.get(actor.prompt.remote(call.messages, call.tools))
    assert (prompt.path, prompt.reason) == ("native", None)
    assert prompt.tolist() == call.on(plain)
    ray.kill(actor)
