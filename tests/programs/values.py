"""Types of columns, and values that are worth a try in them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.programs.text import Piece, Sql, no_hive, piece, sql, string


@dataclass(frozen=True)
class Value:
    """A literal, and the value as pyorc takes it.

    ``compared`` is its literal in a comparison, and ``in_files`` is whether files of any writer have it alike: those
    of before 1582 depend on the writer's calendar.
    """

    text: Sql
    stored: Any
    in_files: bool = True
    compared: Sql | None = None


@dataclass(frozen=True)
class Type:
    """A type by the names that Hive and the oracle give it.

    Attributes:
        values: Values of it, without NULL.
        comparison: The operators that mean the same everywhere.
        wider: The types that a column of it may change to.
    """

    name: str
    oracle: str
    values: tuple[Value, ...]
    comparison: tuple[str, ...] = ("=", "<", ">=")
    wider: tuple[str, ...] = ()

    @property
    def null(self) -> Value:
        """NULL of this type."""
        text = f"CAST(NULL AS {self.name})"
        hive = text
        if self.name.startswith(("array", "map", "struct")):
            hive = f"if(false, {self.values[0].text.hive}, NULL)"
        return Value(Sql(text, hive, f"CAST(NULL AS {self.oracle})"), None)


def _cast(name: str, oracle: str, texts: Iterable[tuple[str, Any]], quotes: str = "'") -> tuple[Value, ...]:
    literal = f"CAST({quotes}<v>{quotes} AS <t>)"
    made = []
    for text, stored in texts:
        filled = literal.replace("<v>", text)
        made.append(Value(sql(filled.replace("<t>", name), oracle=filled.replace("<t>", oracle)), stored))
    return tuple(made)


def _number(name: str, *numbers: int, wider: tuple[str, ...] = ()) -> Type:
    return Type(name, name, _cast(name, name, [(str(n), n) for n in numbers]), wider=wider)


def _decimal(precision: int, scale: int, *numbers: str, wider: tuple[str, ...] = ()) -> Type:
    name = f"decimal({precision},{scale})"
    return Type(name, name, _cast(name, name, [(n, Decimal(n)) for n in numbers]), wider=wider)


def _real(name: str, oracle: str, *numbers: str, wider: tuple[str, ...] = ()) -> Type:
    values = _cast(name, oracle, [(n, float(n)) for n in numbers])
    made = tuple(Value(no_hive(v.text) if v.stored != v.stored else v.text, v.stored) for v in values)
    return Type(name, oracle, made, comparison=("=", ">="), wider=wider)


def _text(name: str, *texts: str, pad: int = 0, wider: tuple[str, ...] = ()) -> Type:
    made = []
    for text in texts:
        plain, padded = string(text), string(text.ljust(pad))
        cast = f"CAST({plain.acid} AS {name})" if name != "string" else plain.acid
        compared = Sql(plain.acid, cast, padded.oracle)
        made.append(Value(Sql(cast, cast, padded.oracle), text, compared=compared))
    return Type(name, "varchar", tuple(made), comparison=("=", "<", ">=") if not pad else ("=",), wider=wider)


def _dates() -> tuple[Value, ...]:
    days = ["2024-02-29", "1969-12-31", "9999-12-31", "1582-10-15", "1582-10-04", "1200-02-29", "0001-01-01"]
    return tuple(Value(piece(f"date '{d}'"), dt.date.fromisoformat(d), in_files=d > "1900") for d in days)


def _timestamps() -> tuple[Value, ...]:
    moments = [
        "2024-02-29 12:34:56.123456",
        "1969-12-31 23:59:58.999999",  # the second after it is one that ORC cannot hold
        "9999-12-31 23:59:59.999999",
        "1582-10-04 23:59:59.5",
        "1200-02-29 00:00:00.000001",
        "2024-07-01 00:00:00",
    ]
    return tuple(Value(piece(f"timestamp '{m}'"), _moment(m), in_files=m > "1900") for m in moments)


def _moment(text: str) -> dt.datetime:
    head, _, fraction = text.partition(".")
    made = dt.datetime.strptime(head, "%Y-%m-%d %H:%M:%S")
    return made.replace(microsecond=int(fraction.ljust(6, "0") or 0), tzinfo=dt.timezone.utc)


def _nested(name: str, oracle: str, *values: tuple[str, str, Any]) -> Type:
    made = tuple(Value(Sql(text, text, oracles), stored) for text, oracles, stored in values)
    return Type(name, oracle, made, comparison=())


NULL_INT, NULL_TEXT = "CAST(NULL AS int)", "CAST(NULL AS string)"
TYPES: dict[str, Type] = {
    t.name: t
    for t in (
        _number("tinyint", 127, -128, 0, wider=("smallint", "bigint")),
        _number("smallint", 32767, -32768, 0, wider=("int",)),
        _number("int", 2147483647, -2147483648, 0, 7, wider=("bigint", "decimal(12,2)", "string")),
        _number("bigint", 9223372036854775807, -9223372036854775808, 0, 5000000000, wider=("string",)),
        _decimal(38, 18, "12345678901234567890.123456789012345678", "-99999999999999999999.999999999999999999", "1.5"),
        _decimal(5, 2, "999.99", "-1.5", "0", wider=("decimal(12,4)",)),
        _decimal(12, 2, "9999999999.99", "-0.01"),
        _decimal(12, 4, "99999999.9999", "-1.5"),
        _real("float", "float", "1.5", "0.1", "-Infinity", "NaN", wider=("double",)),
        _real("double", "double", "0.1", "1.7976931348623157E308", "Infinity", "NaN", "-1.5"),
        _text("string", "a", "", "żółć 😀", "it's", "back\\slash", "x" * 30, "two\nlines"),
        _text("varchar(5)", "abc", "", "żółćx", wider=("varchar(9)", "string")),
        _text("varchar(9)", "abc", "123456789"),
        _text("char(4)", "ab", "", "żółć", pad=4),
        Type("boolean", "boolean", (Value(piece("true"), True), Value(piece("false"), False)), ("=",)),
        Type(
            "binary",
            "blob",
            tuple(Value(piece(f"unhex('{h}')"), bytes.fromhex(h)) for h in ("00ff", "", "deadbeef00")),
            ("=",),
        ),
        Type("date", "date", _dates()),
        Type("timestamp", "timestamp", _timestamps()),
        _nested(
            "array<int>",
            "int[]",
            ("array(1, 2)", "[1, 2]", [1, 2]),
            (f"array(7, {NULL_INT})", "[7, NULL]", [7, None]),
        ),
        _nested(
            "map<string,int>",
            "map(varchar, int)",
            ("map('a', 1)", "map {'a': 1}", [("a", 1)]),
            (f"map('', {NULL_INT})", "map {'': NULL}", [("", None)]),
        ),
        _nested(
            "struct<a:int,b:string>",
            "struct(a int, b varchar)",
            ("named_struct('a', 1, 'b', 'x')", "{'a': 1, 'b': 'x'}", (1, "x")),
            (
                f"named_struct('a', {NULL_INT}, 'b', {NULL_TEXT})",
                "{'a': CAST(NULL AS int), 'b': CAST(NULL AS varchar)}",
                (None, None),
            ),
        ),
        _nested(
            "array<struct<k:string,v:map<int,string>>>",
            "struct(k varchar, v map(int, varchar))[]",
            (
                "array(named_struct('k', 'p', 'v', map(1, 'one', -2, '')))",
                "[{'k': 'p', 'v': map {1: 'one', -2: ''}}]",
                [("p", [(1, "one"), (-2, "")])],
            ),
        ),
    )
}


def _key(name: str, oracle: str, *values: tuple[Piece, Any]) -> Type:
    return Type(name, oracle, tuple(Value(piece(text), stored) for text, stored in values), ("=",))


ODD_TEXTS = ["a", "a b", "a=b", "a/b", "it's", "100%", "x:y", "żółć", "a\\b", "[x]?*"]
KEY_TYPES: dict[str, Type] = {
    "string": _key("string", "varchar", *((string(text), text) for text in ODD_TEXTS)),
    "int": _key("int", "int", *((str(n), n) for n in (0, 1, 2)), (no_hive("-7"), -7)),
    "date": _key(
        "date", "date", *((f"date '{d}'", dt.date.fromisoformat(d)) for d in ("2024-02-29", "1500-03-01", "1970-01-01"))
    ),
}
"""Types of partition keys, with values that are hard to name a directory by."""
