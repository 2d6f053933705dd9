"""A WITH clause that stands before a statement, and the query inside it that it is meant for."""

from __future__ import annotations

from acidsql.sql.parser.cursor import Cursor
from acidsql.sql.references import References, analyse_query
from acidsql.sql.statements import Span
from acidsql.sql.tokens import tokenize

_NO_QUERY = "\nSELECT 1"
"""Makes a WITH clause a query."""


def named_queries(with_clause: Span | None) -> References | None:
    """The tables that the queries of a WITH clause name; None where there is none. See :func:`spliced_clause`."""
    if with_clause is None:
        return None
    text = f"{with_clause.text}{_NO_QUERY}"
    return analyse_query(Span(text, 0, len(text)))


def spliced_clause(text: str) -> str:
    """The WITH clause again, from the text of :func:`named_queries` with other names in it."""
    return text.removesuffix(_NO_QUERY)


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


def cte_names(with_clause: Span | None) -> tuple[str, ...]:
    """The names that a WITH clause gives to its queries, in lower case; none where there is no clause.

    An expression of the statement that stands outside of the query (a condition of MERGE) does not see them where it is
    run alone: see the argument ``ctes`` of :func:`~acidsql.sql.references.analyse_expression`.
    """
    if with_clause is None:
        return ()
    cursor = Cursor(with_clause.source, tokenize(with_clause.source, with_clause.start, with_clause.end))
    cursor.expect("WITH")
    cursor.accept("RECURSIVE")
    names: list[str] = []
    while not names or cursor.accept(","):
        names.append(cursor.expect_name("a name for the query").text.lower())
        while not cursor.at_end() and cursor.word != ",":
            if cursor.word == "(":
                cursor.skip_brackets()
            else:
                cursor.advance()
    return tuple(names)
