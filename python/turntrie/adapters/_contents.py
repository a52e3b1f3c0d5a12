"""Contents and arguments, as the normalisers of wire formats turn them: shared by `openai` and `anthropic`.

A wire format has more shapes than a chat template takes. What is said in text is kept word for word; what cannot be
said in text, images above all, is refused or marked, as the caller chooses, and never dropped without a word.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

Arguments = Literal["dict", "json", "as-is"]
"""How the arguments of a call are spelled: parsed, as JSON text, or as they came."""
Images = Literal["refuse", "mark"]
"""What becomes of an image, sound or file in a content: a ValueError, or a mark in its place."""

MARK = "[image omitted]"
_TEXT = frozenset({"text", "input_text", "output_text"})
_REFUSAL = "refusal"
_PICTURES = frozenset({"image", "image_url", "input_image"})


def arguments(value: Any, spelling: Arguments) -> Any:
    """The arguments of one call. What does not parse to an object stays as it is."""
    if spelling == "as-is":
        return value
    if spelling == "json":
        return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)
    if value is None:
        return {}
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value or "{}")
    except ValueError:
        return value
    return parsed if isinstance(parsed, dict) else value


def text(content: Any, images: Images, *, place: str, joint: str = "") -> str:
    """A content as one text.

    Args:
        content: A text, a list of parts, or None.
        images: What becomes of an image.
        place: Where the content lies, for the error.
        joint: What stands between two parts.

    Raises:
        ValueError: There is a part that is not text, and it is not to be marked.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError(f"{place} is neither a text nor a list of parts: {type(content).__name__}")  # noqa: TRY004  # a bad body
    return joint.join(_part(part, images, f"{place}[{index}]") for index, part in enumerate(content))


def _part(part: Any, images: Images, place: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _TEXT or kind == _REFUSAL:
        value = part.get(_REFUSAL if kind == _REFUSAL else "text")
        if isinstance(value, str):
            return value
        raise ValueError(f"{place} has no text")
    if kind in _PICTURES and images == "mark":
        return MARK
    raise ValueError(f"{place} is a part of type {kind!r}, which is not text")
