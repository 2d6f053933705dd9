"""What the parser puts into the dataclasses of MERGE, and where it says that something is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.errors import ParseError
from acidsql.sql.parser import parse_statement
from acidsql.sql.statements import (
    Assignment,
    Default,
    Explain,
    Match,
    Merge,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    Span,
    WhenClause,
)


def parse(text: str) -> Merge:
    statement = parse_statement(text)
    assert isinstance(statement, Merge)
    assert statement.span.text == text
    return statement


def text_of(value: Span | Default | None) -> str | None:
    if value is None:
        return None
    return "DEFAULT" if isinstance(value, Default) else value.text


def set_to(assignments: tuple[Assignment, ...] | None) -> list[tuple[str, str | None]] | None:
    return None if assignments is None else [(a.column.text, text_of(a.value)) for a in assignments]


def the_clause(text: str) -> WhenClause:
    [clause] = parse(f"MERGE INTO hr.emp t USING src s ON t.id = s.id {text}").clauses
    assert clause.span.text == text
    return clause


# --- target and source -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "table", "alias"),
    [
        ("emp", "emp", None),
        ("hr.emp AS t", "hr.emp", "t"),
        ("`e m` `t t`", "`e m`", "t t"),
        ("using", "using", None),
        ("emp using", "emp", "using"),
    ],
)
def test_the_target(target: str, table: str, alias: str | None) -> None:
    found = parse(f"MERGE INTO {target} USING src ON a = b WHEN MATCHED THEN DELETE")
    assert (found.table.span.text, found.alias.text if found.alias else None) == (table, alias)


SOURCES: list[tuple[str, str | None, str | None, str | None, list[str] | None]] = [
    ("src", "src", None, None, None),
    ("hr.src AS s", "hr.src", None, "s", None),
    ("hr.src s (a, `b c`)", "hr.src", None, "s", ["a", "b c"]),
    ("values", "values", None, None, None),
    ("values v", "values", None, "v", None),
    ("values AS v", "values", None, "v", None),
    ("on", "on", None, None, None),
    ("(SELECT 1 AS id) s", None, "SELECT 1 AS id", "s", None),
    ("( /* c */ SELECT 1 /* d */ )", None, "SELECT 1", None, None),
    ("((SELECT 1) UNION (SELECT 2)) AS s (id)", None, "(SELECT 1) UNION (SELECT 2)", "s", ["id"]),
    ("(WITH c AS (SELECT 1) SELECT * FROM c) s", None, "WITH c AS (SELECT 1) SELECT * FROM c", "s", None),
    ("(TABLE src) s", None, "TABLE src", "s", None),
    ("(VALUES (1, 2) AS v (a, b)) s", None, "VALUES (1, 2) AS v (a, b)", "s", None),
    ("VALUES (1, 'a'), (2, NULL) AS s (id, name)", None, "VALUES (1, 'a'), (2, NULL)", "s", ["id", "name"]),
    ("VALUES (1, ')'), (2, NULL) s (id, name)", None, "VALUES (1, ')'), (2, NULL)", "s", ["id", "name"]),
    ("VALUES 1, -2, date '2020-01-01' AS s (id)", None, "VALUES 1, -2, date '2020-01-01'", "s", ["id"]),
    ("VALUES struct(1, 2) AS s", None, "VALUES struct(1, 2)", "s", None),
    ("VALUES (1)", None, "VALUES (1)", None, None),
]


@pytest.mark.parametrize(("source", "table", "query", "alias", "columns"), SOURCES, ids=[s[0] for s in SOURCES])
def test_the_source(
    source: str, table: str | None, query: str | None, alias: str | None, columns: list[str] | None
) -> None:
    found = parse(f"MERGE INTO emp USING {source} ON true WHEN MATCHED THEN DELETE").source
    assert found.span.text == source
    assert (found.table.span.text if found.table else None) == table
    assert text_of(found.query) == query
    assert (found.alias.text if found.alias else None) == alias
    assert (None if found.columns is None else [c.text for c in found.columns]) == columns


def test_what_stands_around_the_clauses() -> None:
    text = (
        "WITH c AS (SELECT 1 a) MERGE WITH SCHEMA EVOLUTION INTO t USING c ON t.a = c.a WHEN MATCHED THEN UPDATE SET *"
    )
    found = parse(text)
    assert (text_of(found.with_clause), found.schema_evolution) == ("WITH c AS (SELECT 1 a)", True)
    plain = parse("MERGE INTO t USING c ON true WHEN MATCHED THEN DELETE")
    assert (plain.with_clause, plain.schema_evolution) == (None, False)


def test_explain_holds_a_merge() -> None:
    merge = "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"
    found = parse_statement(f"EXPLAIN FORMATTED {merge}")
    assert isinstance(found, Explain)
    assert isinstance(found.inner, Merge)
    assert (found.mode, found.inner.span.text) == ("FORMATTED", merge)


# --- conditions ------------------------------------------------------------------------------------------------------

CONDITIONS = [
    "t.id = s.id",
    "(t.id = s.id)",
    "(t.id = s.id) AND t.p > 1",
    "t.id <=> s.id OR s.id IS NULL",
    "CASE WHEN a THEN b WHEN matched THEN c ELSE d END = 1",
    "CASE s.x WHEN 1 THEN (CASE WHEN a THEN b END) END > 1",
    "t.matched AND s.when",
    "t.then = s.then",
    "s.a = t.case AND t.end",
    "t.id IN (SELECT CASE WHEN x THEN y END FROM u WHERE v)",
    "a::int = b::decimal(10, 2)",
    "exists(xs, x -> x > 1)",
    "NOT matched",
    "t.a BETWEEN s.a AND s.b",
    "'WHEN MATCHED THEN' = s.x",
    "s.x = :when",
    "true",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_ends_where_the_next_keyword_of_merge_stands(condition: str) -> None:
    found = parse(
        f"MERGE INTO t USING s ON {condition} WHEN MATCHED AND {condition} THEN DELETE"
        f" WHEN NOT MATCHED BY SOURCE AND {condition} THEN UPDATE SET a = {condition}, b = {condition}"
        f" WHEN NOT MATCHED AND {condition} THEN INSERT VALUES ({condition}, {condition})"
    )
    assert found.on.text == condition
    assert [text_of(c.condition) for c in found.clauses] == [condition] * 3
    update, insert = found.clauses[1].action, found.clauses[2].action
    assert isinstance(update, MergeUpdate)
    assert set_to(update.assignments) == [("a", condition), ("b", condition)]
    assert isinstance(insert, MergeInsert)
    assert [text_of(v) for v in insert.values or ()] == [condition, condition]


# --- clauses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "match"), [("MATCHED", Match.MATCHED), ("NOT MATCHED BY SOURCE", Match.NOT_MATCHED_BY_SOURCE)]
)
def test_rows_of_the_target_are_updated_or_deleted(words: str, match: Match) -> None:
    clause = the_clause(f"WHEN {words} THEN DELETE")
    assert (clause.match, clause.condition, clause.action) == (match, None, MergeDelete())
    clause = the_clause(f"WHEN {words} AND s.x THEN UPDATE SET a = 1, t.b = DEFAULT, t.`c d` == s.c + 1")
    assert (clause.match, text_of(clause.condition)) == (match, "s.x")
    assert isinstance(clause.action, MergeUpdate)
    assert set_to(clause.action.assignments) == [("a", "1"), ("b", "DEFAULT"), ("c d", "s.c + 1")]


@pytest.mark.parametrize("words", ["NOT MATCHED", "NOT MATCHED BY TARGET", "not matched by target"])
def test_rows_of_the_source_are_inserted(words: str) -> None:
    clause = the_clause(f"WHEN {words} THEN INSERT (id, t.name) VALUES (s.id, DEFAULT)")
    assert clause.match is Match.NOT_MATCHED
    assert isinstance(clause.action, MergeInsert)
    assert [c.text for c in clause.action.columns or ()] == ["id", "name"]
    assert [text_of(v) for v in clause.action.values or ()] == ["s.id", "DEFAULT"]
    hives = the_clause(f"WHEN {words} AND s.x THEN INSERT VALUES (s.id)")
    assert isinstance(hives.action, MergeInsert)
    assert (hives.action.columns, [text_of(v) for v in hives.action.values or ()]) == (None, ["s.id"])


def test_stars_stand_for_the_columns_of_the_source() -> None:
    assert the_clause("WHEN MATCHED THEN UPDATE SET *").action == MergeUpdate(None)
    assert the_clause("WHEN NOT MATCHED THEN INSERT *").action == MergeInsert(None, None)


@pytest.mark.parametrize("qualifier", ["", "emp.", "hr.emp.", "spark_catalog.hr.emp."])
def test_a_column_to_set_may_be_qualified_by_an_unaliased_target(qualifier: str) -> None:
    [clause] = parse(f"MERGE INTO hr.emp USING s ON true WHEN MATCHED THEN UPDATE SET {qualifier}a = 1").clauses
    assert isinstance(clause.action, MergeUpdate)
    assert set_to(clause.action.assignments) == [("a", "1")]


# --- random clauses, printed and read again --------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A clause as plain values."""

    match: Match
    condition: str | None
    action: str
    columns: tuple[str, ...] | None = None
    values: tuple[str, ...] | None = None

    @property
    def text(self) -> str:
        head = f"WHEN {self.match.value}" + (f" AND {self.condition}" if self.condition else "") + " THEN "
        columns, values = self.columns or (), self.values or ()
        if self.action == "DELETE":
            return head + "DELETE"
        if self.values is None:
            return head + ("UPDATE SET *" if self.action == "UPDATE" else "INSERT *")
        if self.action == "UPDATE":
            return head + "UPDATE SET " + ", ".join(f"{c} = {v}" for c, v in zip(columns, values, strict=True))
        listed = f" ({', '.join(columns)})" if self.columns else ""
        return f"{head}INSERT{listed} VALUES ({', '.join(values)})"


VALUES = st.sampled_from([*CONDITIONS, "DEFAULT", "1", "concat('a', ',')", "NULL", "`default`", "struct(1 AS a).a"])
COLUMNS = st.sampled_from(["a", "`b c`", "when", "matched", "set", "values", "date"])


@st.composite
def clauses(draw: st.DrawFn) -> Made:
    match = draw(st.sampled_from(list(Match)))
    condition = draw(st.sampled_from(CONDITIONS))
    action = draw(st.sampled_from(["INSERT"] if match is Match.NOT_MATCHED else ["UPDATE", "DELETE"]))
    has_star = draw(st.booleans()) and match is not Match.NOT_MATCHED_BY_SOURCE
    if action == "DELETE" or has_star:
        return Made(match, condition, action)
    columns = tuple(draw(st.lists(COLUMNS, min_size=1, max_size=4)))
    values = tuple(draw(VALUES) for _ in columns)
    has_columns = action == "UPDATE" or draw(st.booleans())
    return Made(match, condition, action, columns if has_columns else None, values)


@st.composite
def merges(draw: st.DrawFn) -> list[Made]:
    """Clauses of which the last of each kind may be without a condition."""
    made = draw(st.lists(clauses(), min_size=1, max_size=6))
    for match in Match:
        last = max((i for i, c in enumerate(made) if c.match is match), default=None)
        if last is not None and draw(st.booleans()):
            c = made[last]
            made[last] = Made(c.match, None, c.action, c.columns, c.values)
    return made


def read_back(clause: WhenClause) -> Made:
    condition, action = text_of(clause.condition), clause.action
    if isinstance(action, MergeDelete):
        return Made(clause.match, condition, "DELETE")
    if isinstance(action, MergeUpdate):
        found = action.assignments
        columns = None if found is None else tuple(a.column.span.text for a in found)
        values = None if found is None else tuple(text_of(a.value) or "" for a in found)
        return Made(clause.match, condition, "UPDATE", columns, values)
    columns = None if action.columns is None else tuple(c.span.text for c in action.columns)
    values = None if action.values is None else tuple(text_of(v) or "" for v in action.values)
    return Made(clause.match, condition, "INSERT", columns, values)


@given(merges(), st.sampled_from(CONDITIONS), st.sampled_from([" ", "\n", " /* WHEN MATCHED */ ", " -- THEN\n"]))
@settings(max_examples=300, deadline=None)
def test_clauses_that_were_printed_are_read_as_they_were_made(made: list[Made], on: str, gap: str) -> None:
    found = parse(f"MERGE INTO emp t USING src s ON {on}{gap}" + gap.join(c.text for c in made))
    assert found.on.text == on
    assert [read_back(c) for c in found.clauses] == made
    assert [c.span.text for c in found.clauses] == [c.text for c in made]


@given(merges(), st.integers(0, 5), st.sampled_from(list(Match)))
@settings(max_examples=200, deadline=None)
def test_a_clause_that_takes_all_rows_must_be_the_last_of_its_kind(made: list[Made], at: int, match: Match) -> None:
    action = "INSERT" if match is Match.NOT_MATCHED else "DELETE"
    made.insert(min(at, len(made)), taking := Made(match, None, action))
    text = "MERGE INTO t USING s ON true\n" + "\n".join(c.text for c in made)
    hidden = [i for i, c in enumerate(made) if c.condition is None and any(d.match is c.match for d in made[i + 1 :])]
    if not hidden:
        assert taking in [read_back(c) for c in parse(text).clauses]
        return
    with pytest.raises(ParseError, match="may omit the AND condition") as caught:
        parse_statement(text)
    assert (caught.value.line, caught.value.column) == (hidden[0] + 2, 1)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET a = 1", 10404, 1),
        ("WHEN MATCHED AND x THEN DELETE WHEN MATCHED THEN DELETE WHEN MATCHED AND y THEN DELETE", 10405, 32),
        ("WHEN MATCHED THEN UPDATE SET a = 1 WHEN MATCHED THEN UPDATE SET a = 2", 10406, 1),
        ("WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED AND x THEN INSERT *", 40000, 1),
        ("WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE", 40000, 1),
        ("WHEN MATCHED DELETE", 40000, 14),
        ("WHEN NOT MATCHED THEN DELETE", 40000, 23),
        ("", 40000, 0),
    ],
)
def test_an_error_has_hives_code_and_its_place(text: str, code: int, place: int) -> None:
    head = "MERGE INTO t USING s ON true "
    with pytest.raises(ParseError) as caught:
        parse_statement(head + text)
    error = caught.value
    assert (error.code, error.sqlstate, error.line, error.column) == (code, "42000", 1, len(head) + place)


@pytest.mark.parametrize(
    "text",
    [
        "WHEN MATCHED AND x THEN UPDATE SET a = 1 WHEN MATCHED AND y THEN UPDATE SET a = 2 WHEN MATCHED THEN DELETE",
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN DELETE",
        "WHEN MATCHED AND x THEN DELETE WHEN MATCHED AND y THEN DELETE",
    ],
)
def test_several_updates_and_deletes_in_any_order_are_allowed_where_hive_allows_one(text: str) -> None:
    parse(f"MERGE INTO t USING s ON true {text}")


@pytest.mark.parametrize(
    ("source", "version", "alias"),
    [
        ("s VERSION AS OF 3", "VERSION AS OF 3", None),
        ("hr.s FOR VERSION AS OF :n AS x", "FOR VERSION AS OF :n", "x"),
        ("s SYSTEM_VERSION AS OF 0 x", "SYSTEM_VERSION AS OF 0", "x"),
        ("s version", None, "version"),
        ("s AS version", None, "version"),
        ("version", None, None),
    ],
)
def test_a_source_may_be_an_older_version_of_a_table(source: str, version: str | None, alias: str | None) -> None:
    found = parse(f"MERGE INTO t USING {source} ON true WHEN MATCHED THEN DELETE").source
    assert (found.version and found.version.text) == version
    assert (found.alias and found.alias.text) == alias
    assert found.span.text == source
