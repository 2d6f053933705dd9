"""Which write ids wrote to which partition, as far as it is on record."""

from __future__ import annotations

from acidsql.metastore.model import Operation
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import READ, begin, partition, table, take


def test_committed_writes_are_told_by_partition(store: Metastore) -> None:
    store.create_table(table(partitioned=True))
    store.add_partitions([partition("1"), partition("2")])
    if store.completed_writes("default", "t") is None:
        return  # a Hive Metastore does not tell
    for place in ("default.t/p=1", "default.t/p=2", "default.t"):
        txn_id = begin(store)
        take(store, txn_id, READ, place, Operation.INSERT)
        store.allocate_table_write_id(txn_id, "default", "t")
        store.commit_txn(txn_id)
    for ends in (store.abort_txns, lambda ids: None):
        txn_id = begin(store)
        take(store, txn_id, READ, "default.t/p=1", Operation.INSERT)
        store.allocate_table_write_id(txn_id, "default", "t")
        ends([txn_id])
    assert store.completed_writes("default", "t") == {"p=1": {1}, "p=2": {2}, "": {3}}
    assert store.completed_writes("default", "u") == {}
    store.drop_partitions("default", "t", ["p=1"])
    assert store.completed_writes("default", "t") == {"p=2": {2}, "": {3}}
