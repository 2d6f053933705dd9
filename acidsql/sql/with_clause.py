"""A WITH clause before a statement, combined with the query in the statement."""

from __future__ import annotations

from acidsql.sql.statements import Span
from acidsql.sql.tokens import tokenize


def whole_query(with_clause: Span | None, *pieces: Span) -> Span:
    """One query from a WITH clause and the pieces that follow it, each on its own line.

    ``WITH a AS (…) INSERT INTO t WITH b AS (…) SELECT …`` has two WITH clauses. Its query is then put in parentheses
    after the first, as in Spark: the inner clause sees the outer one's names and shadows equal ones, and RECURSIVE
    applies only to its own clause.

    Args:
        with_clause: ``WITH …``, or None.
        pieces: The texts of the query, in their order: of ``FROM s INSERT INTO t SELECT a`` they are ``FROM s`` and
            ``SELECT a``.

    Returns:
        The user's span if there is a single piece and no WITH clause; else a span over a new text.
    """
    if with_clause is None and len(pieces) == 1:
        return pieces[0]
    body = "\n".join(piece.text for piece in pieces)
    if with_clause is not None:
        has_own = tokenize(body)[0].word == "WITH"
        body = f"{with_clause.text}\n" + (f"({body}\n)" if has_own else body)
    return Span(body, 0, len(body))
