"""ANALYZE TABLE: the number of rows, files and bytes of a table, and statistics of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row

from acidsql.commands.ddl.partitions import no_partition, partitions_with, spec_values
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explained
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import Read
from acidsql.commands.transaction.run import write_transaction
from acidsql.errors import AnalysisError, ColumnNotFound
from acidsql.format.directory import AcidFile, AcidState
from acidsql.metastore.model import (
    NUM_FILES,
    NUM_ROWS,
    TOTAL_SIZE,
    Column,
    ColumnStatistics,
    LockComponent,
    LockType,
    Partition,
    Statistics,
    Table,
)
from acidsql.partition_names import partition_name
from acidsql.plan.scan import RAW_KEY, ScanColumns, snapshot_frame
from acidsql.plan.snapshot import TableSnapshot, partition_names
from acidsql.plan.text import quote
from acidsql.plan.views import Views
from acidsql.sql.statements import Analyze, PartitionSpec
from acidsql.types import Array, Char, Decimal, Map, Primitive, Struct, Varchar, parse_type

ANALYZE_VIEW = 10091
_TEXTS = ("string",)
_ORDERED = ("tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp")


@dataclass(frozen=True)
class _Measure:
    """One aggregate: the field of :class:`ColumnStatistics` that it fills, and its expression."""

    field: str
    expression: str


class AnalyzeCommand:
    """ANALYZE TABLE.

    1. Resolve the table, the partitions and the columns.
    2. Lock the table SHARED_READ in a transaction, as Hive does, and take its snapshot.
    3. Compute row counts and column statistics in one Spark aggregate, by partition and in total (not with NOSCAN);
       files and bytes are those that the snapshot reads.
    4. Allocate a write id, as Hive does, store the statistics in the metastore with it, and commit.
    """

    def __init__(self, env: Environment, statement: Analyze, parameters: Mapping[str, Any], table: Table) -> None:
        self.env = env
        self.statement = statement
        self.table = table
        self.columns = self._columns()
        self.partitions = self._partitions(parameters)

    # --- resolve -----------------------------------------------------------------------------------------------------

    def _columns(self) -> list[Column]:
        wanted, table = self.statement.for_columns, self.table
        if wanted is None:
            return []
        if not wanted:
            return [c for c in table.columns if not _is_nested(c)]
        columns = []
        for name in wanted:
            column = next((c for c in table.columns if c.name == name.text.lower()), None)
            if column is None:
                is_key = any(k.name == name.text.lower() for k in table.partition_keys)
                why = "A partition key has one value in a partition." if is_key else None
                raise with_location(
                    name.span, ColumnNotFound(f"Invalid column reference {name.text}", code=10002, hint=why)
                )
            if _is_nested(column):
                message = f"Statistics are only supported for primitive types; {column.name} is {column.type}"
                raise with_location(name.span, AnalysisError(message))
            columns.append(column)
        return columns

    def _partitions(self, parameters: Mapping[str, Any]) -> tuple[Partition, ...] | None:
        """The partitions that match the given values: ``PARTITION (p = 1, q)``. None: no partition keys."""
        table, spec = self.table, self.statement.partition
        if not table.partition_keys and spec is None:
            return None
        given = PartitionSpec(tuple(k for k in spec.keys if k[1] is not None), spec.span) if spec else None
        values = spec_values(self.env, table, given, parameters) if given else {}
        partitions = tuple(partitions_with(self.env, table, values).values())
        if spec is not None and values and not partitions:
            raise no_partition(spec, values)
        return partitions

    # --- run ---------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """All phases from the resolved statement to the commit."""
        env, table = self.env, self.table
        with write_transaction(env, self._locks()) as txn:
            txn.revalidate(table)
            statistics = self._statistics_of(StatementContext(env, txn.snapshot).table_snapshot(table, self.partitions))
            write_id = txn.allocate_write_id(table)
            env.metastore.set_statistics(table, write_id, txn.valid_write_ids(table), statistics)

    def explain(self, context: StatementContext) -> list[Explained]:
        """What :meth:`run` would do."""
        reason = "NOSCAN reads no rows" if self.statement.noscan else None
        seen = context.table_snapshot(self.table, self.partitions)
        changes = None if reason else self._measured(seen)
        read = Read(self.table, True, self.partitions, None, seen)
        writes = ["statistics, in the metastore"]
        return [Explained(self.table, self._locks(), [read], changes, writes=writes, no_plan=reason or "")]

    def _locks(self) -> list[LockComponent]:
        return [LockComponent(LockType.SHARED_READ, self.table.database, self.table.name)]

    def _statistics_of(self, seen: TableSnapshot) -> dict[str, Statistics]:
        """Statistics by partition name; the empty name is the table."""
        files = {_name(self.table, p.partition): _sizes(p.state) for p in seen.partitions}
        if self.statement.noscan:
            return {name: Statistics(parameters) for name, parameters in files.items()}
        rows = self._aggregate(seen)
        none = (0, ())
        statistics = {
            name: Statistics({**sizes, NUM_ROWS: str(rows.get(name, none)[0])}, rows.get(name, none)[1], exact=True)
            for name, sizes in files.items()
        }
        if "" in rows and "" not in statistics and self.columns and self.statement.partition is None:
            statistics[""] = Statistics({}, rows[""][1])
        return statistics

    def _aggregate(self, seen: TableSnapshot) -> dict[str, tuple[int, tuple[ColumnStatistics, ...]]]:
        """Row counts and column statistics by partition name; the empty name is the total."""
        keys = [f"{RAW_KEY}{i}" for i in range(len(self.table.partition_keys))]
        measures = [(column, list(_measures(column))) for column in self.columns]
        aggregated = self._measured(seen).collect()
        names = [k.name for k in self.table.partition_keys]
        statistics = {}
        for row in aggregated:
            name = partition_name(names, [row[k] for k in keys]) if keys and row.g == 0 else ""
            statistics[name] = (int(row.n), tuple(_statistics(c, i, some, row) for i, (c, some) in enumerate(measures)))
        return statistics

    def _measured(self, seen: TableSnapshot) -> DataFrame:
        """The aggregate: ``n`` and each measure, suffixed with the column number, by partition and in total."""
        own, keys = self.env.sessions.own, [f"{RAW_KEY}{i}" for i in range(len(self.table.partition_keys))]
        asked = ["count(*) AS n"]
        for i, column in enumerate(self.columns):
            asked += [f"{m.expression} AS {m.field}_{i}" for m in _measures(column)]
        rows = snapshot_frame(own, seen, self.env.zones, ScanColumns(raw_keys=RAW_KEY))
        with Views(own.spark) as views:
            return own.spark.sql(self._text(views.add(rows), keys, asked))

    def _text(self, view: str, keys: Sequence[str], asked: Sequence[str]) -> str:
        text = f"SELECT {', '.join(asked)} FROM {view}"
        if keys:
            listed = ", ".join(keys)
            sets = f"(({listed}), ())" if self.columns else f"(({listed}))"
            text = f"SELECT grouping_id() AS g, {listed}, {', '.join(asked)} FROM {view} GROUP BY {listed}"
            text += f" GROUPING SETS {sets}"
        return text


def _name(table: Table, partition: Partition | None) -> str:
    return partition_names(table, partition) if partition is not None else ""


def _sizes(state: AcidState) -> dict[str, str]:
    files: list[AcidFile] = [*state.originals, *(state.base.files if state.base else ())]
    files += [f for delta in state.deltas for f in delta.files]
    return {NUM_FILES: str(len(files)), TOTAL_SIZE: str(sum(f.length for f in files))}


def _is_nested(column: Column) -> bool:
    return isinstance(parse_type(column.type), Array | Map | Struct)


def _measures(column: Column) -> Iterator[_Measure]:
    """The statistics of a column that Hive stores for its type (``ColumnStatisticsData``)."""
    name, type = quote(column.name), parse_type(column.type)
    yield _Measure("nulls", f"count(*) - count({name})")
    plain = type.name if isinstance(type, Primitive) else ""
    if plain == "boolean":
        yield _Measure("trues", f"count_if({name})")
        yield _Measure("falses", f"count_if(NOT {name})")
        return
    if plain == "binary" or plain in _TEXTS or isinstance(type, Char | Varchar):
        yield _Measure("average_length", f"avg(length({name}))")
        yield _Measure("max_length", f"max(length({name}))")
    if plain != "binary":
        yield _Measure("distinct", f"approx_count_distinct({name})")
    if plain in _ORDERED or isinstance(type, Decimal):
        yield _Measure("low", f"CAST(min({name}) AS string)")
        yield _Measure("high", f"CAST(max({name}) AS string)")


def _statistics(column: Column, position: int, measures: Sequence[_Measure], row: Row) -> ColumnStatistics:
    values = {m.field: row[f"{m.field}_{position}"] for m in measures}
    return ColumnStatistics(column.name, column.type, **values)


def analyze(env: Environment, statement: Analyze, parameters: Mapping[str, Any]) -> DataFrame:
    """ANALYZE TABLE; Spark runs it for tables that are not ACID."""
    command = analyze_command(env, statement, parameters)
    if command is None:
        return env.sql(statement.span.text, parameters)
    command.run()
    return env.nothing()


def analyze_command(env: Environment, statement: Analyze, parameters: Mapping[str, Any]) -> AnalyzeCommand | None:
    """The command; None for a Spark table. Raises: AnalysisError for a view (Hive 10091)."""
    table = env.registered(statement.table)
    if table is not None and table.is_view:
        raise with_location(
            statement.table.span, AnalysisError("ANALYZE is not supported for views", code=ANALYZE_VIEW)
        )
    if table is None or not table.is_transactional:
        return None
    return AnalyzeCommand(env, statement, parameters, table)
