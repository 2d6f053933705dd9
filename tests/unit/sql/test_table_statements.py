"""What the parser puts into the dataclasses of INSERT into several tables, and of statements about whole tables."""

from __future__ import annotations

import pytest

from acidsql.sql.statements import (
    Analyze,
    CreateTable,
    CreateView,
    Describe,
    DescribeDatabase,
    DropView,
    LoadData,
    MultiInsert,
    PartitionSpec,
    Query,
    ShowColumns,
    ShowProperties,
    ShowViews,
    TableName,
    Truncate,
)
from tests.unit.sql.parsed import parse, text_of


def dotted(name: TableName) -> str:
    return ".".join(p for p in (name.catalog, name.database, name.table) if p is not None)


# --- several INSERTs from one FROM -----------------------------------------------------------------------------------


def test_several_inserts_share_the_source_and_have_a_select_each() -> None:
    text = (
        "FROM (SELECT * FROM emp INNER JOIN insert) e LATERAL VIEW explode(xs) v AS x\n"
        "INSERT INTO TABLE a PARTITION (p = 1, q) SELECT e.id, ')', e.insert WHERE e.id > 1 -- one\n"
        "INSERT OVERWRITE b (x, y) SELECT e.id, count(*) GROUP BY e.id ORDER BY 1 LIMIT 2 /* two */"
        " INSERT INTO c BY NAME SELECT DISTINCT 1 AS id"
    )
    found = parse(MultiInsert, text)
    assert found.source.text == "FROM (SELECT * FROM emp INNER JOIN insert) e LATERAL VIEW explode(xs) v AS x"
    assert found.with_clause is None
    assert [(dotted(i.table), i.overwrite, i.by_name, i.query.text) for i in found.inserts] == [
        ("a", False, False, "SELECT e.id, ')', e.insert WHERE e.id > 1"),
        ("b", True, False, "SELECT e.id, count(*) GROUP BY e.id ORDER BY 1 LIMIT 2"),
        ("c", False, True, "SELECT DISTINCT 1 AS id"),
    ]
    assert found.inserts[1].span.text.startswith("INSERT OVERWRITE b (x, y) SELECT")
    assert [c.text for c in found.inserts[1].columns or ()] == ["x", "y"]
    assert found.inserts[0].partition is not None
    assert all(i.rows is None and i.with_clause is None for i in found.inserts)


def test_one_insert_behind_a_from_is_one_of_several() -> None:
    [leg] = parse(MultiInsert, "FROM s INSERT INTO t SELECT *").inserts
    assert leg.query.text == "SELECT *"


def test_a_with_clause_may_stand_before_several_inserts() -> None:
    found = parse(MultiInsert, "WITH c AS (SELECT 1 a) FROM c INSERT INTO t SELECT a INSERT INTO u SELECT a")
    assert (text_of(found.with_clause), found.source.text, len(found.inserts)) == (
        "WITH c AS (SELECT 1 a)",
        "FROM c",
        2,
    )


@pytest.mark.parametrize("text", ["FROM s SELECT insert", "FROM insert SELECT 1", "FROM (SELECT 1 AS insert) SELECT *"])
def test_a_query_may_have_a_column_or_table_called_insert(text: str) -> None:
    assert parse(Query, text).span.text == text


# --- rows of a whole table -------------------------------------------------------------------------------------------


def keys_of(spec: PartitionSpec | None) -> dict[str, str | None] | None:
    return None if spec is None else {name.text: value.text if value else None for name, value in spec.keys}


@pytest.mark.parametrize(
    ("text", "table", "partition"),
    [
        ("TRUNCATE TABLE hr.emp", "hr.emp", None),
        ("truncate emp partition (p = 1, q)", "emp", {"p": "1", "q": None}),
        ("TRUNCATE TABLE table", "table", None),
    ],
)
def test_truncate(text: str, table: str, partition: dict[str, str | None] | None) -> None:
    found = parse(Truncate, text)
    assert (dotted(found.table), keys_of(found.partition)) == (table, partition)


def test_load_data() -> None:
    found = parse(LoadData, "LOAD DATA LOCAL INPATH '/in' OVERWRITE INTO TABLE hr.emp PARTITION (p = 1)")
    assert (found.path.value, found.path.span.text, dotted(found.table)) == ("/in", "'/in'", "hr.emp")
    assert (found.local, found.overwrite, keys_of(found.partition)) == (True, True, {"p": "1"})
    plain = parse(LoadData, "LOAD DATA INPATH 'hdfs://x/in' INTO TABLE emp")
    assert (plain.local, plain.overwrite, plain.partition) == (False, False, None)


@pytest.mark.parametrize(
    ("end", "noscan", "columns"),
    [
        ("", False, None),
        (" NOSCAN", True, None),
        (" FOR COLUMNS a, `b c`", False, ["a", "b c"]),
        (" FOR COLUMNS", False, []),
        (" FOR ALL COLUMNS", False, []),
    ],
)
def test_analyze(end: str, noscan: bool, columns: list[str] | None) -> None:
    found = parse(Analyze, f"ANALYZE TABLE hr.emp PARTITION (p = 1, q) COMPUTE STATISTICS{end}")
    assert (dotted(found.table), keys_of(found.partition), found.noscan) == ("hr.emp", {"p": "1", "q": None}, noscan)
    assert (None if found.for_columns is None else [c.text for c in found.for_columns]) == columns


# --- constraints, LIKE, CREATE TABLE AS with buckets -----------------------------------------------------------------


def test_checks_of_columns_and_of_the_table() -> None:
    found = parse(
        CreateTable,
        "CREATE TRANSACTIONAL TABLE t (a int CHECK ( a > 0 AND f(a) ) ENABLE NOVALIDATE RELY COMMENT 'x' NOT NULL,"
        " b int CONSTRAINT n NOT NULL ENABLE CONSTRAINT d DEFAULT 1 + 2 CONSTRAINT c CHECK (b < 9),"
        " CONSTRAINT `s t` CHECK (a + b > 1) ENFORCED, CHECK (a IN (1, 2)), check int, constraint string)",
    )
    assert [
        (c.name.text, c.check.text if c.check else None, c.not_null, c.default.text if c.default else None)
        for c in found.columns
    ] == [
        ("a", "a > 0 AND f(a)", True, None),
        ("b", "b < 9", True, "1 + 2"),
        ("check", None, False, None),
        ("constraint", None, False, None),
    ]
    assert [c.text for c in found.checks] == ["a + b > 1", "a IN (1, 2)"]
    assert found.columns[0].comment == "x"


def test_a_table_like_another() -> None:
    found = parse(
        CreateTable, "CREATE TRANSACTIONAL TABLE IF NOT EXISTS a LIKE hr.b LOCATION '/x' TBLPROPERTIES ('k'='v')"
    )
    assert found.like is not None
    assert (dotted(found.like), found.location, found.properties) == ("hr.b", "/x", {"k": "v"})
    assert (found.transactional, found.if_not_exists, found.columns) == (True, True, ())
    assert parse(CreateTable, "CREATE TABLE a (b int)").like is None


def test_create_table_as_may_have_buckets() -> None:
    found = parse(
        CreateTable, "CREATE TABLE t CLUSTERED BY (a, b) SORTED BY (a) INTO 4 BUCKETS STORED AS ORC AS SELECT 1 AS a"
    )
    assert [c.text for c in found.clustered_by] == ["a", "b"]
    assert (found.num_buckets, text_of(found.query)) == (4, "SELECT 1 AS a")


# --- views -----------------------------------------------------------------------------------------------------------


def test_a_view_of_the_metastore() -> None:
    head = "CREATE OR REPLACE VIEW hr.v (a COMMENT 'x', `b c`) TBLPROPERTIES ('k' = 'v') COMMENT 'z'"
    found = parse(CreateView, f"{head} AS WITH c AS (TABLE d) TABLE c")
    assert (dotted(found.view), found.or_replace, found.if_not_exists) == ("hr.v", True, False)
    assert [(name.text, comment) for name, comment in found.columns or ()] == [("a", "x"), ("b c", None)]
    assert (found.comment, found.properties, found.query.text) == ("z", {"k": "v"}, "WITH c AS (TABLE d) TABLE c")
    plain = parse(CreateView, "CREATE VIEW IF NOT EXISTS v AS SELECT 1")
    assert (plain.if_not_exists, plain.columns, plain.comment) == (True, None, None)


def test_a_view_is_dropped() -> None:
    found = parse(DropView, "DROP VIEW IF EXISTS hr.v")
    assert (dotted(found.view), found.if_exists) == ("hr.v", True)
    assert not parse(DropView, "DROP VIEW v").if_exists


# --- SHOW and DESCRIBE of one table ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "table", "like"),
    [
        ("SHOW COLUMNS IN emp", "emp", None),
        ("SHOW COLUMNS FROM hr.emp", "hr.emp", None),
        ("SHOW COLUMNS IN emp FROM hr", "hr.emp", None),
        ("SHOW COLUMNS IN HR.emp IN hr", "hr.emp", None),
        ("SHOW COLUMNS IN emp LIKE 'a*'", "emp", "a*"),
        ("SHOW COLUMNS IN emp 'a*'", "emp", "a*"),
    ],
)
def test_show_columns(text: str, table: str, like: str | None) -> None:
    found = parse(ShowColumns, text)
    assert (dotted(found.table), found.like) == (table, like)


@pytest.mark.parametrize(("end", "key"), [("", None), (" ('a.b')", "a.b"), (" (a.b)", "a.b")])
def test_show_table_properties(end: str, key: str | None) -> None:
    found = parse(ShowProperties, f"SHOW TBLPROPERTIES hr.emp{end}")
    assert (dotted(found.table), found.key.value if found.key else None) == ("hr.emp", key)


def test_show_views() -> None:
    found = parse(ShowViews, "SHOW VIEWS FROM hr LIKE 'v*'")
    assert found.database is not None
    assert (found.database.text, found.like) == ("hr", "v*")
    assert parse(ShowViews, "SHOW VIEWS").database is None


@pytest.mark.parametrize(
    ("text", "partition", "column"),
    [
        ("DESCRIBE emp id", None, "id"),
        ("DESC FORMATTED hr.emp PARTITION (p = 1, q = 'a')", {"p": "1", "q": "'a'"}, None),
        ("DESCRIBE EXTENDED emp PARTITION (p = 1) `a b`", {"p": "1"}, "a b"),
        ("DESCRIBE TABLE emp as", None, "as"),
    ],
)
def test_describe_of_a_partition_or_a_column(
    text: str, partition: dict[str, str | None] | None, column: str | None
) -> None:
    found = parse(Describe, text)
    assert (keys_of(found.partition), found.column.text if found.column else None) == (partition, column)


@pytest.mark.parametrize(
    ("text", "name", "extended"),
    [
        ("DESCRIBE DATABASE hr", "hr", False),
        ("DESC SCHEMA EXTENDED spark_catalog.`my db`", "my db", True),
        ("DESCRIBE NAMESPACE extended", "extended", False),
    ],
)
def test_describe_database(text: str, name: str, extended: bool) -> None:
    found = parse(DescribeDatabase, text)
    assert (found.name.text, found.extended) == (name, extended)
