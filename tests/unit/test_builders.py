"""Statements that builders put together, as text."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from acidsql.builders import Expressions, MergeBuilder, insert_text, require_used
from acidsql.errors import InvalidValue
from acidsql.sql.parser import parse_statement
from acidsql.sql.statements import Insert, Match, Merge, MergeDelete, MergeInsert, MergeUpdate


class Recorder:
    """Takes a statement in the place of a session."""

    text = ""
    parameters: dict[str, Any]

    def __call__(self, text: str, **parameters: Any) -> Any:
        self.text, self.parameters = text, parameters


def _builder(recorder: Recorder, **names: str) -> MergeBuilder:
    return MergeBuilder(recorder, None, "hr.emp", "changes", **names)  # type: ignore[arg-type]


def _merge(recorder: Recorder) -> Merge:
    statement = parse_statement(recorder.text)
    assert isinstance(statement, Merge)
    return statement


def test_names_of_columns_and_aliases_are_quoted() -> None:
    run = Recorder()
    _builder(run, alias="t t", source_alias="s`s").on("true").when_matched_update({"odd `name`": "1"}).execute()
    merge = _merge(run)
    assert merge.alias is not None
    assert merge.alias.text == "t t"
    assert merge.source.alias is not None
    assert merge.source.alias.text == "s`s"
    action = merge.clauses[0].action
    assert isinstance(action, MergeUpdate)
    assert [a.column.text for a in action.assignments or ()] == ["odd `name`"]


def test_a_whole_statement() -> None:
    run = Recorder()
    (
        _builder(run)
        .with_schema_evolution()
        .on("emp.id = changes.id -- a comment does not swallow what follows")
        .when_matched_update({"name": "changes.name", "pay": 5}, "changes.ok")
        .when_matched_delete()
        .when_not_matched_insert({"id": "changes.id", "day": datetime.date(2024, 2, 29), "none": None})
        .when_not_matched_by_source_delete("emp.old")
        .execute(word="x")
    )
    merge = _merge(run)
    assert merge.schema_evolution
    assert [(c.match, type(c.action)) for c in merge.clauses] == [
        (Match.MATCHED, MergeUpdate),
        (Match.MATCHED, MergeDelete),
        (Match.NOT_MATCHED, MergeInsert),
        (Match.NOT_MATCHED_BY_SOURCE, MergeDelete),
    ]
    assert run.parameters == {"acid_value_0": 5, "acid_value_1": datetime.date(2024, 2, 29), "word": "x"}
    insert = merge.clauses[2].action
    assert isinstance(insert, MergeInsert)
    assert [c.text for c in insert.columns or ()] == ["id", "day", "none"]


@pytest.mark.parametrize("value", [1, 2.5, True, Decimal("1.50"), datetime.datetime(2024, 1, 1), b"x"])
def test_plain_values_are_parameters(value: Any) -> None:
    expressions = Expressions()
    assert expressions.text(value) == ":acid_value_0"
    assert expressions.parameters == {"acid_value_0": value}


@pytest.mark.parametrize("value", [object(), ["a"], {"a": 1}])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidValue, match="cannot be used as a SQL value"):
        Expressions().text(value)


def test_an_insert_with_static_partitions() -> None:
    text, parameters = insert_text(
        "hr.t", "v`w", overwrite=True, partition={"day": "2024-01-01", "n": 5}, by_name=False
    )
    statement = parse_statement(text)
    assert isinstance(statement, Insert)
    assert statement.overwrite
    assert statement.partition is not None
    assert [k.text for k, _ in statement.partition.keys] == ["day", "n"]
    assert statement.query.text == "SELECT * FROM `v``w`"
    assert parameters == {"acid_value_0": "2024-01-01", "acid_value_1": 5}


def test_an_insert_by_name() -> None:
    text, _ = insert_text("t", "v", overwrite=False, partition={}, by_name=True)
    statement = parse_statement(text)
    assert isinstance(statement, Insert)
    assert statement.by_name


def test_a_parameter_that_no_text_uses_is_refused() -> None:
    """``acid.update("t", {…}, where="id = 1")`` would change all rows."""
    require_used("UPDATE t SET a = :new WHERE id IN (:`old id`, : gap)", ["new", "old id", "gap"])
    require_used("DELETE FROM t", [])
    for text in ("DELETE FROM t", "DELETE FROM t WHERE a = ':where'", "DELETE FROM t -- :where"):
        with pytest.raises(InvalidValue, match="No text uses the parameter :where"):
            require_used(text, ["where"])
