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
    """ABORT TRANSACTIONS: all of them, or an error that names the first one that is not open and none is aborted.

    Hive answers nothing, and passes over ids that are not open in silence.
    """
    states = {t.id: t.state for t in env.metastore.show_txns()}
    for id in statement.ids:
        state = states.get(id.value, TxnState.COMMITTED)
        if state is not TxnState.OPEN:
            known = " (it is aborted)" if state is TxnState.ABORTED else ""
            error = NoSuchTransaction(
                f"Transaction {id.value} is not open{known}",
                code=NO_SUCH_TRANSACTION,
                hint="SHOW TRANSACTIONS lists them.",
            )
            raise with_location(id.span, error)
    wanted = list(dict.fromkeys(id.value for id in statement.ids))
    done = env.metastore.abort_txns(wanted, reason=f"ABORT TRANSACTIONS by {env.user}@{env.host}")
    for id in statement.ids:
        if id.value not in done:
            message = f"Transaction {id.value} ended by itself before it could be aborted"
            raise with_location(id.span, NoSuchTransaction(message, code=NO_SUCH_TRANSACTION))
    return env.nothing()


def abort_compactions(env: Environment, statement: AbortCompactions, parameters: Mapping[str, Any]) -> DataFrame:
    """ABORT COMPACTIONS: requests that no worker has taken yet; the store's word for each id.

    Hive answers nothing in its shell; the words are those that its metastore gives.
    """
    wanted = list(dict.fromkeys(id.value for id in statement.ids))
    words = env.metastore.abort_compactions(wanted)
    return env.strings(["compactionid", "message"], [[str(id), words.get(id)] for id in wanted])
