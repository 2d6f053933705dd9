"""Transactions that stay open from one call of the user's to the next."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acidsql.commands.environment import Environment
from acidsql.commands.transaction.run import begin, roll_back
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, TransactionError
from acidsql.interrupts import Deferred
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.plan.failures import own_failures


class HeldTransactions:
    """Transactions of an object of the user's, kept alive by heartbeats until they end; or the object is garbage: then
    they end soon, without rows. A process that was forked meanwhile has a copy of the object, and cannot end them."""

    def __init__(self, env: Environment, owner: object) -> None:
        self._env = env
        self._held: set[int] = set()
        weakref.finalize(owner, _let_go, env.heartbeats, self._held)

    def require_ours(self) -> None:
        """Raises: TransactionError in another process."""
        if not self._env.is_of_this_process:
            raise TransactionError("The transaction belongs to the process that this one was forked from")

    def open(self, count: int, into: list[WriteTransaction], *, for_several_statements: bool = False) -> None:
        """Open transactions, and append them to a list, also where this is interrupted."""
        with Deferred():
            for txn in begin(self._env, count, for_several_statements=for_several_statements):
                self._held.add(txn.id)
                self._env.heartbeats.hold(txn.id)
                into.append(txn)

    def ended(self, txn: WriteTransaction) -> None:
        """Send no more heartbeats for a transaction."""
        self._env.heartbeats.let_go(txn.id)
        self._held.discard(txn.id)

    def roll_back(self, txn: WriteTransaction, error: BaseException) -> TransactionError | None:
        """Abort a transaction (:func:`acidsql.commands.transaction.run.roll_back`)."""
        if not self._env.is_of_this_process:
            return None
        with Deferred():
            try:
                return roll_back(txn, error)
            finally:
                self.ended(txn)

    @contextmanager
    def step(
        self,
        txn: WriteTransaction,
        roll_back: Callable[[WriteTransaction, BaseException], TransactionError | None],
        *,
        lets: type[AcidError] | None = None,
    ) -> Iterator[None]:
        """A step of a transaction: an error in it ends the transaction, but for those of the kind that it lets go.

        Args:
            txn: The transaction.
            roll_back: Aborts it, told why; returns how others had ended it before.
            lets: Errors that do not.
        """
        self.require_ours()
        try:
            with own_failures(), self._env.metastore.on_behalf_of(txn.id):
                yield
        except BaseException as e:
            if lets is not None and isinstance(e, lets):
                raise
            ended = roll_back(txn, e)
            if ended is not None:
                raise ended from e
            raise


def _let_go(heartbeats: Heartbeats, held: set[int]) -> None:
    """Called by the garbage collector, which may interrupt anything: it takes no lock."""
    for txn_id in held:
        heartbeats.release(txn_id)
