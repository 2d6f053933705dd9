"""What holds for every text: nothing is lost between tokens, space means nothing, tables are found where they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acidsql.errors import AcidError
from acidsql.sql.parser import parse_statement, split_script
from acidsql.sql.references import References, TableReference, analyse_query
from acidsql.sql.statements import Set, Span
from acidsql.sql.tokens import Kind, skip_gap, tokenize
from tests.unit.sql.corpus import accepted

_CHARACTERS = "abzAZ_09 \t\n\r'\"`\\;,.()[]{}<>=!|&+-*/%:?$@#~^é😀名"
PIECES = st.sampled_from([*_CHARACTERS, "--", "/*", "*/", "/*+", "SELECT", "''", "``", "r'", "1L", "\\\n"])
TEXTS = st.lists(PIECES, max_size=40).map("".join)


T = TypeVar("T")


def answer_or_place(run: Callable[[], T]) -> T | None:
    """What a call answers; None where it fails, which must be with an error that knows its place."""
    try:
        return run()
    except AcidError as error:
        if error.line is None:
            raise AssertionError("an error without a place") from error
        return None


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_tokens_and_the_gaps_between_them_rebuild_the_source(source: str) -> None:
    tokens = answer_or_place(lambda: tokenize(source))
    if tokens is None:
        return
    at, rebuilt = 0, ""
    for token in tokens:
        gap = source[at : token.start]
        assert skip_gap(gap, 0, len(gap)) == len(gap)
        rebuilt += gap + token.text
        at = token.end
    assert rebuilt == source
    assert [t.kind for t in tokens].count(Kind.END) == 1


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_no_text_makes_the_parser_crash(source: str) -> None:
    statement = answer_or_place(lambda: parse_statement(source))
    if statement is not None:
        assert analyse_query(statement.span).splice({}) == statement.span.text


WORDS = [
    *("SELECT", "FROM", "WHERE", "JOIN", "LEFT", "ON", "AS", "TABLE", "WITH", "UNION", "VALUES", "LATERAL", "VIEW"),
    *("PIVOT", "GROUP", "BY", "IN", "AND", "BETWEEN", "CASE", "END", "EXCEPT", "TABLESAMPLE", "IDENTIFIER", "ROW__ID"),
    *("UPDATE", "SET", "INSERT", "INTO", "DEFAULT", "a", "b", "hr", ".", ",", "(", ")", "(", ")", "*", "=", "1", "'x'"),
    *("|>", "::", "->"),
    *("VERSION", "OF", "FOR", ":", "MERGE", "USING", "WHEN", "NOT", "MATCHED", "THEN", "SOURCE", "DELETE", "OVERWRITE"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
@settings(max_examples=600, deadline=None)
def test_no_order_of_words_makes_the_reader_crash(text: str) -> None:
    answer_or_place(lambda: parse_statement(text))
    references = analyse_query(Span(text, 0, len(text)))
    assert references.splice({}) == text
    for table in references.tables:
        references.conjuncts(table, frozenset("ab"))
    answer_or_place(lambda: references.splice(dict.fromkeys(references.tables, "v")))


MERGE_WORDS = [
    *(
        "WHEN",
        "WHEN",
        "NOT",
        "MATCHED",
        "MATCHED",
        "BY",
        "SOURCE",
        "TARGET",
        "AND",
        "THEN",
        "THEN",
        "UPDATE",
        "SET",
        "*",
    ),
    *("DELETE", "INSERT", "VALUES", "DEFAULT", "CASE", "END", "a", "t", ".", ",", "(", ")", "=", "1", "'x'", ":"),
]
ALTER_WORDS = [
    *("ADD", "REPLACE", "CHANGE", "ALTER", "RENAME", "DROP", "SET", "COLUMN", "COLUMNS", "PARTITION", "TO", "LOCATION"),
    *("TYPE", "COMMENT", "NOT", "NULL", "DEFAULT", "FIRST", "AFTER", "CASCADE", "IF", "EXISTS", "CHECK", "CONSTRAINT"),
    *("a", "int", "'x'", "=", "1", ",", "(", ")", "."),
]


@given(st.lists(st.sampled_from(MERGE_WORDS), max_size=25), st.lists(st.sampled_from(ALTER_WORDS), max_size=12))
@settings(max_examples=600, deadline=None)
def test_no_order_of_words_makes_a_statement_crash(merge: list[str], alter: list[str]) -> None:
    for head, words in (("MERGE INTO t USING s ON a", merge), ("ALTER TABLE t", alter), ("CREATE TABLE t (", alter)):
        text = " ".join([head, *words])
        statement = answer_or_place(partial(parse_statement, text))
        assert statement is None or statement.span.text == text


# --- space between tokens --------------------------------------------------------------------------------------------

GAPS = st.sampled_from(
    [" ", "  ", "\n", "\t", "\r\n", " /* c */ ", "/**/", " -- c ; ' \n", "\n\n", " /* a /* b */ c */ ", "/*+ H */"]
)


def shape(value: Any) -> Any:
    """A statement without its places: spans become the texts of their tokens."""
    if isinstance(value, Span):
        return [t.text for t in tokenize(value.text)[:-1]]
    if is_dataclass(value):
        return type(value).__name__, {f.name: shape(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [shape(v) for v in value]
    return value


SPACED = [c for c in accepted() if c.kind != "Set"]


@pytest.mark.parametrize("case", SPACED, ids=lambda c: c.text[:40])
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_space_and_comments_between_tokens_mean_nothing(case: Any, data: st.DataObject) -> None:
    pieces = [t.text for t in tokenize(case.text)[:-1]]
    gaps = data.draw(st.lists(GAPS, min_size=len(pieces), max_size=len(pieces)))
    text = "".join(gap + piece for gap, piece in zip(gaps, pieces, strict=True))
    assert shape(parse_statement(text)) == shape(parse_statement(case.text))


@given(st.lists(st.sampled_from(accepted()), max_size=6), st.data())
@settings(max_examples=40, deadline=None)
def test_a_script_of_statements_splits_into_them(cases: list[Any], data: st.DataObject) -> None:
    gaps = [data.draw(GAPS) + ";" + data.draw(GAPS) for _ in cases]
    script = "".join(case.text + gap for case, gap in zip(cases, gaps, strict=True))
    found = split_script(script)
    assert [[t.text for t in tokenize(s.text)] for s in found] == [[t.text for t in tokenize(c.text)] for c in cases]
    for statement in found:
        assert script[statement.offset :].startswith(statement.text)
        assert statement.line == script.count("\n", 0, statement.offset) + 1


def test_the_value_of_set_is_kept_with_its_space() -> None:
    statement = parse_statement("SET  a  =  b /* c */ d ")
    assert isinstance(statement, Set)
    assert statement.value == "b /* c */ d"


# --- queries made up so that their tables are known ------------------------------------------------------------------

NAMES = st.sampled_from(["emp", "dept", "hr.emp", "`my t`", "spark_catalog.hr.dept", "date", "values"])
ALIASES = st.sampled_from(["", " e", " AS d", " `x y`"])
CONDITIONS = st.sampled_from(
    ["a = 1", "b IS DISTINCT FROM c", "a BETWEEN 1 AND 2", "f(x -> x) > 'FROM emp'", "NOT (a OR b)"]
)
Made = tuple[str, list[str]]
"""A text, and the tables that it names, each ``name alias`` in the order of the text."""


@st.composite
def relations(draw: st.DrawFn, depth: int) -> Made:
    kind = draw(st.sampled_from(["table"] * 4 + ["values", "function", *(["query", "join", "group"] if depth else [])]))
    if kind == "table":
        name, alias = draw(NAMES), draw(ALIASES)
        return name + alias, [(name + alias).replace(" AS", "")]
    if kind == "values":
        return "VALUES (1, 2), (3, 4) AS v (a, b)", []
    if kind == "function":
        return "range(1, 10) r", []
    if kind == "query":
        text, tables = draw(queries(depth - 1))
        return f"({text}) q", tables
    left, right = draw(relations(depth - 1)), draw(relations(depth - 1))
    join = draw(st.sampled_from(["JOIN", "LEFT JOIN", "FULL OUTER JOIN", "CROSS JOIN", "LEFT ANTI JOIN"]))
    text = f"{left[0]} {join} {right[0]}" + ("" if join == "CROSS JOIN" else f" ON {draw(CONDITIONS)}")
    return (f"({text})" if kind == "group" else text), left[1] + right[1]


@st.composite
def queries(draw: st.DrawFn, depth: int = 3) -> Made:
    if depth and draw(st.integers(0, 4)) == 0:
        (left, one), (right, two) = draw(queries(depth - 1)), draw(queries(depth - 1))
        return f"({left}) {draw(st.sampled_from(['UNION', 'EXCEPT ALL', 'INTERSECT']))} ({right})", one + two
    items, tables = ["a", "count(*)"], []
    if depth and draw(st.booleans()):
        text, inner = draw(queries(depth - 1))
        items.append(f"(({text}) + 1) AS x")
        tables += inner
    sources = draw(st.lists(relations(depth), min_size=1, max_size=3))
    text = f"SELECT {', '.join(items)} FROM {', '.join(t for t, _ in sources)}"
    tables += [name for _, names in sources for name in names]
    has_where = draw(st.booleans())
    if has_where:
        text += f" WHERE {draw(CONDITIONS)}"
    if depth and draw(st.booleans()):
        inner_text, inner = draw(queries(depth - 1))
        text += f"{' AND' if has_where else ' HAVING'} a IN ({inner_text})"
        tables += inner
    return text, tables


def _shown(table: TableReference) -> str:
    if table.alias is None:
        return table.name.span.text
    return f"{table.name.span.text} " + (f"`{table.alias}`" if " " in table.alias else table.alias)


def _analysed(text: str) -> References:
    source = f"é😀 {text}"
    return analyse_query(Span(source, 3, len(source)))


@given(queries())
@settings(max_examples=150, deadline=None)
def test_the_tables_of_a_made_up_query_are_found_where_they_stand(made: Made) -> None:
    text, tables = made
    references = _analysed(text)
    found = [_shown(t) for t in references.tables]
    assert found == tables
    assert references.splice({}) == text


@given(queries())
@settings(max_examples=100, deadline=None)
def test_a_spliced_query_names_the_views_under_the_names_of_the_tables(made: Made) -> None:
    references = _analysed(made[0])
    views = {t: f"view{i}" for i, t in enumerate(references.tables)}
    again = _analysed(references.splice(views))
    assert [t.name.table for t in again.tables] == list(views.values())
    assert [t.alias for t in again.tables] == [t.alias or t.name.table for t in references.tables]
