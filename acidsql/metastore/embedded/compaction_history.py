"""COMPLETED_COMPACTIONS: what became of compactions, as long as it matters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import delete, select

from acidsql.metastore.embedded import queue
from acidsql.metastore.embedded.batches import batches
from acidsql.metastore.embedded.client import EmbeddedClient
from acidsql.metastore.embedded.schema import COMPLETED_COMPACTIONS
from acidsql.metastore.model import CompactionState, CompactionType
from acidsql.settings import (
    FAILED_COMPACTS_THRESHOLD,
    HISTORY_DID_NOT_INITIATE,
    HISTORY_FAILED,
    HISTORY_REFUSED,
    HISTORY_SUCCEEDED,
    HISTORY_TIMEOUT,
)

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


class EmbeddedCompactionHistory(EmbeddedClient):
    """:class:`~acidsql.metastore.protocol.Compactions`: what the history tells, and what is forgotten of it."""

    def check_failed_compactions(
        self, database: str, table: str, partition: str | None, threshold: int, retry_ms: int
    ) -> bool:
        """Hive's ``CheckFailedCompactionsHandler``: what did not initiate is passed over."""
        with self._store.read() as db:
            enqueued_after = self._now(db) - retry_ms if retry_ms > 0 else None
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

    def purge_compaction_history(self) -> None:
        """Removes entries beyond the number retained of their state, and those that are old and superseded."""
        value = self._settings.value
        retained = {
            CompactionState.SUCCEEDED: value(HISTORY_SUCCEEDED),
            # the initiator counts those that failed
            CompactionState.FAILED: max(value(HISTORY_FAILED), value(FAILED_COMPACTS_THRESHOLD)),
            CompactionState.DID_NOT_INITIATE: value(HISTORY_DID_NOT_INITIATE),
            CompactionState.REFUSED: value(HISTORY_REFUSED),
            CompactionState.ABORTED: value(HISTORY_REFUSED),  # Hive keeps them for ever
        }
        with self._store.write() as db:
            ended_before = self._now(db) - int(value(HISTORY_TIMEOUT) * 1000)
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
