"""What others have committed since a transaction's snapshot, where the store's conflicts do not tell it: files do.

All raise :class:`.SnapshotOutdated`: a single statement starts over, a transaction of several has a write conflict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from acidsql import fs
from acidsql.commands.resolve.context import SnapshotOutdated
from acidsql.format.unseen import Snapshot, hidden_by, removed_rows
from acidsql.metastore.model import (
    CHANGES,
    CompactionFilter,
    CompactionInfo,
    CompactionState,
    CompactionType,
    LockComponent,
    Table,
)
from acidsql.metastore.protocol import Metastore
from acidsql.plan.snapshot import partition_names
from acidsql.valid_ids import ValidTxnList

_REMEMBERED = 3
"""So many compactions of a place that have succeeded are in Hive's history (``hive.compactor.history.retention.…``)."""


def require_rows_seen(
    metastore: Metastore, components: Sequence[LockComponent], txns: ValidTxnList, *, is_told: bool = False
) -> None:
    """Check that a snapshot sees whatever others have deleted or replaced where rows are about to be changed.

    A Hive Metastore tells of it (``getLatestTxnIdInConflict``) only where both have named the same partition, or both
    the table; of Hive's TRUNCATE and dynamic INSERT OVERWRITE never; of several transactions the last one alone, which
    the snapshot may see; and of what somebody has asked to lock in vain. So the files tell: what others have inserted
    is no conflict.

    Args:
        metastore: Where the locks are held.
        components: The locks of the changes, which others may be beside.
        txns: The snapshot.
        is_told: Whether the metastore tells of a conflict: it may be a rebalance, that files do not tell from another
            compaction.

    Raises:
        StartOver: When it does not.
    """
    changed = [c for c in components if c.operation in CHANGES]
    for database, name in sorted({(c.database, c.table) for c in changed if c.table is not None}):
        unseen = _Unseen.of(metastore, f"{database}.{name}", txns)
        if unseen.is_nothing:
            continue
        table = metastore.get_table(database, name)
        named = {c.partition for c in changed if (c.database, c.table) == (database, name)}
        places: dict[str | None, str] = {None: table.location}
        if table.partition_keys:
            names = None if None in named else sorted(n for n in named if n is not None)
            found = metastore.list_partitions(database, name, names)
            places = {partition_names(table, p): p.location for p in found}
        rebalanced = places.keys() if is_told else _rebalanced(metastore, table, unseen)
        for or_compacted in (True, False):
            chosen = [at for place, at in places.items() if (place in rebalanced) is or_compacted]
            unseen.require_none(table, chosen, or_compacted=or_compacted)


def _rebalanced(metastore: Metastore, table: Table, unseen: _Unseen) -> set[str | None]:
    """The partitions of a table (None for one without) of which a rebalance may have been committed unseen.

    That is also so where the metastore may have forgotten it, after several other compactions.
    """
    by_place = defaultdict[str | None, list[CompactionInfo]](list)
    for one in metastore.show_compactions(CompactionFilter(database=table.database, table=table.name)):
        if one.state is not CompactionState.INITIATED:
            by_place[one.partition].append(one)

    def may_have_come(one: CompactionInfo) -> bool:
        return one.txn_id is None or unseen.has_come(one.txn_id)

    def may_be_rebalanced(known: Sequence[CompactionInfo]) -> bool:
        done = [one for one in known if one.state is CompactionState.SUCCEEDED]
        is_forgotten = len(done) >= _REMEMBERED and all(map(may_have_come, done))
        return is_forgotten or any(one.type is CompactionType.REBALANCE and may_have_come(one) for one in known)

    return {place for place, known in by_place.items() if may_be_rebalanced(known)}


def require_all_seen(metastore: Metastore, table: Table, txns: ValidTxnList) -> None:
    """Check that a snapshot sees everything committed to an exclusively locked table.

    Another transaction may have inserted beside its locks: a statement that replaces what is there, with a base, must
    have read what belongs to it.

    Raises:
        StartOver: When it does not.
    """
    if unseen := _Unseen.of(metastore, table.full_name, txns).write_ids:
        raise SnapshotOutdated(f"Write id {unseen[0]} of {table.full_name} was committed after the snapshot")


def require_places_seen(metastore: Metastore, table: Table, locations: Sequence[str], txns: ValidTxnList) -> None:
    """As :func:`require_all_seen`, of some directories of a table: a base is about to hide all that is there.

    Raises:
        StartOver: When it does not.
    """
    if locations:
        _Unseen.of(metastore, table.full_name, txns).require_none(table, locations, or_added=True)


def require_not_hidden(metastore: Metastore, table: Table, locations: Sequence[str], write_id: int) -> None:
    """Check that nobody has replaced the rows of a place since a write id was allocated.

    That may have been for another place, and locks of different settings may let both in.

    Raises:
        StartOver: When somebody has: his base hides what is written under the write id.
    """
    [now] = metastore.get_valid_write_ids([table.full_name], metastore.get_valid_txns())
    if now.high_watermark <= write_id:
        return
    found = fs.side_by_side(lambda at: hidden_by(*fs.resolve(at), write_id, now), locations, table.location)
    if bases := [one for one in found if one is not None]:
        raise SnapshotOutdated(f"Write id {bases[0]} has replaced rows of {table.full_name} unseen")


@dataclass(frozen=True)
class _Unseen:
    """What has been committed to a table since a snapshot."""

    seen: Snapshot
    now: Snapshot

    @classmethod
    def of(cls, metastore: Metastore, table: str, txns: ValidTxnList) -> _Unseen:
        seen, now = snapshot_of(metastore, table, txns), metastore.get_valid_txns()
        if now.high_watermark <= txns.high_watermark and not any(map(now.is_valid, txns.open_ids)):
            return cls(seen, seen)  # nobody has committed since
        return cls(seen, snapshot_of(metastore, table, now))

    def has_come(self, txn_id: int) -> bool:
        """Whether a transaction was committed since."""
        return self.now.txns.is_valid(txn_id) and not self.seen.txns.is_valid(txn_id)

    @property
    def is_nothing(self) -> bool:
        return self.now == self.seen

    @cached_property
    def write_ids(self) -> tuple[int, ...]:
        return self.now.write_ids.unseen_by(self.seen.write_ids)

    def require_none(
        self, table: Table, locations: Sequence[str], *, or_added: bool = False, or_compacted: bool = False
    ) -> None:
        """Raises: StartOver where one of them has replaced rows in a directory (or added or compacted some)."""
        if not locations or not (self.write_ids or or_compacted):
            return

        def found(location: str) -> int | None:
            place, seen, now = fs.resolve(location), self.seen, self.now
            return removed_rows(*place, self.write_ids, seen, now, or_added=or_added, or_compacted=or_compacted)

        for write_id in fs.side_by_side(found, locations, table.location):
            if write_id is not None:
                what = "changed" if or_added else "replaced rows of"
                raise SnapshotOutdated(f"Write id {write_id} has {what} {table.full_name} unseen")


def snapshot_of(metastore: Metastore, table: str, txns: ValidTxnList) -> Snapshot:
    """What is committed to a table for some transactions."""
    return Snapshot(txns, metastore.get_valid_write_ids([table], txns)[0])
