"""From the names in a text to frames: which ACID tables it reads, in one snapshot for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acidsql.commands.environment import Environment
from acidsql.commands.places import at
from acidsql.errors import AcidError, UnsupportedError
from acidsql.metastore.model import LockComponent, LockType, Operation, Partition, Table
from acidsql.plan.prune import prune
from acidsql.plan.scan import snapshot_frame
from acidsql.plan.search import Search, searchable_columns
from acidsql.plan.snapshot import TableSnapshot, take_snapshot
from acidsql.plan.views import Views
from acidsql.sql.references import References, TableReference
from acidsql.sql.statements import Span
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


class Snapshot:
    """One snapshot of the metastore, and the tables in it, each asked for once."""

    def __init__(self, env: Environment, txns: ValidTxnList) -> None:
        self._env = env
        self._txns = txns
        self._write_ids: dict[str, ValidWriteIdList] = {}

    def of(self, table: Table, partitions: Sequence[Partition] | None) -> TableSnapshot:
        """A table with the given partitions (None for a table without partition keys)."""
        return take_snapshot(table, self.write_ids(table), self._txns, partitions)

    def write_ids(self, table: Table) -> ValidWriteIdList:
        """The write ids of a table that this snapshot sees."""
        if table.full_name not in self._write_ids:
            [valid] = self._env.metastore.get_valid_write_ids([table.full_name], self._txns)
            self._write_ids[table.full_name] = valid
        return self._write_ids[table.full_name]


@dataclass(frozen=True)
class Source:
    """An ACID table that a text reads at one place, with the partitions that the text leaves of it."""

    reference: TableReference
    table: Table
    partitions: tuple[Partition, ...] | None
    search: Search


def find_sources(env: Environment, references: References, parameters: Mapping[str, Any]) -> list[Source]:
    """The ACID tables of a text. Names that are not ours are left to Spark.

    Raises:
        UnsupportedError: When a table is of a kind that is not read yet, or ROW__ID is used in a text that could not be
            taken apart exactly.
    """
    sources = []
    for reference in references.tables:
        table = env.find_table(reference.name)
        if table is None:
            continue
        _refuse_unread(table, reference, references)
        partitions = _partitions(env, references, reference, table, parameters)
        search = search_of(table, references, reference, reference.alias or table.name, parameters)
        sources.append(Source(reference, table, partitions, search))
    return sources


def _refuse_unread(table: Table, reference: TableReference, references: References) -> None:
    problem = None
    if not table.is_transactional or table.is_insert_only:
        problem = f"Table {table.full_name} is not a full-ACID table: not read by this version"
    elif references.uses_row_id and not references.exact:
        problem = "ROW__ID cannot be used in this query: its scopes could not be taken apart"
    if problem is not None:
        span = reference.name.span
        raise at(span, UnsupportedError(problem))


def _partitions(
    env: Environment,
    references: References,
    reference: TableReference,
    table: Table,
    parameters: Mapping[str, Any],
) -> tuple[Partition, ...] | None:
    if not table.partition_keys:
        return None
    conjuncts = references.conjuncts(reference, frozenset(k.name for k in table.partition_keys))
    return pruned_partitions(env, table, conjuncts, reference.alias or table.name, parameters)


def search_of(
    table: Table,
    references: References | None,
    reference: TableReference | None,
    alias: str,
    parameters: Mapping[str, Any],
) -> Search:
    """The conditions of a text over a table's columns that can skip parts of its files."""
    conjuncts = references.conjuncts(reference, searchable_columns(table)) if references else ()
    return Search(tuple(c.text for c in conjuncts), alias, parameters)


def pruned_partitions(
    env: Environment, table: Table, conjuncts: Iterable[Span], alias: str, parameters: Mapping[str, Any]
) -> tuple[Partition, ...]:
    """The partitions of a table for which all conditions on its keys can hold."""
    found = env.metastore.list_partitions(table.database, table.name)
    texts = [c.text for c in conjuncts]
    return tuple(prune(env.spark, table, found, texts, alias=alias, parameters=parameters))


def bind(env: Environment, references: References, sources: Sequence[Source], snapshot: Snapshot, views: Views) -> str:
    """The text with each ACID table replaced by a view over its snapshot."""
    names: dict[TableReference, str] = {}
    for source in sources:
        try:
            seen = snapshot.of(source.table, source.partitions)
            frame = snapshot_frame(env.spark, seen, row_id=references.uses_row_id, search=source.search)
        except AcidError as e:
            span = source.reference.name.span
            raise at(span, e) from e
        names[source.reference] = views.add(frame)
    return references.splice(names)


def read_locks(sources: Iterable[Source]) -> list[LockComponent]:
    """SHARED_READ on every table that a writing statement reads."""
    tables = {s.table.full_name: s.table for s in sources}
    return [
        LockComponent(LockType.SHARED_READ, t.database, t.name, operation=Operation.SELECT) for t in tables.values()
    ]
