"""What a transaction of several statements has seen before: for a store that does not count changes, Hive's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from acidsql.commands.resolve.context import DefinitionChanged, essence
from acidsql.errors import SnapshotTooOld
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.unseen import Snapshot
from acidsql.metastore.model import Partition, Table
from acidsql.partition_names import partition_name
from acidsql.plan.snapshot import PartitionState, TableSnapshot

_YOUNG = 30 * 86400
"""Seconds since a table was made, within which a transaction may have begun before it, and clocks may differ."""
_Directory = BaseName | DeltaName
_Place = tuple[tuple[str, ...], str, int]
"""A partition's values, its location, and when it was made."""
_ORIGINAL = BaseName(0)
"""What stands for a file from before the table was transactional."""


class SeenBefore:
    """The tables, partitions and files that its statements have looked up: later ones must find the same.

    Partitions may come. Files may go that compacted ones have replaced, and those of a statement that was undone. But
    Hive's cleaner removes what INSERT OVERWRITE has replaced without a look at who may still read it, where it cleans
    up after aborted transactions (4.0.1, ``AbortedTxnCleaner``).

    Args:
        snapshot_ms: Gives the moment of the snapshot, by the clock of the store, in milliseconds since 1970; asked only
            for what is young. Of a table that was made anew in that second nothing tells.
        committed: Gives what is committed to a table by now.
    """

    def __init__(self, snapshot_ms: Callable[[], int], committed: Callable[[str], Snapshot]) -> None:
        self._snapshot_ms, self._committed = snapshot_ms, committed
        self._tables: dict[str, Table] = {}
        self._partitions: dict[str, set[_Place]] = {}
        self._files: dict[str, Mapping[str, _Directory]] = {}

    def require_table(self, table: Table) -> None:
        """Raises: DefinitionChanged when it is another one than before, or than at the snapshot."""
        known = self._tables.get(table.full_name)
        if known is None:
            is_other = self._is_later(table.created_at)
        else:
            is_other = known.version != table.version or essence(known) != essence(table)
        if is_other:
            raise DefinitionChanged(
                f"Table {table.full_name} was changed or made anew after the transaction's snapshot"
            )
        self._tables.setdefault(table.full_name, table)

    def require_partitions(self, table: Table, partitions: Iterable[Partition]) -> None:
        """Raises: DefinitionChanged when one is missing, at another place than before, or made anew."""
        now = {_place(p) for p in partitions}
        _require_kept(table, self._partitions.setdefault(table.full_name, now), now)

    def require_places(self, table: Table, names: Sequence[str], partitions: Iterable[Partition]) -> None:
        """As :meth:`require_partitions`, of those with some names only."""
        known = {one for one in self._partitions.get(table.full_name, ()) if _name(table, one) in names}
        _require_kept(table, known, {_place(p) for p in partitions})

    def require_files(self, snapshot: TableSnapshot, own: int | None) -> None:
        """Check that nothing was removed that the transaction's snapshot needs.

        Args:
            snapshot: What is seen now.
            own: The transaction's write id in the table.

        Raises:
            SnapshotTooOld: When something was.
        """
        for part in snapshot.partitions:
            state = part.state
            now: dict[str, _Directory] = {d.path: d.name for d in (*state.data_directories, *state.delete_deltas)}
            now |= {file.path: _ORIGINAL for file in state.originals}
            known = self._files.get(state.path)
            if known is None:
                is_lost = self._may_be_lost(snapshot, part, [n for n in now.values() if not _is_of(n, own)], own)
            else:
                come = [name for at, name in now.items() if at not in known]
                gone = [name for at, name in known.items() if at not in now]
                is_lost = any(not _is_of(name, own) and not any(_replaces(one, name) for one in come) for name in gone)
            if is_lost:
                raise SnapshotTooOld(
                    f"Files of {state.path} that the transaction's snapshot needs were removed by others",
                    hint="ROLLBACK, and run it again.",
                )
            self._files[state.path] = now

    def _may_be_lost(
        self, snapshot: TableSnapshot, part: PartitionState, found: Sequence[_Directory], own: int | None
    ) -> bool:
        """Whether there may have been files that others have replaced since the snapshot.

        That is so where a base or a compacted delta of theirs is there, and nothing of what it may have replaced: of
        write ids that the snapshot sees, or original files in the case of a base.
        """
        ids = snapshot.write_ids
        lost = [
            unseen
            for unseen in part.state.unseen
            if (isinstance(unseen, BaseName) or ids.sees_any(unseen.min_write_id, unseen.max_write_id, but=own))
            and not any(_overlap(one, unseen) for one in found)
        ]
        if not lost or (part.partition is not None and self._is_later(part.partition.created_at + 1)):
            return False
        committed = self._committed(snapshot.table.full_name)
        return any(map(committed.has, lost))

    def _is_later(self, created_at: int) -> bool:
        return created_at > time.time() - _YOUNG and created_at * 1000 > self._snapshot_ms()


def _place(partition: Partition) -> _Place:
    return partition.values, partition.location, partition.created_at


def _name(table: Table, place: _Place) -> str:
    return partition_name([key.name for key in table.partition_keys], place[0])


def _require_kept(table: Table, known: set[_Place], now: set[_Place]) -> None:
    if not known <= now:
        raise DefinitionChanged(
            f"Partition {_name(table, min(known - now))} of {table.full_name} was dropped, moved or made anew after the"
            " transaction's snapshot"
        )


def _is_of(name: _Directory, own: int | None) -> bool:
    return name.max_write_id == own and (isinstance(name, BaseName) or name.min_write_id == own)


def _replaces(new: _Directory, old: _Directory) -> bool:
    """Whether a directory may be the compacted form of another one."""
    return new.min_write_id <= old.min_write_id and old.max_write_id <= new.max_write_id


def _overlap(one: _Directory, other: _Directory) -> bool:
    return one.min_write_id <= other.max_write_id and other.min_write_id <= one.max_write_id
