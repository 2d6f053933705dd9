"""The compaction queue of a Hive Metastore."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acidsql.metastore.hive import translate, wire
from acidsql.metastore.hive.client import HiveClient
from acidsql.metastore.model import (
    CompactionFilter,
    CompactionInfo,
    CompactionRequest,
    CompactionResponse,
)

_QUEUED = re.compile(r"state='([^']*)' and id=(\d+)")
"""How the metastore names an entry of its queue in a message."""


class HiveCompactions(HiveClient):
    """:class:`~acidsql.metastore.protocol.Compactions` over Thrift."""

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        self._raw_table(request.database, request.table)
        asked = wire.CompactionRequest(
            dbname=request.database,
            tablename=request.table,
            partitionname=request.partition,
            type=translate.COMPACTION_NUMBERS[request.type],
            runas=None,  # the owner of the table's directory, as the worker finds it
            properties=dict(request.properties) or None,
            initiatorId=f"{request.host}-manual",  # as Hive names a request of a user,
            poolName=request.pool,
            numberOfBuckets=request.buckets,
            orderByClause=request.order_by,
        )
        answer = self._call(lambda c: wire.compact(c, asked))
        id, state = answer.id, answer.state
        if queued := _QUEUED.search(answer.errormessage or ""):  # Hive 4 names the entry in the message alone
            id, state = int(queued[2]), queued[1]
        return CompactionResponse(id, state, bool(answer.accepted), answer.errormessage)

    def show_compactions(self, wanted: CompactionFilter) -> list[CompactionInfo]:
        """As the protocol says. A metastore 3 filters nothing, so all is filtered here again."""
        request = wire.ShowCompactRequest()
        if self._is_hive4:
            request = wire.ShowCompactRequest(
                id=wanted.id, dbName=wanted.database, tbName=wanted.table, partName=wanted.partition
            )
        found = self._call(lambda c: wire.show_compact(c, request))
        kept = [one for one in map(translate.compaction_from_thrift, found) if _is_wanted(one, wanted)]
        kept.sort(key=lambda one: one.id, reverse=True)
        return kept[: wanted.limit]

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, str]:
        request = wire.AbortCompactionRequest(compactionIds=list(ids))
        answer = self._call(lambda c: wire.abort_compactions(c, request))
        return {id: found.message or found.status for id, found in answer.items()}


def _is_wanted(one: CompactionInfo, wanted: CompactionFilter) -> bool:
    pairs = (
        (one.id, wanted.id),
        (one.database, wanted.database),
        (one.table, wanted.table),
        (one.partition, wanted.partition),
        (one.pool, wanted.pool),
        (one.type, wanted.type),
        (one.state, wanted.state),
    )
    return all(want is None or have == want for have, want in pairs)
