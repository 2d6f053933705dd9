"""COMPLETED_COMPACTIONS: what became of compactions, as long as it matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, select

from acidsql.metastore.embedded import queue
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.schema import COMPLETED_COMPACTIONS
from acidsql.metastore.model import CompactionState, CompactionType

_H = COMPLETED_COMPACTIONS.c
_SUCCEEDED, _FAILED, _DID_NOT_INITIATE = (
    state.value for state in (CompactionState.SUCCEEDED, CompactionState.FAILED, CompactionState.DID_NOT_INITIATE)
)
_NEWEST_FIRST = select(
    _H.CC_DATABASE, _H.CC_TABLE, _H.CC_PARTITION, _H.CC_ID, _H.CC_STATE, _H.CC_TYPE, _H.CC_START, _H.CC_END
).order_by(_H.CC_ID.desc())


@dataclass
class _Kept:
    """What is kept of one table or partition, walking from the latest entry back."""

    counts: Counter[str] = field(default_factory=Counter)
    major_succeeded: bool = False
    minor_succeeded: bool = False

    def is_superseded(self, type: str) -> bool:
        """Whether a later compaction did what one of this type failed to do."""
        return self.major_succeeded or (self.minor_succeeded and type == CompactionType.MINOR.value)


def purge(db: Connection, retained: Mapping[CompactionState, int], ended_before: int) -> None:
    """Forget what is beyond the number retained of its state, or is old and superseded (``purgeCompactionHistory``).

    Args:
        retained: How many entries of a table or partition stay, by their state.
        ended_before: What began before this is old. Milliseconds since 1970.
    """
    kept: dict[tuple[str, str, str | None], _Kept] = {}
    doomed = []
    for *place, id, state, type, started, ended in db.execute(_NEWEST_FIRST):
        of_place = kept.setdefault(tuple(place), _Kept())
        of_place.counts[state] += 1
        is_old = state != _SUCCEEDED and (started or ended or 0) < ended_before and of_place.is_superseded(type)
        if of_place.counts[state] > retained[CompactionState(state)] or is_old:
            doomed.append(id)
        if state == _SUCCEEDED:
            is_major = type == CompactionType.MAJOR.value
            of_place.major_succeeded |= is_major
            of_place.minor_succeeded |= not is_major
    for some in batches(doomed):
        db.execute(delete(COMPLETED_COMPACTIONS).where(_H.CC_ID.in_(some)))


def have_failed(
    db: Connection, database: str, table: str, partition: str | None, *, threshold: int, enqueued_after: int | None
) -> bool:
    """Whether the latest compactions all failed, and one of them was asked for not long ago.

    Hive's ``CheckFailedCompactionsHandler``: what did not initiate is passed over.

    Args:
        threshold: How many.
        enqueued_after: Not long ago, in milliseconds since 1970; None for no matter.
    """
    latest = db.execute(
        select(_H.CC_STATE, _H.CC_ENQUEUE_TIME)
        .where(
            queue.same_place(COMPLETED_COMPACTIONS, "CC", database, table, partition),
            _H.CC_STATE != _DID_NOT_INITIATE,
        )
        .order_by(_H.CC_ID.desc())
        .limit(threshold)
    ).all()
    if len(latest) < threshold or any(state != _FAILED for state, _ in latest):
        return False
    return enqueued_after is None or max(enqueued or 0 for _, enqueued in latest) >= enqueued_after
