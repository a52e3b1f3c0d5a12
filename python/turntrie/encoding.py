"""Native results as the BatchEncoding that transformers returns.

The data is all there: `input_ids`, `token_type_ids` and `attention_mask`, as `model_input_names` asks for them and in
transformers' order, as lists, and `assistant_masks` behind them if it was asked for. What costs a full encode in
Python, the `tokenizers.Encoding` behind `tokens()`, `char_to_token()` and `word_ids()`, is made when it is first asked
for, or when the result is pickled.
"""

from typing import Any, SupportsIndex

from turntrie import _native, reference
from turntrie.attachment import Attachment
from turntrie.locks import ForkSafeLock
from turntrie.reason import Reason


def batch_encoding(
    tok: Any, attached: Attachment, prompts: list[_native.Prompt], type_id: int | None, *, batched: bool
) -> Any:
    """Builds the BatchEncoding of one text or of several.

    Args:
        tok: The wrapped tokenizer.
        attached: Its attachment.
        prompts: Ids and text of each, and the assistant mask if there has to be one.
        type_id: Every entry of `token_type_ids`; `None` if that cannot be said.
        batched: Whether the entries are lists of lists.

    Returns:
        A `transformers.BatchEncoding`, or the reason why it cannot be built.
    """
    names = tok.model_input_names
    data: dict[str, list[Any]] = {"input_ids": [prompt.tolist() for prompt in prompts]}
    if "token_type_ids" in names:
        if type_id is None:
            return Reason("tokenizer:type-ids")
        data["token_type_ids"] = [[type_id] * len(prompt) for prompt in prompts]
    if "attention_mask" in names:
        data["attention_mask"] = [[1] * len(prompt) for prompt in prompts]
    masks = [mask for mask in (prompt.mask() for prompt in prompts) if mask is not None]
    if masks:
        data["assistant_masks"] = masks
    if not batched:
        data = {name: values[0] for name, values in data.items()}
    return reference.batch_encoding()(data, Encodings(tok, attached.lock, prompts), n_sequences=1)


class Encodings(list[Any]):
    """A list of `tokenizers.Encoding`, one for each text, made on first use.

    A list rather than a look-alike, since that is what `BatchEncoding.encodings` is. Everything but its length and its
    truth fills it first; from then on it is an ordinary list.
    """

    __slots__ = ("_lock", "_pending")

    def __init__(self, tok: Any, lock: ForkSafeLock, prompts: list[_native.Prompt]) -> None:
        """Remembers what to encode, and the lock of the tokenizer that will do it."""
        super().__init__()
        self._lock = lock
        self._pending: tuple[Any, list[_native.Prompt]] | None = (tok, prompts)

    def _fill(self) -> None:
        if self._pending is None:
            return
        with self._lock.now:
            if self._pending is not None:  # another thread may have been here
                tok, prompts = self._pending
                super().extend([_encoding(tok, prompt) for prompt in prompts])
                self._pending = None

    def __len__(self) -> int:
        """The number of texts, before and after."""
        pending = self._pending
        return super().__len__() if pending is None else len(pending[1])

    def __bool__(self) -> bool:
        """As for any list."""
        return len(self) > 0

    def __radd__(self, other: list[Any]) -> list[Any]:
        """`other + self`: without this, `list.__add__` would look past our methods and see an empty list."""
        return other + list(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """Copied and pickled as the plain list that it stands for."""
        del protocol
        return list, (list(self),)


def _filling(name: str) -> Any:
    original = getattr(list, name)

    def method(self: Encodings, *args: Any, **kwargs: Any) -> Any:
        self._fill()
        return original(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = original.__doc__
    return method


for _name in vars(list):
    if callable(getattr(list, _name)) and _name not in (*vars(Encodings), *vars(object), "__class_getitem__"):
        setattr(Encodings, _name, _filling(_name))
for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__"):
    setattr(Encodings, _name, _filling(_name))


def _encoding(tok: Any, prompt: _native.Prompt) -> Any:
    live = tok.__dict__["_tokenizer"]
    with reference.preserved(live):
        live.no_truncation()
        live.no_padding()
        live.encode_special_tokens = False
        (encoding,) = live.encode_batch([prompt.text], add_special_tokens=False)
    if encoding.ids != prompt.tolist():
        raise RuntimeError("the tokenizer has changed since this BatchEncoding was made: its encodings are gone")
    return encoding
