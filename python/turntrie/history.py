"""The messages a session has been given, kept so that nobody can change them afterwards.

The native conversation is a snapshot by nature. The reference needs Python messages with the same contents, turns
later, when the caller may have changed the objects long ago. Plain messages, those the native code has taken, are kept
as one `marshal` string a call: exact for these types, and a memory copy instead of a walk. Anything else is copied
deeply; an object that refuses to be copied is kept as it is, and then the caller must not change it.
"""

import copy
import marshal
from typing import Any

Messages = list[dict[str, Any]]


class History:
    """A list of messages that only grows. Memory O(messages); reading it back makes fresh objects."""

    __slots__ = ("_length", "_pieces")

    def __init__(self) -> None:
        """Starts empty."""
        self._pieces: list[bytes | Messages] = []
        self._length = 0

    def __len__(self) -> int:
        """Number of messages."""
        return self._length

    def append(self, messages: Messages, *, plain: bool) -> None:
        """Adds messages; `plain` if they consist of exact builtin types only."""
        self._pieces.append(marshal.dumps(messages) if plain else _copied(messages))
        self._length += len(messages)

    def messages(self) -> Messages:
        """All messages, in a list of its own."""
        messages: Messages = []
        for piece in self._pieces:
            messages += marshal.loads(piece) if isinstance(piece, bytes) else _copied(piece)  # noqa: S302  # our own
        return messages


def _copied(messages: Messages) -> Messages:
    return [_copy(message) for message in messages]


def _copy(message: Any) -> Any:
    try:
        return copy.deepcopy(message)
    except Exception:  # noqa: BLE001  # an object's own __deepcopy__ or __reduce__ raises what it likes
        return message
