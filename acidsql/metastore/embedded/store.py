"""The database behind an embedded metastore: short transactions, from any thread of any process."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine, insert, inspect, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from acidsql.errors import MetastoreError
from acidsql.interrupts import Deferred
from acidsql.metastore.embedded import forks, moves, schema
from acidsql.metastore.embedded.database import KIND, Database, Kind
from acidsql.metastore.embedded.forks import no_fork
from acidsql.metastore.model import DEFAULT_DATABASE, TxnState, TxnType

GOODBYE_SECONDS = 5.0
"""How long somebody who is about to end waits for a server that is away."""
_MOMENT = 0.1
"""Seconds after which a wait looks for signals."""


@dataclass(frozen=True)
class _Open:
    """What one process has open. A child that was forked must not touch its parent's."""

    pid: int
    engines: dict[Kind, Engine]
    # threads of one process queue here: in SQLite's own queue they would sleep and poll, in PostgreSQL's each would
    # take one of its connections
    turn: threading.Lock = field(default_factory=threading.Lock)


class _UnderWay(threading.local):
    """The process and the connection of the writing transaction that this thread is in."""

    writer: tuple[int, Connection] | None = None


class Store:
    """A database with the tables of :mod:`~acidsql.metastore.embedded.schema`, created where they are missing.

    Several processes may try that at the same time: one creates them, the others find them.

    Args:
        database: Where it is.
        warehouse: Location of the database ``default``, where the tables are created. None: they must be there, in
            this version, and nothing is written.

    Raises:
        MetastoreError: When it cannot be opened, is no metastore, or is one of a newer version.
    """

    def __init__(self, database: Database, *, warehouse: str | None) -> None:
        self._database = database
        self._inherited: list[_Open] = []
        self._closed = False
        self._under_way = _UnderWay()
        self.was_upgraded = False
        """Whether it was one of an older version."""
        if warehouse is None and not database.is_there():
            raise MetastoreError(f"Metastore {self.name}: there is none")
        self._opened = self._open()
        _STORES.add(self)
        try:
            self._make_tables(warehouse)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._database.name

    def now(self, connection: Connection) -> int:
        """Milliseconds since 1970, by the clock of all who use the store."""
        return self._database.now_ms(connection)

    def check(self, connection: Connection) -> list[str]:
        """What the database itself finds damaged, in a sentence each."""
        return self._database.check(connection)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database; inside of a :meth:`write` of this thread, that one's.

        Raises:
            MetastoreError: When the database cannot be read.
        """
        if (writing := self._writing()) is not None:
            with self._explained():
                yield writing
            return
        with (
            Deferred() as signals,
            no_fork(),
            self._explained(),
            self._database.transaction(self._here().engines[Kind.READ], signals.answer) as connection,
        ):
            yield connection

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction that is alone in writing; it commits at the end of the block, an error rolls it back.

        Inside of another one of this thread it is a part of that: what it has changed is undone by an error of its own,
        and by one of the whole, which commits it.

        Args:
            durable: False: a power cut may undo it, unless a durable one has followed. That is enough for what matters
                only to processes that the power cut ends too: opening, locking, heartbeats. Files are written only
                after a durable one, the allocation of the write id.

        Raises:
            MetastoreError: When the database cannot be written, or another process does not stop writing.
        """
        if (writing := self._writing()) is not None:
            with self._explained(), _part_of(writing):
                yield writing
            return
        with Deferred() as signals:
            opened = self._take_turn(signals)
            try:
                engine = opened.engines[Kind.WRITE if durable else Kind.RELAXED]
                with no_fork(), self._explained(), self._database.transaction(engine, signals.answer) as connection:
                    self._under_way.writer = (os.getpid(), connection)
                    try:
                        yield connection
                    finally:
                        self._under_way.writer = None
            finally:
                opened.turn.release()

    def _writing(self) -> Connection | None:
        """That of the :meth:`write` which is under way in this thread."""
        pid, connection = self._under_way.writer or (0, None)
        return connection if pid == os.getpid() else None

    def _take_turn(self, signals: Deferred) -> _Open:
        """Wait for the other threads of this process; signals are answered meanwhile.

        Forks do not wait for it: a signal's handler may fork, and a child has a turn of its own.

        Raises:
            MetastoreError: When they take too long.
        """
        end = time.monotonic() + self._database.busy_timeout
        while True:
            opened = self._here()
            if opened.turn.acquire(timeout=max(0.0, min(_MOMENT, end - time.monotonic()))):
                return opened
            signals.answer()
            if time.monotonic() >= end:
                raise self._database.busy()

    def hurry(self) -> None:
        """Wait no longer than :data:`GOODBYE_SECONDS` from now on, the first time that this is asked for."""
        self._database.waits_until = min(self._database.waits_until, time.monotonic() + GOODBYE_SECONDS)

    def close(self) -> None:
        """Close the connections; further calls are errors. Closing twice is none."""
        self._closed = True
        _STORES.discard(self)
        if self._opened.pid == os.getpid():
            self._opened.engines[Kind.READ].dispose()

    def release_idle(self) -> None:
        """Close idle connections. The next call opens one."""
        if self._opened.pid == os.getpid():
            self._opened.engines[Kind.READ].dispose()

    def _open(self) -> _Open:
        engine = self._database.open_engine()
        return _Open(os.getpid(), {kind: engine.execution_options(**{KIND: kind}) for kind in Kind})

    def _here(self) -> _Open:
        if self._closed:
            raise MetastoreError(f"Metastore {self.name} is closed")
        if self._opened.pid != os.getpid():
            # kept for good: neither database's connections may even be closed in a process that did not open them
            self._inherited.append(self._opened)
            self._opened = self._open()
        return self._opened

    def _explained(self) -> AbstractContextManager[None]:
        return self._database.explained()

    # --- tables ------------------------------------------------------------------------------------------------------

    def _make_tables(self, warehouse: str | None) -> None:
        self._database.prepare(self._opened.engines[Kind.READ])
        with self.read() as connection:  # a store that is only read is not written to here
            version = self._version(connection)
        if version != schema.SCHEMA_VERSION and warehouse is None:
            there = f"one of version {version}, this acidsql has {schema.SCHEMA_VERSION}" if version else "none"
            raise MetastoreError(
                f"Metastore {self.name}: there is {there}",
                hint="A session brings it up to date: acidsql -e 'SHOW DATABASES'" if version else None,
            )
        if version != schema.SCHEMA_VERSION:
            with self.write() as connection:
                version = self._version(connection)  # another process may have been first
                if version == 0:
                    assert warehouse is not None
                    _create(connection, warehouse)
                elif version < schema.SCHEMA_VERSION:
                    _upgrade(connection)
                    self.was_upgraded = True

    def _version(self, connection: Connection) -> int:
        """The version of the tables, 0 where there are none."""
        names = inspect(connection).get_table_names()
        if not names:
            return 0
        if schema.VERSION.name not in names or schema.TXNS.name not in names:
            raise MetastoreError(f"Metastore {self.name}: a database, but not one of acidsql")
        version = connection.execute(select(schema.VERSION.c.SCHEMA_VERSION)).scalar()
        if not isinstance(version, int) or not 1 <= version <= schema.SCHEMA_VERSION:
            newer = isinstance(version, int) and version > schema.SCHEMA_VERSION
            raise MetastoreError(
                f"Metastore {self.name}: created by {'a newer' if newer else 'another'} acidsql"
                f" (schema version {version}; this one knows version {schema.SCHEMA_VERSION})",
                hint="Upgrade acidsql." if newer else None,
            )
        return version


@contextmanager
def _part_of(writing: Connection) -> Iterator[None]:
    """A part of a transaction, undone alone after an error.

    After one of the database nothing more is done in the transaction: on a full disk SQLite has undone all of it, and
    would commit each statement that follows by itself.
    """
    savepoint = writing.begin_nested()
    try:
        yield
    except SQLAlchemyError:
        writing.invalidate()
        raise
    except BaseException:
        savepoint.rollback()
        raise
    savepoint.commit()


def _create(connection: Connection, warehouse: str) -> None:
    schema.metadata.create_all(connection)
    connection.execute(
        insert(schema.VERSION),
        {"VER_ID": 1, "SCHEMA_VERSION": schema.SCHEMA_VERSION, "VERSION_COMMENT": "acidsql embedded metastore"},
    )
    connection.execute(
        insert(schema.DBS),
        {"NAME": DEFAULT_DATABASE, "DB_LOCATION_URI": warehouse, "DESC": "Default Hive database"},
    )
    # as in Hive: the newest transaction is always a row, so there is one from the start
    connection.execute(
        insert(schema.TXNS),
        {
            "TXN_ID": 0,
            "TXN_STATE": TxnState.COMMITTED.value,
            "TXN_STARTED": 0,
            "TXN_LAST_HEARTBEAT": 0,
            "TXN_USER": "",
            "TXN_HOST": "",
            "TXN_TYPE": TxnType.DEFAULT.value,
        },
    )
    connection.execute(insert(schema.NEXT_LOCK_ID), {"NL_NEXT": 1})
    connection.execute(insert(schema.NEXT_TBL_VERSION), {"NTV_NEXT": 1})
    connection.execute(insert(schema.NEXT_COMPACTION_QUEUE_ID), {"NCQ_NEXT": 1})


def _upgrade(connection: Connection) -> None:
    """Bring the tables of an older version up to date: what is new is a table, or a column that may be NULL."""
    schema.metadata.create_all(connection)
    found = inspect(connection)
    quoted = connection.dialect.identifier_preparer.quote_identifier
    for table in schema.metadata.sorted_tables:
        known = {column["name"] for column in found.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                type = column.type.compile(connection.dialect)
                connection.execute(text(f"ALTER TABLE {quoted(table.name)} ADD COLUMN {quoted(column.name)} {type}"))
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    if connection.execute(select(schema.NEXT_COMPACTION_QUEUE_ID)).first() is None:
        connection.execute(insert(schema.NEXT_COMPACTION_QUEUE_ID), {"NCQ_NEXT": 1})
    if connection.execute(select(schema.NEXT_TBL_VERSION)).first() is None:
        connection.execute(insert(schema.NEXT_TBL_VERSION), {"NTV_NEXT": 1})
    moves.take_over_properties(connection)
    connection.execute(update(schema.VERSION).values(SCHEMA_VERSION=schema.SCHEMA_VERSION))


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _release_idle() -> None:
    for store in list(_STORES):
        store.release_idle()


forks.before_forks(_release_idle)
