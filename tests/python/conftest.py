"""What the whole suite stands on: fresh tokenizers, a report of what ran, and two checks that no test can skip.

The checks: a test fails if a panic was caught while it ran, whatever the test was about; and it fails if a call fell
back to the reference, unless it is marked `fallback`. A fast path that silently falls back would pass every comparison.
"""

import os
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import transformers

import real_data
import turntrie
from turntrie.demo import TOKENIZER


@pytest.fixture(autouse=True)
def served_as_expected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the test if a panic was caught, or if a call fell back and the test does not expect that."""
    before = real_data.fallbacks()
    yield
    new = real_data.fallbacks() - before
    panics = {reason: count for reason, count in new.items() if reason.startswith("panic")}
    assert not panics, f"panics were caught: {panics}"
    if not request.node.get_closest_marker("fallback"):
        assert not new, f"calls fell back to the reference: {dict(new)}"


@pytest.fixture
def plain() -> Any:
    """The demo's tokenizer as transformers loads it."""
    return transformers.AutoTokenizer.from_pretrained(TOKENIZER)


@pytest.fixture
def wrapped() -> Any:
    """Another one, wrapped, with nothing remembered."""
    return turntrie.wrap(transformers.AutoTokenizer.from_pretrained(TOKENIZER))


@pytest.fixture(scope="module")
def frozen_clock() -> Iterator[None]:
    """Stops the clock that `strftime_now` reads: some templates print seconds, and both sides must see the same."""

    class Frozen(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Frozen":
            return cls(2031, 4, 17, 9, 5, 59, tzinfo=tz)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformers.utils.chat_template_utils.datetime", Frozen)
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Checks the variables before anything runs."""
    del config
    for variable in real_data.VARIABLES:
        real_data.folder(variable)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Says what is tested against what."""
    del config
    return [
        f"turntrie {turntrie.__version__} from {Path(turntrie.__file__).parent}",
        f"transformers {transformers.__version__}; real models: {len(real_data.model_directories())}",
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what ran on which real model, and how it was served."""
    if real_data.RAN:
        terminalreporter.section("real models")
        for name, calls in sorted(real_data.RAN.items()):
            terminalreporter.write_line(f"{name:28} {', '.join(f'{k} {n}' for k, n in calls.most_common())}")
        native = sum(set(calls) == {"native"} for calls in real_data.RAN.values())
        terminalreporter.write_line(f"{len(real_data.RAN)} real models ran, {native} of them wholly native")
    if real_data.TEMPLATES:
        terminalreporter.section("real templates, by how most calls were served")
        for reason, count in real_data.TEMPLATES.most_common():
            terminalreporter.write_line(f"{count:5} {reason}")
    if message := real_data.missing():
        terminalreporter.write_line(f"FAILED: {message}", red=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Sends each test to the worker that is free, but all tests of a real model to one: it is loaded once there."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  # only there if it is in use

    class ByModel(LoadScopeScheduling):  # type: ignore[misc]  # untyped here
        def _split_scope(self, nodeid: str) -> str:
            of_a_model = "test_parity_models.py::test_every_outcome" in nodeid
            return nodeid.rpartition("-")[0] if of_a_model else nodeid

    return ByModel(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """Takes over what a worker process ran. One that died has no counts: its models count as not run."""
    del error
    if counts := getattr(node, "workeroutput", {}).get("real_data"):
        real_data.take_over(counts)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run if fewer models ran than were expected. A worker leaves that to the controller."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["real_data"] = real_data.handed_over()
    elif session.exitstatus == pytest.ExitCode.OK and real_data.missing():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
