"""The token bundle: the ids and log-probabilities of one answer, as they travel with a chat message.

NeMo-RL and NeMo-Gym train on three fields of an assistant's message, `prompt_token_ids`, `generation_token_ids` and
`generation_log_probs`, and maybe `routed_experts`. They are all there or none is, and there are as many
log-probabilities as generated ids. They come from three sources, and the first one that is there counts:

1. the message itself;
2. the response: `prompt_token_ids` at its top level, `token_ids` of the choice, and the choice's `logprobs`;
3. log-probabilities that spell ids (`token_id:<int>`), with the prompt tokenized anew.

A source that is partly there is refused, as is one that contradicts an earlier one. Nothing is guessed: an error names
the field that is wrong, and leaves the response as it was.

Cost: one pass in C over each list, one Python object a log-probability if they come as objects. An unchanged message
bundle is not copied.
"""

from array import array
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, Self

__all__ = [
    "REQUIRED_TOKEN_METADATA_FIELDS",
    "TOKEN_METADATA_FIELDS",
    "TokenBundle",
    "TokenBundleError",
    "attach",
    "choice_logprobs",
    "require_single_choice",
    "resolve",
    "response_token_ids",
    "strip",
]

REQUIRED_TOKEN_METADATA_FIELDS = frozenset({"prompt_token_ids", "generation_token_ids", "generation_log_probs"})
TOKEN_METADATA_FIELDS = REQUIRED_TOKEN_METADATA_FIELDS | {"routed_experts"}

_SPELLED = "token_id:"


class TokenBundleError(RuntimeError, ValueError):
    """Token metadata that cannot be trusted.

    NeMo-Gym raises a RuntimeError for a response and a ValueError for a request or a message; this is both.

    Attributes:
        field: The field that is wrong, with its place: `"choice.token_ids"`.
    """

    def __init__(self, field: str, problem: str) -> None:
        """Names the field first."""
        super().__init__(f"`{field}` {problem}")
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels with its field."""
        return _error, (type(self), self.args, self.field)


def _error(cls: type[TokenBundleError], args: tuple[Any, ...], field: str) -> TokenBundleError:
    made = cls.__new__(cls, *args)
    made.args, made.field = args, field
    return made


class TokenBundle(NamedTuple):
    """Ids and log-probabilities of one answer; as many log-probabilities as generated ids."""

    prompt_token_ids: list[int]
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: Any = None
    """As the engine sent it; not looked into. `None` if there is none."""

    @classmethod
    def build(
        cls,
        prompt_token_ids: Any,
        generation_token_ids: Any,
        generation_log_probs: Any,
        routed_experts: Any = None,
        *,
        source: str = "bundle",
    ) -> Self:
        """A checked bundle.

        Args:
            prompt_token_ids: A list of ids, or an integer array.
            generation_token_ids: Likewise.
            generation_log_probs: A list of numbers, or an array; as many as generated ids.
            routed_experts: Anything.
            source: What errors call the place where the fields lie.

        Raises:
            TokenBundleError: A field is no list, holds something else than numbers, or the lengths differ.
        """
        made = cls(
            _ids(prompt_token_ids, f"{source}.prompt_token_ids"),
            _ids(generation_token_ids, f"{source}.generation_token_ids"),
            _numbers(generation_log_probs, f"{source}.generation_log_probs"),
            routed_experts,
        )
        ids, probs = len(made.generation_token_ids), len(made.generation_log_probs)
        if ids != probs:
            raise TokenBundleError(
                f"{source}.generation_log_probs", f"has {probs} entries, but there are {ids} generation_token_ids"
            )
        return made

    @classmethod
    def read(cls, message: Mapping[str, Any], source: str = "choice.message") -> Self | None:
        """The bundle of a message, or `None` if it has none of the required fields.

        Raises:
            TokenBundleError: Some of the fields are missing, or a field is wrong.
        """
        present = REQUIRED_TOKEN_METADATA_FIELDS.intersection(message)
        if not present:
            return None
        missing = sorted(REQUIRED_TOKEN_METADATA_FIELDS - present)
        if missing:
            raise TokenBundleError(f"{source}.{missing[0]}", f"is missing: partial token metadata, without {missing}")
        return cls.build(
            message["prompt_token_ids"],
            message["generation_token_ids"],
            message["generation_log_probs"],
            message.get("routed_experts"),
            source=source,
        )

    def fields(self) -> dict[str, Any]:
        """The fields as a message carries them; `routed_experts` only if there are any."""
        fields: dict[str, Any] = self._asdict()
        if self.routed_experts is None:
            del fields["routed_experts"]
        return fields


def resolve(
    response: Mapping[str, Any],
    prompt_token_ids: Callable[[], Any] | None = None,
) -> TokenBundle:
    """The bundle of a response, from the first source that has it.

    Args:
        response: A chat completion as a dict, with one choice.
        prompt_token_ids: Tokenizes the prompt; called only if no source tells. Without it, that is refused.

    Raises:
        TokenBundleError: There is not exactly one choice; or a source is partial or wrong, or contradicts another.
    """
    choice = _only_choice(response)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise TokenBundleError("choice.message", "must be an object")
    bundle = TokenBundle.read(message)
    told = response_token_ids(response, choice)
    if bundle is not None:
        _agrees_with_response(bundle, told)
        _agrees_with_spelling(bundle, choice)
        return bundle
    spelled, probs = choice_logprobs(choice, spelled=told is None)
    if told is not None:
        prompt, generated = told
        if spelled is not None and spelled != generated:
            raise TokenBundleError("choice.logprobs", "disagrees with `choice.token_ids`")
    else:
        generated = [] if spelled is None else spelled
        prompt = _tokenized(prompt_token_ids)
    source = "response" if told is not None else "choice.logprobs"
    return TokenBundle.build(prompt, generated, probs, message.get("routed_experts"), source=source)


def attach(response: dict[str, Any], prompt_token_ids: Callable[[], Any] | None = None) -> TokenBundle:
    """Puts the bundle of a response into its message, and takes away what it was read from.

    `prompt_token_ids` of the response, `token_ids` of the choice and, if they were the source, its `logprobs` go: they
    are transport, and a message that travels on must not carry two versions of one thing.

    Args:
        response: A chat completion as a dict, with one choice. Changed in place, and only if nothing is wrong.
        prompt_token_ids: As for `resolve`.

    Raises:
        TokenBundleError: As for `resolve`.
    """
    carried = set(_only_choice(response).get("message") or ()) >= REQUIRED_TOKEN_METADATA_FIELDS
    bundle = resolve(response, prompt_token_ids)
    choice = response["choices"][0]
    choice["message"].update(bundle.fields())
    response.pop("prompt_token_ids", None)
    choice.pop("token_ids", None)
    if not carried:
        choice.pop("logprobs", None)
    return bundle


def strip(messages: list[Any]) -> list[Any]:
    """The messages without bundles: those that had one as shallow copies, the others as they are.

    A chat template has no use for a bundle, and reading a hundred thousand ids of each message for it would cost more
    than everything else.
    """
    return [
        {key: value for key, value in message.items() if key not in TOKEN_METADATA_FIELDS}
        if isinstance(message, dict) and not TOKEN_METADATA_FIELDS.isdisjoint(message)
        else message
        for message in messages
    ]


def require_single_choice(body: Mapping[str, Any]) -> None:
    """Refuses a request for several answers: a bundle belongs to one.

    Raises:
        TokenBundleError: `n` is neither missing nor 1.
    """
    if body.get("n") not in (None, 1):
        raise TokenBundleError("n", f"must be 1 for token capture, got {body['n']!r}")


def response_token_ids(response: Mapping[str, Any], choice: Mapping[str, Any]) -> tuple[list[int], list[int]] | None:
    """The ids that a response tells by itself, of the prompt and of the answer; `None` if it tells neither.

    Raises:
        TokenBundleError: One of the two is missing, or is no list of ids.
    """
    prompt, generated = response.get("prompt_token_ids"), choice.get("token_ids")
    if prompt is None and generated is None:
        return None
    if generated is None:
        raise TokenBundleError(
            "choice.token_ids", "is missing: partial token metadata, the response has `prompt_token_ids`"
        )
    if prompt is None:
        raise TokenBundleError("prompt_token_ids", "is missing: partial token metadata, the choice has `token_ids`")
    return _ids(prompt, "prompt_token_ids"), _ids(generated, "choice.token_ids")


def choice_logprobs(choice: Mapping[str, Any], *, spelled: bool = True) -> tuple[list[int] | None, list[float]]:
    """Ids and log-probabilities of a choice's `logprobs`.

    Args:
        choice: The choice.
        spelled: Whether the tokens must be spelled as `token_id:<int>`. If not, and none is, there are no ids.

    Raises:
        TokenBundleError: There are no log-probabilities, or an entry is wrong; the error names its index.
    """
    block = choice.get("logprobs")
    content = block.get("content") if isinstance(block, Mapping) else None
    if not isinstance(content, list):
        raise TokenBundleError("choice.logprobs", "has no list `content` with one entry a token")
    try:
        tokens = [entry["token"] for entry in content]
        probs = [entry["logprob"] for entry in content]
    except (TypeError, KeyError):
        _blame_entry(content)
    numbers = _numbers(probs, "choice.logprobs.content", place="[{}].logprob")
    if not spelled and not any(map(_is_spelled, tokens)):
        return None, numbers
    return _spelled_ids(tokens), numbers


def _is_spelled(token: Any) -> bool:
    return isinstance(token, str) and token.startswith(_SPELLED)


def _spelled_ids(tokens: list[Any]) -> list[int]:
    """The ids of tokens that are all spelled `token_id:<int>`.

    All at once, in C, if they are: one text, of which every line begins with the word, which occurs nowhere else, and
    has digits behind it. If not, one after the other, to say which is wrong.
    """
    if set(map(type, tokens)) == {str}:
        lines = "\n".join(tokens)
        count = len(tokens)
        digits = lines.replace(_SPELLED, "")
        if (
            lines.startswith(_SPELLED)
            and lines.count(_SPELLED) == count
            and lines.count(f"\n{_SPELLED}") == lines.count("\n") == count - 1
            and digits.isascii()
            and digits.replace("\n", "").isdecimal()
            and "" not in (numbers := digits.split("\n"))
        ):
            return list(map(int, numbers))
    return [_spelled_id(token, index) for index, token in enumerate(tokens)]


def _spelled_id(token: Any, index: int) -> int:
    number = token[len(_SPELLED) :] if _is_spelled(token) else ""
    if not (number.isascii() and number.isdecimal()):
        raise TokenBundleError(f"choice.logprobs.content[{index}].token", "must be spelled `token_id:<int>`")
    return int(number)


def _blame_entry(content: list[Any]) -> NoReturn:
    for index, entry in enumerate(content):
        place = f"choice.logprobs.content[{index}]"
        if not isinstance(entry, Mapping):
            raise TokenBundleError(place, "must be an object")
        for key in ("token", "logprob"):
            if key not in entry:
                raise TokenBundleError(f"{place}.{key}", "is missing")
    raise TokenBundleError("choice.logprobs.content", "cannot be read")


def _only_choice(response: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = response.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        count = len(choices) if isinstance(choices, list) else "no list of"
        raise TokenBundleError("choices", f"must have one entry for token capture (n=1), got {count}")
    choice = choices[0]
    if not isinstance(choice, Mapping):
        raise TokenBundleError("choices[0]", "must be an object")
    return choice


def _agrees_with_response(bundle: TokenBundle, told: tuple[list[int], list[int]] | None) -> None:
    if told is None:
        return
    for name, field, ids in zip(
        ("prompt_token_ids", "token_ids"), (bundle.prompt_token_ids, bundle.generation_token_ids), told, strict=True
    ):
        if field != ids:
            place = name if name == "prompt_token_ids" else f"choice.{name}"
            raise TokenBundleError(place, "disagrees with the bundle of `choice.message`")


def _agrees_with_spelling(bundle: TokenBundle, choice: Mapping[str, Any]) -> None:
    """Compares with log-probabilities that spell ids; others say nothing about ids."""
    block = choice.get("logprobs")
    content = block.get("content") if isinstance(block, Mapping) else None
    if not isinstance(content, list) or not content:
        return
    tokens = [entry.get("token") if isinstance(entry, Mapping) else None for entry in content]
    if not all(map(_is_spelled, tokens)):
        return
    if _spelled_ids(tokens) != bundle.generation_token_ids:
        raise TokenBundleError("choice.logprobs", "disagrees with the bundle of `choice.message`")


def _tokenized(prompt_token_ids: Callable[[], Any] | None) -> Any:
    if prompt_token_ids is None:
        raise TokenBundleError("prompt_token_ids", "is told by no source, and nothing was given to tokenize the prompt")
    return prompt_token_ids()


def _ids(value: Any, field: str) -> list[int]:
    """The list itself, or an array's numbers, after one pass in C: integers from 0 to 2**32 - 1."""
    ids = _as_list(value, field, "integer token ids", "iu")
    try:
        array("I", ids)
    except (TypeError, OverflowError):
        pass
    else:
        return ids
    index = next((i for i, number in enumerate(ids) if not (hasattr(number, "__index__") and 0 <= number < 1 << 32)), 0)
    raise TokenBundleError(field, f"must be a list of integer token ids: entry {index} is none")


def _numbers(value: Any, field: str, place: str = ": entry {}") -> list[float]:
    """The list itself, or an array's numbers, after one pass in C."""
    numbers = _as_list(value, field, "numeric log-probabilities", "fiu")
    try:
        array("d", numbers)
    except (TypeError, OverflowError):
        pass
    else:
        if bool not in set(map(type, numbers)):
            return numbers
    index = next((i for i, number in enumerate(numbers) if isinstance(number, bool) or not _is_number(number)), 0)
    name = field + place.format(index) if place.startswith("[") else field
    raise TokenBundleError(name, f"must be numeric (log-probability {index})")


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def _as_list(value: Any, field: str, of: str, kinds: str) -> list[Any]:
    if isinstance(value, list):
        return value
    dtype = getattr(value, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") in kinds and getattr(value, "ndim", 0) == 1:
        listed: list[Any] = value.tolist()
        return listed
    raise TokenBundleError(field, f"must be a list of {of}, got {type(value).__name__}")
