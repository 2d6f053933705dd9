"""What the parser puts into the dataclasses; which texts parse at all is said by the corpus in ``grammar/``."""

from __future__ import annotations

import pytest

from acidsql.errors import ParseError, UnsupportedError
from acidsql.sql.parser import parse_statement, parse_table_name
from acidsql.sql.statements import (
    CreateDatabase,
    CreateTable,
    CreateTempView,
    Delete,
    Describe,
    DropDatabase,
    Explain,
    Insert,
    Passthrough,
    Query,
    Set,
    ShowLocks,
    ShowTables,
    TableName,
    Update,
    Use,
)
from tests.unit.sql.parsed import parse, text_of


def dotted(name: TableName) -> str:
    return ".".join(p for p in (name.catalog, name.database, name.table) if p is not None)


# --- the whole -------------------------------------------------------------------------------------------------------


def test_the_span_of_a_statement_has_neither_semicolon_nor_comments_around_it() -> None:
    statement = parse_statement("-- c\n  SELECT 1 + /* in */ 1 ; -- d\n")
    assert statement.span.text == "SELECT 1 + /* in */ 1"


@pytest.mark.parametrize("text", ["SELECT 1;", "SELECT 1;;", "SELECT 1 ; /* c */ ;"])
def test_semicolons_at_the_end_are_allowed(text: str) -> None:
    assert parse(Query, text).span.text == "SELECT 1"


def test_keywords_are_read_in_any_letter_case() -> None:
    assert parse(Update, "uPdAtE t sEt a = dEfAuLt wHeRe b").where is not None


def test_offsets_are_right_behind_letters_outside_of_ascii() -> None:
    found = parse(Update, "UPDATE größe SET `é😀` = '😀' WHERE 名 = 1")
    assert found.table.span.text == "größe"
    assert (found.assignments[0].column.text, text_of(found.assignments[0].value)) == ("é😀", "'😀'")
    assert text_of(found.where) == "名 = 1"


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "catalog", "database", "table"),
    [
        ("emp", None, None, "emp"),
        ("hr.emp", None, "hr", "emp"),
        ("spark_catalog . hr . `the ``emp`", "spark_catalog", "hr", "the `emp"),
        ("`a.b`", None, None, "a.b"),
        ("table.select", None, "table", "select"),
    ],
)
def test_a_table_name_has_up_to_three_parts(text: str, catalog: str | None, database: str | None, table: str) -> None:
    name = parse_table_name(text)
    assert (name.catalog, name.database, name.table, name.span.text) == (catalog, database, table, text)


@pytest.mark.parametrize("text", ["", "a b", "a.", ".a", "a.b.", "'a'", "1", "a;", "``"])
def test_what_is_no_table_name_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_table_name(text)


# --- INSERT ----------------------------------------------------------------------------------------------------------


def test_insert_takes_rows_apart_and_keeps_their_text() -> None:
    found = parse(Insert, "INSERT INTO t VALUES (1L, nvl(a, 'b,c'), DEFAULT), ((SELECT 1), -2, r'\\d')")
    assert found.rows is not None
    assert [[text_of(v) for v in row] for row in found.rows] == [
        ["1L", "nvl(a, 'b,c')", "DEFAULT"],
        ["(SELECT 1)", "-2", "r'\\d'"],
    ]
    assert found.query.text.startswith("VALUES (1L")
    assert found.query.text.endswith("r'\\d')")


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ("VALUES 1, 2", [["1"], ["2"]]),
        ("VALUES (1), DEFAULT", [["1"], ["DEFAULT"]]),
        ("VALUES (map(1, 2), array(3))", [["map(1, 2)", "array(3)"]]),
        ("VALUES ((1, 2))", [["(1, 2)"]]),
        ("VALUES (SELECT max(a) FROM b)", [["(SELECT max(a) FROM b)"]]),
        ("VALUES (SELECT (a) FROM b), (1)", [["(SELECT (a) FROM b)"], ["1"]]),
        ("VALUES (CASE WHEN a THEN 'x' END, INTERVAL '1' DAY)", [["CASE WHEN a THEN 'x' END", "INTERVAL '1' DAY"]]),
        ("VALUES (default, defaults, `default`)", [["DEFAULT", "defaults", "`default`"]]),
    ],
)
def test_a_row_has_one_value_for_each_column(values: str, rows: list[list[str]]) -> None:
    found = parse(Insert, f"INSERT INTO t {values}")
    assert found.rows is not None
    assert [[text_of(v) for v in row] for row in found.rows] == rows


@pytest.mark.parametrize(
    "query",
    [
        "VALUES (1) UNION ALL SELECT 2",
        "VALUES (1, 2) AS v (a, b)",
        "VALUES (1) ORDER BY 1",
        "VALUES struct(1, 2)",
        "VALUES (1) + 1",
        "(VALUES (1))",
        "SELECT 1",
        "TABLE u",
        "FROM u SELECT *",
        "WITH c AS (SELECT 1) SELECT * FROM c",
    ],
)
def test_what_is_more_than_a_plain_values_list_is_a_query(query: str) -> None:
    found = parse(Insert, f"INSERT INTO t (a) {query};")
    assert found.rows is None
    assert found.query.text == query


def test_insert_knows_partition_columns_and_mode() -> None:
    found = parse(Insert, "INSERT OVERWRITE TABLE hr.t PARTITION (p = 1 + 1, `q`) IF NOT EXISTS (a, `b c`) SELECT 1")
    assert dotted(found.table) == "hr.t"
    assert (found.overwrite, found.if_not_exists, found.by_name) == (True, True, False)
    assert found.partition is not None
    keys = [(name.text, value.text if value else None) for name, value in found.partition.keys]
    assert keys == [("p", "1 + 1"), ("q", None)]
    assert found.columns is not None
    assert [c.text for c in found.columns] == ["a", "b c"]


def test_insert_by_name() -> None:
    assert parse(Insert, "INSERT INTO t BY NAME SELECT 1 AS a").by_name


def test_a_with_clause_before_insert_is_kept_apart() -> None:
    found = parse(Insert, "WITH c AS (SELECT 1), d AS (SELECT 2) INSERT INTO t SELECT * FROM c")
    assert text_of(found.with_clause) == "WITH c AS (SELECT 1), d AS (SELECT 2)"
    assert found.query.text == "SELECT * FROM c"
    assert found.span.text.startswith("WITH")


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("INSERT INTO TABLE t VALUES (1)", "t"),
        ("INSERT INTO table VALUES (1)", "table"),
        ("INSERT INTO table.t VALUES (1)", "table.t"),
        ("INSERT INTO TABLE values VALUES (1)", "values"),
        ("INSERT INTO table SELECT 1", "table"),
        ("INSERT INTO table (a) SELECT 1", "table"),
        ("INSERT OVERWRITE directory SELECT 1", "directory"),
    ],
)
def test_table_is_a_keyword_only_before_a_name(text: str, table: str) -> None:
    assert dotted(parse(Insert, text).table) == table


# --- UPDATE and DELETE -----------------------------------------------------------------------------------------------


def assignments(text: str) -> dict[str, str]:
    return {a.column.text: text_of(a.value) for a in parse(Update, text).assignments}


@pytest.mark.parametrize(
    "value",
    [
        "1",
        "-a",
        "a:b::int",
        "a::array<int>",
        "a::map<string, array<decimal(10, 2)>>",
        "a > where",
        "a * where",
        "CASE WHEN x AND y THEN 1 ELSE 2 END",
        "CASE v WHEN 1 THEN 'a' END",
        "(SELECT max(a), b FROM t WHERE c GROUP BY b)",
        "f(a, b, (c, d))",
        "filter(xs, (x, i) -> x > i)",
        "a IS DISTINCT FROM b",
        "a NOT BETWEEN 1 AND 2",
        "EXTRACT(day FROM ts)",
        "trim(BOTH ' ' FROM s)",
        "substring(s FROM 1 FOR 2)",
        "array(1, 2)[0]",
        "named_struct('a', 1, 'b', 2).a",
        "sum(a) FILTER (WHERE b) OVER (PARTITION BY c ORDER BY d ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "timestamp '2020-01-01'",
        "INTERVAL '1' DAY",
        "'WHERE , x' -- WHERE ,\n || 'y'",
        ":named",
        "?",
        "where + 1",
        "t.where",
        "`where`",
        "date",
    ],
)
def test_an_expression_ends_where_the_grammar_says(value: str) -> None:
    assert assignments(f"UPDATE t SET a = {value}, b = {value} WHERE c = 1") == {"a": value, "b": value}
    found = parse(Update, f"UPDATE t SET a = {value} WHERE {value}")
    assert text_of(found.where) == value


def test_any_word_may_be_a_column() -> None:
    text = "UPDATE t SET date = 1, value = 2, table = 3, set = 4, where = 5, from = 6, `x y` = 7"
    assert list(assignments(text)) == ["date", "value", "table", "set", "where", "from", "x y"]


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("UPDATE t SET a = 1", None),
        ("UPDATE t AS e SET a = 1", "e"),
        ("UPDATE t e SET a = 1", "e"),
        ("UPDATE t `e f` SET a = 1", "e f"),
        ("UPDATE t AS set SET a = 1", "set"),
        ("UPDATE t set SET a = 1", "set"),
        ("UPDATE t SET set = 1", None),
    ],
)
def test_an_alias_may_stand_with_and_without_as(text: str, alias: str | None) -> None:
    found = parse(Update, text)
    assert (found.alias.text if found.alias else None) == alias


@pytest.mark.parametrize("qualifier", ["", "emp.", "EMP.", "hr.emp.", "spark_catalog.hr.emp."])
def test_a_column_of_set_may_be_qualified_by_its_table(qualifier: str) -> None:
    assert assignments(f"UPDATE hr.emp SET {qualifier}a = 1") == {"a": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE emp SET other.a = 1",
        "UPDATE emp e SET emp.a = 1",
        "UPDATE hr.emp SET sales.emp.a = 1",
        "UPDATE emp SET a.field = 1",
    ],
)
def test_a_column_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="not a column of the updated table"):
        parse_statement(text)


def test_delete_without_where_has_none() -> None:
    assert parse(Delete, "DELETE FROM t AS e").where is None


@pytest.mark.parametrize(
    ("text", "alias", "where"),
    [
        ("DELETE FROM t WHERE where = 1", None, "where = 1"),
        ("DELETE FROM t where WHERE a", "where", "a"),
        ("DELETE FROM t e WHERE e.a IN (SELECT b FROM c WHERE d)", "e", "e.a IN (SELECT b FROM c WHERE d)"),
    ],
)
def test_delete_with_where(text: str, alias: str | None, where: str) -> None:
    found = parse(Delete, text)
    assert (found.alias.text if found.alias else None, text_of(found.where)) == (alias, where)


# --- CREATE ----------------------------------------------------------------------------------------------------------


def test_a_column_has_a_type_and_its_options_in_any_order() -> None:
    found = parse(
        CreateTable,
        "CREATE TABLE t (a int COMMENT 'x' NOT NULL DEFAULT 1 + 2, b string DEFAULT 'COMMENT' COMMENT 'it''s',"
        " c boolean DEFAULT d IS NOT NULL NOT NULL, e array < struct < f : int > >, g decimal(10, 2) DEFAULT f(1, 2))",
    )
    assert [
        (c.name.text, c.type.text, c.comment, c.not_null, c.default.text if c.default else None) for c in found.columns
    ] == [
        ("a", "int", "x", True, "1 + 2"),
        ("b", "string", "it's", False, "'COMMENT'"),
        ("c", "boolean", None, True, "d IS NOT NULL"),
        ("e", "array < struct < f : int > >", None, False, None),
        ("g", "decimal(10, 2)", None, False, "f(1, 2)"),
    ]


@pytest.mark.parametrize(
    "type",
    [
        "int",
        "varchar(10)",
        "decimal(38, 18)",
        "map<string,array<struct<a:int,b:map<int,int>>>>",
        "struct<>",
        "timestamp with local time zone",
        "timestamp_ntz",
        "double precision",
        "interval day to second",
        "uniontype<int,string>",
        "string COLLATE UTF8_LCASE",
    ],
)
def test_a_type_is_kept_as_text(type: str) -> None:
    [column, _] = parse(CreateTable, f"CREATE TABLE t (a {type} COMMENT 'c', b int)").columns
    assert (column.type.text, column.comment) == (type, "c")


def test_the_clauses_of_create_table_come_in_any_order() -> None:
    clauses = [
        "COMMENT 'c'",
        "PARTITIONED BY (p int, q string COMMENT 'k')",
        "CLUSTERED BY (a, b) SORTED BY (a DESC, b) INTO 8 BUCKETS",
        "ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.orc.OrcSerde' WITH SERDEPROPERTIES ('x' = 'y')",
        "STORED AS ORC",
        "LOCATION '/here'",
        "TBLPROPERTIES ('transactional' = 'true', 'n' = 1, b = TRUE)",
    ]
    first = parse(CreateTable, "CREATE TABLE hr.t (a int, b int) " + " ".join(clauses))
    last = parse(CreateTable, "CREATE TABLE hr.t (a int, b int) " + " ".join(reversed(clauses)))
    for found in (first, last):
        assert dotted(found.table) == "hr.t"
        assert [(k.name.text, k.type.text, k.comment) for k in found.partition_keys] == [
            ("p", "int", None),
            ("q", "string", "k"),
        ]
        assert ([c.text for c in found.clustered_by], [c.text for c in found.sorted_by]) == (["a", "b"], ["a", "b"])
        assert (found.comment, found.num_buckets, found.stored_as, found.location) == ("c", 8, "ORC", "/here")
        assert found.properties == {"transactional": "true", "n": "1", "b": "true"}


@pytest.mark.parametrize(
    ("clause", "stored_as", "using"),
    [
        ("STORED AS parquet", "parquet", None),
        ("USING orc", None, "orc"),
        ("USING org.example.source", None, "org.example.source"),
        (
            "STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat'"
            " OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat'",
            "ORC",
            None,
        ),
        ("STORED AS INPUTFORMAT 'x.TextInputFormat' OUTPUTFORMAT 'y'", "x.TextInputFormat", None),
        ("STORED BY 'x.Handler' WITH SERDEPROPERTIES ('a' = 'b')", "x.Handler", None),
    ],
)
def test_the_file_format(clause: str, stored_as: str | None, using: str | None) -> None:
    found = parse(CreateTable, f"CREATE TABLE t (a int) {clause} COMMENT 'x'")
    assert (found.stored_as, found.using, found.comment) == (stored_as, using, "x")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("CREATE TABLE t STORED AS ORC AS SELECT 1", "SELECT 1"),
        ("CREATE TABLE t USING orc WITH c AS (SELECT 1) SELECT * FROM c", "WITH c AS (SELECT 1) SELECT * FROM c"),
        ("CREATE TABLE t (SELECT a, b FROM c)", "(SELECT a, b FROM c)"),
        ("CREATE TABLE t AS TABLE u", "TABLE u"),
    ],
)
def test_create_table_as_query(text: str, query: str) -> None:
    found = parse(CreateTable, text)
    assert (text_of(found.query), found.columns) == (query, ())


def test_the_keywords_before_table() -> None:
    found = parse(CreateTable, "CREATE TRANSACTIONAL EXTERNAL TABLE IF NOT EXISTS t (a int)")
    assert (found.transactional, found.external, found.if_not_exists) == (True, True, True)


SPARK_ONLY = [
    "OPTIONS ('a' = 'b')",
    "SKEWED BY (a) ON (1, 2)",
    "CLUSTER BY (a)",
    "STORED BY 'x'",
    "ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '/' LINES TERMINATED BY ';' NULL DEFINED AS 'x'",
    "ROW FORMAT SERDE 'org.example.LazySerDe'",
]


@pytest.mark.parametrize("clause", SPARK_ONLY)
def test_clauses_for_other_tables_are_read_over_and_refused_for_acid_tables(clause: str) -> None:
    assert parse(CreateTable, f"CREATE TABLE t (a int) {clause} COMMENT 'c'").comment == "c"
    for text in (
        f"CREATE TRANSACTIONAL TABLE t (a int) {clause}",
        f"CREATE TABLE t (a int) {clause} TBLPROPERTIES ('Transactional' = 'TRUE')",
    ):
        with pytest.raises(UnsupportedError):
            parse_statement(text)


@pytest.mark.parametrize(
    "element",
    [
        "b int GENERATED ALWAYS AS (a + 1)",
        "b int NULL",
        "UNIQUE (a) DEFERRABLE",
        "FOREIGN KEY (a) REFERENCES x (y) ON DELETE CASCADE",
    ],
)
def test_what_only_sparks_tables_declare_is_read_over_and_refused_for_acid_tables(element: str) -> None:
    found = parse(CreateTable, f"CREATE TABLE t (a int, {element}, z int)")
    assert (found.columns[0].name.text, found.columns[-1].name.text) == ("a", "z")
    with pytest.raises(UnsupportedError):
        parse_statement(f"CREATE TRANSACTIONAL TABLE t (a int, {element}, z int)")


def test_database_statements() -> None:
    made = parse(CreateDatabase, "CREATE DATABASE hr LOCATION '/x' COMMENT 'c' WITH DBPROPERTIES ('a' = 'b')")
    assert (made.name.text, made.location, made.comment, made.properties) == ("hr", "/x", "c", {"a": "b"})
    assert parse(DropDatabase, "DROP DATABASE IF EXISTS hr CASCADE").cascade
    assert not parse(DropDatabase, "DROP DATABASE hr").cascade


def test_a_temporary_view() -> None:
    found = parse(CreateTempView, "CREATE OR REPLACE GLOBAL TEMP VIEW global_temp.v (a, b COMMENT 'x') AS SELECT 1, 2")
    assert (found.name.text, found.is_global, found.or_replace, found.query.text) == ("v", True, True, "SELECT 1, 2")
    assert [c.text for c in found.columns or ()] == ["a", "b"]


# --- the session and SHOW --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("SET", None, None),
        ("SET -v", "-v", None),
        ("SET a.b", "a.b", None),
        ("SET a.b=1", "a.b", "1"),
        ("SET a.b = 10 s -- why", "a.b", "10 s"),
        ("SET a = 'x;y' = z;", "a", "'x;y' = z"),
        ("SET a =", "a", ""),
        ("SET a == b", "a", "= b"),
        ("SET `a b` = c", "a b", "c"),
        ("SET hivevar:x = y", "hivevar:x", "y"),
        ("SET time.zone = x", "time.zone", "x"),
        ("SET role = x", "role", "x"),
    ],
)
def test_set_takes_the_value_to_the_end(text: str, name: str | None, value: str | None) -> None:
    found = parse(Set, text)
    assert (found.name, found.value) == (name, value)


@pytest.mark.parametrize(
    "text", ["SET TIME ZONE LOCAL", "SET ROLE x", "SET VAR a = 1", "SET VARIABLE (a) = (VALUES 1)"]
)
def test_other_kinds_of_set_are_sparks(text: str) -> None:
    assert parse(Passthrough, text).span.text == text


def test_use() -> None:
    assert parse(Use, "USE `my db`").database.text == "my db"
    assert parse(Use, "USE SCHEMA spark_catalog.hr").database.text == "hr"
    assert parse(Use, "USE database").database.text == "database"
    assert parse(Passthrough, "USE other_catalog.hr").names == ()


def test_explain_holds_the_statement_that_it_explains() -> None:
    found = parse(Explain, "EXPLAIN FORMATTED SELECT 1")
    assert (found.mode, type(found.inner), found.inner.span.text) == ("FORMATTED", Query, "SELECT 1")
    inner = parse(Explain, "EXPLAIN ALTER TABLE t RECOVER PARTITIONS").inner
    assert (type(inner), inner.span.text) == (Passthrough, "ALTER TABLE t RECOVER PARTITIONS")


def test_show_tables() -> None:
    found = parse(ShowTables, "SHOW TABLES IN spark_catalog.hr LIKE 'a' 'b*'")
    assert found.database is not None
    assert (found.database.text, found.like) == ("hr", "ab*")


def test_show_locks() -> None:
    found = parse(ShowLocks, "SHOW LOCKS hr.t PARTITION (p = '1') EXTENDED")
    assert found.table is not None
    assert found.partition is not None
    assert (dotted(found.table), found.extended) == ("hr.t", True)
    assert parse(ShowLocks, "SHOW LOCKS EXTENDED").extended
    assert parse(ShowLocks, "SHOW LOCKS database").table is not None


@pytest.mark.parametrize(
    ("text", "table", "formatted"),
    [
        ("DESC t", "t", False),
        ("DESCRIBE TABLE hr.t", "hr.t", False),
        ("DESCRIBE FORMATTED t", "t", True),
        ("DESC TABLE EXTENDED t", "t", True),
        ("DESC formatted", "formatted", False),
        ("DESC table", "table", False),
        ("DESC function.t", "function.t", False),
    ],
)
def test_describe(text: str, table: str, formatted: bool) -> None:
    found = parse(Describe, text)
    assert (dotted(found.table), found.formatted) == (table, formatted)


# --- what goes to Spark ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ALTER TABLE a.b.c.d ADD COLUMNS (x int)", set()),
        ("CACHE TABLE c AS SELECT * FROM emp", {"c", "emp"}),
        ("ALTER VIEW v AS SELECT * FROM emp, hr.dept d, x JOIN y USING (id)", {"v", "emp", "hr.dept", "x", "y"}),
        ("CREATE VIEW v DEFAULT COLLATION UTF8_BINARY AS SELECT * FROM emp", {"v", "emp"}),
        ("MERGE INTO a.b.c.d USING src ON true WHEN MATCHED THEN DELETE", {"src"}),
        ("FROM emp INSERT INTO a SELECT 1 INSERT OVERWRITE DIRECTORY 'x' SELECT 2", {"emp", "a"}),
        ("CREATE TABLE a.b.c.d (x int)", set()),
        ("CREATE TEMPORARY VIEW v USING csv OPTIONS (path 'x')", {"v", "csv"}),
        ("DESCRIBE emp s.f", {"emp"}),
        ("DESCRIBE EXTENDED emp AS JSON", {"emp"}),
        ("DESCRIBE QUERY SELECT * FROM emp", {"emp"}),
        ("INSERT OVERWRITE LOCAL DIRECTORY '/x' SELECT * FROM emp", {"emp"}),
        ("INSERT INTO emp REPLACE WHERE a = 1 SELECT * FROM src", {"emp", "src"}),
        ("MSCK REPAIR TABLE emp DROP PARTITIONS", {"emp"}),
        ("REFRESH TABLE hr.emp", {"hr.emp"}),
        ("SHOW CREATE TABLE emp AS SERDE", {"emp"}),
        ("UNCACHE TABLE IF EXISTS emp", {"emp"}),
        ("COMMENT ON TABLE emp IS 'x'", {"emp"}),
        ("SELEC 1", set()),
        ("BEGIN DECLARE x INT; SELECT * FROM emp; END", {"emp"}),
    ],
)
def test_a_statement_for_spark_names_the_tables_that_it_may_mean(text: str, names: set[str]) -> None:
    found = parse(Passthrough, text)
    assert found.span.text == text
    assert names <= {dotted(n) for n in found.names}
    assert all(text[n.span.start : n.span.end] == n.span.text for n in found.names)


def test_a_string_is_never_a_table() -> None:
    assert parse(Passthrough, "REFRESH 'FROM emp'").names == ()


def test_an_error_shows_what_was_found_and_where() -> None:
    with pytest.raises(ParseError) as caught:
        parse_statement("UPDATE emp\nSET a 1")
    error = caught.value
    assert (error.code, error.sqlstate, error.line, error.column) == (40000, "42000", 2, 7)
    assert error.message == "Expected =, found '1'"
    assert error.excerpt == "SET a 1\n      ^"
