"""What a statement finds before it has its locks, and finds again once it has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from acidsql.commands.environment import Environment
from acidsql.commands.resolve.context import StartOver
from acidsql.commands.transaction.write_transaction import WriteTransaction, in_transaction
from acidsql.metastore.model import LockComponent

T = TypeVar("T")


def run_locked(
    env: Environment,
    found: T,
    find: Callable[[], T],
    locks: Callable[[T], Sequence[LockComponent]],
    run: Callable[[WriteTransaction, T], None],
) -> None:
    """Run a statement in a transaction that has locked what it means, which is looked up again under the locks.

    Where that is something else than before, the locks may be the wrong ones: the transaction is aborted, and another
    one asks for those of what was found.

    Args:
        env: The session.
        found: What the statement means, as it was found without locks.
        find: Finds it.
        locks: The locks of what was found.
        run: The statement itself.

    Raises:
        TransactionError: When it was something else each time. Others as :func:`in_transaction`.
    """
    wanted = found

    def attempt(txn: WriteTransaction) -> None:
        nonlocal wanted
        txn.lock(locks(wanted))
        now = find()
        if now != wanted:
            wanted = now
            raise StartOver("What the statement means was changed while it waited for its locks", hint="Run it again.")
        run(txn, now)

    in_transaction(env, attempt)
