"""What happened to a table between two write ids: which files tell it, and whether all of them are still there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acidsql import fs
from acidsql.errors import InvalidValue, SnapshotTooOld, UnsupportedError
from acidsql.format.directory import AcidState, acid_state, look_again
from acidsql.format.history import Replacements, last_forgotten, replacements
from acidsql.format.names import DeltaName
from acidsql.metastore.model import Partition, Table
from acidsql.plan.snapshot import PartitionState, Resolve, TableSnapshot, partition_names
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True)
class Changes:
    """Which changes are asked for.

    Attributes:
        first: The first write id.
        last: The last one; None for the newest whose changes are final.
        keys: The columns that name a row, in lower case: a row deleted and one inserted with the same values of them
            are a row before and after an update.
    """

    first: int
    last: int | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Segment:
    """A part of the time in which no rows were replaced as a whole.

    Attributes:
        first: Its first write id.
        last: Its last one; smaller than ``first`` where it is only to tell what was there.
        is_overwritten: Whether the following write id replaces all rows (INSERT OVERWRITE, TRUNCATE).
        snapshot: What its last write id sees, of the partitions that have such a part of time.
    """

    first: int
    last: int
    is_overwritten: bool
    snapshot: TableSnapshot


@dataclass(frozen=True)
class TableHistory:
    """What happened to a table.

    Attributes:
        table: The table.
        changes: What was asked for.
        write_ids: What the statement sees.
        segments: The parts of the time.
        committed_at: When write ids were committed, in seconds since 1970, as far as it is on record.
    """

    table: Table
    changes: Changes
    write_ids: ValidWriteIdList
    segments: tuple[Segment, ...]
    committed_at: Mapping[int, int]

    @property
    def snapshot(self) -> TableSnapshot:
        """All files, as one snapshot."""
        parts = tuple(part for segment in self.segments for part in segment.snapshot.partitions)
        return TableSnapshot(self.table, self.write_ids, parts)


@dataclass(frozen=True)
class PlaceHistory:
    """What a listing of one directory tells: its segments, as first and last write id, and whether it is overwritten
    then; and what has to be asked about it.

    Attributes:
        partition: The partition; None for a table without partition keys.
        states: The state at the end of each segment.
        compacted: The write ids of the compacted bases that hide changes from others.
        replaced: The other bases.
        forgotten: The last write id of which nothing is known any more.
    """

    partition: Partition | None
    states: Mapping[tuple[int, int, bool], AcidState]
    compacted: Collection[int]
    replaced: Replacements
    forgotten: int = field(default=0)


def newest_final(write_ids: ValidWriteIdList, own: int | None = None) -> int:
    """The newest write id whose changes, and those of all before it, do not change any more: none is open.

    Args:
        write_ids: What a transaction sees.
        own: The transaction's own, where it has written already.
    """
    opened = _first_open(write_ids, own)
    return write_ids.high_watermark if opened is None else min(write_ids.high_watermark, opened - 1)


def _first_open(write_ids: ValidWriteIdList, own: int | None) -> int | None:
    return min((one for one in (write_ids.min_open, own) if one is not None), default=None)


def range_of(table: Table, changes: Changes, write_ids: ValidWriteIdList, own: int | None = None) -> tuple[int, int]:
    """The first and last write id that is asked for; the last one is below the first where nothing is new.

    Args as for :func:`newest_final`.

    Raises:
        UnsupportedError: When the rows of the table have no write ids.
        InvalidValue: When there are no such write ids, or a transaction with one of them is open: its changes would
            appear later, behind the back of whoever has read them.
    """
    if table.is_insert_only:
        raise UnsupportedError(f"The rows of {table.full_name} do not tell who wrote them: it is insert-only")
    newest = newest_final(write_ids, own)
    last = newest if changes.last is None else changes.last
    if not 1 <= changes.first <= newest + 1 or (changes.last is not None and last < changes.first):
        raise InvalidValue(
            f"{table.full_name} has no changes from {changes.first} to {last}: its write ids go from 1 to {newest}"
        )
    if last > newest:
        opened = _first_open(write_ids, own)
        raise InvalidValue(
            f"Changes of {table.full_name} are final up to write id {newest}, {last} was asked for",
            hint=None if opened is None or opened > last else f"The transaction of write id {opened} is open.",
        )
    return changes.first, last


def place_history(
    location: str,
    partition: Partition | None,
    write_ids: ValidWriteIdList,
    txns: ValidTxnList,
    first: int,
    last: int,
    *,
    resolve: Resolve = fs.resolve,
) -> PlaceHistory:
    """What there is of the history of one directory.

    Raises:
        SnapshotTooOld: When it is not all there.
        DirectoryGone: When it is removed or moved meanwhile.
    """
    filesystem, path = resolve(location)

    def look() -> PlaceHistory:
        listed = fs.ListedOnce(filesystem)
        replaced = replacements(listed, path, write_ids, first)
        states, compacted = {}, set[int]()
        for begin, end, is_overwritten in _segments(first, last, replaced.overwrites):
            seen = write_ids.as_of(end)
            state = acid_state(listed, path, seen, txns, is_pinned=True, changes_since=begin)
            compacted |= {base.write_id for base in state.passed_over}
            states[begin, end, is_overwritten] = state
        # after the listing: whoever removes files makes a note first
        return PlaceHistory(partition, states, compacted, replaced, last_forgotten(filesystem, path))

    return look_again(filesystem, path, look)


def _segments(first: int, last: int, overwritten: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    begin = first
    for write_id in overwritten:
        if write_id <= last:
            yield begin, write_id - 1, True
            begin = write_id
    yield begin, last, False


def require_changes(
    table: Table,
    places: Sequence[PlaceHistory],
    first: int,
    last: int,
    waiting: Mapping[str, Collection[int]] | None,
) -> None:
    """Check that no file is missing that tells a change.

    Args:
        table: The table.
        places: What was found.
        first, last: The write ids that are asked for.
        waiting: By partition, up to which write ids compactions have written that have given no row another id, and
            whose cleaning is still to come; None for a store whose files others clean, who leave no notes.

    Raises:
        SnapshotTooOld: When one may be (Hive 10327).
    """
    lost = 0
    for place in places:
        name = partition_names(table, place.partition) if place.partition is not None else ""
        lost = max([lost, place.forgotten, *(base for base in place.replaced.rebalances if base <= last)])
        if waiting is None:
            lost = max([lost, *place.compacted, *place.replaced.overwrites])
        else:
            lost = max([lost, *_unaccounted(place.compacted, waiting.get(name, ()))])
    if lost >= first:
        raise SnapshotTooOld(
            f"The changes of {table.full_name} from write id {first} on are not all there: files up to {lost} were"
            " compacted or overwritten, and removed",
            hint=f"Changes can be read from {lost + 1} on. acidsql.changes.retention keeps them for a time.",
        )


def _unaccounted(bases: Collection[int], waiting: Collection[int]) -> Iterator[int]:
    """The compacted bases that are of no compaction which waits for its cleaning: of each one there is one at most,
    of its highest write id or, where that one has written nothing, of one before; behind that of the compaction before.
    """
    begin = 0
    for end in sorted(waiting):
        yield from sorted(base for base in bases if begin < base <= end)[:-1]
        begin = end
    yield from (base for base in bases if base > begin)


def segments_of(table: Table, write_ids: ValidWriteIdList, places: Sequence[PlaceHistory]) -> tuple[Segment, ...]:
    """The segments of a table: those of its partitions that begin and end alike together."""
    found: dict[tuple[int, int, bool], list[PartitionState]] = defaultdict(list)
    for place in places:
        for key, state in place.states.items():
            found[key].append(PartitionState(place.partition, state))
    return tuple(
        Segment(*key, TableSnapshot(table, write_ids.as_of(key[1]), tuple(parts)))
        for key, parts in sorted(found.items())
    )


def bytes_of_changes(history: TableHistory) -> dict[int, float]:
    """Bytes of files by the write id whose changes they tell; those of a compacted delta in equal parts."""
    found: dict[int, float] = defaultdict(float)
    for segment in history.segments:
        for part in segment.snapshot.partitions:
            for directory in (*part.state.data_directories, *part.state.delete_deltas):
                name, size = directory.name, sum(file.length for file in directory.files)
                first, last = (
                    (name.min_write_id, name.max_write_id)
                    if isinstance(name, DeltaName)
                    else (name.write_id, name.write_id)
                )
                for write_id in range(max(first, segment.first), min(last, segment.last) + 1):
                    found[write_id] += size / (last - first + 1)
    return found
