"""The snapshot scan: a lazy DataFrame of the rows that a snapshot sees."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import Catalyst, Draft, Expression, union
from acidsql.errors import UnsupportedError
from acidsql.format.names import DeltaName
from acidsql.format.schema import KEY_COLUMNS
from acidsql.metastore.model import Table
from acidsql.plan.deletes import IS_DELETED, PART, hide_deleted
from acidsql.plan.early import early_conditions
from acidsql.plan.files import PATH, events_of, identity, no_rows_of, parquet_rows, plain_rows, with_file_values
from acidsql.plan.layout import EventFiles, Layout, OriginalFiles, layout, plain_layout
from acidsql.plan.originals import original_rows
from acidsql.plan.ranges import FEWEST, Test, may_meet
from acidsql.plan.snapshot import TableSnapshot
from acidsql.plan.text import quote, required
from acidsql.plan.values import Zones, from_key_text, from_orc, with_char_types
from acidsql.plan.versions import MERGE_COLUMNS, STATEMENT, newest
from acidsql.types import Varchar, parse_type, to_spark

ROW_ID = "ROW__ID"
ROW_ID_TYPE = "struct<writeId: bigint, bucketId: int, rowId: bigint>"
ROW_IS_DELETED = "ROW__IS__DELETED"
VIRTUAL_COLUMNS = (ROW_ID, ROW_IS_DELETED)
"""Columns of every table that a star does not include."""
RAW_KEY = "__acid_key_"
"""Prefix of the columns that carry a row's partition as the text of its path."""

FILE_VALUE = "__acid_file_"
"""Prefix of the columns that carry a value as files hold it."""

_PATH = "__acid_path"


@dataclass(frozen=True)
class ScanColumns:
    """Which columns a scan has behind those of its table, in this order.

    Attributes:
        row_id: ``ROW__ID struct<writeId:bigint,bucketId:int,rowId:bigint>``; rows of insert-only tables have none.
        is_deleted: ``ROW__IS__DELETED boolean``.
        raw_keys: The partition's path values, under names with this prefix; None: no such columns.
        file_values: Positions of data columns that come once more, with their wall clocks as Spark's reader gives them:
            not moved into the session's time zone, which may have no such clock.
        file_value_prefix: The beginning of their names.
    """

    row_id: bool = False
    is_deleted: bool = False
    raw_keys: str | None = None
    file_values: tuple[int, ...] = ()
    file_value_prefix: str = FILE_VALUE

    def raw_key_names(self, count: int) -> list[str]:
        """The names of the columns for ``count`` partition keys."""
        return [] if self.raw_keys is None else [f"{self.raw_keys}{i}" for i in range(count)]


def snapshot_frame(
    own: Catalyst,
    snapshot: TableSnapshot,
    zones: Zones,
    columns: ScanColumns | None = None,
    *,
    options: Mapping[str, str] | None = None,
    conditions: Sequence[Expression] = (),
    needed: Collection[str] = (),
    deleted: bool = False,
    bound_to: str | None = None,
) -> DataFrame:
    """The rows of a snapshot.

    Args:
        own: A session of acidsql's own.
        snapshot: What to read.
        zones: The zones that timestamps pass.
        columns: Which columns there are besides the table's; none, when left out.
        options: Options of the ORC reader that let it pass over rows (:mod:`acidsql.catalyst.push_down`).
        conditions: Resolved conditions over data columns that all rows of use meet: others may be left out.
        needed: The table's columns that the frame is probably read for, where that is known.
        deleted: Whether rows that a delete event hides are there too, with true in ``ROW__IS__DELETED`` (Hive's
            ``acid.fetch.deleted.rows``).
        bound_to: A data file without which the rows cannot be read: one that the transaction itself has written, which
            goes if that is rolled back.

    Returns:
        A lazy frame: data columns, then partition keys, named and typed as the table declares them; then ``columns``.
    """
    table, wanted = snapshot.table, columns or ScanColumns()
    scan = _Scan(own, snapshot, zones, wanted.file_values, needed)
    mark = deleted and not table.is_insert_only
    parts = scan.plain() if table.is_insert_only else scan.events(options or {}, conditions, mark=mark)
    if parts:
        answer = _answer(table, wanted, mark)
        if wanted.row_id:
            parts = [part.further({_IDENTITY: own.nullable_struct(_PARTS)}) for part in parts]
        rows = union(part.select(*answer) for part in parts).frame()
    else:
        rows = _empty(own.spark, table, wanted)
    if bound_to is not None:
        rows = union([Draft.of(own, rows), Draft.of(own, no_rows_of(own, bound_to, rows.schema))]).frame()
    return with_char_types(rows, table.all_columns) if parts else rows


def given_rows(own: Catalyst, snapshot: TableSnapshot, zones: Zones) -> list[Draft]:
    """The rows of a full-ACID table that are in the files of a snapshot, whether they are deleted or not.

    Returns:
        Frames with the identity, the values ``c0…`` as the user sees them, :data:`PART` and the keys as text, for
        :func:`row_columns`.

    Raises:
        UnsupportedError: When files have events of ACID version 1, where the old row is not told from the new one.
    """
    found = layout(own.spark, snapshot)
    if any(group.is_merged for group in found.events):
        raise UnsupportedError(
            f"{snapshot.table.full_name} has events of ACID version 1, whose changes cannot be followed",
            hint="A major compaction replaces them: changes after it can be.",
        )
    return _Scan(own, snapshot, zones).given(found, {})


def row_columns(table: Table) -> list[str]:
    """The columns of a table over the rows of a scan."""
    values = [f"c{i} AS {quote(c.name)}" for i, c in enumerate(table.columns)]
    keys = [from_key_text(f"{RAW_KEY}{i}", parse_type(k.type)) for i, k in enumerate(table.partition_keys)]
    return [*values, *(f"{key} AS {quote(k.name)}" for key, k in zip(keys, table.partition_keys, strict=True))]


class _Scan:
    """A snapshot's rows, for each way of reading files.

    All have the identity (but those of an insert-only table), the values ``c0…`` as the user sees them, and the place:
    :data:`PART` and the partition's keys as text.
    """

    def __init__(
        self,
        own: Catalyst,
        snapshot: TableSnapshot,
        zones: Zones,
        file_values: Collection[int] = (),
        needed: Collection[str] = (),
    ) -> None:
        self._needed = needed
        self._own = own
        self._snapshot = snapshot
        self._table = snapshot.table
        self._zones = zones
        self._file_values = file_values
        keys = {f"{RAW_KEY}{i}": pa.string() for i in range(len(snapshot.table.partition_keys))}
        self._place: dict[str, pa.DataType] = {PART: pa.int32(), **keys}

    def plain(self) -> list[Draft]:
        """Rows of an insert-only table: what stands in its files."""
        found = plain_layout(self._snapshot)
        columns, made = self._table.columns, []
        for files, read in ((found.orc, plain_rows), (found.parquet, parquet_rows)):
            if files.files:
                values, scan = read(self._own, files.files, columns, files.width)
                rows = values.select(*self._plain_values(files.retyped), f"{PATH} AS {_PATH}")
                made.append(with_file_values(rows, _PATH, scan, files.places, self._place))
        return made

    def events(
        self, options: Mapping[str, str], conditions: Sequence[Expression] = (), *, mark: bool = False
    ) -> list[Draft]:
        """Rows of a full-ACID table that no delete event hides; with ``mark`` the others too, marked."""
        rows = self.given(layout(self._own.spark, self._snapshot), options, conditions)
        if not rows:
            return []
        hide = hide_deleted(self._own, self._snapshot, mark=mark)
        return rows if hide is None else [hide(part) for part in rows]

    def given(self, found: Layout, options: Mapping[str, str], conditions: Sequence[Expression] = ()) -> list[Draft]:
        """Rows of a full-ACID table, whether a delete event hides them or not."""
        events = [group for group in found.events if not group.is_merged]
        test = may_meet(conditions) if sum(len(group.ranges) for group in events) >= FEWEST else None
        needed = events if test is None else [part for group in events if (part := _needed(group, test)).files]
        rows = [self._inserts(group, options, conditions) for group in needed]
        if found.originals.files:
            rows.append(self._originals(found.originals))
        versions = [self._versions(group) for group in found.events if group.is_merged]
        if versions:
            if found.merged_originals.files:
                versions.append(self._original_versions(found.merged_originals))
            rows.append(Draft.of(self._own, newest(union(versions).frame(), PART)))
        return rows

    def _inserts(self, group: EventFiles, options: Mapping[str, str], conditions: Sequence[Expression]) -> Draft:
        """Visible insert events: each one is a row. Of those that do not meet some of the conditions none is needed."""
        columns = group.columns(self._table)
        searched = options if group.is_searchable else {}
        options = {**searched, **identity(group.files)}
        paths, visible = [f.path for f in group.files], _visible_inserts(self._snapshot)
        place = f"{PATH} AS {_PATH}" if self._table.partition_keys else f"0 AS {PART}"
        rows, scan = events_of(
            self._own,
            paths,
            columns,
            [*KEY_COLUMNS, *self._values(group), place],
            present=group.present,
            options=options,
            visible=visible,
            early=early_conditions(self._own, conditions, self._stored_as_seen(group)),
            needed=[n for c, (n, _) in zip(self._table.columns, columns, strict=True) if c.name in self._needed],
            whole=group.by_position,
        )
        return with_file_values(rows, _PATH, scan, group.places, self._place) if self._table.partition_keys else rows

    def _versions(self, group: EventFiles) -> Draft:
        """Visible events of all kinds, still to be merged."""
        paths, columns = [f.path for f in group.files], group.columns(self._table)
        visible = _visible_write_ids(self._snapshot)
        options = identity(group.files)
        wanted = [*KEY_COLUMNS, *self._values(group), "operation", "currentTransaction", f"{PATH} AS {_PATH}"]
        events, scan = events_of(
            self._own,
            paths,
            columns,
            wanted,
            present=group.present,
            options=options,
            visible=visible,
            whole=group.by_position,
        )
        values = {path: (group.statements[path], *place) for path, place in group.places.items()}
        names = {STATEMENT: pa.int32(), **self._place}
        rows = with_file_values(events, _PATH, scan, values, names)
        return rows.select(*self._version_columns())

    def _originals(self, files: OriginalFiles) -> Draft:
        read = original_rows(self._own, self._table, files, self._place)
        return read.select(*KEY_COLUMNS, *self._plain_values(), *self._place)

    def _original_versions(self, files: OriginalFiles) -> Draft:
        """Rows of original files as the insert events that later events may replace."""
        made = ("0 AS operation", "originalTransaction AS currentTransaction", f"0 AS {STATEMENT}")
        return self._originals(files).select("*", *made).select(*self._version_columns())

    def _version_columns(self) -> list[str]:
        values = [f"c{i}" for i in range(len(self._table.columns))]
        values += [f"f{i}" for i in self._file_values]
        return [*KEY_COLUMNS, *values, *MERGE_COLUMNS, *self._place]

    def _stored_as_seen(self, group: EventFiles) -> dict[str, tuple[str, str]]:
        """Where the values of columns stand, as users see them, by the columns' names."""
        values = set(self._values(group))
        columns = enumerate(zip(self._table.columns, group.columns(self._table), strict=True))
        return {c.name.lower(): ("row", n) for i, (c, (n, _)) in columns if f"row.{quote(n)} AS c{i}" in values}

    def _values(self, group: EventFiles) -> list[str]:
        """The data columns of events, named by their position: a table may call a column ``bucket``."""
        made = []
        shadowed = any(c.name == "row" for c in self._table.columns)
        for i, (name, _) in enumerate(group.columns(self._table)):
            field = f"row.{quote(name)}"
            if shadowed or i in group.retyped:
                # a pushed predicate on `row.x` would be looked up in the table's own column `row`, or is of no use for
                # what is in the files
                field = f"CASE WHEN operation < 2 THEN {field} END"
            made += self._value(i, field, cut=i in group.unbounded)
        return made

    def _plain_values(self, retyped: Collection[int] = ()) -> list[str]:
        """The data columns of files without events; what they were declared as is known of one file at most.

        No predicate on one that is ``retyped`` reaches orc-core: Catalyst does not see that the CASE is always true.
        """
        made = []
        for i in range(len(self._table.columns)):
            field = f"CASE WHEN hash(c{i} IS NULL) % 1 = 0 THEN c{i} END" if i in retyped else f"c{i}"
            made += self._value(i, field, cut=True)
        return made

    def _value(self, position: int, field: str, *, cut: bool) -> list[str]:
        """One value as the user sees it, and as files hold it where that is asked for.

        ``cut`` where it may be longer than its ``varchar`` allows now.
        """
        type = parse_type(self._table.columns[position].type)
        if cut and isinstance(type, Varchar):
            field = f"substring({field}, 1, {type.length})"
        made = [f"{from_orc(field, type, self._zones)} AS c{position}"]
        if position in self._file_values:
            made.append(f"{from_orc(field, type, self._zones.of_files)} AS f{position}")
        return made


def _needed(group: EventFiles, test: Test) -> EventFiles:
    """The files of a group but for those that surely hold no row that passes a test."""
    if not group.is_searchable:
        return group
    return replace(group, files=[f for f in group.files if test(group.ranges.get(f.path, {}))])


def _visible_inserts(snapshot: TableSnapshot) -> str:
    """The predicate that keeps the insert events which the snapshot sees, where each one is a row.

    An event of another kind means that the file's footer did not tell the truth: to go on would give wrong rows.
    """
    message = f"Table {snapshot.table.full_name} has events of ACID version 1 in a file that is not marked so"
    terms = [required("operation = 0", message)]
    visible = _visible_write_ids(snapshot)
    return " AND ".join([*terms, visible] if visible else terms)


def _visible_write_ids(snapshot: TableSnapshot) -> str | None:
    """The predicate that keeps the events of write ids which the snapshot sees; None where there are no others."""
    exceptions = _exceptions_inside(snapshot)
    if exceptions is None:
        return None
    hidden = f"currentTransaction > {snapshot.write_ids.high_watermark}L"
    if exceptions:
        hidden += f" OR currentTransaction IN ({', '.join(f'{w}L' for w in exceptions)})"
    return f"NOT ({hidden})"


def _exceptions_inside(snapshot: TableSnapshot) -> list[int] | None:
    """Write ids that are not seen but may stand in a directory that is read; None where none can.

    A directory of one write id is seen or not as a whole; a compacted or streamed one may hold events of several.
    """
    directories = (d.name for part in snapshot.partitions for d in part.state.data_directories)
    wide = [n for n in directories if isinstance(n, DeltaName) and n.min_write_id != n.max_write_id]
    valid = snapshot.write_ids
    inside = [w for w in valid.exceptions if any(n.min_write_id <= w <= n.max_write_id for n in wide)]
    beyond = any(n.max_write_id > valid.high_watermark for n in wide)
    return inside if inside or beyond else None


_PARTS = (("writeId", "originalTransaction"), ("bucketId", "bucket"), ("rowId", "rowId"))
"""The parts of ROW__ID. They are nullable for Spark, as they are where names are resolved: its optimiser fails on set
operations over a struct that is another one there."""
_IDENTITY = "__acid_identity"


def _answer(table: Table, wanted: ScanColumns, mark: bool) -> list[str]:
    """The columns that are asked for."""
    made = row_columns(table)
    if wanted.row_id:
        made.append(f"{_IDENTITY} AS {ROW_ID}")
    if wanted.is_deleted:
        made.append(f"{IS_DELETED if mark else 'false'} AS {ROW_IS_DELETED}")
    names = wanted.raw_key_names(len(table.partition_keys))
    made += [f"{RAW_KEY}{i} AS {quote(name)}" for i, name in enumerate(names)]
    made += [f"f{i} AS {quote(f'{wanted.file_value_prefix}{i}')}" for i in wanted.file_values]
    return made


def _empty(spark: SparkSession, table: Table, wanted: ScanColumns) -> DataFrame:
    types = [(c.name, to_spark(parse_type(c.type), plain_strings=True)) for c in table.all_columns]
    if wanted.row_id:
        types.append((ROW_ID, ROW_ID_TYPE))
    if wanted.is_deleted:
        types.append((ROW_IS_DELETED, "boolean"))
    types += [(name, "string") for name in wanted.raw_key_names(len(table.partition_keys))]
    types += [(f"{wanted.file_value_prefix}{i}", types[i][1]) for i in wanted.file_values]
    made = [f"CAST(NULL AS {type}) AS {quote(name)}" for name, type in types]
    return with_char_types(spark.sql(f"SELECT {', '.join(made)} WHERE false"), table.all_columns)
