"""The errors of acidsql: one hierarchy, each with Hive's code and SQLSTATE where Hive has one.

An error caused by part of a statement carries its position: :meth:`AcidError.locate` adds the line, the
column and a marked excerpt, so that ``str(error)`` shows everything.

Codes and SQLSTATEs are those of Hive's ``ErrorMsg``.
"""

from __future__ import annotations

from typing import TypeVar

_E = TypeVar("_E", bound="AcidError")


class AcidError(Exception):
    """Base class of every error that acidsql itself raises.

    Args:
        message: The problem, in one sentence.
        code: Hive's error code, where Hive has one (``ErrorMsg``).
        sqlstate: The matching SQLSTATE.
        hint: What the user can do about it.
    """

    default_code: int | None = None
    default_sqlstate: str | None = None

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        sqlstate: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else self.default_code
        self.sqlstate = sqlstate or self.default_sqlstate
        self.hint = hint
        self.line: int | None = None
        self.column: int | None = None
        self.excerpt: str | None = None
        self._place: tuple[int, int] | None = None

    def locate(self: _E, text: str, start: int, end: int | None = None) -> _E:
        """Attach the position in the statement, unless one is already attached.

        Args:
            text: The whole statement.
            start: Offset of the first character at fault (0-based).
            end: Offset just past the last one; by default one character is marked.
        """
        if self.line is not None:
            return self
        self._place = (start, end if end is not None else start + 1)
        start = max(0, min(start, len(text)))
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", start)
        source = text[begin:] if stop < 0 else text[begin:stop]
        width = max(1, min((end or start + 1) - start, len(source) - (start - begin)))
        self.line = text.count("\n", 0, start) + 1
        self.column = start - begin + 1
        pad = "".join("\t" if c == "\t" else " " for c in source[: start - begin])
        self.excerpt = f"{source}\n{pad}{'^' * width}"
        return self

    def inside(self: _E, text: str, start: int, end: int) -> _E:
        """Translate a position in a fragment of a statement to the whole statement.

        Args:
            text: The whole statement.
            start: Offset of the fragment in it.
            end: Offset of its end; the whole fragment is marked where the error has no position in it.
        """
        if self._place is not None:
            start, end = start + self._place[0], start + self._place[1]
            self.line = None
        return self.locate(text, start, end)

    def __str__(self) -> str:
        tags = []
        if self.code is not None:
            tags.append(f"[Error {self.code}]")
        if self.sqlstate:
            tags.append(f"[SQLSTATE {self.sqlstate}]")
        if self.line is not None:
            tags.append(f"line {self.line}:{self.column}")
        parts = [" ".join([*tags, self.message]) if tags else self.message]
        if self.excerpt:
            parts.append(self.excerpt)
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)


class ParseError(AcidError):
    """Raised for a syntax error."""

    default_code = 40000
    default_sqlstate = "42000"


class UnsupportedError(AcidError):
    """Raised for a valid statement or option that this version does not support."""

    default_sqlstate = "0A000"


class AnalysisError(AcidError):
    """Raised for a statement without syntax errors that does not fit the tables it names."""

    default_code = 40000
    default_sqlstate = "42000"


class TableNotFound(AnalysisError):
    """Raised when a table does not exist (Hive 10001)."""

    default_code = 10001
    default_sqlstate = "42S02"


class DatabaseNotFound(AnalysisError):
    """Raised when a database does not exist (Hive 10072)."""

    default_code = 10072


class PartitionNotFound(AnalysisError):
    """Raised when a partition does not exist (Hive 10006)."""

    default_code = 10006


class ColumnNotFound(AnalysisError):
    """Raised when a column does not exist (Hive 10004, or 10408 in a SET clause)."""

    default_code = 10004


class AlreadyExists(AnalysisError):
    """Raised when a database, table or partition to be created already exists."""

    default_sqlstate = "08S01"


class NotTransactional(AnalysisError):
    """Raised for UPDATE, DELETE or MERGE on a table that is not transactional (Hive 10297)."""

    default_code = 10297


class ConstraintViolation(AcidError):
    """Raised when a value violates NOT NULL, the length or type of its column, or a CHECK."""

    default_sqlstate = "23000"


class CardinalityViolation(AcidError):
    """Raised when a target row of MERGE is matched by more than one source row.

    Hive detects it in a task, and its code is that of a failed task; standard SQLSTATE would be 21000.
    """

    default_code = 2
    default_sqlstate = "08S01"


class InvalidValue(AnalysisError):
    """Raised when a setting, table property or argument has an invalid value."""

    default_sqlstate = "22023"


class TransactionError(AcidError):
    """Base class of the errors of transactions and locks."""

    default_sqlstate = "08S01"


class NoSuchTransaction(TransactionError):
    """Raised when a transaction id was never allocated, or its record has been purged."""


class TransactionAborted(TransactionError):
    """Raised when a transaction was aborted by a write conflict, a timeout or an operator."""


class WriteConflict(TransactionAborted):
    """Raised when another transaction committed a change to the same rows first."""


class Deadlock(TransactionAborted):
    """Transactions wait for each other's locks, and this one was ended so that the others go on."""

    default_sqlstate = "40P01"


class NoSuchLock(TransactionError):
    """Raised when a lock id is unknown: released, timed out or never granted."""


class LockTimeout(TransactionError):
    """Raised when a lock was not granted in time; the message names the holders (Hive 10307)."""


class SnapshotTooOld(TransactionError):
    """Raised when files that a snapshot needs no longer exist (Hive 10327, ACID_NOT_ENOUGH_HISTORY)."""

    default_code = 10327


class CompactionError(AcidError):
    """Raised when a compaction was refused, failed or timed out (Hive 10432 for a refused request)."""

    default_sqlstate = "08S01"


class MetastoreError(AcidError):
    """Raised when the metastore cannot be opened, read or written."""

    default_sqlstate = "08S01"


class StorageError(AcidError):
    """Raised when a file or directory cannot be read or written."""

    default_sqlstate = "58030"


class CorruptFile(StorageError):
    """Raised when the contents of a file are not what its name or format requires."""

    default_sqlstate = "XX001"


def require_unicode(text: str, what: str) -> None:
    """Raises: InvalidValue for half of a surrogate pair, which no file and no other program takes."""
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise InvalidValue(f"{what} is not valid Unicode: {e.object[e.start]!a} at {e.start + 1}") from None
