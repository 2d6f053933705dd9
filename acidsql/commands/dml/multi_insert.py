"""FROM source INSERT … INSERT …: several INSERTs from one source, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.dml.insert import InsertCommand, InsertPlan, target_of
from acidsql.commands.dml.shared_source import SharedSource
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.passed_on import refuse_in_transaction
from acidsql.commands.query import with_query
from acidsql.commands.resolve.binding import refuse_evaluated_twice
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.metastore.model import LockComponent, LockType, Table
from acidsql.plan.staging import Staging
from acidsql.plan.target import RowCounts
from acidsql.sql.statements import MultiInsert
from acidsql.sql.with_clause import whole_query

_STRENGTH = (LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE)


class MultiInsertCommand:
    """FROM source INSERT … INSERT ….

    1. Open a transaction; resolve each INSERT, all at one current time.
    2. Take the locks of all of them; look everything up again, and restart if something has changed.
    3. Take one snapshot for all tables that are read. Evaluate the source once and keep its rows, unless it surely
       gives the same rows each time: else a row could get into none of the tables, or into two.
    4. Write the INSERTs in order, with statement ids from 0 on: each has its own delta. Two that write to the same
       partition, one of them with OVERWRITE, are an error: one would hide the rows of the other.
    5. Publish all, commit, return the total counts.

    ``tables`` are those to write to, in the order of the INSERTs (:func:`targets_of`).
    """

    def __init__(
        self, env: Environment, statement: MultiInsert, parameters: Mapping[str, Any], tables: Sequence[Table]
    ) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.now = env.current_values()
        self.legs: list[InsertCommand] = []
        for insert, table in zip(statement.inserts, tables, strict=True):
            leg = replace(insert, with_clause=statement.with_clause)
            self.legs.append(InsertCommand(env, leg, parameters, table, head=(statement.source,), now=self.now))

    def run(self) -> RowCounts:
        """All phases from the resolved statement to the commit."""
        return in_transaction(self.env, self._run)

    def _run(self, txn: WriteTransaction) -> RowCounts:
        env = self.env
        for leg in self.legs:
            leg.resolve(env.get_table(leg.statement.table))
        legs = [leg for leg in self.legs if not leg.exists_already()]
        if len(legs) < len(self.legs):
            for leg, plan in zip(self.legs, self._plans(StatementContext(env, now=self.now), self.legs), strict=True):
                leg.check(plan)
        if not legs:
            return RowCounts()
        context = StatementContext(env, now=self.now)
        plans = self._plans(context, legs)
        txn.lock([*self._locks(legs), *dict.fromkeys(lock for plan in plans for lock in plan.read_locks)])
        if any(leg.exists_by_now(txn) for leg in legs):
            txn.start_over("A partition has been made that the statement was to make")
        context.revalidate(txn.snapshot)
        for leg in legs:
            leg.require_missing(txn, context)
        if any(not leg.exists_already() for leg in self.legs if leg not in legs):
            txn.start_over("A partition is gone that the statement was not to make")
        written, stagings = RowCounts(), [txn.stage(leg.table) for leg in legs]
        overwritten = {leg.table.full_name for leg in legs if leg.statement.overwrite}
        for leg, plan in zip(legs, plans, strict=True):
            leg.require_all_seen(txn, plan, with_others=len(overwritten) > 1)
        with _evaluated(plans[0].source):
            for leg, plan, staging in zip(legs, plans, stagings, strict=True):
                written += leg.write(leg.changes(plan), txn, staging)
        self._refuse_hidden(legs, stagings)
        for leg, staging in zip(legs, stagings, strict=True):
            leg.name_partitions(txn, staging)
        for leg, staging in zip(legs, stagings, strict=True):
            leg.publish(txn, staging)
        return written

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do, INSERT by INSERT."""
        parts = [part for leg in self.legs for part in leg.explain(context)]
        if len(self.legs) == 1 or self._shared(context) is None:
            return parts
        told = ("Source", ("evaluated once for all INSERTs; its rows are kept until the statement ends",))
        return [replace(part, more=(*part.more, told)) for part in parts]

    def _plans(self, context: StatementContext, legs: Sequence[InsertCommand]) -> list[InsertPlan]:
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

    @staticmethod
    def _locks(legs: list[InsertCommand]) -> Iterator[LockComponent]:
        """Each lock once; the stronger one of two on the same object."""
        chosen: dict[tuple[str, str | None, str | None], LockComponent] = {}
        for component in (c for leg in legs for c in leg.locks()):
            place = (component.database, component.table, component.partition)
            held = chosen.get(place)
            if held is None:
                chosen[place] = component
                continue
            dynamic = held.is_dynamic_partition_write or component.is_dynamic_partition_write
            stronger = max(held, component, key=lambda c: _STRENGTH.index(c.type))
            chosen[place] = replace(stronger, is_dynamic_partition_write=dynamic)
        yield from chosen.values()

    @staticmethod
    def _refuse_hidden(legs: list[InsertCommand], stagings: list[Staging]) -> None:
        for (one, first), (other, second) in combinations(zip(legs, stagings, strict=True), 2):
            if one.table.full_name != other.table.full_name:
                continue
            if not (one.statement.overwrite or other.statement.overwrite):
                continue
            for partition in sorted(set(first.partitions) & set(second.partitions)):
                place = (
                    f"Partition {partition} of {one.table.full_name}" if partition else f"Table {one.table.full_name}"
                )
                problem = AnalysisError(f"{place} is overwritten and written to by the same statement")
                raise with_location(other.statement.table.span, problem)


@contextmanager
def _evaluated(source: SharedSource | None) -> Iterator[None]:
    if source is None:
        yield
        return
    try:
        source.read()
        yield
    finally:
        source.forget()


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
