"""A WITH clause before a statement, combined with the query in the statement."""

from __future__ import annotations

from collections.abc import Sequence

from acidsql.sql.placed import blank
from acidsql.sql.statements import Span
from acidsql.sql.tokens import tokenize


def whole_query(with_clause: Span | None, *pieces: Span) -> Span:
    """One query from a WITH clause and the pieces that follow it.

    What stands between them in the statement becomes blanks, so that every piece keeps its place in it. A piece that is
    not of the user's text follows on a line of its own.

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
    if with_clause is None:
        return _joined(pieces)
    if tokenize(pieces[0].text)[0].word != "WITH":
        return _joined([with_clause, *pieces])
    whole = _joined([with_clause, *pieces], opening="(")
    return Span(f"{whole.source}\n)", whole.start, whole.end + 2)


def _joined(pieces: Sequence[Span], opening: str = "") -> Span:
    """One text of several; with ``opening`` between the first and the second."""
    whole = pieces[0]
    for piece in pieces[1:]:
        if piece.source == pieces[0].source and piece.start > whole.end:
            between = blank(piece.source[whole.end : piece.start])
        else:
            between = " \n"
        if opening:
            before, _, after = between.rpartition(" ")
            between = f"{before}{opening}{after}"
        text = f"{whole.source[: whole.end]}{between}{piece.text}"
        whole = Span(text, whole.start, len(text))
        opening = ""
    return whole
