"""Columns that are renamed, retyped, replaced: what is in old files is read as Hive reads it, or the change refused."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row

from acidsql.errors import AcidError, AnalysisError
from acidsql.session import AcidSession
from tests.spark.answers import check_refusal, nothing_is_open, rows
from tests.spark.hive_rules import check_table
from tests.spark.hive_tables import GOLDEN, register_golden
from tests.spark.tree import tree


def columns(acid: AcidSession, table: str = "emp") -> list[tuple[str, str, str | None]]:
    return [(c.name, c.type, c.comment) for c in acid.metastore.get_table("default", table).columns]


@pytest.fixture
def emp(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE emp (id int COMMENT 'the key', name string, salary int DEFAULT 7)")
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 5000), (2, 'Bob', 5500), (3, NULL, NULL)")
    acid.sql("UPDATE emp SET salary = 6000 WHERE id = 2")
    return acid


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize(
    "text",
    ["CHANGE name who string", "CHANGE COLUMN Name Who string", "RENAME COLUMN name TO who"],
)
def test_a_renamed_column_keeps_its_values(emp: AcidSession, warehouse: Path, text: str) -> None:
    assert emp.sql(f"ALTER TABLE emp {text}").columns == []
    assert columns(emp) == [("id", "int", "the key"), ("who", "string", None), ("salary", "int", None)]
    assert rows(emp, "SELECT id, who, salary FROM emp") == [(1, "Ann", 5000), (2, "Bob", 6000), (3, None, None)]
    assert rows(emp, "SELECT who FROM emp WHERE who = 'Ann' OR who > 'B'") == [("Ann",), ("Bob",)]
    emp.sql("INSERT INTO emp VALUES (4, 'Dan', 1)")
    emp.sql("UPDATE emp SET who = upper(who) WHERE who IN ('Ann', 'Dan')")
    emp.sql("DELETE FROM emp WHERE who = 'Bob'")
    assert rows(emp, "SELECT id, who FROM emp") == [(1, "ANN"), (3, None), (4, "DAN")]
    with pytest.raises(PySparkException, match="name"):
        emp.sql("SELECT name FROM emp")
    check_table(warehouse / "emp")


def test_names_may_change_places_and_the_values_do_not(emp: AcidSession) -> None:
    emp.sql("ALTER TABLE emp REPLACE COLUMNS (salary int, name string, id int, added date)")
    emp.sql("INSERT INTO emp VALUES (9000, 'Eve', 4, date '2024-02-29')")
    assert rows(emp, "SELECT id, name, salary, added FROM emp") == [
        (4, "Eve", 9000, datetime.date(2024, 2, 29)),
        (5000, "Ann", 1, None),
        (6000, "Bob", 2, None),
        (None, None, 3, None),
    ]


def test_a_dataframe_made_before_keeps_its_names(emp: AcidSession) -> None:
    before = emp.table("emp")
    emp.sql("ALTER TABLE emp RENAME COLUMN name TO who")
    assert before.columns == ["id", "name", "salary"]
    assert sorted(r.name for r in before.filter("name IS NOT NULL").collect()) == ["Ann", "Bob"]


def test_what_a_column_declares_goes_along_with_it(emp: AcidSession) -> None:
    emp.sql("ALTER TABLE emp ALTER COLUMN name SET DEFAULT 'nobody'")
    emp.sql("ALTER TABLE emp CHANGE salary pay bigint COMMENT 'a month'")
    emp.sql("ALTER TABLE emp CHANGE id id int COMMENT ''")
    emp.sql("INSERT INTO emp (id) VALUES (4)")
    assert columns(emp) == [("id", "int", ""), ("name", "string", None), ("pay", "bigint", "a month")]
    assert rows(emp, "SELECT * FROM emp WHERE id = 4") == [(4, "nobody", 7)]
    emp.sql("ALTER TABLE emp REPLACE COLUMNS (a int, b string, c bigint)")
    emp.sql("INSERT INTO emp (a) VALUES (5)")
    assert rows(emp, "SELECT * FROM emp WHERE a = 5") == [(5, "nobody", 7)]


def test_a_check_follows_the_names_of_its_columns(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE c (a int, s struct<a:int>, CHECK (a > 0 AND s.a < c.a OR abs(`A`) = 5))")
    acid.sql("ALTER TABLE c RENAME COLUMN a TO `new a`")
    [condition] = acid.metastore.get_table("default", "c").checks
    assert condition == "`new a` > 0 AND s.a < c.`new a` OR abs(`new a`) = 5"
    acid.sql("INSERT INTO c VALUES (1, named_struct('a', 0))")
    with pytest.raises((AcidError, PySparkException)):
        acid.sql("INSERT INTO c VALUES (0, named_struct('a', 0))").collect()
    assert rows(acid, "SELECT `new a` FROM c") == [(1,)]


# --- types -----------------------------------------------------------------------------------------------------------

WIDER = [
    ("tinyint", "-128", "smallint", -128),
    ("smallint", "300", "int", 300),
    ("int", "-2147483648", "bigint", -2147483648),
    ("int", "70000", "decimal(12,2)", Decimal("70000.00")),
    ("bigint", "9223372036854775807", "decimal(19,0)", Decimal("9223372036854775807")),
    ("bigint", "1234567", "double", 1234567.0),
    ("int", "5", "float", 5.0),
    ("float", "float(1.5)", "double", 1.5),
    ("decimal(10,2)", "12345678.90", "decimal(12,4)", Decimal("12345678.9000")),
    ("decimal(10,2)", "1.50", "double", 1.5),
    ("bigint", "-5", "string", "-5"),
    ("int", "42", "varchar(11)", "42"),
    ("int", "42", "char(11)", "42         "),
    ("date", "date '1500-02-28'", "string", "1500-02-28"),
    ("timestamp", "timestamp '2024-02-29 12:34:56.5'", "string", "2024-02-29 12:34:56.5"),
    ("varchar(5)", "'abc'", "varchar(9)", "abc"),
    ("varchar(5)", "'abc'", "string", "abc"),
    ("char(3)", "'a'", "char(5)", "a    "),
    ("char(3)", "'a'", "string", "a"),
]


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize(("old", "value", "new", "read"), WIDER, ids=[f"{w[0]} to {w[2]}" for w in WIDER])
def test_old_files_are_read_with_the_wider_type(
    acid: AcidSession, warehouse: Path, old: str, value: str, new: str, read: object
) -> None:
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (id int, v {old})")
    acid.sql(f"INSERT INTO t VALUES (1, {value}), (2, NULL)")
    acid.sql(f"ALTER TABLE t ALTER COLUMN v TYPE {new}")
    assert rows(acid, "SELECT id, v FROM t") == [(1, read), (2, None)]
    assert rows(acid, f"SELECT id FROM t WHERE v = CAST({value} AS {new})") == [(1,)]
    acid.sql("UPDATE t SET id = id + 10")
    acid.sql("INSERT INTO t SELECT id + 10, v FROM t")
    assert rows(acid, "SELECT id, v FROM t") == [(11, read), (12, None), (21, read), (22, None)]
    check_table(warehouse / "t")


GOLDEN_STEPS = [
    ("01_before", "ADD COLUMNS (extra double, tags array<string>)", "02_add_columns"),
    ("04_update_after", "CHANGE COLUMN id id bigint", "05_widen_type"),
    ("06_insert_wide", "CHANGE COLUMN name fullname string", "07_rename_column"),
    ("06_insert_wide", "RENAME COLUMN name TO fullname", "07_rename_column"),
    (
        "01_before",
        "REPLACE COLUMNS (id int, name string, extra double, tags array<string>)",
        "02_add_columns",
    ),
]


@pytest.mark.parametrize(("before", "text", "after"), GOLDEN_STEPS, ids=[f"{s[0]} {s[1]}" for s in GOLDEN_STEPS])
def test_hives_files_are_read_after_a_change_as_hive_read_them_after_its_own(
    acid: AcidSession, tmp_path: Path, before: str, text: str, after: str
) -> None:
    table = register_golden(acid, f"evo/{before}", tmp_path / "taken")
    acid.sql(f"ALTER TABLE {table.name} {text}")
    wanted = json.loads((GOLDEN / "evo" / after / "rowid.json").read_text())
    found = acid.sql(f"SELECT ROW__ID, * FROM {table.name}")
    assert [c.lower() for c in found.columns] == [n.split(".")[-1] for n, _ in _but_file(wanted["columns"])]
    rows = []
    for identity, *values in found.collect():
        shown = {"writeid": identity.writeId, "bucketid": identity.bucketId, "rowid": identity.rowId}
        rows.append([shown, *values])
    hives = [_but_file(r) for r in wanted["rows"]]
    expected = [[json.loads(r[0]), *r[1:-1], None if r[-1] is None else json.loads(r[-1])] for r in hives]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


def _but_file(row: list[Any]) -> list[Any]:
    """Without INPUT__FILE__NAME."""
    return [row[0], *row[2:]]


def test_files_of_an_insert_only_table_are_read_with_the_wider_type(acid: AcidSession) -> None:
    acid.sql(
        "CREATE TABLE mm (id int, v int)"
        " TBLPROPERTIES ('transactional'='true','transactional_properties'='insert_only')"
    )
    acid.sql("INSERT INTO mm VALUES (1, 10), (2, NULL)")
    acid.sql("ALTER TABLE mm CHANGE v w string")
    acid.sql("INSERT INTO mm VALUES (3, 'ten')")
    assert rows(acid, "SELECT * FROM mm") == [(1, "10"), (2, None), (3, "ten")]
    assert rows(acid, "SELECT id FROM mm WHERE w = '10' OR w = 'ten'") == [(1,), (3,)]
    assert rows(acid, "SELECT id FROM mm WHERE w IS NULL") == [(2,)]


def test_with_hives_setting_numbers_may_become_narrower_and_what_does_not_fit_is_null(emp: AcidSession) -> None:
    with pytest.raises(AnalysisError) as caught:
        emp.sql("ALTER TABLE emp CHANGE name name int")
    assert caught.value.code == 40013
    emp.sql("SET hive.metastore.disallow.incompatible.col.type.changes = false")
    emp.sql("ALTER TABLE emp CHANGE salary salary tinyint")
    emp.sql("ALTER TABLE emp CHANGE name name decimal(5,1)")
    emp.sql("INSERT INTO emp VALUES (4, 12.5, 100)")
    assert rows(emp, "SELECT name FROM emp WHERE id IN (1, 4)") == [(Decimal("12.5"),), (None,)]
    emp.sql("ALTER TABLE emp ADD COLUMNS (v string)")
    emp.sql("UPDATE emp SET v = 'abcdef' WHERE id = 1")
    emp.sql("ALTER TABLE emp CHANGE v v varchar(3)")
    assert rows(emp, "SELECT v FROM emp WHERE id = 1 OR v = 'abcdef'") == [("abc",)]
    with pytest.raises(AnalysisError) as caught:
        emp.sql("ALTER TABLE emp CHANGE salary salary date")
    assert caught.value.code == 10312


LOSSY: list[tuple[str, str, str, object]] = [
    ("decimal(10,2)", "12345678.90", "decimal(4,0)", None),
    ("decimal(10,2)", "12.50", "decimal(4,0)", Decimal("13")),
    ("int", "70000", "decimal(4,0)", None),
    ("string", "'größer'", "varchar(3)", "grö"),
    ("string", "'abcdef'", "char(3)", "abc"),
    ("int", "123456", "varchar(3)", "123"),
    ("date", "date '2024-02-29'", "char(4)", "2024"),
    ("timestamp", "timestamp '2024-02-29 12:34:56.5'", "varchar(10)", "2024-02-29"),
    ("double", "1.5D", "varchar(2)", "1."),
    ("struct<a:int,b:string>", "named_struct('a', 7, 'b', 'x')", "struct<b:string>", Row(b="x")),
    ("struct<a:int,b:string>", "named_struct('a', 7, 'b', 'x')", "struct<c:int>", Row(c=None)),
    ("struct<a:int,b:string>", "named_struct('a', 7, 'b', 'x')", "struct<a:int,b:int>", Row(a=7, b=None)),
    ("array<decimal(4,2)>", "array(1.50, NULL)", "array<decimal(3,1)>", [Decimal("1.5"), None]),
]
"""Old type, value, new type, what is read."""


def changed_in_one_table(acid: AcidSession, changes: list[tuple[str, str, str, object]], properties: str) -> None:
    """Each column of a table is changed, and what is in an old file read; then again, when it was written anew."""
    columns = ", ".join(f"c{i} {old}" for i, (old, *_) in enumerate(changes))
    acid.sql(f"CREATE TABLE t (id int, {columns}) TBLPROPERTIES ('transactional'='true'{properties})")
    values = ", ".join(f"CAST({value} AS {old})" for old, value, *_ in changes)
    acid.sql(f"INSERT INTO t SELECT 1, {values}")
    acid.sql("INSERT INTO t (id) VALUES (2)")
    for i, (_, _, new, _) in enumerate(changes):
        acid.sql(f"ALTER TABLE t CHANGE c{i} c{i} {new}")
    expected = [read for *_, read in changes]
    for number in (1, 11):
        one, two = acid.sql("SELECT * FROM t ORDER BY id").collect()
        assert one.id == number
        for (old, _, new, _), found, read in zip(changes, one[1:], expected, strict=True):
            assert found == read, f"{old} as {new}"
        assert list(two[1:]) == [None] * len(changes)
        if not properties:
            acid.sql("UPDATE t SET id = id + 10")
        else:
            return


@pytest.mark.parametrize("properties", ["", ",'transactional_properties'='insert_only'"], ids=["ACID", "insert-only"])
def test_what_does_not_fit_is_read_as_null_or_cut_off_as_hive_does(
    acid: AcidSession, warehouse: Path, caplog: pytest.LogCaptureFixture, properties: str
) -> None:
    changed_in_one_table(acid, LOSSY, properties)
    told = [r.getMessage() for r in caplog.records if "values that do not fit are read as NULL" in r.getMessage()]
    assert len(told) == len(LOSSY)
    assert acid.sql("SELECT id FROM t WHERE c1 = 13 AND c0 IS NULL AND c3 = 'grö' AND c2 IS NULL").count() == 1
    assert acid.sql("SELECT id FROM t WHERE c1 = 12.5 OR c3 = 'größer'").count() == 0
    if not properties:
        check_table(warehouse / "t")


NESTED: list[tuple[str, str, str, object]] = [
    (
        "struct<a:int,b:string>",
        "named_struct('a', 7, 'b', 'x')",
        "struct<a:bigint,B:string,c:double>",
        Row(a=7, B="x", c=None),
    ),
    (
        "struct<a:int,b:char(1)>",
        "named_struct('a', 7, 'b', 'x')",
        "struct<b:char(2),t:timestamp,a:decimal(12,2),m:map<int,int>>",
        Row(b="x ", t=None, a=Decimal("7.00"), m=None),
    ),
    (
        "struct<s:struct<x:int>>",
        "named_struct('s', named_struct('x', 3))",
        "struct<n:struct<y:int>,s:struct<y:array<int>,x:bigint>>",
        Row(n=None, s=Row(y=None, x=3)),
    ),
    (
        "array<struct<a:int,b:string>>",
        "array(named_struct('a', 1, 'b', 'x'), NULL)",
        "array<struct<a:bigint,b:string,c:int>>",
        [Row(a=1, b="x", c=None), None],
    ),
    ("array<int>", "array(1, NULL, 3)", "array<bigint>", [1, None, 3]),
    ("map<string,int>", "map('k', 1)", "map<string,bigint>", {"k": 1}),
    (
        "map<int,struct<a:int>>",
        "map(1, named_struct('a', 2))",
        "map<bigint,struct<b:int,a:bigint>>",
        {1: Row(b=None, a=2)},
    ),
]


@pytest.mark.parametrize("properties", ["", ",'transactional_properties'='insert_only'"], ids=["ACID", "insert-only"])
def test_fields_that_are_added_are_null_in_old_files_and_wider_ones_keep_their_values(
    acid: AcidSession, warehouse: Path, caplog: pytest.LogCaptureFixture, properties: str
) -> None:
    changed_in_one_table(acid, NESTED, properties)
    assert not [r for r in caplog.records if "does not fit" in r.getMessage()]
    if not properties:
        check_table(warehouse / "t")


@pytest.mark.usefixtures("search")
def test_rows_of_structs_from_before_and_after_are_updated_merged_and_keep_their_ids(
    acid: AcidSession, warehouse: Path
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, s struct<a:int,b:string>, u struct<a:int>) PARTITIONED BY (p int)")
    for n in (1, 2):
        acid.sql(f"INSERT INTO t VALUES ({n}, named_struct('a', {n}, 'b', 'x'), named_struct('a', {n}), {n})")
    acid.sql("ALTER TABLE t CHANGE s s struct<a:bigint,b:string,c:double> CASCADE")
    acid.sql("ALTER TABLE t CHANGE u u struct<a:string>")
    ids = rows(acid, "SELECT id, ROW__ID FROM t")
    value = "named_struct('a', 5000000000, 'b', 'y', 'c', 1.5D)"
    acid.sql(f"INSERT INTO t VALUES (3, {value}, named_struct('a', 'three'), 1)")
    assert rows(acid, "SELECT id, ROW__ID FROM t WHERE id < 3") == ids
    for where, found in [
        ("s.a = 1", [1]),
        ("s.a = 5000000000", [3]),
        ("s.c IS NULL", [1, 2]),
        ("s.c = 1.5", [3]),
        ("u.a = '2'", [2]),
        ("u.a > 'a'", [3]),
        ("s.b = 'y' AND p = 1", [3]),
    ]:
        assert rows(acid, f"SELECT id FROM t WHERE {where}") == [(n,) for n in found], where
    acid.sql("UPDATE t SET s = named_struct('a', s.a + 1, 'b', s.b, 'c', 0.5D) WHERE s.a IN (2, 5000000000)")
    acid.sql(
        "MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 3 UNION ALL SELECT 4) n ON t.id = n.id"
        " WHEN MATCHED AND t.u.a = 'three' THEN DELETE WHEN MATCHED THEN UPDATE SET id = 10"
        f" WHEN NOT MATCHED THEN INSERT VALUES (n.id, {value}, NULL, 7)"
    )
    assert rows(acid, "SELECT id, s.a, s.b, s.c, u.a, p FROM t") == [
        (10, 1, "x", None, "1", 1),
        (2, 3, "x", 0.5, "2", 2),
        (4, 5000000000, "y", 1.5, None, 7),
    ]
    acid.sql("DELETE FROM t WHERE s.c IS NULL")
    assert rows(acid, "SELECT id FROM t") == [(2,), (4,)]
    check_table(warehouse / "t")


# --- partitions ------------------------------------------------------------------------------------------------------


def test_a_partition_has_the_columns_of_its_table(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO part VALUES (1, 'a', 1)")
    acid.sql("ALTER TABLE part CHANGE id id bigint CASCADE")
    acid.sql("ALTER TABLE part PARTITION (p = 1) CHANGE COLUMN id id bigint")
    acid.sql("ALTER TABLE part PARTITION (p = 1) REPLACE COLUMNS (id bigint, v string)")
    table = acid.metastore.get_table("default", "part")
    for text, code, place in [
        ("PARTITION (p = 1) ADD COLUMNS (x int)", None, "1:18"),
        ("PARTITION (p = 1) CHANGE COLUMN v w string", None, "1:18"),
        ("PARTITION (p = 1) ADD COLUMNS (v string)", 10036, "1:49"),
        ("PARTITION (p = 1) ADD COLUMNS (x int) CASCADE", 10300, "1:56"),
        ("PARTITION (p = 1) CHANGE id id string CASCADE", 10300, "1:56"),
        ("PARTITION (p = 7) ADD COLUMNS (x int)", 10006, "1:18"),
        ("PARTITION (q = 1) ADD COLUMNS (x int)", 40000, "1:18"),
    ]:
        with pytest.raises(AcidError) as caught:
            acid.sql(f"ALTER TABLE part {text}")
        assert (caught.value.code, f"{caught.value.line}:{caught.value.column}") == (code, place), str(caught.value)
    assert acid.metastore.get_table("default", "part") == table


def test_nothing_cascades_from_a_table_without_partitions(emp: AcidSession) -> None:
    for text in ("ADD COLUMNS (x int)", "CHANGE id id bigint", "REPLACE COLUMNS (id int, name string, salary int)"):
        with pytest.raises(AnalysisError, match="non-partitioned table does not support cascade") as caught:
            emp.sql(f"ALTER TABLE emp {text} CASCADE")
        assert caught.value.code == 10410
    emp.sql("ALTER TABLE emp ADD COLUMNS (x int) RESTRICT")


# --- NOT NULL, DEFAULT, COMMENT --------------------------------------------------------------------------------------


def test_not_null_is_set_where_there_are_no_nulls(emp: AcidSession) -> None:
    emp.sql("ALTER TABLE emp ALTER COLUMN id SET NOT NULL")
    with pytest.raises((AcidError, PySparkException)):
        emp.sql("INSERT INTO emp VALUES (NULL, 'x', 1)").collect()
    emp.sql("ALTER TABLE emp ALTER id DROP NOT NULL")
    emp.sql("INSERT INTO emp VALUES (NULL, 'x', 1)")
    assert rows(emp, "SELECT count(*) FROM emp") == [(4,)]
    with pytest.raises(AnalysisError, match="some rows have NULL in it") as caught:
        emp.sql("ALTER TABLE emp ALTER COLUMN name SET NOT NULL")
    assert caught.value.column == 30
    assert emp.sql("SHOW LOCKS").collect() == []
    emp.sql("DELETE FROM emp WHERE name IS NULL")
    emp.sql("ALTER TABLE emp CHANGE COLUMN name name string NOT NULL")
    assert emp.metastore.get_table("default", "emp").columns[1].not_null


def test_a_default_is_set_and_dropped(emp: AcidSession) -> None:
    emp.sql("ALTER TABLE emp ALTER COLUMN salary SET DEFAULT 40 + 2")
    emp.sql("INSERT INTO emp (id) VALUES (4)")
    emp.sql("UPDATE emp SET salary = DEFAULT WHERE id = 3")
    emp.sql("ALTER TABLE emp ALTER COLUMN salary DROP DEFAULT")
    emp.sql("INSERT INTO emp (id) VALUES (5)")
    assert rows(emp, "SELECT id, salary FROM emp WHERE id > 2") == [(3, 42), (4, 42), (5, None)]


def test_columns_of_a_partitioned_table_change_in_all_partitions(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE part (id int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO part VALUES (1, 'a', 1), (2, 'b', 2)")
    acid.sql("ALTER TABLE part CHANGE v w string")
    acid.sql("ALTER TABLE part CHANGE id id bigint CASCADE")
    acid.sql("UPDATE part SET w = 'B' WHERE p = 2")
    acid.sql("INSERT INTO part VALUES (3, 'c', 1)")
    assert rows(acid, "SELECT id, w, p FROM part") == [(1, "a", 1), (2, "B", 2), (3, "c", 1)]
    check_table(warehouse / "part")


# --- refused ---------------------------------------------------------------------------------------------------------

REFUSED = [
    ("CHANGE nope n int", 10002, "1:25", "Invalid column reference nope"),
    ("RENAME COLUMN nope TO n", 10002, "1:32", "nope"),
    ("CHANGE p q int", 10002, "1:25", "Invalid column reference p"),
    ("CHANGE id v int", 10036, "1:28", "Duplicate column name: v"),
    ("CHANGE id p int", 40000, "1:28", "Partition column name p conflicts"),
    ("CHANGE id row__id int", 40000, "1:28", "reserved"),
    ("CHANGE id __acid_at_1 int", 40000, "1:28", "reserved"),
    ("CHANGE id id int FIRST", 10311, "1:25", "Reordering columns is not supported for table default.part"),
    ("CHANGE id id int AFTER v", 10311, "1:41", "Reordering"),
    ("ALTER COLUMN v FIRST", 10311, "1:31", "Reordering"),
    ("CHANGE v v int", 40013, "1:29", "types incompatible"),
    ("CHANGE id id smallint", 40013, "1:31", "types incompatible"),
    ("CHANGE id id array<int>", 40013, "1:31", "types incompatible"),
    ("CHANGE id id boolean", 40013, "1:31", "types incompatible"),
    ("CHANGE s s struct<a:date>", 10312, "1:29", "from type struct<a:int> to struct<a:date> is not supported"),
    ("CHANGE s s struct<b:int,a:varchar(3)>", 10312, "1:29", "for column s"),
    ("CHANGE s s struct<a:array<int>>", 10312, "1:29", "for column s"),
    ("CHANGE s s map<string,int>", 40013, "1:29", "types incompatible"),
    ("CHANGE s s string", 40013, "1:29", "types incompatible"),
    ("REPLACE COLUMNS (id int, v string, d decimal(10,2), s struct<a:date>)", 10314, "1:72", "Replacing columns with"),
    ("CHANGE id id zint", None, "1:31", "zint"),
    ("REPLACE COLUMNS (id int)", 10313, "1:13", "cannot drop columns for table default.part"),
    ("REPLACE COLUMNS (id int, v int, d decimal(10,2), s struct<a:int>)", 40013, "1:45", "incompatible"),
    ("REPLACE COLUMNS (id int, v string, d decimal(10,2), id int)", 10036, "1:70", "Duplicate"),
    ("REPLACE COLUMNS (id int, v string, d decimal(10,2), P int)", 40000, "1:70", "conflicts"),
    ("DROP COLUMN v", 10313, "1:30", "cannot drop columns"),
    ("DROP COLUMNS (id, v)", 10313, "1:32", "cannot drop columns"),
    ("DROP COLUMN nope", 10002, "1:30", "Invalid column reference nope"),
    ("ALTER COLUMN id SET DEFAULT nope", None, None, "nope"),
    ("ALTER COLUMN id SET DEFAULT 'abc'", None, None, "abc"),
]


@pytest.mark.parametrize(("text", "code", "place", "piece"), REFUSED, ids=[r[0][:60] for r in REFUSED])
def test_a_change_that_would_misread_files_is_refused_and_leaves_nothing(
    acid: AcidSession, warehouse: Path, text: str, code: int | None, place: str | None, piece: str
) -> None:
    acid.sql(
        "CREATE TRANSACTIONAL TABLE part (id int, v string, d decimal(10,2), s struct<a:int>) PARTITIONED BY (p int)"
    )
    acid.sql("INSERT INTO part VALUES (1, 'a', 1.5, named_struct('a', 1), 1)")
    table, files = acid.metastore.get_table("default", "part"), tree(warehouse / "part")
    with pytest.raises((AcidError, PySparkException)) as caught:
        acid.sql(f"ALTER TABLE part {text}")
    check_refusal(caught.value, code, place, piece)
    assert acid.metastore.get_table("default", "part") == table
    assert tree(warehouse / "part") == files
    nothing_is_open(acid)
    [valid] = acid.metastore.get_valid_write_ids(["default.part"], acid.metastore.get_valid_txns())
    assert valid.high_watermark == 1


def test_a_bucket_column_keeps_name_and_type(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE b (k int, v int) CLUSTERED BY (k) INTO 2 BUCKETS")
    for text in ("CHANGE k k bigint", "RENAME COLUMN k TO j", "REPLACE COLUMNS (k bigint, v int)"):
        with pytest.raises(AcidError, match="is bucketed by k"):
            acid.sql(f"ALTER TABLE b {text}")
    acid.sql("ALTER TABLE b CHANGE k k int COMMENT 'the key'")
    acid.sql("ALTER TABLE b REPLACE COLUMNS (k int, w bigint)")
    assert columns(acid, "b") == [("k", "int", None), ("w", "bigint", None)]


def test_columns_that_are_not_there_may_be_dropped_if_they_exist(emp: AcidSession) -> None:
    assert emp.sql("ALTER TABLE emp DROP COLUMNS IF EXISTS (x, y)").columns == []
