"""FROM source INSERT … INSERT …: several INSERTs from one source, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.dml.insert import InsertCommand, with_time_fixed
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.transaction.write_transaction import WriteTransaction, in_transaction
from acidsql.errors import AnalysisError, UnsupportedError
from acidsql.metastore.model import LockComponent, LockType
from acidsql.plan.staging import Staging
from acidsql.plan.target import RowCounts
from acidsql.sql.statements import MultiInsert, Span
from acidsql.sql.with_clause import whole_query

_STRENGTH = (LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE)


class MultiInsertCommand:
    """FROM source INSERT … INSERT ….

    1. Open a transaction; resolve each INSERT on its own, at one current time. Each reads the source on its own, so a
       source that may give other rows each time is refused: a row could get into none of them, or into two.
    2. Take the locks of all of them; look everything up again, and restart if something has changed.
    3. Take one snapshot for all tables that are read.
    4. Write the INSERTs in order, with statement ids from 0 on: each has its own delta. Two that write to the same
       partition, one of them with OVERWRITE, are an error: one would hide the rows of the other.
    5. Publish all, commit, return the total counts.
    """

    def __init__(self, env: Environment, statement: MultiInsert, parameters: Mapping[str, Any]) -> None:
        self.env = env
        self.statement = statement
        self.parameters = parameters
        self.legs: list[InsertCommand] = []
        for insert in statement.inserts:
            table = env.get_table(insert.table)
            leg = replace(insert, with_clause=statement.with_clause)
            self.legs.append(InsertCommand(env, leg, parameters, table, head=(statement.source,)))

    def run(self) -> RowCounts:
        """All phases from the resolved statement to the commit."""
        return in_transaction(self.env, self._run)

    def _run(self, txn: WriteTransaction) -> RowCounts:
        env = self.env
        for leg in self.legs:
            leg.resolve(env.get_table(leg.statement.table))
        legs = [leg for leg in self.legs if not leg.exists_already()]
        if not legs:
            return RowCounts()
        context = StatementContext(env)
        plans = with_time_fixed([leg.resolved(context) for leg in legs])
        self._require_repeatable(context)
        txn.lock([*self._locks(legs), *dict.fromkeys(lock for plan in plans for lock in plan.read_locks)])
        context.revalidate(txn.valid_txns)
        written, stagings = RowCounts(), [txn.stage(leg.table) for leg in legs]
        for leg, plan in zip(legs, plans, strict=True):
            leg.require_all_seen(txn, plan)
        for number, (leg, plan, staging) in enumerate(zip(legs, plans, stagings, strict=True)):
            written += leg.write(leg.changes(plan), txn, staging, number)
        self._refuse_hidden(legs, stagings)
        for leg, staging in zip(legs, stagings, strict=True):
            leg.publish(txn, staging)
        return written

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do, INSERT by INSERT."""
        self._require_repeatable(context)
        return [part for leg in self.legs for part in leg.explain(context)]

    def _require_repeatable(self, context: StatementContext) -> None:
        if len(self.legs) == 1:
            return
        source = self.statement.source
        text = f"{whole_query(self.statement.with_clause, source).text} SELECT 1"
        binding = Binding(context, self.parameters, text)
        if self.env.catalyst.may_differ(binding.resolved(binding.query(Span(text, 0, len(text))))):
            problem = UnsupportedError(
                "Each INSERT reads this source on its own, and it may give other rows each time",
                hint="It has rand(), LIMIT, TABLESAMPLE or the like. Write it into a table first: CREATE TABLE … AS …",
            )
            raise with_location(source, problem)

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


def multi_insert(env: Environment, statement: MultiInsert, parameters: Mapping[str, Any]) -> DataFrame:
    """Run a multi-insert; the row of counts."""
    return env.counts(inserted=MultiInsertCommand(env, statement, parameters).run().inserted)
