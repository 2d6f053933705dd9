"""A Hive Metastore as a store under test: one server for all tests, emptied before each of them."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import Any

from acidsql.metastore.model import LockRequest, LockResponse, TxnInfo
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from acidsql.valid_ids import ValidTxnList


class Server:
    """A running Hive Metastore that belongs to the tests: they drop all that is in it.

    Args:
        variable: The environment variable that has its address.
    """

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._latest_before = 0
        self.touched: set[tuple[str, str]] = set()
        """Tables that transactions were about to write to, whether they were created or not."""

    def missing(self) -> str | None:
        if not self.uri:
            return f"{self._variable} does not name one that the tests may empty"
        return None

    @property
    def uri(self) -> str:
        return os.environ.get(self._variable, "")

    def open(self, settings: Settings) -> Metastore:
        return _under_test(self, settings)

    @cached_property
    def warehouse(self) -> str:
        return self._session.get_database("default").location

    @cached_property
    def _session(self) -> Any:
        from acidsql.metastore.hive import HiveMetastore

        return HiveMetastore(self.uri, Settings())

    @property
    def latest_before(self) -> int:
        """The latest transaction when the test began."""
        return self._latest_before

    def empty(self) -> None:
        """Make it a new store, but for the ids that were handed out and the aborted transactions in its list."""
        session = self._session
        session._call(self._end_all)
        for database in session.list_databases():
            for name in session.list_tables(database):
                session._call(lambda c, d=database, t=name: c.drop_table(d, t, True))
                self.touched.discard((database, name))
            if database != "default":
                session.drop_database(database)
        for database, name in sorted(self.touched):
            self._forget(database, name)
        self.touched.clear()
        self._latest_before = session.get_valid_txns().high_watermark

    def _end_all(self, client: Any) -> None:
        from hive_metastore import ttypes

        open_ids = [t.id for t in client.get_open_txns_info().open_txns if t.state == ttypes.TxnState.OPEN]
        locks = client.show_locks(ttypes.ShowLocksRequest()).locks
        # aborting a committed transaction only takes its locks away, which Hive gives to one
        ids = {*open_ids, *(one.txnid for one in locks if one.txnid)}
        if ids:
            client.abort_txns(ttypes.AbortTxnsRequest(txn_ids=sorted(ids)))
        for lock in {one.lockid for one in locks if not one.txnid}:
            client.unlock(ttypes.UnlockRequest(lockid=lock))

    def _forget(self, database: str, name: str) -> None:
        """Have the metastore forget components and write ids of a table that was never made."""
        from acidsql.metastore.model import Column, Database, Table

        session = self._session
        home = f"{self.warehouse}/{database}.db"
        if database != "default":
            session.create_database(Database(database, home))
        location = f"{home}/{name}" if database != "default" else f"{self.warehouse}/{name}"
        parameters = {"transactional": "true"}
        session.create_table(Table(database, name, location, (Column("a", "int"),), (), parameters))
        session.drop_table(database, name)
        if database != "default":
            session.drop_database(database)


def _under_test(server: Server, settings: Settings) -> Metastore:
    from acidsql.metastore.hive import HiveMetastore

    class UnderTest(HiveMetastore):
        """Tells the server what is to be forgotten, and does not show the transactions of earlier tests."""

        def lock(self, request: LockRequest) -> LockResponse:
            server.touched |= {(c.database, c.table) for c in request.components if c.table}
            return super().lock(request)

        def allocate_table_write_id(self, txn_id: int, database: str, table: str, *, reallocate: bool = False) -> int:
            server.touched.add((database, table))
            return super().allocate_table_write_id(txn_id, database, table, reallocate=reallocate)

        def show_txns(self) -> list[TxnInfo]:
            return [t for t in super().show_txns() if t.id > server.latest_before]

        def get_valid_txns(self, current_txn: int = 0) -> ValidTxnList:
            found = super().get_valid_txns(current_txn)
            return replace(found, aborted_ids=tuple(t for t in found.aborted_ids if t > server.latest_before))

    return UnderTest(server.uri, settings)
