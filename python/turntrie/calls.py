"""Which calls of `apply_chat_template` are native, decided from their arguments alone.

A call is read into a `Call`, or into the reason why the reference serves it. The list of what is native is short and
closed: one conversation, a list of dicts, or a list of such, rendered to ids, a BatchEncoding (maybe with the mask of
what an assistant said) or text, with tools that are schemas or functions, and plain documents. A parameter that is not
known here, of a transformers yet to come, sends the call to the reference as soon as the caller gives it. Nothing of
the caller's is changed, so the reference can still get exactly the caller's arguments.
"""

from typing import Any, NamedTuple

from turntrie import reference
from turntrie.reason import Reason
from turntrie.reference import Parameters


class Call(NamedTuple):
    """A call that may be served natively."""

    conversation: list[Any]
    """One conversation; if `batched`, several."""
    tools: list[dict[str, Any]] | None
    documents: list[dict[str, Any]] | None
    chat_template: str | None
    add_generation_prompt: Any
    tokenize: bool
    return_dict: bool
    continue_final_message: bool | str
    max_length: int | None
    return_assistant_tokens_mask: bool | None
    variables: dict[str, Any]
    """The keywords that go to the template."""
    batched: bool

    def each(self) -> "list[Call]":
        """The calls for single conversations that this one stands for."""
        if not self.batched:
            return [self]
        return [self._replace(conversation=conversation, batched=False) for conversation in self.conversation]


# The parameters that are read, in the order of `Call`.
_READ = Call._fields[:-2]
# Parameters that have to keep the one value under which they change nothing.
_NEUTRAL = {
    "sanitize_control_tokens": (False, Reason("call:sanitize")),
    "padding": (False, Reason("call:padding")),
    "truncation": (False, Reason("call:truncation")),
    "return_tensors": (None, Reason("call:tensors")),
    "tokenizer_kwargs": (None, Reason("call:tokenizer-kwargs")),
}
_OPTIONAL_STR = (type(None), str)
_OPTIONAL_INT = (type(None), int)
# Names that mean something else when given to jinja2's `render` or to transformers' `render_jinja_template`.
_RESERVED = frozenset(
    (
        *("self", "messages", "conversations", "caller", "loop", "varargs", "kwargs"),
        *("range", "dict", "lipsum", "cycler", "joiner", "namespace", "raise_exception", "strftime_now"),
    )
)


def read(parameters: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | Reason:
    """Reads a call of a method with this signature. Cost: independent of the conversation's length."""
    positional = parameters.positional
    if len(args) > len(positional):
        return Reason("call:signature")
    given = dict(zip(positional, args, strict=False))
    variables = {}
    for name, value in kwargs.items():
        if name not in parameters.defaults:
            variables[name] = value
        elif name in given:
            return Reason("call:signature")
        else:
            given[name] = value
    for name, value in given.items():
        if name in _NEUTRAL:
            neutral, reason = _NEUTRAL[name]
            if value is not neutral:
                return reason
        elif name not in _READ:
            return Reason("call:parameter")
    if not _RESERVED.isdisjoint(variables):
        return Reason("call:keyword")
    default = parameters.defaults.get
    values = [given[name] if name in given else default(name) for name in _READ]
    call = Call._make((*values, variables, _is_batch(values[0])))
    refusal = (
        _conversation(call)
        or _options(call, explicit_dict="return_dict" in given)
        or _continuation(call)
        or _mask(call)
        or _dicts(call.documents, Reason("call:documents"))
    )
    return refusal or _with_schemas(call)


def _is_batch(conversation: Any) -> bool:
    return type(conversation) is list and bool(conversation) and type(conversation[0]) is list


def _conversation(call: Call) -> Reason | None:
    conversation = call.conversation
    if call.batched:
        plain = all(type(one) is list for one in conversation)
        return None if plain else Reason("call:batch")
    if type(conversation) is not list:
        return Reason("call:conversation")
    if not conversation:
        return Reason("call:empty")
    first = conversation[0]
    if type(first) is dict:
        return None
    # The two ways in which transformers recognises a batch.
    batch = isinstance(first, list | tuple) or hasattr(first, "messages")
    return Reason("call:batch" if batch else "value:message")


def _options(call: Any, *, explicit_dict: bool) -> Reason | None:
    if type(call.tokenize) is not bool or type(call.return_dict) is not bool:
        return Reason("call:flags")
    if call.return_dict and explicit_dict and not call.tokenize:
        return Reason("call:text-dict")
    if type(call.chat_template) not in _OPTIONAL_STR:
        return Reason("call:template")
    if type(call.max_length) not in _OPTIONAL_INT:
        return Reason("call:max-length")
    return None


def _continuation(call: Any) -> Reason | None:
    field = call.continue_final_message
    if field is False:
        return None
    known = field is True or (type(field) is str and field)
    return None if known and call.add_generation_prompt is False else Reason("call:continue")


def _mask(call: Any) -> Reason | None:
    """Why a mask cannot be had: transformers makes one for an encoding only, and not of a continued message."""
    wanted = call.return_assistant_tokens_mask
    if wanted is None or wanted is False:
        return None
    possible = wanted is True and call.tokenize and call.return_dict and call.continue_final_message is False
    return None if possible else Reason("call:assistant-mask")


def _dicts(values: Any, reason: Reason) -> Reason | None:
    if values is None or (type(values) is list and all(type(value) is dict for value in values)):
        return None
    return reason


def _with_schemas(call: Any) -> Call | Reason:
    """The call with the schemas of its tools; transformers makes those of functions and methods."""
    tools = call.tools
    if _dicts(tools, Reason("call:tools")) is None:
        read: Call = call
        return read
    if type(tools) is not list:
        return Reason("call:tools")
    schemas = []
    for tool in tools:
        if type(tool) is dict:
            schemas.append(tool)
            continue
        schema = reference.json_schema(tool)
        if schema is None:
            return Reason("call:function-tool" if callable(tool) else "call:tools")
        schemas.append(schema)
    made: Call = call._replace(tools=schemas)
    return made
