"""Spark's own errors point at the user's text, as he wrote it, in every statement that has expressions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.oracle.spark_conf import setting
from tests.spark.answers import nothing_is_open

pytestmark = pytest.mark.spark

STATEMENTS = [
    "SELECT id,\n       {}\nFROM t",
    "SELECT id FROM t\n  WHERE id > 0 AND {} = 1",
    "WITH c AS (\n  SELECT id, {} AS v FROM t)\nSELECT * FROM c",
    "INSERT INTO t\nSELECT id, {} FROM t",
    "WITH c AS (SELECT 1 AS one)\nINSERT INTO t\nWITH d AS (TABLE c) SELECT one, {}\n FROM t, d",
    "UPDATE t\n  SET v = {}\n  WHERE id = 1",
    "UPDATE t SET v = 1\n\n  WHERE id = {}",
    "DELETE FROM t\n WHERE v = 1\n   OR {} = 2",
    "MERGE INTO t USING u\n ON t.id = {}\n WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING u ON t.id = u.id\n WHEN MATCHED AND {} = 1 THEN DELETE",
    "MERGE INTO t USING u ON t.id = u.id\n WHEN MATCHED THEN UPDATE SET\n  v = {}",
    "MERGE INTO t USING u ON t.id = u.id WHEN NOT MATCHED THEN\n  INSERT VALUES (u.id, {})",
    "MERGE INTO t USING (SELECT id,\n {} AS v FROM u) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "CREATE TRANSACTIONAL TABLE made AS\n SELECT id, {} AS v\n FROM t",
    "FROM t\n INSERT INTO t SELECT id, {}\n INSERT INTO u SELECT id, v",
]


def shown(text: str) -> str:
    return re.sub(r"\W+", " ", text)[:60]


@pytest.fixture
def shop(acid: AcidSession) -> AcidSession:
    for name in "tu":
        acid.sql(f"CREATE TRANSACTIONAL TABLE {name} (id int, v int)")
        acid.sql(f"INSERT INTO {name} VALUES (1, 0), (2, 0)")
    acid.sql("INSERT INTO u VALUES (3, 0)")
    return acid


def error_of(acid: AcidSession, text: str) -> PySparkException:
    with pytest.raises(PySparkException) as caught:
        acid.sql(text).collect()
    if not text.startswith(("SELECT", "WITH")):
        nothing_is_open(acid)
    return caught.value


@pytest.mark.parametrize("text", STATEMENTS, ids=shown)
def test_a_name_that_is_not_there_is_shown_where_it_stands(shop: AcidSession, text: str) -> None:
    whole = text.format("nope")
    line, column = where(whole, "nope")
    error = error_of(shop, whole)
    [context] = error.getQueryContext()
    assert (context.fragment(), context.startIndex()) == ("nope", whole.index("nope"))
    assert f"line {line} pos {column}" in str(error)


@pytest.mark.parametrize("text", STATEMENTS, ids=shown)
def test_what_fails_at_run_time_is_shown_where_it_stands(shop: AcidSession, spark: SparkSession, text: str) -> None:
    piece = "1 div u.v" if "u.id, {}" in text or "{} AS v FROM u" in text else "1 div t.v"
    whole = text.format(piece)
    line, position = where(whole, piece)
    with setting(spark, "spark.sql.ansi.enabled", "true"):
        error = error_of(shop, whole)
    [context] = error.getQueryContext()
    assert (context.fragment(), context.startIndex()) == (piece, whole.index(piece))
    assert f"line {line}, position {position + 1}" in str(error)


def where(text: str, piece: str) -> tuple[int, int]:
    """The line from 1 and the column from 0."""
    before = text[: text.index(piece)]
    return before.count("\n") + 1, len(before.rpartition("\n")[2])


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("SELECT 1;\nSELECT 2; INSERT INTO nowhere VALUES (6)", (2, 23)),
        ("SELECT 1; SELECT 2;\n  INSERT INTO\n nowhere VALUES (6)", (3, 2)),
        ("SELECT 1;\n\n SELECT 2;  START TRANSACTION READ ONLY;\n SELECT 1; DELETE FROM t", (4, 12)),
    ],
)
def test_an_error_in_a_script_is_at_its_place_in_the_script(
    shop: AcidSession, tmp_path: Path, script: str, place: tuple[int, int]
) -> None:
    file = tmp_path / "a.sql"
    file.write_text(script, encoding="utf-8-sig")
    for given in (script, file):
        with pytest.raises(AcidError) as failure:
            list(shop.script(given))
        assert (failure.value.line, failure.value.column) == place
