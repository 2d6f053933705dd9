"""Which conditions of a WHERE clause can prune partitions: found in the text, checked node by node.

A wrong answer here would lose rows. So only what is known to be safe counts: comparisons of columns with constants,
and AND, OR, NOT over them.
"""

from __future__ import annotations

from collections.abc import Set

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from acidsql.sql.statements import Span
from acidsql.sql.tokens import Kind, Token, tokenize

_SAFE = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Paren,
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.NullSafeEQ,
    exp.In,
    exp.Between,
    exp.Is,
    exp.Like,
    exp.Null,
    exp.Boolean,
    exp.Literal,
    exp.Neg,
    exp.Column,
    exp.Identifier,
    exp.Placeholder,
    exp.Cast,
    exp.DataType,
)

_ENDS_WHERE = frozenset(
    """GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW UNION INTERSECT EXCEPT MINUS QUALIFY LATERAL |> ;
    SELECT INSERT""".split()
)


def where_after(span: Span, offset: int) -> Span | None:
    """The condition of the WHERE clause of the SELECT in whose FROM clause ``offset`` lies; None where it has none."""
    tokens = tokenize(span.source, offset, span.end)
    depth = 0
    for i, token in enumerate(tokens):
        depth += _step(token)
        if depth < 0 or token.kind is Kind.END:
            return None
        if depth == 0 and token.word == "WHERE":
            return _condition(span, tokens, i + 1)
        if depth == 0 and token.word in _ENDS_WHERE - {"LATERAL", "SELECT"}:
            return None
    return None


def _step(token: Token) -> int:
    return (token.word in ("(", "[")) - (token.word in (")", "]"))


def _condition(span: Span, tokens: list[Token], first: int) -> Span | None:
    depth = 0
    last = first
    for token in tokens[first:]:
        depth += _step(token)
        if depth < 0 or token.kind is Kind.END or (depth == 0 and token.word in _ENDS_WHERE):
            break
        last += 1
    return Span(span.source, tokens[first].start, tokens[last - 1].end) if last > first else None


def split_conjuncts(where: Span, columns: Set[str], qualifiers: tuple[str, ...], *, unqualified: bool) -> tuple[Span, ...]:
    """The conjuncts of a condition that are safe to prune with.

    Args:
        where: The condition.
        columns: The columns that may stand in them, in lower case.
        qualifiers: The names that may qualify such a column, in lower case.
        unqualified: Whether a column without a qualifier is surely of that table.
    """
    return tuple(s for s in _split(where) if _is_safe(s, columns, qualifiers, unqualified))


def _split(where: Span) -> list[Span]:
    """The parts between the ANDs at the top; the whole where an OR stands there too, for it binds less."""
    tokens = tokenize(where.source, where.start, where.end)
    cuts: list[Token] = []
    depth = cases = between = 0
    for token in tokens:
        depth += _step(token)
        cases += (token.word == "CASE") - (token.word == "END" and cases > 0)
        if depth or cases:
            continue
        if token.word == "OR":
            return [where]
        if token.word == "BETWEEN":
            between += 1
        elif token.word == "AND" and between:
            between -= 1
        elif token.word == "AND":
            cuts.append(token)
    starts = [where.start, *(c.end for c in cuts)]
    ends = [*(c.start for c in cuts), where.end]
    return [Span(where.source, a, b) for a, b in zip(starts, ends, strict=True)]


def _is_safe(part: Span, columns: Set[str], qualifiers: tuple[str, ...], unqualified: bool) -> bool:
    try:
        tree = sqlglot.parse_one(f"SELECT * FROM t WHERE {part.text}\n", read="spark").args["where"].this
    except (SqlglotError, RecursionError, KeyError, AttributeError):
        return False
    nodes = list(tree.walk())
    if not all(type(n) in _SAFE or isinstance(n, _SAFE) for n in nodes):
        return False
    found = [n for n in nodes if isinstance(n, exp.Column)]
    return bool(found) and all(_is_own(c, columns, qualifiers, unqualified) for c in found)


def _is_own(column: exp.Column, columns: Set[str], qualifiers: tuple[str, ...], unqualified: bool) -> bool:
    if column.args.get("db") is not None or column.name.lower() not in columns:
        return False
    return column.table.lower() in qualifiers if column.table else unqualified
