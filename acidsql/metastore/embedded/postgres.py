"""PostgreSQL as the database of a metastore: one store for the processes of many machines.

A writer takes an advisory lock at its beginning, one for each schema of the database, and the server gives it in the
order in which it was asked for; so there is one writer at a time, as at SQLite, and no transaction fails because of
another one's. Each of its statements sees all that earlier writers have committed (READ COMMITTED). Readers see one
state of the database until they end (REPEATABLE READ).
Every commit waits until the server's log is written (``synchronous_commit``), also one that a power cut might undo at
SQLite: there it ends all who use the store; here they live on when the server crashes, and rely on what they were told.

The clock is the server's: machines need not agree on the time for locks and time-outs to be right.

A connection that is lost before anything was done in a transaction is made anew. One that is lost at a commit leaves
open what came of it. So each transaction that writes leaves a token in the row of its process in LAST_WRITES, and that
is looked for. The server's own number of the transaction would not do: after a crash it may give it to another one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from acidsql.errors import AcidError, MetastoreError
from acidsql.metastore.embedded.database import KIND, Database, Kind
from acidsql.metastore.embedded.schema import TXNS

DRIVER = "postgresql+psycopg"
OLDEST = 12
"""The oldest version of the server that is taken; its makers have kept up none before 13 since November 2024."""

_IDLE_CONNECTIONS = 2
"""Of each process: a server takes a hundred, when its settings are left as they are."""
_MOMENT, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two attempts to connect: the first pause, and the longest."""

_SAFE_NAMES = {
    # a peer that does not answer is noticed: 10 s without a word, then three questions
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "acidsql",
}
"""Parameters of the connection, where the URL says nothing else."""

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('acidsql ' || current_schema(), 0))"
_PLACE = f"""SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
    coalesce((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
              WHERE c.relname = '{TXNS.name}' AND c.relkind = 'r' AND pg_table_is_visible(c.oid)), current_schema())"""
"""Of which version the server is, its encoding, and where the store is."""
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {_ALONE}"
_LEAVE = f"""INSERT INTO "LAST_WRITES" VALUES ('{{writer}}', '{{token}}', {_NOW})
    ON CONFLICT ("LW_WRITER") DO UPDATE SET "LW_TOKEN" = excluded."LW_TOKEN", "LW_AT" = excluded."LW_AT\""""
"""How a transaction leaves its token; both values are made here."""
_HAS_LAST_WRITES = """SELECT to_regclass('"LAST_WRITES"') IS NOT NULL"""
_FORGET = f"""DELETE FROM "LAST_WRITES" WHERE "LW_AT" < {_NOW} - 24 * 60 * 60 * 1000"""
"""Of processes that have written nothing for a day: none of them still asks what came of a commit."""
_LAST_TOKEN = """SELECT "LW_TOKEN" FROM "LAST_WRITES" WHERE "LW_WRITER" = %s"""

_TIMEOUTS = "'statement_timeout', 'transaction_timeout', 'idle_session_timeout'"
"""Those of the server, of the versions that have them."""
_LONGEST_TIMEOUT = (1 << 31) - 1
"""Milliseconds, for the server."""

_STARTING = "the database system is"
"""… starting up, not yet accepting connections, in recovery mode: after one of its processes was killed, too."""
_NOT_THERE = ("08", "57P", "53300")
"""SQLSTATEs, or how they begin: no connection, a server that stops or starts, one that takes no more connections."""

_STARTED = "acidsql_started"


class PostgreSQL(Database):
    """A database of a PostgreSQL server.

    The store is in the schema that its tables are found in by the user's ``search_path``, and, where there are none, in
    the one that a new table would be in. Each connection has no other one in its path: all users of a store mean the
    same tables by their names, and the same lock.

    Args:
        text: A SQLAlchemy URL, ``postgresql://`` or ``postgresql+psycopg://``.
        busy_timeout: Seconds that a transaction waits for the writer of another process, and for a server that is away.

    Raises:
        MetastoreError: When it is not a URL, or names no database.
    """

    driver_error = psycopg.Error

    def __init__(self, text: str, busy_timeout: float) -> None:
        self._url = _parse(text)
        place = f"{self._url.host or ''}{'' if self._url.port is None else f':{self._url.port}'}"
        super().__init__(f"postgresql://{place}/{self._url.database}", busy_timeout)
        self._schema: str | None = None
        """Where the store is; None: not known yet, since nobody was there who could be asked."""
        self._name = uuid4().hex
        self._leaves_tokens = False
        """Whether the store is known to have LAST_WRITES: there is none while it is made, or brought up to date."""

    def open_engine(self) -> Engine:
        return self._engine(pool_size=_IDLE_CONNECTIONS, max_overflow=-1, pool_use_lifo=True)

    def _engine(self, **pool: Any) -> Engine:
        seconds = {"connect_timeout": max(2, min(30, int(self.busy_timeout)))}
        engine = create_engine(
            self._url,
            **pool,
            isolation_level="AUTOCOMMIT",  # the driver begins no transactions of its own
            connect_args={
                name: value for name, value in {**_SAFE_NAMES, **seconds}.items() if name not in self._url.query
            }
            | {"client_encoding": "utf8", "autocommit": True},
        )
        event.listen(engine, "connect", self._on_connect, insert=True)  # before SQLAlchemy asks for anything
        return engine

    def prepare(self, engine: Engine) -> None:
        """Check that the server and its database can hold a store.

        Raises:
            MetastoreError: When they cannot, or are not there.
        """
        try:
            with self.explained():
                version, encoding, schema = self._place()
        except TypeError as e:  # of a parameter in the URL
            raise MetastoreError(f"Metastore {self.name}: {e}") from e
        if version < OLDEST * 10_000:
            raise MetastoreError(f"Metastore {self.name}: PostgreSQL {OLDEST} or later is needed, this is {version}")
        if encoding != "UTF8":
            raise MetastoreError(
                f"Metastore {self.name}: the encoding of its database is {encoding}",
                hint="CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
            )
        if schema is None:
            raise MetastoreError(
                f"Metastore {self.name}: none of the schemas in the user's search_path is there",
                hint="CREATE SCHEMA …, and ALTER ROLE … SET search_path = …",
            )
        self._schema = schema

    def _place(self) -> tuple[int, str, str | None]:
        """What the server and its database are; one that is starting is waited for."""
        engine = self._engine(poolclass=NullPool)
        for pause in self._pauses():
            try:
                with engine.connect() as connection:
                    version, encoding, schema = connection.exec_driver_sql(_PLACE).one()
                    return version, encoding, schema
            except DBAPIError as e:  # libpq tells no SQLSTATE (57P03) of a connection that was refused
                if _STARTING not in str(e.orig) or not pause:
                    raise
            time.sleep(pause)
        raise AssertionError("the last pause is 0")

    def _on_connect(self, connection: psycopg.Connection[Any], record: Any) -> None:
        wait = max(1, min(int(self.busy_timeout * 1000), _LONGEST_TIMEOUT))
        # a process that was stopped in the middle of a transaction must not keep all others from writing
        idle = max(5_000, wait // 2)
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            cursor.execute(
                f"SET lock_timeout = {wait}; SET idle_in_transaction_session_timeout = {idle};"
                f" SET jit = off; SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ({_TIMEOUTS})"
            )
            if self._schema is not None:
                cursor.execute("SELECT set_config('search_path', quote_ident(%s), false)", (self._schema,))
            cursor.execute("SHOW synchronous_commit")
            if cursor.fetchone() == ("off",):  # what is acknowledged is durable, whatever the role's default
                cursor.execute("SET synchronous_commit = on")

    @contextmanager
    def transaction(self, engine: Engine, answer_signals: Callable[[], None]) -> Iterator[Connection]:
        token = "" if engine.get_execution_options()[KIND] is Kind.READ else uuid4().hex
        connection = self._begin(engine, token, answer_signals)
        try:
            try:
                yield connection
            except (AcidError, SQLAlchemyError):
                _roll_back(connection)
                raise
            except BaseException:
                connection.invalidate()
                raise
            if not token:
                _roll_back(connection)  # it has read, whatever becomes of the connection now
                return
            try:
                connection.commit()
            except DBAPIError as e:
                if not e.connection_invalidated:
                    raise
                self._require_committed(engine, token, e)
        finally:
            connection.close()

    def _begin(self, engine: Engine, token: str, answer_signals: Callable[[], None]) -> Connection:
        """A connection in a new transaction, which leaves a token; one that reads has none."""
        for pause in self._pauses():
            try:
                return self._begun(engine, token)
            except (psycopg.OperationalError, DBAPIError) as e:
                if self._schema is None or not _is_away(e) or not pause:
                    raise
            answer_signals()
            time.sleep(pause)
        raise AssertionError("the last pause is 0")

    def _begun(self, engine: Engine, token: str) -> Connection:
        connection = engine.connect()
        try:
            connection.begin()
            raw: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
            leave = _LEAVE.format(writer=self._writer, token=token)
            with raw.cursor() as cursor:
                first = [_BEGIN_WRITE if token else _BEGIN_READ]
                if token and self._leaves_tokens:
                    first.append(leave)
                cursor.execute("; ".join([*first, f"SELECT {_NOW}"]))
                while cursor.nextset():
                    pass
                [connection.info[_STARTED]] = cursor.fetchone() or (0,)
                if token and not self._leaves_tokens and cursor.execute(_HAS_LAST_WRITES).fetchone() == (True,):
                    cursor.execute(f"{_FORGET}; {leave}")
                    self._leaves_tokens = True
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        return connection

    @property
    def _writer(self) -> str:
        """This process: one that was forked is another."""
        return f"{self._name}-{os.getpid()}"

    def _require_committed(self, engine: Engine, token: str, lost: DBAPIError) -> None:
        """Find out what came of a transaction whose connection was lost at its commit.

        Raises:
            DBAPIError: When it was not committed.
            MetastoreError: When nobody can tell in time.
        """
        for pause in self._pauses() if self._leaves_tokens else ():
            is_committed = None
            with suppress(psycopg.OperationalError, DBAPIError), engine.connect() as connection, connection.begin():
                connection.exec_driver_sql(_BEGIN_WRITE)  # whoever is alone in writing knows that the other one is over
                is_committed = connection.exec_driver_sql(_LAST_TOKEN, (self._writer,)).scalar() == token
            if is_committed:
                return
            if is_committed is False:
                raise lost
            time.sleep(pause)
        raise MetastoreError(
            f"Metastore {self.name}: the connection was lost at a commit, and it is not known what came of it:"
            f" {_text(lost.orig)}"
        )

    def _pauses(self) -> Iterator[float]:
        """Seconds to wait after each attempt to reach a server that is away; 0 after the last one."""
        end, pause = time.monotonic() + self.busy_timeout, _MOMENT
        while time.monotonic() < min(end, self.waits_until):
            yield pause
            pause = min(pause * 2, _LONGEST_PAUSE)
        yield 0

    def now_ms(self, connection: Connection) -> int:
        return int(connection.info[_STARTED])

    def _meaning(self, error: BaseException | None) -> MetastoreError:
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return self.busy()
        return MetastoreError(f"Metastore {self.name}: {_text(error)}")


def _parse(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as e:  # a port that is no number
        raise MetastoreError(f"Not the URL of a metastore: {text.partition('://')[0]}://…") from e
    if not url.database:
        raise MetastoreError(f"The URL {url.drivername}://… names no database", hint=f"{DRIVER}://host:5432/database")
    return url.set(drivername=DRIVER)


def _roll_back(connection: Connection) -> None:
    """Undo a transaction; one whose connection is lost, the server does."""
    try:
        connection.rollback()
    except SQLAlchemyError:
        connection.invalidate()


def _is_away(error: psycopg.OperationalError | DBAPIError) -> bool:
    """Whether the server was not there, or has ended the connection."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.OperationalError):
        return False
    return cause.sqlstate is None or cause.sqlstate.startswith(_NOT_THERE)


def _text(error: BaseException | None) -> str:
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return primary or str(error).strip()
