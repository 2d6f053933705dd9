"""What a Hive Metastore answers, as errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hive_metastore import ttypes
from thrift.Thrift import TApplicationException, TException

from acidsql.errors import (
    AcidError,
    AlreadyExists,
    AnalysisError,
    MetastoreError,
    NoSuchLock,
    NoSuchTransaction,
    TableNotFound,
    TransactionAborted,
    TransactionError,
    UnsupportedError,
    WriteConflict,
)

NO_SUCH_TRANSACTION = 10262
TRANSACTION_ABORTED = 10263
NO_SUCH_LOCK = 10270
DATABASE_NOT_EMPTY = 10226


@contextmanager
def hive_errors(missing: type[AcidError] = TableNotFound, name: str | None = None) -> Iterator[None]:
    """Turn the metastore's exceptions into ours.

    Args:
        missing: What to raise when the object does not exist.
        name: The object's name, for the message of ``missing`` instead of the metastore's own.
    """
    try:
        yield
    except TException as e:
        raise translated(e, missing, name) from e


def translated(error: TException, missing: type[AcidError] = TableNotFound, name: str | None = None) -> AcidError:
    """The error of ours for an exception of the metastore's API."""
    message = str(getattr(error, "message", None) or error)
    if isinstance(error, ttypes.NoSuchObjectException):
        return missing(message if name is None else name)
    if isinstance(error, ttypes.AlreadyExistsException):
        return AlreadyExists(message)
    if isinstance(error, ttypes.NoSuchTxnException):
        return NoSuchTransaction(message, code=NO_SUCH_TRANSACTION)
    if isinstance(error, ttypes.TxnAbortedException):
        kind = WriteConflict if "write conflict" in message else TransactionAborted
        return kind(message, code=TRANSACTION_ABORTED)
    if isinstance(error, ttypes.NoSuchLockException):
        return NoSuchLock(message, code=NO_SUCH_LOCK)
    if isinstance(error, ttypes.TxnOpenException):
        return TransactionError(message)
    if isinstance(error, ttypes.InvalidOperationException | ttypes.InvalidObjectException):
        return AnalysisError(message, code=DATABASE_NOT_EMPTY if "not empty" in message else None)
    if isinstance(error, TApplicationException) and error.type == TApplicationException.UNKNOWN_METHOD:
        return UnsupportedError(f"This Hive Metastore does not know the call: {message}")
    return MetastoreError(f"The Hive Metastore refused: {message}")
