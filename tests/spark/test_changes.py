"""The change feed: what each write inserted and deleted, from the files themselves; an error where they are gone."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import acidsql
from acidsql.errors import (
    AnalysisError,
    InvalidValue,
    NotTransactional,
    SnapshotTooOld,
    TableNotFound,
    UnsupportedError,
)
from acidsql.plan import deletes
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows
from tests.spark.hive_files import BUCKET_0, inserts, write_events, write_orc
from tests.spark.hive_tables import register
from tests.spark.test_golden_tables import adopt

Change = tuple[Any, ...]
"""Kind, write id, and the values of the row."""
KINDS = {
    "plain": "(id int, v string, k int)",
    "partitioned": "(id int, v string) PARTITIONED BY (k int)",
    "bucketed": "(id int, v string, k int) CLUSTERED BY (id) INTO 3 BUCKETS",
}


def told(frame: DataFrame, *names: str) -> list[Change]:
    """Changes by write id, kind and values."""
    chosen = frame.select("_commit_version", "_change_type", *(names or frame.columns[:-3]))
    return sorted((tuple(r) for r in chosen.collect()), key=repr)


@dataclass
class Program:
    """Random statements over a table, and what each write has changed by the rows before and after it."""

    acid: AcidSession
    table: str
    chance: random.Random
    expected: dict[int, Counter[tuple[Any, ...]]] = field(default_factory=dict)
    counts: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    _next: int = 0

    def rows(self) -> Counter[tuple[Any, ...]]:
        return Counter(map(tuple, self.acid.table(self.table).collect()))

    def step(self) -> None:
        acid, before, draw = self.acid, self.rows(), self.chance
        ids = draw.sample(range(1, 30), 6)
        listed = ", ".join(map(str, ids))
        source = " UNION ALL ".join(
            f"SELECT {i} AS id, 'm{self._next}' AS v, {draw.randrange(3)} AS k" for i in ids[:4]
        )
        self._next += 1
        values = ", ".join(f"({i}, 'v{self._next}', {draw.randrange(3)})" for i in ids)
        t = self.table
        where = f" PARTITION (k = {draw.randrange(3)})" if "partitioned" in t else ""
        text = draw.choice(
            [
                f"INSERT INTO {t} VALUES {values}",
                f"INSERT INTO {t} VALUES {values}",
                f"UPDATE {t} SET v = concat(v, '+') WHERE id IN ({listed})",
                f"UPDATE {t} SET v = v WHERE id % 3 = {draw.randrange(3)}",
                f"DELETE FROM {t} WHERE id IN ({listed})",
                f"MERGE INTO {t} t USING ({source}) s ON t.id = s.id WHEN MATCHED AND s.k = 0 THEN DELETE"
                " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.k)",
                f"INSERT OVERWRITE TABLE {t} SELECT * FROM {t} WHERE id % 2 = 0",
                f"INSERT OVERWRITE TABLE {t} VALUES {values}",
                f"TRUNCATE TABLE {t}",
                f"ALTER TABLE {t}{where} COMPACT '{draw.choice(['minor', 'major'])}' AND WAIT",
            ]
        )
        newest = acid.newest_version(t)
        try:
            answer = acid.sql(text)
        except acidsql.AcidError:  # several rows of one id in a MERGE, nothing to compact, no such partition
            if "MERGE" not in text and "COMPACT" not in text:
                raise
            return
        after, version = self.rows(), acid.newest_version(t)
        if version == newest:
            assert after == before, text
            return
        change = Counter(after)
        change.subtract(before)
        self.expected[version] = +Counter({("+", *r): n for r, n in change.items()}) + Counter(
            {("-", *r): -n for r, n in change.items() if n < 0}
        )
        counts = None
        if answer.columns and "OVERWRITE" not in text:
            [c] = answer.collect()
            counts = c.num_updated_rows + c.num_inserted_rows, c.num_updated_rows + c.num_deleted_rows
        elif version not in self.counts and ("OVERWRITE" in text or "TRUNCATE" in text):
            replaced = sum(before.values()) if "TRUNCATE" in text or "partitioned" not in t else None
            counts = None if replaced is None else (sum(after.values()), replaced)
        self.counts[version] = counts


def net(changes: list[Change]) -> Counter[tuple[Any, ...]]:
    """What is left of changes where an insert and a delete of equal rows cancel each other."""
    summed: Counter[tuple[Any, ...]] = Counter()
    for _, kind, *values in changes:
        summed[tuple(values)] += 1 if kind in ("insert", "update_postimage") else -1
    return Counter({("+" if n > 0 else "-", *r): abs(n) for r, n in summed.items() if n})


def of_version(changes: list[Change], version: int) -> list[Change]:
    return [c for c in changes if c[0] == version]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.long) for s in range(2, 9))])
def test_changes_of_random_programs_are_what_the_rows_before_and_after_each_write_tell(
    acid: AcidSession, kind: str, seed: int
) -> None:
    table = f"t_{kind}"
    acid.sql(f"CREATE TRANSACTIONAL TABLE {table} {KINDS[kind]}")
    acid.sql(f"INSERT INTO {table} SELECT id, 'first', id % 3 FROM range(1, 20)")
    program = Program(acid, table, random.Random(f"{kind} {seed}"))
    for _ in range(14):
        program.step()
    changes = told(acid.changes(table, 1))
    assert program.expected
    for version, expected in program.expected.items():
        own = of_version(changes, version)
        assert net(own) == expected, version
        if (counts := program.counts.get(version)) is not None:
            assert tuple(sum(c[1] == k for c in own) for k in ("insert", "delete")) == counts, version
    newest = acid.newest_version(table)
    assert {c[0] for c in changes} <= {1, *program.expected}
    for _ in range(4):
        first = program.chance.randrange(1, newest + 1)
        last = program.chance.randrange(first, newest + 1)
        part = told(acid.changes(table, first, last))
        assert part == [c for c in changes if first <= c[0] <= last], (first, last)
    nothing_is_open(acid)


@pytest.fixture
def emp(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int, name string)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cid')")  # 1
    acid.sql("UPDATE emp SET name = 'Bill' WHERE id = 2")  # 2
    acid.sql("DELETE FROM emp WHERE id = 3")  # 3
    return acid


EMP = [
    (1, "insert", 1, "Ann"),
    (1, "insert", 2, "Bob"),
    (1, "insert", 3, "Cid"),
    (2, "delete", 2, "Bob"),
    (2, "insert", 2, "Bill"),
    (3, "delete", 3, "Cid"),
]


def test_changes_have_the_columns_of_the_table_and_three_more(emp: AcidSession) -> None:
    frame = emp.changes("emp", 1)
    assert frame.columns == ["id", "name", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [f.dataType.simpleString() for f in frame.schema] == ["int", "string", "string", "bigint", "timestamp"]
    assert told(frame) == sorted(EMP, key=repr)
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    times = {r.v: r.at for r in frame.selectExpr("_commit_version v", "_commit_timestamp at").collect()}
    assert set(times) == {1, 2, 3}
    assert all(0 <= (now - at).total_seconds() < 600 for at in times.values())


def test_keys_tell_rows_before_and_after_an_update(emp: AcidSession) -> None:
    emp.sql(
        "MERGE INTO emp t USING (SELECT 1 AS id UNION ALL SELECT 2 UNION ALL SELECT 9) s ON t.id = s.id"
        " WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'M'"
        " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'N')"
    )
    assert told(emp.changes("emp", 2, keys=["ID"])) == sorted(
        [
            (2, "update_preimage", 2, "Bob"),
            (2, "update_postimage", 2, "Bill"),
            (3, "delete", 3, "Cid"),
            (4, "delete", 1, "Ann"),
            (4, "update_preimage", 2, "Bill"),
            (4, "update_postimage", 2, "M"),
            (4, "insert", 9, "N"),
        ],
        key=repr,
    )


def test_keys_that_are_null_or_not_unique_are_told_as_they_are(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    acid.sql("INSERT INTO t VALUES (NULL, 1), (2, 1), (2, 2)")
    acid.sql("UPDATE t SET v = v + 10")
    found = told(acid.changes("t", 2, keys=["id"]))
    assert [c for c in found if c[2] is None] == [(2, "update_postimage", None, 11), (2, "update_preimage", None, 1)]
    assert {c[1] for c in found if c[2] == 2} == {"insert", "delete"}


def test_a_function_of_sql_tells_the_same(emp: AcidSession) -> None:
    emp.sql("CREATE DATABASE hr")
    emp.sql("CREATE TRANSACTIONAL TABLE hr.log (id int, kind string, at bigint)")
    emp.sql("INSERT INTO hr.log SELECT id, _change_type, _commit_version FROM table_changes('EMP', 2)")
    assert rows(emp, "SELECT * FROM hr.log") == [(2, "delete", 2), (2, "insert", 2), (3, "delete", 3)]
    text = "SELECT t.name FROM TABLE_CHANGES('default.emp', :a, :b, 'id') AS t WHERE _change_type = 'update_postimage'"
    assert rows(emp, text, a=1, b=3) == [("Bill",)]
    joined = "SELECT e.id, c._commit_version FROM emp e JOIN table_changes('emp', 1, NULL) c USING (id)"
    assert rows(emp, joined) == [(1, 1), (2, 1), (2, 2), (2, 2)]
    emp.sql("CREATE VIEW news AS SELECT id, _commit_version AS v FROM table_changes('emp', 3)")
    assert rows(emp, "SELECT * FROM news") == [(3, 3)]
    emp.sql("USE hr")
    assert rows(emp, "SELECT * FROM default.news") == [(3, 3)]
    assert rows(emp, "SELECT count(*) FROM table_changes('log', 1)") == [(3,)]
    nothing_is_open(emp)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("table_changes('emp')", AnalysisError, "takes a table's name"),
        ("table_changes('emp', 'x')", AnalysisError, "takes a table's name"),
        ("table_changes('emp', 1 + 1)", AnalysisError, "takes a table's name"),
        ("table_changes('emp', 1, 2, 3)", AnalysisError, "takes a table's name"),
        ("table_changes('emp', 1.5)", AnalysisError, "takes a table's name"),
        ("table_changes('emp', true)", AnalysisError, "takes a table's name"),
        ("table_changes('emp', 1, 2, 'nope')", AnalysisError, "has no column nope"),
        ("table_changes('nope', 1)", TableNotFound, "nope"),
        ("table_changes('emp', 0)", InvalidValue, "write ids go from 1 to 3"),
        ("table_changes('emp', 5)", InvalidValue, "write ids go from 1 to 3"),
        ("table_changes('emp', 3, 2)", InvalidValue, "no changes from 3 to 2"),
        ("table_changes('emp', 1, 4)", InvalidValue, "final up to write id 3"),
    ],
)
def test_a_call_that_has_no_answer_is_refused_at_its_place(
    emp: AcidSession, call: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        emp.sql(f"SELECT *\n  FROM {call}")
    assert "line 2:8" in str(raised.value)
    nothing_is_open(emp)


def test_tables_without_changes_are_refused(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql(
        "CREATE TABLE only (id int) TBLPROPERTIES ('transactional'='true','transactional_properties'='insert_only')"
    )
    with pytest.raises(UnsupportedError, match="insert-only"):
        acid.changes("only", 1)
    acid.sql("CREATE TRANSACTIONAL TABLE odd (id int, _commit_version int)")
    with pytest.raises(AnalysisError, match="_commit_version"):
        acid.changes("odd", 1)
    spark.range(1).createOrReplaceTempView("seen")
    with pytest.raises((NotTransactional, UnsupportedError)):
        acid.changes("seen", 1)
    for bad in ((None,), (True,), ("1",), (1, "2")):
        with pytest.raises(InvalidValue):
            acid.changes("odd", *bad)
    with pytest.raises(InvalidValue):
        acid.changes("odd", 1, keys="id")


def test_nothing_new_is_no_error(emp: AcidSession) -> None:
    assert emp.newest_version("emp") == 3
    frame = emp.changes("emp", 4)
    assert told(frame) == []
    assert frame.columns[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    emp.sql("CREATE TRANSACTIONAL TABLE fresh (id int)")
    assert emp.newest_version("fresh") == 0
    assert told(emp.changes("fresh", 1)) == []


def test_a_write_that_is_open_holds_back_those_after_it(emp: AcidSession) -> None:
    with emp.streaming("emp", buffer_rows=1) as stream:
        stream.begin()
        stream.write([(7, "Gil"), (8, "Hal")])
        emp.sql("INSERT INTO emp VALUES (9, 'Ida')")
        assert emp.newest_version("emp") == 3
        with pytest.raises(InvalidValue, match="transaction of write id 4 is open"):
            emp.changes("emp", 1, 5)
        assert told(emp.changes("emp", 4)) == []
        stream.commit()
    assert told(emp.changes("emp", 4), "id") == [(4, "insert", 7), (4, "insert", 8), (5, "insert", 9)]


def test_rows_of_aborted_transactions_are_no_changes(emp: AcidSession) -> None:
    with emp.streaming("emp", buffer_rows=1) as stream:
        stream.begin()
        stream.write([(7, "Gil"), (8, "Hal")])
        stream.abort()
    emp.sql("INSERT INTO emp VALUES (9, 'Ida')")
    assert told(emp.changes("emp", 4), "id") == [(5, "insert", 9)]
    emp.sql("SET acidsql.compactor.layout = hive4")
    emp.sql("ALTER TABLE emp COMPACT 'minor' AND WAIT")
    emp.compactor.run_once()
    assert told(emp.changes("emp", 4), "id") == [(5, "insert", 9)]


# --- history ---------------------------------------------------------------------------------------------------------


def test_minor_compactions_keep_changes_and_major_ones_end_them(emp: AcidSession, warehouse: Path) -> None:
    emp.sql("SET acidsql.compactor.layout = hive4")  # in that of Hive 3 deltas with deletes become a base
    emp.sql("ALTER TABLE emp COMPACT 'minor' AND WAIT")
    emp.compactor.run_once()
    assert told(emp.changes("emp", 1)) == sorted(EMP, key=repr)
    assert told(emp.changes("emp", 2, 2)) == [(2, "delete", 2, "Bob"), (2, "insert", 2, "Bill")]
    emp.sql("INSERT INTO emp VALUES (4, 'Dot')")
    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    before = emp.changes("emp", 1)
    assert len(told(before)) == len(EMP) + 1
    del before
    emp.compactor.run_once()
    with pytest.raises(SnapshotTooOld, match=r"Changes can be read from 5 on"):
        emp.changes("emp", 4)
    assert told(emp.changes("emp", 5)) == []
    emp.sql("DELETE FROM emp WHERE id = 1")
    assert told(emp.changes("emp", 5)) == [(5, "delete", 1, "Ann")]
    assert [p.name for p in (warehouse / "emp").iterdir() if "history" in p.name] == ["_acidsql_history_0000004"]


def test_a_crash_in_the_cleaner_does_not_hide_that_changes_are_gone(
    emp: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from acidsql.compactor import cleaner

    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    removed = []

    def remove_one(self: Any, location: str, paths: list[str], lock: Any) -> None:
        for path in paths[:1]:
            acidsql.fs.resolve(location)[0].delete(path)
            removed.append(path)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cleaner.Cleaner, "_remove", remove_one)
        with pytest.raises(KeyboardInterrupt):
            emp.compactor.run_once()
    assert removed
    with pytest.raises(SnapshotTooOld):
        emp.changes("emp", 1)
    assert told(emp.changes("emp", 4)) == []


def test_vacuum_below_an_overwrite_ends_changes(emp: AcidSession) -> None:
    emp.sql("INSERT OVERWRITE TABLE emp VALUES (5, 'Eve')")
    assert told(emp.changes("emp", 4)) == sorted(
        [(4, "delete", 1, "Ann"), (4, "delete", 2, "Bill"), (4, "insert", 5, "Eve")], key=repr
    )
    emp.sql("VACUUM emp RETAIN 0 HOURS")
    with pytest.raises(SnapshotTooOld):
        emp.changes("emp", 4)
    assert told(emp.changes("emp", 5)) == []


def test_a_rebalance_ends_changes(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    for i in range(3):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    newest = acid.newest_version("t")
    acid.sql("ALTER TABLE t COMPACT 'rebalance' AND WAIT")
    acid.sql("DELETE FROM t WHERE id = 1")
    with pytest.raises(SnapshotTooOld):
        acid.changes("t", newest)
    after = acid.newest_version("t")
    assert told(acid.changes("t", after)) == [(after, "delete", 1)]


@pytest.mark.parametrize("by", ["setting", "property"])
def test_changes_are_kept_for_a_time(emp: AcidSession, by: str) -> None:
    name = "acidsql.changes.retention"
    emp.sql(f"SET {name} = 1h" if by == "setting" else f"ALTER TABLE emp SET TBLPROPERTIES ('{name}'='1h')")
    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    emp.compactor.run_once()
    emp.sql("VACUUM emp RETAIN 0 HOURS")
    assert told(emp.changes("emp", 1)) == sorted(EMP, key=repr)
    emp.sql(f"SET {name} = 0s" if by == "setting" else f"ALTER TABLE emp SET TBLPROPERTIES ('{name}'='0s')")
    emp.compactor.run_once()
    with pytest.raises(SnapshotTooOld):
        emp.changes("emp", 1)


def test_a_property_that_is_no_duration_keeps_all(emp: AcidSession) -> None:
    emp.sql("ALTER TABLE emp SET TBLPROPERTIES ('acidsql.changes.retention'='soon')")
    emp.sql("ALTER TABLE emp COMPACT 'major' AND WAIT")
    emp.compactor.run_once()
    emp.sql("VACUUM emp RETAIN 0 HOURS")
    assert told(emp.changes("emp", 1)) == sorted(EMP, key=repr)


@pytest.mark.parametrize("bound", ["DRIVER_BYTES", "MOST_BROADCAST"])
def test_many_deletes_are_joined_by_spark(emp: AcidSession, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    emp.sql("INSERT OVERWRITE TABLE emp SELECT id, 'o' FROM emp")
    expected = told(emp.changes("emp", 1))
    monkeypatch.setattr(deletes, bound, 0)
    assert told(emp.changes("emp", 1)) == expected
    assert told(emp.changes("emp", 3)) == [c for c in expected if c[0] >= 3]


def test_only_partitions_that_a_condition_leaves_are_looked_at(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    acid.sql("UPDATE t SET id = id + 10")
    acid.sql("ALTER TABLE t PARTITION (p = 1) COMPACT 'major' AND WAIT")
    acid.compactor.run_once()
    with pytest.raises(SnapshotTooOld):
        acid.changes("t", 1)
    text = "SELECT _commit_version, _change_type, id FROM table_changes('t', 1) WHERE p = 2"
    assert rows(acid, text) == [(1, "insert", 2), (2, "delete", 2), (2, "insert", 12)]


def test_original_files_were_there_before_all_changes(acid: AcidSession, tmp_path: Path) -> None:
    write_orc(tmp_path / "t" / "000000_0", "struct<a:int,b:string>", [(i, f"v{i}") for i in range(6)], stripe_rows=2)
    register(acid, tmp_path / "t", [("a", "int"), ("b", "string")])
    acid.sql("DELETE FROM t WHERE a < 2")
    acid.sql("UPDATE t SET b = 'new' WHERE a = 5")
    assert told(acid.changes("t", 1)) == [
        (1, "delete", 0, "v0"),
        (1, "delete", 1, "v1"),
        (2, "delete", 5, "v5"),
        (2, "insert", 5, "new"),
    ]
    acid.sql("TRUNCATE TABLE t")
    assert [c[2] for c in told(acid.changes("t", 3))] == [2, 3, 4, 5]


def test_changes_of_acid_version_1_are_refused(acid: AcidSession, tmp_path: Path) -> None:
    made = [(1, 1, BUCKET_0, 0, 2, ("changed",))]
    write_events(
        tmp_path / "t" / "delta_0000001_0000001_0000" / "bucket_00000", "v:string", inserts(1, [("a",)]), version=1
    )
    write_events(tmp_path / "t" / "delta_0000002_0000002_0000" / "bucket_00000", "v:string", made, version=1)
    register(acid, tmp_path / "t", [("v", "string")])
    with pytest.raises(UnsupportedError, match="ACID version 1"):
        acid.changes("t", 1)


def test_changes_of_a_table_that_hive_wrote(acid: AcidSession, tmp_path: Path) -> None:
    name = adopt(acid, "emp/11_minor_cleaned", tmp_path / "adopted")
    newest = acid.newest_version(name)
    changes = told(acid.changes(name, 1))
    by_version = {v: Counter(map(tuple, acid.table(name, version=v).collect())) for v in range(newest + 1)}
    for version in range(1, newest + 1):
        difference = Counter(by_version[version])
        difference.subtract(by_version[version - 1])
        expected = Counter({("+" if n > 0 else "-", *r): abs(n) for r, n in difference.items() if n})
        assert net(of_version(changes, version)) == expected, version


def test_a_table_without_partitions_has_no_changes(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (k int)")
    acid.sql("ALTER TABLE t SET TBLPROPERTIES ('a'='b')")
    assert acid.newest_version("t") == 1
    assert told(acid.changes("t", 1)) == []


def test_changes_of_rows_in_a_base_of_original_files_alone(acid: AcidSession, tmp_path: Path) -> None:
    """It has a name without a write id: the smallest of all numbers."""
    write_orc(tmp_path / "o" / "000000_0", "struct<id:int,v:string>", [(n, f"v{n}") for n in range(4)])
    register(acid, tmp_path / "o", [("id", "int"), ("v", "string")], name="o")
    acid.sql("ALTER TABLE o COMPACT 'major' AND WAIT")
    acid.compactor.run_once()
    assert [p.name for p in (tmp_path / "o").glob("base_*")] == ["base_-9223372036854775808"]
    acid.sql("DELETE FROM o WHERE id = 1")
    acid.sql("UPDATE o SET v = 'new' WHERE id = 2")
    told = sorted((r.id, r.v, r._change_type, r._commit_version) for r in acid.changes("o", 1, keys=["id"]).collect())
    assert told == [(1, "v1", "delete", 1), (2, "new", "update_postimage", 2), (2, "v2", "update_preimage", 2)]


def test_a_row_that_moves_to_another_partition_is_an_update_whatever_is_asked(acid: AcidSession) -> None:
    """Conditions leave out no partition before the rows before and after an update have found each other."""
    acid.sql("CREATE TRANSACTIONAL TABLE m (k int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO m VALUES (1, 'a', 0), (2, 'b', 0)")
    acid.sql(
        "MERGE INTO m USING (SELECT * FROM VALUES (1, 0), (1, 1) AS s(k, p)) s ON m.k = s.k AND m.p = s.p"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, 'moved', s.p)"
    )
    for keys, told in (
        ("'k'", {0: "update_preimage", 1: "update_postimage"}),
        ("'k', 'p'", {0: "delete", 1: "insert"}),
    ):
        for p, kind in told.items():
            text = f"SELECT _change_type FROM table_changes('m', 2, 2, {keys}) WHERE p = {p}"
            assert [row[0] for row in acid.sql(text).collect()] == [kind]
