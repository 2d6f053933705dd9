"""The snapshot scan: a lazy DataFrame of the rows that a snapshot sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from acidsql import fs
from acidsql.errors import CorruptFile
from acidsql.format.directory import AcidDirectory, AcidFile
from acidsql.format.names import DeltaName
from acidsql.format.orc import read_footer
from acidsql.format.schema import AcidSchema
from acidsql.metastore.model import Table
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.cache import FileCache
from acidsql.plan.deletes import PART, hide_deleted
from acidsql.plan.files import PATH, event_frame, with_file_values
from acidsql.plan.search import MIN_BYTES, Search, reader_options
from acidsql.plan.snapshot import TableSnapshot
from acidsql.plan.values import Zones, from_key_text, from_orc, literal, quote, with_char_types, zones_of
from acidsql.types import parse_type, to_spark

ROW_ID = "ROW__ID"
RAW_KEY = "__acid_key_"
"""Prefix of the columns that carry a row's partition as the text of its path, for whoever writes events back."""

_PATH = "__acid_path"
_footers = FileCache[tuple[tuple[str, ...], bool]](capacity=20000)


def snapshot_frame(
    spark: SparkSession,
    snapshot: TableSnapshot,
    *,
    row_id: bool = False,
    raw_keys: bool = False,
    search: Search | None = None,
) -> DataFrame:
    """The rows of a snapshot.

    Args:
        spark: The session.
        snapshot: What to read.
        row_id: Whether a column ``ROW__ID struct<writeId:bigint,bucketId:int,rowId:bigint>`` comes first.
        raw_keys: Whether columns ``__acid_key_0…`` with the partition's path values come last.
        search: Conditions that the rows are going to be filtered by; parts of files that they rule out are skipped.

    Returns:
        A lazy frame: data columns, then partition keys, named and typed as the table declares them.
    """
    table, zones = snapshot.table, zones_of(spark)
    groups = _by_column_names(snapshot)
    if not groups:
        return _empty(spark, table, row_id, raw_keys)
    hide = hide_deleted(spark, snapshot)
    answer = _answer(table, row_id, raw_keys)
    parts = []
    for group in groups:
        options = _search_options(spark, snapshot, group, search)
        parts.append(hide(_group_frame(spark, snapshot, group, zones, options)).selectExpr(*answer))
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.union(part)
    return with_char_types(merged, table.all_columns)


def _search_options(
    spark: SparkSession, snapshot: TableSnapshot, group: _Group, search: Search | None
) -> dict[str, str]:
    """Only where the files have the table's names and orc-core takes them for ACID ones: there the rule is known."""
    small = sum(f.length for f in group.files) < MIN_BYTES
    if search is None or not search.conjuncts or small or not (group.own_names and group.exact):
        return {}
    return reader_options(spark, snapshot.table, search, group.files[0].path)


def _group_frame(
    spark: SparkSession, snapshot: TableSnapshot, group: _Group, zones: Zones, options: dict[str, str]
) -> DataFrame:
    """Visible insert events of one group of files: identity, columns ``c0…``, and the partition that they are of."""
    table = snapshot.table
    columns = group.columns(table)
    events = event_frame(spark, [f.path for f in group.files], columns, group.present, options)
    visible = events.filter(_visible_events(snapshot))
    flat = ["originalTransaction", "bucket", "rowId", *_values(table, columns, zones)]
    if not table.partition_keys:
        return visible.selectExpr(*flat, f"0 AS {PART}")
    raw = {PART: pa.int32(), **{f"{RAW_KEY}{i}": pa.string() for i in range(len(table.partition_keys))}}
    return with_file_values(
        spark, visible.selectExpr(*flat, f"{PATH} AS {_PATH}"), _PATH, events.inputFiles(), group.values, raw
    )


def _data_directories(snapshot: TableSnapshot) -> Iterator[tuple[int, AcidDirectory]]:
    """The directories that are read for rows, each with the number of its partition in the snapshot."""
    for number, part in enumerate(snapshot.partitions):
        if part.state.base is not None:
            yield number, part.state.base
        for delta in part.state.insert_deltas:
            yield number, delta


@dataclass
class _Group:
    """Files whose columns have the same names.

    Attributes:
        names: Those names.
        files: The files.
        present: How many of the columns every one of them has.
        own_names: Whether they are the table's own.
        exact: Whether orc-core takes all of them for ACID files (the six names letter by letter).
        values: The number of each file's partition, and its key values as path text.
    """

    names: tuple[str, ...]
    files: list[AcidFile]
    present: int
    own_names: bool
    exact: bool
    values: dict[str, tuple[int | str | None, ...]]

    def columns(self, table: Table) -> tuple[tuple[str, str], ...]:
        """Name in the files and type of each column of the table."""
        own = self.names
        return tuple((own[i] if i < len(own) else c.name, c.type) for i, c in enumerate(table.columns))


def _by_column_names(snapshot: TableSnapshot) -> list[_Group]:
    """Files grouped by the names of their columns.

    Hive finds a column by its position (a renamed column keeps its values), Spark by its name: files with other names
    are read under those. Missing columns at the end are NULL, wider types are the ORC reader's work. All files of a
    directory come from one statement or one compaction, so one footer tells for all.
    """
    wanted = tuple(c.name for c in snapshot.table.columns)
    groups: dict[tuple[str, ...], _Group] = {}
    for number, directory in _data_directories(snapshot):
        files = directory.files
        if not files:
            continue
        empty = next((f for f in files if not f.length), None)
        if empty is not None:  # Spark would pass over it as if it held no rows
            raise CorruptFile(f"{empty.path} is empty: not an ORC file")
        found, exact = _column_names(files[0])
        names = found[: len(wanted)]
        same = tuple(n.lower() for n in names) == wanted[: len(names)]
        key = wanted if same else names
        group = groups.setdefault(key, _Group(key, [], len(names), same, True, {}))
        group.exact = group.exact and exact
        group.files.extend(files)
        group.values.update({f.path: (number, *_key_values(snapshot, number)) for f in files})
        group.present = min(group.present, len(names))
    return list(groups.values())


def _key_values(snapshot: TableSnapshot, number: int) -> list[str | None]:
    partition = snapshot.partitions[number].partition
    values = partition.values if partition is not None else ()
    return [None if v == DEFAULT_PARTITION else v for v in values]


def _column_names(file: AcidFile) -> tuple[tuple[str, ...], bool]:
    """Names of a file's columns, and whether its event columns have exactly the names that orc-core knows."""

    def read() -> tuple[tuple[str, ...], bool]:
        filesystem, path = fs.resolve(file.path)
        footer = read_footer(filesystem, path)
        return tuple(name for name, _ in footer.row_type.fields), footer.acid_schema is AcidSchema.EXACT

    return _footers.get(file, read)


def _visible_events(snapshot: TableSnapshot) -> str:
    """The predicate that keeps the insert events which the snapshot sees."""
    message = literal(f"Table {snapshot.table.full_name} holds update events of ACID version 1, which are not read yet")
    terms = [f"CASE operation WHEN 0 THEN true WHEN 2 THEN false ELSE raise_error({message}) END"]
    exceptions = _exceptions_inside(snapshot)
    if exceptions is not None:
        # inside CASE it cannot be pushed to orc-core, which would look the name up among the table's own columns
        hidden = f"currentTransaction > {snapshot.write_ids.high_watermark}L"
        if exceptions:
            hidden += f" OR currentTransaction IN ({', '.join(f'{w}L' for w in exceptions)})"
        terms.append(f"CASE WHEN {hidden} THEN false ELSE true END")
    return " AND ".join(terms)


def _exceptions_inside(snapshot: TableSnapshot) -> list[int] | None:
    """Write ids that are not seen but may stand in a directory that is read; None where none can.

    A directory of one write id is seen or not as a whole; a compacted or streamed one may hold events of several.
    """
    wide = [
        d.name
        for _, d in _data_directories(snapshot)
        if isinstance(d.name, DeltaName) and d.name.min_write_id != d.name.max_write_id
    ]
    valid = snapshot.write_ids
    inside = [w for w in valid.exceptions if any(n.min_write_id <= w <= n.max_write_id for n in wide)]
    beyond = any(n.max_write_id > valid.high_watermark for n in wide)
    return inside if inside or beyond else None


def _values(table: Table, columns: tuple[tuple[str, str], ...], zones: Zones) -> list[str]:
    """The data columns as the user sees them, named by their position: a table may call a column ``bucket``."""
    made = []
    shadowed = any(c.name == "row" for c in table.columns)
    for i, ((name, _), column) in enumerate(zip(columns, table.columns, strict=True)):
        field = f"row.{quote(name)}"
        if shadowed:  # a pushed predicate on `row.x` would be looked up in the table's own column `row`
            field = f"CASE WHEN operation = 0 THEN {field} END"
        made.append(f"{from_orc(field, parse_type(column.type), zones)} AS c{i}")
    return made


def _answer(table: Table, row_id: bool, raw_keys: bool) -> list[str]:
    """The columns that are asked for. The ``^ 0`` keeps user predicates on ROW__ID out of ORC's search arguments, which
    orc-core would apply to a table column of that name."""
    identity = "named_struct('writeId', originalTransaction ^ 0L, 'bucketId', bucket ^ 0, 'rowId', rowId ^ 0L)"
    made = [f"{identity} AS {quote(ROW_ID)}"] if row_id else []
    made += [f"c{i} AS {quote(c.name)}" for i, c in enumerate(table.columns)]
    made += [
        f"{from_key_text(f'{RAW_KEY}{i}', parse_type(k.type))} AS {quote(k.name)}"
        for i, k in enumerate(table.partition_keys)
    ]
    if raw_keys:
        made += [f"{RAW_KEY}{i}" for i in range(len(table.partition_keys))]
    return made


def _empty(spark: SparkSession, table: Table, row_id: bool, raw_keys: bool) -> DataFrame:
    made = [f"CAST(NULL AS struct<writeId: bigint, bucketId: int, rowId: bigint>) AS {quote(ROW_ID)}"] if row_id else []
    for column in table.all_columns:
        type = to_spark(parse_type(column.type), plain_strings=True)
        made.append(f"CAST(NULL AS {type}) AS {quote(column.name)}")
    if raw_keys:
        made += [f"CAST(NULL AS string) AS {quote(f'{RAW_KEY}{i}')}" for i in range(len(table.partition_keys))]
    return spark.sql(f"SELECT {', '.join(made)} WHERE false")
