"""EXPLAIN of statements that change an ACID table: what they would lock, read and write, and Spark's plan for it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands import query
from acidsql.commands.binding import Snapshot, Source, ViewSource
from acidsql.commands.environment import Environment
from acidsql.commands.explained import Explainable, Explained
from acidsql.commands.insert import InsertCommand
from acidsql.commands.merge import MergeCommand
from acidsql.commands.multi_insert import MultiInsertCommand
from acidsql.commands.places import at
from acidsql.commands.update import DeleteCommand, UpdateCommand
from acidsql.errors import UnsupportedError
from acidsql.format.directory import AcidState
from acidsql.metastore.model import LockComponent, Partition, Table
from acidsql.plan.search import MIN_BYTES, Search
from acidsql.plan.snapshot import partition_names
from acidsql.plan.views import Views
from acidsql.sql.statements import Delete, Explain, Insert, Merge, MultiInsert, Query, Statement, Update

SHOWN_PARTITIONS = 20
"""Of more partitions than this only so many are listed; their sums are there in any case."""

MODES = {"": "simple", "EXTENDED": "extended", "FORMATTED": "formatted", "COST": "cost", "CODEGEN": "codegen"}
"""Spark's words for the modes of EXPLAIN."""

Make = Callable[[Environment, Any, Mapping[str, Any]], "Explainable | None"]


def _insert(env: Environment, statement: Insert, parameters: Mapping[str, Any]) -> Explainable | None:
    """None for INSERT into a table of Spark's own."""
    table = env.find_table(statement.table)
    if table is None and env.known_to_spark(statement.table) and env.registered(statement.table) is None:
        return None
    return InsertCommand(env, statement, parameters, env.get_table(statement.table))


COMMANDS: dict[type[Statement], Make] = {
    Insert: _insert,
    MultiInsert: MultiInsertCommand,
    Update: UpdateCommand,
    Merge: MergeCommand,
    Delete: DeleteCommand,
}
"""The statements whose plan can be told; their commands are made, which resolves all names, and not run."""


def explain(env: Environment, statement: Explain, parameters: Mapping[str, Any]) -> DataFrame:
    """EXPLAIN: one column ``plan``, as Spark's.

    1. Make the statement's command: names, columns and types are resolved, and errors are those of the statement.
    2. Open a read-only transaction for a snapshot; it ends with EXPLAIN.
    3. Have the command plan over that snapshot, and tell what it found. No lock, no write id, no file.

    A query is explained by Spark, over the snapshots of its tables.
    """
    inner, head = statement.inner, f"EXPLAIN {statement.mode} "
    if isinstance(inner, Query):
        return query.with_sources(env, inner.span, parameters, head=head)
    if type(inner) not in COMMANDS:
        raise at(inner.span, UnsupportedError("EXPLAIN is there for queries, INSERT, UPDATE and DELETE only"))
    command = COMMANDS[type(inner)](env, inner, parameters)
    if command is None:
        assert isinstance(inner, Insert)
        text = inner.query.source
        before, after = text[inner.span.start : inner.query.start], text[inner.query.end : inner.span.end]
        return query.with_sources(env, inner.query, parameters, head=f"{head}{before}", tail=after)
    with query.pinned(env) as pin, Views(env.spark) as views:
        found = command.explain(pin.snapshot, views)
        lines = [*_phases(command), *(line for one in found for line in _part(env, one, pin.snapshot, statement.mode))]
        pin.end()
    return env.strings(["plan"], [["\n".join(lines)]])


# --- the text --------------------------------------------------------------------------------------------------------


def _phases(command: Explainable) -> Iterator[str]:
    """The first word and the numbered paragraphs of a command's docstring, each on one line."""
    text = inspect.getdoc(type(command)) or ""
    yield f"== {re.split('[.:]', text)[0]} =="
    for phase in re.findall(r"^\d+\. .*(?:\n {3}.*)*", text, re.MULTILINE):
        yield re.sub(r"\s+", " ", phase).replace("``", "")


def _part(env: Environment, found: Explained, snapshot: Snapshot, mode: str) -> Iterator[str]:
    yield ""
    yield f"== {found.table.full_name} =="
    yield "Locks:"
    yield from (f"  {lock}" for lock in _locks(found.locks))
    if found.target is not None:
        target = found.target
        yield f"Target: {found.table.full_name}"
        yield from _table(env, snapshot, found.table, target.partitions, target.search, None)
    yield from _sources(env, snapshot, found.sources)
    yield ""
    yield "== Spark's plan of the changes =="
    yield "(none: there are no rows to change)" if found.changes is None else _spark_plan(env, found.changes, mode)


def _locks(locks: Sequence[LockComponent]) -> Iterator[str]:
    for lock in locks[:SHOWN_PARTITIONS]:
        place = f"{lock.database}.{lock.table}" if lock.table else lock.database
        partition = f" partition {lock.partition}" if lock.partition else ""
        dynamic = ", partitions as they come" if lock.is_dynamic_partition_write else ""
        yield f"{lock.type.name} {place}{partition} ({lock.operation.name}{dynamic})"
    if len(locks) > SHOWN_PARTITIONS:
        yield f"… and {len(locks) - SHOWN_PARTITIONS} more"


def _sources(env: Environment, snapshot: Snapshot, sources: Sequence[Source | ViewSource]) -> Iterator[str]:
    for source in sources:
        if isinstance(source, ViewSource):
            yield f"Reads: view {source.view.full_name}"
            yield from _sources(env, snapshot, source.sources)
        else:
            yield f"Reads: {source.table.full_name}"
            yield from _table(env, snapshot, source.table, source.partitions, source.search, source.version)


def _table(
    env: Environment,
    snapshot: Snapshot,
    table: Table,
    partitions: tuple[Partition, ...] | None,
    search: Search,
    version: int | None,
) -> Iterator[str]:
    """What the snapshot sees of a table."""
    seen = snapshot.of(table, partitions, version)
    ids = seen.write_ids
    hidden = "".join(
        f", {word}: {', '.join(map(str, found))}"
        for word, found in (("open", ids.open_ids), ("aborted", ids.aborted_ids))
        if found
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
    yield f"  search in ORC files: {_search(search, states)}"


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


def _search(search: Search, states: Sequence[AcidState]) -> str:
    if not search.conjuncts:
        return "none"
    text = " AND ".join(re.sub(r"\s+", " ", c) for c in search.conjuncts)
    small = sum(f.length for s in states for f in _files(s)) < MIN_BYTES
    return f"{text} (not planned: files of less than {MIN_BYTES >> 20} MB are read whole)" if small else text


def _spark_plan(env: Environment, frame: DataFrame, mode: str) -> str:
    jvm = env.spark._jvm
    assert jvm is not None
    execution = frame._jdf.queryExecution()
    return str(jvm.PythonSQLUtils.explainString(execution, MODES.get(mode.upper(), "simple"))).strip()
