"""ABORT TRANSACTIONS and ABORT COMPACTIONS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.errors import NoSuchTransaction
from acidsql.metastore.model import TxnState
from acidsql.sql.statements import AbortCompactions, AbortTransactions

NO_SUCH_TRANSACTION = 10262


def abort_transactions(env: Environment, statement: AbortTransactions, parameters: Mapping[str, Any]) -> DataFrame:
    """ABORT TRANSACTIONS: aborts all of them, or none with an error that names the first one that is not open.

    Hive returns nothing, and ignores ids that are not open.
    """
    states = {t.id: t.state for t in env.metastore.show_txns()}
    for id in statement.ids:
        state = states.get(id.value, TxnState.COMMITTED)
        if state is not TxnState.OPEN:
            known = " (it is aborted)" if state is TxnState.ABORTED else ""
            error = NoSuchTransaction(
                f"Transaction {id.value} is not open{known}",
                code=NO_SUCH_TRANSACTION,
                hint="SHOW TRANSACTIONS lists open transactions.",
            )
            raise with_location(id.span, error)
    wanted = list(dict.fromkeys(id.value for id in statement.ids))
    done = env.metastore.abort_txns(wanted, reason=f"ABORT TRANSACTIONS by {env.user}@{env.host}")
    for id in statement.ids:
        if id.value not in done:
            message = f"Transaction {id.value} ended before it could be aborted"
            raise with_location(id.span, NoSuchTransaction(message, code=NO_SUCH_TRANSACTION))
    return env.nothing()


def abort_compactions(env: Environment, statement: AbortCompactions, parameters: Mapping[str, Any]) -> DataFrame:
    """ABORT COMPACTIONS: aborts requests that no worker has taken yet; returns the store's message for each id.

    Hive's shell returns nothing; the messages are those of its metastore.
    """
    wanted = list(dict.fromkeys(id.value for id in statement.ids))
    words = env.metastore.abort_compactions(wanted)
    return env.strings(["compactionid", "message"], [[str(id), words.get(id)] for id in wanted])
