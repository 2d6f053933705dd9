"""A statement that fails takes back what is its own, and nothing that another session has made meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from acidsql.commands.ddl import create_as, create_table
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.compactor.dropped import remove_dropped
from acidsql.errors import AcidError, AlreadyExists, LockTimeout, StorageError, TableNotFound, TransactionAborted
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import Database, LockComponent, LockType, Table
from acidsql.plan.staging import Staging
from tests.unit.commands.definitions import Session, queries_of


class TestATableMadeAsAQuery:
    def test_has_all_its_rows(self, session: Session) -> None:
        with queries_of(1, 2):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (session.rows(), session.is_idle) == ({"": [1, 2]}, True)

    @pytest.mark.parametrize("numbers", [(), (7, 8)], ids=["without rows", "with rows"])
    def test_leaves_the_table_alone_that_another_session_has_made_without_a_lock(
        self, session: Session, other: Session, monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]
    ) -> None:
        create = EmbeddedMetastore.create_table

        def overtaken(store: EmbeddedMetastore, table: Table, **options: Any) -> None:
            if store is session.store:
                create(other.store, table)
                if numbers:
                    other.insert(*numbers)
            create(store, table, **options)

        monkeypatch.setattr(EmbeddedMetastore, "create_table", overtaken)
        with queries_of(1, 2), pytest.raises(AlreadyExists):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (other.rows(), other.is_idle) == ({"": sorted(numbers)}, True)
        other.insert(9)
        assert other.rows() == {"": sorted([*numbers, 9])}

    def test_does_not_share_its_directory(self, session: Session, other: Session) -> None:
        def make() -> None:
            with pytest.raises(AlreadyExists, match=r"table default\.t is at"):
                other.sql("CREATE TRANSACTIONAL TABLE u (a int) LOCATION '{root}/w/t'")

        with queries_of(1, meanwhile=make):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (other.seen, other.is_idle) == ({"default.t": {"": [1]}}, True)

    def test_leaves_nothing_when_it_fails_before_it_is_registered(self, session: Session) -> None:
        before = session.files
        with queries_of(1), fails(EmbeddedMetastore, "create_table"), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (session.seen, session.files, session.is_idle) == ({}, before, True)

    @pytest.mark.parametrize("after", [False, True])
    def test_leaves_nothing_when_it_fails_after_it_was_registered(self, session: Session, after: bool) -> None:
        before = session.files
        with queries_of(1), fails(Staging, "publish", after=after), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (session.seen, session.files, session.is_idle) == ({}, before, True)

    def test_is_seen_by_others_from_its_commit_on(self, session: Session, other: Session) -> None:
        """It was seen, empty, from its registration on."""

        def look() -> None:
            assert other.seen == {}
            with pytest.raises(TableNotFound):
                other.insert(7)

        before = session.files
        with queries_of(1), fails(Staging, "publish", before=look), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (session.seen, session.files, session.is_idle) == ({}, before, True)
        with queries_of(1, meanwhile=look):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (other.seen, other.is_idle) == ({"default.t": {"": [1]}}, True)

    @pytest.mark.parametrize("cascade", ["", "CASCADE"])
    def test_that_was_killed_does_not_keep_its_database(
        self, session: Session, monkeypatch: pytest.MonkeyPatch, cascade: str
    ) -> None:
        before = session.files
        session.sql("CREATE DATABASE d")
        with monkeypatch.context() as patched:
            patched.setattr(create_as._New, "take_back", lambda self: None)
            with queries_of(1), fails(Staging, "publish", after=True), pytest.raises(StorageError):
                session.sql("CREATE TRANSACTIONAL TABLE d.t AS SELECT 1")
        session.sql(f"DROP DATABASE d {cascade}")
        assert (session.store.list_databases(), session.files, session.is_idle) == (["default"], before, True)

    @pytest.mark.parametrize("killed", [False, True])
    def test_that_fails_removes_only_its_own_from_a_directory_that_was_there(
        self, session: Session, other: Session, monkeypatch: pytest.MonkeyPatch, killed: bool
    ) -> None:
        place = session.root / "w" / "mine"
        staged_by_others = place / f"_tmp_{'0123' * 8}"
        staged_by_others.mkdir(parents=True)
        (staged_by_others / "x").write_text("mine")
        place.chmod(0o2770)
        before = session.files
        if killed:
            monkeypatch.setattr(create_as._New, "take_back", lambda self: None)
        with queries_of(1), fails(Staging, "publish", after=True), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t LOCATION '{root}/w/mine' AS SELECT 1")
        remove_dropped(other.store)
        assert (other.seen, session.files, place.stat().st_mode & 0o7777) == ({}, before, 0o2770)
        other.table()
        assert other.rows() == {"": []}

    @pytest.mark.parametrize(
        ("next_one", "rows"),
        [
            ("", None),
            ("t (a int) LOCATION '{root}/w/mine'", []),
            ("t LOCATION '{root}/w/mine' AS SELECT 1", [7, 8]),
        ],
    )
    def test_that_goes_on_after_its_end_writes_nothing_into_the_next_table(
        self, session: Session, other: Session, next_one: str, rows: list[int] | None
    ) -> None:
        """Its directory had been there: what was staged in it stayed, and was published into the next one's."""
        place = session.root / "w" / "mine"
        place.mkdir(parents=True)

        def take_over() -> None:
            other.store.abort_txns([t.id for t in other.store.show_txns()])
            remove_dropped(other.store)
            if next_one:
                other.sql(f"CREATE TRANSACTIONAL TABLE {next_one}")

        suspended = fails(Staging, "publish", before=take_over, goes_on=True)
        with queries_of(7, 8), suspended, pytest.raises(TransactionAborted):
            session.sql("CREATE TRANSACTIONAL TABLE t LOCATION '{root}/w/mine' AS SELECT 1")
        assert other.seen == ({} if rows is None else {"default.t": {"": rows}})
        assert (other.is_idle, place.is_dir()) == (True, True)

    @pytest.mark.parametrize("killed", [False, True])
    def test_leaves_what_others_have_put_into_a_directory_that_was_there(
        self, session: Session, other: Session, monkeypatch: pytest.MonkeyPatch, killed: bool
    ) -> None:
        place = session.root / "w" / "mine"
        place.mkdir(parents=True)

        def others() -> None:
            for path in ("notes.txt", "year=2024/part-0.parquet", "year=2024/delta_0000007_0000007_0000/x"):
                (place / path).parent.mkdir(parents=True, exist_ok=True)
                (place / path).write_text("theirs")

        if killed:
            monkeypatch.setattr(create_as._New, "take_back", lambda self: None)
            monkeypatch.setattr(Staging, "discard", lambda self: False)
        with queries_of(7, meanwhile=others), fails(EmbeddedMetastore, "commit_txn"), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t LOCATION '{root}/w/mine' AS SELECT 1")
        remove_dropped(other.store)
        assert [str(p.relative_to(place)) for p in sorted(place.rglob("*")) if p.is_file()] == [
            "notes.txt",
            "year=2024/delta_0000007_0000007_0000/x",
            "year=2024/part-0.parquet",
        ]
        assert (other.seen, other.is_idle) == ({}, True)

    @pytest.mark.parametrize("key", ["k", "_k"])
    def test_leaves_no_directories_of_partitions_in_one_that_was_there(
        self, session: Session, other: Session, monkeypatch: pytest.MonkeyPatch, key: str
    ) -> None:
        """It was refused there ever after: its directory was not empty any more."""
        place, real = session.root / "w" / "mine", LocalFileSystem.rename
        place.mkdir(parents=True)

        def rename(self: LocalFileSystem, source: str, target: str) -> None:
            if f"{key}=2/delta" in target:
                raise StorageError("no space left")
            real(self, source, target)

        text = f"CREATE TRANSACTIONAL TABLE t PARTITIONED BY (`{key}`) LOCATION '{{root}}/w/mine' AS SELECT 1"
        with queries_of(1, 2, key=key):
            with monkeypatch.context() as failing:
                failing.setattr(LocalFileSystem, "rename", rename)
                with pytest.raises(StorageError, match="no space left"):
                    session.sql(text)
            remove_dropped(other.store)
            assert (list(place.iterdir()), other.seen, other.is_idle) == ([], {}, True)
            session.sql(text)
        assert other.rows() == {f"{key}=1": [1], f"{key}=2": [2]}

    @pytest.mark.parametrize("was_there", [False, True])
    def test_that_was_killed_before_its_commit_leaves_its_place_to_others(
        self, session: Session, other: Session, was_there: bool
    ) -> None:
        if was_there:
            (session.root / "w" / "mine").mkdir(parents=True)
        killed = patch.object(create_as._New, "take_back", lambda self: None)
        stays = patch.object(Staging, "discard", lambda self: False)
        with queries_of(7, 8), killed, stays, fails(EmbeddedMetastore, "commit_txn"), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t LOCATION '{root}/w/mine' AS SELECT 1")
        with queries_of(1):
            other.sql("CREATE TRANSACTIONAL TABLE u LOCATION '{root}/w/mine' AS SELECT 1")
        assert other.seen == {"default.u": {"": [1]}}

    def test_that_ends_while_another_table_is_removed_stops_nobody(self, session: Session, other: Session) -> None:
        """The store's lock was held, and asked for again, by the statement that looked for what is to be removed."""
        session.table("u")
        alone = EmbeddedMetastore.alone

        def meanwhile() -> None:
            def ended(store: EmbeddedMetastore) -> Any:
                other.store.abort_txns([min(t.id for t in other.store.show_txns())])
                return alone(store)

            with patch.object(EmbeddedMetastore, "alone", ended):
                other.sql("DROP TABLE u")

        with queries_of(1, meanwhile=meanwhile), pytest.raises(TransactionAborted):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (other.seen, other.is_idle) == ({}, True)

    @pytest.mark.parametrize("text", ["CREATE TRANSACTIONAL TABLE t (b int)", "ALTER TABLE u RENAME TO t"])
    def test_that_was_killed_leaves_nothing_once_its_transaction_has_timed_out(
        self, session: Session, other: Session, text: str
    ) -> None:
        other.table("u")
        before = session.files
        killed = patch.object(create_as._New, "take_back", lambda self: None)
        with (
            queries_of(1),
            killed,
            patch.object(Staging, "discard", lambda self: False),
            patch.object(Staging, "discard_staged", lambda self: None),
            fails(Staging, "publish", after=True),
            pytest.raises(StorageError),
        ):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert session.files != before
        if "RENAME" in text:
            remove_dropped(other.store)  # as the housekeeper does
            assert session.files == before
        other.sql(text)
        assert other.rows() == {"": []}
        other.insert(7)
        assert other.rows() == {"": [7]}

    def test_that_fails_leaves_the_table_that_another_session_has_made_in_its_place(
        self, session: Session, other: Session
    ) -> None:
        """Its transaction was taken for dead: whoever waited for its locks went on."""

        def take_over() -> None:
            other.store.abort_txns([t.id for t in other.store.show_txns()])
            other.sql("DROP TABLE t")
            other.sql("CREATE TRANSACTIONAL TABLE t (b int)")

        with queries_of(1), fails(Staging, "publish", before=take_over), pytest.raises(AcidError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert [c.name for c in other.store.get_table("default", "t").columns] == ["b"]
        assert (other.rows(), other.is_idle) == ({"": []}, True)

    def test_takes_the_name_of_one_that_was_killed(self, session: Session) -> None:
        left = session.root / "w" / "t" / f"_tmp_{'0123' * 8}" / "delta_0000001_0000001_0000"
        left.mkdir(parents=True)
        session.table()
        assert session.rows() == {"": []}

    def test_keeps_its_name_from_others(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where its directory has files already, which are not theirs to remove."""
        other = Session(session.root, {"acidsql.lock.timeout": "10ms"})
        other.table("u")
        publish = WriteTransaction.publish

        def published(self: WriteTransaction, *args: Any, **options: Any) -> None:
            publish(self, *args, **options)
            texts = ("TABLE t (a int)", "TABLE IF NOT EXISTS t (a int)", "TABLE t AS SELECT 1")
            for text in (*(f"CREATE TRANSACTIONAL {text}" for text in texts), "ALTER TABLE u RENAME TO t"):
                with pytest.raises(LockTimeout):
                    other.sql(text)

        monkeypatch.setattr(WriteTransaction, "publish", published)
        with queries_of(1):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert other.rows() == {"": [1]}
        other.close()


@pytest.mark.parametrize("place", ["t", "t/below", ""])
def test_a_database_is_not_made_where_something_is_still_to_be_removed(
    session: Session, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """It was, and then removed with what had come into it."""
    session.table()
    session.insert(1)
    session.store.drop_table("default", "t")  # killed there
    with pytest.raises(AlreadyExists, match="not been removed"):
        session.store.create_database(Database("d", str(session.root / "w" / place)))
    session.sql(f"CREATE DATABASE d LOCATION '{{root}}/w/{place or 'd'}'")
    (session.root / "w" / (place or "d") / "theirs").write_text("theirs")
    remove_dropped(session.store)
    assert (session.root / "w" / (place or "d") / "theirs").read_text() == "theirs"
    assert session.store.dropped_directories() == []


def test_an_interrupt_leaves_no_transaction_that_nobody_knows(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came before the transaction's id was kept: open, without heartbeats, until it timed out."""
    opened = EmbeddedMetastore.open_txns

    def interrupted(*args: Any, **kwargs: Any) -> list[int]:
        ids = opened(*args, **kwargs)
        signal.raise_signal(signal.SIGINT)
        return ids

    monkeypatch.setattr(EmbeddedMetastore, "open_txns", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.table()
    assert session.is_idle


@pytest.mark.parametrize("step", ["heartbeat", "abort_txns"])
def test_an_interrupt_of_a_statement_that_has_failed_leaves_no_transaction(
    session: Session, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """As the second Ctrl-C, after the first one has cancelled the job of Spark."""
    (session.root / "w" / "n").mkdir(parents=True)
    (session.root / "w" / "n" / "000000_0").write_text("somebody's")
    real = getattr(EmbeddedMetastore, step)
    answers = list[object]()

    def interrupted(*args: Any, **kwargs: Any) -> None:
        answers.append(real(*args, **kwargs))
        if len(answers) == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(EmbeddedMetastore, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.sql("CREATE TRANSACTIONAL TABLE n (a int)")
    assert session.is_idle


def test_a_failed_create_table_leaves_the_directory_of_the_one_that_was_faster(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The faster one does not lock the name: one of an older version, or at this LOCATION."""
    monkeypatch.setattr(create_table, "name_lock", lambda database, name: LockComponent(LockType.SHARED_READ, database))
    mkdirs = LocalFileSystem.mkdirs
    later = [other.table]

    def slow(self: LocalFileSystem, path: str, *, durable: bool = True) -> None:
        mkdirs(self, path, durable=durable)
        while later and path.endswith("/t"):
            later.pop()()

    monkeypatch.setattr(LocalFileSystem, "mkdirs", slow)
    with pytest.raises(AlreadyExists):
        session.table()
    assert (session.rows(), session.is_idle) == ({"": []}, True)


def test_a_create_table_whose_directory_was_taken_back_by_a_failed_one_has_one(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = EmbeddedMetastore.create_table

    def slow(self: EmbeddedMetastore, *args: object, **kwargs: object) -> None:
        if self is session.store:
            (session.root / "w" / "t").rmdir()  # the other one's take_back
        create(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddedMetastore, "create_table", slow)
    session.table()
    assert session.rows() == {"": []}


@pytest.mark.parametrize("step", ["create_table", "add_partitions", "create_database", "alter_table"])
def test_a_statement_whose_registration_fails_leaves_no_directory(session: Session, step: str) -> None:
    session.table("p", "p int")
    before, text = (
        session.files,
        {
            "create_table": "CREATE TRANSACTIONAL TABLE t (a int)",
            "add_partitions": "ALTER TABLE p ADD PARTITION (p = 1)",
            "create_database": "CREATE DATABASE hr",
            "alter_table": "ALTER TABLE p SET LOCATION '{root}/w/elsewhere'",
        }[step],
    )
    with fails(EmbeddedMetastore, step), pytest.raises(StorageError):
        session.sql(text)
    assert (session.files, session.is_idle) == (before, True)
    session.sql(text)


def test_a_failed_create_database_leaves_the_one_that_was_faster(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = EmbeddedMetastore.create_database

    def slow(self: EmbeddedMetastore, *args: object) -> None:
        if self is session.store:
            other.sql("CREATE DATABASE hr")
        create(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddedMetastore, "create_database", slow)
    with pytest.raises(AlreadyExists):
        session.sql("CREATE DATABASE hr")
    assert session.store.list_databases() == ["default", "hr"]
    assert (session.root / "w" / "hr.db").is_dir()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DATABASE d",
        "CREATE TRANSACTIONAL TABLE t (a int) LOCATION '{root}/w/d.db'",
        "ALTER TABLE p ADD PARTITION (k = 1) LOCATION '{root}/w/d.db'",
    ],
)
def test_a_drop_database_leaves_the_directory_that_somebody_else_has_by_then(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    session.table("p", "k int")
    session.sql("CREATE DATABASE d")
    real = EmbeddedMetastore.drop_database

    def overtaken(store: EmbeddedMetastore, name: str) -> None:
        real(store, name)
        other.sql(text)

    monkeypatch.setattr(EmbeddedMetastore, "drop_database", overtaken)
    session.sql("DROP DATABASE d")
    assert (session.root / "w" / "d.db").is_dir()


class fails(pytest.MonkeyPatch):
    """A step that fails once, before or after it is done; or that only goes on late."""

    def __init__(
        self,
        owner: type,
        step: str,
        *,
        after: bool = False,
        before: Callable[[], object] = lambda: None,
        goes_on: bool = False,
    ) -> None:
        super().__init__()
        original = getattr(owner, step)

        def failing(*args: object, **kwargs: object) -> object:
            self.undo()
            before()
            if goes_on:
                return original(*args, **kwargs)
            if after:
                original(*args, **kwargs)
            raise StorageError("injected")

        self.setattr(owner, step, failing)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.undo()
