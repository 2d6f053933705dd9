"""From the names in a text to frames: which ACID tables it reads, in one snapshot for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import AcidError, AnalysisError, InvalidValue, TableNotFound, TransactionError, UnsupportedError
from acidsql.metastore.model import LockComponent, LockType, Operation, Partition, Table
from acidsql.plan.history import require_history
from acidsql.plan.prune import prune
from acidsql.plan.scan import snapshot_frame
from acidsql.plan.search import Search, searchable_columns
from acidsql.plan.snapshot import Resolve, TableSnapshot, take_snapshot
from acidsql.plan.views import Views
from acidsql.settings import FETCH_DELETED
from acidsql.sql.references import References, TableReference, analyse_query
from acidsql.sql.statements import Span
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


class Snapshot:
    """One snapshot of the metastore, and the tables in it, each asked for once.

    It is that of an open transaction: until that one ends, nothing is removed that the snapshot needs.
    """

    def __init__(self, env: Environment, txns: ValidTxnList, *, resolve: Resolve = fs.resolve) -> None:
        """``resolve`` finds the file system of a location."""
        self._env = env
        self._resolve = resolve
        self.txns = txns
        self._write_ids: dict[str, ValidWriteIdList] = {}

    def of(self, table: Table, partitions: Sequence[Partition] | None, version: int | None = None) -> TableSnapshot:
        """A table with the given partitions (None for a table without partition keys), as of a write id where given.

        Raises:
            InvalidValue: When the table has no such write id.
            SnapshotTooOld: When files that this needs are gone (Hive 10327).
        """
        valid = self.write_ids(table)
        if version is None:
            return take_snapshot(table, valid, self.txns, partitions, resolve=self._resolve, is_pinned=True)
        if not 0 <= version <= valid.high_watermark:
            raise InvalidValue(
                f"Table {table.full_name} has no version {version}: its write ids go from 0 to {valid.high_watermark}"
            )
        seen = take_snapshot(table, valid.as_of(version), self.txns, partitions, resolve=self._resolve)
        metastore = self._env.metastore
        completed = partial(metastore.completed_writes, table.database, table.name)
        require_history(seen, completed, resolve=self._resolve)
        return seen

    def write_ids(self, table: Table) -> ValidWriteIdList:
        """The write ids of a table that this snapshot sees.

        Raises:
            TransactionError: When the table has another name or place since it was looked up: they are not its own.
        """
        if table.full_name not in self._write_ids:
            metastore = self._env.metastore
            [valid] = metastore.get_valid_write_ids([table.full_name], self.txns)
            now = metastore.find_table(table.database, table.name)
            if now is None or now.location != table.location:
                message = f"Table {table.full_name} was renamed, moved or dropped while the statement began"
                raise TransactionError(message, hint="Run the statement again.")
            self._write_ids[table.full_name] = valid
        return self._write_ids[table.full_name]


@dataclass(frozen=True)
class Source:
    """An ACID table that a text reads at one place, with the partitions that the text leaves of it."""

    reference: TableReference
    table: Table
    partitions: tuple[Partition, ...] | None
    search: Search
    version: int | None = None
    """The write id of VERSION AS OF."""


@dataclass(frozen=True)
class ViewSource:
    """A view of the metastore that reads ACID tables: Spark could not, so its query is run over the snapshot."""

    reference: TableReference
    view: Table
    query: References
    sources: tuple[Source | ViewSource, ...]


Sources = Sequence[Source | ViewSource]


def find_sources(
    env: Environment, references: References, parameters: Mapping[str, Any], inside: tuple[str, ...] = ()
) -> Sources:
    """The ACID tables of a text, also those below views. Names that are not ours are left to Spark.

    Args:
        env: The session.
        references: The text.
        parameters: Values of its named parameters.
        inside: The views in whose queries the text stands, the outermost first.

    Raises:
        UnsupportedError: When a table is of a kind that is not read yet, or ROW__ID is used in a text that could not be
            taken apart exactly.
    """
    sources: list[Source | ViewSource] = []
    for reference in references.tables:
        table = env.registered(reference.name)
        if table is None:
            continue
        version = _version(reference, table, parameters)
        if table.view_text is not None:
            view = _view_source(env, reference, table, inside)
            sources += [view] if view is not None else []
        elif not table.is_transactional:
            _require_in_spark(env, reference, table)
        else:
            _refuse_unread(table, reference, references)
            partitions = partitions_left(env, table, references, reference, reference.alias or table.name, parameters)
            search = search_of(table, references, reference, reference.alias or table.name, parameters)
            sources.append(Source(reference, table, partitions, search, version))
    return sources


def _version(reference: TableReference, table: Table, parameters: Mapping[str, Any]) -> int | None:
    """The write id behind VERSION AS OF, None where the table is read as of now."""
    span = reference.version
    if span is None:
        return None
    text = span.text.strip()
    value = parameters.get(text[1:].strip()) if text.startswith(":") else int(text)
    if not isinstance(value, int) or isinstance(value, bool):
        raise with_location(span, InvalidValue(f"VERSION AS OF takes a write id, a whole number; {text} is {value!r}"))
    if not table.is_transactional:
        kind = "a view" if table.is_view else "not transactional"
        raise with_location(
            span, UnsupportedError(f"{table.full_name} is {kind}: it has no versions that are write ids")
        )
    return value


def _view_source(
    env: Environment, reference: TableReference, view: Table, inside: tuple[str, ...]
) -> ViewSource | None:
    """A view with the ACID tables below it; None where there are none and Spark knows the view itself."""
    text = view.view_text or ""
    try:
        if view.full_name in inside:
            cycle = " -> ".join([*inside[inside.index(view.full_name) :], view.full_name])
            raise AnalysisError(f"Recursive view {view.full_name} detected (cycle: {cycle})")
        query = analyse_query(Span(text, 0, len(text)))
        sources = tuple(find_sources(env, query, {}, (*inside, view.full_name)))
    except AcidError as e:
        span = reference.name.span
        raise with_location(
            span, UnsupportedError(f"View {view.full_name} cannot be read: {e.message}", hint=e.hint)
        ) from e
    if not sources and env.known_to_spark(reference.name):
        return None
    return ViewSource(reference, view, query, sources)


def _require_in_spark(env: Environment, reference: TableReference, table: Table) -> None:
    """A table of the metastore that is not transactional is Spark's to read: say so where Spark does not know it."""
    if env.known_to_spark(reference.name):
        return
    span = reference.name.span
    raise with_location(
        span,
        UnsupportedError(
            f"{table.full_name} is not transactional, so Spark has to read it, and this Spark session does not know it",
            hint="Give connect() a session with Hive support on the same metastore: enableHiveSupport(),"
            " spark.hadoop.hive.metastore.uris, and spark.sql.hive.metastore.version as the server's.",
        ),
    )


def _refuse_unread(table: Table, reference: TableReference, references: References) -> None:
    if not references.virtual_columns:
        return
    problem: AcidError | None = None
    if not references.exact:
        name = references.virtual_columns[0]
        problem = UnsupportedError(f"{name} cannot be used in this query: its scopes could not be taken apart")
    elif references.uses_row_id and table.is_insert_only and len(references.tables) == 1:
        problem = AnalysisError(
            f"The rows of {table.full_name} have no ROW__ID: the table is insert-only transactional",
            hint="Only full-ACID tables number their rows.",
        )
    if problem is not None:
        raise with_location(reference.name.span, problem)


def partitions_left(
    env: Environment,
    table: Table,
    references: References | None,
    reference: TableReference | None,
    alias: str,
    parameters: Mapping[str, Any],
) -> tuple[Partition, ...] | None:
    """The partitions of a table for which the conditions of a text on its keys can hold; None: it has no keys.

    Args:
        env: The session.
        table: The table.
        references: The text; None where it has no condition.
        reference: The table in it; None where the text is an expression over the table.
        alias: What the text calls the table.
        parameters: Values of its named parameters.
    """
    if not table.partition_keys:
        return None
    keys = frozenset(k.name for k in table.partition_keys)
    texts = [c.text for c in references.conjuncts(reference, keys)] if references else []
    found = env.metastore.list_partitions(table.database, table.name)
    return tuple(prune(env.spark, table, found, texts, alias=alias, parameters=parameters))


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


def bind(env: Environment, references: References, sources: Sources, snapshot: Snapshot, views: Views) -> str:
    """The text with each ACID table replaced by a view over its snapshot."""
    names: dict[TableReference, str] = {}
    for source in sources:
        span = source.reference.name.span
        try:
            names[source.reference] = views.add(_frame(env, references, source, snapshot, views))
        except AcidError as e:
            raise with_location(span, e) from e
    return references.splice(names, database=env.database)


def _frame(
    env: Environment, references: References, source: Source | ViewSource, snapshot: Snapshot, views: Views
) -> DataFrame:
    """What a name stands for: a table's snapshot, or a view's answer with the view's own column names."""
    if isinstance(source, Source):
        seen = snapshot.of(source.table, source.partitions, source.version)
        return snapshot_frame(
            env.spark,
            seen,
            row_id=references.uses_row_id,
            search=source.search,
            deleted=_fetches_deleted(env, source.table) if references.uses_row_is_deleted else None,
        )
    view = source.view
    try:
        frame = env.spark.sql(bind(env, source.query, source.sources, snapshot, views))
    except SparkAnalysisException as e:
        raise _unreadable(view, e) from e
    if len(frame.columns) != len(view.columns):
        raise AnalysisError(
            f"The query of view {view.full_name} gives {len(frame.columns)} columns, the view has {len(view.columns)}:"
            " a table below it was altered",
            hint="CREATE OR REPLACE VIEW … AS … takes the columns of today.",
        )
    return frame.toDF(*[c.name for c in view.columns])


def _fetches_deleted(env: Environment, table: Table) -> bool:
    """Whether a query with ROW__IS__DELETED is to have deleted rows: as the table's property says, or the session."""
    return env.settings.value(FETCH_DELETED) or table.parameters.get(FETCH_DELETED.name, "").lower() == "true"


def _unreadable(view: Table, error: SparkAnalysisException) -> AcidError:
    """Why Spark does not take the query of a view."""
    condition = error.getCondition()
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        missing = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        return TableNotFound(f"Table not found {missing} in definition of view {view.full_name}")
    return UnsupportedError(
        f"The query of view {view.full_name}, as the metastore keeps it, is not one of Spark's: {condition}",
        hint="Hive's own names of columns (_c0) and its own functions are not known to Spark; give them names.",
    )


def read_locks(sources: Iterable[Source | ViewSource]) -> list[LockComponent]:
    """SHARED_READ on every table that a writing statement reads."""
    tables = {t.full_name: t for t in _tables(sources)}
    return [
        LockComponent(LockType.SHARED_READ, t.database, t.name, operation=Operation.SELECT) for t in tables.values()
    ]


def _tables(sources: Iterable[Source | ViewSource]) -> Iterator[Table]:
    for source in sources:
        if isinstance(source, Source):
            yield source.table
        else:
            yield from _tables(source.sources)
