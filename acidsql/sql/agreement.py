"""Whether sqlglot finds the same tables in a text: a second opinion where a wrong scope would give wrong columns."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from acidsql.sql.query import Relation
from acidsql.sql.reading import parse_quietly
from acidsql.sql.statements import Span


def agrees(span: Span, relations: Iterable[Relation], *, is_expression: bool) -> bool:
    """Whether sqlglot's tree has a table at each of the places, and at no other.

    ``TABLE t`` is read as ``SELECT * FROM t`` for it: sqlglot takes TABLE for a column. Time travel is left out, since
    sqlglot does not know all words for it.
    """
    text, places = _simplified(span, list(relations))
    head = "SELECT 1 WHERE " if is_expression else ""
    tree = parse_quietly(head + text)
    if tree is None:
        return False
    return {end - len(head) for end in _table_ends(tree)} == places


def _simplified(span: Span, relations: list[Relation]) -> tuple[str, set[int]]:
    """The text for sqlglot, and the last characters of the tables' names in it."""
    made: list[str] = []
    places: set[int] = set()
    at, length = span.start, 0
    for relation in sorted(relations, key=lambda r: r.name.span.start):
        if relation.body == "query":
            made.append(span.source[at : relation.body_start] + "SELECT * FROM")
            length += relation.body_start - at + len("SELECT * FROM")
            at = relation.body_start + len("TABLE")
        made.append(span.source[at : relation.name.span.end])
        length += relation.name.span.end - at
        at = relation.name.span.end if relation.travel is None else relation.travel.end
        places.add(length - 1)
    made.append(span.source[at : span.end])
    return "".join(made), places


def _table_ends(tree: exp.Expression) -> Iterable[int]:
    for table in tree.find_all(exp.Table):
        name = table.this
        if isinstance(name, exp.Identifier) and table.find_ancestor(exp.Hint) is None:
            yield int(name.meta.get("end", -1))
