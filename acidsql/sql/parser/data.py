"""TRUNCATE, LOAD DATA and ANALYZE: statements about all rows of a table or a partition."""

from __future__ import annotations

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import Analyze, LoadData, Name, Statement, Truncate


def truncate(cursor: Cursor) -> Statement:
    """``TRUNCATE [TABLE] t [PARTITION (…)]``; Hive's COLUMNS and FORCE are for tables that are not ACID."""
    first = cursor.at
    cursor.expect("TRUNCATE")
    cursor.accept("TABLE")
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    if cursor.word in ("COLUMNS", "FORCE"):
        words = cursor.advance().word
        return passthrough(cursor, Name(f"TRUNCATE TABLE … {words}", cursor.span(first, first + 1)))
    cursor.expect_end()
    return Truncate(cursor.statement_span(), table, partition)


def load_data(cursor: Cursor) -> Statement:
    """``LOAD DATA [LOCAL] INPATH '…' [OVERWRITE] INTO TABLE t [PARTITION (…)] [INPUTFORMAT '…' SERDE '…']``."""
    cursor.expect("LOAD", "DATA")
    local = cursor.accept("LOCAL")
    cursor.expect("INPATH")
    path = cursor.expect_text("a path")
    overwrite = cursor.accept("OVERWRITE")
    cursor.expect("INTO", "TABLE")
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    input_format = serde = None
    if cursor.accept("INPUTFORMAT"):
        input_format = cursor.expect_text("the name of an input format")
        cursor.expect("SERDE")
        serde = cursor.expect_text("the name of a SerDe")
    cursor.expect_end()
    return LoadData(cursor.statement_span(), path, table, partition, local, overwrite, input_format, serde)


def analyze(cursor: Cursor) -> Statement:
    """``ANALYZE TABLE t [PARTITION (…)] COMPUTE STATISTICS [NOSCAN | FOR [ALL] COLUMNS …]``."""
    cursor.expect("ANALYZE")
    if cursor.word == "TABLES":
        return passthrough(cursor)
    cursor.expect("TABLE")
    table = cursor.expect_table()
    partition = cursor.partition_spec()
    cursor.expect("COMPUTE", "STATISTICS")
    noscan = cursor.accept("NOSCAN")
    columns: tuple[Name, ...] | None = None
    if not noscan and cursor.accept("FOR"):
        columns = () if cursor.accept("ALL", "COLUMNS") else _columns(cursor)
    cursor.expect_end()
    return Analyze(cursor.statement_span(), table, partition, noscan, columns)


def _columns(cursor: Cursor) -> tuple[Name, ...]:
    """``COLUMNS [c, …]``; without names all columns, as in Hive."""
    cursor.expect("COLUMNS")
    names: list[Name] = []
    while not cursor.at_end() and (not names or cursor.accept(",")):
        names.append(cursor.expect_name("a column name"))
    return tuple(names)
