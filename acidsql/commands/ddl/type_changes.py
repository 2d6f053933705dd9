"""Which type a column may change to, and what becomes of the values in old files, which keep their own types.

Hive's metastore compares the kinds of types alone (``ColumnType.areColTypesCompatible``): it lets a ``decimal(10,2)``
become a ``decimal(4,0)``, and any struct any other. What does not fit is then read as NULL, or cut off, as orc-core
converts it (``ConvertTreeReaderFactory``) — in Hive and in Spark alike, as both read by it.

The fields of a struct are found by their names, in any letter case (``SchemaEvolution``), other than the columns of a
table. What a file does not have is NULL: so is a field that is called otherwise now.
"""

from __future__ import annotations

from enum import IntEnum

from acidsql.types import Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_ORDER = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
"""Hive's order of numeric types: each may become a later one."""
_TEXTS = ("string", "char", "varchar")
_TIMES = ("date", "timestamp")
_WIDTHS = {**{name: digits + 1 for name, digits in _DIGITS.items()}, "date": 10, "timestamp": 29}
"""Characters of the longest value as a text."""


class Verdict(IntEnum):
    """What becomes of the values in old files; the greater, the worse."""

    FINE = 0
    LOSSY = 1
    """Some may be read as NULL, or cut off, or not be shown any longer."""
    UNREADABLE = 2
    """They cannot be read, or not as Hive reads them."""


def kinds_fit(old: HiveType, new: HiveType) -> bool:
    """Hive's own rule, where ``hive.metastore.disallow.incompatible.col.type.changes`` is on, as it is by default."""
    before, after = _kind(old), _kind(new)
    if before == after or (before in _TEXTS and after in _TEXTS):
        return True
    if before in _ORDER and after in _ORDER:
        return _ORDER.index(before) < _ORDER.index(after)
    return after in _TEXTS and (before in _ORDER or before in _TIMES)


def judge(old: HiveType, new: HiveType) -> Verdict:
    """What becomes of the values of a column that changes from one type to another."""
    return _judge(old, new, is_nested=False)


def _judge(old: HiveType, new: HiveType, *, is_nested: bool = True) -> Verdict:
    if old == new:
        return Verdict.FINE
    if isinstance(old, Array) and isinstance(new, Array):
        return _judge(old.element, new.element)
    if isinstance(old, Map) and isinstance(new, Map):
        if _judge(old.key, new.key) is not Verdict.FINE:  # two keys might become one
            return Verdict.UNREADABLE
        return _judge(old.value, new.value)
    if isinstance(old, Struct) and isinstance(new, Struct):
        return _fields(old, new)
    if is_nested and isinstance(new, Varchar) and _text(old, new) is not Verdict.FINE:
        return Verdict.UNREADABLE  # nobody cuts it off inside of a value
    return _leaf(old, new)


def _fields(old: Struct, new: Struct) -> Verdict:
    before = {name.lower(): type for name, type in old.fields}
    kept = [(before[name.lower()], type) for name, type in new.fields if name.lower() in before]
    gone = Verdict.LOSSY if len(kept) < len(before) else Verdict.FINE
    return max([gone, *(_judge(was, now) for was, now in kept)])


def _leaf(old: HiveType, new: HiveType) -> Verdict:
    before, after = _kind(old), _kind(new)
    if isinstance(new, Decimal) and before in _ORDER[:5]:
        return _decimal(old, new)
    if after in _TEXTS:
        return _text(old, new)
    if before in _ORDER and after in _ORDER:
        return Verdict.FINE if _ORDER.index(before) < _ORDER.index(after) else Verdict.LOSSY
    if after in _ORDER and (before in _TEXTS or before == "boolean"):
        return Verdict.LOSSY
    return Verdict.UNREADABLE


def _decimal(old: HiveType, new: Decimal) -> Verdict:
    """Whether every value of a decimal or integer type has its place before and behind the point."""
    before, behind = (old.precision - old.scale, old.scale) if isinstance(old, Decimal) else (_DIGITS[_kind(old)], 0)
    fits = new.scale >= behind and new.precision - new.scale >= before
    return Verdict.FINE if fits else Verdict.LOSSY


def _text(old: HiveType, new: HiveType) -> Verdict:
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


def _kind(type: HiveType) -> str:
    return type.name if isinstance(type, Primitive) else type.__class__.__name__.lower()
