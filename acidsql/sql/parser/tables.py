"""CREATE TABLE and its clauses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from acidsql.errors import AcidError
from acidsql.sql.parser.columns import Elements, at_column, column, elements
from acidsql.sql.parser.constraints import skip_one
from acidsql.sql.parser.cursor import Cursor, LeftToSpark
from acidsql.sql.statements import ColumnDef, CreateTable, Name, Span, Statement, TableName
from acidsql.sql.tokens import Kind


def at_table(cursor: Cursor) -> bool:
    """Whether ``[TRANSACTIONAL] [EXTERNAL] TABLE`` follows."""
    ahead = 0
    while cursor.peek(ahead).word in ("TRANSACTIONAL", "EXTERNAL"):
        ahead += 1
    return cursor.peek(ahead).word == "TABLE"


@dataclass
class _Clauses:
    """The clauses of CREATE TABLE.

    ``refused`` has errors for clauses that only Spark tables support.
    """

    elements: Elements = field(default_factory=Elements)
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
    untyped: list[AcidError] = field(default_factory=list)
    """An error for each partition key without a type, raised if there is no query that has the type."""
    seen: set[str] = field(default_factory=set)


def create_table(cursor: Cursor) -> Statement:
    """``[TRANSACTIONAL] [EXTERNAL] TABLE …``, after CREATE."""
    transactional = external = False
    while not cursor.accept("TABLE"):
        transactional |= cursor.word == "TRANSACTIONAL"
        external |= cursor.word == "EXTERNAL"
        cursor.advance()
    if_not_exists = cursor.if_not_exists()
    table = cursor.expect_table()
    clauses = _Clauses()
    like = _like(cursor)
    if like is None and cursor.word == "(" and (not cursor.at_query() or at_column(cursor)):
        clauses.elements = elements(cursor, clauses.refused)
    while not cursor.at_end() and not _at_as_query(cursor):
        _clause(cursor, clauses)
    query = None
    if not cursor.at_end():
        cursor.accept("AS")
        query = cursor.query()
    if query is None:
        clauses.refused += clauses.untyped
    acid = transactional or _property(clauses.properties, "transactional").lower() == "true"
    if acid and clauses.refused:
        raise clauses.refused[0]
    c = clauses
    return CreateTable(
        cursor.statement_span(),
        table,
        c.elements.columns,
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
        checks=c.elements.checks,
        constraints=c.elements.constraints,
        like=like,
    )


def _like(cursor: Cursor) -> TableName | None:
    """``[LIKE other]``; Hive's ``LIKE FILE format '…'``, which reads columns from a file, is left to Spark."""
    if not cursor.accept("LIKE"):
        return None
    if cursor.word == "FILE" and cursor.peek().is_name and cursor.peek(2).kind is Kind.STRING:
        raise LeftToSpark
    return cursor.expect_table()


def _at_as_query(cursor: Cursor) -> bool:
    return cursor.word == "AS" or cursor.at_query()


def _property(properties: Mapping[str, str], name: str) -> str:
    return next((v for k, v in properties.items() if k.lower() == name), "")


def _clause(cursor: Cursor, clauses: _Clauses) -> None:
    """One clause after the columns; in any order, each once."""
    token = cursor.token
    for words, parse in _CLAUSES.items():
        if cursor.sees(*words.split()):
            if words in clauses.seen:
                raise cursor.error(f"Duplicate clause {words}")
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
        if following in (",", ")"):  # a column of the query of CREATE TABLE AS; without one, it needs a type
            clauses.untyped.append(cursor.error("Expected a type for the partition key", cursor.peek()))
            name = cursor.expect_name("a partition key")
            keys.append(ColumnDef(name, Span(cursor.source, name.span.end, name.span.end)))
        elif following in ("(", "."):  # a transform, as in Spark's tables of other providers
            clauses.refused.append(cursor.error("Expected a type for the partition key", cursor.peek()))
            while cursor.word not in (",", ")") and not cursor.at_end():
                skip_one(cursor)
        else:
            first = cursor.token
            keys.append(column(cursor, clauses.refused, "a partition key"))
            if any(constraint.kind == "CHECK" for constraint in keys[-1].constraints):
                clauses.refused.append(cursor.unsupported("A partition key cannot have a CHECK", first))

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
            clauses.refused.append(
                cursor.unsupported(f"ACID tables are stored as ORC; {serde} is not its SerDe", token)
            )
        return
    cursor.expect("DELIMITED")
    clauses.refused.append(cursor.unsupported("ACID tables are stored as ORC; ROW FORMAT DELIMITED is for text", token))
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
    clauses.refused.append(cursor.unsupported("ACID tables are stored as ORC; they have no storage handler"))
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
    """A clause that only Spark tables may have."""

    def parse(cursor: Cursor, clauses: _Clauses) -> None:
        clauses.refused.append(
            cursor.unsupported(f"{words} is not supported for ACID tables", cursor.tokens[cursor.at - 1])
        )
        while not cursor.at_end() and not _at_as_query(cursor):
            if any(cursor.sees(*w.split()) for w in _CLAUSES):
                return
            skip_one(cursor)

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
