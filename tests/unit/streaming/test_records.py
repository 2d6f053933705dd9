"""Records as values by column: dicts, tuples, lines of text, JSON."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from acidsql.errors import InvalidValue
from acidsql.plan.session_zone import SessionZone
from acidsql.streaming.records import Delimited, Field, Json, RecordReader, Regex, Rows
from acidsql.streaming.values import BadValue, column_of
from acidsql.types import parse_type

FIELDS = [
    Field(name, parse_type(type))
    for name, type in {"id": "int", "v": "string", "d": "decimal(5,2)", "day": "date", "at": "timestamp"}.items()
]
ALL = {
    "id": 1,
    "v": "x",
    "d": Decimal("1.5"),
    "day": dt.date(2024, 2, 29),
    "at": dt.datetime(2024, 2, 29, 12, 0, 0, 500000),
}


@pytest.mark.parametrize(
    ("reader", "record", "values"),
    [
        (Rows(), {"ID": 1, "v": "x"}, {"id": 1, "v": "x"}),
        (Rows(), tuple(ALL.values()), ALL),
        (Delimited(), "1,x,1.5,2024-02-29,2024-02-29 12:00:00.5\r\n", ALL),
        (Delimited(), rb"1,,\N,\N,\N", {**dict.fromkeys(ALL), "id": 1, "v": ""}),
        (Delimited(";", '"', columns=["v", "ID"]), '"a;""b""";7', {"v": 'a;"b"', "id": 7}),
        (Delimited("||", "'", columns=["v", "id"]), "'a||''b'||7", {"v": "a||'b", "id": 7}),
        (Delimited(",", '"', columns=["v", "id"]), "x" * 200_000 + ",7", {"v": "x" * 200_000, "id": 7}),
        (Delimited(",", '"', columns=["v", "id"]), '"' + "x\n" * 100_000 + '",7', {"v": "x\n" * 100_000, "id": 7}),
        (Delimited(",", '"', columns=["id", "v"]), "7,", {"v": "", "id": 7}),
        (Delimited(",", '"', columns=["v"]), 'a"b', {"v": 'a"b'}),
        (Delimited(",", '"', columns=["v"]), "", {"v": ""}),
        (Delimited("\x01", null="", columns=["id", "v"]), "7\x01", {"id": 7, "v": None}),
        (Regex(r"(\d+) (.*)", ["id", "v"]), "7 a b", {"id": 7, "v": "a b"}),
        (Regex(r"(?P<v>\w+)=(?P<id>\d+)?"), "a=", {"v": "a", "id": None}),
        (Json(), '{"ID": 1, "d": 1.10, "at": "2024-02-29T12:00:00Z"}', None),
        (Json(), '{"v": null, "d": "1.5", "day": "2024-02-29"}', {"v": None, "d": ALL["d"], "day": ALL["day"]}),
        (Json(ignore_unknown=True), '{"v": "x", "w": [1]}', {"v": "x"}),
    ],
)
def test_records(reader: RecordReader, record: Any, values: dict[str, Any] | None) -> None:
    utc = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone.utc)
    assert reader.read(record, FIELDS) == (values or {"id": 1, "d": Decimal("1.10"), "at": utc})


@pytest.mark.parametrize(
    ("reader", "record"),
    [
        (Rows(), {"nope": 1}),
        (Rows(), {"id": 1, "ID": 2}),
        (Rows(), (1, 2)),
        (Rows(), "1,x"),
        (Rows(), 5),
        (Delimited(), "1,x"),
        (Delimited(), "1,x,1.5,2024-02-29,2024-02-29 12:00:00,6"),
        (Delimited(), "a,x,1.5,2024-02-29,2024-02-29 12:00:00"),
        (Delimited(), "1,x,1.5,2024-02-30,2024-02-29 12:00:00"),
        (Delimited(columns=["day"]), "20240229"),
        (Delimited(columns=["day"]), "2024-W09-4"),
        (Delimited(columns=["at"]), "noon"),
        (Delimited(columns=["at"]), "2024-02-29 12:00:00.1234567"),
        (Delimited(columns=["at"]), "2024-02-29"),
        (Delimited(), b"\xff,x,1.5,2024-02-29,2024-02-29 12:00:00"),
        (Delimited(columns=["id"]), "1_000"),
        (Delimited(columns=["id"]), "1.0"),
        (Delimited(columns=["id"]), ""),
        (Delimited(columns=["d"]), "x"),
        (Delimited(quote='"', columns=["v", "id"]), '"a,7'),
        (Delimited(quote='"', columns=["v", "id"]), '"a"b,7'),
        (Delimited(quote='"', columns=["v", "id"]), '"a""'),
        (Delimited(quote='"', columns=["v", "id"]), "a\nb,7"),
        (Regex(r"(\d+)", ["id"]), "7 "),
        (Json(), "{"),
        (Json(), "[1]"),
        (Json(), '{"id": 1, "id": 2}'),
        (Json(), '{"nope": 1}'),
        (Json(), '{"day": "x"}'),
        (Json(), 5),
        (Delimited(columns=["d"]), "1_000"),
        (Delimited(columns=["d"]), " 7"),
        (Delimited(columns=["d"]), "١٢"),
        (Delimited(columns=["d"]), "NaN"),
    ],
)
def test_what_is_no_record(reader: RecordReader, record: Any) -> None:
    with pytest.raises(BadValue):
        reader.read(record, FIELDS)


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": "\n"},
        {"delimiter": None},
        {"quote": ""},
        {"quote": "''"},
        {"quote": ","},
        {"quote": "\n"},
        {"columns": ["id", "ID"]},
        {"columns": "id"},
        {"columns": [1]},
        {"columns": 5},
        {"columns": (name for name in ("id", "v"))},
    ],
)
def test_readers_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Delimited(**options)


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", rb"(\d+)", r"(?P<id>\d)(?P<ID>\d)", 5])
def test_what_is_no_expression(pattern: Any) -> None:
    with pytest.raises(InvalidValue):
        Regex(pattern)


def test_a_column_that_is_there_twice() -> None:
    with pytest.raises(InvalidValue, match="twice"):
        Regex("(.)(.)", columns=["v", "V"])


def test_a_reader_of_columns_that_are_not_there() -> None:
    with pytest.raises(InvalidValue, match="no column nope") as found:
        Delimited(columns=["nope"]).read("1", FIELDS)
    assert not isinstance(found.value, BadValue)


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("boolean", '{"c": true}', True),
        ("double", '{"c": 1.5}', 1.5),
        ("double", '{"c": NaN}', math.nan),
        ("bigint", '{"c": 9223372036854775807}', 2**63 - 1),
        ("binary", '{"c": "AP8="}', b"\x00\xff"),
        ("array<date>", '{"c": ["2024-02-29", null]}', [dt.date(2024, 2, 29), None]),
        ("map<int,decimal(3,1)>", '{"c": {"1": 2.5}}', {1: Decimal("2.5")}),
        ("struct<A:date,b:string>", '{"c": {"a": "2024-02-29", "b": "2024-02-29"}}', None),
    ],
)
def test_members_of_json(type: str, text: str, value: Any) -> None:
    found = Json().read(text, [Field("c", parse_type(type))])["c"]
    if value is None:
        value = {"a": dt.date(2024, 2, 29), "b": "2024-02-29"}
    assert found == value or (found != found and value != value)


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("map<int,string>", '{"c": {"1": "x", "01": "y"}}'),
        ("map<decimal(3,1),string>", '{"c": {"1.0": "x", "1.00": "y"}}'),
        ("map<boolean,string>", '{"c": {"true": "x", "TRUE": "y"}}'),
        ("int", '{"c": "12"}'),
        ("double", '{"c": "1.5"}'),
        ("boolean", '{"c": "true"}'),
        ("array<bigint>", '{"c": ["1"]}'),
    ],
)
def test_members_of_json_that_are_something_else(type: str, text: str) -> None:
    with pytest.raises(BadValue):
        column_of([Json().read(text, [Field("c", parse_type(type))])["c"]], parse_type(type), "UTC")


@pytest.mark.parametrize(("text", "value"), [("1e3", 1000.0), ("-Infinity", -math.inf), ("nan", math.nan), (".5", 0.5)])
def test_texts_of_numbers(text: str, value: float) -> None:
    found = Delimited().read(text, [Field("c", parse_type("double"))])["c"]
    assert found == value or (found != found and value != value)


HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    ("reader", "record", "type"),
    [
        (Json(), f'{{"v": {HUGE}}}', "double"),
        (Json(), '{"v": 1e99999999999999999999}', "double"),
        (Json(), '{"v": 1e400}', "double"),
        (Json(ignore_unknown=True), '{"v": 1, "w": 1e99999999999999999999}', "double"),
        (Json(), f'{{"v": {"1" * 5000}}}', "bigint"),
        (Json(), '{"v": {"nan": 1, "NaN": 2}}', "map<double,int>"),
        (Delimited(";"), f"[{HUGE}]", "array<double>"),
        (Delimited(), "1e400", "double"),
        (Delimited(), "1e400", "float"),
        (Delimited(";"), "[1e99999999999999999999]", "array<double>"),
    ],
)
def test_numbers_that_nothing_can_hold_are_bad_records(reader: RecordReader, record: str, type: str) -> None:
    fields = [Field("v", parse_type(type))]
    with pytest.raises(BadValue):
        column_of([reader.read(record, fields)["v"]], fields[0].type, SessionZone("UTC"))
