"""VERSION AS OF: whether the files that an older snapshot needs are still there.

A snapshot cut at an older write id chooses its directories by the rules of every other one: a base beyond it does not
count, in a compacted delta the rows and deletes beyond it are filtered out, and where only a compacted base is there
the choice itself fails (Hive 10327). What remains is a base that INSERT OVERWRITE or TRUNCATE made later. It hides
older files without having their rows, and a cleaner may have removed those: then nothing older is there, and that must
not pass for an empty table.
"""

from __future__ import annotations

from acidsql import fs
from acidsql.errors import SnapshotTooOld
from acidsql.format.directory import AcidState
from acidsql.format.names import BaseName, is_hidden, parse_directory
from acidsql.plan.snapshot import TableSnapshot


def require_history(snapshot: TableSnapshot) -> None:
    """Make sure that the rows of a snapshot older than others are still there.

    Raises:
        SnapshotTooOld: When they may have been removed (Hive 10327).
    """
    high = snapshot.write_ids.high_watermark
    if not any(snapshot.write_ids.is_valid(w) for w in range(1, high + 1)):
        return  # nothing was written yet
    for part in snapshot.partitions:
        later = _later_base(part.state, high)
        if later is not None and not _has_files(part.state):
            raise SnapshotTooOld(
                f"Not enough history for {part.state.path}: {later} replaced what was there at write id {high}, and"
                " nothing older is left",
                hint=f"The oldest version of {snapshot.table.full_name} that can be read may be that base's write id.",
            )


def _has_files(state: AcidState) -> bool:
    return state.base is not None or bool(state.deltas) or bool(state.originals)


def _later_base(state: AcidState, high: int) -> str | None:
    """The name of a base beyond the snapshot."""
    filesystem, path = fs.resolve(state.path)
    for entry in filesystem.list(path):
        name = parse_directory(entry.name) if entry.is_dir and not is_hidden(entry.name) else None
        if isinstance(name, BaseName) and name.write_id > high:
            return entry.name
    return None
