"""SHOW … and DESCRIBE …: names of columns and layout as Hive has them; SHOW CREATE TABLE makes the same table again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from acidsql.errors import AnalysisError, ColumnNotFound, DatabaseNotFound, PartitionNotFound
from acidsql.session import AcidSession
from tests.spark.test_golden_tables import GOLDEN

Answer = tuple[list[str], list[tuple[Any, ...]]]


def answer(acid: AcidSession, text: str) -> Answer:
    frame = acid.sql(text)
    return frame.columns, [tuple(r) for r in frame.collect()]


def rows(acid: AcidSession, text: str) -> list[tuple[Any, ...]]:
    return answer(acid, text)[1]


@pytest.fixture
def emp(acid: AcidSession) -> str:
    acid.sql(
        """CREATE TABLE emp (id int NOT NULL COMMENT 'the key', name string DEFAULT 'x', salary decimal(10,2))
           COMMENT 'people' PARTITIONED BY (p int COMMENT 'part', q string) STORED AS ORC
           TBLPROPERTIES ('transactional'='true', 'owner.team'='x')"""
    )
    acid.sql("INSERT INTO emp PARTITION (p, q) VALUES (1, 'Ann', 1.5, 1, 'a/b'), (2, 'Bob', 2, 2, NULL)")
    return "emp"


class TestShowColumns:
    def test_partition_keys_come_last(self, acid: AcidSession, emp: str) -> None:
        expected = (["field"], [("id",), ("name",), ("salary",), ("p",), ("q",)])
        assert answer(acid, "SHOW COLUMNS IN emp") == expected
        assert answer(acid, "SHOW COLUMNS FROM emp FROM default") == expected

    def test_of_a_table_of_sparks_is_sparks(self, acid: AcidSession) -> None:
        acid.spark.sql("CREATE OR REPLACE TEMP VIEW mine AS SELECT 1 AS a")
        try:
            assert answer(acid, "SHOW COLUMNS IN mine") == (["col_name"], [("a",)])
        finally:
            acid.spark.catalog.dropTempView("mine")


class TestShowProperties:
    def test_all_of_them_by_name(self, acid: AcidSession, emp: str) -> None:
        columns, found = answer(acid, "SHOW TBLPROPERTIES emp")
        assert columns == ["prpt_name", "prpt_value"]
        assert ("owner.team", "x") in found
        assert ("comment", "people") in found
        assert [r[0] for r in found] == sorted(r[0] for r in found)

    def test_one_of_them(self, acid: AcidSession, emp: str) -> None:
        assert rows(acid, "SHOW TBLPROPERTIES emp ('owner.team')") == [("owner.team", "x")]

    def test_one_that_is_not_there_is_told_in_words(self, acid: AcidSession, emp: str) -> None:
        message = "Table default.emp does not have property: nope"
        assert rows(acid, "SHOW TBLPROPERTIES emp ('nope')") == [(message, None)]


class TestShowTablesAndViews:
    def test_views_are_among_the_tables(self, acid: AcidSession, emp: str) -> None:
        acid.sql("CREATE VIEW older AS SELECT id FROM emp WHERE p = 1")
        assert {("default", "emp", False), ("default", "older", False)} <= set(rows(acid, "SHOW TABLES"))
        assert answer(acid, "SHOW VIEWS LIKE 'old*'") == (
            ["namespace", "viewName", "isTemporary"],
            [("default", "older", False)],
        )
        assert rows(acid, "SHOW VIEWS IN default LIKE 'emp'") == []

    def test_of_a_database_that_only_the_metastore_has(self, acid: AcidSession, emp: str) -> None:
        acid.sql("CREATE DATABASE hr")
        acid.sql("CREATE VIEW hr.v AS SELECT id FROM default.emp")
        assert rows(acid, "SHOW VIEWS IN hr") == [("hr", "v", False)]
        with pytest.raises(DatabaseNotFound):
            acid.sql("SHOW VIEWS IN nowhere")


class TestShowCreateTable:
    TABLES = (
        "CREATE TABLE t (id int) STORED AS ORC TBLPROPERTIES ('transactional'='true')",
        """CREATE TRANSACTIONAL TABLE t (`odd name` int NOT NULL COMMENT 'it''s \\\\ a "key"',
           d decimal(38,18) DEFAULT 1.5, s struct<a:int,B:array<map<string,date>>>, c char(3) DEFAULT 'x''y',
           v varchar(20), ts timestamp)
           COMMENT 'a `b` \\'c\\'' PARTITIONED BY (p date COMMENT 'day', q string)
           TBLPROPERTIES ('k.1'='v ''1''', 'orc.compress'='SNAPPY')""",
        """CREATE TABLE t (a int, b string, CHECK (a > 0), CHECK (b <> 'x')) CLUSTERED BY (b, a) INTO 3 BUCKETS
           STORED AS ORC TBLPROPERTIES ('transactional'='true', 'bucketing_version'='1')""",
        """CREATE TABLE t (a int CHECK (a % 2 = 0)) STORED AS ORC
           TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')""",
    )

    @pytest.mark.parametrize("text", TABLES)
    def test_makes_the_same_table_again(self, acid: AcidSession, text: str) -> None:
        acid.sql(text)
        before = acid.metastore.get_table("default", "t")
        columns, [(shown,)] = answer(acid, "SHOW CREATE TABLE t")
        assert columns == ["createtab_stmt"]
        acid.sql("DROP TABLE t")
        acid.sql(shown)
        after = acid.metastore.get_table("default", "t")
        ignored = {"transient_lastDdlTime"}

        def kept(found: Any) -> Any:
            return {k: v for k, v in found.parameters.items() if k not in ignored}

        assert kept(after) == kept(before)
        for name in ("columns", "partition_keys", "comment", "location", "bucket_columns", "num_buckets", "checks"):
            assert getattr(after, name) == getattr(before, name), name
        assert rows(acid, "SHOW CREATE TABLE t")[0][0].partition("transient")[0] == shown.partition("transient")[0]

    def test_shows_no_statistics(self, acid: AcidSession) -> None:
        acid.sql("CREATE TRANSACTIONAL TABLE t (a int)")
        acid.sql("INSERT INTO t VALUES (1)")
        acid.sql("ANALYZE TABLE t COMPUTE STATISTICS")
        assert ("", "numRows", "1") in rows(acid, "DESCRIBE FORMATTED t")
        [(shown,)] = rows(acid, "SHOW CREATE TABLE t")
        assert "numRows" not in shown
        assert "COLUMN_STATS" not in shown

    def test_makes_the_same_view_again_from_any_database(self, acid: AcidSession, emp: str) -> None:
        acid.sql("CREATE VIEW v (a COMMENT 'it''s', b) COMMENT 'some' AS SELECT id, name FROM emp WHERE p = 1")
        before = acid.metastore.get_table("default", "v")
        [(shown,)] = rows(acid, "SHOW CREATE TABLE v")
        acid.sql("DROP VIEW v")
        acid.sql("CREATE DATABASE hr")
        acid.sql("USE hr")
        acid.sql(shown)
        after = acid.metastore.get_table("default", "v")
        assert (after.columns, after.comment) == (before.columns, before.comment)
        assert rows(acid, "SELECT * FROM default.v") == [(1, "Ann")]


class TestDescribe:
    def test_lists_columns_then_partition_keys(self, acid: AcidSession, emp: str) -> None:
        assert answer(acid, "DESCRIBE emp") == (
            ["col_name", "data_type", "comment"],
            [
                ("id", "int", "the key"),
                ("name", "string", None),
                ("salary", "decimal(10,2)", None),
                ("p", "int", "part"),
                ("q", "string", None),
                ("", None, None),
                ("# Partition Information", None, None),
                ("# col_name", "data_type", "comment"),
                ("p", "int", "part"),
                ("q", "string", None),
            ],
        )

    def test_formatted_tells_all_constraints(self, acid: AcidSession, emp: str) -> None:
        found = rows(acid, "DESCRIBE FORMATTED emp")
        at = found.index(("# Constraints", None, None))
        id, name, *_ = acid.metastore.get_table("default", "emp").columns
        assert found[at + 1 :] == [
            ("", None, None),
            ("# Not Null Constraints", None, None),
            ("Table:", "default.emp", None),
            ("Constraint Name:", id.not_null_name, None),
            ("Column Name:", "id", None),
            ("", None, None),
            ("", None, None),
            ("# Default Constraints", None, None),
            ("Table:", "default.emp", None),
            ("Constraint Name:", name.default_name, None),
            ("Column Name:name", "Default Value:'x'", None),
            ("", None, None),
        ]
        assert rows(acid, "DESCRIBE EXTENDED emp") == found

    def test_a_partition(self, acid: AcidSession, emp: str, warehouse: Path) -> None:
        found = rows(acid, "DESCRIBE FORMATTED emp PARTITION (p = 1, q = 'a/b')")
        assert ("# Detailed Partition Information", None, None) in found
        assert ("Partition Value:", "[1, a/b]", None) in found
        assert ("Location:", f"{warehouse}/emp/p=1/q=a%2Fb", None) in found
        acid.sql("ANALYZE TABLE emp PARTITION (p = 1) COMPUTE STATISTICS")
        again = rows(acid, "DESCRIBE FORMATTED emp PARTITION (p = 1, q = 'a/b')")
        assert ("Partition Parameters:", None, None) in again
        assert ("", "numRows", "1") in again
        null = rows(acid, "DESCRIBE FORMATTED emp PARTITION (p = 2, q = NULL)")
        assert ("Partition Value:", "[2, __HIVE_DEFAULT_PARTITION__]", None) in null

    def test_a_partition_that_is_not_there(self, acid: AcidSession, emp: str) -> None:
        with pytest.raises(PartitionNotFound, match=r"\[Error 10006\].*\{p=3, q=x\}"):
            acid.sql("DESCRIBE emp PARTITION (p = 3, q = 'x')")
        with pytest.raises(AnalysisError, match="doesn't contain all"):
            acid.sql("DESCRIBE emp PARTITION (p = 1)")

    def test_a_column(self, acid: AcidSession, emp: str) -> None:
        assert answer(acid, "DESCRIBE emp ID") == (["col_name", "data_type", "comment"], [("id", "int", "the key")])
        columns, found = answer(acid, "DESCRIBE FORMATTED emp id")
        assert columns == ["column_property", "value"]
        assert [r[0] for r in found] == [
            "col_name",
            "data_type",
            "min",
            "max",
            "num_nulls",
            "distinct_count",
            "avg_col_len",
            "max_col_len",
            "num_trues",
            "num_falses",
            "bit_vector",
            "comment",
        ]
        assert dict(found)["comment"] == "the key"
        with pytest.raises(ColumnNotFound, match=r"\[Error 10002\]"):
            acid.sql("DESCRIBE emp nope")

    def test_a_view_with_its_query(self, acid: AcidSession, emp: str) -> None:
        acid.sql("CREATE VIEW v AS SELECT id FROM emp")
        found = rows(acid, "DESCRIBE FORMATTED v")
        assert ("Table Type:", "VIRTUAL_VIEW", None) in found
        assert ("Original Query:", "SELECT id FROM emp", None) in found
        assert not [r for r in found if r[0] == "Location:"]


class TestDescribeDatabase:
    def test_has_hives_columns(self, acid: AcidSession, warehouse: Path) -> None:
        acid.sql("CREATE DATABASE hr COMMENT 'people' WITH DBPROPERTIES ('a'='b')")
        columns, [row] = answer(acid, "DESCRIBE DATABASE hr")
        assert columns[:4] == ["db_name", "comment", "location", "managedLocation"]
        assert row[:3] == ("hr", "people", f"{warehouse}/hr.db")
        columns, [row] = answer(acid, "DESCRIBE SCHEMA EXTENDED hr")
        assert (columns[-1], row[-1]) == ("parameters", "{a=b}")

    def test_that_is_not_there(self, acid: AcidSession) -> None:
        with pytest.raises(DatabaseNotFound, match=r"\[Error 10072\]"):
            acid.sql("DESCRIBE DATABASE nowhere")


HIVES_OWN = {"LastAccessTime:", "CreateTime:", "Owner:", "Location:"}
PROPERTIES = {"COLUMN_STATS_ACCURATE", "numFiles", "numPartitions", "numRows", "rawDataSize", "totalSize"}


@pytest.mark.parametrize("table", ["pb", "emp", "dyn", "evo"])
def test_describe_formatted_has_the_lines_of_hive_in_hives_order(acid: AcidSession, tmp_path: Path, table: str) -> None:
    """Given a table's DDL as Hive prints it; when it is made here; then DESCRIBE FORMATTED says what Hive says."""
    step = sorted(p.name for p in (GOLDEN / table).iterdir() if p.is_dir())[0]
    meta = json.loads((GOLDEN / table / step / "meta.json").read_text())
    acid.sql(re.sub(r"LOCATION\s+'[^']*'", f"LOCATION '{tmp_path / 'there'}'", meta["ddl"]))

    def compared(lines: list[Any]) -> list[Any]:
        stripped = [tuple(v.strip() if isinstance(v, str) else v for v in line) for line in lines]
        return [
            (a, None if a in HIVES_OWN or a == "Database:" else b or None, None if b and "DdlTime" in b else c or None)
            for a, b, c in stripped
            if b not in PROPERTIES
        ]

    ours = [list(r) for r in acid.sql(f"DESCRIBE FORMATTED {meta['table']}").collect()]
    assert compared(ours) == compared(meta["describe_formatted"])
