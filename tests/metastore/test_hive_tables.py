"""What stands in Hive's transaction tables: who knows a Hive metastore reads the embedded one in the same way.

(``testMetastoreTablesCleanup``, ``testCompletedTxnComponents``, ``testValidTxnsBookkeeping``, ``addDynamicPartitions``)
"""

from __future__ import annotations

import pytest

from acidsql.errors import WriteConflict
from acidsql.metastore.model import LockType, Operation, TxnType
from acidsql.metastore.protocol import Metastore
from tests.metastore.conftest import Outside
from tests.metastore.situations import (
    EXCL_WRITE,
    EXCLUSIVE,
    READ,
    SHARED_WRITE,
    ask,
    ask_all,
    begin,
    component,
    table,
    take,
    write,
)

pytestmark = pytest.mark.needs("embedded")

INSERT, UPDATE, DELETE, SELECT = Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.SELECT

COMPONENTS = "SELECT TC_TXNID, TC_TABLE, TC_PARTITION, TC_OPERATION_TYPE, TC_WRITEID FROM TXN_COMPONENTS"
COMPLETED = "SELECT CTC_TXNID, CTC_TABLE, CTC_PARTITION, CTC_WRITEID, CTC_UPDATE_DELETE FROM COMPLETED_TXN_COMPONENTS"


@pytest.fixture
def rows(store: Metastore, outside: Outside) -> Outside:
    """Rows of a query on the tables of the store, sorted."""
    return lambda sql: sorted(outside(sql), key=str)


class TestTxnComponents:
    @pytest.mark.parametrize(("operation", "letter"), [(INSERT, "i"), (UPDATE, "u"), (DELETE, "d")])
    def test_tell_what_is_written_to_from_the_lock_on(
        self, store: Metastore, rows: Outside, operation: Operation, letter: str
    ) -> None:
        txn_id = begin(store)
        take(store, txn_id, READ, "default.t/p=1", operation)
        assert rows(COMPONENTS) == [(txn_id, "t", "p=1", letter, None)]
        write_id = store.allocate_table_write_id(txn_id, "default", "t")
        assert rows(COMPONENTS) == [(txn_id, "t", "p=1", letter, write_id)]

    @pytest.mark.parametrize("operation", [SELECT, Operation.NO_TXN])
    def test_tell_nothing_of_what_is_only_read_or_kept(
        self, store: Metastore, rows: Outside, operation: Operation
    ) -> None:
        take(store, begin(store), EXCLUSIVE, "default.t", operation)
        assert rows(COMPONENTS) == []

    def test_tell_nothing_of_a_lock_without_transaction(self, store: Metastore, rows: Outside) -> None:
        take(store, 0, READ, "default.t", INSERT)
        assert rows(COMPONENTS) == []

    def test_of_a_waiting_request_are_there_too(self, store: Metastore, rows: Outside) -> None:
        take(store, begin(store), EXCLUSIVE, "default.t")
        waiting = begin(store)
        ask(store, waiting, EXCL_WRITE, "default.t", UPDATE)
        assert rows(COMPONENTS) == [(waiting, "t", None, "u", None)]

    def test_of_a_dynamic_partition_write_are_one_for_the_table_until_its_partitions_are_named(
        self, store: Metastore, rows: Outside
    ) -> None:
        txn_id = begin(store)
        ask_all(
            store,
            txn_id,
            component(READ, "default.t/p=1", INSERT, dynamic=True),
            component(READ, "default.t/p=2", DELETE, dynamic=True),
        )
        assert rows(COMPONENTS) == [(txn_id, "t", None, "u", None)]
        write_id = store.allocate_table_write_id(txn_id, "default", "t")
        store.add_dynamic_partitions(txn_id, write_id, "default", "t", ["p=2", "p=3", "p=2"], UPDATE)
        assert rows(COMPONENTS) == [(txn_id, "t", f"p={i}", "u", write_id) for i in (2, 3)]

    def test_get_a_write_id_that_the_transaction_had_before(self, store: Metastore, rows: Outside) -> None:
        txn_id = begin(store)
        write_id = store.allocate_table_write_id(txn_id, "default", "t")
        take(store, txn_id, READ, "default.t", INSERT)
        assert rows(COMPONENTS) == [(txn_id, "t", None, "i", write_id)]

    def test_of_an_aborted_transaction_stay_until_its_files_are_gone(self, store: Metastore, rows: Outside) -> None:
        txn_id = write(store)
        store.abort_txns([txn_id])
        store.clean_empty_aborted_txns()
        assert rows(COMPONENTS) == [(txn_id, "t", None, "i", 1)]
        store.forget_txn_components(txn_id)
        assert rows(COMPONENTS) == []

    def test_are_made_for_a_write_id_that_no_lock_covers_when_its_transaction_is_aborted(
        self, store: Metastore, rows: Outside
    ) -> None:
        txn_id = begin(store)
        store.allocate_table_write_id(txn_id, "default", "t")
        assert rows(COMPONENTS) == []
        store.abort_txns([txn_id])
        assert rows(COMPONENTS) == [(txn_id, "t", None, "u", 1)]


class TestCompletedTxnComponents:
    @pytest.mark.parametrize(("operations", "changed"), [([INSERT], "N"), ([DELETE], "Y"), ([INSERT, UPDATE], "Y")])
    def test_take_over_the_components_of_a_commit(
        self, store: Metastore, rows: Outside, operations: list[Operation], changed: str
    ) -> None:
        txn_id = begin(store)
        for i, operation in enumerate(operations):
            write(store, f"default.t{i}", operation, txn_id=txn_id)
        store.commit_txn(txn_id)
        assert rows(COMPONENTS) == []
        assert rows(COMPLETED) == [(txn_id, f"t{i}", None, 1, changed) for i in range(len(operations))]

    def test_name_each_object_once(self, store: Metastore, rows: Outside) -> None:
        txn_id = begin(store)
        for _ in range(2):
            write(store, txn_id=txn_id)
        store.commit_txn(txn_id)
        assert rows(COMPLETED) == [(txn_id, "t", None, 1, "N")]

    def test_know_nothing_of_readers_and_compactions(self, store: Metastore, rows: Outside) -> None:
        reader, compactor = begin(store, TxnType.READ_ONLY), begin(store, TxnType.COMPACTION)
        take(store, reader, READ, "default.t", SELECT)
        write(store, txn_id=compactor)
        for txn_id in (reader, compactor):
            store.commit_txn(txn_id)
        assert rows(COMPLETED) == []
        assert rows(COMPONENTS) == []


class TestTheOtherTables:
    def test_a_dropped_table_leaves_its_locks_and_its_next_write_id(self, store: Metastore, rows: Outside) -> None:
        store.create_table(table())
        store.commit_txn(write(store, operation=UPDATE))
        store.abort_txns([write(store)])
        dropper = begin(store)
        take(store, dropper, EXCLUSIVE, "default.t")
        store.drop_table("default", "t")
        left = ("TXN_COMPONENTS", "COMPLETED_TXN_COMPONENTS", "TXN_TO_WRITE_ID", "WRITE_SET", "TBLS")
        assert [rows(f"SELECT * FROM {name}") for name in left] == [[]] * len(left)
        assert rows("SELECT HL_TXNID, HL_TABLE FROM HIVE_LOCKS") == [(dropper, "t")]
        assert rows("SELECT NWI_TABLE, NWI_NEXT FROM NEXT_WRITE_ID") == [("t", 3)]

    @pytest.mark.parametrize(
        ("type", "letter"), [(READ, "r"), (SHARED_WRITE, "w"), (EXCL_WRITE, "x"), (EXCLUSIVE, "e")]
    )
    def test_locks_have_hives_letters(self, store: Metastore, rows: Outside, type: LockType, letter: str) -> None:
        take(store, begin(store), type, "default.t/p=1")
        take(store, begin(store), READ, "other")
        ask(store, begin(store), EXCLUSIVE, "default.t")
        columns = "HL_LOCK_EXT_ID, HL_LOCK_TYPE, HL_LOCK_STATE, HL_DB, HL_TABLE, HL_PARTITION, HL_BLOCKEDBY_EXT_ID"
        assert rows(f"SELECT {columns} FROM HIVE_LOCKS") == [
            (1, letter, "a", "default", "t", "p=1", None),
            (2, "r", "a", "other", None, None, None),
            (3, "e", "w", "default", "t", None, 1),
        ]


def test_a_change_under_a_shared_lock_is_checked_at_commit_whatever_the_session_is_set_to(store: Metastore) -> None:
    """``hive.txn.xlock.write`` may be set between lock and commit; the lock that was taken tells what was relied on."""
    store.create_table(table())
    one, two = begin(store), begin(store)
    for txn_id in (one, two):
        write(store, operation=UPDATE, txn_id=txn_id, type=SHARED_WRITE)
    store.commit_txn(one)
    with pytest.raises(WriteConflict):
        store.commit_txn(two)
