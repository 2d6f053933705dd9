"""What a statement finds before it has its locks, and finds again once it has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from acidsql.commands.environment import Environment
from acidsql.commands.transaction.write_transaction import WriteTransaction, write_transaction
from acidsql.errors import TransactionError
from acidsql.metastore.model import LockComponent
from acidsql.settings import SNAPSHOT_RETRIES

T = TypeVar("T")


class _Changed(Exception):
    """What was locked is not what is to be locked by now."""


@contextmanager
def locked(
    env: Environment, found: T, find: Callable[[], T], locks: Callable[[T], Sequence[LockComponent]]
) -> Iterator[tuple[WriteTransaction, T]]:
    """Run a block in a transaction that has locked what a statement means, which is looked up again under the locks.

    Where that is something else than before, the locks may be the wrong ones: the transaction is aborted, and another
    one asks for those of what was found.

    Args:
        env: The environment.
        found: What the statement means, as it was found without locks.
        find: Finds it.
        locks: The locks of what was found.

    Raises:
        TransactionError: When it was something else each time.
        LockTimeout: When the locks were not granted in time.
    """
    for _ in range(env.settings.value(SNAPSHOT_RETRIES) + 1):
        now = found
        try:
            with write_transaction(env, locks(found)) as txn:
                now = find()
                if now != found:
                    raise _Changed("what it means was changed while it waited for its locks")
                yield txn, now
                return
        except _Changed:
            found = now
    raise TransactionError(
        "What the statement means was changed each time while it waited for its locks", hint="Run it again."
    )
