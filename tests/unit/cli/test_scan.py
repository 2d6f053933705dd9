"""When the interactive shell takes what was typed as a whole statement."""

from __future__ import annotations

import pytest

from acidsql.cli.scan import is_blank, is_complete


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;",
        "SELECT 1;  -- done",
        "SELECT 1; /* done */",
        "SELECT ';';",
        r"SELECT 'it\'s;';",
        "SELECT 'it''s';",
        r"SELECT r'\d\';",
        "SELECT `a;b`;",
        "SELECT 1 /* a /* nested; */ comment */;",
        "-- first\nSELECT 1\n;\n",
        ";",
    ],
)
def test_a_semicolon_outside_quotes_and_comments_completes_a_statement(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1",
        "SELECT ';",
        'SELECT ";',
        "SELECT `a;",
        r"SELECT 'a\';",
        "SELECT 1 -- ;",
        "SELECT 1 /* ;",
        "SELECT 1 /* /* ; */ ;",
        "SELECT 1; SELECT 2",
    ],
)
def test_a_semicolon_inside_a_quote_or_comment_or_none_does_not(text: str) -> None:
    assert not is_complete(text)


@pytest.mark.parametrize(
    ("text", "blank"),
    [("", True), (" \n\t", True), ("-- only a comment", True), ("/* c */ ;", True), ("x", False), ("'", False)],
)
def test_space_and_comments_alone_are_blank(text: str, blank: bool) -> None:
    assert is_blank(text) is blank
