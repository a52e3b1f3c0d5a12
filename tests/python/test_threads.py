"""Many threads on one tokenizer: right ids, one engine, whatever else the others do with it meanwhile."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import toys
import turntrie
from toys import LONG, MESSAGES
from turntrie import backend
from turntrie.attachment import Attachment
from turntrie.demo import conversation

pytestmark = pytest.mark.timeout(120)
THREADS = 8


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """Runs jobs in threads that all start together; their results, or the first exception."""
    barrier = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        barrier.wait(60)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(run, job) for job in jobs]]


def test_first_use_builds_one_engine(monkeypatch: pytest.MonkeyPatch, plain: Any) -> None:
    built = []
    load = backend.load
    monkeypatch.setattr(backend, "load", lambda *args: built.append(args) or load(*args))
    tok = toys.wrapped()
    wanted = plain.apply_chat_template(LONG, return_dict=False)
    got = at_once(*[lambda: tok.apply_chat_template(LONG, return_dict=False)] * THREADS)
    assert got == [wanted] * THREADS
    assert len(built) == 1
    assert toys.calls(tok) == {"native": THREADS, "reference": 0}


@pytest.mark.fallback
def test_growing_chats_while_others_truncate_and_pad(plain: Any) -> None:
    """Transformers alone returns wrong ids here: its calls leave truncation set for those of other threads."""
    tok = toys.wrapped()
    messages, tools = conversation(turns=10, seed=5)
    ends = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    call = {"tools": tools, "return_dict": False}
    wanted = {end: plain.apply_chat_template(messages[:end], **call) for end in ends}
    odd: list[dict[str, Any]] = [
        {"truncation": True, "max_length": 5},
        {"padding": "max_length", "max_length": 4000},
        {"tokenizer_kwargs": {"split_special_tokens": True}},
    ]
    others = [(keywords, plain.apply_chat_template(MESSAGES, return_dict=False, **keywords)) for keywords in odd]

    def native() -> None:
        for end in ends * 3:
            assert tok.apply_chat_template(messages[:end], **call) == wanted[end]
            assert tok.turntrie.prompt(messages[:end], tools=tools).path == "native"

    def reference(number: int) -> None:
        keywords, expected = others[number % len(others)]
        for _ in range(20):
            assert tok.apply_chat_template(MESSAGES, return_dict=False, **keywords) == expected
            assert tok.apply_chat_template(tuple(LONG), return_dict=False) == whole

    whole = plain.apply_chat_template(LONG, return_dict=False)
    at_once(*[native] * 4, *[lambda number=number: reference(number) for number in range(4)])
    assert toys.calls(tok) == {"native": 4 * 6 * len(ends), "reference": 4 * 40}
    state = (tok.backend_tokenizer.truncation, tok.backend_tokenizer.padding)
    assert state == (None, None)
    assert tok.backend_tokenizer.encode_special_tokens is False


def test_tokens_added_under_running_calls() -> None:
    tok = toys.wrapped()
    words = ["checkpoint", "stands", "words", "few"]
    plain = toys.fresh()
    allowed = [plain.apply_chat_template(LONG, return_dict=False)]
    for word in words:
        plain.add_tokens([word])
        allowed.append(plain.apply_chat_template(LONG, return_dict=False))
    done = threading.Event()

    def calls() -> list[int]:
        seen = []
        while not done.is_set() or not seen:
            seen.append(allowed.index(tok.apply_chat_template(LONG, return_dict=False)))
        return seen

    def changes() -> list[int]:
        for word in words:
            tok.add_tokens([word])
            tok.turntrie.prompt(LONG)
        done.set()
        return []

    for seen in at_once(*[calls] * 4, changes):
        assert seen == sorted(seen)
    assert tok.apply_chat_template(LONG, return_dict=False) == allowed[-1]


def test_sessions_of_one_tokenizer(plain: Any) -> None:
    tok = toys.wrapped()
    wanted = [plain.apply_chat_template(LONG[:end], return_dict=False) for end in range(1, len(LONG) + 1)]

    def run() -> None:
        for _ in range(5):
            with turntrie.Session(tok) as session:
                assert [session.extend([message]).tolist() for message in LONG] == wanted

    at_once(*[run] * THREADS)


def test_one_session_in_many_threads() -> None:
    """Its calls come one after the other: every order of the messages is an order in which they were added."""
    session = turntrie.Session(toys.wrapped())
    numbers = itertools.count()

    def run() -> list[int]:
        return [len(session.extend([{"role": "user", "content": str(next(numbers) % 10)}])) for _ in range(10)]

    lengths = sorted(itertools.chain(*at_once(*[run] * 4)))
    steps = {b - a for a, b in itertools.pairwise(lengths)}
    assert len(lengths) == len(set(lengths)) == 40
    assert len(steps) == 1


def test_one_batch_encoding_in_many_threads(plain: Any) -> None:
    encoding = toys.wrapped().apply_chat_template(LONG, return_dict=True)
    tokens = plain.apply_chat_template(LONG, return_dict=True).tokens()
    assert at_once(*[encoding.tokens] * THREADS) == [tokens] * THREADS
    assert list.__len__(encoding.encodings) == 1


def test_wrapping_in_many_threads() -> None:
    toks = [toys.fresh(toys.Stateful) for _ in range(THREADS)]
    classes = {type(tok) for tok in at_once(*[lambda tok=tok: turntrie.wrap(tok) for tok in toks])}
    assert len(classes) == 1


@pytest.mark.fallback
def test_counting_is_exact() -> None:
    tok = toys.wrapped()
    at_once(*[lambda: [tok.apply_chat_template([]) for _ in ()]] * 2)
    before = turntrie.stats()["calls"]

    def run() -> None:
        for _ in range(100):
            Attachment.of(tok).counters.native(1, 2)
            Attachment.of(tok).counters.reference("call:test")

    at_once(*[run] * THREADS)
    counted = tok.turntrie.stats()
    assert counted["calls"] == {"native": 100 * THREADS, "reference": 100 * THREADS}
    assert counted["tokens"] == {"kept": 100 * THREADS, "encoded": 200 * THREADS}
    after = turntrie.stats()["calls"]
    assert {path: after[path] - before[path] for path in after} == counted["calls"]
