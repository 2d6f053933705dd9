"""FROM source INSERT … INSERT …: several INSERTs from one source, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.dml.insert import run_inserts, target_of
from acidsql.commands.dml.insert_clause import InsertClause, InsertPlan
from acidsql.commands.dml.shared_source import SharedSource
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.passed_on import refuse_in_transaction
from acidsql.commands.query import with_query
from acidsql.commands.resolve.binding import refuse_evaluated_twice
from acidsql.commands.resolve.context import StatementContext
from acidsql.errors import UnsupportedError
from acidsql.metastore.model import Table
from acidsql.plan.target import RowCounts
from acidsql.sql.statements import MultiInsert
from acidsql.sql.with_clause import whole_query


class MultiInsertCommand:
    """FROM source INSERT … INSERT ….

    They run as one statement (:func:`.insert.run_inserts`). The source is evaluated once and its rows are kept, unless
    it surely gives the same rows each time: else a row could get into none of the tables, or into two.

    ``tables`` are those to write to, in the order of the INSERTs (:func:`targets_of`).
    """

    def __init__(
        self, env: Environment, statement: MultiInsert, parameters: Mapping[str, Any], tables: Sequence[Table]
    ) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.now = env.current_values()
        self.legs: list[InsertClause] = []
        for insert, table in zip(statement.inserts, tables, strict=True):
            leg = replace(insert, with_clause=statement.with_clause)
            self.legs.append(InsertClause(env, leg, parameters, table, head=(statement.source,), now=self.now))

    def run(self) -> RowCounts:
        """All phases from the resolved statement to the commit."""
        return run_inserts(self.env, self.legs, self._plans, self.now)

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do, INSERT by INSERT."""
        parts = [part for leg in self.legs for part in leg.explain(context)]
        if len(self.legs) == 1 or self._shared(context) is None:
            return parts
        told = ("Source", ("evaluated once for all INSERTs; its rows are kept until the statement ends",))
        return [replace(part, more=(*part.more, told)) for part in parts]

    def _plans(self, context: StatementContext, legs: Sequence[InsertClause]) -> list[InsertPlan]:
        """The resolved queries, at one current time."""
        plans = [leg.resolved(context) for leg in legs]
        source = self._shared(context) if len(legs) > 1 else None
        if source is not None:
            # again, over the leaf: the errors of the user's own text, and their places, have come before
            plans = [leg.resolved(context, source) for leg in legs]
            source.analysed = context.now.fixed(source.analysed)
        if self.statement.with_clause is not None:
            parts = [(plan.binding, plan.analysed) for plan in plans]
            parts += [] if source is None else [(source.binding, source.analysed)]
            refuse_evaluated_twice(self.statement.span, *parts)
        return [replace(p, analysed=context.now.fixed(p.analysed)) for p in plans]

    def _shared(self, context: StatementContext) -> SharedSource | None:
        """The source, if it has to be evaluated once for all INSERTs."""
        statement = self.statement
        clause = whole_query(statement.with_clause, statement.source)
        source = SharedSource(context, self.parameters, clause, statement.span.text)
        return None if source.is_repeatable else source


def targets_of(env: Environment, statement: MultiInsert) -> list[Table] | None:
    """The tables to write to, in the order of the INSERTs; None where all are Spark's.

    Raises:
        UnsupportedError: When only some are Spark's: there is no transaction over both. Others as :func:`target_of`.
    """
    targets = [target_of(env, insert) for insert in statement.inserts]
    tables = [table for table in targets if table is not None]
    if tables and len(tables) < len(targets):
        of_spark = statement.inserts[targets.index(None)]
        problem = "One statement cannot insert into tables of Spark's and into ACID tables"
        raise with_location(of_spark.table.span, UnsupportedError(problem, hint="Write two statements."))
    return tables or None


def multi_insert(env: Environment, statement: MultiInsert, parameters: Mapping[str, Any]) -> DataFrame:
    """Run a multi-insert; the row of counts. INSERTs into Spark tables are run by Spark, over snapshots."""
    tables = targets_of(env, statement)
    if tables is None:
        refuse_in_transaction(env, statement.inserts[0].table)
        return with_query(env, statement.span, statement.span, parameters)
    return env.counts(inserted=MultiInsertCommand(env, statement, parameters, tables).run().inserted)
