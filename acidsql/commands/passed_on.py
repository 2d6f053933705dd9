"""Statements that acidsql does not know: they are passed on to Spark unless they name ACID tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.errors import AnalysisException as SparkAnalysisException

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import NotTransactional, UnsupportedError
from acidsql.sql.placed import padded
from acidsql.sql.statements import Passthrough, TableName


def refuse_acid_tables(env: Environment, statement: Passthrough, parameters: Mapping[str, Any]) -> None:
    """Check that Spark can run a statement by itself.

    Spark would find its own table of the same name, or none.

    Raises:
        UnsupportedError: When it names an ACID table, or text in it is run that only Spark sees.
    """
    if statement.dynamic is not None:
        problem = f"{statement.dynamic.text} is not supported: which tables it uses is not known before it runs"
        hint = "acid.sql() runs the text itself; spark.sql() runs such a statement over Spark's own tables."
        raise with_location(statement.dynamic.span, UnsupportedError(problem, hint=hint))
    for name in (*statement.names, *_identified(env, statement, parameters)):
        known = env.registered(name)
        if known is not None and known.is_view and not env.known_to_spark(name):
            problem = f"This statement is not supported for views of the metastore: {name.table} is one"
            raise with_location(name.span, UnsupportedError(problem))
        if known is None or not known.is_transactional:
            continue
        if statement.later is not None:
            message = f"{statement.later.text} is not supported"
            raise with_location(statement.later.span, UnsupportedError(message, hint=f"{name.table} is an ACID table."))
        message = f"This statement is not supported for ACID tables: {name.table} is one"
        raise with_location(name.span, UnsupportedError(message))


def _identified(env: Environment, statement: Passthrough, parameters: Mapping[str, Any]) -> Iterator[TableName]:
    """The names in ``IDENTIFIER(…)``."""
    for span in statement.identifiers:
        try:
            name = env.catalyst.identifier(padded(span), parameters)
        except SparkAnalysisException as e:
            problem = "IDENTIFIER with an expression that is not constant is not supported here"
            raise with_location(span, UnsupportedError(problem)) from e
        if name is not None:
            table, database, catalog = name
            yield TableName(table, database, span, catalog)


def refuse_in_transaction(env: Environment, name: TableName) -> None:
    """Raises: NotTransactional in a transaction: what Spark writes to a table of its own would not be undone."""
    if env.transaction is not None:
        problem = f"{name.table} is not transactional: what is written to it could not be rolled back"
        raise with_location(name.span, NotTransactional(problem, hint="COMMIT or ROLLBACK before it."))
