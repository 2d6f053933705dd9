"""The file of the embedded store: what cannot be opened is a MetastoreError that names it."""

from __future__ import annotations

import inspect
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any, cast

import pytest
from sqlalchemy import text

from acidsql.errors import AcidError, AlreadyExists, MetastoreError
from acidsql.interrupts import Deferred
from acidsql.metastore import open_metastore
from acidsql.metastore.embedded.schema import SCHEMA_VERSION
from acidsql.metastore.model import Column, CompactionRequest, CompactionType, DirectoryMove, LockType, Operation
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from tests.metastore.conftest import OpenStore
from tests.metastore.situations import ask, begin, partition, table, write
from tests.metastore.stores import Opening

pytestmark = pytest.mark.needs("database file")

IMPATIENT = Settings({"acidsql.metastore.busy.timeout": "100ms"})


def opened(path: Path | str, settings: Settings = IMPATIENT) -> Metastore:
    return open_metastore(f"sqlite:///{path}", settings, warehouse="file:/w")


@contextmanager
def refused(path: Path) -> Iterator[None]:
    """The block raises one error of ours, which names the file."""
    with pytest.raises(MetastoreError) as caught:
        yield
    assert str(path) in str(caught.value)


@pytest.fixture
def made(store: Metastore, opening: Opening) -> Path:
    """The file of a store with a table, closed."""
    store.create_table(table())
    store.close()
    return opening.file


class TestAFileThatIsNoStore:
    def test_is_a_directory(self, tmp_path: Path) -> None:
        with refused(tmp_path):
            opened(tmp_path)

    def test_lies_in_a_directory_that_is_not_there(self, tmp_path: Path) -> None:
        with refused(tmp_path / "nowhere" / "m.db"):
            opened(tmp_path / "nowhere" / "m.db")

    def test_is_something_else(self, tmp_path: Path) -> None:
        path = tmp_path / "m.db"
        path.write_text("this is a text, and it is long enough to be taken for a header of one hundred bytes\n" * 3)
        with refused(path):
            opened(path)
        assert path.read_text().startswith("this is a text")

    def test_is_a_store_that_was_cut_off(self, made: Path) -> None:
        made.write_bytes(made.read_bytes()[:5000])
        with refused(made):
            opened(made).list_tables("default")

    def test_is_of_a_later_version(self, made: Path) -> None:
        with closing(sqlite3.connect(made)) as connection:
            connection.execute("UPDATE VERSION SET SCHEMA_VERSION = 4711")
            connection.commit()
        with refused(made):
            opened(made)
        with pytest.raises(MetastoreError, match="4711"):
            opened(made)

    def test_is_of_an_impossible_version(self, made: Path) -> None:
        with closing(sqlite3.connect(made)) as connection:
            connection.execute("UPDATE VERSION SET SCHEMA_VERSION = 0")
            connection.commit()
        with refused(made):
            opened(made)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write every file")
    @pytest.mark.parametrize("mode", [0o000, 0o444])
    def test_may_not_be_read_or_written(self, made: Path, mode: int) -> None:
        made.chmod(mode)
        made.parent.chmod(0o555)
        try:
            with refused(made):
                begin(opened(made))
        finally:
            made.parent.chmod(0o755)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.touch()
    store = opened(path)
    assert store.list_databases() == ["default"]
    store.close()


def test_a_path_may_hold_blanks_and_letters_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "my wärehouse 100%?#" / "m.db"
    path.parent.mkdir()
    store = open_metastore(str(path), IMPATIENT, warehouse="file:/w")
    begin(store)
    store.close()
    assert path.exists()


def test_other_kinds_of_metastore_are_refused_with_a_hint() -> None:
    for url in ("thrift://host:9083", "mysql+pymysql://host/db", "nonsense://x"):
        with pytest.raises(AcidError) as caught:
            open_metastore(url, Settings(), warehouse="file:/w")
        assert caught.value.hint


class TestALockedFile:
    """Somebody else keeps writing for longer than ``acidsql.metastore.busy.timeout``."""

    @pytest.fixture
    def locked(self, made: Path) -> Iterator[Path]:
        with closing(sqlite3.connect(made, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield made
            other.execute("ROLLBACK")

    def test_cannot_be_written(self, locked: Path) -> None:
        store = opened(locked)
        with refused(locked):
            begin(store)
        store.close()

    def test_can_be_opened_and_read(self, locked: Path) -> None:
        store = opened(locked)
        assert store.list_tables("default") == ["t"]
        assert store.get_valid_txns().high_watermark == 0
        store.close()

    def test_can_be_written_when_the_other_is_done(self, made: Path) -> None:
        store = opened(made)
        with closing(sqlite3.connect(made, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with refused(made):
                begin(store)
            other.execute("ROLLBACK")
        assert begin(store) == 1
        store.close()


class TestWhatIsCommitted:
    def test_is_there_after_closing_and_opening(self, store: Metastore, open_store: OpenStore) -> None:
        store.create_table(table())
        store.commit_txn(write(store))
        aborted = write(store)
        store.abort_txns([aborted], "why")
        store.close()
        again = open_store()
        assert again.get_table("default", "t") == table()
        assert again.get_valid_txns().aborted_ids == (aborted,)
        assert begin(again) == aborted + 1

    def test_is_whole_and_survives_a_power_cut(self, store: Metastore, opening: Opening) -> None:
        """The file is in write-ahead mode, so readers and a writer do not wait for each other."""
        begin(store)
        with closing(sqlite3.connect(opening.file)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_closing_twice_is_no_error(store: Metastore) -> None:
    store.close()
    store.close()


def test_a_read_does_not_wait_for_a_writer_and_sees_nothing_of_it(store: Metastore, opening: Opening) -> None:
    store.create_table(table())
    with closing(sqlite3.connect(opening.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM TBLS")
        assert store.list_tables("default") == ["t"]
        other.execute("ROLLBACK")


NEW_SINCE_1 = (
    "ALTER TABLE TBLS DROP COLUMN VIEW_ORIGINAL_TEXT",
    "ALTER TABLE TBLS DROP COLUMN VIEW_EXPANDED_TEXT",
    "DROP INDEX TBLS_CREATING_TXN_IDX",
    "ALTER TABLE TBLS DROP COLUMN CREATING_TXN",
    "ALTER TABLE TBLS DROP COLUMN MAKES_DIRECTORY",
    "ALTER TABLE TBLS DROP COLUMN TBL_VERSION",
    "DROP TABLE NEXT_TBL_VERSION",
    "DROP TABLE PARTITION_PARAMS",
    "DROP TABLE TAB_COL_STATS",
    "DROP TABLE CHECK_CONSTRAINTS",
    "DROP TABLE KEY_CONSTRAINTS",
    "ALTER TABLE COLUMNS_V2 DROP COLUMN DEFAULT_NAME",
    "ALTER TABLE COLUMNS_V2 DROP COLUMN NOT_NULL_NAME",
    "ALTER TABLE TXNS DROP COLUMN TXN_MIN_OPEN",
    "ALTER TABLE TXNS DROP COLUMN TXN_TIMEOUT",
    "ALTER TABLE HIVE_LOCKS DROP COLUMN HL_TIMEOUT",
    "DROP TABLE COMPACTION_QUEUE",
    "DROP TABLE NEXT_COMPACTION_QUEUE_ID",
    "DROP TABLE COMPLETED_COMPACTIONS",
    "DROP TABLE RENAME_JOURNAL",
    "UPDATE VERSION SET SCHEMA_VERSION = 1",
)
"""What makes a store of today one of version 1."""


class TestAStoreOfVersion1:
    @pytest.fixture
    def old(self, made: Path) -> Path:
        with closing(sqlite3.connect(made)) as connection:
            for text in NEW_SINCE_1:
                connection.execute(text)
            connection.commit()
        return made

    def test_is_brought_up_to_date_with_all_that_is_in_it(self, old: Path) -> None:
        with closing(opened(old)) as store:
            assert store.get_table("default", "t") == table()
            view = replace(table("v"), view_text="SELECT 1", table_type="VIRTUAL_VIEW")
            store.create_table(view)
            assert store.list_views("default") == ["v"]
            assert store.partition_parameters("default", "t") == {}
            assert store.compact(CompactionRequest("default", "t", None, CompactionType.MAJOR, "ann", "desk")).id == 1
        with closing(sqlite3.connect(old)) as connection:
            [[version]] = connection.execute("SELECT SCHEMA_VERSION FROM VERSION").fetchall()
        assert version == SCHEMA_VERSION

    def test_forgets_no_write_ids_while_a_transaction_from_then_is_open(self, made: Path) -> None:
        """Nobody noted what was open when it began."""
        with closing(opened(made)) as store:
            store.commit_txn(write(store))
            early = begin(store)
        with closing(sqlite3.connect(made)) as connection:
            for text in NEW_SINCE_1:
                connection.execute(text)
            connection.commit()
        with closing(opened(made)) as store:
            assert store.prune_txn_to_write_id() == 0
            store.commit_txn(early)
            assert store.prune_txn_to_write_id() == 1

    def test_is_the_same_as_a_new_one(self, old: Path, tmp_path: Path) -> None:
        opened(old).close()
        opened(tmp_path / "new.db").close()

        def columns(path: Path) -> dict[str, set[tuple[str, str]]]:
            with closing(sqlite3.connect(path)) as connection:
                names = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
                return {
                    name: {(r[1], r[2]) for r in connection.execute(f'PRAGMA table_info("{name}")')} for name in names
                }

        assert columns(old) == columns(tmp_path / "new.db")

    def test_is_brought_up_to_date_once(self, old: Path) -> None:
        with ThreadPoolExecutor(4) as pool:
            stores = list(pool.map(lambda _: opened(old, Settings()), range(4)))  # three wait for the first
        for store in stores:
            assert store.list_views("default") == []
            store.close()


class TestAStoreOfVersion4:
    """There the renames that were under way stood in properties, which anybody could write."""

    @pytest.fixture
    def old(self, made: Path) -> Path:
        with closing(opened(made)) as store:
            home = store.get_database("default").location
            store.create_table(replace(table("victim"), location=f"{home}/victim"))
            for name in ("killed", "thief", "stranger", "nonsense"):
                store.create_table(replace(table(name), location=f"{home}/{name}"))
        values = {
            "killed": [f"{home}/before", f"{home}/killed"],
            "thief": [f"{home}/victim", f"{home}/thief"],
            "stranger": ["/etc", f"{home}/stranger"],
            "nonsense": 5,
        }
        with closing(sqlite3.connect(made)) as connection:
            for name, value in values.items():
                [[id]] = connection.execute("SELECT TBL_ID FROM TBLS WHERE TBL_NAME = ?", (name,)).fetchall()
                row = (id, "acidsql.move.1", json.dumps(value))
                connection.execute("INSERT INTO TABLE_PARAMS VALUES (?, ?, ?)", row)
            connection.execute("DROP TABLE RENAME_JOURNAL")
            connection.execute("UPDATE VERSION SET SCHEMA_VERSION = 4")
            connection.commit()
        return made

    def test_keeps_the_renames_that_were_under_way_and_nothing_else(self, old: Path) -> None:
        with closing(opened(old)) as store:
            home = store.get_database("default").location
            found = {name: store.get_table("default", name) for name in store.list_tables("default")}
        assert found["killed"].moves == (DirectoryMove(f"{home}/before", f"{home}/killed", "1"),)
        assert [name for name, one in found.items() if one.moves] == ["killed"]
        assert [name for name, one in found.items() if any("move" in key for key in one.parameters)] == []


def test_a_table_that_an_older_version_never_finished_goes_with_the_upgrade(tmp_path: Path) -> None:
    """It dropped such tables when somebody looked for what is to be removed, not when their transactions ended."""
    path = tmp_path / "old.db"
    with closing(opened(path)) as store:
        txn_id = begin(store)
        with store.on_behalf_of(txn_id):
            store.create_table(table("new"), at_commit=True, makes_directory=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE TXNS SET TXN_STATE = 'a' WHERE TXN_ID = ?", (txn_id,))
        connection.execute("ALTER TABLE DROPPED_DIRECTORIES DROP COLUMN DD_MADE_BY")
        connection.execute("ALTER TABLE DROPPED_DIRECTORIES DROP COLUMN DD_WRITE_ID")
        connection.execute("UPDATE VERSION SET SCHEMA_VERSION = 6")
        connection.commit()
    with closing(opened(path)) as store:
        assert [d.location.rpartition("/")[2] for d in store.dropped_directories()] == ["new"]
        for one in store.dropped_directories():
            store.set_aside([one])
        store.create_table(table("new"))


def test_a_table_of_version_7_has_a_version_from_its_first_change_on(tmp_path: Path) -> None:
    """Readers compare it (:meth:`acidsql.commands.resolve.context.StatementContext.unchanged`)."""
    path = tmp_path / "old.db"
    with closing(opened(path)) as store:
        for name in ("t", "other"):
            store.create_table(table(name))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE TBLS DROP COLUMN TBL_VERSION")
        connection.execute("DROP TABLE NEXT_TBL_VERSION")
        connection.execute("UPDATE VERSION SET SCHEMA_VERSION = 7")
        connection.commit()
    with closing(opened(path)) as store:
        old = store.get_table("default", "t")
        assert old.version == store.get_table("default", "t").version
        store.drop_table("default", "t")
        store.create_table(replace(table("t"), location=f"{old.location}-new"))
        new = store.get_table("default", "t")
        assert new.version > old.version
        other = store.get_table("default", "other")
        store.alter_table(replace(other, columns=(*other.columns, Column("new", "int"))))
        assert store.get_table("default", "other").version > new.version
        assert store.latest_version() == store.get_table("default", "other").version


RELAXED = frozenset(
    (
        *("open_txns", "lock", "check_lock", "unlock", "heartbeat", "heartbeat_txns"),
        "add_dynamic_partitions",
    )
)
"""Calls that a power cut may undo: what they say matters to processes that it ends, or is only an estimate."""


def test_what_is_committed_is_synced(store: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = cast(Any, store)._store
    levels = dict[str, set[int]]()
    write = type(embedded).write

    @contextmanager
    def noted(self: Any, *, durable: bool = True) -> Iterator[Any]:
        frames = (frame.function for frame in inspect.stack())
        call = next(name for name in frames if name in dir(Metastore))
        with write(self, durable=durable) as db:
            levels.setdefault(call, set()).add(db.exec_driver_sql("PRAGMA synchronous").scalar())
            yield db

    monkeypatch.setattr(type(embedded), "write", noted)
    store.create_table(table(partitioned=True))
    store.add_partitions([partition("1")])
    txn_id = begin(store)
    ask(store, txn_id, LockType.SHARED_WRITE, "default.t", Operation.UPDATE)
    write_id = store.allocate_table_write_id(txn_id, "default", "t")
    store.add_dynamic_partitions(txn_id, write_id, "default", "t", ["p=1"], Operation.UPDATE)
    store.heartbeat(txn_id=txn_id)
    store.commit_txn(txn_id)
    store.abort_txns([begin(store)])
    store.compact(CompactionRequest("default", "t", "p=1", CompactionType.MAJOR, "u", "h"))
    store.find_next_compact("w")
    store.drop_partitions("default", "t", ["p=1"])
    store.drop_table("default", "t")
    full, normal = 2, 1
    assert {"commit_txn", "allocate_table_write_id", "abort_txns", "create_table", "drop_table"} < set(levels)
    assert {call for call, found in levels.items() if full not in found} <= RELAXED
    assert all(found <= {full, normal} for found in levels.values())


class TestAnInterrupt:
    """SQLite kept the write lock of a connection that SQLAlchemy had closed because of Ctrl-C."""

    def test_comes_when_the_transaction_of_the_store_is_over(self, store: Metastore, opening: Opening) -> None:
        embedded = cast(Any, store)._store
        steps = list[str]()

        def change() -> None:
            with embedded.write() as db:
                db.execute(text("DELETE FROM NEXT_LOCK_ID"))
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
                steps.append("went on")
                db.execute(text("INSERT INTO NEXT_LOCK_ID VALUES (7)"))

        with pytest.raises(KeyboardInterrupt):
            change()
        assert steps == ["went on"]
        with closing(sqlite3.connect(opening.file, timeout=0.1, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert other.execute("SELECT * FROM NEXT_LOCK_ID").fetchall() == [(7,)]
            other.execute("ROLLBACK")
        begin(store)

    def test_ends_a_wait_for_other_threads(self, store: Metastore) -> None:
        turn = cast(Any, store)._store._opened.turn
        with turn:
            Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            started = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                begin(store)
            assert time.monotonic() - started < 30  # it would wait for a minute
        begin(store)

    def test_that_a_handler_passes_over_does_not_end_a_wait(self, store: Metastore) -> None:
        """As that of a child process that has ended."""
        turn, came = cast(Any, store)._store._opened.turn, list[int]()
        before = signal.signal(signal.SIGCHLD, lambda number, frame: came.append(number))
        try:
            turn.acquire()
            Timer(0.1, os.kill, (os.getpid(), signal.SIGCHLD)).start()
            Timer(0.5, turn.release).start()
            begin(store)
        finally:
            signal.signal(signal.SIGCHLD, before)
        assert signal.SIGCHLD in came

    def test_during_a_fork_leaves_the_store_usable(self, opening: Opening) -> None:
        """Python passes over an exception in what is done before and after a fork. In a process of its own: a signal
        that came meanwhile comes once more, a little later."""
        run(f"""
            import os, random, signal, threading
            from acidsql.metastore import open_metastore
            from acidsql.settings import Settings

            store = open_metastore({opening.url!r}, Settings(), warehouse="file:/w")
            forks = came = 0
            while forks < 40 or not came:
                try:
                    threading.Timer(random.random() * 0.004, os.kill, (os.getpid(), signal.SIGINT)).start()
                    if os.fork() == 0:
                        os._exit(0)
                    forks += 1
                    os.wait()
                    store.open_txns(user="u", host="h")
                except (KeyboardInterrupt, ChildProcessError):
                    came += 1
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            assert store.get_valid_txns().high_watermark == store.open_txns(user="u", host="h")[0] - 1
            os._exit(0)
        """)

    def test_during_a_fork_kills_nobody_when_its_handler_is_gone_by_then(self, opening: Opening) -> None:
        """A time limit around something that forks: it came again when the default was back, which ends a process."""
        run(f"""
            import os, signal, threading, time
            from acidsql.metastore import open_metastore
            from acidsql.settings import Settings

            store = open_metastore({opening.url!r}, Settings(), warehouse="file:/w")
            inside = threading.Event()

            def be_busy():
                with store.alone():
                    inside.set()
                    time.sleep(0.3)

            def limit(number, frame):
                raise TimeoutError

            busy = threading.Thread(target=be_busy)
            busy.start()
            inside.wait()
            before = signal.signal(signal.SIGALRM, limit)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            if os.fork() == 0:
                os._exit(0)
            signal.signal(signal.SIGALRM, before)
            os.wait()
            busy.join()
            time.sleep(0.2)
            os._exit(0)
        """)

    def test_may_fork_while_it_ends_a_wait(self, opening: Opening) -> None:
        """As a supervisor does that starts a worker again."""
        run(f"""
            import os, signal, threading, time
            from acidsql.metastore import open_metastore
            from acidsql.settings import Settings

            store = open_metastore({opening.url!r}, Settings(), warehouse="file:/w")
            inside = threading.Event()

            def be_busy():
                with store.alone():
                    inside.set()
                    time.sleep(0.6)

            def start_again(number, frame):
                if os.fork() == 0:
                    os._exit(0)
                os.wait()

            signal.signal(signal.SIGHUP, start_again)
            threading.Thread(target=be_busy).start()
            inside.wait()
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGHUP)).start()
            store.open_txns(user="u", host="h")
            os._exit(0)
        """)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
    def test_at_any_moment_leaves_the_store_to_others(
        self, store: Metastore, opening: Opening, number: signal.Signals, error: type[BaseException]
    ) -> None:
        """A program's time limit may be a signal, too; and an error that somebody keeps has cursors in its frames."""
        store.create_table(table(partitioned=True))
        beside = open_metastore(opening.url, Settings({"acidsql.metastore.busy.timeout": "20s"}), warehouse="file:/w")

        def answer(number: int, frame: object) -> None:
            raise error

        kept: BaseException | None = None
        before = signal.signal(number, answer)
        try:
            for i in range(40):
                timer = Timer(random.random() * 0.01, os.kill, (os.getpid(), number))
                try:
                    timer.start()
                    while True:
                        store.add_partitions([partition(str(i))])
                        store.list_partitions("default", "t")
                        store.drop_partitions("default", "t", [f"p={i}"])
                except (error, AcidError) as e:
                    timer.cancel()
                    kept = e
                latest = begin(beside)
                assert store.get_valid_txns().high_watermark == latest, kept
                beside.commit_txn(latest)
        finally:
            signal.signal(number, before)
        beside.close()

    def test_of_another_thread_leaves_no_old_snapshot(self, store: Metastore) -> None:
        """An exception that is raised in a thread from outside comes at any place."""
        embedded = cast(Any, store)._store
        kept = list[BaseException]()
        for _ in range(3):
            try:
                with embedded.read() as db:
                    cursor = db.execute(text("SELECT * FROM TXNS"))
                    raise TimeoutError(cursor)
            except TimeoutError as e:
                kept.append(e)
            latest = begin(store)
            assert store.get_valid_txns().high_watermark == latest

    def test_leaves_no_transaction_that_nobody_knows(self, store: Metastore) -> None:
        """It came between the commit of the store and the statement that was to have the transaction's id."""
        known = list[int]()

        def opening() -> None:
            with Deferred():
                os.kill(os.getpid(), signal.SIGINT)
                known.append(begin(store))

        with pytest.raises(KeyboardInterrupt):
            opening()
        assert [t.id for t in store.show_txns()] == known

    def test_of_several_kinds_is_answered_for_each(self) -> None:
        came = list[int]()

        def answer(number: int, frame: object) -> None:
            came.append(number)
            raise TimeoutError(number)

        def interrupted() -> None:
            with Deferred():
                for number in (*numbers, *numbers):
                    os.kill(os.getpid(), number)
                assert came == []

        numbers = (signal.SIGALRM, signal.SIGUSR1)
        before = [signal.signal(number, answer) for number in numbers]
        try:
            with pytest.raises(TimeoutError):
                interrupted()
            assert came == list(numbers)
            assert [signal.getsignal(number) for number in numbers] == [answer, answer]
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def test_is_answered_by_its_own_handler_afterwards_whatever_comes_meanwhile(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One handler that was back already raised while the others were put back: they never were."""

        def answer(number: int, frame: object) -> None:
            raise TimeoutError(number)

        def put(number: int, handler: Any) -> Any:
            before = real(number, handler)
            if handler is answer and not came:
                came.append(number)
                os.kill(os.getpid(), signal.SIGALRM)
            return before

        def nothing() -> None:
            with Deferred():
                pass

        came = list[int]()
        interrupt, before = signal.getsignal(signal.SIGINT), signal.signal(signal.SIGALRM, answer)
        real = signal.signal
        monkeypatch.setattr(signal, "signal", put)
        try:
            with pytest.raises(TimeoutError):
                nothing()
            assert signal.getsignal(signal.SIGINT) is interrupt
            assert signal.getsignal(signal.SIGALRM) is answer
        finally:
            real(signal.SIGALRM, before)

    def test_is_told_to_an_event_loop_once(self) -> None:
        here, there = socket.socketpair()
        came = list[int]()
        before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
        with here, there:
            for end in (here, there):
                end.setblocking(False)
            old = signal.set_wakeup_fd(there.fileno())
            try:
                with Deferred():
                    os.kill(os.getpid(), signal.SIGTERM)
            finally:
                signal.set_wakeup_fd(old)
                signal.signal(signal.SIGTERM, before)
            assert here.recv(10) == bytes([signal.SIGTERM])
        assert came == [signal.SIGTERM]


def test_a_fork_waits_for_a_call_and_for_what_is_asked_in_it(opening: Opening) -> None:
    """The store's lock stayed with a thread that waited for the fork, which waited for that thread."""
    run(f"""
        import os, threading, time
        from acidsql.metastore import open_metastore
        from acidsql.settings import Settings

        store = open_metastore({opening.url!r}, Settings(), warehouse="file:/w")
        inside = threading.Event()

        def ask():
            with store.alone():
                inside.set()
                time.sleep(0.3)
                store.list_databases()

        asking = threading.Thread(target=ask)
        asking.start()
        inside.wait()
        if os.fork() == 0:
            store.open_txns(user="u", host="h")
            os._exit(0)
        assert os.wait()[1] == 0
        asking.join()
        store.open_txns(user="u", host="h")
        os._exit(0)
    """)


def test_a_child_that_another_thread_has_forked_gets_its_signals(opening: Opening) -> None:
    """The main thread was at the store, its handlers were hidden, and it is not in the child."""
    run(f"""
        import os, signal, threading
        from acidsql.metastore import open_metastore
        from acidsql.settings import Settings

        store = open_metastore({opening.url!r}, Settings(), warehouse="file:/w")
        ended, codes = signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7)), []

        def fork():
            for _ in range(60):
                child = os.fork()
                if child == 0:
                    os.kill(os.getpid(), signal.SIGTERM)
                    os._exit(0)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        forking = threading.Thread(target=fork)
        forking.start()
        while forking.is_alive():
            store.list_databases()
        assert codes == [7] * 60, codes
        os._exit(0)
    """)


def test_a_change_inside_of_another_is_a_part_of_it(store: Metastore) -> None:
    def fail() -> None:
        with store.alone():
            store.create_table(table("inner"))
            assert store.find_table("default", "inner") is not None
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert store.find_table("default", "inner") is None
    with store.alone():
        store.create_table(table("one"))
        with pytest.raises(AlreadyExists):
            store.create_table(table("one"))
        store.create_table(table("two"))
    assert set(store.list_tables("default")) >= {"one", "two"}


def test_a_part_that_the_database_has_undone_with_the_whole_ends_the_whole(store: Metastore) -> None:
    """On a full disk SQLite undoes the whole transaction, and would commit each statement that follows by itself."""
    embedded = cast(Any, store)._store

    def fail() -> None:
        with embedded.write() as part:
            part.execute(text("ROLLBACK"))
            part.execute(text("SELECT * FROM nowhere"))

    def go_on() -> None:
        with embedded.write() as db:
            db.execute(text("DELETE FROM NEXT_LOCK_ID"))
            with pytest.raises(MetastoreError):
                fail()
            db.execute(text("INSERT INTO NEXT_LOCK_ID VALUES (7)"))

    with pytest.raises(MetastoreError):
        go_on()
    with embedded.read() as db:
        assert db.execute(text("SELECT NL_NEXT FROM NEXT_LOCK_ID")).scalars().all() != [7]
    begin(store)


def run(program: str) -> None:
    """In a process of its own: what it does with signals and forks concerns no other test."""
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120)
