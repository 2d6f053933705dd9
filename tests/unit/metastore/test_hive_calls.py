"""Calls that may be carried out although their answer is lost, and what each version of Hive is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hive_metastore import ttypes

from acidsql.errors import (
    AlreadyExists,
    DatabaseNotFound,
    MetastoreError,
    NoSuchTransaction,
    PartitionNotFound,
    TableNotFound,
    TransactionAborted,
    TransactionError,
    UnsupportedError,
    WriteConflict,
)
from acidsql.metastore.hive import translate
from acidsql.metastore.model import (
    Column,
    Constraint,
    ConstraintKind,
    Database,
    LockComponent,
    LockInfo,
    LockRequest,
    LockState,
    LockType,
    Operation,
    Partition,
    Table,
)
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList
from tests.metastore.situations import check
from tests.unit.metastore.conftest import Connect, Serve
from tests.unit.metastore.scripted import Fault, ScriptedMetastore

TABLE = Table(
    "d", "t", "file:/w/d.db/t", (Column("a", "int", not_null=True),), (), {"transactional": "true"}, owner="ann"
)
PLAIN = Table("d", "t", "file:/w/d.db/t", (Column("a", "int"),), owner="ann")
DATABASE = ttypes.Database(name="d", locationUri="file:/w/d.db")
LOST = [Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.CUTS]


class Catalog:
    """A catalog of one table at most, as a Hive Metastore of either version tells of it."""

    def __init__(self) -> None:
        self.table: Any = None
        self.constraints: Any = ttypes.SQLAllTableConstraints(notNullConstraints=[], defaultConstraints=[])

    @property
    def answers(self) -> Mapping[str, Any]:
        return {
            "get_database": DATABASE,
            "get_config_value": "file:/w",
            "create_table_req": lambda request: self.create(request.table, request.notNullConstraints),
            "create_table": lambda table: self.create(table, None),
            "create_table_with_constraints": lambda table, pk, fk, uk, not_null, *_: self.create(table, not_null),
            "get_table_req": lambda request: ttypes.GetTableResult(table=self.get()),
            "get_all_table_constraints": lambda request: ttypes.AllTableConstraintsResponse(self.constraints),
            "get_not_null_constraints": lambda r: ttypes.NotNullConstraintsResponse(
                self.constraints.notNullConstraints
            ),
            "get_default_constraints": lambda r: ttypes.DefaultConstraintsResponse([]),
            "get_check_constraints": lambda r: ttypes.CheckConstraintsResponse([]),
            "get_primary_keys": lambda r: ttypes.PrimaryKeysResponse([]),
            "get_foreign_keys": lambda r: ttypes.ForeignKeysResponse([]),
            "get_unique_constraints": lambda r: ttypes.UniqueConstraintsResponse([]),
            "drop_table": lambda *_: self.drop(),
            "alter_table_req": lambda request: self.alter(request.table) or ttypes.AlterTableResponse(),
            "alter_table": lambda database, name, table: self.alter(table),
        }

    def create(self, table: Any, not_null: Any) -> None:
        if self.table is not None:
            raise ttypes.AlreadyExistsException("Table hive.d.t already exists")
        self.table = table
        self.constraints.notNullConstraints = not_null or []

    def get(self) -> Any:
        if self.table is None:
            raise ttypes.NoSuchObjectException("hive.d.t table not found")
        return self.table

    def drop(self) -> None:
        self.get()
        self.table = None

    def alter(self, table: Any) -> None:
        self.get()
        self.table = table


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


class TestACallWhoseAnswerIsLost:
    @pytest.mark.parametrize("fault", LOST)
    def test_creates_a_table_once(self, serve: Serve, connect: Connect, catalog: Catalog, fault: Fault) -> None:
        server = serve(**catalog.answers)
        server.fail("create_table_req", fault)
        session = connect(server)
        session.create_table(TABLE)
        assert session.get_table("d", "t").columns == TABLE.columns

    def test_does_not_take_the_table_of_another_for_its_own(
        self, serve: Serve, connect: Connect, catalog: Catalog
    ) -> None:
        catalog.create(translate.table_to_thrift(Table("d", "t", "file:/w/d.db/t", (Column("b", "int"),))), None)
        server = serve(**catalog.answers)
        server.fail("create_table_req", Fault.DIES_BEFORE)
        with pytest.raises(AlreadyExists):
            connect(server).create_table(TABLE)

    def test_that_was_not_lost_does_not_take_a_table_for_its_own(
        self, serve: Serve, connect: Connect, catalog: Catalog
    ) -> None:
        session = connect(serve(**catalog.answers))
        session.create_table(TABLE)
        with pytest.raises(AlreadyExists):
            session.create_table(TABLE)

    @pytest.mark.parametrize("fault", LOST)
    def test_drops_a_table_once(self, serve: Serve, connect: Connect, catalog: Catalog, fault: Fault) -> None:
        catalog.create(translate.table_to_thrift(PLAIN), None)
        server = serve(**catalog.answers)
        server.fail("drop_table", fault)
        session = connect(server)
        session.drop_table("d", "t")
        assert catalog.table is None
        with pytest.raises(TableNotFound):
            session.drop_table("d", "t")

    def test_creates_and_drops_a_database_once(self, serve: Serve, connect: Connect) -> None:
        made: dict[str, Any] = {"default": ttypes.Database(name="default", locationUri="file:/w")}

        def create(database: Any) -> None:
            if database.name in made:
                raise ttypes.AlreadyExistsException(database.name)
            made[database.name] = database

        def get(name: str) -> Any:
            if name not in made:
                raise ttypes.NoSuchObjectException(name)
            return made[name]

        server = serve(
            create_database=create,
            get_database=get,
            get_config_value="file:/w",
            drop_database=lambda name, *_: made.pop(get(name).name) and None,
        )
        session = connect(server)
        server.fail("create_database", Fault.DIES_AFTER)
        session.create_database(Database("d", "file:/elsewhere"))
        server.fail("create_database", Fault.DIES_BEFORE)
        with pytest.raises(AlreadyExists):
            session.create_database(Database("d", "file:/yet/elsewhere"))
        server.fail("drop_database", Fault.DIES_AFTER)
        session.drop_database("d")
        with pytest.raises(DatabaseNotFound):
            session.drop_database("d")

    def test_drops_partitions_once(self, serve: Serve, connect: Connect, catalog: Catalog) -> None:
        catalog.create(translate.table_to_thrift(PLAIN), None)
        names = ["p=1"]

        def drop(request: Any) -> Any:
            if not names:
                raise ttypes.NoSuchObjectException("some partition names not found")
            names.clear()
            return ttypes.DropPartitionsResult()

        server = serve(**catalog.answers, drop_partitions_req=drop)
        server.fail("drop_partitions_req", Fault.DIES_AFTER)
        session = connect(server)
        session.drop_partitions("d", "t", ["p=1"])
        with pytest.raises(PartitionNotFound, match="p=1"):
            session.drop_partitions("d", "t", ["p=1"])

    @pytest.mark.parametrize("fault", LOST)
    def test_commits_once(self, serve: Serve, connect: Connect, fault: Fault) -> None:
        """Hive takes a second commit of what is committed."""
        server = serve(commit_txn=None)
        server.fail("commit_txn", fault)
        connect(server).commit_txn(7)
        assert server.counts["commit_txn"] == (1 if fault is Fault.DIES_BEFORE else 2)

    def test_commits_what_the_server_has_forgotten_meanwhile(self, serve: Serve, connect: Connect) -> None:
        """Hive 3 forgets a transaction that wrote nothing as soon as it ends."""
        ended: list[int] = []

        def commit(request: Any) -> None:
            if request.txnid in ended:
                raise ttypes.NoSuchTxnException(f"No such transaction txnid:{request.txnid}")
            ended.append(request.txnid)

        server = serve(commit_txn=commit)
        server.fail("commit_txn", Fault.DIES_AFTER)
        session = connect(server)
        session.commit_txn(7)
        with pytest.raises(NoSuchTransaction):
            session.commit_txn(7)

    @pytest.mark.parametrize("wanted", [TransactionAborted, WriteConflict])
    def test_does_not_commit_what_was_refused(
        self, serve: Serve, connect: Connect, wanted: type[TransactionAborted]
    ) -> None:
        message = "due to a write conflict on d/t" if wanted is WriteConflict else "already aborted"
        server = serve(commit_txn=ttypes.TxnAbortedException(message))
        server.fail("commit_txn", Fault.DIES_AFTER)
        with pytest.raises(wanted):
            connect(server).commit_txn(7)

    def test_may_have_opened_transactions_that_nobody_knows(self, serve: Serve, connect: Connect) -> None:
        """They end by their time-out; the caller has those of the second try."""
        answers = iter([[1, 2], [3, 4]])
        server = serve(open_txns=lambda request: ttypes.OpenTxnsResponse(next(answers)))
        server.fail("open_txns", Fault.DIES_AFTER)
        assert connect(server).open_txns(2, user="ann", host="desk") == [3, 4]


class TestLocks:
    HOLDER = ttypes.ShowLocksResponseElement(
        lockid=4, dbname="d", tablename="t", state=1, type=3, txnid=7, user="bob", hostname="h", lockIdInternal=2
    )
    WAITER = ttypes.ShowLocksResponseElement(
        lockid=5, dbname="d", tablename="t", state=2, type=1, txnid=8, user="ann", hostname="h", lockIdInternal=1
    )

    def ask(self, session: Any) -> Any:
        component = LockComponent(LockType.SHARED_READ, "d", "t", None, Operation.SELECT)
        return session.lock(LockRequest((component,), 8, "ann", "h"))

    def test_that_are_granted_cost_one_call(self, serve: Serve, connect: Connect) -> None:
        server = serve(lock=ttypes.LockResponse(5, ttypes.LockState.ACQUIRED))
        response = self.ask(connect(server))
        assert (response.lock_id, response.state, response.blocked_by) == (5, LockState.ACQUIRED, None)
        assert server.counts == {"lock": 1}

    def test_that_wait_name_who_is_in_the_way(self, serve: Serve, connect: Connect) -> None:
        waiter = ttypes.ShowLocksResponseElement(**{**vars(self.WAITER), "blockedByExtId": 4, "blockedByIntId": 2})
        response = self.ask(connect(self.server(serve, ttypes.LockState.WAITING, waiter)))
        assert response.state is LockState.WAITING
        assert isinstance(response.blocked_by, LockInfo)
        assert (response.blocked_by.lock_id, response.blocked_by.internal_id) == (4, 2)
        assert (response.blocked_by.txn_id, response.blocked_by.user) == (7, "bob")

    def test_that_wait_for_one_that_has_just_gone_name_nobody(self, serve: Serve, connect: Connect) -> None:
        waiter = ttypes.ShowLocksResponseElement(**{**vars(self.WAITER), "blockedByExtId": 3, "blockedByIntId": 1})
        response = self.ask(connect(self.server(serve, ttypes.LockState.WAITING, waiter)))
        assert (response.state, response.blocked_by) == (LockState.WAITING, None)

    def test_that_are_not_acquired_name_who_is_in_the_way(self, serve: Serve, connect: Connect) -> None:
        message = "Unable to acquire read lock due to an existing exclusive lock {lockid:4 intLockId:2 txnid:7 db:d}"
        response = self.ask(connect(self.server(serve, ttypes.LockState.NOT_ACQUIRED, message=message)))
        assert response.state is LockState.NOT_ACQUIRED
        assert response.blocked_by is not None
        assert response.blocked_by.lock_id == 4

    def server(self, serve: Serve, state: int, *waiting: Any, message: str | None = None) -> ScriptedMetastore:
        return serve(
            lock=ttypes.LockResponse(5, state, message),
            show_locks=ttypes.ShowLocksResponse([self.HOLDER, *waiting]),
        )


class TestWriteIds:
    @pytest.mark.parametrize(
        ("shown", "wanted"),
        [
            ([], NoSuchTransaction),
            ([ttypes.TxnInfo(7, ttypes.TxnState.ABORTED, "u", "h")], TransactionAborted),
            ([ttypes.TxnInfo(7, ttypes.TxnState.OPEN, "u", "h")], TransactionError),
        ],
        ids=["ended", "aborted", "read-only"],
    )
    @pytest.mark.parametrize(
        "closes", [True, False], ids=["Hive 3 closes the connection", "Hive 4 says internal error"]
    )
    def test_of_a_transaction_that_cannot_write(
        self, serve: Serve, connect: Connect, shown: list[Any], wanted: type[TransactionError], closes: bool
    ) -> None:
        server = serve(
            get_open_txns_info=ttypes.GetOpenTxnsInfoResponse(9, shown),
            get_open_txns_req=ttypes.GetOpenTxnsResponse(9, []),
            allocate_table_write_ids=RuntimeError("IllegalStateException"),
        )
        if closes:
            server.fail("allocate_table_write_ids", *[Fault.DIES_AFTER] * 2)
        with pytest.raises(wanted) as caught:
            connect(server).allocate_table_write_id(7, "d", "t")
        assert type(caught.value) is wanted
        assert "7" in caught.value.message

    def test_of_a_transaction_that_can_write_are_refused_as_hive_refuses_them(
        self, serve: Serve, connect: Connect
    ) -> None:
        server = serve(
            get_open_txns_info=ttypes.GetOpenTxnsInfoResponse(9, [ttypes.TxnInfo(7, ttypes.TxnState.OPEN, "u", "h")]),
            get_open_txns_req=ttypes.GetOpenTxnsResponse(9, [7], abortedBits=b""),
            allocate_table_write_ids=RuntimeError("Derby fell over"),
        )
        with pytest.raises(MetastoreError, match="Internal error"):
            connect(server).allocate_table_write_id(7, "d", "t")

    def test_are_listed_in_the_order_asked_for(self, serve: Serve, connect: Connect) -> None:
        asked: list[Any] = []

        def answer(request: Any) -> Any:
            asked.append(request)
            return ttypes.GetValidWriteIdsResponse(
                [ttypes.TableValidWriteIds(name, i, [], None, b"") for i, name in enumerate(request.fullTableNames)][
                    ::-1
                ]
            )

        session = connect(serve(get_valid_write_ids=answer))
        found = session.get_valid_write_ids(["d.b", "d.a", "d.b"], ValidTxnList(9, (4,), (7,)))
        assert [one.table for one in found] == ["d.b", "d.a", "d.b"]
        assert asked[0].validTxnList == ValidTxnList(9, (4,), (7,)).to_text()
        assert session.get_valid_write_ids([], ValidTxnList(9)) == []
        assert len(asked) == 1


def test_heartbeats_go_out_for_runs_of_ids(serve: Serve, connect: Connect) -> None:
    """In a gap stand the transactions of others, which must not live on by our heartbeats."""
    asked: list[tuple[int, int]] = []

    def answer(request: Any) -> Any:
        asked.append((request.min, request.max))
        return ttypes.HeartbeatTxnRangeResponse(aborted={request.min}, nosuch=set())

    session = connect(serve(heartbeat_txn_range=answer))
    assert session.heartbeat_txns([9, 3, 4, 5, 4, 7]) == ([3, 7, 9], [])
    assert asked == [(3, 5), (7, 7), (9, 9)]
    assert session.heartbeat_txns([]) == ([], [])


@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_check_constraints_are_given_with_their_table(
    serve: Serve, catalog: Catalog, connect: Connect, version: str
) -> None:
    given: list[Any] = []
    answers = {
        "create_table_req": lambda request: given.append(request.checkConstraints),
        "create_table_with_constraints": lambda *tables: given.append(tables[-1]),
        "getVersion": version,
    }
    session = connect(serve(**{**catalog.answers, **answers}))
    session.create_table(PLAIN.constrained([check("a > 0"), check("a < 9")]))
    [checks] = given
    assert [(c.check_expression, c.table_db, c.table_name, c.column_name) for c in checks] == [
        ("a > 0", "d", "t", None),
        ("a < 9", "d", "t", None),
    ]
    assert [c.dc_name for c in checks] == sorted({c.dc_name for c in checks})


@pytest.mark.parametrize("version", ["3.1.3", "4.0.1"])
def test_keys_are_given_with_their_table(serve: Serve, catalog: Catalog, connect: Connect, version: str) -> None:
    given: list[Any] = []
    answers = {
        "create_table_req": lambda r: given.append((r.table, r.primaryKeys, r.foreignKeys, r.uniqueConstraints)),
        "create_table_with_constraints": lambda *tables: given.append(tables[:4]),
        "getVersion": version,
    }
    keys = (
        Constraint(ConstraintKind.PRIMARY_KEY, ("a",), "pk", rely=True),
        Constraint(ConstraintKind.FOREIGN_KEY, ("a",), "fk", parent="d.p", parent_columns=("k",)),
    )
    connect(serve(**{**catalog.answers, **answers})).create_table(PLAIN.constrained(keys))
    [(_, [primary], [foreign], unique)] = given
    assert not unique
    assert (primary.column_name, primary.key_seq, primary.pk_name) == ("a", 1, "pk")
    assert (primary.enable_cstr, primary.validate_cstr, primary.rely_cstr) == (False, False, True)
    assert (foreign.pktable_db, foreign.pktable_name, foreign.pkcolumn_name) == ("d", "p", "k")
    assert (foreign.fktable_db, foreign.fktable_name, foreign.fkcolumn_name) == ("d", "t", "a")
    assert (foreign.enable_cstr, foreign.rely_cstr) == (False, False)


class TestHive3:
    """What only Hive 4 knows is not asked for."""

    @pytest.fixture
    def server(self, serve: Serve, catalog: Catalog) -> ScriptedMetastore:
        return serve(**{**catalog.answers, "getVersion": "3.1.3"})

    @pytest.mark.parametrize(
        ("table", "call"),
        [(PLAIN, "create_table"), (TABLE, "create_table_with_constraints")],
        ids=["plain", "NOT NULL"],
    )
    def test_tables_are_made_and_altered_by_the_old_calls(
        self, server: ScriptedMetastore, connect: Connect, table: Table, call: str
    ) -> None:
        session = connect(server)
        session.create_table(table)
        assert session.get_table("d", "t").columns == table.columns
        session.alter_table(table, write_id=3, write_ids=ValidWriteIdList("d.t", 3))
        assert server.counts[call] == server.counts["alter_table"] == 1
        assert not {name for name in server.counts if name.endswith("_req")} - {"get_table_req"}
        assert not server.counts["get_all_table_constraints"]

    def test_snapshots_come_from_the_old_call(self, serve: Serve, connect: Connect) -> None:
        server = serve(getVersion="3.1.3", get_open_txns=ttypes.GetOpenTxnsResponse(9, [4], abortedBits=b""))
        assert connect(server).get_valid_txns() == ValidTxnList(9, (4,))

    def test_nobody_is_asked_for_conflicts(self, serve: Serve, connect: Connect) -> None:
        server = serve(getVersion="3.1.3")
        assert connect(server).get_latest_txn_in_conflict(7) is None
        assert not server.counts

    @pytest.mark.parametrize(("version", "wanted"), [("3.1.3", LockType.SHARED_WRITE), ("4.0.1", LockType.EXCL_WRITE)])
    def test_exclusive_writes_are_shared_ones(
        self, serve: Serve, connect: Connect, version: str, wanted: LockType
    ) -> None:
        asked: list[Any] = []

        def lock(request: Any) -> Any:
            asked.append(request)
            return ttypes.LockResponse(5, ttypes.LockState.ACQUIRED)

        component = LockComponent(LockType.EXCL_WRITE, "d", "t", None, Operation.UPDATE)
        server = serve(getVersion=version, lock=lock, show_locks=ttypes.ShowLocksResponse([]))
        connect(server).lock(LockRequest((component,), 8, "ann", "h"))
        assert [one.type for one in asked[0].component] == [wanted]

    @pytest.mark.parametrize(
        ("holds", "state"),
        [(ttypes.LockType.SHARED_READ, LockState.ACQUIRED), (ttypes.LockType.SHARED_WRITE, LockState.WAITING)],
        ids=["a reader", "a writer"],
    )
    def test_a_lock_that_is_granted_past_others_waits_all_the_same(
        self, serve: Serve, connect: Connect, holds: int, state: LockState
    ) -> None:
        """``TxnHandler.checkLock`` of 3.1.3 looks at no other lock once it has met one of the request's transaction."""

        def element(lock_id: int, txn_id: int, type: int) -> Any:
            return ttypes.ShowLocksResponseElement(
                lock_id, "d", "t", state=ttypes.LockState.ACQUIRED, type=type, txnid=txn_id, lockIdInternal=1
            )

        writes = ttypes.LockType.SHARED_WRITE
        locks = [element(3, 7, holds), element(4, 8, ttypes.LockType.SHARED_READ), element(5, 8, writes)]
        server = serve(
            getVersion="3.1.3",
            lock=ttypes.LockResponse(5, ttypes.LockState.ACQUIRED),
            show_locks=ttypes.ShowLocksResponse(locks),
        )
        component = LockComponent(LockType.EXCL_WRITE, "d", "t", None, Operation.UPDATE)
        response = connect(server).lock(LockRequest((component,), 8, "ann", "h"))
        assert response.state is state
        blocker = response.blocked_by
        assert (blocker and blocker.txn_id) == (7 if state is LockState.WAITING else None)

    def test_write_ids_are_seeded_one_by_one(self, serve: Serve, connect: Connect) -> None:
        given: dict[int, int] = {}
        aborted: list[int] = []
        committed: list[int] = []
        locked: list[int] = []

        def allocate(request: Any) -> Any:
            [txn_id] = request.txnIds
            return ttypes.AllocateTableWriteIdsResponse(
                [ttypes.TxnToWriteId(txn_id, given.setdefault(txn_id, len(given) + 1))]
            )

        def lock(request: Any) -> Any:
            locked.append(request.txnid)
            return ttypes.LockResponse(5, ttypes.LockState.ACQUIRED)

        server = serve(
            getVersion="3.1.3",
            get_open_txns=ttypes.GetOpenTxnsResponse(10, [], abortedBits=b""),
            get_valid_write_ids=ttypes.GetValidWriteIdsResponse([ttypes.TableValidWriteIds("d.t", 0, [], None, b"")]),
            open_txns=lambda request: ttypes.OpenTxnsResponse(list(range(11, 11 + request.num_txns))),
            allocate_table_write_ids=allocate,
            lock=lock,
            show_locks=ttypes.ShowLocksResponse([]),
            abort_txn=lambda request: aborted.append(request.txnid),
            commit_txn=lambda request: committed.append(request.txnid),
        )
        connect(server).seed_write_id(ValidWriteIdList("d.t", 4, (), (2,)))
        assert given == {11: 1, 12: 2, 13: 3, 14: 4}
        assert (locked, aborted, committed) == ([12], [12], [11, 13, 14])
        assert not server.counts["seed_write_id"]

    def test_a_database_that_is_not_there_is_looked_for_first(self, serve: Serve, connect: Connect) -> None:
        """Hive 3 falls over it in the calls themselves."""
        server = serve(getVersion="3.1.3", get_database=ttypes.NoSuchObjectException("nowhere"))
        session = connect(server)
        for call in (session.list_tables, session.drop_database):
            with pytest.raises(DatabaseNotFound, match="nowhere"):
                call("nowhere")


class TestSeeds:
    @pytest.fixture
    def answers(self) -> dict[str, Any]:
        return {
            "get_open_txns_req": ttypes.GetOpenTxnsResponse(10, [], abortedBits=b""),
            "get_valid_write_ids": ttypes.GetValidWriteIdsResponse(
                [ttypes.TableValidWriteIds("d.t", 0, [], None, b"")]
            ),
            "open_txns": lambda request: ttypes.OpenTxnsResponse(list(range(11, 11 + request.num_txns))),
            "seed_write_id": None,
            "abort_txn": None,
        }

    def test_that_would_take_too_many_transactions_are_refused(
        self, serve: Serve, connect: Connect, answers: dict[str, Any]
    ) -> None:
        server = serve(**answers)
        with pytest.raises(UnsupportedError, match="too many"):
            connect(server).seed_write_id(ValidWriteIdList("d.t", 1_000_000, (), (2,)))
        assert not server.counts["open_txns"]

    def test_beside_another_writer_are_given_up_and_leave_no_transaction_open(
        self, serve: Serve, connect: Connect, answers: dict[str, Any]
    ) -> None:
        answers["lock"] = ttypes.LockResponse(5, ttypes.LockState.ACQUIRED)
        answers["allocate_table_write_ids"] = ttypes.AllocateTableWriteIdsResponse([ttypes.TxnToWriteId(11, 3)])
        server = serve(**answers)
        with pytest.raises(MetastoreError, match="else writes"):
            connect(server).seed_write_id(ValidWriteIdList("d.t", 4, (), (2,)))
        assert server.counts["abort_txn"] == 3
        assert not server.counts["commit_txn"]


def test_partitions_of_a_table_that_is_not_there_are_added_to_no_other(
    serve: Serve, connect: Connect, catalog: Catalog
) -> None:
    catalog.create(translate.table_to_thrift(PLAIN), None)

    def get(request: Any) -> Any:
        if request.tblName != "t":
            raise ttypes.NoSuchObjectException(request.tblName)
        return ttypes.GetTableResult(table=catalog.get())

    server = serve(**{**catalog.answers, "get_table_req": get})
    with pytest.raises(TableNotFound, match=r"d\.nowhere"):
        connect(server).add_partitions([Partition("d", name, ("1",), "file:/x") for name in ("t", "nowhere")])
    assert not server.counts["add_partitions_req"]
