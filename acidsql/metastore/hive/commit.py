"""The commit on a Hive Metastore, and the statistics of what it has changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from acidsql.errors import AcidError, NoSuchTransaction, TransactionAborted
from acidsql.metastore.hive.statistics import HiveStatistics
from acidsql.metastore.hive.transactions import HiveTransactions
from acidsql.metastore.model import TableChanges
from acidsql.row_set import RowSet
from acidsql.valid_ids import ValidTxnList

logger = logging.getLogger(__name__)


class HiveCommits(HiveStatistics, HiveTransactions):
    """The part of :class:`~acidsql.metastore.protocol.Transactions` that commits what has changed rows, over Thrift."""

    def commit_txn(
        self,
        txn_id: int,
        deleted: Mapping[str, RowSet] | None = None,
        seen: ValidTxnList | None = None,
        first_wins: bool = False,
        changes: Sequence[TableChanges] = (),
    ) -> None:
        """As Hive, statistics first: whoever gathers them meanwhile does not see the transaction's rows, and must not
        have the last word. Where the commit is refused they are taken back; not where the process is killed in between.
        """
        told: list[tuple[TableChanges, Mapping[str, int | None]]] = []
        is_asked = False
        try:
            for made in changes:
                told.append((made, self.carry_on(made)))
            is_asked = True
            super().commit_txn(txn_id, deleted, seen, first_wins)
        except AcidError as e:
            if not is_asked or isinstance(e, NoSuchTransaction | TransactionAborted):
                self._take_back_all(told)
            raise

    def _take_back_all(self, told: Sequence[tuple[TableChanges, Mapping[str, int | None]]]) -> None:
        for made, more in reversed(told):
            try:
                with self.on_behalf_of(0):  # the transaction is over
                    self.take_back(made, more)
            except AcidError as e:
                logger.warning("the number of rows of %s counts what was not committed: %s", made.table.full_name, e)
