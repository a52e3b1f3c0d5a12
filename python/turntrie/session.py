"""One growing conversation, canonical: the ids are always those of the whole conversation, rendered anew.

`prompt` takes all messages, `extend` only the new ones, which are converted once and then belong to the session; what
is proportional to the history is left to the native code. Both return a `Prompt` whose `kept` counts the leading ids
equal to those of the session's previous prompt, so that `previous.ids[:kept]` followed by `new_ids` is `ids`: an engine
that holds the previous prompt needs only that.

The session owns what it was given. Changing a message after passing it changes nothing here, neither for the native
path nor for the reference, which serves the full list of messages if a turn cannot be native. A call that raises leaves
the session as it was.
"""

from types import TracebackType
from typing import Any, NamedTuple, Self

from turntrie import _native, attachment, path, reference
from turntrie.attachment import Attachment
from turntrie.dispatch import count
from turntrie.handle import arguments, reference_prompt
from turntrie.history import History, Messages
from turntrie.locks import ForkSafeLock
from turntrie.prompt import Prompt
from turntrie.reason import Reason
from turntrie.wrapping import is_wrapped


class _State(NamedTuple):
    """What a session knows after a prompt."""

    history: History
    conversation: _native.Conversation | None
    """The converted messages; `None` if there is none that is equal to the history."""
    keywords: dict[str, Any]
    previous: Prompt | None


class Session:
    """A conversation with one wrapped tokenizer. Calls from several threads are served one after the other."""

    def __init__(self, tok: Any, namespace: str | int | None = None) -> None:
        """Opens a session.

        Args:
            tok: A wrapped tokenizer.
            namespace: Sessions with the same tokenizer backend and namespace share checkpoints. By default those of
                the tokenizer.

        Raises:
            TypeError: The tokenizer is not wrapped.
        """
        if not is_wrapped(tok):
            raise TypeError(f"Session needs a wrapped tokenizer: turntrie.wrap(tok) first, got {type(tok).__name__}")
        self._tok = tok
        self._root = None if namespace is None else attachment.root(namespace)
        self._lock = ForkSafeLock()
        self._state: _State | None = _State(History(), None, {}, None)

    def prompt(
        self,
        messages: Messages,
        tools: list[Any] | None = None,
        documents: list[dict[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        **template_kwargs: Any,
    ) -> Prompt:
        """The prompt of these messages, which from now on are the session's conversation.

        Args:
            messages: The whole conversation.
            tools: As for `apply_chat_template`, as are the other keywords.
            documents: See there.
            chat_template: See there.
            add_generation_prompt: See there.
            **template_kwargs: See there.

        Raises:
            TypeError: `messages` is no list, or a keyword asks for another shape than one prompt's ids.
            ValueError: The session is closed.
        """
        keywords = arguments(tools, documents, chat_template, add_generation_prompt, template_kwargs)
        with self._lock.now:
            return self._serve(History(), None, messages, keywords)

    def extend(self, new_messages: Messages, **changed: Any) -> Prompt:
        """The prompt after more messages.

        Args:
            new_messages: Only what is new; not empty, unless keywords change.
            **changed: Keywords of `prompt` that differ from the last call's; all others stay. `tools=None` means no
                tools from now on.

        Raises:
            TypeError: `new_messages` is no list, or a keyword asks for another shape than one prompt's ids.
            ValueError: The session is closed.
        """
        with self._lock.now:
            state = self._open()
            arguments(None, None, None, False, changed)
            keywords = {name: value for name, value in {**state.keywords, **changed}.items() if value is not None}
            return self._serve(state.history, state.conversation, new_messages, keywords)

    def close(self) -> None:
        """Forgets the conversation. Its checkpoints stay in the tokenizer's engine, within its budget."""
        with self._lock.now:
            self._state = None

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes the session."""
        self.close()

    def _open(self) -> _State:
        if self._state is None:
            raise ValueError("the session is closed")
        return self._state

    def _serve(
        self, history: History, conversation: _native.Conversation | None, new: Messages, keywords: dict[str, Any]
    ) -> Prompt:
        """Serves the messages of `history` and `new`, and makes them the session's."""
        state = self._open()
        if not isinstance(new, list):
            raise TypeError(f"a session takes messages in a list, got {type(new).__name__}")
        tok, attached = self._tok, Attachment.of(self._tok)
        converted, served = self._native(attached, history, conversation, new, keywords)
        if isinstance(served, Reason):
            messages = [*history.messages(), *new] if len(history) else new
            source = reference_prompt(tok, attached, served, (messages,), keywords)
        else:
            source = served
        kept = 0 if state.previous is None else source.common_prefix(state.previous)
        history.append(new, plain=converted is not None)
        self._state = _State(history, converted, keywords, source)
        return source.with_kept(kept)

    def _native(
        self,
        attached: Attachment,
        history: History,
        conversation: _native.Conversation | None,
        new: Messages,
        keywords: dict[str, Any],
    ) -> tuple[_native.Conversation | None, Prompt | Reason]:
        """Converts what is not converted yet and serves it.

        Returns:
            The conversation that holds all messages, if they can be converted, and the prompt or the reason.
        """
        tok, previous = self._tok, self._open().previous
        # Without new messages, the old ones are asked about again; they are dicts, or there would be no conversation.
        call = path.read(tok, (new if new or not len(history) else [{}],), keywords)
        if isinstance(call, Reason):
            return None, call
        if call.batched:
            return None, Reason("call:batch")
        rules = reference.rules()
        refusal: str | None = rules.refuse(new)
        if conversation is None:
            conversation = _native.Conversation()
            refusal = refusal or conversation.extend(history.messages(), rules.flags)
        # From here on it may be ahead of the history: the session must not find it after an error.
        self._state = self._open()._replace(conversation=None)
        refusal = refusal or conversation.extend(new, rules.flags)
        if refusal is not None:
            return None, Reason(refusal)
        ids = path.ids(
            tok,
            attached,
            call,
            messages=conversation,
            root=self._root,
            everything=lambda: [*history.messages(), *new],
            previous=None if previous is None else previous.native,
        )
        if isinstance(ids, Reason):
            return conversation, ids
        count(tok, attached, [ids.prompt], call.max_length)
        return conversation, Prompt(ids.prompt)
