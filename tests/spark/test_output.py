"""Results printed from Spark: every type as Spark means it, in every format."""

from __future__ import annotations

import io
import json

import pytest
from pyspark.sql import SparkSession

from acidsql.output import Format, text_rows, write_result

QUERY = """
SELECT 1 AS id, CAST(NULL AS string) AS s, CAST(1.50 AS decimal(10,2)) AS d, DATE'0001-01-01' AS old,
       TIMESTAMP'2024-02-29 12:34:56.123456' AS ts, X'00FF' AS bin, array(1, NULL) AS a,
       named_struct('x', 1, 'y', CAST(NULL AS int)) AS st, map('k', 1.5D) AS m, 2 AS id
"""


def printed(spark: SparkSession, query: str, format: Format, *, header: bool = True) -> list[str]:
    out = io.StringIO()
    frame = spark.sql(query)
    count = write_result(frame, format, out, header=header)
    assert count == frame.count()
    return out.getvalue().splitlines()


def test_values_are_sparks_own_texts_and_columns_of_one_name_stand_side_by_side(spark: SparkSession) -> None:
    assert list(text_rows(spark.sql(QUERY))) == [
        (
            "1",
            None,
            "1.50",
            "0001-01-01",
            "2024-02-29 12:34:56.123456",
            "00FF",
            "[1,null]",
            '{"x":1,"y":null}',
            '{"k":1.5}',
            "2",
        )
    ]


def test_csv_has_a_header_unless_told_otherwise(spark: SparkSession) -> None:
    query = "SELECT * FROM VALUES (1, 'a,b'), (2, '') AS t(id, name) ORDER BY id"
    assert printed(spark, query, Format.CSV) == ["id,name", '1,"a,b"', '2,""']
    assert printed(spark, query, Format.CSV, header=False) == ['1,"a,b"', '2,""']
    assert printed(spark, query, Format.TSV) == ["id\tname", "1\ta,b", "2\t"]


def test_a_table_without_header_keeps_its_frame(spark: SparkSession) -> None:
    assert printed(spark, "SELECT 1 AS id", Format.TABLE, header=False) == ["+----+", "| 1  |", "+----+"]


def test_json_lines_keep_nulls_and_types(spark: SparkSession) -> None:
    query = "SELECT 1 AS id, CAST(NULL AS string) AS s, array(1.5D) AS a, named_struct('x', CAST(NULL AS int)) AS st"
    assert [json.loads(x) for x in printed(spark, query, Format.JSON)] == [
        {"id": 1, "s": None, "a": [1.5], "st": {"x": None}}
    ]


@pytest.mark.parametrize("format", list(Format))
def test_an_answer_without_columns_prints_nothing(spark: SparkSession, format: Format) -> None:
    out = io.StringIO()
    assert write_result(spark.range(0).select(), format, out) == 0
    assert out.getvalue() == ""
