"""Files written before a column got its type of today: Hive's conversions (ORC's ``ConvertTreeReaderFactory``)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acidsql.session import AcidSession
from tests.spark.hive_files import inserts, write_events, write_orc
from tests.spark.hive_tables import register

D = Decimal
CASES: list[tuple[str, str, list[Any], list[Any]]] = [
    # wider
    ("tinyint", "bigint", [1, -128], [1, -128]),
    ("int", "bigint", [1, -(2**31)], [1, -(2**31)]),
    ("int", "double", [1, 70000], [1.0, 70000.0]),
    ("int", "decimal(12,2)", [1, 70000], [D("1.00"), D("70000.00")]),
    ("int", "string", [1, -70000], ["1", "-70000"]),
    ("float", "double", [1.5, 0.1], [1.5, 0.10000000149011612]),
    ("decimal(10,2)", "decimal(20,4)", [D("1.25")], [D("1.2500")]),
    ("decimal(10,2)", "string", [D("1.25"), D("-0.50")], ["1.25", "-0.5"]),
    ("varchar(5)", "string", ["abc"], ["abc"]),
    ("char(5)", "string", ["abc"], ["abc"]),
    ("char(5)", "char(7)", ["abc"], ["abc    "]),
    ("date", "string", [dt.date(2024, 2, 29)], ["2024-02-29"]),
    ("date", "timestamp", [dt.date(2024, 2, 29)], [dt.datetime(2024, 2, 29)]),
    ("timestamp", "string", [dt.datetime(2024, 2, 29, 12, 13, 14, 500000)], ["2024-02-29 12:13:14.5"]),
    ("boolean", "int", [True, False], [1, 0]),
    ("boolean", "string", [True, False], ["TRUE", "FALSE"]),
    # narrower: what does not fit is NULL
    ("bigint", "int", [7, 2**40], [7, None]),
    ("int", "tinyint", [7, 300, -128], [7, None, -128]),
    ("double", "int", [1.9, -1.9, 1e300, float("nan")], [1, -1, None, None]),
    ("decimal(10,2)", "decimal(4,1)", [D("1.25"), D("99999.99")], [D("1.3"), None]),
    ("decimal(10,2)", "int", [D("1.99"), D("99999999.99")], [1, 99999999]),
    ("string", "int", ["12", "abc", "1.5", ""], [12, None, None, None]),
    ("string", "double", ["1.5", "abc"], [1.5, None]),
    ("string", "decimal(4,1)", ["1.5", "abc", "123456"], [D("1.5"), None, None]),
    ("string", "date", ["2024-02-29", "abc"], [dt.date(2024, 2, 29), None]),
    ("string", "timestamp", ["2024-02-29 12:13:14.5", "x"], [dt.datetime(2024, 2, 29, 12, 13, 14, 500000), None]),
    # shorter: what is too long is cut, by characters
    ("string", "varchar(3)", ["zażółć", "ab", "a🎈bc"], ["zaż", "ab", "a🎈b"]),
    ("varchar(9)", "varchar(3)", ["abcdef"], ["abc"]),
    ("string", "char(3)", ["abcdef", "a"], ["abc", "a  "]),
    ("char(9)", "varchar(3)", ["abcdef"], ["abc"]),
    ("int", "varchar(3)", [12345], ["123"]),
]


def values(acid: AcidSession) -> list[Any]:
    return [r[0] for r in acid.sql("SELECT v FROM t ORDER BY k").collect()]


@pytest.mark.parametrize(("was", "now", "stored", "read"), CASES, ids=[f"{c[0]} to {c[1]}" for c in CASES])
def test_values_of_another_type_are_converted_or_null(
    acid: AcidSession, tmp_path: Path, was: str, now: str, stored: list[Any], read: list[Any]
) -> None:
    rows = [*enumerate(stored), (len(stored), None)]
    write_events(tmp_path / "t/delta_1_1_0/bucket_00000", f"k:int,v:{was}", inserts(1, rows))
    write_orc(tmp_path / "t/000000_0", f"struct<k:int,v:{was}>", [(10 + k, v) for k, v in rows])
    register(acid, tmp_path / "t", [("k", "int"), ("v", now)])
    assert values(acid) == [*read, None] * 2


def test_a_conversion_follows_no_setting_for_other_files(
    acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    write_events(tmp_path / "t/delta_1_1_0/bucket_00000", "k:int,v:int", inserts(1, [(1, 7), (2, None), (3, 9)]))
    register(acid, tmp_path / "t", [("k", "int"), ("v", "string")])
    acid.sql("DELETE FROM t WHERE k = 3")
    wrong = {"orc.row.index.stride": "100", "orc.compress": "bogus", "hive.exec.orc.write.format": "bogus"}
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in wrong.items():
        hadoop.set(name, value)
    try:
        acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    finally:
        for name in wrong:
            hadoop.unset(name)
    assert values(acid) == ["7", None]


def test_fields_of_structs_are_found_by_name_and_converted(acid: AcidSession, tmp_path: Path) -> None:
    rows = [(1, (7, "x")), (2, None)]
    write_events(tmp_path / "t/delta_1_1_0/bucket_00000", "k:int,v:struct<a:int,b:string>", inserts(1, rows))
    register(acid, tmp_path / "t", [("k", "int"), ("v", "struct<a:bigint,b:string,c:date>")])
    assert values(acid) == [(7, "x", None), None]


def test_directories_of_different_types_are_read_together(acid: AcidSession, tmp_path: Path) -> None:
    root = tmp_path / "t"
    write_events(root / "delta_1_1_0/bucket_00000", "k:int,v:int", inserts(1, [(1, 11)]))
    write_events(root / "delta_2_2_0/bucket_00000", "k:int,w:string", inserts(2, [(2, "22"), (3, "longer")]))
    write_events(root / "delta_3_3_0/bucket_00000", "k:int", inserts(3, [(4,)]))
    write_events(root / "delta_4_4_0/bucket_00000", "k:int,v:varchar(4),x:int", inserts(4, [(5, "five", 5)]))
    register(acid, root, [("k", "int"), ("v", "varchar(4)")])
    assert values(acid) == ["11", "22", "long", None, "five"]


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize(
    ("was", "now"), [("int", "bigint"), ("string", "int"), ("bigint", "string"), ("string", "date")]
)
def test_a_condition_finds_values_of_old_files(acid: AcidSession, tmp_path: Path, was: str, now: str) -> None:
    stored = {"int": range(20), "bigint": range(20), "string": [str(i) for i in range(20)]}[was]
    if now == "date":
        stored = [f"2024-01-{i + 1:02d}" for i in range(20)]
    write_events(tmp_path / "t/delta_1_1_0/bucket_00000", f"k:int,v:{was}", inserts(1, list(enumerate(stored))))
    register(acid, tmp_path / "t", [("k", "int"), ("v", now)])
    wanted = {"bigint": "= 9", "int": "= 9", "string": "= '9'", "date": "= DATE'2024-01-10'"}[now]
    assert [r[0] for r in acid.sql(f"SELECT k FROM t WHERE v {wanted}").collect()] == [9]


@pytest.mark.usefixtures("search")
def test_files_of_both_compactors_are_read_together(acid: AcidSession, tmp_path: Path) -> None:
    """Query based compaction writes the names of the event columns in lower case."""
    lower = "operation:int,originaltransaction:bigint,bucket:int,rowid:bigint,currenttransaction:bigint"
    schema = f"struct<{lower},row:struct<k:int,v:string>>"
    root = tmp_path / "t"
    version = {"hive.acid.version": b"2"}
    write_orc(root / "base_0000002_v0000005/bucket_00000", schema, inserts(1, [(1, "a"), (2, "b")]), **version)
    write_events(root / "delta_0000003_0000003_0000/bucket_00000", "k:int,v:string", inserts(3, [(3, "c"), (4, "b")]))
    register(acid, root, [("k", "int"), ("v", "string")])
    assert values(acid) == ["a", "b", "c", "b"]
    assert sorted(r[0] for r in acid.sql("SELECT k FROM t WHERE v = 'b'").collect()) == [2, 4]
    assert acid.sql("SELECT count(*) FROM t").collect()[0][0] == 4
