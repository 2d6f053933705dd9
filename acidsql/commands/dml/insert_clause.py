"""One INSERT of a statement: its table, its columns and partitions, the rows, and the directories that it writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from acidsql.catalyst import CurrentValues, Expression, Plan
from acidsql.commands.ddl.partitions import values_of
from acidsql.commands.dml.assignments import named_columns
from acidsql.commands.dml.delete_rows import stage_deletes
from acidsql.commands.dml.ready import ready
from acidsql.commands.dml.shared_source import SharedSource
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import Read, read_locks
from acidsql.commands.transaction.locking import change_lock_type, insert_lock
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, AnalysisError
from acidsql.metastore.model import Column, LockComponent, LockType, Partition, Table
from acidsql.partition_names import partition_name
from acidsql.plan.changes import ChangeSet, key_column, value_column
from acidsql.plan.failures import own_failures
from acidsql.plan.local import may_be_small
from acidsql.plan.staging import Staging
from acidsql.plan.target import Change, RowCounts
from acidsql.plan.text import literal
from acidsql.plan.values import (
    NotStorable,
    bounded,
    default_value,
    key_text,
    store_assignment,
    to_files,
    typed_default,
    typed_key,
)
from acidsql.plan.write import Writer
from acidsql.settings import (
    DYNAMIC_PARTITION,
    DYNAMIC_PARTITION_MODE,
)
from acidsql.sql.statements import Default, Insert, PartitionSpec, Span
from acidsql.sql.with_clause import whole_query
from acidsql.types import parse_type


@dataclass(frozen=True)
class _Partitioning:
    """Target partitions: values of the static keys (as path text, by key name), and the dynamic keys."""

    static: Mapping[str, str | None]
    dynamic: tuple[str, ...]


@dataclass(frozen=True)
class InsertPlan:
    """The query of an INSERT, resolved by Spark over the tables that it reads.

    Attributes:
        binding: The texts and the tables in them.
        analysed: The resolved plan.
        source: The rows that several INSERTs read, if they are evaluated for all of them at once.
    """

    binding: Binding
    analysed: Plan
    source: SharedSource | None = None

    @property
    def tables(self) -> list[Table]:
        """The ACID tables that are read."""
        return [*self.binding.tables, *(self.source.tables if self.source is not None else ())]

    @property
    def read_locks(self) -> list[LockComponent]:
        return read_locks(self.tables)

    def scanned(self) -> Plan:
        """The plan over scans of the snapshot."""
        plan = self.binding.scanned(self.analysed)
        return plan if self.source is None else self.source.over(plan)

    def reads(self) -> list[Read]:
        return self.binding.reads(self.analysed)


class InsertClause:
    """INSERT.

    Into one table, as a statement or as one of several INSERTs in it (:func:`.insert.run_inserts`). :meth:`resolve`
    takes the table, the columns and the PARTITION clause, evaluating its static values. The query's columns are cast to
    the table's by Spark's ANSI store assignment; columns not named get their default. :meth:`write` makes a delta
    (OVERWRITE: a base) in a staging directory: VALUES and other small results by the driver without a Spark job, larger
    ones by one job with one bucket file per task.
    """

    def __init__(
        self,
        env: Environment,
        statement: Insert,
        parameters: Mapping[str, Any],
        table: Table,
        *,
        head: tuple[Span, ...] = (),
        now: CurrentValues | None = None,
    ) -> None:
        """``head`` is the text before the query, FROM and its sources, in a multi-insert; ``now`` what is current."""
        self.env = env
        self.now = now or env.current_values()
        self.head = head
        self.statement = statement
        self.parameters = parameters
        self.body = self._body()
        self._made: frozenset[str] = frozenset()
        """The partitions that earlier attempts, which were undone, have registered, where the store does not tell."""
        self._used: frozenset[str] = frozenset()
        """Those of them that have rows by now: they exist."""
        self.resolve(table)

    def resolve(self, table: Table) -> None:
        """Resolve the statement's clauses against a table."""
        self.table = table
        self.partitioning = self._partitioning(self.statement.partition)
        self._deletes: Staging | None = None
        self.columns = self._columns()

    # --- resolve -----------------------------------------------------------------------------------------------------

    def _partitioning(self, spec: PartitionSpec | None) -> _Partitioning:
        keys = {k.name: k for k in self.table.partition_keys}
        named = spec.keys if spec else ()
        for key, _ in named:
            if key.text.lower() not in keys:
                raise with_location(
                    key.span,
                    AnalysisError(f"{key.text} is not a partition key of {self.table.full_name}", code=10098),
                )
        given = {key.text.lower(): value for key, value in named}
        static = {n: self._static_value(keys[n], v) for n, v in given.items() if v is not None}
        dynamic = tuple(n for n in keys if n not in static)
        settings = self.env.settings
        if dynamic and not settings.value(DYNAMIC_PARTITION):
            raise self._at_table(
                AnalysisError("Dynamic partitions are disabled (hive.exec.dynamic.partition)", code=10097)
            )
        if dynamic and not static and settings.value(DYNAMIC_PARTITION_MODE) == "strict":
            raise self._at_table(
                AnalysisError(
                    "Dynamic partition strict mode requires at least one static partition column",
                    code=10096,
                    hint="SET hive.exec.dynamic.partition.mode=nonstrict",
                )
            )
        return _Partitioning(static, dynamic)

    def _static_value(self, key: Column, value: Span) -> str | None:
        """The path text of a static key's value: evaluated in the user's session, stored with ANSI casts."""
        type = parse_type(key.type)
        try:
            typed = bounded(typed_key("v0", type, "CAST"), key)
            evaluated = values_of(self.env, [value], self.parameters, self.now).selectExpr(key_text(typed, type))
            with own_failures():
                row = evaluated.collect()[0]
        except AcidError as e:
            raise with_location(value, e) from e
        return None if row[0] is None else str(row[0])

    def _body(self) -> Span:
        """The query with the WITH clause before INSERT, as one text."""
        return whole_query(self.statement.with_clause, *self.head, self.statement.query)

    def _columns(self) -> list[Column]:
        """The target columns in the query's order; BY NAME resolves them later."""
        table, statement = self.table, self.statement
        by_name = {c.name: c for c in table.all_columns}
        if statement.columns is None:
            return [*table.columns, *(by_name[n] for n in self.partitioning.dynamic)]
        chosen = named_columns(table, statement.columns, fixed=self.partitioning.static)
        missing = [n for n in self.partitioning.dynamic if by_name[n] not in chosen]
        if missing and statement.partition is not None:
            chosen += [by_name[n] for n in missing]
        elif missing:
            raise self._at_table(AnalysisError(f"Partition key {missing[0]} has no value", code=10044))
        return chosen

    # --- plan --------------------------------------------------------------------------------------------------------

    def plan(self, context: StatementContext) -> InsertPlan:
        """The query, resolved."""
        plan = self.resolved(context)
        return replace(plan, analysed=context.now.fixed(plan.analysed))

    def resolved(self, context: StatementContext, source: SharedSource | None = None) -> InsertPlan:
        """As :meth:`plan`, but the current time is still to be fixed; over ``source`` if there is one."""
        context.add(self.table)
        body, given = self.body, {}
        if source is not None:
            body = whole_query(self.statement.with_clause, source.clause, self.statement.query)
            given = {source.name: source.stand_in}
        binding = Binding(context, self.parameters, body.text, given=given)
        return InsertPlan(binding, binding.resolved(binding.query(body, self._defaults())), source)

    def require_all_seen(self, txn: WriteTransaction, plan: InsertPlan, *, with_others: bool = False) -> None:
        """An INSERT OVERWRITE that hides its target with a base must see all whose rows it hides: what it reads, of the
        target or of other tables, may have been changed with them; as may other tables that the statement overwrites
        (``with_others``).

        Raises:
            StartOver: When it has not.
        """
        is_base = self.statement.overwrite and not txn.has_several_statements  # there see its publishing
        if not is_base or not (plan.tables or with_others):
            return
        txn.exclude_writers(self.table)
        if self.table.partition_keys and not self.partitioning.dynamic:
            txn.require_places_seen(self.table, [self._static_name()])
        else:
            txn.require_all_seen(self.table)

    def check(self, plan: InsertPlan) -> None:
        """What is wrong in the query, or in its columns, is an error also where nothing is going to be written."""
        self.stored(self.env.sessions.own.frame(plan.analysed))

    def changes(self, plan: InsertPlan) -> ChangeSet:
        """The rows to insert, in the session that writes files."""
        rows = self.env.sessions.own.frame(plan.scanned())
        return ready(self.env, plan.binding.context, self.stored(rows))

    def write(self, changes: ChangeSet, txn: WriteTransaction, staging: Staging) -> RowCounts:
        """Write rows into a staging area, as one statement of a transaction."""
        deletes = self._deletes_what_it_replaces
        target = txn.target(self.table, overwrite=self.statement.overwrite and not deletes)
        writer = Writer(self.env.writing, target, staging, self.env.driver_limit)
        written = writer.write(changes, large=not may_be_small(changes.frame, self.env.driver_limit))
        self._deletes = None
        if deletes:
            self._deletes = stage_deletes(self.env, txn, self.table, self._replaced(staging))
        if not self.partitioning.dynamic:
            self._write_without_rows(writer, staging, is_base=self.statement.overwrite and not deletes)
        return written

    def _replaced(self, staging: Staging) -> Collection[str] | None:
        """The partitions whose rows OVERWRITE replaces; None: the whole table."""
        if not self.table.partition_keys:
            return None
        return staging.partitions if self.partitioning.dynamic else [self._static_name()]

    def name_partitions(self, txn: WriteTransaction, staging: Staging) -> None:
        """Report the partitions written to where the lock did not name them; before anything is published."""
        if self.partitioning.dynamic:
            for one in self._staged(staging):
                txn.name_partitions(self.table, one)

    def publish(self, txn: WriteTransaction, staging: Staging) -> None:
        """Move the staged directories to their final location."""
        self.name_partitions(txn, staging)
        for one in self._staged(staging):
            try:
                txn.publish(self.table, one, dynamic=bool(self.partitioning.dynamic))
            finally:
                if not self.env.metastore.capabilities.tells_creators:
                    self._made |= one.made

    def _staged(self, staging: Staging) -> list[Staging]:
        return [staging] if self._deletes is None else [self._deletes, staging]

    def explain(self, context: StatementContext) -> list[Explained]:
        """What it would do."""
        plan = self.plan(context)
        if self.is_left_out(context=context):
            self.check(plan)
            return [Explained(self.table, (), (), None, no_plan="the partition already exists")]
        locks = [*self.locks(), *plan.read_locks]
        return [Explained(self.table, locks, plan.reads(), self.changes(plan).frame, writes=[self.directory])]

    @property
    def directory(self) -> str:
        """The kind and location of the directory that it writes."""
        kind = "base" if self.statement.overwrite else "delta"
        if self._deletes_what_it_replaces:
            kind = "delete_delta, delta"
        if not self.table.partition_keys:
            return kind
        return f"{kind} in {'the partitions of its rows' if self.partitioning.dynamic else self._static_name()}"

    def is_left_out(self, txn: WriteTransaction | None = None, context: StatementContext | None = None) -> bool:
        """Whether IF NOT EXISTS finds its partition: one that only statements have made which were undone, or are not
        committed, stays registered, and does not exist.

        Args:
            txn: The transaction, whose own statements count.
            context: The statement over its snapshot: only there it can tell whether others have put rows into what an
                earlier attempt has registered, where the store does not tell. Then it exists all the same.
        """
        if not self.statement.if_not_exists:
            return False
        if self.partitioning.dynamic:
            raise self._at_table(AnalysisError("IF NOT EXISTS requires static partitions"))
        name = self._static_name()
        found = self._found(name)
        if not found:
            return False
        if not found[0].exists:
            return txn is not None and found[0].is_of(txn.id)
        if name in self._used or name not in self._made:
            return True
        if context is None or all(part.state.is_empty for part in context.table_snapshot(self.table, found).partitions):
            return False
        self._used |= {name}
        return True

    def _found(self, partition: str) -> tuple[Partition, ...]:
        return tuple(self.env.metastore.list_partitions(self.table.database, self.table.name, [partition]))

    def _static_name(self) -> str:
        keys = [k.name for k in self.table.partition_keys]
        return partition_name(keys, [self.partitioning.static[k] for k in keys])

    def locks(self) -> list[LockComponent]:
        """On the table or the static partition; dynamic partitions are added later."""
        dynamic = bool(self.partitioning.dynamic)
        partition = self._static_name() if self.table.partition_keys and not dynamic else None
        lock = insert_lock(self.env, self.table, partition, overwrite=self.statement.overwrite, dynamic=dynamic)
        if self.statement.if_not_exists:  # nobody else is to make it meanwhile
            lock = replace(lock, type=LockType.EXCLUSIVE)
        elif self._deletes_what_it_replaces:  # others may read meanwhile, and insert
            lock = replace(lock, type=change_lock_type(self.env))
        return [lock]

    @property
    def _deletes_what_it_replaces(self) -> bool:
        within = self.env.transaction
        deletes = within is not None and within.deletes_what_it_replaces and self.table.is_full_acid
        return deletes and self.statement.overwrite

    def _defaults(self) -> dict[tuple[int, int], Expression]:
        """What DEFAULT stands for in VALUES, by the numbers of row and column."""
        made = {}
        for number, row in enumerate(self.statement.rows or ()):
            for i, value in enumerate(row):
                if isinstance(value, Default):
                    self._check_count(len(row), self.columns)
                    made[number, i] = self.env.sessions.own.resolved_expression(typed_default(self.columns[i]))
        return made

    def _check_count(self, count: int, columns: Sequence[Column]) -> None:
        if count != len(columns):
            raise self._at_table(
                AnalysisError(
                    f"Cannot insert into target table because column number/types are different '{self.table.name}':"
                    f" the INSERT takes {len(columns)} columns, but the query has {count}",
                    code=10044,
                    hint=f"The columns are {', '.join(c.name for c in columns)}.",
                )
            )

    def _by_name(self, raw: DataFrame) -> list[Column]:
        by_name = {c.name: c for c in self.columns}
        found: list[Column] = []
        for name in raw.columns:
            column = by_name.get(name.lower())
            if column is None or column in found:
                problem = f"{self.table.full_name} has no column {name}"
                if column is not None:
                    problem = f"the query returns column {column.name} more than once"
                raise self._at_table(AnalysisError(f"INSERT BY NAME: {problem}", code=10004))
            found.append(column)
        return found

    def stored(self, raw: DataFrame) -> ChangeSet:
        """The rows as changes."""
        table = self.table
        columns = self._by_name(raw) if self.statement.by_name else self.columns
        self._check_count(len(raw.columns), columns)
        named = raw.toDF(*[f"v{i}" for i in range(len(columns))])
        try:
            stored = store_assignment(
                self.env.own_spark,
                named,
                columns,
                0,
                zones=self.env.zones,
                kept=self._keys_among(columns),
                by_name=self.statement.by_name,
            )
        except NotStorable as e:
            raise with_location(self._place_of(e.target, columns), e) from e
        given = {c.name: e for c, e in zip(columns, stored, strict=True)}
        values = (given.get(c.name) or self._stored_default(c) for c in table.columns)
        made = [f"{value} AS {value_column(i)}" for i, value in enumerate(values)]
        for i, key in enumerate(table.partition_keys):
            if key.name in self.partitioning.static:
                value = self.partitioning.static[key.name]
                text = "CAST(NULL AS string)" if value is None else literal(value)
            else:
                text = key_text(given[key.name], parse_type(key.type))
            made.append(f"{text} AS {key_column(i)}")
        return ChangeSet(named.selectExpr(*made), table, Change.INSERT)

    def _place_of(self, column: str, columns: Sequence[Column]) -> Span:
        """The span of a column's value, in a VALUES list of one row; else of the query."""
        rows = self.statement.rows
        if rows is None or len(rows) != 1:
            return self.statement.query
        value = rows[0][[c.name for c in columns].index(column)]
        return value.span if isinstance(value, Default) else value

    def _keys_among(self, columns: Sequence[Column]) -> frozenset[int]:
        """Positions of the partition keys: text in paths uses the wall-clock time that the user sees."""
        return frozenset(i for i, c in enumerate(columns) if c in self.table.partition_keys)

    def _stored_default(self, column: Column) -> str:
        return to_files(self._missing(column), parse_type(column.type), self.env.zones)

    def _missing(self, column: Column) -> str:
        if column.default is None and column.not_null:
            raise self._at_table(
                AnalysisError(f"Column {column.name} is NOT NULL and has no default; it needs a value")
            )
        return default_value(column)

    def _write_without_rows(self, writer: Writer, staging: Staging, *, is_base: bool) -> None:
        """Without rows a base hides the old ones all the same; and a partition that is named is there from now on, as
        for Hive and Spark."""
        partition = self._static_name() if self.table.partition_keys else ""
        if partition in staging.partitions:
            return
        if is_base:
            writer.write_nothing(partition)
        elif partition and not any(found.exists for found in self._found(partition)):
            staging.without_rows.add(partition)

    def _at_table(self, error: AcidError) -> AcidError:
        return with_location(self.statement.table.span, error)
