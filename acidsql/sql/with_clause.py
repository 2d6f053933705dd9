"""A WITH clause that stands before a statement, and the query inside it that it is meant for."""

from __future__ import annotations

from acidsql.sql.statements import Span
from acidsql.sql.tokens import tokenize


def whole_query(with_clause: Span | None, *pieces: Span) -> Span:
    """One query out of a WITH clause and the pieces that follow it, each on a line of its own.

    ``WITH a AS (…) INSERT INTO t WITH b AS (…) SELECT …`` has two WITH clauses. Its query then goes in parentheses
    behind the first, which is what Spark makes of it: the inner clause sees the outer one's names, hides those that are
    its own too, and RECURSIVE stays with the clause that has it.

    Args:
        with_clause: ``WITH …``, None where the statement has none.
        pieces: The texts of the query, in their order: of ``FROM s INSERT INTO t SELECT a`` they are ``FROM s`` and
            ``SELECT a``.

    Returns:
        The user's own span where there is one piece and nothing before it; else a span that is all of a new text.
    """
    if with_clause is None and len(pieces) == 1:
        return pieces[0]
    body = "\n".join(piece.text for piece in pieces)
    if with_clause is not None:
        has_own = tokenize(body)[0].word == "WITH"
        body = f"{with_clause.text}\n" + (f"({body}\n)" if has_own else body)
    return Span(body, 0, len(body))
