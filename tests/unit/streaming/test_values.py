"""Values of Python's in columns of a table: what is stored, and what is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acidsql.plan.session_zone import SessionZone
from acidsql.streaming.values import BadValue, column_of, of_arrow
from acidsql.types import parse_type

D = Decimal
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 500000)
TWO = dt.timezone(dt.timedelta(hours=2))

STORED: list[tuple[str, Any, Any]] = [
    ("int", 5, 5),
    ("int", np.int64(5), 5),
    ("tinyint", -128, -128),
    ("bigint", 2**63 - 1, 2**63 - 1),
    ("boolean", True, True),
    ("double", 1.5, 1.5),
    ("double", 3, 3.0),
    ("float", np.float32(1.5), 1.5),
    ("float", float("inf"), float("inf")),
    ("float", 3.4028235e38, 3.4028234663852886e38),
    ("decimal(5,2)", 7, D("7.00")),
    ("decimal(5,2)", D("1.005"), D("1.01")),
    ("decimal(5,2)", D("-1.005"), D("-1.01")),
    ("decimal(5,2)", D("1E-1000000"), D("0.00")),
    ("decimal(5,2)", D("999.994"), D("999.99")),
    ("decimal(38,38)", D("0.5"), D("0.5")),
    ("string", "ä😀", "ä😀"),
    ("varchar(3)", "abc  ", "abc"),
    ("char(3)", "a", "a"),
    ("binary", b"\x00\xff", b"\x00\xff"),
    ("binary", bytearray(b"a"), b"a"),
    ("date", dt.date(1, 1, 1), dt.date(1, 1, 1)),
    ("timestamp", NOON, NOON),
    ("timestamp", NOON.replace(tzinfo=TWO), dt.datetime(2024, 2, 29, 11, 0, 0, 500000)),
    ("array<int>", [1, None], [1, None]),
    ("array<int>", (), []),
    ("map<string,int>", {"a": 1, "b": None}, [("a", 1), ("b", None)]),
    ("map<varchar(3),int>", {"a": 1, "a ": 2}, [("a", 1), ("a ", 2)]),
    ("struct<a:int,B:string>", {"A": 1, "b": "x"}, {"a": 1, "B": "x"}),
    ("struct<a:int,b:string>", {"b": "x"}, {"a": None, "b": "x"}),
    ("struct<a:int,b:string>", (1, "x"), {"a": 1, "b": "x"}),
    ("array<struct<a:array<date>>>", [{"a": [dt.date(2024, 1, 1)]}, None], [{"a": [dt.date(2024, 1, 1)]}, None]),
]
REFUSED: list[tuple[str, Any]] = [
    ("double", 10**400),
    ("float", 10**400),
    ("array<double>", [10**400]),
    ("map<char(3),int>", {"a": 1, "a ": 2}),
    ("map<double,int>", {float("nan"): 1, float("nan"): 2}),
    ("map<float,int>", {0.1: 1, 0.100000000001: 2}),
    ("int", 1.0),
    ("int", 1.5),
    ("int", True),
    ("int", "1"),
    ("int", D(1)),
    ("int", 2**31),
    ("tinyint", 128),
    ("bigint", 2**63),
    ("boolean", 1),
    ("boolean", "true"),
    ("double", "1"),
    ("double", True),
    ("double", 2**60 + 1),
    ("double", D("1.5")),
    ("float", 1e300),
    ("decimal(5,2)", 1.5),
    ("decimal(5,2)", "1"),
    ("decimal(5,2)", D("999.995")),
    ("decimal(5,2)", D("1E+1000000")),
    ("decimal(5,2)", D("NaN")),
    ("decimal(5,2)", True),
    ("string", 1),
    ("string", b"x"),
    ("string", "\ud800"),
    ("varchar(3)", "abcd"),
    ("char(3)", "abc d"),
    ("binary", "x"),
    ("date", dt.datetime(2024, 1, 1)),
    ("date", "2024-01-01"),
    ("date", 5),
    ("timestamp", dt.date(2024, 1, 1)),
    ("timestamp", "2024-01-01"),
    ("timestamp", 5),
    ("timestamp", dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-12)))),
    ("timestamp", dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))),
    ("array<string>", "ab"),
    ("array<int>", [1, "2"]),
    ("array<int>", {1, 2}),
    ("map<string,int>", [("a", 1)]),
    ("map<string,int>", {None: 1}),
    ("map<varchar(1),int>", {"a": 1, "a ": 2}),
    ("struct<a:int>", {"a": 1, "b": 2}),
    ("struct<a:int>", {"a": 1, "A": 2}),
    ("struct<a:int>", (1, 2)),
    ("struct<a:int>", [1]),
]


@pytest.mark.parametrize(("type", "value", "stored"), STORED)
def test_a_value_is_stored_as_it_is(type: str, value: Any, stored: Any) -> None:
    assert column_of([None, value], parse_type(type), SessionZone("Europe/Berlin", 3600)).to_pylist() == [None, stored]


@pytest.mark.parametrize(("type", "value"), REFUSED)
def test_a_value_that_would_be_another_one_is_refused(type: str, value: Any) -> None:
    for values in ([value], [None, value]):
        with pytest.raises(BadValue):
            column_of(values, parse_type(type), SessionZone("UTC"))


@pytest.mark.parametrize(("moment", "offset"), [(2**63 - 1, 3600), (-(2**63), -3600)])
def test_a_moment_whose_clock_would_be_beyond_all_that_can_be_stored(moment: int, offset: int) -> None:
    column = pa.array([0, moment], pa.int64()).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(BadValue):
        of_arrow(column, parse_type("timestamp"), SessionZone("somewhere", offset))


@pytest.mark.parametrize(
    "type", ["int", "bigint", "double", "float", "decimal(38,0)", "string", "date", "map<int,int>"]
)
def test_a_number_that_python_does_not_write_is_refused(type: str) -> None:
    for value in (10**5000, [10**5000], {10**5000: 1}):
        with pytest.raises(BadValue):
            column_of([value], parse_type(type), SessionZone("UTC"))
