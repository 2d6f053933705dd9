"""Parses the text of a statement to its dataclass: recursive descent, one function for each first keyword.

The grammar is in ``grammar/acidsql.ebnf``. What a statement leaves to Spark (expressions, queries, types) is not
parsed here; only its end is found, by counting brackets.
"""

from __future__ import annotations

from collections.abc import Callable

from acidsql.errors import ParseError
from acidsql.sql.parser import (
    alter,
    data,
    ddl,
    dml,
    maintenance,
    merge,
    passthrough,
    queries,
    session,
    show,
    transactions,
)
from acidsql.sql.parser.cursor import Cursor, LeftToSpark
from acidsql.sql.parser.script import ScriptStatement, is_open_script, split_script, substitute
from acidsql.sql.statements import Statement, TableName
from acidsql.sql.tokens import Kind, Token, tokenize

__all__ = [
    "ScriptStatement",
    "is_open_script",
    "parse_statement",
    "parse_table_name",
    "split_script",
    "substitute",
]


def parse_statement(text: str) -> Statement:
    """Parse one statement; a trailing ``;`` is allowed.

    Raises:
        ParseError: For a syntax error, with the position and what was expected there.
        UnsupportedError: When the statement is not supported.
    """
    cursor = Cursor(text, _one_statement(text))
    return _statement(cursor)


def parse_table_name(text: str) -> TableName:
    """Parse ``[[catalog.]database.]table``, where each part may be back-quoted.

    Raises:
        ParseError: When it is not a table name.
    """
    cursor = Cursor(text)
    try:
        table = cursor.expect_table()
    except LeftToSpark:
        raise cursor.error("Expected [[catalog.]database.]table") from None
    if not cursor.at_end():
        raise cursor.error("Expected the end of the table name")
    return table


def _one_statement(text: str) -> list[Token]:
    """The tokens of the one statement in the text, without the ``;``."""
    tokens = tokenize(text)
    while len(tokens) > 1 and tokens[-2].word == ";":
        end = tokens[-2].start
        tokens[-2:] = [Token(Kind.END, "", end, end, "")]
    stray = next((t for t in tokens if t.word == ";"), None)
    if stray is not None and tokens[0].word != "BEGIN":
        raise ParseError(
            "More than one statement", hint="acid.script() runs several statements, one after the other."
        ).locate(text, stray.start)
    if len(tokens) == 1:
        raise ParseError("Expected a statement, found nothing").locate(text, 0)
    return tokens


def _statement(cursor: Cursor) -> Statement:
    parse = queries.query if cursor.word == "(" else STATEMENTS.get(cursor.word, passthrough.passthrough)
    try:
        return parse(cursor)
    except LeftToSpark:
        return passthrough.passthrough(cursor)


STATEMENTS: dict[str, Callable[[Cursor], Statement]] = {
    "SELECT": queries.query,
    "FROM": queries.query,
    "VALUES": queries.query,
    "TABLE": queries.query,
    "MAP": queries.query,
    "REDUCE": queries.query,
    "WITH": queries.with_statement,
    "INSERT": dml.insert,
    "UPDATE": dml.update,
    "DELETE": dml.delete,
    "CREATE": ddl.create,
    "DROP": ddl.drop,
    "ALTER": alter.alter,
    "MSCK": ddl.repair,
    "REPAIR": ddl.repair,
    "USE": session.use,
    "SET": session.set_value,
    "RESET": session.reset,
    "EXPLAIN": session.explain(_statement),
    "SHOW": show.show,
    "DESC": show.describe,
    "DESCRIBE": show.describe,
    "MERGE": merge.merge,
    "TRUNCATE": data.truncate,
    "LOAD": data.load_data,
    "ANALYZE": data.analyze,
    "ABORT": transactions.abort,
    "OPTIMIZE": maintenance.optimize,
    "VACUUM": maintenance.vacuum,
    "BEGIN": transactions.begin,
    "START": transactions.start,
    "COMMIT": transactions.commit,
    "ROLLBACK": transactions.rollback,
    "LOCK": passthrough.lock,
    "UNLOCK": passthrough.lock,
    "EXPORT": passthrough.export_table,
    "IMPORT": passthrough.import_table,
}
