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
from acidsql.sql.placed import padded, with_versions
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
        span = statement.span
        assert padded(span).lstrip() == span.text.lstrip()
        assert with_versions(span, {}) == span


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
    answer_or_place(lambda: with_versions(Span(text, 0, len(text)), {"a": 1}))


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


SPACED = [c for c in accepted() if c.kind not in ("Set", "Reset")]


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
