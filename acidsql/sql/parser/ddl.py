"""CREATE and DROP of databases and tables, MSCK, and temporary views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from acidsql.errors import AcidError
from acidsql.sql.parser.cursor import Cursor, LeftToSpark
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import (
    ColumnDef,
    CreateDatabase,
    CreateTable,
    CreateTempView,
    DropDatabase,
    DropTable,
    Name,
    RepairTable,
    Span,
    Statement,
)
from acidsql.sql.tokens import Kind

DATABASE_WORDS = ("DATABASE", "SCHEMA", "NAMESPACE")


def create(cursor: Cursor) -> Statement:
    """CREATE DATABASE, TABLE or TEMPORARY VIEW; every other CREATE is Spark's."""
    cursor.expect("CREATE")
    if cursor.word in DATABASE_WORDS:
        return _create_database(cursor)
    if _at_table(cursor):
        return _create_table(cursor)
    or_replace = cursor.accept("OR", "REPLACE")
    is_global = cursor.accept("GLOBAL")
    if cursor.accept_one_of("TEMP", "TEMPORARY") and cursor.accept("VIEW"):
        return _create_temp_view(cursor, or_replace, is_global)
    return passthrough(cursor)


def drop(cursor: Cursor) -> Statement:
    """DROP DATABASE or TABLE; every other DROP is Spark's."""
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
    return passthrough(cursor)


def repair(cursor: Cursor) -> Statement:
    """``MSCK [REPAIR] TABLE t [ADD PARTITIONS]`` and ``REPAIR TABLE t``; DROP and SYNC PARTITIONS are Spark's."""
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
    """A database's name; ``spark_catalog.`` before it means nothing, and another catalog is left to Spark."""
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


# --- tables ----------------------------------------------------------------------------------------------------------


def _at_table(cursor: Cursor) -> bool:
    ahead = 0
    while cursor.peek(ahead).word in ("TRANSACTIONAL", "EXTERNAL"):
        ahead += 1
    return cursor.peek(ahead).word == "TABLE"


@dataclass
class _Clauses:
    """What the clauses of CREATE TABLE said.

    ``refused`` are those that Spark carries out on its own tables and acidsql cannot on ACID tables.
    """

    columns: tuple[ColumnDef, ...] = ()
    partition_keys: tuple[ColumnDef, ...] = ()
    comment: str | None = None
    stored_as: str | None = None
    using: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    clustered_by: tuple[Name, ...] = ()
    sorted_by: tuple[Name, ...] = ()
    num_buckets: int | None = None
    refused: list[AcidError] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def _create_table(cursor: Cursor) -> Statement:
    transactional = external = False
    while not cursor.accept("TABLE"):
        transactional |= cursor.word == "TRANSACTIONAL"
        external |= cursor.word == "EXTERNAL"
        cursor.advance()
    if_not_exists = cursor.if_not_exists()
    table = cursor.expect_table()
    clauses = _Clauses()
    if cursor.word == "LIKE":
        return _create_like(cursor, transactional)
    if cursor.word == "(" and (not cursor.at_query() or _at_column(cursor)):
        _columns(cursor, clauses)
    while not cursor.at_end() and not _at_as_query(cursor):
        _clause(cursor, clauses)
    query = None
    if not cursor.at_end():
        cursor.accept("AS")
        query = cursor.query()
    acid = transactional or _property(clauses.properties, "transactional").lower() == "true"
    if acid and clauses.refused:
        raise clauses.refused[0]
    c = clauses
    return CreateTable(
        cursor.statement_span(),
        table,
        c.columns,
        c.partition_keys,
        if_not_exists=if_not_exists,
        transactional=transactional,
        external=external,
        comment=c.comment,
        stored_as=c.stored_as,
        using=c.using,
        location=c.location,
        properties=c.properties,
        clustered_by=c.clustered_by,
        sorted_by=c.sorted_by,
        num_buckets=c.num_buckets,
        query=query,
    )


def _create_like(cursor: Cursor, transactional: bool) -> Statement:
    """CREATE TABLE … LIKE: Spark's, where it is not to make an ACID table."""
    like = cursor.advance()
    cursor.expect_table()
    properties: Mapping[str, str] = {}
    while not cursor.at_end():
        if cursor.accept("TBLPROPERTIES"):
            properties = cursor.properties()
        else:
            cursor.advance()
    if transactional or _property(properties, "transactional").lower() == "true":
        raise cursor.unsupported("CREATE TABLE … LIKE of an ACID table comes in a later version", like)
    return passthrough(cursor)


def _at_as_query(cursor: Cursor) -> bool:
    return cursor.word == "AS" or cursor.at_query()


def _property(properties: Mapping[str, str], name: str) -> str:
    return next((v for k, v in properties.items() if k.lower() == name), "")


def _clause(cursor: Cursor, clauses: _Clauses) -> None:
    """One clause behind the columns; they come in any order, each once."""
    token = cursor.token
    for words, parse in _CLAUSES.items():
        if cursor.sees(*words.split()):
            if words in clauses.seen:
                raise cursor.error(f"{words} stands here twice")
            clauses.seen.add(words)
            cursor.accept(*words.split())
            parse(cursor, clauses)
            return
    known = ", ".join(_CLAUSES)
    raise cursor.error("Expected a clause of CREATE TABLE, or AS and a query", token, hint=f"The clauses are {known}.")


def _partitioned_by(cursor: Cursor, clauses: _Clauses) -> None:
    keys: list[ColumnDef] = []

    def key() -> None:
        following = cursor.peek().word
        if following in (",", ")", "(", "."):
            # A bare column or a transform, as in Spark's tables of other providers.
            clauses.refused.append(cursor.error("Expected a type for the partition key", cursor.peek()))
            while cursor.word not in (",", ")") and not cursor.at_end():
                _skip_one(cursor)
        else:
            keys.append(_column(cursor, clauses, "a partition key"))

    cursor.list_in_parentheses(key)
    clauses.partition_keys = tuple(keys)


def _clustered_by(cursor: Cursor, clauses: _Clauses) -> None:
    clauses.clustered_by = cursor.names_in_parentheses("a column name")
    if cursor.accept("SORTED", "BY"):
        clauses.sorted_by = cursor.list_in_parentheses(lambda: _sorted_column(cursor))
    cursor.expect("INTO")
    clauses.num_buckets = cursor.expect_integer("a number of buckets")
    cursor.expect("BUCKETS")


def _sorted_column(cursor: Cursor) -> Name:
    name = cursor.expect_name("a column name")
    cursor.accept_one_of("ASC", "DESC")
    return name


def _row_format(cursor: Cursor, clauses: _Clauses) -> None:
    token = cursor.token
    if cursor.accept("SERDE"):
        serde = cursor.expect_string("a SerDe class")
        if cursor.accept("WITH"):
            cursor.expect("SERDEPROPERTIES")
            cursor.properties()
        if not serde.lower().endswith("orcserde"):
            clauses.refused.append(cursor.unsupported(f"ACID tables are ORC; {serde} is not its SerDe", token))
        return
    cursor.expect("DELIMITED")
    clauses.refused.append(cursor.unsupported("ACID tables are ORC; ROW FORMAT DELIMITED is for text", token))
    while cursor.word in _DELIMITED:
        cursor.advance()
        while cursor.word in ("TERMINATED", "ITEMS", "KEYS", "DEFINED", "BY", "AS"):
            cursor.advance()
        cursor.expect_string("a delimiter")


_DELIMITED = ("FIELDS", "ESCAPED", "COLLECTION", "MAP", "LINES", "NULL")


def _stored_as(cursor: Cursor, clauses: _Clauses) -> None:
    if cursor.accept("INPUTFORMAT"):
        reads = cursor.expect_string("an input format class")
        cursor.expect("OUTPUTFORMAT")
        writes = cursor.expect_string("an output format class")
        is_orc = reads.lower().endswith("orcinputformat") and writes.lower().endswith("orcoutputformat")
        clauses.stored_as = "ORC" if is_orc else reads
    else:
        clauses.stored_as = cursor.expect_name("a file format").text


def _stored_by(cursor: Cursor, clauses: _Clauses) -> None:
    clauses.refused.append(cursor.unsupported("ACID tables are ORC; they have no storage handler"))
    clauses.stored_as = cursor.expect_string("a storage handler") if cursor.sees_kind(Kind.STRING) else None
    if clauses.stored_as is None:
        clauses.stored_as = cursor.expect_name("a storage handler").text
    if cursor.accept("WITH"):
        cursor.expect("SERDEPROPERTIES")
        cursor.properties()


def _using(cursor: Cursor, clauses: _Clauses) -> None:
    parts = [cursor.expect_name("a data source").text]
    while cursor.accept("."):
        parts.append(cursor.expect_name("a data source").text)
    clauses.using = ".".join(parts)


def _comment(cursor: Cursor, clauses: _Clauses) -> None:
    clauses.comment = cursor.expect_string("a comment")


def _location(cursor: Cursor, clauses: _Clauses) -> None:
    clauses.location = cursor.expect_string("a location")


def _properties(cursor: Cursor, clauses: _Clauses) -> None:
    clauses.properties = cursor.properties()


def _only_spark(words: str) -> Callable[[Cursor, _Clauses], None]:
    """A clause that Spark's own tables may have."""

    def parse(cursor: Cursor, clauses: _Clauses) -> None:
        clauses.refused.append(cursor.unsupported(f"{words} is not for ACID tables", cursor.tokens[cursor.at - 1]))
        while not cursor.at_end() and not _at_as_query(cursor):
            if any(cursor.sees(*w.split()) for w in _CLAUSES):
                return
            _skip_one(cursor)

    return parse


_CLAUSES: dict[str, Callable[[Cursor, _Clauses], None]] = {
    "PARTITIONED BY": _partitioned_by,
    "CLUSTERED BY": _clustered_by,
    "COMMENT": _comment,
    "ROW FORMAT": _row_format,
    "STORED AS": _stored_as,
    "STORED BY": _stored_by,
    "USING": _using,
    "LOCATION": _location,
    "TBLPROPERTIES": _properties,
    "OPTIONS": _only_spark("OPTIONS"),
    "SKEWED BY": _only_spark("SKEWED BY"),
    "CLUSTER BY": _only_spark("CLUSTER BY"),
    "DEFAULT COLLATION": _only_spark("DEFAULT COLLATION"),
}


# --- columns ---------------------------------------------------------------------------------------------------------

_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK")
_OPTIONS = ("COMMENT", "NOT", "DEFAULT", "GENERATED", "NULL", "REFERENCES", *_CONSTRAINTS)


def _columns(cursor: Cursor, clauses: _Clauses) -> None:
    columns: list[ColumnDef] = []

    def one() -> None:
        if _at_table_constraint(cursor):
            _skip_constraint(cursor, clauses)
        else:
            columns.append(_column(cursor, clauses, "a column name"))

    cursor.list_in_parentheses(one)
    clauses.columns = tuple(columns)


_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE", "DECIMAL"),
    *("NUMERIC", "DATE", "TIMESTAMP", "STRING", "CHAR", "VARCHAR", "BINARY", "INTERVAL", "ARRAY", "MAP", "STRUCT"),
)


def _at_column(cursor: Cursor) -> bool:
    """``(table string, …)``: a column that is called like the first word of a query."""
    return cursor.peek().word not in ("SELECT", "WITH", "(") and cursor.peek(2).word in _TYPES


def _at_table_constraint(cursor: Cursor) -> bool:
    if cursor.word == "CONSTRAINT":
        return cursor.peek().is_name and cursor.peek(2).word in _CONSTRAINTS
    if cursor.word in ("PRIMARY", "FOREIGN"):
        return cursor.peek().word == "KEY" and cursor.peek(2).word == "("
    return cursor.word in ("UNIQUE", "CHECK") and cursor.peek().word == "("


def _column(cursor: Cursor, clauses: _Clauses, what: str) -> ColumnDef:
    """``name type`` and, in any order, COMMENT, NOT NULL and DEFAULT."""
    name = cursor.expect_name(what)
    cursor.accept(":")
    type = data_type(cursor)
    comment: str | None = None
    not_null = False
    default: Span | None = None
    while cursor.word not in (",", ")") and not cursor.at_end():
        if cursor.accept("COMMENT"):
            comment = cursor.expect_string("a comment")
        elif cursor.accept("NOT"):
            cursor.expect("NULL")
            not_null = True
        elif cursor.accept("DEFAULT"):
            default = _default(cursor)
        elif cursor.word in _OPTIONS:
            _skip_constraint(cursor, clauses)
        else:
            raise cursor.error("Expected COMMENT, NOT NULL, DEFAULT, , or )")
    return ColumnDef(name, type, comment, not_null, default)


def _default(cursor: Cursor) -> Span:
    """The expression behind DEFAULT: up to the next option of the column."""
    first = cursor.at
    while cursor.word not in (",", ")") and not cursor.at_end():
        if cursor.at > first and _at_option(cursor):
            break
        _skip_one(cursor)
    if cursor.at == first:
        raise cursor.error("Expected an expression after DEFAULT")
    return cursor.span(first)


def _at_option(cursor: Cursor) -> bool:
    if cursor.word == "NOT":
        return cursor.peek().word == "NULL" and cursor.tokens[cursor.at - 1].word != "IS"
    if cursor.word == "COMMENT":
        return cursor.peek().kind is Kind.STRING
    return (cursor.word == "GENERATED" and cursor.peek().word == "ALWAYS") or cursor.word in _CONSTRAINTS


def _skip_constraint(cursor: Cursor, clauses: _Clauses) -> None:
    clauses.refused.append(cursor.unsupported(f"{cursor.word} is not there for ACID tables in this version"))
    while cursor.word not in (",", ")") and not cursor.at_end():
        if cursor.word == "COMMENT" and cursor.peek().kind is Kind.STRING:
            return
        _skip_one(cursor)


def _skip_one(cursor: Cursor) -> None:
    if cursor.word in ("(", "[", "{"):
        cursor.skip_brackets()
    else:
        cursor.advance()


def data_type(cursor: Cursor) -> Span:
    """A type, as text: whoever uses it knows which there are."""
    first = cursor.at
    if not cursor.token.is_name or cursor.token.quoted:
        raise cursor.error("Expected a type")
    kind = cursor.advance().word
    if cursor.word == "<":
        _skip_angles(cursor)
    elif cursor.word == "<>":
        cursor.advance()
    if cursor.word == "(":
        cursor.skip_brackets()
    if kind == "DOUBLE":
        cursor.accept("PRECISION")
    if kind == "TIMESTAMP" and cursor.word in ("WITH", "WITHOUT"):
        _time_zone(cursor)
    if kind == "INTERVAL" and cursor.word in _UNITS:
        cursor.advance()
        if cursor.accept("TO"):
            cursor.expect_one_of(*_UNITS)
    if kind in ("STRING", "CHAR", "VARCHAR") and cursor.accept("COLLATE"):
        cursor.expect_name("a collation")
    return cursor.span(first)


_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")


def _time_zone(cursor: Cursor) -> None:
    cursor.advance()
    cursor.accept("LOCAL")
    cursor.expect("TIME")
    cursor.expect("ZONE")


def _skip_angles(cursor: Cursor) -> None:
    opened = cursor.token
    depth = 0
    while True:
        if cursor.at_end():
            raise cursor.error("Expected >", hint=f"The type that starts with {opened.text} is not closed.")
        if cursor.word in ("<", ">"):
            depth += 1 if cursor.word == "<" else -1
            cursor.advance()
            if depth == 0:
                return
        else:
            _skip_one(cursor)


# --- views -----------------------------------------------------------------------------------------------------------


def _create_temp_view(cursor: Cursor, or_replace: bool, is_global: bool) -> CreateTempView:
    """A view over a query; a view over a data source, and what Spark refuses itself, are left to Spark."""
    if cursor.sees("IF", "NOT", "EXISTS") or cursor.sees("IDENTIFIER", "("):
        raise LeftToSpark
    name = cursor.expect_name("a view name")
    if is_global and name.text.lower() == "global_temp" and cursor.accept("."):
        name = cursor.expect_name("a view name")
    if cursor.word == "." or _uses_source(cursor):
        raise LeftToSpark
    columns = cursor.list_in_parentheses(lambda: _view_column(cursor)) if cursor.word == "(" else None
    while not cursor.accept("AS"):
        if cursor.accept("COMMENT"):
            cursor.expect_string("a comment")
        elif cursor.accept("TBLPROPERTIES"):
            cursor.properties()
        elif cursor.sees("DEFAULT", "COLLATION"):
            raise LeftToSpark
        else:
            raise cursor.error("Expected AS and a query")
    query = cursor.query()
    return CreateTempView(cursor.statement_span(), name, query, columns, or_replace, is_global)


def _uses_source(cursor: Cursor) -> bool:
    here = cursor.at
    if cursor.word == "(":
        cursor.skip_brackets()
    found = cursor.word == "USING"
    cursor.at = here
    return found


def _view_column(cursor: Cursor) -> Name:
    name = cursor.expect_name("a column name")
    if cursor.accept("COMMENT"):
        cursor.expect_string("a comment")
    return name
