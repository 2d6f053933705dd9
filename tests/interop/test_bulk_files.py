"""Files of many rows, as acidsql's jobs write them and its compaction encodes them: Hive searches and changes them.

An index has an entry for each 10,000 rows, which Hive skips where their statistics exclude what it looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyorc
import pytest
from py4j.java_gateway import get_field
from pyspark.sql import SparkSession

from acidsql.format import flat, rewrite
from acidsql.format.schema import KEY_INDEX_KEY
from acidsql.metastore.model import CompactionState as State
from acidsql.plan import job, job_files
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, Row, SharedTable
from tests.interop.conftest import OpenAcid, OpenHive, Service

GROUP = 10_000
OURS = "acidsql"
"""The pool of requests that Hive's worker does not take."""

FINDERS: dict[str, Callable[[Shape, int], str]] = {
    "id": lambda _, n: f"id = {n}",
    "bi": lambda _, n: f"bi = {(n - 13_000) * 100_000_000_003}",
    "s": lambda _, n: f"s = 'row-{n:08d} żółć'",
    "d": lambda _, n: f"d = CAST('{n * 0.5}' AS double)",
    "de": lambda _, n: f"de = CAST('{n}.000000000000000001' AS decimal(38,18))",
    "dt": lambda _, n: f"dt = date '{date(1000, 1, 1) + timedelta(40 * n)}'",
    "ts": lambda shape, n: f"ts = timestamp '{shape.moment(n)}'",
}
"""Columns whose values grow with the row, and the condition that finds a row by one."""

RANGES = [
    "ti IS NULL",  # the second ten thousand rows
    "ti IS NULL AND si = -2500",
    "d > 12999.5 AND d < 13001",
    "dt < date '1582-11-07' AND dt > date '1582-09-01'",
    "ts > timestamp '1969-12-31 00:00:00' AND id < 12",
    "vc = 'v3' AND id BETWEEN 9990 AND 10010",
    "ch = 'c4' AND bi BETWEEN -300000000009000 AND -299500000008985",
    "bo AND id > 24990",
    "bin = unhex('00002710')",
    "d2 IS NULL AND id < 200",
    "NOT bo AND s < 'row-00000010'",
    "st.a = 20001",
]

KINDS = {
    "id": ("int", "CAST(id AS int)"),
    "ti": ("tinyint", "if(id DIV 10000 = 1, NULL, CAST(id % 100 AS tinyint))"),
    "si": ("smallint", "CAST(id % 30000 - 15000 AS smallint)"),
    "bi": ("bigint", "(id - 13000) * 100000000003L"),
    "f": ("float", "CAST(id AS float) / CAST(3 AS float)"),
    "d": ("double", "if(id % 5000 = 17, CAST('NaN' AS double), CAST(id AS double) * CAST(0.5 AS double))"),
    "de": ("decimal(38,18)", "CAST(concat(id, '.000000000000000001') AS decimal(38,18))"),
    "d2": ("decimal(5,2)", "if(id % 19 = 0, NULL, CAST((id % 1000) / 10 AS decimal(5,2)))"),
    "s": ("string", "concat('row-', lpad(CAST(id AS string), 8, '0'), ' żółć')"),
    "vc": ("varchar(5)", "CAST(concat('v', id % 7) AS varchar(5))"),
    "ch": ("char(4)", "CAST(if(id % 11 = 0, NULL, concat('c', id % 5)) AS char(4))"),
    "bo": ("boolean", "if(id % 13 = 0, NULL, id % 2 = 0)"),
    "bin": ("binary", "if(id % 17 = 0, NULL, unhex(lpad(hex(id), 8, '0')))"),
    "dt": ("date", "date_add(date '1000-01-01', CAST(id * 40 AS int))"),
    "ts": ("timestamp", "{ts}"),
    "ai": ("array<int>", "array(CAST(id AS int), NULL, CAST(-id AS int))"),
    "m": ("map<string,int>", "if(id % 23 = 0, NULL, map('k', CAST(id AS int), concat('l', id % 3), NULL))"),
    "st": ("struct<a:int,b:string>", "named_struct('a', CAST(id AS int), 'b', concat('b', id % 100))"),
    "nst": (
        "array<struct<k:string,v:map<int,decimal(20,3)>>>",
        "if(id % 3 = 0, array(), array(named_struct('k', concat('k', id % 9), 'v',"
        " map(CAST(id AS int), CAST(id AS decimal(20,3))))))",
    ),
    "nts": (
        "struct<t:timestamp,d:date,x:array<timestamp>>",
        "named_struct('t', {ts}, 'd', date_add(date '1000-01-01', CAST(id AS int)), 'x', array({ts}))",
    ),
    "x": ("int", "0"),
}
"""Type and value of each column, of the number of a row."""
NARROW = ("id", "bi", "s", "d", "de", "dt", "ts", "m", "x")


@dataclass(frozen=True)
class Shape:
    """A table and its rows.

    Attributes:
        names: Its columns.
        rows: How many there are.
        step: So many days lie between two of its timestamps.
        first: The day of the first one.
        files: How many tasks write it.
    """

    names: tuple[str, ...] = tuple(KINDS)
    rows: int = 26_000
    step: int = 4
    first: date = date(1970, 1, 1)
    keys: str = ""
    buckets: str = ""
    files: int = 1
    properties: str = ""

    def moment(self, number: int) -> str:
        return f"{self.first + timedelta(self.step * number)} 01:02:03.{number:06d}"

    def columns(self) -> str:
        return ", ".join(f"{name} {KINDS[name][0]}" for name in self.names)

    def query(self) -> str:
        day = f"date_add(date '{self.first}', CAST(id * {self.step} AS int))"
        moment = f"CAST(concat(CAST({day} AS string), ' 01:02:03.', lpad(CAST(id AS string), 6, '0')) AS timestamp)"
        values = [KINDS[name][1].replace("{ts}", moment) for name in self.names]
        keys = ["CAST(id % 2 AS int)"] if self.keys else []
        return f"SELECT {', '.join(values + keys)} FROM range(0, {self.rows}, 1, {self.files})"

    def places(self) -> list[int]:
        """Rows at the edges of index entries."""
        return [0, 9_999, 10_000, 19_999, 20_000, 24_999, self.rows - 1]


ANCIENT = date(1000, 1, 1)
LARGE = Shape(NARROW, rows=52_000, step=2)
SHAPES = [
    pytest.param(Shape(properties="'orc.compress'='ZSTD'"), id="plain, ZSTD"),
    pytest.param(Shape(properties="'orc.compress'='ZLIB'"), id="plain, ZLIB"),
    pytest.param(Shape(step=40, first=ANCIENT, properties="'orc.compress'='ZLIB'"), id="plain, ancient"),
    pytest.param(replace(LARGE, files=2), id="two files"),
    pytest.param(replace(LARGE, keys="p int"), id="partitioned"),
    pytest.param(replace(LARGE, buckets="(id) INTO 2 BUCKETS"), id="bucketed, ZSTD"),
    pytest.param(replace(LARGE, buckets="(s) INTO 2 BUCKETS", properties="'orc.compress'='ZLIB'"), id="bucketed, ZLIB"),
]


@dataclass
class Calls:
    """How files came to be: by the ways that are meant here."""

    rows: int = 0
    inserts: int = 0
    columns: int = 0


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Compaction encodes all stripes column by column where it can; counts what is taken."""
    counted = Calls()
    nest_rows, nest_inserts, by_columns = flat.nest_rows, flat.nest_inserts, rewrite._by_columns

    def rows(*a: Any, **k: Any) -> int:
        counted.rows += 1
        return nest_rows(*a, **k)

    def inserts(*a: Any, **k: Any) -> int:
        counted.inserts += 1
        return nest_inserts(*a, **k)

    def columns(*a: Any, **k: Any) -> Any:
        made = by_columns(*a, **k)
        counted.columns += made is not None
        return made

    monkeypatch.setattr(job_files, "nest_rows", rows)
    monkeypatch.setattr(job_files, "nest_inserts", inserts)
    monkeypatch.setattr(rewrite, "_by_columns", columns)
    monkeypatch.setattr(rewrite._Concatenation, "_is_large", lambda self, parts: True)
    monkeypatch.setattr(rewrite, "_BLOCK", 4_096)
    return counted


def _filled(both: Both, shape: Shape) -> SharedTable:
    """The table, filled by a job."""
    t = both.table(shape.columns(), shape.keys, by=ACIDSQL, buckets=shape.buckets, properties=shape.properties)
    both.acid.sql("SET acidsql.write.driver.rows = 0")
    _run(t, ACIDSQL, f"INSERT INTO {{t}} {shape.query()}")
    return t


def _files(t: SharedTable, directory: str) -> list[Path]:
    return sorted(t.directory.rglob(f"{directory}_*/bucket_*"))


def _agreed(t: SharedTable) -> list[Row]:
    """All rows, with their row ids, which both sides read alike; what :meth:`SharedTable.agree` does, but once."""
    rows = t.read(HIVE)
    assert t.differences(rows, t.read(ACIDSQL)) == []
    for side in SIDES:
        assert t.both.ask(side, f"SELECT count(*) FROM {t.name}") == [(len(rows),)]
    return rows


def _search(both: Both, open_hive: OpenHive, t: SharedTable, shape: Shape, rows: list[Row]) -> None:
    """Both find rows by each column, at the edges of index entries, with the row ids that a whole scan gives them."""
    at = shape.names.index("id") + 3
    whole = {row[at]: row[:3] for row in rows}
    reader = open_hive()
    reader.run("SET hive.fetch.task.conversion=none")
    vectorised = Both(reader, both.acid, both.database, both.tally)
    places = [n for n in shape.places() if n in whole]
    head = "SELECT ROW__ID.writeId, ROW__ID.bucketId, ROW__ID.rowId, id FROM"
    names = list(FINDERS)
    for number, place in enumerate(places):
        by_turns = [
            f"{head} {t.name} WHERE {FINDERS[names[(number + i) % len(names)]](shape, place)}" for i in range(3)
        ]
        expected = [(*whole[place], place)]
        for query in by_turns:
            assert _integers(both.ask(HIVE, query)) == expected, query
        assert _integers(vectorised.ask(HIVE, by_turns[0])) == expected, by_turns[0]
        assert _integers(both.ask(ACIDSQL, by_turns[1])) == expected, by_turns[1]
    for condition in RANGES:
        if all(word not in KINDS or word in shape.names for word in condition.replace(".", " ").split()):
            both.answer_alike(f"{head} {t.name} WHERE {condition}")
    [(first, last)] = vectorised.answer_alike(f"SELECT min(id), max(id) FROM {t.name} WHERE bi > 0 AND id < 20000")
    assert (float(first), float(last)) == (min(n for n in whole if n > 13_000), max(n for n in whole if n < 20_000))


def _integers(rows: list[Row]) -> list[Row]:
    return [tuple(map(int, row)) for row in rows]


def _ids_read(spark: SparkSession, path: Path, text: str) -> list[tuple[int, int]]:
    """The row ids that ORC's reader in Java gives for ``s = text``, as ranges: it skips groups that cannot have it."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    assert jvm is not None
    assert gateway is not None
    conf = spark._jsc.hadoopConfiguration()
    opened = jvm.org.apache.orc.OrcFile
    reader = opened.createReader(jvm.org.apache.hadoop.fs.Path(str(path)), opened.readerOptions(conf))
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    types = loader.loadClass("org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf$Type")
    kind = next(one for one in types.getEnumConstants() if str(one) == "STRING")
    factory = jvm.org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory
    condition = factory.newBuilder().startAnd().equals("s", kind, text).end().build()
    columns = gateway.new_array(jvm.java.lang.String, 2)
    columns[1] = "s"
    rows = reader.rows(reader.options().searchArgument(condition, columns))
    batch, found = reader.getSchema().createRowBatch(), []
    while rows.nextBatch(batch):
        ids, size = get_field(get_field(batch, "cols")[3], "vector"), get_field(batch, "size")
        found.append((int(ids[0]), int(ids[size - 1])))
    rows.close()
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("compactor")
def test_hive_searches_and_changes_what_acidsql_wrote_and_compacted(
    both: Both, open_hive: OpenHive, open_acid: OpenAcid, calls: Calls, shape: Shape
) -> None:
    t = _filled(both, shape)
    assert (calls.rows > 0, calls.inserts) == (True, 0)
    for path in _files(t, "delta"):
        with path.open("rb") as file:
            read = pyorc.Reader(file)
            assert len(read) > 2 * GROUP
            assert KEY_INDEX_KEY in read.user_metadata
    rows = _agreed(t)
    assert len(rows) == shape.rows
    _search(both, open_hive, t, shape, rows)

    _run(t, HIVE, "UPDATE {t} SET x = x + 1 WHERE id IN (0, 9999, 10000, 24999)")
    _run(t, HIVE, "DELETE FROM {t} WHERE id BETWEEN 9990 AND 9998 OR id IN (19998, 24998)")
    _run(t, ACIDSQL, "UPDATE {t} SET x = x + 10 WHERE id IN (9999, 20000, 20001)")
    _run(t, ACIDSQL, "DELETE FROM {t} WHERE id % 1000 = 7")
    assert calls.inserts > 0
    before = _agreed(t)
    assert len(before) == shape.rows - 11 - shape.rows // 1000
    assert _sum(t, before) == 4 + 30

    _compact_ours(both, open_acid, t)
    assert (calls.columns > 0) == (shape.first != ANCIENT), "nanoseconds do not reach back so far"
    rows = _agreed(t)
    assert sorted(rows, key=repr) == sorted(before, key=repr)
    _search(both, open_hive, t, shape, rows)
    _run(t, HIVE, "UPDATE {t} SET x = x + 100 WHERE id IN (9999, 10001, 24997)")
    _run(t, HIVE, "DELETE FROM {t} WHERE id IN (1, 10000, 19999)")
    _run(t, ACIDSQL, "DELETE FROM {t} WHERE id IN (2, 10002, 20002)")
    before = _agreed(t)
    assert len(before) == len(rows) - 6
    assert _sum(t, before) == 4 + 30 + 300 - 1

    _compact_theirs(both, t, "major")
    rows = _agreed(t)
    assert sorted(rows, key=repr) == sorted(before, key=repr)
    _search(both, open_hive, t, shape, rows)


def _run(t: SharedTable, side: str, statement: str) -> None:
    t.both.run(side, t.text(statement))


def _sum(t: SharedTable, rows: list[Row]) -> int:
    """The sum of x."""
    at = [f.name for f in t.fields].index("x") + 3
    return sum(row[at] for row in rows)


def _places_of(t: SharedTable) -> list[str]:
    return [f" PARTITION (p={p})" for p in (0, 1)] if t.keys else [""]


def _compact_ours(both: Both, open_acid: OpenAcid, t: SharedTable) -> None:
    for partition in _places_of(t):
        both.run(HIVE, f"ALTER TABLE {t.name}{partition} COMPACT 'major' POOL '{OURS}'")
    outcomes = open_acid(**{"hive.compactor.job.queue": OURS}).compactor.run_once().outcomes
    assert {o.state for o in outcomes} == {State.READY_FOR_CLEANING}, outcomes


def _compact_theirs(both: Both, t: SharedTable, kind: str) -> None:
    before = {p.name for p in t.directory.rglob("*_v*")}
    for partition in _places_of(t):
        both.run(HIVE, f"ALTER TABLE {t.name}{partition} COMPACT '{kind}' AND WAIT")
    assert {p.name for p in t.directory.rglob("*_v*")} - before, "Hive's worker wrote a directory"


@pytest.mark.parametrize("kind", ["minor", "major"])
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(replace(LARGE, files=2), id="plain"),
        pytest.param(replace(LARGE, keys="p int"), id="partitioned"),
        pytest.param(replace(LARGE, buckets="(id) INTO 2 BUCKETS"), id="bucketed"),
    ],
)
@pytest.mark.usefixtures("compactor")
def test_hive_compacts_what_jobs_wrote(both: Both, open_hive: OpenHive, calls: Calls, shape: Shape, kind: str) -> None:
    t = _filled(both, shape)
    assert calls.rows > 0
    _compacted_by_hive(both, open_hive, t, shape, kind)


def _compacted_by_hive(both: Both, open_hive: OpenHive, t: SharedTable, shape: Shape, kind: str) -> None:
    _run(t, ACIDSQL, "UPDATE {t} SET x = 5 WHERE id BETWEEN 5000 AND 15000")
    _run(t, HIVE, "DELETE FROM {t} WHERE id IN (4, 9998, 10003, 24996)")
    before = _agreed(t)
    assert (len(before), _sum(t, before)) == (shape.rows - 4, 5 * (10_001 - 2))
    _compact_theirs(both, t, kind)
    rows = _agreed(t)
    assert sorted(rows, key=repr) == sorted(before, key=repr)
    _search(both, open_hive, t, shape, rows)
    _run(t, HIVE, "UPDATE {t} SET x = 6 WHERE id IN (9999, 15001)")
    _run(t, ACIDSQL, "DELETE FROM {t} WHERE id IN (9999, 20000)")
    rows = _agreed(t)
    assert (len(rows), _sum(t, rows)) == (shape.rows - 6, 5 * (10_001 - 3) + 6)


@pytest.fixture(params=["minor", "major"])
def by_query(request: pytest.FixtureRequest, hive_service: Service) -> Iterator[str]:
    """Hive's compaction worker, which compacts by queries; the kind of compaction."""
    if hive_service.server is None:
        pytest.skip("nobody compacts in a Hive that runs already")
    hive_service.server.start_compactor(query_based=True)
    yield request.param
    hive_service.server.stop_compactor()


def test_hive_compacts_what_jobs_wrote_by_queries(both: Both, open_hive: OpenHive, by_query: str) -> None:
    shape = replace(LARGE, files=2)
    _compacted_by_hive(both, open_hive, _filled(both, shape), shape, by_query)


@pytest.mark.parametrize("compression", ["ZSTD", "ZLIB", "NONE", "SNAPPY", "LZ4"])
def test_files_of_several_stripes_and_chunks(
    both: Both,
    open_hive: OpenHive,
    open_acid: OpenAcid,
    monkeypatch: pytest.MonkeyPatch,
    calls: Calls,
    compression: str,
) -> None:
    """As large files are: the key index has an entry for each stripe, and index entries point into later chunks."""
    monkeypatch.setattr(job, "_WRITER_OPTIONS", {**job._WRITER_OPTIONS, "orc.stripe.row.count": "25000"})
    monkeypatch.setattr("acidsql.format.event_columns.CHUNK_BYTES", 37)
    shape = replace(LARGE, properties=f"'orc.compress'='{compression}'")
    t = _filled(both, shape)
    [path] = _files(t, "delta")
    with path.open("rb") as file:
        read = pyorc.Reader(file)
        assert read.num_of_stripes > 2
        keys = [tuple(map(int, key.split(","))) for key in read.user_metadata[KEY_INDEX_KEY].decode().split(";")[:-1]]
    assert len(keys) == read.num_of_stripes
    assert all(one < other for one, other in pairwise(keys))
    assert keys[-1][2] == shape.rows - 1
    rows = _agreed(t)
    _search(both, open_hive, t, shape, rows)
    both.hive.run("SET hive.exec.orc.split.strategy=ETL")
    assert t.differences(t.read(HIVE), rows) == []
    _run(t, HIVE, "DELETE FROM {t} WHERE id IN (0, 9999, 10000, 24999, 25000, 49999, 50000, 51999)")
    _run(t, ACIDSQL, "DELETE FROM {t} WHERE id % 5000 = 1")
    _run(t, HIVE, "UPDATE {t} SET x = 1 WHERE id IN (24998, 25002, 51998)")
    before = _agreed(t)
    assert (len(before), _sum(t, before)) == (shape.rows - 8 - 11, 3)
    monkeypatch.setattr(rewrite.Rewrite.__init__, "__defaults__", _small_groups())
    _compact_ours(both, open_acid, t)
    assert calls.columns > 1
    rows = _agreed(t)
    assert sorted(rows, key=repr) == sorted(before, key=repr)
    _search(both, open_hive, t, shape, rows)
    _run(t, HIVE, "DELETE FROM {t} WHERE id IN (2, 24998, 25002, 51997)")
    _run(t, ACIDSQL, "UPDATE {t} SET x = 2 WHERE id IN (3, 51998)")
    rows = _agreed(t)
    assert (len(rows), _sum(t, rows)) == (len(before) - 4, 4)


def _small_groups() -> tuple[Any, ...]:
    """Defaults of a :class:`Rewrite`, with which a compaction joins no stripes of those that it reads."""
    *others, sizes = rewrite.Rewrite.__init__.__defaults__ or ()
    assert isinstance(sizes, rewrite.StripeSizes)
    return (*others, rewrite.StripeSizes(group_rows=20_000, column_bytes=1))


@pytest.mark.parametrize("compression", ["ZSTD", "ZLIB", "NONE"])
def test_index_entries_skip_rows_of_files_of_jobs_and_of_compactions(
    both: Both, open_acid: OpenAcid, spark: SparkSession, calls: Calls, compression: str
) -> None:
    """ORC's reader, which Hive has, too, reads only the group that can have a text, and its row ids are right."""
    shape = Shape(names=NARROW, properties=f"'orc.compress'='{compression}'")
    t = _filled(both, shape)
    _check_skipping(spark, _files(t, "delta"))
    both.run(ACIDSQL, t.text("DELETE FROM {t} WHERE id = 9999"))
    _compact_ours(both, open_acid, t)
    assert calls.columns == 1
    _check_skipping(spark, _files(t, "base"))


def _check_skipping(spark: SparkSession, paths: list[Path]) -> None:
    [path] = paths
    with path.open("rb") as file:
        rows = [(event[3], event[5][2]) for event in pyorc.Reader(file)]
    for start in range(0, len(rows), GROUP):
        group = rows[start : start + GROUP]
        for row_id, text in (group[0], group[len(group) // 2], group[-1]):
            ranges = _ids_read(spark, path, text)
            assert (ranges[0][0], ranges[-1][1]) == (group[0][0], group[-1][0]), (row_id, ranges)
            assert any(first <= row_id <= last for first, last in ranges)


@pytest.mark.parametrize("keys", ["", "p int"], ids=["plain", "partitioned"])
def test_hive_gathers_statistics_of_files_of_jobs(both: Both, keys: str) -> None:
    shape = Shape(names=NARROW, keys=keys, rows=26_000)
    t = _filled(both, shape)
    part = " PARTITION (p)" if keys else ""
    queries = [
        "SELECT count(*), count(m), min(id), max(id) FROM {t}",
        "SELECT min(bi), max(bi), count(s) FROM {t}",
        "SELECT count(*) FROM {t} WHERE id > 13000",
    ]
    expected = [t.answer_alike(query) for query in queries]
    assert float(expected[0][0][0]) == shape.rows
    for more in ("", " FOR COLUMNS"):
        both.run(HIVE, f"ANALYZE TABLE {t.name}{part} COMPUTE STATISTICS{more}")
        assert [t.answer_alike(query) for query in queries] == expected
    plan = "\n".join(str(r[0]) for r in both.ask(HIVE, f"EXPLAIN SELECT count(*), max(id) FROM {t.name}"))
    assert "TableScan" not in plan
    t.acid("DELETE FROM {t} WHERE id = 25999")
    [(_, highest)] = t.answer_alike("SELECT count(*), max(id) FROM {t}")
    assert float(highest) == 25_998
