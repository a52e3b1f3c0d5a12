"""What every adapter does with a tokenizer: wraps it once, respects a restore, leaves strangers alone."""

import copy
import gc
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

import adapter_models
import toys
import turntrie
from adapter_paths import SYSTEMS
from turntrie.adapters import _base, areal, slime

MESSAGES = [{"role": "user", "content": "hi"}]
MODULES = ("slime", "areal", "nemo", "token_bundle", "trl", "openai", "anthropic")


@pytest.mark.parametrize("name", MODULES)
def test_importing_an_adapter_imports_neither_its_system_nor_transformers(name: str) -> None:
    """Each in a process of its own; `numpy` comes with turntrie itself at most."""
    program = (
        f"import sys; before = set(sys.modules); import turntrie.adapters.{name}\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'jinja2', 'slime', 'areal', 'nemo_rl', 'nemo_gym', 'trl',"
        " 'openai', 'anthropic', 'pydantic'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_importing_turntrie_imports_no_adapter() -> None:
    program = "import sys, turntrie; assert not [m for m in sys.modules if m.startswith('turntrie.adapters')]"
    subprocess.run([sys.executable, "-c", program], check=True, env=_environment())


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_tokenizer_is_wrapped_in_place_on_its_first_call(system: str) -> None:
    tok = toys.fresh()
    cls = type(tok)
    SYSTEMS[system].ours(tok)(MESSAGES, None)
    assert turntrie.is_wrapped(tok)
    assert isinstance(tok, cls)
    assert type(tok).__name__ == cls.__name__
    assert tok.turntrie.stats()["calls"]["native"] >= 1
    assert tok.turntrie.stats()["calls"]["reference"] == 0


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_restored_tokenizer_stays_restored_and_gives_the_same_ids(system: str) -> None:
    tok = toys.fresh()
    ours = SYSTEMS[system].ours(tok)
    ids = ours(MESSAGES, None)
    keys = set(toys.fresh().__dict__)
    turntrie.restore(tok)
    assert ours(MESSAGES, None) == ids
    assert not turntrie.is_wrapped(tok)
    assert set(tok.__dict__) <= keys | {"deprecation_warnings"}
    # Whoever wants it back says so.
    turntrie.wrap(tok)
    assert ours(MESSAGES, None) == ids
    assert tok.turntrie.stats()["calls"]["native"] >= 1


def test_options_of_a_tokenizer_that_is_wrapped_already_stay() -> None:
    tok = turntrie.wrap(toys.fresh(), namespace="tenant", verify="off")
    slime.render_token_ids(MESSAGES, tok, tools=None)
    assert turntrie.wrap(tok, namespace="tenant", verify="off") is tok


def test_a_copy_is_another_tokenizer() -> None:
    tok = toys.fresh()
    slime.render_token_ids(MESSAGES, tok, tools=None)
    turntrie.restore(tok)
    other = copy.deepcopy(tok)
    assert slime.render_token_ids(MESSAGES, other, tools=None) == slime.render_token_ids(MESSAGES, tok, tools=None)
    assert (turntrie.is_wrapped(tok), turntrie.is_wrapped(other)) == (False, True)


def test_what_was_met_is_forgotten_with_the_tokenizer() -> None:
    tok = toys.fresh()
    slime.render_token_ids(MESSAGES, tok, tools=None)
    key = id(tok)
    assert key in _base._met
    del tok
    gc.collect()
    assert key not in _base._met


def test_many_threads_meet_a_tokenizer_at_once() -> None:
    tok = toys.fresh()
    want = slime.render_token_ids(MESSAGES, adapter_models.ours("demo"), tools=None)
    barrier = threading.Barrier(8)
    got: list[Any] = []

    def run() -> None:
        barrier.wait()
        got.append([slime.render_token_ids(MESSAGES, tok, tools=None) for _ in range(20)])

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert got == [[want] * 20] * 8


@pytest.mark.fallback
def test_a_class_with_a_method_of_its_own_gets_only_the_callers_keywords() -> None:
    """It knows neither `tokenize` nor `return_dict`; a TypeError from it is what the system would get."""
    tok = toys.fresh(toys.Overriding)
    with pytest.raises(TypeError, match="tokenize"):
        slime.render_token_ids(MESSAGES, tok, tools=None)

    class Three(toys.Overriding):
        def apply_chat_template(
            self, messages: Any, tools: Any = None, tokenize: bool = True, add_generation_prompt: bool = True
        ) -> Any:
            del tools, add_generation_prompt
            return [tokenize, len(messages), 7]

    tok = toys.fresh(Three)
    assert slime.render_token_ids(MESSAGES, tok, tools=None) == [True, 1, 7]


@pytest.mark.fallback
def test_a_subclass_that_changes_ids_is_asked_and_its_ids_kept() -> None:
    plain, tok = toys.fresh(toys.Reencoding), toys.fresh(toys.Reencoding)
    want = plain.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False)
    assert slime.render_token_ids(MESSAGES, tok, tools=None) == want
    assert areal.apply_chat_template(tok, MESSAGES, add_generation_prompt=True) == want


class Exchanged:
    """Stands in front of a backend, as a faster encoder may, and counts what it encodes."""

    def __init__(self, backend: Any) -> None:
        self.__dict__.update(backend=backend, encoded=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.backend, name, value)

    def encode_batch(self, *args: Any, **keywords: Any) -> Any:
        self.__dict__["encoded"] += 1
        return self.backend.encode_batch(*args, **keywords)


@pytest.mark.fallback
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_backend_that_somebody_exchanged_encodes_itself(system: str) -> None:
    plain, tok = toys.fresh(), toys.fresh()
    tok._tokenizer = Exchanged(tok._tokenizer)
    ids = SYSTEMS[system].ours(tok)(MESSAGES, None)
    assert ids == SYSTEMS[system].own(plain)(MESSAGES, None)
    assert tok._tokenizer.encoded >= 1
    assert set(toys.fallbacks(tok)) == {"tokenizer:backend"}


@pytest.mark.fallback
def test_a_method_that_somebody_patched_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = toys.fresh()
    method = type(tok)._encode_plus
    seen: list[Any] = []

    def patched(self: Any, *args: Any, **keywords: Any) -> Any:
        seen.append(args)
        return method(self, *args, **keywords)

    monkeypatch.setattr(type(tok), "_encode_plus", patched)
    ids = slime.render_token_ids(MESSAGES, tok, tools=None)
    assert seen
    assert ids == toys.fresh().apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False)
    assert set(toys.fallbacks(tok)) == {"tokenizer:override:_encode_plus"}


def test_a_changed_template_is_seen() -> None:
    tok, plain = toys.fresh(), toys.fresh()
    slime.render_token_ids(MESSAGES, tok, tools=None)
    tok.chat_template = plain.chat_template = "{% for m in messages %}<|turn|>{{ m.content }}{% endfor %}"
    want = plain.apply_chat_template(MESSAGES, return_dict=False)
    assert slime.render_token_ids(MESSAGES, tok, tools=None) == want


def test_a_processor_is_called_as_it_is() -> None:
    class Processor:
        def __init__(self, tokenizer: Any) -> None:
            self.tokenizer = tokenizer
            self.seen: list[Any] = []

        def apply_chat_template(self, _: Any, **keywords: Any) -> Any:
            self.seen.append(keywords)
            return {"input_ids": [4, 5]}

    processor = Processor(toys.fresh())
    assert slime.render_token_ids(MESSAGES, processor, tools=None) == [4, 5]
    assert processor.seen == [{"tools": None, "tokenize": True, "add_generation_prompt": True}]
    assert not turntrie.is_wrapped(processor.tokenizer)
