"""Records as values by column: what users hand over, from dicts to lines of text."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from acidsql.errors import InvalidValue
from acidsql.streaming.values import BadValue, shown
from acidsql.types import (
    LOCAL_TIMESTAMP,
    WHOLE_NUMBERS,
    Array,
    Char,
    Decimal,
    HiveType,
    Map,
    Primitive,
    Struct,
    Varchar,
    to_hive,
)


@dataclass(frozen=True)
class Field:
    """A column that records have values for: its name in lower case, and its type."""

    name: str
    type: HiveType


class RecordReader(Protocol):
    """Reads one record."""

    def read(self, record: Any, fields: Sequence[Field]) -> Mapping[str, Any]:
        """The values of a record by the names of columns; a column that it does not name gets its DEFAULT.

        Raises:
            BadValue: When it is not such a record.
        """
        ...


class Rows:
    """Dicts by column name (in any letter case), or tuples and lists of all columns in their order."""

    def read(self, record: Any, fields: Sequence[Field]) -> Mapping[str, Any]:
        if isinstance(record, Mapping):
            return _by_column(record, fields)
        if isinstance(record, tuple | list):
            if len(record) != len(fields):
                raise BadValue(f"A record of {len(record)} values, where the columns are {len(fields)}: {record!r:.60}")
            return {field.name: value for field, value in zip(fields, record, strict=True)}
        raise BadValue(f"A {type(record).__name__} is no record: a dict, a tuple or a list is expected")


def _by_column(record: Mapping[Any, Any], fields: Sequence[Field]) -> Mapping[str, Any]:
    names = {field.name for field in fields}
    made = {str(name).lower(): value for name, value in record.items()}
    unknown = [name for name in made if name not in names]
    if unknown:
        raise BadValue(f"The table has no column {', '.join(unknown)}")
    if len(made) < len(record):
        raise BadValue(f"A record names a column twice: {', '.join(map(str, record))}")
    return made


@dataclass(frozen=True)
class Delimited:
    """Lines of text, their fields in the order of the columns.

    Attributes:
        delimiter: What stands between two fields.
        quote: What a field with delimiters in it may be put into; None: nothing is quoted, and fields are taken as they
            stand (Hive's ``LazySimpleSerDe`` and its strict writer).
        null: The text that is NULL.
        columns: The columns of the fields, where they are not all columns of the table.
    """

    delimiter: str = ","
    quote: str | None = None
    null: str = r"\N"
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Raises: InvalidValue."""
        if not isinstance(self.delimiter, str) or not self.delimiter or _LINE_ENDS & set(self.delimiter):
            raise InvalidValue(f"{self.delimiter!r} is no delimiter: a text in a line is")
        quote = self.quote
        if quote is not None and (
            not isinstance(quote, str) or len(quote) != 1 or quote in (*self.delimiter, *_LINE_ENDS)
        ):
            raise InvalidValue(f"{quote!r} is no quote: a character that is not in the delimiter is")
        _check_columns(self.columns)

    def read(self, record: Any, fields: Sequence[Field]) -> Mapping[str, Any]:
        line = _line(record)
        texts = line.split(self.delimiter) if self.quote is None else _unquoted(line, self.delimiter, self.quote)
        return _from_texts(texts, _chosen(self.columns, fields), self.null)


@dataclass(frozen=True)
class Regex:
    """Texts that a regular expression matches as a whole; its groups are the fields.

    Attributes:
        pattern: The expression, in Python's syntax.
        columns: The columns of the groups, where they are not all columns of the table. Groups that have names are
            those of columns.
        null: The text that is NULL; so is a group that took no part.
    """

    pattern: str | re.Pattern[str]
    columns: Sequence[str] | None = None
    null: str = r"\N"

    def __post_init__(self) -> None:
        """Raises: InvalidValue."""
        _check_columns(self.columns)
        try:
            compiled = re.compile(self.pattern)
        except (re.error, TypeError, OverflowError, RecursionError) as e:
            raise InvalidValue(f"{self.pattern!r:.60} is no regular expression: {e}") from e
        if not isinstance(compiled.pattern, str):
            raise InvalidValue(f"{compiled.pattern!r:.60} is an expression of bytes: one of texts is needed")
        if self.columns is None:
            _check_columns(list(compiled.groupindex))

    def read(self, record: Any, fields: Sequence[Field]) -> Mapping[str, Any]:
        line = _line(record)
        compiled = re.compile(self.pattern)
        found = compiled.fullmatch(line)
        if found is None:
            raise BadValue(f"The expression does not match {line!r:.60}")
        names = self.columns
        if names is None and compiled.groupindex:
            names = list(compiled.groupindex)
            return _from_texts([found[name] for name in names], _chosen(names, fields), self.null)
        return _from_texts(found.groups(), _chosen(names, fields), self.null)


@dataclass(frozen=True)
class Json:
    """Texts with a JSON object each, its members called like columns (in any letter case).

    Days, times and binary values are texts in them (``2024-02-29``, ``2024-02-29 12:30:00.5``, ISO 8601 with a zone for
    a moment, base64), decimals numbers or texts; a member that is left out gets the column's DEFAULT.

    Attributes:
        ignore_unknown: Whether members that no column is called like are passed over; they are errors otherwise.
    """

    ignore_unknown: bool = False

    def read(self, record: Any, fields: Sequence[Field]) -> Mapping[str, Any]:
        text = _line(record)
        try:
            found = json.loads(text, parse_float=decimal.Decimal, parse_constant=float, object_pairs_hook=_members)
        except (ValueError, ArithmeticError, RecursionError) as e:
            raise BadValue(f"Not JSON: {text!r:.60}: {e}") from e
        if not isinstance(found, dict):
            raise BadValue(f"Not a JSON object: {text!r:.60}")
        types = {field.name: field.type for field in fields}
        if self.ignore_unknown:
            found = {name: value for name, value in found.items() if name.lower() in types}
        given = _by_column(found, fields)
        return {name: _of_json(value, types[name]) for name, value in given.items()}


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a member stands there twice")
    return made


def _line(record: Any) -> str:
    if isinstance(record, bytes | bytearray):
        try:
            record = bytes(record).decode()
        except UnicodeDecodeError as e:
            raise BadValue(f"Not UTF-8: {bytes(record)[:40]!r}") from e
    if not isinstance(record, str):
        raise BadValue(f"A {type(record).__name__} is no text")
    return record.rstrip("\r\n")


_LINE_ENDS = frozenset("\r\n")


@cache
def _quoted_or_not(delimiter: str, quote: str) -> re.Pattern[str]:
    """A field: in quotes, in which two stand for one; or without, up to a delimiter."""
    d, q = re.escape(delimiter), re.escape(quote)
    return re.compile(f"{q}((?:[^{q}]|{q}{q})*){q}|(?!{q})((?:(?!{d})[^\\r\\n])*)")


def _unquoted(line: str, delimiter: str, quote: str) -> list[str]:
    """The fields of a line. Raises: BadValue when text follows a quoted one, or a quote is not closed."""
    texts, at = list[str](), 0
    field = _quoted_or_not(delimiter, quote)
    while found := field.match(line, at):
        quoted, plain = found.groups()
        texts.append(plain if quoted is None else quoted.replace(quote * 2, quote))
        at = found.end()
        if at == len(line):
            return texts
        if not line.startswith(delimiter, at):
            break
        at += len(delimiter)
    raise BadValue(f"Not a line of fields: {line!r:.60}: there is no delimiter or no quote at character {at + 1}")


def _check_columns(names: Sequence[str] | None) -> None:
    """Raises: InvalidValue when they are no names, or one of them is there twice."""
    if names is None:
        return
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidValue("Columns are a list of names")
    known = [name.lower() for name in names]
    if twice := [name for name in known if known.count(name) > 1]:
        raise InvalidValue(f"Column {twice[0]} is there twice")


def _chosen(names: Sequence[str] | None, fields: Sequence[Field]) -> Sequence[Field]:
    if names is None:
        return fields
    known = {field.name: field for field in fields}
    for name in names:
        if name.lower() not in known:
            raise InvalidValue(f"The table has no column {name}")
    return [known[name.lower()] for name in names]


def _from_texts(texts: Sequence[str | None], fields: Sequence[Field], null: str) -> Mapping[str, Any]:
    if len(texts) != len(fields):
        raise BadValue(f"{len(texts)} fields, where {len(fields)} are expected")
    return {
        field.name: None if text is None or text == null else from_text(text, field.type)
        for text, field in zip(texts, fields, strict=True)
    }


def from_text(text: str, type: HiveType) -> Any:
    """A value from its text; what is not one of the type is an error, never NULL.

    Raises:
        BadValue: When it is not one.
    """
    if isinstance(type, Char | Varchar) or type == Primitive("string"):
        return text
    try:
        if isinstance(type, Decimal):
            return decimal.Decimal(text) if _NUMBER.fullmatch(text) else _fail()
        if isinstance(type, Array | Map | Struct):
            return _of_json(json.loads(text, parse_float=decimal.Decimal, object_pairs_hook=_members), type)
        if type.name in WHOLE_NUMBERS:
            return _whole(text)
        if type.name in ("float", "double"):
            return float(text) if _NO_NUMBER.fullmatch(text) else _finite(text) if _NUMBER.fullmatch(text) else _fail()
        if type.name == "boolean":
            return {"true": True, "false": False}[text.lower()]
        if type.name == "date":
            return _day(text)
        if type.name == "binary":
            return text.encode()
        return _moment(text)
    except (ValueError, KeyError, ArithmeticError, RecursionError):
        raise BadValue(f"{text!r:.60} is no {to_hive(type)}") from None


def _fail() -> Any:
    raise ValueError


def _finite(number: str | decimal.Decimal) -> float:
    made = float(number)
    return made if math.isfinite(made) else _fail()


def _whole(text: str) -> int:
    return int(text) if re.fullmatch(r"[+-]?\d{1,19}", text) and text.isascii() else _fail()


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NO_NUMBER = re.compile(r"nan|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)?", re.ASCII)


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text) if _DAY.fullmatch(text) else _fail()


def _moment(text: str) -> datetime.datetime:
    """What Python 3.10 reads and later versions do, too; no digit of a fraction is cut off."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return _fail()  # type: ignore[no-any-return]
    day, clock, fraction, zone = found.groups()
    zone = "+00:00" if zone == "Z" else zone or ""
    return datetime.datetime.fromisoformat(f"{day}T{clock}.{(fraction or '').ljust(6, '0')}{zone}")


_AS_TEXTS = tuple(Primitive(name) for name in ("date", "timestamp", LOCAL_TIMESTAMP))
"""Types whose values are texts in JSON."""


def _of_json(value: Any, type: HiveType) -> Any:
    """A value of JSON as one of a column: texts where JSON has no type of its own."""
    if value is None:
        return None
    if isinstance(type, Array):
        return [_of_json(one, type.element) for one in value] if isinstance(value, list) else value
    if isinstance(type, Struct):
        types = {name.lower(): field for name, field in type.fields}
        if not isinstance(value, dict):
            return value
        return {n: _of_json(v, types[n.lower()]) if n.lower() in types else v for n, v in value.items()}
    if isinstance(type, Map):
        if not isinstance(value, dict):
            return value
        made = {from_text(k, type.key): _of_json(v, type.value) for k, v in value.items()}
        if len(made) < len(value):
            raise BadValue(f"{shown(value)} is no {to_hive(type)}: two keys are equal as they are stored")
        return made
    if isinstance(value, decimal.Decimal):
        if type not in (Primitive("double"), Primitive("float")):
            return value
        try:
            return _finite(value)
        except ValueError:
            raise BadValue(f"{shown(value)} is no {to_hive(type)}: out of range") from None
    if isinstance(value, str) and type == Primitive("binary"):
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise BadValue(f"{value!r:.60} is no base64") from None
    has_text = isinstance(type, Decimal) or type in _AS_TEXTS
    return from_text(value, type) if isinstance(value, str) and has_text else value
