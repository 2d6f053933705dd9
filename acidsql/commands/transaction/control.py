"""START TRANSACTION, COMMIT, ROLLBACK and SET AUTOCOMMIT; what may run in a transaction."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.transaction import outcome
from acidsql.commands.transaction.session_transaction import SessionTransaction
from acidsql.errors import AcidError, TransactionError
from acidsql.interrupts import Deferred
from acidsql.sql import statements as s

NOT_ALLOWED_IN_IMPLICIT, NOT_ALLOWED_IN, NOT_ALLOWED_WITHOUT = 20006, 20007, 20008
"""Hive's codes (``OP_NOT_ALLOWED_IN_IMPLICIT_TXN``, ``OP_NOT_ALLOWED_IN_TXN``, ``OP_NOT_ALLOWED_WITHOUT_TXN``)."""

_SQLSTATE = "42000"
_beginning = threading.Lock()

_BEGIN_ONE = (s.Query, s.Insert, s.Update, s.Delete, s.Merge, s.MultiInsert, s.Truncate)
"""Statements that begin a transaction where autocommit is off."""
_ALLOWED = (
    *_BEGIN_ONE,
    *(s.StartTransaction, s.Commit, s.Rollback, s.SetAutocommit, s.Explain, s.CreateTempView, s.Use, s.Set, s.Reset),
    *(s.ShowDatabases, s.ShowTables, s.ShowViews, s.ShowColumns, s.ShowProperties, s.ShowPartitions),
    *(s.ShowCreateTable, s.ShowTransactions, s.ShowLocks, s.ShowCompactions, s.AbortTransactions, s.AbortCompactions),
    *(s.Describe, s.DescribeDatabase, s.DescribeHistory, s.DescribeDetail),
)
_OF_SPARK = ("CACHE", "CLEAR", "DECLARE", "DESC", "DESCRIBE", "LIST", "REFRESH", "SET", "SHOW", "UNCACHE")
"""First words of statements of Spark's that change no table."""
_TEMPORARY = re.compile(r"DROP TEMPORARY\b|CREATE (OR REPLACE )?(GLOBAL )?TEMP(ORARY)? (VIEW|FUNCTION)\b")


def current(env: Environment) -> SessionTransaction | None:
    """The transaction of the session."""
    open_one = env.transaction
    return open_one if isinstance(open_one, SessionTransaction) else None


def environment_of(env: Environment, statement: s.Statement) -> Environment:
    """The environment of a statement that begins now, which has looked once whether a transaction is open.

    Where autocommit is off and none is, it begins one if it is a statement that does.

    Raises:
        TransactionError: When it is not allowed in the transaction that is open (Hive 20007, 20006), as definitions of
            tables are not.
    """
    own = environment_of_change(env) if isinstance(statement, _BEGIN_ONE) else env.of_statement()
    txn = current(own)
    if txn is None or isinstance(statement, _ALLOWED) or _is_of_session_alone(env, statement):
        return own
    kind = "an implicit transaction" if txn.is_implicit else "a transaction"
    code = NOT_ALLOWED_IN_IMPLICIT if txn.is_implicit else NOT_ALLOWED_IN
    error = TransactionError(
        f"Operation {_name(statement)} is not allowed in {kind}",
        code=code,
        sqlstate=_SQLSTATE,
        hint="COMMIT or ROLLBACK before it.",
    )
    raise with_location(statement.span, error)


@contextmanager
def answering(env: Environment) -> Iterator[None]:
    """A statement up to its answer: where it is interrupted before that, it is undone in a transaction; outside of one
    the interrupt tells whether it had been committed."""
    if (txn := current(env)) is not None:
        txn.forget_unanswered()
    try:
        with outcome.told():
            yield
    except BaseException as e:
        take_back(env, e)
        raise


def take_back(env: Environment, error: BaseException) -> None:
    """In a transaction, undo what this thread's statement has written that ran last: nobody has seen its answer."""
    if (txn := current(env)) is not None:  # without autocommit the statement may have begun it
        txn.take_back(error)


def environment_of_change(env: Environment) -> Environment:
    """As :func:`environment_of`, for a query or a change."""
    if not env.autocommit:
        with _beginning:
            if env.transaction is None and not env.autocommit:
                env.transaction = SessionTransaction(env, is_implicit=True)
            return env.of_statement()
    return env.of_statement()


def _is_of_session_alone(env: Environment, statement: s.Statement) -> bool:
    """Whether a statement of Spark's changes no more than the session, such as its temporary views."""
    if isinstance(statement, s.DropView):
        name = statement.view
        return env.catalyst.is_temporary_view(name.table, name.database)
    if not isinstance(statement, s.Passthrough):
        return False
    words = statement.span.text.upper().split()
    return words[0] in _OF_SPARK or _TEMPORARY.match(" ".join(words[:6])) is not None


def _name(statement: s.Statement) -> str:
    """The first words of a statement."""
    if isinstance(statement, s.Passthrough):
        return " ".join(statement.span.text.split()[:2]).upper()
    return "".join(f" {c}" if c.isupper() else c for c in type(statement).__name__).strip().upper()


def start(env: Environment, statement: s.StartTransaction, parameters: Mapping[str, Any]) -> DataFrame:
    """START TRANSACTION: all statements up to COMMIT or ROLLBACK are one transaction."""
    try:
        begin(env.session, is_read_only=statement.is_read_only)
    except TransactionError as e:
        raise with_location(statement.span, e) from None
    return env.nothing()


def begin(env: Environment, *, is_read_only: bool = False) -> SessionTransaction:
    """Begin a transaction. Raises: TransactionError when one is open (Hive 20007)."""
    txn = SessionTransaction(env, is_read_only=is_read_only)
    with _beginning:
        before = env.transaction
        if before is None:
            env.transaction = txn
    if before is not None:
        raise TransactionError(
            "Operation START TRANSACTION is not allowed in a transaction",
            code=NOT_ALLOWED_IN,
            sqlstate=_SQLSTATE,
            hint="A session has one transaction at a time; acidsql.connect() opens another session.",
        )
    return txn


def _required(env: Environment, statement: s.Statement) -> SessionTransaction:
    txn = current(env)
    if txn is None:
        message = f"Operation {_name(statement)} is not allowed without an active transaction"
        hint = "START TRANSACTION begins one."
        error = TransactionError(message, code=NOT_ALLOWED_WITHOUT, sqlstate=_SQLSTATE, hint=hint)
        raise with_location(statement.span, error)
    return txn


def commit(env: Environment, statement: s.Commit, parameters: Mapping[str, Any]) -> DataFrame:
    """COMMIT."""
    end(env.session, _required(env, statement), is_kept=True)
    return env.nothing()


def rollback(env: Environment, statement: s.Rollback, parameters: Mapping[str, Any]) -> DataFrame:
    """ROLLBACK."""
    end(env.session, _required(env, statement), is_kept=False)
    return env.nothing()


def end(env: Environment, txn: SessionTransaction, *, is_kept: bool) -> None:
    """Commit the session's transaction, or roll it back: it is the session's no longer, whatever comes of it.

    Raises:
        TransactionError: When it cannot be committed: nothing of it is there, as far as the store can tell.
    """
    try:
        with outcome.told():
            if is_kept:
                txn.commit()
            else:
                with Deferred():
                    txn.roll_back()
    finally:
        if env.transaction is txn:
            env.transaction = None


def set_autocommit(env: Environment, statement: s.SetAutocommit, parameters: Mapping[str, Any]) -> DataFrame:
    """SET AUTOCOMMIT: FALSE: a statement begins a transaction, which COMMIT or ROLLBACK ends. TRUE: each statement is
    one; a transaction that is open is committed, as in Hive and JDBC."""
    session = env.session
    while True:
        with _beginning:  # another thread may begin one
            txn = current(session)
            if txn is None or not statement.value:
                session.autocommit = statement.value
                return env.nothing()
        end(session, txn, is_kept=True)


def roll_back_what_is_open(env: Environment) -> bool:
    """Roll the session's transaction back; whether one was open."""
    txn = current(env)
    if txn is None:
        return False
    with suppress(AcidError):
        end(env, txn, is_kept=False)
    return True
