"""Random MERGE statements."""

from __future__ import annotations

from tests.programs.steps import Drawing, Step
from tests.programs.tables import Column, Shape, source_columns
from tests.programs.text import Piece, Sql, fill, join, no_hive, piece


def merge(draw: Drawing) -> Step:
    """A MERGE; where a row of the table has several partners in the source and could be changed, it must fail."""
    star = not draw.hive and draw.maybe(0.2)
    source = _source(draw, star)
    on = _on_all(draw.shape) if star else _on(draw)
    clauses = _stars(draw) if star else _clauses(draw)
    text = fill("MERGE INTO {t} t USING <s> s ON <on> <c>", s=source, on=on, c=join(" ", clauses))
    changes_pairs = any("WHEN MATCHED" in c.acid for c in clauses)
    pairs = (
        f"SELECT 1 FROM {{t}} t JOIN {source.oracle} s ON {on.oracle} GROUP BY t.rowid HAVING count(*) > 1"
        if changes_pairs
        else ""
    )
    return Step("merge", text, draw.shape, (f"{text.oracle} RETURNING merge_action",), error=pairs)


# --- USING and ON ----------------------------------------------------------------------------------------------------


def _source(draw: Drawing, star: bool) -> Sql:
    """Rows as a query, or the source table. For a star they have all columns of the table."""
    columns = draw.shape.fields if star else source_columns(draw.shape)
    if not star and draw.maybe(0.25):
        return piece("{s}")
    count = draw.chance.randrange(1 if draw.hive else 0, 6)
    if not count:
        return fill("(SELECT <r> WHERE 1 = 0)", r=_row(draw, columns))
    return fill("(SELECT <r>)", r=join(" UNION ALL SELECT ", [_row(draw, columns) for _ in range(count)]))


def _row(draw: Drawing, columns: tuple[Column, ...]) -> Sql:
    """Values by the names of their columns; the source's id, v and keys are called so whatever the table calls them."""
    named = []
    for number, column in enumerate(columns):
        like = draw.shape.id if number == 0 else column
        value = draw.value(like).text if number != 0 else draw.value(draw.shape.id).text
        named.append(fill(f"<v> AS {column.name}", v=value))
    return join(", ", named)


def _on(draw: Drawing) -> Sql:
    shape = draw.shape
    own, v = f"t.{shape.id.name}", f"t.{shape.v.name}"
    k = shape.column(shape.k)
    by_id, by_k = f"{own} = s.id", f"t.{k.name} = s.k" if _same_k(shape) else "false"
    texts: list[Piece] = [by_id, by_id, by_id, by_id, f"{by_id} AND {by_k}"]
    if not draw.hive:
        texts += [
            fill(f"(s.id = {own}) AND t.{k.name} = <a>", a=draw.key_value(k)),
            f"{own} = s.id + 1",
            f"{v} = s.v",
            f"{own} = s.id AND s.v IS NOT NULL",
            by_k,
            f"{own} > s.id + 3",
            f"{own} IS NOT DISTINCT FROM s.id",
            "false",
        ]
    return piece(draw.one(texts))


def _same_k(shape: Shape) -> bool:
    """Whether the source's k may be compared with the table's: a data column may have changed its type."""
    return shape.column(shape.k).type == source_columns(shape)[2].type


def _on_all(shape: Shape) -> Sql:
    """With stars: partners agree on what cannot be updated."""
    fixed = [*(k.name for k in shape.keys), *shape.buckets]
    same = [f"t.{name} IS NOT DISTINCT FROM s.{name}" for name in fixed if name != shape.id.name]
    return piece(" AND ".join([f"t.{shape.id.name} = s.{shape.id.name}", *same]))


# --- WHEN ------------------------------------------------------------------------------------------------------------


def _stars(draw: Drawing) -> list[Sql]:
    """The oracle is told each column: partners have the same values in those that cannot be updated."""
    columns = [c.name for c in draw.shape.fields]
    sets = ", ".join(f"{c.name} = s.{c.name}" for c in draw.shape.settable)
    values = ", ".join(f"s.{c}" for c in columns)
    made = [
        Sql("WHEN MATCHED THEN UPDATE SET *", None, f"WHEN MATCHED THEN UPDATE SET {sets}"),
        Sql("WHEN NOT MATCHED THEN INSERT *", None, f"WHEN NOT MATCHED THEN INSERT VALUES ({values})"),
    ]
    if draw.maybe(0.3):
        condition = draw.condition("t.", subqueries=False)
        made.append(no_hive(fill("WHEN NOT MATCHED BY SOURCE AND (<c>) THEN DELETE", c=condition)))
    return made


def _clauses(draw: Drawing) -> list[Sql]:
    if draw.hive:
        return _hive_clauses(draw)
    made = _of_kind(draw, "MATCHED", draw.one([0, 1, 1, 2, 3]))
    made += _of_kind(draw, draw.one(["NOT MATCHED", "NOT MATCHED BY TARGET"]), draw.one([0, 1, 1, 2]))
    made += _of_kind(draw, "NOT MATCHED BY SOURCE", draw.one([0, 0, 0, 1, 2]))
    return made or _of_kind(draw, "MATCHED", 1)


def _of_kind(draw: Drawing, match: str, count: int) -> list[Sql]:
    """Clauses, of which only the last may be without a condition."""
    made = []
    for left in range(count, 0, -1):
        guarded = left > 1 or draw.maybe()
        condition = fill(" AND (<c>)", c=_condition(draw, match)) if guarded else piece("")
        made.append(fill(f"WHEN {match}<c> THEN <a>", c=condition, a=_action(draw, match)))
    return made


def _condition(draw: Drawing, match: str) -> Sql:
    of_source = [piece("s.id > 2"), piece("s.v <> 'a'"), piece("s.k IS NOT NULL")]
    if match in ("NOT MATCHED", "NOT MATCHED BY TARGET"):
        return draw.one(of_source)
    own = draw.condition("t.", subqueries=False)
    return own if match.endswith("SOURCE") else draw.one([own, own, *of_source])


def _action(draw: Drawing, match: str) -> Sql:
    if match in ("NOT MATCHED", "NOT MATCHED BY TARGET"):
        return _insert(draw)
    if draw.maybe(0.3):
        return piece("DELETE")
    source = "" if match.endswith("SOURCE") else "s"
    return fill("UPDATE SET <a>", a=_without_queries(draw, source))


def _without_queries(draw: Drawing, source: str) -> Sql:
    while "(SELECT" in (made := draw.assignments("t.", source)).acid:
        pass
    return made


def _insert(draw: Drawing) -> Sql:
    """INSERT of all columns, or of the keys and some others in another order."""
    columns = list(draw.shape.fields)
    named = ""
    if not draw.hive and draw.maybe():
        columns = [c for c in columns if c in draw.shape.keys or c is draw.shape.id or draw.maybe()]
        draw.chance.shuffle(columns)
        named = f"({', '.join(c.name for c in columns)}) "
    values = [draw.source_select(c) for c in columns]
    made = fill(f"INSERT {named}VALUES (<v>)", v=join(", ", values))
    return no_hive(made) if named else made


def _hive_clauses(draw: Drawing) -> list[Sql]:
    """Hive has one clause for each of UPDATE, DELETE and INSERT, and the first of the former two has a condition."""
    made = []
    update = fill("UPDATE SET <a>", a=draw.assignments("t.", "s"))
    kinds = draw.one([[update], [piece("DELETE")], [update, piece("DELETE")], [piece("DELETE"), update], []])
    for number, action in enumerate(kinds):
        guarded = number < len(kinds) - 1 or draw.maybe()
        condition = fill(" AND <c>", c=fill("(<c>)", c=_condition(draw, "MATCHED"))) if guarded else piece("")
        made.append(fill("WHEN MATCHED<c> THEN <a>", c=condition, a=action))
    if not made or draw.maybe(0.7):
        made.append(fill("WHEN NOT MATCHED THEN <a>", a=_insert(draw)))
    return made
