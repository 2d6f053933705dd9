"""The grammar, its corpus and the parser say the same."""

from __future__ import annotations

import importlib
import re

import pytest

from acidsql import errors
from acidsql.sql import statements
from acidsql.sql.parser import STATEMENTS, parse_statement, split_script
from tests.unit.sql.corpus import GRAMMAR, Accepted, Rejected, accepted, productions, rejected, used_names

SHOWN_ELSEWHERE = {
    "later": "reject/statements.sql",
    "script": "test_script.py",
    "variable": "test_script.py",
    "name": "every statement",
    "integer": "accept/tables.sql",
}
"""Productions that no accepted statement of the corpus is there for."""


@pytest.mark.parametrize("case", accepted(), ids=lambda c: f"{c.file}: {c.text[:40]}")
def test_an_accepted_statement_parses_to_its_dataclass(case: Accepted) -> None:
    statement = parse_statement(case.text)
    assert type(statement) is getattr(statements, case.kind)
    assert statement.span.source == case.text


@pytest.mark.parametrize("case", accepted(), ids=lambda c: f"{c.file}: {c.text[:40]}")
def test_an_accepted_statement_may_end_in_a_semicolon_and_stand_in_a_script(case: Accepted) -> None:
    script = f"SET a = 1;\n{case.text};\n-- the end"
    parts = split_script(script)
    assert len(parts) == 2
    assert type(parse_statement(parts[1].text + " ;")) is getattr(statements, case.kind)


@pytest.mark.parametrize("case", rejected(), ids=lambda c: f"{c.file}: {c.text[:40]}")
def test_a_rejected_statement_fails_at_its_place_with_its_message(case: Rejected) -> None:
    with pytest.raises(errors.AcidError) as caught:
        parse_statement(case.text)
    error = caught.value
    assert type(error) is getattr(errors, case.kind)
    assert (error.line, error.column) == (case.line, case.column), str(error)
    assert case.message in error.message
    assert "^" in str(error)


def test_every_production_is_covered() -> None:
    covered = {name for case in accepted() for name in case.covers}
    assert covered | set(SHOWN_ELSEWHERE) == productions()


def test_every_name_in_the_grammar_is_defined() -> None:
    assert used_names() - productions() == set()


def test_the_table_of_the_readme_names_what_is_there() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (.+?) \| `(\w+)\.(\w+)` \| `(.+?)` \|$", (GRAMMAR / "README.md").read_text(), re.M
    )
    assert len(rows) == 64
    for production, kinds, module, function, file in rows:
        assert production in productions()
        assert hasattr(importlib.import_module(f"acidsql.sql.parser.{module}"), function), production
        assert (GRAMMAR / file).is_file()
        if production != "later":
            cases = [c for c in accepted() if c.file == file and production in c.covers]
            assert {c.kind for c in accepted() if production in c.covers} <= set(re.findall(r"`(\w+)`", kinds))
            assert cases, production
    named = {k for row in rows for k in re.findall(r"`(\w+)`", row[1]) if k != "UnsupportedError"}
    every = {c.__name__ for c in statements.Statement.__subclasses__()}
    assert every <= named


def test_every_first_word_of_the_dispatch_table_is_in_the_grammar() -> None:
    text = (GRAMMAR / "acidsql.ebnf").read_text(encoding="utf-8")
    for word in STATEMENTS:
        assert word in text
