"""Properties of a compaction request as one text, in the form in which Hive's queue keeps them (``StringableMap``).

``2:1:a2:bc3:key0:`` is ``{"a": "bc", "key": ""}``: how many there are, then each key and value after its length, which
counts UTF-16 units, as Java does.
"""

from __future__ import annotations

from collections.abc import Mapping

_UTF16 = "utf-16-le"


def to_text(properties: Mapping[str, str]) -> str | None:
    """The text; None for no properties."""
    if not properties:
        return None
    parts = (_counted(part) for pair in properties.items() for part in pair)
    return f"{len(properties)}:{''.join(parts)}"


def from_text(text: str | None) -> dict[str, str]:
    """The properties of a text; none for no text.

    Raises:
        ValueError: When the text is not of this form.
    """
    if not text:
        return {}
    number, _, rest = text.partition(":")
    parts = []
    for _ in range(2 * int(number)):
        part, rest = _take(rest)
        parts.append(part)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _counted(part: str) -> str:
    return f"{len(part.encode(_UTF16)) // 2}:{part}"


def _take(text: str) -> tuple[str, str]:
    """The first counted part, and what follows it."""
    length, colon, rest = text.partition(":")
    units = rest.encode(_UTF16)
    end = 2 * int(length)
    if not colon or len(units) < end:
        raise ValueError(f"properties that end too early: {text!r}")
    return units[:end].decode(_UTF16), units[end:].decode(_UTF16)
