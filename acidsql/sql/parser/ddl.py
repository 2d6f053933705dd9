"""CREATE and DROP of databases, tables and views, and MSCK."""

from __future__ import annotations

from acidsql.sql.parser.cursor import Cursor, LeftToSpark
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.parser.tables import at_table, create_table
from acidsql.sql.parser.views import create_temp_view, create_view, drop_view
from acidsql.sql.statements import (
    CreateDatabase,
    DropDatabase,
    DropTable,
    Name,
    RepairTable,
    Statement,
)

DATABASE_WORDS = ("DATABASE", "SCHEMA", "NAMESPACE")


def create(cursor: Cursor) -> Statement:
    """CREATE DATABASE, TABLE or [TEMPORARY] VIEW; any other CREATE is passed to Spark."""
    cursor.expect("CREATE")
    if cursor.word in DATABASE_WORDS:
        return _create_database(cursor)
    if at_table(cursor):
        return create_table(cursor)
    or_replace = cursor.accept("OR", "REPLACE")
    is_global = cursor.accept("GLOBAL")
    if cursor.accept_one_of("TEMP", "TEMPORARY") and cursor.accept("VIEW"):
        return create_temp_view(cursor, or_replace, is_global)
    if not is_global and cursor.accept("VIEW"):
        return create_view(cursor, or_replace)
    return passthrough(cursor)


def drop(cursor: Cursor) -> Statement:
    """DROP DATABASE, TABLE or VIEW; any other DROP is passed to Spark."""
    cursor.expect("DROP")
    if cursor.accept_one_of(*DATABASE_WORDS):
        if_exists = cursor.if_exists()
        name = database_name(cursor)
        cascade = cursor.accept_one_of("RESTRICT", "CASCADE") == "CASCADE"
        cursor.expect_end()
        return DropDatabase(cursor.statement_span(), name, if_exists, cascade)
    if cursor.accept("TABLE"):
        if_exists = cursor.if_exists()
        table = cursor.expect_table()
        purge = cursor.accept("PURGE")
        cursor.expect_end()
        return DropTable(cursor.statement_span(), table, if_exists, purge)
    if cursor.accept("VIEW"):
        return drop_view(cursor)
    return passthrough(cursor)


def repair(cursor: Cursor) -> Statement:
    """``MSCK [REPAIR] TABLE t [ADD PARTITIONS]`` and ``REPAIR TABLE t``; DROP and SYNC PARTITIONS go to Spark."""
    if cursor.accept("MSCK"):
        cursor.accept("REPAIR")
    else:
        cursor.expect("REPAIR")
    cursor.expect("TABLE")
    table = cursor.expect_table()
    if cursor.word in ("DROP", "SYNC"):
        return passthrough(cursor)
    if cursor.accept("ADD"):
        cursor.expect("PARTITIONS")
    cursor.expect_end()
    return RepairTable(cursor.statement_span(), table)


def database_name(cursor: Cursor) -> Name:
    """A database name; the prefix ``spark_catalog.`` is ignored, other catalogs are left to Spark."""
    if cursor.sees("IDENTIFIER", "("):
        raise LeftToSpark
    name = cursor.expect_name("a database name")
    if name.text.lower() == "spark_catalog" and cursor.accept("."):
        name = cursor.expect_name("a database name")
    if cursor.word == ".":
        raise LeftToSpark
    return name


# --- databases -------------------------------------------------------------------------------------------------------


def _create_database(cursor: Cursor) -> CreateDatabase:
    cursor.expect_one_of(*DATABASE_WORDS)
    if_not_exists = cursor.if_not_exists()
    name = database_name(cursor)
    comment = location = None
    properties: dict[str, str] = {}
    while not cursor.at_end():
        if cursor.accept("COMMENT"):
            comment = cursor.expect_string("a comment")
        elif cursor.accept("LOCATION"):
            location = cursor.expect_string("a location")
        elif cursor.accept("WITH"):
            cursor.expect_one_of("DBPROPERTIES", "PROPERTIES")
            properties = cursor.properties()
        else:
            raise cursor.error("Expected COMMENT, LOCATION, WITH DBPROPERTIES or the end of the statement")
    return CreateDatabase(cursor.statement_span(), name, if_not_exists, comment, location, properties)
