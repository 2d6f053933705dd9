"""Transactions, snapshots and write ids of a Hive Metastore."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from operator import methodcaller

from hive_metastore import ttypes

from acidsql.errors import (
    MetastoreError,
    NoSuchTransaction,
    TransactionAborted,
    TransactionError,
    UnsupportedError,
)
from acidsql.metastore.hive import translate
from acidsql.metastore.hive.client import PROCESSOR
from acidsql.metastore.hive.errors import NO_SUCH_TRANSACTION, TRANSACTION_ABORTED
from acidsql.metastore.hive.locks import HiveLocks
from acidsql.metastore.hive.seeds import take_write_ids
from acidsql.metastore.hive.statistics import HiveStatistics
from acidsql.metastore.model import (
    Operation,
    TableChanges,
    TxnInfo,
    TxnState,
    TxnType,
)
from acidsql.row_set import RowSet
from acidsql.settings import XLOCK_WRITE
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

logger = logging.getLogger(__name__)

GAP_SECONDS = 2.0


class HiveTransactions(HiveStatistics, HiveLocks):
    """:class:`~acidsql.metastore.protocol.Transactions` over Thrift."""

    # --- transactions ------------------------------------------------------------------------------------------------

    def open_txns(
        self, count: int = 1, *, user: str, host: str, type: TxnType = TxnType.DEFAULT, agent_info: str = ""
    ) -> list[int]:
        request = ttypes.OpenTxnRequest(
            num_txns=count, user=user, hostname=host, agentInfo=agent_info or PROCESSOR, txn_type=int(type)
        )
        return list(self._call(lambda c: c.open_txns(request)).txn_ids)

    def commit_txn(
        self,
        txn_id: int,
        deleted: Mapping[str, RowSet] | None = None,
        seen: ValidTxnList | None = None,
        first_wins: bool = False,
        changes: Sequence[TableChanges] = (),
    ) -> None:
        assert not deleted  # Capabilities.compares_rows
        is_exclusive = self._settings.value(XLOCK_WRITE) and not first_wins
        request = ttypes.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=is_exclusive)
        with self.carried_on(changes):
            # a metastore 3 forgets at once that a transaction has ended which wrote nothing
            self._gone_once(lambda c: c.commit_txn(request), NoSuchTransaction)

    def abort_txns(self, txn_ids: Sequence[int], reason: str = "") -> list[int]:
        """Abort those that are not committed; those that were aborted before count too. The reason is not kept.

        One by one: the call for many ignores those that it cannot abort, so one would not know.
        """
        aborted = []
        for txn_id in dict.fromkeys(txn_ids):
            try:
                self._call(methodcaller("abort_txn", ttypes.AbortTxnRequest(txnid=txn_id)))
                aborted.append(txn_id)
            except NoSuchTransaction as e:
                logger.debug("transaction %s is committed or forgotten: %s", txn_id, e)
        return aborted

    def heartbeat(self, *, txn_id: int = 0, lock_id: int = 0) -> None:
        request = ttypes.HeartbeatRequest(lockid=lock_id or None, txnid=txn_id or None)
        self._call(lambda c: c.heartbeat(request))

    def heartbeat_txns(self, txn_ids: Sequence[int]) -> tuple[list[int], list[int]]:
        """Hive's call for a range, for each run of ids without a gap: in a gap stand the transactions of others."""
        aborted: list[int] = []
        unknown: list[int] = []
        for first, last in _runs(txn_ids):
            request = ttypes.HeartbeatTxnRangeRequest(min=first, max=last)
            answer = self._call(methodcaller("heartbeat_txn_range", request))
            aborted += answer.aborted
            unknown += answer.nosuch
        return sorted(aborted), sorted(unknown)

    def show_txns(self) -> list[TxnInfo]:
        """As the protocol says.

        Hive 4.0 takes an id that is being handed out for an open transaction without owner, and its own answer then
        fails to be written: the connection ends. That lasts for a second at most (``metastore.txn.opentxn.timeout``).
        """
        deadline = time.monotonic() + GAP_SECONDS
        while True:
            try:
                found = self._call(lambda c: c.get_open_txns_info()).open_txns
                return sorted((translate.txn_from_thrift(t) for t in found), key=lambda t: t.id)
            except MetastoreError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(GAP_SECONDS / 10)

    def time_out_txns(self, *, spared: int = 0) -> list[int]:
        """Nothing: the metastore's own housekeeper does it."""
        return []

    def clean_empty_aborted_txns(self) -> None:
        """Nothing: the metastore's own housekeeper does it."""

    def forget_txn_components(self, txn_id: int) -> None:
        """Nothing: Hive's initiator and cleaner do it."""

    def completed_writes(self, database: str, table: str) -> None:
        """The metastore's API does not tell."""

    # --- snapshots and write ids -------------------------------------------------------------------------------------

    def get_valid_txns(self, current_txn: int = 0) -> ValidTxnList:
        if self._is_hive4:  # readers write nothing, so it does not matter whether they are open
            request = ttypes.GetOpenTxnsRequest(excludeTxnTypes=[ttypes.TxnType.READ_ONLY])
            found = self._call(lambda c: c.get_open_txns_req(request))
        else:
            found = self._call(lambda c: c.get_open_txns())
        return translate.valid_txns_from_thrift(found, current_txn)

    def get_valid_write_ids(self, tables: Sequence[str], valid_txns: ValidTxnList) -> list[ValidWriteIdList]:
        if not tables:
            return []
        request = ttypes.GetValidWriteIdsRequest(
            fullTableNames=list(dict.fromkeys(tables)), validTxnList=valid_txns.to_text()
        )
        answer = self._call(lambda c: c.get_valid_write_ids(request)).tblValidWriteIds
        by_table = {found.table: found for found in map(translate.valid_write_ids_from_thrift, answer)}
        return [by_table[name] for name in tables]

    def allocate_table_write_id(self, txn_id: int, database: str, table: str, *, reallocate: bool = False) -> int:
        if reallocate:
            raise UnsupportedError("A Hive Metastore gives a transaction one write id in a table, and no other")
        request = ttypes.AllocateTableWriteIdsRequest(dbName=database, tableName=table, txnIds=[txn_id])
        try:
            [pair] = self._call(lambda c: c.allocate_table_write_ids(request)).txnToWriteIds
        except MetastoreError as e:
            if e.__cause__ is not None:  # all that Hive 4 says is "Internal error"; Hive 3 closes the connection
                self._require_writer(txn_id)
            raise
        return int(pair.writeId)

    def _require_writer(self, txn_id: int) -> None:
        """Raises: NoSuchTransaction, TransactionAborted, TransactionError where a transaction cannot write."""
        found = next((t for t in self.show_txns() if t.id == txn_id), None)
        name = f"Transaction [txnid:{txn_id},{txn_id}]"
        if found is None:
            raise NoSuchTransaction(f"{name} is not open", code=NO_SUCH_TRANSACTION)
        if found.state is TxnState.ABORTED:
            raise TransactionAborted(f"{name} already aborted", code=TRANSACTION_ABORTED)
        if self._is_hive4 and txn_id not in self.get_valid_txns().open_ids:
            raise TransactionError(f"{name} is read-only: it gets no write id")

    def seed_write_id(self, valid_write_ids: ValidWriteIdList) -> None:
        name, exceptions = valid_write_ids.table, valid_write_ids.exceptions
        [found] = self.get_valid_write_ids([name], self.get_valid_txns())
        if found.high_watermark:
            raise TransactionError(f"Table {name} has write ids already: they cannot start anew")
        first = 1  # a metastore 3 knows no call for a start
        if self._is_hive4:
            first = exceptions[0] if exceptions else valid_write_ids.high_watermark + 1
            if first > 1:
                database, _, table = name.partition(".")
                seed = ttypes.SeedTableWriteIdsRequest(dbName=database, tableName=table, seedWriteId=first - 1)
                self._call(lambda c: c.seed_write_id(seed))
        if first <= valid_write_ids.high_watermark:
            take_write_ids(self, valid_write_ids, first, self._user, PROCESSOR)

    def seed_txn_id(self, txn_id: int) -> None:
        """Nothing where the metastore's ids are higher already; otherwise refused: skipped ids would count as open."""
        high = self.get_valid_txns().high_watermark
        if txn_id > high:
            raise UnsupportedError(
                f"The directory names transaction {txn_id} of another metastore; this one is at {high}",
                hint="Only what was compacted under this metastore, or not at all, can be registered.",
            )

    # --- what a transaction writes to --------------------------------------------------------------------------------

    def add_dynamic_partitions(
        self, txn_id: int, write_id: int, database: str, table: str, partitions: Sequence[str], operation: Operation
    ) -> None:
        if not partitions:
            return
        request = ttypes.AddDynamicPartitions(
            txnid=txn_id,
            writeid=write_id,
            dbname=database,
            tablename=table,
            partitionnames=list(partitions),
            operationType=translate.operation_to_thrift(operation),
        )
        self._call(lambda c: c.add_dynamic_partitions(request))

    def get_latest_txn_in_conflict(
        self, txn_id: int, seen: ValidTxnList | None = None, *, by_rows: Collection[str] = ()
    ) -> int | None:
        """As the protocol says; a metastore 3 has no such call: it finds the conflict at the commit, always."""
        if not self._is_hive4:
            return None
        found = int(self._call(lambda c: c.get_latest_txnid_in_conflict(txn_id))) or None
        return None if found is not None and seen is not None and seen.is_valid(found) else found


def _runs(ids: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive ids."""
    runs: list[tuple[int, int]] = []
    for id in sorted(set(ids)):
        if runs and id == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], id)
        else:
            runs.append((id, id))
    return runs
