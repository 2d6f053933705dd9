"""Random nested queries: the rows of Spark over its own tables, or the same kind of error."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.oracle import shop
from tests.oracle.drawing import queries
from tests.oracle.judging import for_each, many
from tests.oracle.twins import Twins

pytestmark = pytest.mark.spark

FEW = 12


@pytest.fixture(scope="module")
def twins(empty_twins: Twins) -> Twins:
    return shop.fill(empty_twins)


def has_qualify(spark: SparkSession) -> bool:
    return tuple(map(int, spark.version.split(".")[:2])) >= (4, 3)


def judge(twins: Twins, examples: int) -> None:
    """Draw queries, and compare the answers."""

    def check(drawn: tuple[str, str]) -> None:
        database, text = drawn
        twins.use(database)
        twins.same(text)

    for_each(queries(has_qualify(twins.plain)), examples, check)


def test_a_random_query_answers_as_spark_does(twins: Twins) -> None:
    judge(twins, FEW)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_random_queries_answer_as_spark_does(twins: Twins) -> None:
    judge(twins, many())
