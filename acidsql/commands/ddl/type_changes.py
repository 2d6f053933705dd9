"""Allowed type changes of a column, and their effect on values in old files, which keep their types.

Hive's metastore compares only the kinds of types (``ColumnType.areColTypesCompatible``): it lets a ``decimal(10,2)``
become a ``decimal(4,0)``, and any struct any other. Values that do not fit are then read as NULL or truncated, as
orc-core converts them (``ConvertTreeReaderFactory``), in Hive and in Spark alike, since both use it.

Struct fields are matched by name, in any letter case (``SchemaEvolution``), unlike the columns of a table. A field that
a file lacks is NULL, and so is a renamed field.
"""

from __future__ import annotations

from enum import IntEnum

from acidsql.types import Array, Char, Decimal, HiveType, Map, Primitive, Struct, Varchar

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_ORDER = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
"""Hive's order of numeric types: each may change to a later one."""
_TEXTS = ("string", "char", "varchar")
_TIMES = ("date", "timestamp")
_WIDTHS = {**{name: digits + 1 for name, digits in _DIGITS.items()}, "date": 10, "timestamp": 29}
"""Characters of the longest value as a text."""


class Verdict(IntEnum):
    """The effect on values in old files, from best to worst."""

    FINE = 0
    LOSSY = 1
    """Some may be read as NULL, truncated, or no longer shown."""
    UNREADABLE = 2
    """They cannot be read, or read differently than in Hive."""


def kinds_fit(old: HiveType, new: HiveType) -> bool:
    """Hive's rule when ``hive.metastore.disallow.incompatible.col.type.changes`` is true, the default."""
    before, after = _kind(old), _kind(new)
    if before == after or (before in _TEXTS and after in _TEXTS):
        return True
    if before in _ORDER and after in _ORDER:
        return _ORDER.index(before) < _ORDER.index(after)
    return after in _TEXTS and (before in _ORDER or before in _TIMES)


def judge(old: HiveType, new: HiveType) -> Verdict:
    """The effect of a type change on a column's values in old files."""
    return _judge(old, new, is_nested=False, is_repeated=False)


def _judge(old: HiveType, new: HiveType, *, is_nested: bool = True, is_repeated: bool = True) -> Verdict:
    """``is_repeated`` below an array or a map, of which a value may have no element at all."""
    if old == new:
        return Verdict.FINE
    if isinstance(old, Array) and isinstance(new, Array):
        return _judge(old.element, new.element)
    if isinstance(old, Map) and isinstance(new, Map):
        pads = isinstance(new.key, Char) and not isinstance(old.key, Char)
        if pads or _judge(old.key, new.key) is not Verdict.FINE:  # two keys might become equal
            return Verdict.UNREADABLE
        return _judge(old.value, new.value)
    if isinstance(old, Struct) and isinstance(new, Struct):
        return _fields(old, new, is_repeated=is_repeated)
    if is_repeated and _vector(old) != _vector(new):
        return Verdict.UNREADABLE  # orc-core fails where there is nothing to convert (convertVector)
    if is_nested and isinstance(new, Varchar) and _text(old, new) is not Verdict.FINE:
        return Verdict.UNREADABLE  # nested values are not truncated
    return _leaf(old, new)


def _vector(type: HiveType) -> str:
    """The kind of vector that orc-core reads values of a type into; a change between two of them is a conversion."""
    kind = _kind(type)
    if kind in (*_DIGITS, "boolean", "date"):
        return "long"
    return "double" if kind in ("float", "double") else "bytes" if kind in _TEXTS else kind


def _fields(old: Struct, new: Struct, *, is_repeated: bool) -> Verdict:
    before = {name.lower(): type for name, type in old.fields}
    kept = [(before[name.lower()], type) for name, type in new.fields if name.lower() in before]
    worst = Verdict.LOSSY if len(kept) < len(before) else Verdict.FINE
    return max([worst, *(_judge(was, now, is_repeated=is_repeated) for was, now in kept)])


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
    """Whether all values of a decimal or integer type fit before and after the decimal point."""
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
