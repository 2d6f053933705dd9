"""What a store needs of its database, whichever that is: :mod:`sqlite` and :mod:`postgres` are the two there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from math import inf

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from acidsql.errors import AcidError, MetastoreError

KIND = "acidsql_transaction"
"""Execution option of an engine: the :class:`Kind` of its transactions."""


class Kind(Enum):
    """What a transaction of the database is for."""

    READ = "read"
    """It sees one state of the database, and changes nothing."""
    WRITE = "write"
    """It is alone in writing, and its commit survives a power cut, with all commits before it."""
    RELAXED = "relaxed write"
    """It is alone in writing; a power cut that ends all who use the store may undo it, unless a :attr:`WRITE` has
    followed."""


class Database(ABC):
    """A database and how it is spoken to. It holds no connections: an engine does, and each process has its own."""

    driver_error: type[Exception]
    """What its driver raises."""

    def __init__(self, name: str, busy_timeout: float) -> None:
        self.name = name
        """What messages call it."""
        self.busy_timeout = busy_timeout
        """Seconds that a transaction waits for another one's writer."""
        self.waits_until = inf
        """When it no longer waits for a server that is away, by :func:`time.monotonic`."""

    @abstractmethod
    def open_engine(self) -> Engine:
        """A pool of connections whose transactions begin as the option :data:`KIND` says."""

    def is_there(self) -> bool:
        """Whether it is there before it is opened, which may make it."""
        return True

    @abstractmethod
    def prepare(self, engine: Engine) -> None:
        """Make it ready for a store, as often as it is opened.

        Raises:
            MetastoreError: When it cannot be used.
        """

    @contextmanager
    def explained(self) -> Iterator[None]:
        """A block whose errors of the database are raised as MetastoreError, with its name and the cause."""
        try:
            yield
        except DBAPIError as e:
            raise self._meaning(e.orig) from e
        except (SQLAlchemyError, UnicodeEncodeError) as e:
            raise MetastoreError(f"Metastore {self.name}: {e}") from e
        except self.driver_error as e:
            raise self._meaning(e) from e

    @abstractmethod
    def _meaning(self, error: BaseException | None) -> MetastoreError:
        """What an error of the driver's means."""

    @abstractmethod
    def now_ms(self, connection: Connection) -> int:
        """Milliseconds since 1970 by the one clock that all who use the store go by."""

    def check(self, connection: Connection) -> list[str]:
        """What the database itself finds damaged, in a sentence each."""
        return []

    def busy(self) -> MetastoreError:
        """The error of a transaction that has waited too long for others to write."""
        return MetastoreError(
            f"Metastore {self.name}: others have been writing to it for longer than {self.busy_timeout:g} s"
            " (acidsql.metastore.busy.timeout)"
        )

    @contextmanager
    def transaction(self, engine: Engine, answer_signals: Callable[[], None]) -> Iterator[Connection]:
        """Committed at the end, rolled back after an error.

        After one that may come from outside (a thread's asynchronous exception) its connection is not used again: a
        cursor that lives on in the exception's frames would keep the old snapshot open in it.

        Args:
            engine: With the transaction's :data:`KIND`.
            answer_signals: To be called now and then where it waits before the block.
        """
        with engine.begin() as connection:
            try:
                yield connection
            except (AcidError, SQLAlchemyError):
                raise
            except BaseException:
                connection.invalidate()
                raise
