"""Names and texts as Spark SQL takes them."""

from __future__ import annotations


def quote(name: str) -> str:
    """A name in back-quotes, as Spark SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string literal of Spark SQL that means exactly ``text``."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
