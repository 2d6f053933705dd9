"""Hiding deleted rows: the delete events of a snapshot as a filter over its rows.

The delete files are read on the driver (they are immutable, so their keys are cached) and become

* a bitmap, if the deletes fall into few runs of row ids: one array in the plan, tested by an expression, which works
  with whole-stage code generation and needs no join;
* a broadcast anti join on the row identity otherwise;
* a scan of the delete files and an ordinary anti join, if they are too many for the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from acidsql import fs
from acidsql.catalyst import Catalyst, Draft
from acidsql.format.bucket import STATEMENT_MASK, decode
from acidsql.format.directory import AcidDirectory, AcidFile, AcidState, qualifies
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.orc import read_keys
from acidsql.format.schema import KEY_COLUMNS
from acidsql.plan.cache import FileCache
from acidsql.plan.files import PATH, events_of, with_file_values
from acidsql.plan.snapshot import TableSnapshot
from acidsql.valid_ids import ValidWriteIdList

BITMAP_GROUPS = 32
"""With more runs than this the bitmap's CASE is slower than a join."""
BITMAP_WORDS = 4 << 20
DRIVER_BYTES = 256 << 20
"""Delete files with a larger total size are joined by Spark instead of being read by the driver."""

PART = "__acid_part"
"""Column with the number of a row's partition in the snapshot: row ids are only unique within a partition."""

_WORDS = "__acid_deleted"
_ENTRY_BYTES = 1024
"""What the keys of a file take in memory beside their values."""
Ids = npt.NDArray[np.int64]

_keys = FileCache[pa.Table](64 << 20, weigh=lambda keys: keys.nbytes + _ENTRY_BYTES)


@dataclass(frozen=True)
class _Keys:
    """Identities of deleted rows of one partition."""

    part: int
    write_ids: Ids
    buckets: Ids
    row_ids: Ids


IS_DELETED = "__acid_is_deleted"
"""Column that marks deleted rows if they are not hidden."""


def hide_deleted(own: Catalyst, snapshot: TableSnapshot, *, mark: bool = False) -> Callable[[Draft], Draft] | None:
    """The delete filter of a snapshot, for its rows with their identity columns and :data:`PART`; None: it has none.

    Args:
        own: A session of acidsql's own.
        snapshot: The snapshot.
        mark: Keep deleted rows, marked in a column :data:`IS_DELETED`.
    """
    size = sum(f.length for part in snapshot.partitions for d in part.state.delete_deltas for f in d.files)
    if size > DRIVER_BYTES:
        return _scan_join(own, snapshot, mark)
    keys = [k for k in _load(snapshot) if len(k.row_ids)]
    if not keys:
        return (lambda rows: rows.with_columns({IS_DELETED: F.lit(False)})) if mark else None
    return (None if mark else _bitmap(own, keys)) or _broadcast_join(own, keys, mark)


def _load(snapshot: TableSnapshot) -> Iterator[_Keys]:
    for number, part in enumerate(snapshot.partitions):
        found = [
            _valid_keys(file, directory, part.state, snapshot.write_ids)
            for directory in part.state.delete_deltas
            for file in directory.files
        ]
        if not found:
            continue
        identities = np.concatenate(found)
        yield _Keys(number, identities[:, 0], identities[:, 1], identities[:, 2])


def _valid_keys(file: AcidFile, directory: AcidDirectory, state: AcidState, valid: ValidWriteIdList) -> Ids:
    """(originalTransaction, bucket, rowId) of the delete events of a file that hide a row in this snapshot."""
    filesystem, path = fs.resolve(file.path)
    table = _keys.get(file, lambda: read_keys(filesystem, path))
    write_ids, buckets, row_ids, current = (table.column(i).to_numpy().astype(np.int64) for i in range(4))
    name = directory.name
    assert isinstance(name, DeltaName)
    keep = np.ones(len(row_ids), dtype=bool)
    if name.min_write_id != name.max_write_id:
        keep &= current <= valid.high_watermark
        keep &= ~np.isin(current, np.array(valid.exceptions, dtype=np.int64))
    # A delete hides rows of directories that began before it only: see format.directory.qualifies. Rows older than the
    # delete are in such a directory by their own write id; the others are rare and looked at one by one.
    for i in np.nonzero(keep & (write_ids >= name.max_write_id))[0]:
        keep[i] = _reaches(name, int(write_ids[i]), int(buckets[i]), state)
    return np.stack([write_ids[keep], buckets[keep], row_ids[keep]], axis=1)


def _reaches(delete: DeltaName, write_id: int, bucket: int, state: AcidState) -> bool:
    if state.base is not None and isinstance(state.base.name, BaseName) and write_id <= state.base.name.write_id:
        return True
    statement = decode(bucket).statement_id
    for directory in state.insert_deltas:
        name = directory.name
        if isinstance(name, DeltaName) and name.min_write_id <= write_id <= name.max_write_id:
            if name.min_write_id == name.max_write_id and max(name.statement_id, 0) != statement:
                continue
            if qualifies(delete, name):
                return True
    return False


def _bitmap(own: Catalyst, keys: list[_Keys]) -> Callable[[Draft], Draft] | None:
    """A filter over one array of 64-bit words; None where the deletes are too scattered for it."""
    runs = list(_runs(keys))
    if len(runs) > BITMAP_GROUPS:
        return None
    # Largest first and each a power of two, the words of a run begin at a multiple of their number: the place of a word
    # is an OR of two numbers, where a sum would be checked for an overflow in each row.
    sizes = [1 << (int(rows.max()) // 64).bit_length() for *_, rows in runs]
    if sum(sizes) > BITMAP_WORDS:
        return None
    words = np.zeros(sum(sizes), dtype=np.uint64)
    cases, base = [], 0
    for size, (part, write_id, bucket, rows) in sorted(zip(sizes, runs, strict=True), key=lambda r: -r[0]):
        np.bitwise_or.at(words, base + (rows >> 6), np.uint64(1) << (rows & 63).astype(np.uint64))
        # row ids beyond a run's words are not deleted: they must not meet the words of the next one
        here = f"{PART} = {part} AND originalTransaction = {write_id}L AND bucket = {bucket} AND rowId < {size * 64}L"
        cases.append(f"WHEN {here} THEN {base}")
        base += size
    array = pa.array([words.view(np.int64)], type=pa.list_(pa.int64()))
    bits = own.spark.createDataFrame(pa.table({"words": array})).scalar()
    word = f"get({_WORDS}, CASE {' '.join(cases)} END | CAST(shiftright(rowId, 6) AS int))"
    kept = f"{_ALONE} AND coalesce(getbit({word}, CAST(rowId & 63 AS int)), 0Y) = 0Y"
    return lambda rows: rows.with_columns({_WORDS: bits}).filter(kept)


def _runs(keys: list[_Keys]) -> Iterator[tuple[int, int, int, Ids]]:
    """The deleted row ids by partition, write id and bucket property."""
    for k in keys:
        pairs, place = np.unique((k.write_ids << 32) | k.buckets, return_inverse=True)
        for i, pair in enumerate(pairs.tolist()):
            yield k.part, pair >> 32, pair & 0xFFFFFFFF, k.row_ids[place == i]


_IDENTITY = (PART, *KEY_COLUMNS)
_ALONE = "spark_partition_id() >= 0"
"""Makes a filter non-deterministic: Spark joins it with no other, and pushes none below it. A condition of the user's
would else see deleted rows, and fail for values that are not in the table."""


def _join(rows: Draft, keys: Draft, mark: bool) -> Draft:
    """Rows that have no partner in ``keys``, whose columns are those of the identity behind a ``d``; with ``mark`` all
    rows, and whether they have one."""
    condition = " AND ".join(f"{name} = d{name}" for name in _IDENTITY)
    if not mark:
        return rows.join(keys, condition, "leftanti").filter(_ALONE)
    theirs = ", ".join(f"d{name}" for name in _IDENTITY)
    return rows.join(keys, condition, "left").select(f"* EXCEPT ({theirs})", f"d{PART} IS NOT NULL AS {IS_DELETED}")


def _broadcast_join(own: Catalyst, keys: list[_Keys], mark: bool) -> Callable[[Draft], Draft]:
    parts = np.concatenate([np.full(len(k.row_ids), k.part, dtype=np.int32) for k in keys])
    columns = {
        f"d{PART}": pa.array(parts),
        "doriginalTransaction": pa.array(np.concatenate([k.write_ids for k in keys])),
        "dbucket": pa.array(np.concatenate([k.buckets for k in keys]).astype(np.int32)),
        "drowId": pa.array(np.concatenate([k.row_ids for k in keys])),
    }
    table = own.spark.createDataFrame(pa.table(columns))
    if mark:  # a row that two events delete is one row
        table = table.distinct()
    small = Draft.of(own, table).broadcast()
    return lambda rows: _join(rows, small, mark)


def _scan_join(own: Catalyst, snapshot: TableSnapshot, mark: bool) -> Callable[[Draft], Draft]:
    """Too many deletes for the driver: Spark scans the delete files, and joins as it sees fit."""
    parts = enumerate(snapshot.partitions)
    numbers = {f.path: (n,) for n, p in parts for d in p.state.delete_deltas for f in d.files}
    first = snapshot.table.columns[0]
    valid = snapshot.write_ids
    hidden = f"currentTransaction > {valid.high_watermark}L"
    if valid.exceptions:
        hidden += f" OR currentTransaction IN ({', '.join(f'{w}L' for w in valid.exceptions)})"
    visible = f"CASE WHEN {hidden} THEN false ELSE true END"
    wanted = [*(f"{n} AS d{n}" for n in _IDENTITY[1:]), f"{PATH} AS dpath"]
    visible = f"({visible}) AND ({_reaches_expression(snapshot)})"
    keys, scan = events_of(own, list(numbers), ((first.name, first.type),), wanted, visible=visible)
    keys = with_file_values(keys, "dpath", scan, numbers, {f"d{PART}": pa.int32()})
    named = keys.select(*[f"d{n}" for n in _IDENTITY])
    keys = Draft.of(own, named.frame().distinct() if mark else named.frame())
    return lambda rows: _join(rows, keys, mark)


def _reaches_expression(snapshot: TableSnapshot) -> str:
    """The rule of :func:`_reaches` without knowing the partition: older rows, and rows inside a compacted directory."""
    deleted, deleting = "originalTransaction", "currentTransaction"
    statement = rf"coalesce(try_cast(regexp_extract({PATH}, 'delete_delta_\\d+_\\d+_(\\d+)/', 1) AS int), 0)"
    rules = [f"{deleted} < {deleting}", f"({deleted} = {deleting} AND (bucket & {STATEMENT_MASK}) < {statement})"]
    for part in snapshot.partitions:
        base = part.state.base
        if base is not None and isinstance(base.name, BaseName):
            rules.append(f"{deleted} <= {base.name.write_id}L")
        for directory in part.state.insert_deltas:
            name = directory.name
            if isinstance(name, DeltaName) and name.min_write_id != name.max_write_id:
                between = f"{deleted} BETWEEN {name.min_write_id}L AND {name.max_write_id}L"
                rules.append(f"({between} AND {deleting} > {name.min_write_id}L)")
    return " OR ".join(rules)
