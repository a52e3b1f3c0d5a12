"""`wrap` and `restore`: the tokenizer stays the object and the class that everybody knows, and travels wrapped."""

import copy
import gc
import inspect
import json
import multiprocessing
import pickle
import subprocess
import sys
import time
import types
import weakref
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import transformers

import toys
import turntrie
from toys import LONG, MESSAGES
from turntrie import backend
from turntrie.attachment import Attachment


def _works(tok: Any, plain: Any) -> None:
    """The tokenizer is wrapped, serves natively, and right."""
    assert turntrie.is_wrapped(tok)
    before = toys.calls(tok)["native"]
    call = {"add_generation_prompt": True, "return_dict": False}
    assert tok.apply_chat_template(MESSAGES, **call) == plain.apply_chat_template(MESSAGES, **call)
    assert toys.calls(tok) == {"native": before + 1, "reference": 0}


# --- in place ---


def test_the_same_object_with_the_same_class_to_the_eye(plain: Any) -> None:
    tok = toys.fresh()
    original = type(tok)
    assert turntrie.wrap(tok) is tok
    assert isinstance(tok, original)
    assert isinstance(tok, transformers.PreTrainedTokenizerFast)
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        assert getattr(type(tok), name) == getattr(original, name)
    assert repr(tok) == repr(plain)
    _works(tok, plain)


def test_one_generated_class_per_original_class() -> None:
    assert type(turntrie.wrap(toys.fresh())) is type(turntrie.wrap(toys.fresh()))
    assert type(turntrie.wrap(toys.fresh(toys.Stateful))) is not type(turntrie.wrap(toys.fresh()))


def test_the_method_called_through_the_class(plain: Any) -> None:
    tok = toys.wrapped()
    assert type(tok).apply_chat_template(tok, MESSAGES) == plain.apply_chat_template(MESSAGES)
    assert toys.calls(tok) == {"native": 1, "reference": 0}


def test_signature_and_documentation_are_the_installed_ones(plain: Any) -> None:
    tok = toys.wrapped()
    assert inspect.signature(tok.apply_chat_template) == inspect.signature(plain.apply_chat_template)
    assert inspect.signature(type(tok).apply_chat_template) == inspect.signature(type(plain).apply_chat_template)
    assert tok.apply_chat_template.__doc__ == plain.apply_chat_template.__doc__


def test_everything_else_is_the_tokenizer_as_it_was(plain: Any) -> None:
    tok = toys.wrapped()
    text = "def f(x):\n    return x\n"
    assert tok(text) == plain(text)
    assert tok.decode(tok.encode(text)) == plain.decode(plain.encode(text))
    assert len(tok) == len(plain)
    assert tok.all_special_ids == plain.all_special_ids
    assert set(vars(tok)) - set(vars(plain)) == {"_turntrie"}


def test_wrapping_is_quick_and_builds_nothing() -> None:
    toks = [toys.fresh() for _ in range(5)]
    seconds = []
    for tok in toks:
        start = time.perf_counter()
        turntrie.wrap(tok)
        seconds.append(time.perf_counter() - start)
        assert tok.turntrie.stats()["engine"] is None
    assert min(seconds) < 0.005


def test_wrapping_twice_is_harmless(plain: Any) -> None:
    tok = turntrie.wrap(toys.fresh(), namespace="tenant", budget=1 << 20, verify="off")
    cls, attached = type(tok), Attachment.of(tok)
    assert turntrie.wrap(tok) is tok
    assert turntrie.wrap(tok, namespace="tenant", budget=1 << 20, verify="off") is tok
    assert type(tok) is cls
    assert Attachment.of(tok) is attached
    with pytest.raises(ValueError, match="restore"):
        turntrie.wrap(tok, namespace="another")
    _works(tok, plain)


def test_restore_undoes_everything(plain: Any) -> None:
    tok = toys.fresh()
    cls, before = type(tok), dict(vars(tok))
    turntrie.wrap(tok).apply_chat_template(MESSAGES)
    assert turntrie.restore(tok) is tok
    assert type(tok) is cls
    assert vars(tok).keys() == before.keys()
    assert "turntrie" not in dir(tok)
    assert tok.apply_chat_template(MESSAGES) == plain.apply_chat_template(MESSAGES)
    assert turntrie.restore(tok) is tok
    _works(turntrie.wrap(tok, verify="off"), plain)


def test_a_class_derived_after_wrapping(plain: Any) -> None:
    tok = toys.wrapped()
    derived = type("Cached", (type(tok),), {"__len__": lambda _: 3})
    tok.__class__ = derived
    _works(tok, plain)
    assert turntrie.wrap(tok) is tok
    with pytest.raises(TypeError, match="restore that first"):
        turntrie.restore(tok)
    tok.__class__ = derived.__mro__[1]
    _works(turntrie.wrap(turntrie.restore(tok), verify="off"), plain)


@pytest.mark.fallback
def test_a_class_derived_after_wrapping_that_overrides(plain: Any) -> None:
    tok = toys.wrapped()
    tok.__class__ = type("Loud", (type(tok),), {"_encode_plus": toys.Reencoding._encode_plus})
    with pytest.raises(TypeError):  # that method's super() expects another class: the reference's own error
        tok.apply_chat_template(MESSAGES)
    assert toys.fallbacks(tok) == {"tokenizer:override:_encode_plus": 1}
    del plain


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        (None, "NoneType is not a tokenizer of transformers"),
        ({"a": 1}, "dict is not a tokenizer"),
        (object(), "AutoTokenizer.from_pretrained returns"),
        (types.SimpleNamespace(apply_chat_template=lambda _: [1]), "SimpleNamespace is not a tokenizer"),
    ],
)
def test_what_is_no_tokenizer(thing: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        turntrie.wrap(thing)


def test_a_slow_tokenizer() -> None:
    class Slow(transformers.PreTrainedTokenizer):  # type: ignore[misc]  # Any here
        def get_vocab(self) -> dict[str, int]:
            return {}

    with pytest.raises(TypeError, match="Slow is a slow tokenizer, written in Python"):
        turntrie.wrap(Slow())


def test_a_processor() -> None:
    with pytest.raises(TypeError, match=r"is a processor: .* wrap\(x.tokenizer\)"):
        turntrie.wrap(types.SimpleNamespace(tokenizer=toys.fresh()))


def test_bad_options() -> None:
    tok = toys.fresh()
    with pytest.raises(ValueError, match="budget"):
        turntrie.wrap(tok, budget=-1)
    with pytest.raises(TypeError, match="namespace"):
        turntrie.wrap(tok, namespace=b"x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="verify"):
        turntrie.wrap(tok, verify="sometimes")
    assert not turntrie.is_wrapped(tok)


# --- copies and travel ---


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("cls", [None, toys.Stateful])
def test_pickle(plain: Any, protocol: int, cls: Any) -> None:
    tok = turntrie.wrap(toys.fresh(cls), budget=1 << 20, namespace="tenant", verify="off")
    tok.apply_chat_template(MESSAGES)
    other = pickle.loads(pickle.dumps(tok, protocol))
    assert type(other) is type(tok)
    assert other is not tok
    attached = Attachment.of(other)
    assert (attached.budget, attached.namespace, attached.root) == (1 << 20, "tenant", Attachment.of(tok).root)
    assert toys.calls(other) == {"native": 0, "reference": 0}
    _works(other, plain)


@pytest.mark.parametrize("protocol", [0, 1])
def test_pickle_in_the_protocols_that_the_backend_does_not_know(plain: Any, protocol: int) -> None:
    pickled = [toys.outcome(lambda tok=tok: pickle.dumps(tok, protocol)) for tok in (plain, toys.wrapped())]
    assert pickled[0] == pickled[1]
    assert pickled[0][:2] == ("raised", TypeError)


def test_a_pickle_says_nothing_about_this_process() -> None:
    tok = toys.wrapped()
    pickled = pickle.dumps(tok)
    tok.apply_chat_template(MESSAGES)
    assert pickle.dumps(tok) == pickled
    assert pickle.dumps(turntrie.wrap(toys.fresh(), verify="off")) == pickled


def test_cloudpickle_of_a_class_of_the_main_program(plain: Any) -> None:
    cls = type("Local", (toys.Fast,), {"__module__": "__main__"})
    other = cloudpickle.loads(cloudpickle.dumps(turntrie.wrap(toys.fresh(cls), verify="off")))
    assert type(other).__name__ == "Local"
    _works(other, plain)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("cls", [None, toys.Stateful, toys.Copying])
def test_copies_are_wrapped_and_have_a_life_of_their_own(plain: Any, copied: Any, cls: Any) -> None:
    tok = toys.wrapped(cls)
    tok.apply_chat_template(MESSAGES)
    other = copied(tok)
    assert type(other) is type(tok)
    _works(other, plain)
    assert toys.calls(tok) == {"native": 1, "reference": 0}
    assert Attachment.of(other).root != Attachment.of(tok).root
    turntrie.restore(other)
    _works(tok, plain)


def test_spawn(plain: Any) -> None:
    tok = toys.wrapped()
    tok.apply_chat_template(MESSAGES)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=toys.in_another_process, args=(tok, there, MESSAGES))
    process.start()
    assert here.poll(120), "the process has not answered"
    assert here.recv() == (plain.apply_chat_template(MESSAGES, return_dict=False), True, {"native": 1, "reference": 0})
    process.join(60)
    assert process.exitcode == 0


def test_save_pretrained_writes_what_the_original_writes(plain: Any, tmp_path: Path) -> None:
    plain.save_pretrained(tmp_path / "plain")
    toys.wrapped().save_pretrained(tmp_path / "wrapped")
    names = sorted(path.name for path in (tmp_path / "plain").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "wrapped").iterdir())
    for name in names:
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "wrapped" / name).read_bytes(), name
    config = json.loads((tmp_path / "wrapped" / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == type(plain).__name__


def test_loading_through_the_class_gives_what_the_original_gives(plain: Any, tmp_path: Path) -> None:
    tok = toys.wrapped()
    tok.save_pretrained(tmp_path)
    loaded = type(tok).from_pretrained(tmp_path)
    assert type(loaded) is type(plain)
    assert loaded.apply_chat_template(MESSAGES) == plain.apply_chat_template(MESSAGES)


def test_a_tokenizer_made_from_a_wrapped_one() -> None:
    tok = toys.wrapped()
    trained = tok.train_new_from_iterator(["a few words to learn from"] * 9, vocab_size=300)
    trained.chat_template = "{{ messages[0].content }}"
    ids = trained.apply_chat_template(MESSAGES, return_dict=False)
    turntrie.restore(trained)
    assert ids == trained.apply_chat_template(MESSAGES, return_dict=False)


# --- engines ---


def test_tokenizers_with_the_same_backend_share_an_engine_but_no_checkpoints(plain: Any) -> None:
    first, second = toys.wrapped(), toys.wrapped()
    assert first.turntrie.prompt(LONG).kept == 0
    again = first.turntrie.prompt(LONG)
    assert again.kept > 0
    assert second.turntrie.prompt(LONG).kept == 0
    assert Attachment.of(first).current() is Attachment.of(second).current()
    assert again.tolist() == plain.apply_chat_template(LONG, return_dict=False)


def test_a_namespace_is_shared_by_name() -> None:
    first, second, third = (turntrie.wrap(toys.fresh(), namespace=name, verify="off") for name in ("a", "a", 1))
    first.turntrie.prompt(LONG)
    assert second.turntrie.prompt(LONG).kept > 0
    assert third.turntrie.prompt(LONG).kept == 0


def test_another_budget_is_another_engine() -> None:
    first, second = toys.wrapped(), turntrie.wrap(toys.fresh(), budget=1 << 20, verify="off")
    for tok in (first, second):
        tok.turntrie.warmup()
    assert Attachment.of(first).current() is not Attachment.of(second).current()
    assert second.turntrie.stats()["engine"]["budget"] == 1 << 20


def test_an_engine_goes_with_its_last_tokenizer() -> None:
    tok = turntrie.wrap(toys.fresh(), budget=12345, verify="off")
    timings = tok.turntrie.warmup()
    assert set(timings) == {"to_str", "hash", "build", "parse", "tables", "table_bytes"}
    assert timings["parse"] + timings["tables"] <= timings["build"]
    assert timings["table_bytes"] > 10_000
    engine = weakref.ref(Attachment.of(tok).current())
    assert engine() in backend.loaded()
    del tok
    gc.collect()
    assert engine() is None


def test_a_wrapped_tokenizer_goes_like_any_other() -> None:
    tok = toys.wrapped()
    tok.apply_chat_template(MESSAGES, return_dict=True)
    gone = weakref.ref(tok)
    del tok
    gc.collect()
    assert gone() is None


def test_reset_forgets(plain: Any) -> None:
    tok = turntrie.wrap(toys.fresh(), namespace="reset", verify="off")
    tok.turntrie.prompt(LONG)
    tok.turntrie.reset()
    assert toys.calls(tok) == {"native": 0, "reference": 0}
    prompt = tok.turntrie.prompt(LONG)
    assert (prompt.kept, prompt.tolist()) == (0, plain.apply_chat_template(LONG, return_dict=False))


def test_the_handle_shows_no_contents() -> None:
    tok = toys.wrapped()
    prompt = tok.turntrie.prompt([{"role": "user", "content": "my secret"}])
    for thing in (tok.turntrie, prompt, tok.turntrie.stats(), turntrie.stats()):
        assert "secret" not in repr(thing)
    assert repr(prompt).startswith("Prompt(len=")


# --- import ---


def test_import_needs_nothing_but_python() -> None:
    program = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("transformers", "tokenizers", "torch", "numpy", "jinja2", "socket"):
            raise ImportError(f"{name} is imported")
sys.meta_path.insert(0, Refuse())
import turntrie
try:
    turntrie.wrap(object())
except TypeError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "not a tokenizer of transformers" in ran.stdout


@pytest.mark.parametrize("setting", ["", "0", "-1", "two", "1.5", "²"])
def test_a_number_of_threads_that_makes_no_sense_is_an_error(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("TURNTRIE_THREADS", setting)
    tok = toys.fresh()
    with pytest.raises(ValueError, match=r"TURNTRIE_THREADS is .*: a number from 1 on"):
        turntrie.wrap(tok)
    assert not turntrie.is_wrapped(tok)


@pytest.mark.parametrize("setting", ["1", "2", "7"])
def test_long_texts_are_the_same_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, plain: Any, setting: str
) -> None:
    monkeypatch.setenv("TURNTRIE_THREADS", setting)
    tok = turntrie.wrap(toys.fresh(), budget=1_000_000 + int(setting), verify="off")
    messages = [
        {"role": ("user", "assistant")[i % 2], "content": f"{i} words: " + "alpha beta\n" * 90} for i in range(300)
    ]
    assert sum(len(message["content"]) for message in messages) > 200_000
    assert tok.apply_chat_template(messages, return_dict=False) == plain.apply_chat_template(
        messages, return_dict=False
    )
    assert toys.calls(tok) == {"native": 1, "reference": 0}
