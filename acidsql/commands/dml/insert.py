"""INSERT from VALUES, a query or a table; and how the INSERTs of any statement run, all in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from typing import Any

from pyspark.sql import DataFrame

from acidsql.catalyst import CurrentValues
from acidsql.commands.dml.insert_clause import InsertClause, InsertPlan
from acidsql.commands.dml.shared_source import SharedSource
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.passed_on import refuse_in_transaction
from acidsql.commands.query import with_query
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AnalysisError, TableNotFound
from acidsql.metastore.lock_rules import STRENGTH
from acidsql.metastore.model import LockComponent, Table
from acidsql.plan.staging import Staging
from acidsql.plan.target import RowCounts
from acidsql.sql.statements import Insert
from acidsql.sql.with_clause import whole_query

Plans = Callable[[StatementContext, Sequence[InsertClause]], list[InsertPlan]]


def run_inserts(env: Environment, clauses: Sequence[InsertClause], plans: Plans, now: CurrentValues) -> RowCounts:
    """Run the INSERTs of a statement.

    1. Open a transaction. Resolve each INSERT, and let Spark resolve its query, all at one current time. Those whose
       partition is there already, with IF NOT EXISTS, are only checked.
    2. Lock the tables or the static partitions SHARED_READ (OVERWRITE: EXCLUSIVE), and the tables read SHARED_READ.
       The partition of IF NOT EXISTS is locked EXCLUSIVE in any case: nobody else makes it meanwhile.
    3. Take one snapshot for all tables. Look everything up again, and start over if something has changed, if a
       partition of IF NOT EXISTS has come or gone, or if OVERWRITE has not seen all rows.
    4. Evaluate a source that all of them share. Allocate the write ids; write the INSERTs in order into staging
       directories, with statement ids from 0 on: each has its own delta. Two that write to the same partition, one of
       them with OVERWRITE, are an error: one would hide the rows of the other.
    5. Publish all by rename, register new partitions, commit, return the total counts.

    Args:
        env: The session.
        clauses: The INSERTs.
        plans: Resolves the queries of some of them.
        now: What is current for all of them.

    Raises:
        TransactionError: When it had to start over too often. Others as the clauses.
    """

    def run(txn: WriteTransaction) -> RowCounts:
        for clause in clauses:
            clause.resolve(env.get_table(clause.statement.table))
        chosen = [clause for clause in clauses if not clause.is_left_out(txn)]
        if len(chosen) < len(clauses):
            for clause, plan in zip(clauses, plans(StatementContext(env, now=now), clauses), strict=True):
                clause.check(plan)
        context = StatementContext(env, now=now)
        parts = list(zip(chosen, plans(context, chosen), strict=True))
        txn.lock([*_locks(chosen), *dict.fromkeys(lock for _, plan in parts for lock in plan.read_locks)])
        context.revalidate(txn.snapshot)
        if [clause for clause in clauses if not clause.is_left_out(txn, context)] != chosen:
            txn.start_over("A partition that IF NOT EXISTS asks for was made or dropped meanwhile")
        return _written(txn, parts)

    return in_transaction(env, run)


def _written(txn: WriteTransaction, parts: Sequence[tuple[InsertClause, InsertPlan]]) -> RowCounts:
    overwritten = {clause.table.full_name for clause, _ in parts if clause.statement.overwrite}
    for clause, plan in parts:
        clause.require_all_seen(txn, plan, with_others=len(overwritten) > 1)
    written, staged = RowCounts(), [(clause, txn.stage(clause.table)) for clause, _ in parts]
    with _evaluated(next((plan.source for _, plan in parts), None)):
        for (clause, plan), (_, staging) in zip(parts, staged, strict=True):
            written += clause.write(clause.changes(plan), txn, staging)
    _refuse_hidden(staged)
    for clause, staging in staged:
        clause.name_partitions(txn, staging)
    for clause, staging in staged:
        clause.publish(txn, staging)
    return written


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


def _locks(clauses: Sequence[InsertClause]) -> Iterator[LockComponent]:
    """Each lock once; the stronger one of two on the same object."""
    chosen: dict[tuple[str, str | None, str | None], LockComponent] = {}
    for component in (lock for clause in clauses for lock in clause.locks()):
        place = (component.database, component.table, component.partition)
        held = chosen.get(place)
        if held is None:
            chosen[place] = component
            continue
        dynamic = held.is_dynamic_partition_write or component.is_dynamic_partition_write
        stronger = max(held, component, key=lambda c: STRENGTH.index(c.type))
        chosen[place] = replace(stronger, is_dynamic_partition_write=dynamic)
    yield from chosen.values()


def _refuse_hidden(staged: Sequence[tuple[InsertClause, Staging]]) -> None:
    for (one, first), (other, second) in combinations(staged, 2):
        if one.table.full_name != other.table.full_name:
            continue
        if not (one.statement.overwrite or other.statement.overwrite):
            continue
        for partition in sorted(set(first.partitions) & set(second.partitions)):
            place = f"Partition {partition} of {one.table.full_name}" if partition else f"Table {one.table.full_name}"
            problem = AnalysisError(f"{place} is overwritten and written to by the same statement")
            raise with_location(other.statement.table.span, problem)


def target_of(env: Environment, statement: Insert) -> Table | None:
    """The table to write to; None for one of Spark's.

    Raises:
        TableNotFound: When there is none of that name.
        AnalysisError: When it is a view (Hive 10090).
    """
    table = env.find_table(statement.table)
    if table is None:
        env.refuse_view(statement.table)
        if not env.known_to_spark(statement.table):
            error = TableNotFound(f"Table not found {env.database_of(statement.table)}.{statement.table.table.lower()}")
            raise with_location(statement.table.span, error)
    return table


def insert(env: Environment, statement: Insert, parameters: Mapping[str, Any]) -> DataFrame:
    """Run INSERT; the row of counts. INSERT into a Spark table is run by Spark, over snapshots."""
    table = target_of(env, statement)
    if table is None:
        refuse_in_transaction(env, statement.table)
        query = whole_query(statement.with_clause, statement.query)
        return with_query(env, statement.span, query, parameters)
    clause = InsertClause(env, statement, parameters, table)

    def plans(context: StatementContext, clauses: Sequence[InsertClause]) -> list[InsertPlan]:
        return [clause.plan(context) for clause in clauses]

    return env.counts(inserted=run_inserts(env, [clause], plans, clause.now).inserted)
