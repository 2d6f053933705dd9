"""The transaction of a session: several statements over any number of tables, of which all are committed, or none.

It is opened in the store by its first statement, which may start over as any other one: nothing was seen before. From
then on its snapshot stays, and whatever would make a statement start over in another transaction ends this one: another
transaction has changed the same rows first, and commits first. Each statement publishes its directories as it ends,
under the one write id of the transaction in the table and a number of its own, which is how later statements see them.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.sql import DataFrame

from acidsql.catalyst import HeldFiles
from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import DefinitionChanged, SnapshotOutdated, StartOver, pause_before
from acidsql.commands.transaction.held import HeldTransactions
from acidsql.commands.transaction.pin import OpenTransaction, Pin, TransactionPin, open_reader
from acidsql.commands.transaction.run import end_of
from acidsql.commands.transaction.write_transaction import Savepoint, WriteTransaction
from acidsql.errors import (
    AcidError,
    NoSuchTransaction,
    TransactionAborted,
    TransactionError,
)
from acidsql.format.data_files import DirectoryGone
from acidsql.interrupts import Deferred
from acidsql.metastore.model import LockComponent
from acidsql.plan.failures import own_failures
from acidsql.settings import READ_LEASE, SNAPSHOT_RETRIES

logger = logging.getLogger(__name__)
T = TypeVar("T")


class SessionTransaction(OpenTransaction):
    """START TRANSACTION … COMMIT. Statements of several threads follow one another.

    A statement that fails leaves nothing, and the transaction goes on. Where the transaction itself is over (it was in
    conflict with another one, waited for one that waits for it, timed out, was aborted, or what a statement has written
    cannot be removed), every further statement fails until it is rolled back.

    Attributes:
        is_read_only: Whether statements that write are refused.
        is_implicit: Whether no statement began it (SET AUTOCOMMIT FALSE).
    """

    def __init__(self, env: Environment, *, is_read_only: bool = False, is_implicit: bool = False) -> None:
        self._env = env
        self.is_read_only, self.is_implicit = is_read_only, is_implicit
        self._held = HeldTransactions(env, self)
        self._lock = threading.RLock()
        self._txn: WriteTransaction | None = None
        self._reader: _Reader | None = None
        self._has_run = False
        """Whether a statement has seen the snapshot, or written."""
        self._is_running = False
        self._unanswered: dict[int, Savepoint] = {}
        """By thread, where its statement began that has written and has not been answered yet."""
        self._writer = 0
        """The thread that has written last."""
        self._over: TransactionError | None = None
        """Why it was ended before its COMMIT or ROLLBACK."""
        self._is_finished = False
        """Whether COMMIT or ROLLBACK has come: what another thread has still begun in it must not go on without it."""

    @property
    def deletes_what_it_replaces(self) -> bool:
        return True

    # --- statements --------------------------------------------------------------------------------------------------

    def write(self, run: Callable[[WriteTransaction], T]) -> T:
        """Run a statement that writes.

        Raises:
            TransactionError: When the transaction is READ ONLY, or over.
            WriteConflict: When another transaction has changed the same rows since the snapshot.
            Deadlock: When another one waits for this one's locks, and this one for the other's.
        """
        if self.is_read_only:
            raise TransactionError("The transaction is READ ONLY", sqlstate="25006", hint="ROLLBACK or COMMIT ends it.")
        return self._statement(run)

    def read(self, read: Callable[[Pin], T]) -> T:
        """Run a statement that reads. Raises: TransactionError when the transaction is over."""

        def over(txn: WriteTransaction) -> T:
            assert self._reader is not None
            return read(_Pin(txn, self._env, self._reader))

        return self._statement(over)

    def forget_unanswered(self) -> None:
        """A statement of this thread begins: the one before it has been answered."""
        with self._lock:
            self._unanswered.pop(threading.get_ident(), None)

    def take_back(self, error: BaseException) -> None:
        """Undo the statement of this thread that has run and was not answered: who is interrupted would run it again.

        Where another thread has written meanwhile, the transaction is over; and where it has overwritten an insert-only
        table: another base would get the same name, and frames that others have made would read it.
        """
        thread = threading.get_ident()
        with self._lock:
            point, txn = self._unanswered.pop(thread, None), self._txn
            if point is None or txn is None:
                return
            if self._writer != thread:
                self._end(TransactionError(f"A statement that others have written after could not be undone: {error}"))
            elif txn.has_overwritten_since(point):
                self._end(TransactionError(f"A statement that has overwritten rows was not answered: {error}"))
            else:
                self._undone(txn, point, error)

    def _statement(self, run: Callable[[WriteTransaction], T]) -> T:
        with self._lock:
            if self._is_running and self._txn is not None:  # a part of the statement that runs
                return run(self._txn)
            self._is_running = True
            try:
                return self._whole(run)
            finally:
                self._is_running = False

    def _whole(self, run: Callable[[WriteTransaction], T]) -> T:
        """A statement, and once more where it has to start over."""
        attempt = 0
        held: Sequence[LockComponent] = ()
        added_in = Counter[str]()
        while True:
            self._require_usable()
            txn = self._opened()
            point = txn.savepoint()
            try:
                with own_failures(), self._env.metastore.on_behalf_of(txn.id):
                    txn.locks.added_in = added_in
                    txn.locks.wait_again(held)
                    made = run(txn)
                # an interrupt from here on is answered below, or finds what is to be undone
                if len(txn.stagings) > point.stagings:
                    self._writer = threading.get_ident()
                    self._unanswered.setdefault(self._writer, point)
                self._has_run = True
            except BaseException as e:
                attempt += 1
                if not self._is_run_again(txn, point, e, attempt):
                    raise
                # one that was given up for a new one: else others could change the table meanwhile, each time
                held = txn.locks.of_next_attempt() if self._txn is None and isinstance(e, SnapshotOutdated) else ()
                pause_before(attempt)
                continue
            return made

    def _opened(self) -> WriteTransaction:
        """The transaction, opened by the first statement; before it that of the frames that are read in it."""
        if self._txn is None:
            self._reader = _Reader(self._env, self)
            opened: list[WriteTransaction] = []
            try:
                self._held.open(1, opened, for_several_statements=True)
            finally:
                self._txn = opened[0] if opened else None
                if self._txn is None:
                    self._reader.let_go()
            assert self._txn is not None
        return self._txn

    def _is_run_again(self, txn: WriteTransaction, point: Savepoint, error: BaseException, attempt: int) -> bool:
        """Undo a statement that has failed; whether it is to be run again.

        Raises:
            TransactionError: When the transaction is over, and the error does not say so.
        """
        starts_over = isinstance(error, StartOver | DirectoryGone)
        if starts_over and not self._has_run and attempt <= self._env.settings.value(SNAPSHOT_RETRIES):
            self._give_up(error)  # nothing was seen: the next one has another snapshot
            return True
        ended = end_of(self._env, txn.id, error)
        if ended is not None:
            self._end(ended)
            raise ended from error
        if isinstance(error, TransactionAborted | NoSuchTransaction):
            self._end(error)
            return False
        if not self._undone(txn, point, error):
            return False
        if isinstance(error, SnapshotOutdated):
            conflict = error.as_conflict()
            self._end(conflict)
            raise conflict from error
        if isinstance(error, DefinitionChanged) and self._has_run:
            error.hint = "COMMIT or ROLLBACK before it: this transaction's snapshot is older than the change."
            # the snapshot stays, and the change with it; it may have come while names were looked up
            return attempt == 1
        return starts_over and attempt <= self._env.settings.value(SNAPSHOT_RETRIES)

    def _undone(self, txn: WriteTransaction, point: Savepoint, error: BaseException) -> bool:
        """Remove what a statement has written; where that is not possible, or not known, the transaction is ended."""
        gone = False
        try:
            gone = txn.undo(point)
        finally:
            if not gone:
                self._end(TransactionError(f"What a statement had written could not be removed: {error}"))
        return gone

    # --- end ---------------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit it.

        Raises:
            WriteConflict: When another transaction has changed the same rows first (``hive.txn.xlock.write=false``).
            TransactionError: When the transaction is over: nothing of it is there. And in a process that was forked
                from the transaction's.
        """
        self._held.require_ours()
        with self._lock:
            self._require_usable(is_end=True)
            self._is_finished = True
            txn = self._txn
            if txn is None:
                return
            try:
                with own_failures(), self._env.metastore.on_behalf_of(txn.id):
                    txn.commit()
            except BaseException as e:
                ended = self._give_up(e)
                if isinstance(e, SnapshotOutdated):
                    ended = e.as_conflict(is_over=True)
                self._over = ended or TransactionError(f"The commit failed: {e}")
                if ended is not None:
                    raise ended from e
                raise
            self._held.ended(txn)
            self._forget()
        txn.committed()

    def roll_back(self) -> None:
        """Undo all of it; nothing in a process that was forked from the transaction's."""
        if not self._env.is_of_this_process:
            return
        with self._lock:
            self._is_finished = True
            if self._txn is not None:
                self._give_up(AcidError("rolled back"))
            self._over = None

    def _require_usable(self, *, is_end: bool = False) -> None:
        if self._is_finished:
            raise TransactionError(
                "The transaction was ended by another thread before this statement of it began", hint="Run it again."
            )
        if self._over is not None:
            hint = "Run it again." if is_end else "ROLLBACK ends it."
            problem = TransactionError(
                f"The transaction is over, and nothing of it is kept: {self._over.message}", hint=hint
            )
            raise problem from self._over

    def _end(self, reason: TransactionError) -> None:
        """Abort it; what comes next fails."""
        self._over = reason
        self._give_up(reason)

    def _give_up(self, error: BaseException) -> TransactionError | None:
        """Abort it in the store; how it was ended by others before, where it was."""
        txn = self._txn
        if txn is None:
            return None
        try:
            return self._held.roll_back(txn, error)
        finally:
            self._forget()

    def _forget(self) -> None:
        if self._reader is not None:
            self._reader.let_go()
        self._txn = self._reader = None
        self._has_run = False
        self._unanswered.clear()


class _Reader:
    """A reader's transaction for the frames of all statements: it is older than their snapshot, and lasts as long as
    one of them."""

    def __init__(self, env: Environment, transaction: SessionTransaction) -> None:
        """It is let go when the transaction is garbage."""
        self._heartbeats = env.heartbeats
        self._lease = env.settings.value(READ_LEASE)
        self._files: list[HeldFiles] = []
        self._holders: list[None] = [None]
        """One for each frame, and one for the transaction; each step with it is one of the interpreter's own."""
        with Deferred():
            self.id = open_reader(env)
            self._heartbeats.pin(self.id, self._lease, self._are_read)
            self._transaction = weakref.finalize(transaction, self._dropped)

    def _are_read(self) -> bool:
        return any(files.are_read() for files in self._files)

    def hold(self, frame: DataFrame, held: HeldFiles) -> None:
        """Last as long as a frame."""
        with Deferred():
            self._files.append(held)
            self._holders.append(None)
            self._heartbeats.pin(self.id, self._lease, self._are_read)
            weakref.finalize(frame, self._dropped)

    def _dropped(self) -> None:
        """Called by the garbage collector, which may interrupt anything: it takes no lock."""
        self._holders.pop()
        if not self._holders:
            self._heartbeats.release(self.id)

    def let_go(self) -> None:
        """The transaction has ended: last as long as its frames only."""
        self._transaction()
        self._heartbeats.end_released()


class _Pin(TransactionPin):
    """The snapshot of the transaction for one statement; its frames may outlive the transaction."""

    def __init__(self, txn: WriteTransaction, env: Environment, reader: _Reader) -> None:
        super().__init__(txn, env)
        self._reader = reader

    def hold(self, frame: DataFrame, held: HeldFiles) -> DataFrame:
        self._reader.hold(super().hold(frame, held), held)
        return frame
