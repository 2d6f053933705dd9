"""Scripts: statements apart, and variables put in."""

from __future__ import annotations

import pytest

from acidsql.errors import ParseError
from acidsql.sql.parser import ScriptStatement, is_open_script, split_script, substitute


def test_a_semicolon_ends_a_statement_and_empty_ones_are_left_out() -> None:
    found = split_script(";;SELECT 1;\n\n ;SELECT 2 ; ")
    assert found == [ScriptStatement("SELECT 1", 1, 3, 2), ScriptStatement("SELECT 2", 3, 3, 15)]


def test_a_statement_knows_its_line_and_its_offset() -> None:
    script = "-- first\nUSE hr;\r\n\r\n  SELECT 'é😀';\n/* a\nb */ SELECT\n  2\n-- done\n"
    found = split_script(script)
    assert [(s.text, s.line) for s in found] == [("USE hr", 2), ("SELECT 'é😀'", 4), ("SELECT\n  2", 6)]
    assert all(script[s.offset :].startswith(s.text) for s in found)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ';'",
        'SELECT ";"',
        "SELECT `;`",
        "SELECT r'\\', ';'",
        "SELECT 'it''s;'",
        r"SELECT 'a\';'",
        "SELECT 1 -- ;\n+ 1",
        "SELECT 1 /* ; /* ; */ ; */ + 1",
        "SELECT (a;b)"[:9] + ")",
    ],
)
def test_a_semicolon_in_a_string_a_name_or_a_comment_ends_nothing(text: str) -> None:
    assert [s.text for s in split_script(f"{text};SELECT 2")] == [text, "SELECT 2"]


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN SELECT 1; SELECT 2; END",
        "BEGIN DECLARE x INT DEFAULT 1; BEGIN SET x = CASE WHEN x > 0 THEN IF(a, b, c) ELSE 2 END; END; END",
        "BEGIN IF (x > 1) THEN SELECT 1; ELSEIF x THEN SELECT IF(x, 1); ELSE IF y THEN VALUES 3; END IF; END IF; END",
        "BEGIN CASE x WHEN 1 THEN SELECT 1; ELSE SELECT case when 1 then 2 end; END CASE; SELECT 2; END",
        "BEGIN a: WHILE x < 3 DO SET x = x + 1; ITERATE a; END WHILE a; SELECT 1; END",
        "BEGIN REPEAT SELECT repeat('a', 2); UNTIL x END REPEAT; lab: LOOP LEAVE lab; END LOOP lab; END",
        "BEGIN FOR r AS SELECT * FROM t DO INSERT INTO u VALUES (r.a); END FOR; SELECT :if, :case; END",
        "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'END;'; END; SELECT t.end; END",
        "BEGIN /* END; */ SELECT `END`; SELECT ';' ; END",
    ],
)
def test_begin_and_end_are_one_statement(text: str) -> None:
    assert [s.text for s in split_script(f"SELECT 0;{text};SELECT 9")] == ["SELECT 0", text, "SELECT 9"]
    assert [s.text for s in split_script(text)] == [text]
    assert not is_open_script(f"{text};")
    assert is_open_script(f"SELECT 0; {text[:-4]}")


@pytest.mark.parametrize("text", ["BEGIN", "BEGIN TRANSACTION", "BEGIN WORK", "BEGIN SELECT 1"])
def test_begin_without_its_end_ends_as_any_other_statement(text: str) -> None:
    assert [s.text for s in split_script(f"{text}; SELECT 2")] == [text, "SELECT 2"]


def test_a_script_of_nothing_has_no_statements() -> None:
    assert split_script("") == split_script(" \n-- nothing\n;;/* at all */") == []


def test_what_is_not_closed_is_found_in_the_script() -> None:
    with pytest.raises(ParseError) as caught:
        split_script("SELECT 1;\nSELECT 'it;\nSELECT 2;")
    assert (caught.value.line, caught.value.column) == (2, 8)


@pytest.mark.parametrize("form", ["${v}", "${hivevar:v}", "${hiveconf:v}", "${HiveVar:v}", "${ v }"])
def test_a_variable_is_replaced_inside_strings_too(form: str) -> None:
    assert substitute(f"SELECT {form}, '{form}' FROM t_{form}", {"v": "7"}) == "SELECT 7, '7' FROM t_7"


def test_a_variable_may_be_given_with_its_prefix() -> None:
    assert substitute("${hiveconf:a.b}", {"hiveconf:a.b": "1", "a.b": "2"}) == "1"


def test_what_a_value_brings_in_is_not_looked_at_again() -> None:
    assert substitute("SELECT '${a}'", {"a": "${b};"}) == "SELECT '${b};'"


def test_text_without_variables_stays() -> None:
    text = "SELECT '$$', $1, '{x}', $ {y}"
    assert substitute(text, {}) == text


def test_an_unknown_variable_is_an_error_at_its_place() -> None:
    with pytest.raises(ParseError) as caught:
        substitute("SELECT 1\nFROM ${no_such}", {"other": "x"})
    assert (caught.value.line, caught.value.column) == (2, 6)
    assert "no_such" in caught.value.message
    assert "other" in str(caught.value)


def test_an_unknown_variable_in_a_comment_is_left_alone() -> None:
    text = "-- needs ${x}\nSELECT '${y}' /* ${z} */"
    assert substitute(text, {"y": "1", "z": "2"}) == "-- needs ${x}\nSELECT '1' /* 2 */"


def test_a_text_that_is_whole_only_with_its_variables_can_be_completed() -> None:
    assert substitute("SELECT ${quote}a'", {"quote": "'"}) == "SELECT 'a'"
