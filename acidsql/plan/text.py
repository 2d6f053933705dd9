"""Names, texts and row numbers as Spark SQL takes them."""

from __future__ import annotations

TASK_SHIFT = 33
"""``monotonically_increasing_id`` keeps the task's number above these bits, and a row number in the task in them."""


def row_number_of(id: str = "monotonically_increasing_id()") -> str:
    """The number of a row in its task, from 0, of such an id."""
    return f"{id} & {(1 << TASK_SHIFT) - 1}L"


def quote(name: str) -> str:
    """A name in back-quotes, as Spark SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """A string literal of Spark SQL that means exactly ``text``."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def required(condition: str, message: str) -> str:
    """A condition that fails with a message instead of being false or NULL."""
    return f"CASE WHEN {condition} THEN true ELSE raise_error({literal(message)}) END"
