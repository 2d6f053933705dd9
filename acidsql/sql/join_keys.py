"""Which columns of two tables a join condition holds equal: what MERGE prunes its target by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sqlglot import exp

from acidsql.sql.conditions import split_conjuncts
from acidsql.sql.reading import parse_quietly
from acidsql.sql.statements import Span
from acidsql.sql.tokens import Token, tokenize


@dataclass(frozen=True)
class Side:
    """One of the two tables: the name that qualifies its columns, and their names, all in lower case."""

    name: str
    columns: AbstractSet[str]


def equal_columns(condition: Span, one: Side, other: Side) -> tuple[tuple[str, str], ...]:
    """Pairs of columns, of ``one`` and of ``other``, that a row of the join must hold equal, in lower case.

    They are the conjuncts ``a.x = b.y`` of the condition, in any order of their sides. A column without a qualifier
    counts where only one of the tables has it. A pair that is missed costs time; one too many would lose rows.
    """
    tokens = [t for t in tokenize(condition.source, condition.start, condition.end) if t.text]
    found = [_pair(condition.source, part, one, other) for part in _conjuncts(tokens)]
    return tuple(pair for pair in found if pair is not None)


def _conjuncts(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The pieces between ANDs, also inside of brackets around them."""
    while len(tokens) > 2 and tokens[0].word == "(" and _closes(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    parts = [tokens[first:last] for first, last in split_conjuncts(tokens) if first < last]
    if len(parts) == 1 and len(parts[0]) == len(tokens):
        yield tokens
        return
    for part in parts:
        yield from _conjuncts(part)


def _closes(tokens: Sequence[Token]) -> int:
    """Where the bracket that opens first is closed."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.word == "(") - (token.word == ")")
        if depth == 0:
            return i
    return -1


def _pair(source: str, tokens: Sequence[Token], one: Side, other: Side) -> tuple[str, str] | None:
    text = source[tokens[0].start : tokens[-1].end]
    select = parse_quietly(f"SELECT 1 WHERE {text}\n")
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    node = where.this if isinstance(where, exp.Where) else None
    if type(node) is not exp.EQ or type(node.left) is not exp.Column or type(node.right) is not exp.Column:
        return None
    owners = [_owner(side, one, other) for side in (node.left, node.right)]
    names = node.left.name.lower(), node.right.name.lower()
    if owners == [one, other]:
        return names
    return (names[1], names[0]) if owners == [other, one] else None


def _owner(column: exp.Column, one: Side, other: Side) -> Side | None:
    """The table that a column is of, where that is sure."""
    if column.args.get("db") or column.args.get("catalog") or one.name == other.name:
        return None
    name = column.name.lower()
    if column.table:
        owners = [s for s in (one, other) if s.name == column.table.lower() and name in s.columns]
    else:
        owners = [s for s in (one, other) if name in s.columns]
    return owners[0] if len(owners) == 1 else None
