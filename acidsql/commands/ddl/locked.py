"""Runs statements whose target is looked up before locking, and again under the locks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StartOver
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.metastore.model import LockComponent

T = TypeVar("T")


def run_locked(
    env: Environment,
    target: T,
    find: Callable[[], T],
    locks: Callable[[T], Sequence[LockComponent]],
    run: Callable[[WriteTransaction, T], None],
) -> None:
    """Run a statement in a transaction that has locked its target, which is looked up again under the locks.

    If the target has changed, the locks may be the wrong ones: the transaction is aborted, and a new one takes the
    locks of the new target.

    Args:
        env: The session.
        target: The target as looked up without locks.
        find: Looks up the target.
        locks: The locks of a target.
        run: The statement itself.

    Raises:
        TransactionError: When it changed each time. Others as :func:`in_transaction`.
    """
    wanted = target

    def attempt(txn: WriteTransaction) -> None:
        nonlocal wanted
        txn.lock(locks(wanted))
        now = find()
        if now != wanted:
            wanted = now
            raise StartOver(
                "The target of the statement was changed while it waited for its locks", hint="Run it again."
            )
        run(txn, now)

    in_transaction(env, attempt)
