"""What keeps the files of a snapshot while something may read them, and the transactions that statements belong to."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import DataFrame

from acidsql.catalyst import HeldFiles
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StatementContext, StatementSnapshot
from acidsql.interrupts import Deferred
from acidsql.metastore.model import TxnType
from acidsql.settings import READ_LEASE

if TYPE_CHECKING:
    from acidsql.commands.transaction.write_transaction import WriteTransaction

T = TypeVar("T")


class Pin(ABC):
    """Keeps the cleaner from removing a snapshot's files while something may read them.

    Attributes:
        context: What a statement over the snapshot looks up.
        id: The transaction that keeps it away.
    """

    context: StatementContext
    id: int

    @abstractmethod
    def confirm(self) -> None:
        """Make sure that it is still there, now that all files are listed and before any is read.

        Raises:
            TransactionAborted, NoSuchTransaction: When it was ended by others, as of a process that was suspended: the
                cleaner may have removed files, and their rows are missing.
        """

    @abstractmethod
    def hold(self, frame: DataFrame, held: HeldFiles) -> DataFrame:
        """Keep the snapshot as long as Spark has a plan over its files, at most for ``acidsql.read.lease``.

        DataFrames derived from this one, views over it and its cache are such plans.
        """

    @abstractmethod
    def end(self) -> None:
        """End it now: no DataFrame was returned."""


class TransactionPin(Pin):
    """The snapshot of a transaction that stays open longer than whatever is read over it."""

    def __init__(self, txn: WriteTransaction, env: Environment) -> None:
        self.context = StatementContext(env, txn.snapshot, own_file=txn.own_file)
        self.id, self._env = txn.id, env

    def confirm(self) -> None:
        self._env.metastore.heartbeat(txn_id=self.id)

    def hold(self, frame: DataFrame, held: HeldFiles) -> DataFrame:
        self.confirm()
        return frame

    def end(self) -> None:
        pass


class OpenTransaction(ABC):
    """A transaction that the statements of an environment belong to."""

    @property
    @abstractmethod
    def deletes_what_it_replaces(self) -> bool:
        """Whether INSERT OVERWRITE and TRUNCATE delete rows, where a table has deletes, and write no base."""

    @abstractmethod
    def write(self, run: Callable[[WriteTransaction], T]) -> T:
        """Run a statement that writes."""

    @abstractmethod
    def read(self, read: Callable[[Pin], T]) -> T:
        """Run one that reads."""


def open_reader(env: Environment) -> int:
    """Open a transaction that writes nothing; interrupts are deferred until somebody ends it."""
    [txn_id] = env.metastore.open_txns(user=env.user, host=env.host, type=TxnType.READ_ONLY, agent_info=env.agent)
    return txn_id


class ReaderPin(Pin):
    """A reader's transaction.

    Reads take no locks: a snapshot refers to immutable directories. The pin protects them from removal.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        env.heartbeats.end_released()
        self.id = 0
        version = env.metastore.latest_version()
        try:
            with Deferred():
                self.id = open_reader(env)
            self.context = StatementContext(env, StatementSnapshot(env.metastore.get_valid_txns(), version))
        except BaseException:
            if self.id:
                self.end()
            raise

    def confirm(self) -> None:
        self._env.metastore.heartbeat(txn_id=self.id)

    def hold(self, frame: DataFrame, held: HeldFiles) -> DataFrame:
        self.confirm()
        with Deferred():
            self._env.heartbeats.pin(self.id, self._env.settings.value(READ_LEASE), held.are_read)
            weakref.finalize(frame, self._env.heartbeats.release, self.id)
        return frame

    def end(self) -> None:
        self._env.heartbeats.end(self.id)


@contextmanager
def pinned(env: Environment) -> Iterator[ReaderPin]:
    """A pin that ends at once if the block fails; heartbeats keep it alive during planning."""
    pin = ReaderPin(env)
    try:
        with env.heartbeats.keep_alive(pin.id):
            yield pin
    except BaseException:
        pin.end()
        raise
