"""Running statements in transactions: open one, run, commit, or abort without leaving anything."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import DefinitionChanged, SnapshotOutdated, StartOver, pause_before
from acidsql.commands.transaction import outcome
from acidsql.commands.transaction.pin import OpenTransaction, Pin, TransactionPin
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import (
    AcidError,
    Deadlock,
    NoSuchLock,
    NoSuchTransaction,
    TransactionAborted,
    TransactionError,
    WriteConflict,
)
from acidsql.interrupts import Deferred
from acidsql.metastore.model import LockComponent
from acidsql.plan.failures import own_failures
from acidsql.settings import SNAPSHOT_RETRIES

logger = logging.getLogger(__name__)

T = TypeVar("T")


@contextmanager
def open_transaction(env: Environment) -> Iterator[WriteTransaction]:
    """Run a block inside a transaction, and commit it.

    What the block changes in the catalog is changed only while the transaction is open, and so holds its locks.
    Any error before the commit aborts the transaction and removes what was written. Published files are removed only
    once the metastore has confirmed the abort: after a commit with unknown outcome they may be committed.

    Raises:
        ConstraintViolation: When a value violates a constraint of its column.
        WriteConflict: When another transaction changed the same rows first.
    """
    txn: WriteTransaction | None = None
    try:
        with Deferred():
            [txn] = begin(env)
        with env.heartbeats.keep_alive(txn.id), own_failures(), env.metastore.on_behalf_of(txn.id):
            yield txn
            txn.commit()
    except BaseException as error:
        if txn is None:
            raise
        ended = roll_back(txn, error)
        if ended is not None:
            raise ended from error
        raise
    finally:
        if txn is not None and not (txn.may_be_committed or txn.is_aborted):
            env.heartbeats.abort_later(txn.id, "interrupted")  # again, just as it was about to be rolled back
    txn.committed()


def begin(env: Environment, count: int = 1, *, for_several_statements: bool = False) -> list[WriteTransaction]:
    """Open transactions, ``hive.txn.max.open.batch`` at most; whoever does keeps them alive, and ends them."""
    ids = env.metastore.open_txns(count, user=env.user, host=env.host, agent_info=env.agent)
    return [WriteTransaction(env, txn_id, for_several_statements) for txn_id in ids]


def roll_back(txn: WriteTransaction, error: BaseException) -> TransactionError | None:
    """Abort a transaction and remove what it wrote; published files only once the metastore has confirmed the abort.

    Args:
        txn: The transaction.
        error: Why.

    Returns:
        How it was ended by others before, where it was: then the error may be a consequence.
    """
    ended = None
    with Deferred():  # but where the store waits
        try:
            if not txn.may_be_committed:
                ended = end_of(txn.env, txn.id, error)
            for staging in txn.stagings:  # seen by nobody; on a full disk the store needs the room
                staging.discard_staged()
        finally:
            if _aborted(txn, error):
                txn.is_aborted = True
                discarded = [staging.discard() for staging in txn.stagings]
                if all(discarded):
                    _forget(txn)
    return ended


def in_transaction(env: Environment, run: Callable[[WriteTransaction], T]) -> T:
    """Run a statement inside its own transaction, and in a new one if it has to restart.

    Hive also restarts with a new transaction if the snapshot was outdated when the locks were granted. Where rows are
    compared (``acidsql.write.conflicts``), whoever has lost a conflict runs again, and then excludes others. Either one
    asks for its locks before it plans again: else others could change the table meanwhile, each time.

    Args:
        env: The session.
        run: The statement; it locks, and may raise :class:`StartOver` before it has written anything.

    Raises:
        Deadlock, WriteConflict, TransactionError: When it restarted too often. Others as :func:`open_transaction`.
    """
    within = env.transaction
    if within is not None:
        return within.write(run)
    reason: TransactionError | None = None
    has_lost = False
    held: Sequence[LockComponent] = ()
    added_in = Counter[str]()
    for attempt in range(env.settings.value(SNAPSHOT_RETRIES) + 1):
        if isinstance(reason, DefinitionChanged | Deadlock):
            pause_before(attempt)
        txn: WriteTransaction | None = None
        try:
            with open_transaction(env) as txn:
                txn.locks.has_lost, txn.locks.added_in = has_lost, added_in
                txn.locks.wait_again(held)
                return run(txn)
        except (StartOver, Deadlock, WriteConflict) as e:
            if isinstance(e, WriteConflict):
                if txn is None or not txn.is_by_rows:
                    raise
                has_lost = True
            logger.info("transaction restarts: %s", e.message)
            held = txn.locks.of_next_attempt() if txn and isinstance(e, SnapshotOutdated | WriteConflict) else ()
            reason = e
    assert reason is not None
    if isinstance(reason, WriteConflict | Deadlock):
        raise reason
    raise TransactionError(
        f"The statement's snapshot was outdated at every attempt when its locks were granted: {reason.message}",
        hint=f"Increase {SNAPSHOT_RETRIES.name}, or reduce the number of concurrent writers.",
    )


def together(env: Environment, run: Callable[[WriteTransaction, Environment], T]) -> T:
    """Run statements that change rows of different tables in one transaction: all of them commit, or none.

    Args:
        env: The session.
        run: Runs the statements, with the environment that it is given; called again where one of them has to start
            over.

    Raises:
        As :func:`in_transaction`, and as the statements.
    """

    return in_transaction(env, lambda txn: run(txn, env.within(Within(txn, env))))


class Within(OpenTransaction):
    """A transaction whose statements begin and end with somebody else's."""

    def __init__(self, txn: WriteTransaction, env: Environment) -> None:
        self._txn, self._env = txn, env

    @property
    def deletes_what_it_replaces(self) -> bool:
        return self._txn.has_several_statements

    def write(self, run: Callable[[WriteTransaction], T]) -> T:
        return run(self._txn)

    def read(self, read: Callable[[Pin], T]) -> T:
        return read(TransactionPin(self._txn, self._env))


@contextmanager
def write_transaction(env: Environment, components: Sequence[LockComponent]) -> Iterator[WriteTransaction]:
    """Run a block inside a transaction that holds its locks from the start, and commit it.

    Raises:
        LockTimeout: When the locks were not granted in time. Others as :func:`open_transaction`.
    """
    attempt, retries = 0, env.settings.value(SNAPSHOT_RETRIES)
    while True:
        granted = False
        try:
            with open_transaction(env) as txn:
                txn.lock(components)
                granted = True
                yield txn
            return
        except (StartOver, Deadlock) as e:
            attempt += 1
            if granted or attempt > retries:
                raise
            if isinstance(e, Deadlock):
                pause_before(attempt)


def _forget(txn: WriteTransaction) -> None:
    """Delete the record of an aborted transaction after its files were removed (rule 5: never before).

    Where that is not sure, the cleaner looks for them.
    """
    try:
        if txn.has_stayed():
            txn.env.metastore.forget_txn_components(txn.id)
    except AcidError as e:
        logger.warning("aborted transaction %s could not be deleted and stays listed: %s", txn.id, e)


def end_of(env: Environment, txn_id: int, error: BaseException) -> TransactionError | None:
    """How a transaction was ended by others; None if it is open, or if that is unknown.

    The error of a statement may be a consequence: what it was reading or creating has been removed since, or the lock
    that it was waiting for.
    """
    tells_itself = isinstance(error, TransactionError) and not isinstance(error, NoSuchLock)
    if tells_itself or not isinstance(error, Exception):
        return None
    try:
        env.metastore.heartbeat(txn_id=txn_id)
    except (TransactionAborted, NoSuchTransaction) as e:
        return e
    except AcidError:
        return None
    return None


def _aborted(txn: WriteTransaction, error: BaseException) -> bool:
    """Make sure that a transaction is aborted; False if that is unknown: it is then tried again with the heartbeats."""
    env, txn_id, reason = txn.env, txn.id, str(error)[:200]
    try:
        done = txn_id in env.metastore.abort_txns([txn_id], reason=reason)
        if not done:
            env.metastore.heartbeat(txn_id=txn_id)
    except TransactionAborted:
        done = True
    except NoSuchTransaction:
        done = not txn.may_be_committed
        if not done and not isinstance(error, Exception):  # interrupted in its commit, which has come about
            outcome.has_committed()
    except BaseException as e:  # the store is busy or full; or this was interrupted meanwhile
        env.heartbeats.abort_later(txn_id, reason)
        if not isinstance(e, AcidError):
            raise
        logger.warning("transaction %s could not be aborted: %s", txn_id, e)
        return False
    return done
