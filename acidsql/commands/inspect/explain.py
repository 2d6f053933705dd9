"""EXPLAIN of statements that change an ACID table: what they would lock, read and write, and Spark's plan for it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands import query
from acidsql.commands.ddl.create_as import CreateTableAsCommand
from acidsql.commands.ddl.table_kind import is_ours
from acidsql.commands.dml.delete_rows import DeleteCommand
from acidsql.commands.dml.insert import target_of
from acidsql.commands.dml.insert_clause import InsertClause
from acidsql.commands.dml.load import load_command
from acidsql.commands.dml.merge import MergeCommand
from acidsql.commands.dml.multi_insert import MultiInsertCommand, targets_of
from acidsql.commands.dml.truncate import TruncateCommand, truncate_command
from acidsql.commands.dml.update import UpdateCommand
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.inspect.explained import Explainable, Explained
from acidsql.commands.maintenance.analyze import analyze_command
from acidsql.commands.maintenance.compaction import CompactCommand
from acidsql.commands.maintenance.optimize import optimize_command
from acidsql.commands.maintenance.vacuum import vacuum_command
from acidsql.commands.passed_on import refuse_acid_tables
from acidsql.commands.resolve.binding import Binding
from acidsql.commands.resolve.context import StatementContext
from acidsql.commands.resolve.reads import Read
from acidsql.errors import UnsupportedError
from acidsql.format.directory import AcidState
from acidsql.metastore.model import LockComponent
from acidsql.plan.search import MIN_BYTES, MIN_FILES, is_searched
from acidsql.plan.snapshot import TableSnapshot, partition_names
from acidsql.sql.statements import (
    Analyze,
    Compact,
    CreateTable,
    Delete,
    Explain,
    Insert,
    LoadData,
    Merge,
    MultiInsert,
    Optimize,
    Passthrough,
    Query,
    Statement,
    Truncate,
    Update,
    Vacuum,
)
from acidsql.sql.with_clause import whole_query

SHOWN_PARTITIONS = 20
"""At most this many partitions are listed; the totals include all of them."""

MODES = {"": "simple", "EXTENDED": "extended", "FORMATTED": "formatted", "COST": "cost", "CODEGEN": "codegen"}
"""Spark's names for the modes of EXPLAIN."""

Make = Callable[[Environment, Any, Mapping[str, Any]], "Explainable | None"]


def _insert(env: Environment, statement: Insert, parameters: Mapping[str, Any]) -> Explainable | None:
    """None for INSERT into a Spark table."""
    table = target_of(env, statement)
    return None if table is None else InsertClause(env, statement, parameters, table)


def _multi_insert(env: Environment, statement: MultiInsert, parameters: Mapping[str, Any]) -> Explainable | None:
    """None for INSERTs into Spark tables."""
    tables = targets_of(env, statement)
    return None if tables is None else MultiInsertCommand(env, statement, parameters, tables)


def _delete(env: Environment, statement: Delete, parameters: Mapping[str, Any]) -> Explainable:
    """DELETE of all rows of an insert-only table is a TRUNCATE."""
    table = env.find_table(statement.table) if statement.where is None else None
    if table is not None and table.is_insert_only:
        return TruncateCommand(env, table)
    return DeleteCommand(env, statement, parameters)


def _create_table(env: Environment, statement: CreateTable, parameters: Mapping[str, Any]) -> Explainable | None:
    if not is_ours(env, statement):
        return None
    if statement.query is None:
        raise with_location(
            statement.span, UnsupportedError("EXPLAIN of CREATE TABLE is only supported with AS a query")
        )
    return CreateTableAsCommand(env, statement, parameters)


def _vacuum(env: Environment, statement: Vacuum, parameters: Mapping[str, Any]) -> Explainable | None:
    """Collects the files now: the transaction that EXPLAIN opens next would keep them from being removable."""
    command = vacuum_command(env, statement)
    if command is not None:
        command.look()
    return command


COMMANDS: dict[type[Statement], Make] = {
    Insert: _insert,
    MultiInsert: _multi_insert,
    Update: UpdateCommand,
    Merge: MergeCommand,
    Delete: _delete,
    Truncate: truncate_command,
    LoadData: load_command,
    CreateTable: _create_table,
    Compact: CompactCommand,
    Optimize: optimize_command,
    Vacuum: _vacuum,
    Analyze: analyze_command,
}
"""The statements that can be explained; their commands are created, which resolves all names, but not run. None is for
a statement about a Spark table."""


def explain(env: Environment, statement: Explain, parameters: Mapping[str, Any]) -> DataFrame:
    """EXPLAIN: one column ``plan``, as Spark's.

    1. Create the statement's command: names, columns and types are resolved, with the errors of the statement.
    2. Open a read-only transaction for a snapshot; it ends with EXPLAIN.
    3. Let the command plan over that snapshot and describe the plan. It takes no lock or write id and writes no file.

    A query is explained by Spark, over the snapshots of its tables.
    """
    inner, head = statement.inner, f"EXPLAIN {statement.mode} "
    if isinstance(inner, Query):
        return _query(env, inner, parameters, statement.mode, head)
    make = COMMANDS.get(type(inner))
    if make is None and isinstance(inner, Passthrough):
        refuse_acid_tables(env, inner, parameters)
        return env.sql(f"{head}{inner.span.text}", parameters)
    if make is None:
        message = (
            "EXPLAIN is only supported for queries, and for statements that read or change rows or files of tables"
        )
        raise with_location(inner.span, UnsupportedError(message))

    def explained(context: StatementContext) -> str | None:
        command = make(env, inner, parameters)
        if command is None:
            return None
        parts = command.explain(context)
        return "\n".join([*_phases(command), *(line for part in parts for line in _part(env, part, statement.mode))])

    text = query.at_snapshot(env, explained)
    return _by_spark(env, inner, parameters, head) if text is None else env.strings(["plan"], [[text]])


def _query(env: Environment, inner: Query, parameters: Mapping[str, Any], mode: str, head: str) -> DataFrame:
    """A query is explained by Spark, over the snapshots of its tables."""
    if not query.reads_acid_tables(env, inner.span, parameters):
        return env.sql(f"{head}{inner.span.text}", parameters)

    def explained(context: StatementContext) -> str:
        binding = Binding(context, parameters, inner.span.text)
        return _spark_plan(env, binding.answer(binding.query(inner.span)), mode)

    return env.strings(["plan"], [[query.at_snapshot(env, explained)]])


def _by_spark(env: Environment, inner: Statement, parameters: Mapping[str, Any], head: str) -> DataFrame:
    """A statement about a Spark table is explained by Spark, over snapshots of the ACID tables in it."""
    span = inner.span if isinstance(inner, MultiInsert) else None
    if isinstance(inner, CreateTable):
        span = inner.query
    elif isinstance(inner, Insert):
        span = whole_query(inner.with_clause, inner.query)
    if span is None or not query.reads_acid_tables(env, span, parameters):
        return env.sql(f"{head}{inner.span.text}", parameters)

    def explained(context: StatementContext) -> str:
        binding = Binding(context, parameters, inner.span.text)
        return env.catalyst.explained(binding.command(inner.span), MODES.get(head.split()[-1].upper(), "simple"))

    return env.strings(["plan"], [[query.at_snapshot(env, explained)]])


# --- the text --------------------------------------------------------------------------------------------------------


def _phases(command: Explainable) -> Iterator[str]:
    """The first word and the numbered paragraphs of a command's docstring, each on one line."""
    text = inspect.getdoc(type(command)) or ""
    yield f"== {re.split('[.:]', text)[0]} =="
    for phase in re.findall(r"^\d+\. .*(?:\n {3}.*)*", text, re.MULTILINE):
        yield re.sub(r"\s+", " ", phase).replace("``", "")


def _part(env: Environment, part: Explained, mode: str) -> Iterator[str]:
    yield ""
    yield f"== {part.table.full_name} =="
    yield "Locks:"
    yield from (f"  {lock}" for lock in _locks(part.locks))
    if part.files:
        yield "Loads:"
        yield from (f"  {file}" for file in _some(part.files))
    yield "Writes:"
    yield from (f"  {place}" for place in _some(part.writes))
    for title, lines in part.more:
        yield f"{title}:"
        yield from (f"  {line}" for line in _some(lines))
    for read in part.reads:
        yield f"{'Target' if read.is_target else 'Reads'}: {read.table.full_name}"
        yield from _table(env, read)
    yield ""
    yield "== Spark's plan of the changes =="
    yield f"(none: {part.no_plan})" if part.changes is None else _spark_plan(env, part.changes, mode)


def _some(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:SHOWN_PARTITIONS] or ["nothing"]
    if len(lines) > SHOWN_PARTITIONS:
        yield f"… and {len(lines) - SHOWN_PARTITIONS} more"


def _locks(locks: Sequence[LockComponent]) -> Iterator[str]:
    yield from _some([_lock(lock) for lock in locks])


def _lock(lock: LockComponent) -> str:
    """The lock type and object as in SHOW LOCKS, and its operation."""
    place = f"{lock.database}.{lock.table}" if lock.table else lock.database
    partition = f" partition {lock.partition}" if lock.partition else ""
    dynamic = ", dynamic partitions" if lock.is_dynamic_partition_write else ""
    return f"{lock.type.name} {place}{partition} ({lock.operation.name}{dynamic})"


def _table(env: Environment, read: Read) -> Iterator[str]:
    """What the snapshot sees of a table."""
    table, partitions, seen = read.table, read.partitions, read.snapshot
    ids = seen.write_ids
    hidden = "".join(
        f", {word}: {', '.join(map(str, hidden_ids))}"
        for word, hidden_ids in (("open", ids.open_ids), ("aborted", ids.aborted_ids))
        if hidden_ids
    )
    yield f"  snapshot: write ids up to {ids.high_watermark}{hidden}"
    if partitions is not None:
        total = len(env.metastore.list_partitions(table.database, table.name))
        yield f"  partitions: {len(partitions)} of {total}"
    states = [part.state for part in seen.partitions]
    yield f"  files: {_summary(states)}"
    for part in seen.partitions[:SHOWN_PARTITIONS]:
        name = partition_names(table, part.partition) if part.partition is not None else "directories"
        yield f"    {name}: {_directories(part.state)}"
    if len(states) > SHOWN_PARTITIONS:
        yield f"    … and {len(states) - SHOWN_PARTITIONS} more"
    if read.search is not None:
        yield f"  search in ORC files: {_search(read.search.text, seen)}"


def _summary(states: Sequence[AcidState]) -> str:
    bases = sum(s.base is not None for s in states)
    deltas, deletes = sum(len(s.insert_deltas) for s in states), sum(len(s.delete_deltas) for s in states)
    files = [f for s in states for f in _files(s)]
    size = sum(f.length for f in files)
    return f"{bases} bases, {deltas} deltas, {deletes} delete deltas; {len(files)} files, {size} bytes"


def _directories(state: AcidState) -> str:
    names = [state.base.path] if state.base is not None else []
    names += [d.path for d in state.deltas]
    shown = [n.rstrip("/").rpartition("/")[2] for n in names]
    if state.originals:
        shown.append(f"{len(state.originals)} original files")
    return ", ".join(shown) or "nothing"


def _files(state: AcidState) -> Iterator[Any]:
    if state.base is not None:
        yield from state.base.files
    for delta in state.deltas:
        yield from delta.files
    yield from state.originals


def _search(conditions: str, seen: TableSnapshot) -> str:
    if not conditions:
        return "none"
    text, few = re.sub(r"\s+", " ", conditions), f"fewer than {MIN_FILES} files of less than {MIN_BYTES >> 20} MB"
    return text if is_searched(seen) else f"{text} (not planned: {few} are read whole)"


def _spark_plan(env: Environment, frame: DataFrame, mode: str) -> str:
    jvm = env.spark._jvm
    assert jvm is not None
    execution = frame._jdf.queryExecution()
    return str(jvm.PythonSQLUtils.explainString(execution, MODES.get(mode.upper(), "simple"))).strip()
