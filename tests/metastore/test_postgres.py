"""What is PostgreSQL's alone: servers that cannot hold a store, lost connections, the clock, several schemas."""

from __future__ import annotations

import os
import random
import signal
import string
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from acidsql.errors import AcidError, MetastoreError, UnsupportedError
from acidsql.metastore import open_metastore
from acidsql.metastore.embedded.schema import SCHEMA_VERSION
from acidsql.metastore.model import TxnState
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from tests.metastore import postgres_store
from tests.metastore.situations import EXCLUSIVE, begin, partition, read_write_ids, seen, table, take, write
from tests.services.postgres import PostgresServer

pytestmark = pytest.mark.skipif(postgres_store.missing() is not None, reason=str(postgres_store.missing()))


@pytest.fixture
def url() -> str:
    """A database with nothing in it."""
    return postgres_store.new_database()


def opened(url: str, busy: str = "20s") -> Metastore:
    return open_metastore(url, Settings({"acidsql.metastore.busy.timeout": busy}), warehouse="file:/w")


@contextmanager
def closing_at_the_end(store: Metastore) -> Iterator[Metastore]:
    """The block's store, closed at its end."""
    try:
        yield store
    finally:
        store.close()


def run_in(url: str, *statements: str) -> list[Any]:
    """Run SQL in a database, from outside; the rows of the last statement."""
    with create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        result = None
        for statement in statements:
            result = connection.execute(text(statement))
        return list(result) if result is not None and result.returns_rows else []


@pytest.mark.parametrize(
    ("url", "error", "match"),
    [
        ("postgresql+asyncpg://h/d", UnsupportedError, r"postgresql\+asyncpg"),
        ("POSTGRESQL://u:secret@127.0.0.1:1/d", MetastoreError, "postgresql://127.0.0.1:1/d"),
        ("postgresql://u:secret@127.0.0.1:1/d?prepare_threshold=0", MetastoreError, "postgresql://127.0.0.1:1/d"),
        ("postgresql+psycopg://h:5432", MetastoreError, "names no database"),
        ("postgresql://u:secret@h:port/d", MetastoreError, "Not the URL"),
        ("postgresql://u:secret@127.0.0.1:1/d", MetastoreError, "postgresql://127.0.0.1:1/d"),
    ],
)
def test_what_is_no_store(url: str, error: type[AcidError], match: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has never been there is not waited for."""
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
    with pytest.raises(error, match=match) as found:
        opened(url, "60s")
    assert "secret" not in str(found.value)


def test_a_database_that_is_not_there(url: str) -> None:
    with pytest.raises(MetastoreError, match="does not exist"):
        opened(f"{url}_nowhere")


def test_a_database_of_somebody_else(url: str) -> None:
    run_in(url, "CREATE TABLE theirs (a int)")
    with pytest.raises(MetastoreError, match="not one of acidsql"):
        opened(url)


def test_a_database_of_another_encoding(url: str) -> None:
    name = url.rpartition("/")[2]
    run_in(url, f"CREATE DATABASE {name}_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(MetastoreError, match="SQL_ASCII"):
        opened(f"{url}_ascii")


def test_a_store_of_a_later_version(url: str) -> None:
    opened(url).close()
    run_in(url, 'UPDATE "VERSION" SET "SCHEMA_VERSION" = 4711')
    with pytest.raises(MetastoreError, match="4711"):
        opened(url)


def test_a_store_of_an_older_version_is_brought_up_to_this_one(url: str) -> None:
    store = opened(url)
    store.create_table(table())
    store.commit_txn(write(store))
    store.close()
    run_in(
        url,
        'ALTER TABLE "TBLS" DROP COLUMN "TBL_VERSION"',
        'DROP TABLE "NEXT_TBL_VERSION"',
        'DROP INDEX "ix_TBLS_LOCATION"',
        'UPDATE "VERSION" SET "SCHEMA_VERSION" = 7',
    )
    with closing_at_the_end(opened(url)) as again:
        assert seen(read_write_ids(again)) == [1]
        again.create_table(table("u"))
        assert run_in(url, 'SELECT "SCHEMA_VERSION" FROM "VERSION"') == [(SCHEMA_VERSION,)]
        assert len(run_in(url, "SELECT 1 FROM pg_indexes WHERE indexname = 'ix_TBLS_LOCATION'")) == 1


def test_defaults_of_the_database_change_nothing(url: str) -> None:
    name = url.rpartition("/")[2]
    run_in(
        url,
        *(
            f"ALTER DATABASE {name} SET {setting}"
            for setting in (
                "default_transaction_isolation = 'serializable'",
                "default_transaction_read_only = on",
                "synchronous_commit = off",
                "statement_timeout = 1",
                "transaction_timeout = 100",
                "idle_session_timeout = 100",
                "TimeZone = 'Asia/Tokyo'",
                "standard_conforming_strings = off",
                "DateStyle = 'German'",
            )
        ),
    )
    with closing_at_the_end(opened(url)) as store:
        store.create_table(table())
        time.sleep(0.3)
        first, second = begin(store), begin(store)
        take(store, first, EXCLUSIVE)
        store.commit_txn(first)
        store.commit_txn(second)
        inner = cast(Any, store)._store
        for durable in (True, False):
            with inner.write(durable=durable) as db:
                assert db.execute(text("SHOW synchronous_commit")).scalar() == "on"
                assert db.execute(text("SHOW transaction_isolation")).scalar() == "read committed"
        with inner.read() as db:
            assert db.execute(text("SHOW transaction_isolation")).scalar() == "repeatable read"


LAZY = {"fsync": "on", "synchronous_commit": "off", "wal_writer_delay": "10000"}
"""Settings of a server that writes its log as late as it may."""


def crash(url: str) -> None:
    """The server ends all of its processes, and begins again with its log."""
    [[pid]] = run_in(url, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
    os.kill(pid, signal.SIGKILL)


def test_a_crash_of_the_server_takes_nothing_that_was_told(url: str) -> None:
    """Its clients live on: a transaction that one of them has begun must not be begun by another one again."""
    with (
        PostgresServer(others=LAZY) as server,
        closing_at_the_end(opened(server.create_database("crashes"))) as store,
    ):
        store.create_table(table())
        txn_id = begin(store)
        take(store, txn_id, EXCLUSIVE)
        crash(server.url("crashes"))
        with suppress(MetastoreError):
            begin(store)  # it may be in the middle of this
        assert begin(store) > txn_id
        assert [one.txn_id for one in store.show_locks()] == [txn_id]


def test_who_is_about_to_end_waits_only_a_moment_for_a_server_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acidsql.metastore.embedded.store.GOODBYE_SECONDS", 0.5)
    with PostgresServer() as server:
        store = opened(server.create_database("away"), "1h")
    with closing_at_the_end(store), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.show_locks)
        assert not wait([waiting], timeout=1).done
        store.hurry()
        with pytest.raises(MetastoreError, match="connection"):
            waiting.result(60)
        store.hurry()  # it is not asked for more time
        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
            with pytest.raises(MetastoreError, match="connection"):
                store.show_locks()


def test_a_crash_at_a_commit_before_which_another_one_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server gives the number of the transaction that it has lost to the next one, which it commits."""
    commit = Connection.commit

    def lost(connection: Connection) -> None:
        monkeypatch.setattr(Connection, "commit", commit)
        number = connection.exec_driver_sql("SELECT txid_current()").scalar()
        crash(url)
        while True:
            with suppress(OperationalError):
                before = run_in(url, "SELECT txid_snapshot_xmax(txid_current_snapshot())")
                break
        numbers.append((number, before[0][0]))
        begin(other)
        connection.commit()

    numbers = list[tuple[int, int]]()
    with PostgresServer(others=LAZY) as server:
        url = server.create_database("crashes")
        with closing_at_the_end(opened(url)) as store, closing_at_the_end(opened(url)) as other:
            txn_id = begin(store)
            begin(other)
            monkeypatch.setattr(Connection, "commit", lost)
            with pytest.raises(MetastoreError, match="connection"):
                store.commit_txn(txn_id)
            assert [one.state for one in store.show_txns() if one.id == txn_id] == [TxnState.OPEN]
    [(number, next_number)] = numbers
    assert next_number <= number, "it was given again"


def test_the_longest_times(url: str) -> None:
    settings = Settings({"acidsql.metastore.busy.timeout": "106751991167d", "hive.txn.timeout": "106751991167d"})
    with closing_at_the_end(open_metastore(url, settings, warehouse="file:/w")) as store:
        take(store, begin(store), EXCLUSIVE)
        assert store.time_out_txns() == []


def test_a_name_that_its_indexes_cannot_hold(url: str) -> None:
    chance = random.Random(1)
    name = "".join(chance.choices(string.ascii_letters + string.digits, k=5000))
    with closing_at_the_end(opened(url)) as store:
        store.create_table(table(partitioned=True))
        with pytest.raises(MetastoreError, match="index row"):
            store.add_partitions([partition(name)])
        store.add_partitions([partition("1")])


def test_names_are_ordered_by_their_bytes_in_any_language(url: str) -> None:
    name = url.rpartition("/")[2]
    locale = "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C' TEMPLATE template0"
    run_in(url, f"CREATE DATABASE {name}_en {locale}")
    with closing_at_the_end(opened(f"{url}_en")) as store:
        keys = ["B", "a", "Ä", "_", "Z"]
        made = table()
        store.create_table(replace(made, parameters={**made.parameters, **dict.fromkeys(keys, "x")}))
        found = [key for key in store.get_table("default", "t").parameters if key in keys]
        assert found == sorted(keys)


def test_each_schema_has_a_store_of_its_own(url: str) -> None:
    run_in(url, "CREATE SCHEMA one", "CREATE SCHEMA two")
    one, two = (opened(f"{url}?options={quote(f'-csearch_path={name}')}") for name in ("one", "two"))
    try:
        one.create_table(table("a"))
        two.create_table(table("b"))
        assert (one.list_tables("default"), two.list_tables("default")) == (["a"], ["b"])
        with cast(Any, one)._store.write():
            begin(two)  # they do not wait for each other
    finally:
        one.close()
        two.close()


def test_users_who_see_one_store_in_different_schemas_exclude_each_other(url: str) -> None:
    """Who has a schema of the own name would make new tables there, but finds the store's where they are."""
    role = f"alice{os.getpid()}_{url.rpartition('_')[2]}"
    store = opened(url)
    run_in(url, f"CREATE ROLE {role} LOGIN SUPERUSER", f"CREATE SCHEMA {role} AUTHORIZATION {role}")
    with closing_at_the_end(store), closing_at_the_end(opened(url.replace("postgres@", f"{role}@"), "300ms")) as hers:
        store.create_table(table())
        assert hers.list_tables("default") == ["t"]
        with cast(Any, store)._store.write(), pytest.raises(MetastoreError, match=r"busy\.timeout"):
            begin(hers)
        begin(hers)
        assert run_in(url, f"SELECT 1 FROM pg_tables WHERE schemaname = '{role}'") == []


def test_a_user_without_a_schema(url: str) -> None:
    with pytest.raises(MetastoreError, match="search_path"):
        opened(f"{url}?options={quote('-csearch_path=nowhere')}")


def test_texts_that_it_cannot_hold_are_refused_and_leave_nothing(url: str) -> None:
    with closing_at_the_end(opened(url)) as store:
        for value in ("a\0b", "\ud800"):
            with pytest.raises(MetastoreError):
                store.create_table(replace(table(), parameters={"transactional": "true", "p": value}))
        assert store.list_tables("default") == []
        store.create_table(table())


def test_the_clock_is_the_servers(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time()
    monkeypatch.setattr(time, "time_ns", lambda: 5)
    with closing_at_the_end(opened(url)) as store:
        txn_id = begin(store)
        [txn] = [one for one in store.show_txns() if one.id == txn_id]
        assert abs(txn.started_ms / 1000 - real) < 60


def end_all(url: str) -> int:
    """End all other connections to a database; how many there were."""
    ended = run_in(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    return len(ended)


def test_connections_that_the_server_has_ended_are_made_anew(url: str) -> None:
    with closing_at_the_end(opened(url)) as store:
        store.create_table(table())
        for _ in range(3):
            assert end_all(url) > 0
            store.commit_txn(write(store))
            assert end_all(url) > 0
            store.list_tables("default")
        assert seen(read_write_ids(store)) == [1, 2, 3]


def test_a_transaction_that_the_server_has_ended_leaves_nothing(url: str) -> None:
    with closing_at_the_end(opened(url)) as store:

        def fail() -> None:
            with cast(Any, store)._store.write() as db:
                db.execute(text('DELETE FROM "NEXT_LOCK_ID"'))
                end_all(url)
                db.execute(text('DELETE FROM "TXNS"'))

        with pytest.raises(MetastoreError):
            fail()
        assert run_in(url, 'SELECT count(*) FROM "NEXT_LOCK_ID"') == [(1,)]
        begin(store)


@pytest.mark.parametrize("arrives", [False, True])
def test_a_connection_that_is_lost_at_a_commit(url: str, monkeypatch: pytest.MonkeyPatch, arrives: bool) -> None:
    """The server knows at once what came of it."""
    commit = Connection.commit

    def lost(connection: Connection) -> None:
        monkeypatch.setattr(Connection, "commit", commit)
        if arrives:
            connection.exec_driver_sql("COMMIT")
        end_all(url)
        connection.commit()

    with closing_at_the_end(opened(url, "60s")) as store:
        store.create_table(table())
        monkeypatch.setattr(Connection, "commit", lost)
        if arrives:
            assert begin(store) == 1
        else:
            with pytest.raises(MetastoreError, match=r"terminating connection|closed the connection"):
                begin(store)
        assert len(store.show_txns()) == arrives


def calls(store: Metastore) -> Iterator[tuple[str, Callable[[], object]]]:
    """What a statement asks of the store, one after another."""
    found: list[int] = []
    yield "open", lambda: found.append(begin(store))
    if not found:
        return
    yield "lock", lambda: take(store, found[0], EXCLUSIVE)
    yield "allocate", lambda: store.allocate_table_write_id(found[0], "default", "t")
    yield "commit", lambda: store.commit_txn(found[0])


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_a_network_that_is_cut_anywhere(url: str, step: int) -> None:
    """Each call is done once, and returns, or is not done, and fails: also where its commit was on the way."""
    with closing_at_the_end(opened(url)) as direct:
        direct.create_table(table())
        cuts, failed, done = 0, 0, 0
        with postgres_store.relayed(url) as (relay, by_relay):
            through = opened(by_relay)
            for pieces in range(0, 60, step):
                store_state = state_of(direct)
                relay.cut_after(pieces, 0.2)
                for name, call in calls(through):
                    before = state_of(direct)
                    try:
                        call()
                    except MetastoreError:
                        failed += 1
                        assert state_of(direct) == before, (pieces, name)
                        break
                    done += 1
                    assert state_of(direct) != before, (pieces, name)
                assert state_of(direct) != store_state or failed
                relay.heal()
                for txn in direct.show_txns():
                    if txn.state is TxnState.OPEN:
                        direct.abort_txns([txn.id])
            cuts = relay.cuts
            through.close()
        assert cuts >= 40 // step
        assert done > failed > 0


def state_of(store: Metastore) -> tuple[object, ...]:
    """All that calls change."""
    locks = [(one.lock_id, one.state) for one in store.show_locks()]
    return store.get_valid_txns(), store.show_txns(), locks, read_write_ids(store)


def test_a_server_that_is_gone_for_longer_than_one_waits(url: str) -> None:
    with postgres_store.relayed(url) as (relay, through):
        store = opened(through, "500ms")
        relay.cut_after(0, 60)
        with pytest.raises(MetastoreError):
            begin(store)
        with pytest.raises(MetastoreError):
            store.list_tables("default")
        relay.heal()
        begin(store)
        store.close()


@pytest.mark.slow
def test_a_process_that_is_stopped_in_a_transaction_does_not_keep_others_from_writing(url: str) -> None:
    with closing_at_the_end(opened(url, "8s")) as stopped, closing_at_the_end(opened(url, "30s")) as other:
        inside, goes_on = threading.Event(), threading.Event()
        failures: list[AcidError] = []

        def stop() -> None:
            with suppress(MetastoreError), cast(Any, stopped)._store.write() as db:
                db.execute(text('DELETE FROM "NEXT_LOCK_ID"'))
                inside.set()
                goes_on.wait(60)
                try:
                    with cast(Any, stopped)._store.write() as part:
                        part.execute(text('DELETE FROM "TXNS"'))
                except MetastoreError as e:
                    failures.append(e)
                    raise

        thread = threading.Thread(target=stop)
        thread.start()
        assert inside.wait(30)
        begin(other)  # the server has ended the transaction that does nothing
        goes_on.set()
        thread.join(30)
        assert len(failures) == 1
        assert run_in(url, 'SELECT count(*) FROM "NEXT_LOCK_ID"') == [(1,)]


def test_a_writer_that_waits_too_long_is_told_so(url: str) -> None:
    with closing_at_the_end(opened(url)) as one, closing_at_the_end(opened(url, "300ms")) as other:
        with cast(Any, one)._store.write(), pytest.raises(MetastoreError, match=r"busy\.timeout"):
            begin(other)
        begin(other)


def test_more_clients_than_the_server_takes_wait_for_one_another(url: str) -> None:
    name = url.rpartition("/")[2]
    store = opened(url)
    run_in(
        url,
        "DROP ROLE IF EXISTS few",
        "CREATE ROLE few LOGIN CONNECTION LIMIT 2",
        f"GRANT ALL ON DATABASE {name} TO few",
    )
    run_in(url, "GRANT ALL ON ALL TABLES IN SCHEMA public TO few", "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO few")
    few = opened(url.replace("postgres@", "few@"))
    try:
        threads = [threading.Thread(target=lambda: [begin(few) for _ in range(5)]) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.show_txns()) == 30
    finally:
        few.close()
        store.close()
