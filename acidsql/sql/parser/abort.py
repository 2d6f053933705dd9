"""ABORT TRANSACTIONS and ABORT COMPACTIONS."""

from __future__ import annotations

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.statements import AbortCompactions, AbortTransactions, Number, Statement


def abort(cursor: Cursor) -> Statement:
    """``ABORT TRANSACTIONS id …`` and ``ABORT COMPACTIONS id …``: ids with nothing between them, as in Hive."""
    cursor.expect("ABORT")
    what = cursor.expect_one_of("TRANSACTIONS", "COMPACTIONS")
    ids: list[Number] = []
    while not ids or not cursor.at_end():
        ids.append(cursor.expect_number(f"the id of a {what.lower()[:-1]}"))
    kind = AbortTransactions if what == "TRANSACTIONS" else AbortCompactions
    return kind(cursor.statement_span(), tuple(ids))
