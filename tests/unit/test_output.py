"""Rows as text: tables, csv, tsv, HTML."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, ParseException

from acidsql.errors import ParseError
from acidsql.output import csv_line, describe, format_table, html_table, tsv_line


def test_a_table_has_a_frame_and_says_null() -> None:
    assert format_table(["id", "name"], [("1", "Ann"), ("22", None)]).split("\n") == [
        "+----+------+",
        "| id | name |",
        "+----+------+",
        "| 1  | Ann  |",
        "| 22 | NULL |",
        "+----+------+",
    ]


def test_a_table_without_rows_is_its_head() -> None:
    assert format_table(["id"], []).split("\n") == ["+----+", "| id |", "+----+"]


def test_wide_characters_and_combining_marks_keep_the_columns_in_line() -> None:
    lines = format_table(["v"], [("日本",), ("e\u0301x",)]).split("\n")
    assert lines[1:5] == ["| v    |", "+------+", "| 日本 |", "| e\u0301x   |"]


def test_line_breaks_and_tabs_in_values_stay_in_one_line_of_a_table() -> None:
    assert "| a\\nb\\tc\\rd |" in format_table(["v"], [("a\nb\tc\rd",)])


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (("1", None, ""), '1,,""'),
        (("a,b", 'say "x"', "two\nlines"), '"a,b","say ""x""","two\nlines"'),
        ((" x ",), " x "),
    ],
)
def test_csv_tells_null_from_the_empty_text(row: tuple[str | None, ...], line: str) -> None:
    assert csv_line(row) == line


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")), min_size=1))
def test_csv_is_read_back_as_it_was(values: list[str]) -> None:
    read = next(csv.reader(io.StringIO(csv_line(tuple(values)) + "\n", newline="")))
    assert read == values


@pytest.mark.parametrize(
    ("row", "line"), [(("1", None, ""), "1\t\\N\t"), (("a\tb", "\\N", "x\ny"), "a\\tb\t\\\\N\tx\\ny")]
)
def test_tsv_escapes_what_would_break_a_line_and_tells_null_from_its_sign(
    row: tuple[str | None, ...], line: str
) -> None:
    assert tsv_line(row) == line


def test_html_is_escaped_and_says_when_rows_were_left_out() -> None:
    html = html_table(["<a>"], [("<b>&",), (None,)], more=True)
    assert "<th>&lt;a&gt;</th>" in html
    assert "<td>&lt;b&gt;&amp;</td>" in html
    assert "<em>NULL</em>" in html
    assert "More rows" in html
    assert "More rows" not in html_table(["a"], [])


def test_an_error_is_described_by_its_message_and_place() -> None:
    error = ParseError("Unexpected word").locate("SELEC 1", 0, 5)
    assert describe(error).split("\n")[1:3] == ["SELEC 1", "^^^^^"]
    assert describe(ValueError()) == "ValueError"


def test_a_spark_error_is_described_without_its_plan() -> None:
    error = AnalysisException("Column `x` cannot be resolved; line 1 pos 7;\n'Project ['x]\n+- Relation orc")
    assert describe(error) == "Column `x` cannot be resolved; line 1 pos 7"
    assert describe(ParseException("Syntax error\n== SQL ==\nSELEC 1;\n^^^")).endswith("SELEC 1;\n^^^")
