"""Tokens: every one with its place, boundaries where Spark's lexer has them."""

from __future__ import annotations

import pytest

from acidsql.errors import ParseError
from acidsql.sql.tokens import Kind, Token, skip_gap, tokenize, unescape


def texts(source: str) -> list[str]:
    return [t.text for t in tokenize(source)[:-1]]


def kinds(source: str) -> list[tuple[str, str]]:
    return [(t.kind.name, t.text) for t in tokenize(source)[:-1]]


@pytest.mark.parametrize(
    "source",
    [
        "SELECT 1L, 2S, 3Y, 1.5BD, 1e3D, 2.5E-3f FROM t",
        "SELECT 'é😀', `é😀` FROM größe WHERE 日本 = '𝄞'",
        "SELECT a\r\nFROM b\r\n-- c\r\nWHERE d",
        "SELECT '$$', $$ FROM t WHERE a = ${x} AND b = :id AND c = ?",
        "SELECT /* a /* b */ c */ 1 -- x\n/*+ HINT(a) */ FROM t",
        "SHOW TABLES; MSCK REPAIR TABLE t; EXPLAIN SELECT 1; ADD JAR x",
        "CALL f(1); GRANT a; OPTIMIZE t; VACUUM t; {",
    ],
)
def test_a_token_is_the_piece_of_the_source_at_its_offsets(source: str) -> None:
    tokens = tokenize(source)
    assert all(source[t.start : t.end] == t.text for t in tokens)
    assert [t.start for t in tokens] == sorted(t.start for t in tokens)


def test_the_last_token_is_an_end_at_the_end() -> None:
    assert tokenize("a ")[-1] == Token(Kind.END, "", 2, 2, "")
    assert tokenize("") == [Token(Kind.END, "", 0, 0, "")]


def test_a_number_with_a_suffix_is_one_token() -> None:
    numbers = ["1L", "2s", "3Y", "4.5BD", "5e6d", "7.F", "8", "9.0"]
    assert kinds(" ".join(numbers)) == [("NUMBER", n) for n in numbers]


def test_a_name_may_start_with_a_digit() -> None:
    assert kinds("1day 2_x") == [("WORD", "1day"), ("WORD", "2_x")]


def test_words_are_not_merged_and_commands_not_swallowed() -> None:
    assert texts("GROUP  BY x ORDER /* c */ BY y") == ["GROUP", "BY", "x", "ORDER", "BY", "y"]
    assert texts("SHOW CREATE TABLE t") == ["SHOW", "CREATE", "TABLE", "t"]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        ('"a ""b"" \'c\'"', "a \"b\" 'c'"),
        (r"'it\'s'", "it's"),
        (r"'a\tb\nc\\d\0\Z\q'", "a\tb\nc\\d\0\x1aq"),
        (r"'100\%\_'", r"100\%\_"),
        (r"'\u0041\U0001F600\101'", "A😀A"),
        (r"'\U99999999'", "\ufffd"),
        (r"r'\d\'", "\\d\\"),
        (r'R"a\n"', r"a\n"),
        ("''", ""),
        ("''''", "'"),
    ],
)
def test_a_string_is_one_token_and_stands_for_what_spark_says(literal: str, value: str) -> None:
    [token, _] = tokenize(literal)
    assert token.kind is Kind.STRING
    assert token.value == unescape(literal) == value


def test_strings_side_by_side_are_two_tokens() -> None:
    assert texts("'a' 'b' r'c''d'") == ["'a'", "'b'", "r'c'", "'d'"]
    assert kinds("n'x' X'1F' foo'bar'") == [
        ("WORD", "n"),
        ("STRING", "'x'"),
        ("WORD", "X"),
        ("STRING", "'1F'"),
        ("WORD", "foo"),
        ("STRING", "'bar'"),
    ]


def test_a_quoted_name_loses_its_quotes_and_is_no_keyword() -> None:
    [token, _] = tokenize("`se``lect`")
    assert (token.kind, token.name, token.word, token.quoted) == (Kind.QUOTED, "se`lect", "", True)
    assert tokenize("`SELECT`")[0].word == ""
    assert tokenize("select")[0].word == "SELECT"


def test_operators_of_spark_are_one_token_and_angles_of_types_are_single() -> None:
    operators = ["<=>", "||", "->", "|>", "!=", "<>", ">=", "<=", "==", "=>", "::"]
    assert texts("a" + "a".join(operators)) == [t for o in operators for t in ("a", o)]
    assert texts("map<int,array<int>>") == ["map", "<", "int", ",", "array", "<", "int", ">", ">"]


@pytest.mark.parametrize(
    "gap",
    [
        " ",
        "\t\r\n\u00a0\u3000",
        "-- to the end of the line\n",
        "-- with 'quotes' and ; in it\r",
        "-- goes on \\\nin the next line\n",
        "/**/",
        "/***/",
        "/* a /* nested */ b */",
        "/* ' \" ` */",
        "/*+ HINT(a, 'b') */",
    ],
)
def test_space_comments_and_hints_are_no_tokens(gap: str) -> None:
    source = f"a{gap}b"
    assert texts(source) == ["a", "b"]
    assert skip_gap(source, 1, len(source)) == len(source) - 1
    assert texts(gap) == []


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("SELECT 'a", "1:8", "string is not closed"),
        ('SELECT\n  "a', "2:3", "string is not closed"),
        ("SELECT 'a''", "1:8", "string is not closed"),
        ("SELECT r'a", "1:8", "string is not closed"),
        (r"SELECT 'a\'", "1:8", "string is not closed"),
        ("SELECT 'é😀', 'x", "1:14", "string is not closed"),
        ("SELECT `a", "1:8", "quoted name is not closed"),
        ("SELECT 1 /* a", "1:10", "comment is not closed"),
        ("SELECT 1 /* a /* b */", "1:10", "comment is not closed"),
        ("SELECT {# a #}", "1:8", "Unexpected '{'"),
    ],
)
def test_what_is_not_closed_is_an_error_at_its_start(source: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        tokenize(source)
    assert message in caught.value.message
    assert f"{caught.value.line}:{caught.value.column}" == place


def test_a_part_of_the_source_has_the_tokens_of_that_part_with_the_offsets_of_the_whole() -> None:
    source = "UPDATE t SET a = 'é' || b WHERE c"
    start, end = source.index("'é'"), source.index(" WHERE")
    part = tokenize(source, start, end)
    assert [t.text for t in part] == ["'é'", "||", "b", ""]
    assert (part[0].start, part[0].end) == (start, start + 3)
    assert part[-1].start == end
