"""VERSION AS OF: checks that the files of an older snapshot still exist.

A snapshot cut at an older write id chooses its directories by the rules of every other one: a base beyond it does not
count, in a compacted delta the rows and deletes beyond it are filtered out, and where only a compacted base is there
the choice itself fails (Hive 10327). What remains is a base that INSERT OVERWRITE or TRUNCATE made later. It hides
older files without having their rows, and a cleaner may have removed those: then nothing older is there, and that must
not pass for an empty table. A cleaner of acidsql leaves a note (:mod:`acidsql.format.history`); others do not. But many
a partition begins with such a base: where the store still has its write on record, and none up to the snapshot, nothing
can have been removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acidsql import fs
from acidsql.errors import SnapshotTooOld
from acidsql.format.directory import AcidState
from acidsql.format.history import last_forgotten
from acidsql.format.names import BaseName, is_hidden, parse_directory
from acidsql.metastore.model import CompletedWrite
from acidsql.plan.snapshot import PartitionState, Resolve, TableSnapshot, partition_names


def require_history(
    snapshot: TableSnapshot, completed: Callable[[], Sequence[CompletedWrite] | None], *, resolve: Resolve = fs.resolve
) -> None:
    """Check that the rows of an older snapshot still exist.

    Args:
        snapshot: The snapshot.
        completed: The writes recorded in the store, until a compaction over them is cleaned.
        resolve: Finds the file system of a location.

    Raises:
        SnapshotTooOld: When they may have been removed (Hive 10327).
    """
    high = snapshot.write_ids.high_watermark
    is_before_all = not any(snapshot.write_ids.is_valid(w) for w in range(1, high + 1))
    writes: Sequence[CompletedWrite] | None = None
    for part in snapshot.partitions:
        removed = last_forgotten(*resolve(part.state.path))  # after the listing: whoever removes files notes it first
        if removed > high:
            raise _too_old(snapshot, part, removed)
        later = None if _has_files(part.state) else _first_base_beyond(part.state, high, resolve)
        if later is None:
            continue
        writes = writes if writes is not None else completed()
        if writes is None or not (is_before_all or _began_after(high, later, _name(snapshot, part), writes)):
            raise _too_old(snapshot, part, later)


def _too_old(snapshot: TableSnapshot, part: PartitionState, base: int) -> SnapshotTooOld:
    return SnapshotTooOld(
        f"Not enough history for {part.state.path}: a base of write id {base} replaced the rows as of write"
        f" id {snapshot.write_ids.high_watermark}, whose files may have been removed",
        hint=f"The oldest readable version of {snapshot.table.full_name} may be that write id.",
    )


def _name(snapshot: TableSnapshot, part: PartitionState) -> str:
    return partition_names(snapshot.table, part.partition) if part.partition is not None else ""


def _began_after(high: int, base: int, partition: str, writes: Sequence[CompletedWrite]) -> bool:
    """Whether the write of a base is on record for a partition, and none up to a write id."""
    own = [w.write_id for w in writes if w.partition == partition]
    return base in own and all(w.write_id > high for w in writes if w.partition in (partition, ""))


def _has_files(state: AcidState) -> bool:
    return state.base is not None or bool(state.deltas) or bool(state.originals)


def _first_base_beyond(state: AcidState, high: int, resolve: Resolve) -> int | None:
    """The write id of the oldest base beyond the snapshot."""
    filesystem, path = resolve(state.path)
    names = [parse_directory(e.name) for e in filesystem.list(path) if e.is_dir and not is_hidden(e.name)]
    return min((n.write_id for n in names if isinstance(n, BaseName) and n.write_id > high), default=None)
