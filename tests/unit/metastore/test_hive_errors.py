"""What a Hive Metastore answers, as errors of acidsql: over the wire, call by call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hive_metastore import ttypes

from acidsql.errors import (
    AcidError,
    AlreadyExists,
    AnalysisError,
    DatabaseNotFound,
    MetastoreError,
    NoSuchLock,
    NoSuchTransaction,
    PartitionNotFound,
    TableNotFound,
    TransactionAborted,
    TransactionError,
    UnsupportedError,
    WriteConflict,
)
from acidsql.metastore.hive import HiveMetastore
from acidsql.metastore.model import Database, LockRequest, Operation
from tests.unit.metastore.conftest import Connect, Serve

Call = Callable[[HiveMetastore], object]
CONFLICT = "Aborting [txnid:7,9] due to a write conflict on d/t committed by [txnid:8,9] u/u"
FOUND = ttypes.GetTableResult(table=ttypes.Table(dbName="d", tableName="t", sd=ttypes.StorageDescriptor(cols=[])))


@pytest.mark.parametrize(
    ("name", "answer", "call", "wanted", "code"),
    [
        ("commit_txn", ttypes.NoSuchTxnException("gone"), lambda s: s.commit_txn(7), NoSuchTransaction, 10262),
        ("commit_txn", ttypes.TxnAbortedException("aborted"), lambda s: s.commit_txn(7), TransactionAborted, 10263),
        ("commit_txn", ttypes.TxnAbortedException(CONFLICT), lambda s: s.commit_txn(7), WriteConflict, 10263),
        ("heartbeat", ttypes.NoSuchLockException("gone"), lambda s: s.heartbeat(lock_id=3), NoSuchLock, 10270),
        ("heartbeat", ttypes.NoSuchTxnException("gone"), lambda s: s.heartbeat(txn_id=3), NoSuchTransaction, 10262),
        ("heartbeat", ttypes.TxnAbortedException("x"), lambda s: s.heartbeat(txn_id=3), TransactionAborted, 10263),
        ("check_lock", ttypes.NoSuchLockException("gone"), lambda s: s.check_lock(3), NoSuchLock, 10270),
        ("check_lock", ttypes.TxnAbortedException("x"), lambda s: s.check_lock(3), TransactionAborted, 10263),
        ("unlock", ttypes.NoSuchLockException("gone"), lambda s: s.unlock(3), NoSuchLock, 10270),
        ("unlock", ttypes.TxnOpenException("open"), lambda s: s.unlock(3), TransactionError, None),
        (
            "lock",
            ttypes.NoSuchTxnException("x"),
            lambda s: s.lock(LockRequest((), 7, "u", "h")),
            NoSuchTransaction,
            10262,
        ),
        (
            "add_dynamic_partitions",
            ttypes.TxnAbortedException("x"),
            lambda s: s.add_dynamic_partitions(7, 1, "d", "t", ["p=1"], Operation.INSERT),
            TransactionAborted,
            10263,
        ),
        ("get_database", ttypes.NoSuchObjectException("x"), lambda s: s.get_database("d"), DatabaseNotFound, 10072),
        ("get_table_req", ttypes.NoSuchObjectException("x"), lambda s: s.get_table("d", "t"), TableNotFound, 10001),
        ("drop_table", ttypes.NoSuchObjectException("x"), lambda s: s.drop_table("d", "t"), TableNotFound, 10001),
        (
            "drop_partitions_req",
            ttypes.NoSuchObjectException("x"),
            lambda s: s.drop_partitions("d", "t", ["p=1"]),
            PartitionNotFound,
            10006,
        ),
        (
            "drop_database",
            ttypes.InvalidOperationException("Database d is not empty. One or more tables exist."),
            lambda s: s.drop_database("d"),
            AnalysisError,
            10226,
        ),
        (
            "create_database",
            ttypes.AlreadyExistsException("Database d already exists"),
            lambda s: s.create_database(Database("d", "file:/w/d.db")),
            AlreadyExists,
            None,
        ),
        (
            "get_all_databases",
            ttypes.MetaException("Derby fell over"),
            lambda s: s.list_databases(),
            MetastoreError,
            None,
        ),
        ("get_all_databases", RuntimeError("a bug of theirs"), lambda s: s.list_databases(), MetastoreError, None),
    ],
)
def test_an_exception_of_the_metastore_is_one_of_ours(
    serve: Serve, connect: Connect, name: str, answer: Exception, call: Call, wanted: type[AcidError], code: int | None
) -> None:
    server = serve(get_table_req=FOUND, get_database=ttypes.Database(name="default", locationUri="file:/w"))
    server.answers.update({"get_config_value": "", name: answer})
    session = connect(server)
    with pytest.raises(AcidError) as caught:
        call(session)
    assert type(caught.value) is wanted
    if code is not None:
        assert caught.value.code == code
    assert server.counts[name] == 1, "what a server refuses is not asked again"
    assert server.connections == 1, "a connection over which something was refused is as good as any"


@pytest.mark.parametrize(
    ("name", "call", "wanted"),
    [
        ("get_table_req", lambda s: s.get_table("d", "t"), "d.t"),
        ("drop_table", lambda s: s.drop_table("d", "t"), "d.t"),
        ("get_database", lambda s: s.get_database("nowhere"), "nowhere"),
    ],
)
def test_what_is_missing_is_named_by_us(serve: Serve, connect: Connect, name: str, call: Call, wanted: str) -> None:
    """Hive's own messages name the catalog, or nothing at all."""
    session = connect(serve(**{name: ttypes.NoSuchObjectException("hive.null")}))
    with pytest.raises(AnalysisError, match=wanted):
        call(session)


def test_a_call_that_the_server_does_not_know(serve: Serve, connect: Connect) -> None:
    session = connect(serve())
    with pytest.raises(UnsupportedError, match="abort_Compactions"):
        session.abort_compactions([1])


def test_a_lock_of_an_aborted_transaction(serve: Serve, connect: Connect) -> None:
    """Hive answers a state, and raises nothing."""
    session = connect(serve(check_lock=ttypes.LockResponse(3, ttypes.LockState.ABORT, errorMessage="too late")))
    with pytest.raises(TransactionAborted, match="too late") as caught:
        session.check_lock(3)
    assert caught.value.code == 10263
