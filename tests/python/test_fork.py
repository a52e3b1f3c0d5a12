"""A child that was forked while threads were inside calls works at once, and its parent is unharmed.

Each case runs in a process of its own, with a time-out: what would go wrong here is a hang.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
START = """
import os, signal, sys, threading, time
import toys, turntrie
from toys import LONG, MESSAGES
plain, tok = toys.fresh(), toys.wrapped()
want = plain.apply_chat_template(LONG, return_dict=False)

def fork(job):
    "Runs a job in a forked child that has ten seconds; how it ended."
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    signal.alarm(10)  # kills a child that hangs
    try:
        job()
    except BaseException as error:
        print(type(error).__name__, error, file=sys.stderr)
        os._exit(1)
    os._exit(0)
"""
BUSY_THREADS = """
stop = threading.Event()

def busy(native):
    conversation = LONG if native else tuple(LONG)
    while not stop.is_set():
        assert tok.apply_chat_template(conversation, return_dict=False) == want

threads = [threading.Thread(target=busy, args=(number != 3,), daemon=True) for number in range(4)]
for thread in threads:
    thread.start()
time.sleep(0.5)

def child():
    for end in range(20):
        assert tok.apply_chat_template(LONG, return_dict=False) == want
        assert tok.turntrie.prompt(LONG).path == "native"

ended = [fork(child) for _ in range(8)]
stop.set()
for thread in threads:
    thread.join(30)
assert ended == [0] * 8, ended
assert tok.apply_chat_template(LONG, return_dict=False) == want
assert set(toys.fallbacks(tok)) == {"call:conversation"}
"""
LONG_PROMPTS = """
from turntrie.demo import conversation

messages, tools = conversation(turns=110, seed=5)
wants = {
    end: plain.apply_chat_template(messages[:end], tools=tools, return_dict=False)
    for end in (len(messages), len(messages) - 7, len(messages) // 2)
}
assert len(wants[len(messages)]) > 20_000, len(wants[len(messages)])
stop = threading.Event()
wrong = []

def busy(number):
    ends = list(wants)[number % 3:] + list(wants)[: number % 3]
    while not stop.is_set():
        for end in ends:
            if tok.apply_chat_template(messages[:end], tools=tools, return_dict=False) != wants[end]:
                wrong.append(end)
        if number == 3:
            tok.turntrie.reset()

threads = [threading.Thread(target=busy, args=(number,), daemon=True) for number in range(4)]
for thread in threads:
    thread.start()
time.sleep(0.5)

def child():
    for _ in range(2):
        for end, want in wants.items():
            assert tok.apply_chat_template(messages[:end], tools=tools, return_dict=False) == want
    assert tok.turntrie.prompt(messages, tools=tools).path == "native"

ended = [fork(child) for _ in range(6)]
stop.set()
for thread in threads:
    thread.join(30)
assert (ended, wrong) == ([0] * 6, []), (ended, wrong)
assert toys.fallbacks(tok) == {}
"""
HELD_LOCKS = """
from turntrie import backend, locks
from turntrie.attachment import Attachment

tok.apply_chat_template(LONG)
session = turntrie.Session(tok)
session.prompt(LONG[:2])
attached = Attachment.of(tok)
held, go = threading.Event(), threading.Event()
taken = list(locks._locks)
assert attached.lock in taken and len(taken) > 5

def hold():
    now = [lock.now for lock in taken]
    for lock in now:
        lock.acquire()
    held.set()
    go.wait(60)
    for lock in now:
        lock.release()

holder = threading.Thread(target=hold)
holder.start()
held.wait(60)

def child():
    assert tok.apply_chat_template(tuple(LONG), return_dict=False) == want
    assert session.extend(LONG[2:]).tolist() == want
    tok.add_tokens(["checkpoint"])
    tok.apply_chat_template(LONG)
    assert toys.fallbacks(tok) == {"call:conversation": 1}

ended = [fork(child) for _ in range(2)]
go.set()
holder.join(60)
assert ended == [0, 0], ended
assert session.extend(LONG[2:]).tolist() == want
"""
POOL = """
import multiprocessing

def job(end):
    return tok.apply_chat_template(LONG[:end], return_dict=False), toys.calls(tok)["reference"]

tok.apply_chat_template(LONG)
with multiprocessing.get_context("fork").Pool(3) as pool:
    got = pool.map_async(job, range(1, len(LONG) + 1)).get(60)
assert got == [(plain.apply_chat_template(LONG[:end], return_dict=False), 0) for end in range(1, len(LONG) + 1)]
"""


@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    ("program", "parallelism"),
    [
        (BUSY_THREADS, None),
        (BUSY_THREADS, "true"),
        (BUSY_THREADS, "false"),
        (LONG_PROMPTS, None),
        (HELD_LOCKS, None),
        (POOL, None),
    ],
    ids=["busy", "busy, parallel", "busy, not parallel", "long prompts", "locks held", "pool"],
)
def test_fork(program: str, parallelism: str | None) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    environment.pop("TOKENIZERS_PARALLELISM", None)
    if parallelism is not None:
        environment["TOKENIZERS_PARALLELISM"] = parallelism
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + program],
        capture_output=True,
        text=True,
        check=False,
        timeout=140,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    ours = [line for line in ran.stderr.splitlines() if "PyTorch" not in line]
    assert ours == [], ran.stderr
