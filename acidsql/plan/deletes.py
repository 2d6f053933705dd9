"""Hiding deleted rows: the delete events of a snapshot as a filter over its rows.

The delete files are read on the driver (:mod:`acidsql.plan.deleted_rows`) and become

* a bitmap, if the deletes fall into few runs of row ids (:mod:`acidsql.plan.bitmap`);
* a broadcast anti join on the row identity otherwise;
* a scan of the delete files and an ordinary anti join, if they are too many for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from acidsql.catalyst import Catalyst, Draft, rows_in_memory
from acidsql.format.bucket import MAX_STATEMENT_ID, STATEMENT_MASK
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.schema import KEY_COLUMNS
from acidsql.plan.bitmap import bitmap_of
from acidsql.plan.deleted_rows import Ids, Origin, delete_events, deleted_rows
from acidsql.plan.files import NEVER, PATH, events_of, with_file_values
from acidsql.plan.snapshot import TableSnapshot

DRIVER_BYTES = 256 << 20
"""Delete files with a larger total size are joined by Spark instead of being read by the driver."""

MOST_BROADCAST = 1_000_000
"""More deleted rows are not broadcast: each takes some hundred bytes of the driver and of every executor."""

PART = "__acid_part"
"""Column with the number of a row's partition in the snapshot: row ids are only unique within a partition."""

_WORDS, _ORIGIN, _PLACE = "__acid_deleted", "__acid_origin", "__acid_place"
_PACKED = f"if({NEVER}, 0L, originalTransaction ^ shiftleft(CAST(bucket AS bigint), 32)) AS {_ORIGIN}"
"""The origin in one column, which Spark would put into each comparison if it were deterministic."""
_MOST_PACKED = (1 << 32) - 1
"""The highest write id that :data:`_ORIGIN` holds."""

IS_DELETED = "__acid_is_deleted"
"""Column that marks deleted rows if they are not hidden."""

DELETED_BY = "__acid_deleted_by"
"""Column with the write id that deleted a row, NULL where it is not deleted."""


@dataclass(frozen=True)
class Deletes:
    """The delete events of a snapshot as a frame that its rows are joined with.

    Attributes:
        keys: The identity of each deleted row, once, each name behind a ``d``; and who deleted it.
        is_small: Whether it is in memory.
        origins: Where the deleted rows come from: partition and write id; None where that is not known.
    """

    keys: Draft
    is_small: bool
    origins: frozenset[tuple[int, int]] | None

    def told(self, rows: Draft) -> Draft:
        """Rows with their identity columns, and :data:`DELETED_BY`."""
        return _with_partner(rows, self.keys.broadcast() if self.is_small else self.keys)


def deletes_since(own: Catalyst, snapshot: TableSnapshot, first: int) -> Deletes | None:
    """The delete events of a snapshot from a write id on; None where there are none."""
    if not _fits_the_driver(snapshot):
        return _scanned_since(own, snapshot, first, None)
    found = []
    for origin, row_ids, by in delete_events(snapshot):
        is_new = by >= first
        if is_new.any():
            found.append((origin, row_ids[is_new], by[is_new]))
    if not found:
        return None
    origins = frozenset((origin.part, origin.write_id) for origin, _, _ in found)
    if sum(len(ids) for _, ids, _ in found) > MOST_BROADCAST:
        return _scanned_since(own, snapshot, first, origins)
    events = pa.table(_keys([(origin, ids) for origin, ids, _ in found]))
    events = events.append_column(DELETED_BY, pa.array(np.concatenate([by for _, _, by in found])))
    # of a row that two events delete the first one did it
    once = events.group_by([f"d{n}" for n in _IDENTITY]).aggregate([(DELETED_BY, "min")])
    keys = once.rename_columns([n.removesuffix("_min") for n in once.column_names])
    return Deletes(Draft.of(own, rows_in_memory(own.spark, keys)), is_small=True, origins=origins)


def _scanned_since(
    own: Catalyst, snapshot: TableSnapshot, first: int, origins: frozenset[tuple[int, int]] | None
) -> Deletes:
    scanned = _scanned_keys(own, snapshot, "currentTransaction").filter(f"dcurrentTransaction >= {first}L")
    by_row = scanned.frame().groupBy(*[f"d{n}" for n in _IDENTITY])
    once = by_row.agg(F.min("dcurrentTransaction").alias(DELETED_BY))
    return Deletes(Draft.of(own, once), is_small=False, origins=origins)


def hide_deleted(own: Catalyst, snapshot: TableSnapshot, *, mark: bool = False) -> Callable[[Draft], Draft] | None:
    """The delete filter of a snapshot, for its rows with their identity columns and :data:`PART`; None: it has none.

    Args:
        own: A session of acidsql's own.
        snapshot: The snapshot.
        mark: Keep deleted rows, marked in a column :data:`IS_DELETED`.
    """
    if not _fits_the_driver(snapshot):
        return _scan_join(own, snapshot, mark)
    deleted = deleted_rows(snapshot)
    if not deleted:
        return (lambda rows: rows.with_columns({IS_DELETED: F.lit(False)})) if mark else None
    is_packed = not mark and snapshot.write_ids.high_watermark <= _MOST_PACKED
    hidden = _by_bitmap(own, deleted) if is_packed else None
    if hidden is not None:
        return hidden
    if sum(len(run) for runs in deleted.values() for run in runs) > MOST_BROADCAST:
        return _scan_join(own, snapshot, mark)
    return _broadcast_join(own, deleted, mark)


def _fits_the_driver(snapshot: TableSnapshot) -> bool:
    files = (f for part in snapshot.partitions for d in part.state.delete_deltas for f in d.files)
    return sum(f.length for f in files) <= DRIVER_BYTES


def _by_bitmap(own: Catalyst, deleted: Mapping[Origin, Sequence[Ids]]) -> Callable[[Draft], Draft] | None:
    """A filter over one array of 64-bit words; None where the deletes are too scattered for it.

    The code that Spark generates for it is the same whatever was deleted: what differs stands in arrays.
    """
    bitmap = bitmap_of(own, deleted)
    if bitmap is None:
        return None
    found = _place_of(list(bitmap.places))
    begins, sizes = (_bits(words) for words in zip(*bitmap.places.values(), strict=True))
    # row ids beyond an origin's words are not deleted: they must not meet the words of the next one; nor are those of
    # the place 0, that of no origin
    word = f"{_WORDS}[CAST(shiftright({begins}[{_PLACE}] | rowId, 6) AS int)]"
    is_kept = f"shiftright({word}, CAST(rowId & 63 AS int)) & 1L = 0L"
    kept = f"{_ALONE} AND if(rowId < {sizes}[{_PLACE}], {is_kept}, true)"

    def hidden(rows: Draft) -> Draft:
        located = rows.select("*", _PACKED).select("*", f"if({NEVER}, 0, {found}) AS {_PLACE}")
        return located.with_columns({_WORDS: bitmap.frame.scalar()}).filter(kept)

    return hidden


def _bits(words: Sequence[int]) -> str:
    """Numbers of words as an array of numbers of bits, by place."""
    return f"array({', '.join(f'{64 * count}L' for count in (0, *words))})"


def _place_of(origins: Sequence[Origin]) -> str:
    """The number of a row's origin among some, from 1; 0 where it is none of them.

    In as much code for many partitions as for two: HotSpot does not compile a method of more than 8,000 bytes, and each
    row went through it.
    """
    places: dict[int, dict[int, int]] = {}
    for place, origin in enumerate(origins, start=1):
        places.setdefault(origin.part, {})[_packed(origin)] = place
    if len(places) == 1:
        [(part, known)] = places.items()
        return f"if({PART} = {part}, CAST(array_position({_longs(known)}, {_ORIGIN}) AS int), 0)"
    numbers = {part: number for number, part in enumerate(places, start=1)}
    last = max(places)
    # as one text: a list of thousands of numbers takes Spark's parser long
    texts = ",".join(str(numbers.get(part, 0)) for part in range(last + 1))
    number = f"if({PART} > {last}, 0, CAST(split('{texts}', ',') AS array<int>)[{PART}])"
    by_number = [{0: 0}, *places.values()]
    origins_of = f"array({', '.join(map(_longs, by_number))})[{number}]"
    places_of = f"array({', '.join(_longs([0, *known.values()]) for known in by_number)})[{number}]"
    return f"CAST({places_of}[CAST(array_position({origins_of}, {_ORIGIN}) AS int)] AS int)"


def _longs(numbers: Iterable[int]) -> str:
    return f"array({', '.join(f'{number}L' for number in numbers)})"


def _packed(origin: Origin) -> int:
    """Write id and bucket property as the signed number that :data:`_ORIGIN` is."""
    bits = (origin.bucket & 0xFFFFFFFF) << 32 | origin.write_id
    return bits - (1 << 64) if bits >> 63 else bits


_IDENTITY = (PART, *KEY_COLUMNS)
_IS_PARTNER = " AND ".join(f"{name} = d{name}" for name in _IDENTITY)
_ALONE = "spark_partition_id() >= 0"
"""Makes a filter non-deterministic: Spark joins it with no other, and pushes none below it. A condition of the user's
would else see deleted rows, and fail for values that are not in the table."""


def _join(rows: Draft, keys: Draft, mark: bool) -> Draft:
    """Rows that have no partner in ``keys``, whose columns are those of the identity behind a ``d``; with ``mark`` all
    rows, and whether they have one."""
    if not mark:
        return rows.join(keys, _IS_PARTNER, "leftanti").filter(_ALONE)
    return _with_partner(rows, keys, f"d{PART} IS NOT NULL AS {IS_DELETED}")


def _with_partner(rows: Draft, keys: Draft, *told: str) -> Draft:
    """All rows, with the columns of their partner in ``keys`` but for its identity, and what is told of it."""
    theirs = ", ".join(f"d{name}" for name in _IDENTITY)
    return rows.join(keys, _IS_PARTNER, "left").select(f"* EXCEPT ({theirs})", *told)


def _broadcast_join(own: Catalyst, deleted: Mapping[Origin, Sequence[Ids]], mark: bool) -> Callable[[Draft], Draft]:
    table = rows_in_memory(own.spark, pa.table(_keys([(o, run) for o, runs in deleted.items() for run in runs])))
    if mark:  # a row that two events delete is one row
        table = table.distinct()
    small = Draft.of(own, table).broadcast()
    return lambda rows: _join(rows, small, mark)


def _keys(runs: Sequence[tuple[Origin, Ids]]) -> dict[str, pa.Array]:
    """Rows by their identity, each name behind a ``d``, in columns; there is at least one run."""
    counts = [len(ids) for _, ids in runs]
    origins = np.array([(o.part, o.write_id, o.bucket) for o, _ in runs], dtype=np.int64).repeat(counts, axis=0)
    return {
        f"d{PART}": pa.array(origins[:, 0].astype(np.int32)),
        "doriginalTransaction": pa.array(origins[:, 1]),
        "dbucket": pa.array(origins[:, 2].astype(np.int32)),
        "drowId": pa.array(np.concatenate([ids for _, ids in runs])),
    }


def _scan_join(own: Catalyst, snapshot: TableSnapshot, mark: bool) -> Callable[[Draft], Draft]:
    """Too many deletes for the driver: Spark scans the delete files, and joins as it sees fit."""
    named = _scanned_keys(own, snapshot)
    keys = Draft.of(own, named.frame().distinct() if mark else named.frame())
    return lambda rows: _join(rows, keys, mark)


def _scanned_keys(own: Catalyst, snapshot: TableSnapshot, *further: str) -> Draft:
    """The delete events of a snapshot, scanned by Spark: the identity of the deleted rows, each name behind a ``d``,
    and further columns of the events."""
    parts = enumerate(snapshot.partitions)
    numbers = {f.path: (n,) for n, p in parts for d in p.state.delete_deltas for f in d.files}
    first = snapshot.table.columns[0]
    valid = snapshot.write_ids
    hidden = f"currentTransaction > {valid.high_watermark}L"
    if valid.exceptions:
        hidden += f" OR currentTransaction IN ({', '.join(f'{w}L' for w in valid.exceptions)})"
    names = (*_IDENTITY[1:], *further)
    wanted = [*(f"{n} AS d{n}" for n in names), f"{PATH} AS dpath"]
    visible = f"NOT ({hidden}) AND ({_reaches_expression(snapshot)})"
    keys, scan = events_of(own, list(numbers), ((first.name, first.type),), wanted, visible=visible)
    keys = with_file_values(keys, "dpath", scan, numbers, {f"d{PART}": pa.int32()})
    return keys.select(*[f"d{n}" for n in (PART, *names)])


_DIRECTORY = r"^.*/delete_delta_\\d+_(\\d+)(?:_(\\d+))?(?:_v\\d+)?/"
"""The directory of a file of delete events in SQL: its last write id, and its statement."""


def _reaches_expression(snapshot: TableSnapshot) -> str:
    """Which rows a delete event reaches, as :mod:`acidsql.plan.deleted_rows` finds out, without knowing the partition:
    rows older than the last write id of its directory, and those of a directory that began before it."""
    deleted, last = "originalTransaction", f"CAST(regexp_extract({PATH}, '{_DIRECTORY}', 1) AS bigint)"
    statement = f"coalesce(try_cast(regexp_extract({PATH}, '{_DIRECTORY}', 2) AS int), {MAX_STATEMENT_ID})"
    rules = [f"{deleted} < {last}", f"({deleted} = {last} AND (bucket & {STATEMENT_MASK}) < {statement})"]
    for part in snapshot.partitions:
        base = part.state.base
        if base is not None and isinstance(base.name, BaseName):
            rules.append(f"{deleted} <= {base.name.write_id}L")
        for directory in part.state.insert_deltas:
            name = directory.name
            if isinstance(name, DeltaName) and name.min_write_id != name.max_write_id:
                first = name.min_write_id
                began = f"({first}L < {last} OR ({first}L = {last} AND {name.first_statement} < {statement}))"
                rules.append(f"({deleted} BETWEEN {first}L AND {name.max_write_id}L AND {began})")
    return " OR ".join(rules)
