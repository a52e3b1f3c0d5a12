"""Why the reference serves a call: a value, not an exception.

Falling back is an ordinary outcome. It is counted and shown to users, so a reason is short and stable and never holds
message contents. It reads `category:detail`:

- `call:…`: a form of the call that is not native (`call:tensors`, `call:truncation`);
- `template:…`, `value:…`, `render:…`: from the native template (a construct, a kind of value, a failed render);
- `limit:…`: the template does more than any template may; `TemplateLimitError` is raised, and nobody serves the call;
- `tokenizer:…`: the backend cannot be loaded, or a method that decides the result is not the generic one;
- `reference:…`: what the installed transformers does to messages, or to make a mask, is not understood;
- `panic:…`: the native code panicked; always a bug of ours.
"""


class TemplateLimitError(RuntimeError):
    """A chat template was stopped: it does more work than any template may (`limit:work`).

    Raised instead of asking transformers, which has no limit: it would hang, or exhaust the memory.
    """


class Reason(str):
    """A reason, told apart from a rendered text by its type."""

    __slots__ = ()
