"""Hive's bucket of a row: hashes that Hive computed, rows where Hive wrote them, and an implementation in Python."""

from __future__ import annotations

import ast
import datetime as dt
import json
import math
import re
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession

from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.metastore.model import Column, Table
from acidsql.plan.bucketing import BucketHash, bucket_number
from acidsql.types import parse_type
from tests.examples import examples

GOLDEN = Path(__file__).parents[1] / "golden" / "data"
LINES = [line.split("\t") for line in (GOLDEN / "bucket_hash.tsv").read_text().splitlines()[1:]]
WRITTEN = json.loads((GOLDEN / "buckets.json").read_text())
NANOSECONDS = "2020-02-29 12:34:56.123456789"
"""A value that Spark, whose timestamps hold microseconds, cannot have."""


@pytest.fixture(
    params=[
        pytest.param(("true", "America/New_York"), id="ansi-America/New_York"),
        pytest.param(("false", "UTC"), id="not-ansi-UTC"),
        pytest.param(("true", "UTC"), id="ansi-UTC", marks=pytest.mark.long),
        pytest.param(("false", "America/New_York"), id="not-ansi-America/New_York", marks=pytest.mark.long),
    ]
)
def ansi_and_zone(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    """Settings that a hash must not depend on."""
    names = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")
    before = [str(spark.conf.get(name)) for name in names]
    for name, value in zip(names, request.param, strict=True):
        spark.conf.set(name, value)
    yield
    for name, value in zip(names, before, strict=True):
        spark.conf.set(name, value)


def literal(type: str, value: str) -> str:
    if value == "NULL":
        return f"CAST(NULL AS {type})"
    if type.startswith(("string", "varchar", "char", "timestamp", "date")):
        return f"{'' if type[0] in 'svc' else type} '{value}'"
    if type == "binary":
        return f"X'{bytes(b & 0xFF for b in ast.literal_eval(value)).hex()}'"
    if type.startswith("array"):
        return f"from_json('{value}', '{type}')"
    if type.startswith("map"):
        pairs = [pair.split(":") for pair in value.strip("{}").split(",")]
        is_text = type.endswith("string>")
        return f"map({', '.join(f'{k!r}, {v!r}' if is_text else f'{k!r}, {v}' for k, v in pairs)})"
    if type.startswith("struct"):
        return "named_struct('x', 1, 'y', 'abc')"
    return f"CAST('{value}' AS {type})"


def table_of(types: list[str], by: list[int], buckets: int, version: str | None) -> Table:
    parameters = {} if version is None else {"bucketing_version": version}
    columns = tuple(Column(f"k{i}", t) for i, t in enumerate(types))
    return Table("d", "t", "/t", columns, (), parameters, None, tuple(f"k{i}" for i in by), buckets)


def buckets_of(spark: SparkSession, frame: DataFrame, table: Table) -> list[int]:
    return [r[0] for r in frame.select(bucket_number(spark, table, frame)).collect()]


def plan_kind(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().getClass().getSimpleName())


@pytest.mark.usefixtures("ansi_and_zone")
def test_every_hash_that_hive_computed(spark: SparkSession) -> None:
    singles = [line for line in LINES if line[0] != "int,string" and line[1] != NANOSECONDS]
    texts = [f"{literal(type, value)} AS a{i}" for i, (type, value, _, _) in enumerate(singles)]
    frame = spark.sql(f"SELECT {', '.join(texts)}, 1 AS one, CAST(NULL AS int) AS none, 'abc' AS abc")
    newer, older = BucketHash(spark, 2), BucketHash(spark, 1)
    made: list[SparkColumn] = []
    for i, (type, _, _, _) in enumerate(singles):
        value = frame[f"a{i}"]
        # the function that made the list hashes the bytes alone, an INSERT of Hive's their whole buffer
        made.append(newer.murmur(value) if type == "binary" else newer.of(value, parse_type(type)))
        made.append(older.of(value, parse_type(type)))
    pairs = {"(1,abc)": "one", "(NULL,abc)": "none"}
    doubles = [line for line in LINES if line[0] == "int,string"]
    for _, both, _, _ in doubles:
        columns = [(frame[pairs[both]], parse_type("int")), (frame["abc"], parse_type("string"))]
        made += [newer.of_row(columns), older.of_row(columns)]
    found = list(frame.select(*[h.alias(f"h{i}") for i, h in enumerate(made)]).collect()[0])
    lines = singles + doubles
    assert [(*line[:2], *found[2 * i : 2 * i + 2]) for i, line in enumerate(lines)] == [
        (type, value, int(murmur), int(old)) for type, value, murmur, old in lines
    ]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_row_that_hive_wrote_is_in_its_bucket(spark: SparkSession, name: str) -> None:
    of = WRITTEN[name]
    # Spark's timestamps hold microseconds: rows with more digits cannot be looked at
    type, rows = of["type"], [r for r in of["rows"] if not re.search(r":\d\d[.]\d{7,}", str(r[0]))]
    assert len(rows) > 200
    target = "string" if type.startswith(("char", "varchar")) else type
    texts = [(None if v is None else str(v).removeprefix("hex:"), b) for v, b in rows]
    read = "unhex(v)" if type == "binary" else f"CAST(v AS {target})"
    frame = spark.createDataFrame(texts, "v string, expected int").selectExpr(f"{read} AS c0", "v", "expected")
    number = bucket_number(spark, table_of([type], [0], of["buckets"], str(of["version"])), frame)
    wrong = [r.v for r in frame.select("v", "expected", number.alias("b")).filter("b <> expected").collect()]
    assert wrong == []


def test_a_table_without_the_property_has_the_old_hash(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id AS c0, CAST(id AS int) AS c1 FROM range(-5, 5)")
    for version in (None, "1"):
        found = buckets_of(spark, frame, table_of(["bigint", "int"], [1], 4, version))
        assert found == [3, 0, 1, 2, 3, 0, 1, 2, 3, 0]


def test_values_that_spark_has_at_hand_need_no_job(spark: SparkSession) -> None:
    types = ["int", "string", "decimal(10,2)", "timestamp", "array<int>", "map<string,int>", "struct<a:int>", "double"]
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 'a', 1.50BD, timestamp '2024-02-29 12:00:00.5', array(1, NULL), map('a', 1),"
        " named_struct('a', 1), 1.5D) AS t(c0, c1, c2, c3, c4, c5, c6, c7)"
    )
    for version in ("1", "2"):
        numbered = frame.withColumn("b", bucket_number(spark, table_of(types, list(range(8)), 7, version), frame))
        assert plan_kind(numbered) == "LocalRelation"


@pytest.mark.usefixtures("compiled")
def test_a_flat_key_stays_in_generated_code(spark: SparkSession) -> None:
    frame = spark.range(10).selectExpr("id AS c0", "string(id) AS c1", "CAST(id AS decimal(10,2)) AS c2")
    table = table_of(["bigint", "string", "decimal(10,2)"], [0, 1, 2], 3, "2")
    numbered = frame.select(bucket_number(spark, table, frame))
    plan = numbered._jdf.queryExecution().executedPlan().toString()
    assert plan.startswith("*(1) Project")


def test_what_has_no_bucket_is_refused(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS c0, current_timestamp() AS c1")
    with pytest.raises(AnalysisError, match="not bucketed"):
        bucket_number(spark, table_of(["int"], [], -1, "2"), frame)
    with pytest.raises(UnsupportedError, match="bucketing_version=3"):
        bucket_number(spark, table_of(["int"], [0], 2, "3"), frame)
    for version in ("1", "2"):
        with pytest.raises(UnsupportedError, match="timestamp with local time zone"):
            bucket_number(spark, table_of(["int", "timestamp with local time zone"], [1], 2, version), frame)
    partitioned = Table("d", "t", "/t", (Column("a", "int"),), (Column("p", "int"),), {}, None, ("p",), 2)
    with pytest.raises(AnalysisError, match="bucketed by p"):
        bucket_number(spark, partitioned, frame)


# --- an implementation in Python -------------------------------------------------------------------------------------


def signed(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def murmur(data: bytes) -> int:
    def mixed(k: int) -> int:
        k = k * 0xCC9E2D51 & 0xFFFFFFFF
        k = (k << 15 | k >> 17) & 0xFFFFFFFF
        return k * 0x1B873593 & 0xFFFFFFFF

    h = 104729
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        h ^= mixed(int.from_bytes(data[at : at + 4], "little"))
        h = (h << 13 | h >> 19) & 0xFFFFFFFF
        h = (h * 5 + 0xE6546B64) & 0xFFFFFFFF
    k = 0
    for place, byte in enumerate(data[whole:]):
        k ^= (byte - 256 if byte > 127 else byte) << 8 * place & 0xFFFFFFFF  # Java's bytes have a sign
    if len(data) > whole:
        h ^= mixed(k)
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return signed(h ^ h >> 16)


def polynomial(data: bytes, start: int) -> int:
    for byte in data:
        start = 31 * start + (byte - 256 if byte > 127 else byte)
    return signed(start)


def folded(value: int) -> int:
    value %= 2**64
    return signed(value >> 32 ^ value)


def v_long(value: int) -> bytes:
    if -112 <= value <= 127:
        return struct.pack("b", value)
    rest = ~value if value < 0 else value
    data = rest.to_bytes((rest.bit_length() + 7) // 8, "big")
    return struct.pack("b", (-120 if value < 0 else -112) - len(data)) + data


def timestamp_bytes(seconds: int, nanos: int) -> bytes:
    reversed_nanos, is_long = int(f"{nanos:09d}"[::-1]), not 0 <= seconds < 2**31
    first = seconds & 0x7FFFFFFF | (0x80000000 if is_long or nanos else 0)
    data = first.to_bytes(4, "big")
    if is_long:
        return data + v_long(-reversed_nanos - 1) + v_long(seconds >> 31)
    return data + v_long(reversed_nanos) if nanos else data


def unscaled(value: Decimal) -> tuple[int, int]:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number, scale = int("".join(map(str, digits))), -exponent
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    return -number if sign else number, scale


def float_bits(value: float) -> int:
    return 0x7FC00000 if math.isnan(value) else int(struct.unpack(">i", struct.pack(">f", value))[0])


def double_bits(value: float) -> int:
    return 0x7FF8 << 48 if math.isnan(value) else int(struct.unpack(">q", struct.pack(">d", value))[0])


def seconds_and_nanos(value: dt.datetime) -> tuple[int, int]:
    since = value - dt.datetime(1970, 1, 1)
    return since.days * 86400 + since.seconds, since.microseconds * 1000


def old_hash(value: Any, type: str) -> int:
    if value is None:
        return 0
    if type in ("boolean", "tinyint", "smallint", "int"):
        return int(value)
    if type == "bigint":
        return folded(value)
    if type == "float":
        return float_bits(value)
    if type == "double":
        return folded(double_bits(value))
    if type == "string":
        return polynomial(value.encode(), 0)
    if type.startswith(("varchar", "char")):
        return polynomial((value.rstrip(" ") if type.startswith("char") else value).encode(), 1)
    if type == "binary":
        return polynomial(value, 1)
    if type == "date":
        return int((value - dt.date(1970, 1, 1)).days)
    if type == "timestamp":
        seconds, nanos = seconds_and_nanos(value)
        return folded(seconds << 30 | nanos)
    if type.startswith("decimal"):
        number, scale = unscaled(value)
        words = abs(number).to_bytes((abs(number).bit_length() + 31) // 32 * 4, "big")
        magnitude = 0
        for at in range(0, len(words), 4):
            magnitude = 31 * magnitude + int.from_bytes(words[at : at + 4], "big")
        return signed(31 * (magnitude if number >= 0 else -magnitude) + scale)
    return nested(value, type, old_hash, old_hash)


def new_hash(value: Any, type: str) -> int:
    if value is None:
        return 0
    if type in ("boolean", "tinyint"):
        return int(value)
    if type in ("smallint", "int", "bigint"):
        return murmur(value.to_bytes({"smallint": 2, "int": 4, "bigint": 8}[type], "big", signed=True))
    if type == "float":
        return murmur(struct.pack(">f", float(float_bits(value))))
    if type == "double":
        return murmur(struct.pack(">d", float(double_bits(value))))
    if type.startswith(("string", "varchar", "char")):
        return murmur((value.rstrip(" ") if type.startswith("char") else value).encode())
    if type == "binary":
        return murmur(bytes(value).ljust(len(value) * 3 // 2, b"\0"))
    if type == "date":
        return new_hash((value - dt.date(1970, 1, 1)).days, "int")
    if type == "timestamp":
        return murmur(timestamp_bytes(*seconds_and_nanos(value)))
    if type.startswith("decimal"):
        number, _ = unscaled(value)
        bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
        return murmur(number.to_bytes(bits // 8 + 1, "big", signed=True))
    return nested(value, type, new_hash, old_hash)


def nested(value: Any, type: str, of: Any, of_map_value: Any) -> int:
    """array<x>, map<x,y> and struct<n:x,…> whose x and y have no comma of their own at the top."""
    inner = type[type.index("<") + 1 : -1]
    total = 0
    if type.startswith("array"):
        for one in value:
            total = signed(31 * total + of(one, inner))
    elif type.startswith("map"):
        key, _, item = inner.partition(",")
        for k, v in value.items():
            total = signed(total + (of(k, key) ^ of_map_value(v, item)))
    else:
        for field, one in zip(inner.split(","), value, strict=True):
            total = signed(31 * total + of(one, field.partition(":")[2]))
    return total


WALL_CLOCKS = st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(9999, 12, 31)).filter(
    # not in the hours that New York skips or has twice
    lambda t: not (t.month in (3, 4, 10, 11) and t.hour < 4)
)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "string": ANY_TEXT,
    "varchar(9)": ANY_TEXT,
    "char(9)": ANY_TEXT.map(lambda s: s.rstrip(" ").ljust(9)),
    "binary": st.binary(max_size=9),
    "date": st.dates(),
    "timestamp": WALL_CLOCKS | WALL_CLOCKS.map(lambda t: t.replace(microsecond=0)),
    "decimal(38,10)": st.decimals(-(10**27), 10**27, places=10),
    "decimal(10,0)": st.decimals(-(10**9), 10**9, places=0),
    "array<bigint>": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=4),
    "array<array<string>>": st.lists(st.none() | st.lists(ANY_TEXT, max_size=3), max_size=3),
    "map<string,double>": st.dictionaries(ANY_TEXT, st.none() | st.floats(allow_nan=False), max_size=4),
    "map<int,array<string>>": st.dictionaries(st.integers(-9, 9), st.lists(ANY_TEXT, max_size=2), max_size=3),
    "struct<a:int,`B b`:string>": st.tuples(st.none() | st.integers(-9, 9), st.none() | ANY_TEXT),
    "array<struct<a:date,b:binary>>": st.lists(st.tuples(st.dates(), st.binary(max_size=5)), max_size=3),
}
TYPES = list(VALUES)


@pytest.mark.usefixtures("ansi_and_zone")
@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.tuples(*[st.none() | v for v in VALUES.values()]), min_size=20, max_size=40),
    version=st.sampled_from([1, 2]),
    by=st.lists(st.integers(0, len(TYPES) - 1), min_size=1, max_size=5, unique=True),
    buckets=st.integers(1, 4096),
)
def test_buckets_are_those_of_an_implementation_in_python(
    spark: SparkSession, rows: list[tuple[Any, ...]], version: int, by: list[int], buckets: int
) -> None:
    sparks = [t if not t.startswith(("varchar", "char")) else "string" for t in TYPES]
    clock = TYPES.index("timestamp")
    given_types = [t if i != clock else "string" for i, t in enumerate(sparks)]
    texts = [tuple(str(v) if i == clock and v is not None else v for i, v in enumerate(row)) for row in rows]
    given_frame = spark.createDataFrame(texts, ", ".join(f"c{i} {t}" for i, t in enumerate(given_types)))
    frame = given_frame.withColumn(f"c{clock}", given_frame[f"c{clock}"].cast("timestamp"))
    of = new_hash if version == 2 else old_hash

    hashes = BucketHash(spark, version)
    each = frame.select(*[hashes.of(frame[f"c{i}"], parse_type(t)) for i, t in enumerate(TYPES)])
    assert [list(r) for r in each.collect()] == [[of(v, t) for v, t in zip(row, TYPES, strict=True)] for row in rows]

    expected = []
    for row in rows:
        total = 0
        for i in by:
            total = signed(31 * total + of(row[i], TYPES[i]))
        expected.append((total & 0x7FFFFFFF) % buckets)
    assert buckets_of(spark, frame, table_of(TYPES, by, buckets, str(version))) == expected
