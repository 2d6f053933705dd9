"""START TRANSACTION, COMMIT, ROLLBACK, SET AUTOCOMMIT, as in Hive's grammar; ABORT TRANSACTIONS and COMPACTIONS."""

from __future__ import annotations

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.parser.passthrough import passthrough
from acidsql.sql.statements import (
    AbortCompactions,
    AbortTransactions,
    Commit,
    Number,
    Rollback,
    SetAutocommit,
    StartTransaction,
    Statement,
)


def start(cursor: Cursor) -> Statement:
    """``START TRANSACTION [mode, …]``: a mode is ``READ ONLY``, ``READ WRITE`` or ``ISOLATION LEVEL SNAPSHOT``."""
    cursor.expect("START")
    cursor.expect("TRANSACTION")
    access: str | None = None
    has_level = False
    while not cursor.at_end():
        token = cursor.token
        if cursor.accept("READ"):
            found = cursor.expect_one_of("ONLY", "WRITE")
            if access is not None:
                raise cursor.error("READ ONLY or READ WRITE is given twice", token)
            access = found
        else:
            cursor.expect("ISOLATION")
            cursor.expect("LEVEL")
            cursor.expect("SNAPSHOT")
            if has_level:
                raise cursor.error("ISOLATION LEVEL is given twice", token)
            has_level = True
        if not cursor.at_end():
            cursor.expect(",")
            if cursor.at_end():
                raise cursor.error("Expected READ or ISOLATION LEVEL")
    return StartTransaction(cursor.statement_span(), access == "ONLY")


def begin(cursor: Cursor) -> Statement:
    """``BEGIN … END`` is a Spark script; ``BEGIN [TRANSACTION | WORK]``, which Hive does not know, is refused."""
    following = cursor.peek()
    if following.word in ("TRANSACTION", "WORK") or not following.text:
        raise cursor.unsupported("BEGIN is not supported", hint="START TRANSACTION begins a transaction.")
    return passthrough(cursor)


def commit(cursor: Cursor) -> Statement:
    """``COMMIT [WORK]``."""
    cursor.expect("COMMIT")
    cursor.accept("WORK")
    cursor.expect_end()
    return Commit(cursor.statement_span())


def rollback(cursor: Cursor) -> Statement:
    """``ROLLBACK [WORK]``."""
    cursor.expect("ROLLBACK")
    cursor.accept("WORK")
    cursor.expect_end()
    return Rollback(cursor.statement_span())


def set_autocommit(cursor: Cursor) -> Statement:
    """``SET AUTOCOMMIT TRUE | FALSE``, behind SET.

    With ``=``, as in other databases, it would be a setting of Spark's of that name, which does nothing.
    """
    cursor.expect("AUTOCOMMIT")
    value = cursor.expect_one_of("TRUE", "FALSE") == "TRUE"
    cursor.expect_end()
    return SetAutocommit(cursor.statement_span(), value)


def abort(cursor: Cursor) -> Statement:
    """``ABORT TRANSACTIONS id …`` and ``ABORT COMPACTIONS id …``: ids with nothing between them, as in Hive."""
    cursor.expect("ABORT")
    what = cursor.expect_one_of("TRANSACTIONS", "COMPACTIONS")
    ids: list[Number] = []
    while not ids or not cursor.at_end():
        ids.append(cursor.expect_number(f"the id of a {what.lower()[:-1]}"))
    kind = AbortTransactions if what == "TRANSACTIONS" else AbortCompactions
    return kind(cursor.statement_span(), tuple(ids))
