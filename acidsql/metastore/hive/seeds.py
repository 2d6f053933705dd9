"""Start the write ids of a table above those in files that were made elsewhere."""

from __future__ import annotations

from acidsql.errors import MetastoreError, UnsupportedError
from acidsql.metastore.model import LockComponent, LockRequest, LockType, Operation
from acidsql.metastore.protocol import Transactions
from acidsql.valid_ids import ValidWriteIdList

MAX_TRANSACTIONS = 10_000
"""The most transactions that one table is seeded with."""


def take_write_ids(store: Transactions, valid: ValidWriteIdList, first: int, user: str, host: str) -> None:
    """Have transactions take a table's write ids from ``first`` on, and commit or abort each as it was.

    Hive's own call for it (``repl_tbl_writeid_state``) is of no use here: the transactions that it aborts have no
    components, so the housekeeper forgets them and what they wrote is seen; and until somebody writes, what lies above
    the first of them is not seen at all.

    Args:
        store: A Hive Metastore.
        valid: The write ids; open ones count as aborted.
        first: The first one to be taken; the table must hand out this one next.
        user: In whose name the transactions are.
        host: From where.

    Raises:
        UnsupportedError: When that takes more than :data:`MAX_TRANSACTIONS` transactions.
        MetastoreError: When somebody else writes to the table already.
    """
    count = valid.high_watermark - first + 1
    if count > MAX_TRANSACTIONS:
        raise UnsupportedError(
            f"{count} write ids of {valid.table} would have to be registered one by one;"
            f" more than {MAX_TRANSACTIONS} are too many",
            hint="Compact the table where it comes from.",
        )
    database, _, table = valid.table.partition(".")
    txns: list[int] = []
    while len(txns) < count:  # one call opens hive.txn.max.open.batch at most
        txns += sorted(store.open_txns(count - len(txns), user=user, host=host))
    hidden = set(valid.exceptions)
    try:
        for write_id, txn_id in enumerate(txns, first):
            if write_id in hidden:  # the lock is what keeps an aborted transaction in the metastore's memory
                component = LockComponent(LockType.SHARED_READ, database, table, None, Operation.INSERT)
                store.lock(LockRequest((component,), txn_id, user, host))
            if store.allocate_table_write_id(txn_id, database, table) != write_id:
                raise MetastoreError(f"Somebody else writes to {valid.table}, which is being registered")
    except BaseException:
        store.abort_txns(txns)
        raise
    store.abort_txns([txn_id for write_id, txn_id in enumerate(txns, first) if write_id in hidden])
    for write_id, txn_id in enumerate(txns, first):
        if write_id not in hidden:
            store.commit_txn(txn_id)
