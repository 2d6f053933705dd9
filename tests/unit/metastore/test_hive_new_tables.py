"""What a new table needs of a Hive Metastore is several calls: they come in an order in which each may be the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hive_metastore import ttypes

from acidsql.errors import AlreadyExists, TransactionError
from acidsql.metastore.model import Column, Import, Partition, Table
from acidsql.valid_ids import ValidWriteIdList
from tests.unit.metastore.conftest import Connect, Serve

TABLE = Table("d", "t", "file:/w/d.db/t", (Column("a", "int"),), (Column("p", "int"),), owner="ann")
IMPORT = Import(ValidWriteIdList("d.t", 7), 0, (Partition("d", "t", ("1",), "file:/w/d.db/t/p=1"),))


class Server:
    """A metastore of one table at most, and of its write ids."""

    def __init__(self) -> None:
        self.table: Any = None
        self.high = 0
        self.locks: list[Any] = []

    @property
    def answers(self) -> Mapping[str, Any]:
        return {
            "get_database": ttypes.Database(name="d", locationUri="file:/w/d.db"),
            "get_config_value": "file:/w",
            "create_table_req": lambda request: self.create(request.table),
            "get_table_req": lambda request: ttypes.GetTableResult(table=self.get()),
            "get_all_table_constraints": ttypes.AllTableConstraintsResponse(ttypes.SQLAllTableConstraints()),
            "get_open_txns_req": ttypes.GetOpenTxnsResponse(9, [], abortedBits=b""),
            "get_valid_write_ids": lambda request: ttypes.GetValidWriteIdsResponse(
                [ttypes.TableValidWriteIds("d.t", self.high, [], None, b"")]
            ),
            "seed_write_id": lambda request: self.seed(request.seedWriteId),
            "open_txns": lambda request: ttypes.OpenTxnsResponse([11]),
            "allocate_table_write_ids": lambda request: self.allocate(),
            "commit_txn": lambda request: None,
            "add_partitions_req": lambda request: ttypes.AddPartitionsResult(partitions=[]),
            "show_locks": lambda request: ttypes.ShowLocksResponse(self.locks),
            "drop_table": lambda *_: self.drop(),
        }

    def create(self, table: Any) -> None:
        self.table = table

    def get(self) -> Any:
        if self.table is None:
            raise ttypes.NoSuchObjectException("hive.d.t table not found")
        return self.table

    def drop(self) -> None:
        self.table = None

    def seed(self, write_id: int) -> None:
        self.high = write_id

    def allocate(self) -> Any:
        self.high += 1
        return ttypes.AllocateTableWriteIdsResponse([ttypes.TxnToWriteId(11, self.high)])


@pytest.fixture
def behind() -> Server:
    return Server()


class TestATableThatTakesInADirectory:
    def test_is_registered_after_its_write_ids_and_before_its_partitions(
        self, serve: Serve, connect: Connect, behind: Server
    ) -> None:
        server = serve(**behind.answers)
        connect(server).create_table(TABLE, holds_rows=True, imported=IMPORT)
        own = [c for c in server.carried_out if c in ("seed_write_id", "create_table_req", "add_partitions_req")]
        assert own == ["seed_write_id", "create_table_req", "add_partitions_req"]

    def test_is_registered_by_a_second_try_after_one_that_was_cut_off(
        self, serve: Serve, connect: Connect, behind: Server
    ) -> None:
        behind.high = 7
        server = serve(**behind.answers)
        connect(server).create_table(TABLE, holds_rows=True, imported=IMPORT)
        assert not server.counts["seed_write_id"]
        assert behind.table is not None

    def test_is_refused_where_other_write_ids_have_the_name(
        self, serve: Serve, connect: Connect, behind: Server
    ) -> None:
        behind.high = 6
        with pytest.raises(TransactionError, match="has write ids already"):
            connect(serve(**behind.answers)).create_table(TABLE, holds_rows=True, imported=IMPORT)
        assert behind.table is None

    def test_gives_no_write_id_away_where_its_name_is_taken(
        self, serve: Serve, connect: Connect, behind: Server
    ) -> None:
        session = connect(serve(**behind.answers))
        session.create_table(TABLE)
        with pytest.raises(AlreadyExists):
            session.create_table(TABLE, holds_rows=True, imported=IMPORT)
        assert behind.high == 0


class TestATableWhoseStatementFailed:
    def test_is_dropped_without_its_files(self, serve: Serve, connect: Connect, behind: Server) -> None:
        session = connect(serve(**behind.answers))
        session.create_table(TABLE)
        assert session.discard_table(TABLE, 11)
        assert behind.table is None
        assert not session.discard_table(TABLE, 11)

    def test_stays_where_rows_were_committed(self, serve: Serve, connect: Connect, behind: Server) -> None:
        session = connect(serve(**behind.answers))
        session.create_table(TABLE)
        behind.high = 1
        assert not session.discard_table(TABLE, 11)
        assert behind.table is not None


def test_a_hive_metastore_removes_what_is_dropped_itself(serve: Serve, connect: Connect, behind: Server) -> None:
    session = connect(serve(**behind.answers))
    assert session.dropped_directories() == []
    assert session.has_owner("file:/w/d.db/t")
    with session.alone():
        pass
