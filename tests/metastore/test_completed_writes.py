"""Which write ids wrote to which partition, as far as it is on record."""

from __future__ import annotations

from acidsql.metastore.model import Operation
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import READ, Clock, begin, partition, table, take


def test_committed_writes_are_told_by_partition(store: Metastore, clock: Clock) -> None:
    store.create_table(table(partitioned=True))
    store.add_partitions([partition("1"), partition("2")])
    if store.completed_writes("default", "t") is None:
        return  # a Hive Metastore does not tell
    txns = []
    for place in ("default.t/p=1", "default.t/p=2", "default.t"):
        txn_id = begin(store)
        txns.append(txn_id)
        take(store, txn_id, READ, place, Operation.DELETE if place == "default.t/p=2" else Operation.INSERT)
        store.allocate_table_write_id(txn_id, "default", "t")
        store.commit_txn(txn_id)
    for ends in (store.abort_txns, lambda ids: None):
        txn_id = begin(store)
        take(store, txn_id, READ, "default.t/p=1", Operation.INSERT)
        store.allocate_table_write_id(txn_id, "default", "t")
        ends([txn_id])
    found = store.completed_writes("default", "t") or []
    assert [(w.write_id, w.txn_id, w.partition, w.changes_rows) for w in found] == [
        (1, txns[0], "p=1", False),
        (2, txns[1], "p=2", True),
        (3, txns[2], "", False),
    ]
    assert {w.committed_at for w in found} == {clock.ms // 1000}
    assert store.completed_writes("default", "u") == []
    store.drop_partitions("default", "t", ["p=1"])
    assert store.completed_writes("default", "t") == found[1:]
