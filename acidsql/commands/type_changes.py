"""Which type a column may change to: only one in which old files, that keep their own types, read rightly.

Hive's metastore compares the kinds of types alone (``ColumnType.areColTypesCompatible``) and lets a ``decimal(10,2)``
become a ``decimal(4,0)``, or a ``string`` a ``char(3)``; values that do not fit are then read as NULL, or cut off, and
the next UPDATE writes them so. Such changes are made here only with the setting with which Hive allows even more.
"""

from __future__ import annotations

from enum import Enum

from acidsql.types import Char, Decimal, HiveType, Primitive, Varchar

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_ORDER = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
"""Hive's order of numeric types: each may become a later one."""
_WIDTHS = {**{name: digits + 1 for name, digits in _DIGITS.items()}, "date": 10, "timestamp": 29}
"""Characters of the longest value as a text."""


class Verdict(Enum):
    """What may become of a change of type."""

    FINE = "every value that fits the old type fits the new one"
    LOSSY = "Hive's kinds fit, but values could be lost"
    INCOMPATIBLE = "Hive's kinds do not fit"
    UNREADABLE = "old files could not be read"


def judge(old: HiveType, new: HiveType) -> Verdict:
    """What a column's change from one type to another means for the values that are there."""
    if old == new:
        return Verdict.FINE
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        grows = new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        return Verdict.FINE if grows else Verdict.LOSSY
    before, after = _kind(old), _kind(new)
    if before in _ORDER and after in _ORDER:
        return _numbers(before, after, new)
    if _is_text(new):
        return _to_text(old, new)
    if before in ("string", "char", "varchar", "boolean") and after in _ORDER:
        return Verdict.INCOMPATIBLE
    if before == after:  # array, map or struct with other contents
        return Verdict.LOSSY
    return Verdict.UNREADABLE


def is_lenient(type: HiveType) -> bool:
    """Whether what does not fit a type is read as Hive reads it: NULL for a number, cut off for a text."""
    return _kind(type) in _ORDER or _is_text(type)


def _numbers(before: str, after: str, new: HiveType) -> Verdict:
    if _ORDER.index(before) >= _ORDER.index(after):
        return Verdict.INCOMPATIBLE
    if isinstance(new, Decimal) and new.precision - new.scale < _DIGITS[before]:
        return Verdict.LOSSY
    return Verdict.FINE


def _to_text(old: HiveType, new: HiveType) -> Verdict:
    width: int | None
    if isinstance(old, Char | Varchar):
        width = old.length
    elif isinstance(old, Decimal):
        width = old.precision + 3
    elif _kind(old) in ("string", "float", "double"):
        width = None
    elif _kind(old) in _WIDTHS:
        width = _WIDTHS[_kind(old)]
    else:
        return Verdict.UNREADABLE
    if not isinstance(new, Char | Varchar):
        return Verdict.FINE
    return Verdict.FINE if width is not None and width <= new.length else Verdict.LOSSY


def _is_text(type: HiveType) -> bool:
    return isinstance(type, Char | Varchar) or _kind(type) == "string"


def _kind(type: HiveType) -> str:
    return type.name if isinstance(type, Primitive) else type.__class__.__name__.lower()
