"""The errors of acidsql: one family, each with Hive's code and SQLSTATE where Hive has one.

An error that belongs to a place in a statement carries that place: :meth:`AcidError.locate` adds the line, the
column and a marked excerpt, so whoever catches it can print ``str(error)`` and has everything.

Codes and SQLSTATEs are those of Hive's ``ErrorMsg``.
"""

from __future__ import annotations

from typing import TypeVar

_E = TypeVar("_E", bound="AcidError")


class AcidError(Exception):
    """Base of every error that acidsql raises itself.

    Args:
        message: What is wrong, in one sentence.
        code: Hive's error code, where Hive has one (``ErrorMsg``).
        sqlstate: The SQLSTATE that goes with it.
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
        """Attach the place in the statement, unless one is attached already.

        Args:
            text: The whole statement.
            start: Offset of the first character at fault (0-based).
            end: Offset just past the last one; one character when left out.
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
        """Carry a place found in a piece of a statement over to the whole statement.

        Args:
            text: The whole statement.
            start: Where the piece starts in it.
            end: Where it ends; the whole piece is marked where the error has no place in it.
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
    """Raised when a statement is not well formed."""

    default_code = 40000
    default_sqlstate = "42000"


class UnsupportedError(AcidError):
    """Raised for a statement or option that is understood but not carried out by this version."""

    default_sqlstate = "0A000"


class AnalysisError(AcidError):
    """Raised when a statement is well formed but does not fit the tables it names."""

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
    """Raised when a database, table or partition to be created is there already."""

    default_sqlstate = "08S01"


class NotTransactional(AnalysisError):
    """Raised for UPDATE, DELETE or MERGE on a table that is not transactional (Hive 10297)."""

    default_code = 10297


class ConstraintViolation(AcidError):
    """Raised when a value does not fit its column: NULL where there must be one, too long, or against a CHECK."""

    default_sqlstate = "23000"


class CardinalityViolation(AcidError):
    """Raised when a row of the target of MERGE has several partners in the source.

    Hive finds it in a task, and its code is that of a failed task; SQL's own SQLSTATE would be 21000.
    """

    default_code = 2
    default_sqlstate = "08S01"


class InvalidValue(AnalysisError):
    """Raised when a setting or table property has a value that it cannot have."""

    default_sqlstate = "22023"


class TransactionError(AcidError):
    """Base of the errors of transactions and locks."""

    default_sqlstate = "08S01"


class NoSuchTransaction(TransactionError):
    """Raised when a transaction id was never handed out, or is forgotten."""


class TransactionAborted(TransactionError):
    """Raised when a transaction was aborted: by a write conflict, a time-out or an operator."""


class WriteConflict(TransactionAborted):
    """Raised when another transaction committed a change to the same rows first."""


class NoSuchLock(TransactionError):
    """Raised when a lock id is unknown: released, timed out or never granted."""


class LockTimeout(TransactionError):
    """Raised when a lock was not granted in time; the message names the holders (Hive 10307)."""


class SnapshotTooOld(TransactionError):
    """Raised when the files that a snapshot needs are gone (Hive 10327, ACID_NOT_ENOUGH_HISTORY)."""

    default_code = 10327


class CompactionError(AcidError):
    """Raised when a compaction was refused or failed, or was not done in time (Hive 10432 for a request refused)."""

    default_sqlstate = "08S01"


class MetastoreError(AcidError):
    """Raised when the metastore cannot be opened, read or written."""

    default_sqlstate = "08S01"


class StorageError(AcidError):
    """Raised when a file or directory cannot be read or written."""

    default_sqlstate = "58030"


class CorruptFile(StorageError):
    """Raised when a file is not what its name promises."""

    default_sqlstate = "XX001"
