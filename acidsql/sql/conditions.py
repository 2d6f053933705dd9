"""Which parts of a WHERE may be put upon one table alone: used for partition pruning.

A wrong answer here loses rows. So nothing is taken that is not known to be safe: the condition is cut at its ANDs, and
a piece counts only if sqlglot reads it as an expression of the kinds listed here, over the columns allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet

from sqlglot import exp

from acidsql.sql.reading import parse_quietly
from acidsql.sql.statements import Span
from acidsql.sql.tokens import Kind, Token

_SAFE: tuple[type[exp.Expression], ...] = (
    exp.Paren,
    exp.And,
    exp.Or,
    exp.Not,
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.Escape,
    exp.Null,
    exp.Boolean,
    exp.Literal,
    exp.Neg,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Column,
    exp.Identifier,
    exp.Mod,
    exp.Div,
    exp.Cast,
    exp.TryCast,
    exp.DataType,
    exp.DataTypeParam,
    exp.Placeholder,
    exp.Tuple,
    exp.Coalesce,
    exp.Lower,
    exp.Upper,
    exp.Substring,
    exp.Year,
    exp.Month,
    exp.Day,
    exp.TsOrDsToDate,
)
"""What a conjunct may be made of. Functions only where they are the same whenever and wherever they are evaluated."""


def split_conjuncts(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The pieces between the ANDs at the top of a condition; the whole where an OR stands there."""
    depth = cases = betweens = 0
    start = 0
    cuts: list[tuple[int, int]] = []
    for i, token in enumerate(tokens):
        word = token.word
        if word in ("(", "[", "{"):
            depth += 1
        elif word in (")", "]", "}"):
            depth -= 1
        elif depth or (i and tokens[i - 1].word == "."):
            continue
        elif word == "CASE":
            cases += 1
        elif word == "END":
            cases = max(0, cases - 1)
        elif cases:
            continue
        elif word == "BETWEEN":
            betweens += 1
        elif word == "AND" and betweens:
            betweens -= 1
        elif word == "AND":
            cuts.append((start, i))
            start = i + 1
        elif word in ("OR", "->"):
            yield 0, len(tokens)
            return
    yield from cuts
    yield start, len(tokens)


def safe_conjuncts(
    source: str, tokens: Sequence[Token], columns: AbstractSet[str], qualifiers: Collection[str], unqualified: bool
) -> Iterator[Span]:
    """The conjuncts of a condition that use nothing but the given columns, and are the same whenever evaluated.

    Args:
        source: The text that the tokens are of.
        tokens: The condition's.
        columns: Names of columns, in lower case.
        qualifiers: The names, in lower case, by one of which a column may be qualified.
        unqualified: Whether a column without a qualifier is sure to be of that table.
    """
    for first, last in split_conjuncts(tokens):
        if first == last:
            continue
        span = Span(source, tokens[first].start, tokens[last - 1].end)
        if _mentions(tokens[first:last], columns) and _is_safe(span.text, columns, qualifiers, unqualified):
            yield span


def _mentions(tokens: Sequence[Token], columns: AbstractSet[str]) -> bool:
    """Whether one of the columns may be there at all: most conditions end here, before sqlglot is asked."""
    return any(t.is_name and t.name.lower() in columns for t in tokens) and all(
        t.word != "?" for t in tokens if t.kind is Kind.SYMBOL
    )


def _is_safe(text: str, columns: AbstractSet[str], qualifiers: Collection[str], unqualified: bool) -> bool:
    select = parse_quietly(f"SELECT 1 WHERE (\n{text}\n)")
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    condition = where.this if isinstance(where, exp.Where) else None
    if not isinstance(condition, exp.Paren):
        return False
    found = False
    for node in condition.walk():
        if type(node) not in _SAFE:
            return False
        if isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest") or node.args.get("field")):
            return False
        if isinstance(node, exp.Column):
            found = True
            if not _is_allowed(node, columns, qualifiers, unqualified):
                return False
    return found


def _is_allowed(column: exp.Column, columns: AbstractSet[str], qualifiers: Collection[str], unqualified: bool) -> bool:
    if column.args.get("db") or column.args.get("catalog") or column.name.lower() not in columns:
        return False
    return column.table.lower() in qualifiers if column.table else unqualified
