"""TPC-DS and TPC-H: every query, over ACID tables that were written to again and again, answers as over Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from pyspark.sql import SparkSession

import acidsql
from tests.oracle import sparks_texts, tpc
from tests.oracle.answers import Refusal, Rows
from tests.oracle.twins import Twins
from tests.services.maven import DownloadError

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

TPCDS = [f"q{n}" for n in range(1, 100) if n not in (14, 23, 24, 39)]
TPCDS += [f"q{n}{part}" for n in (14, 23, 24, 39) for part in "ab"]
TPCH = [f"q{n}" for n in range(1, 23)]
Texts = dict[str, str]


def load(twins: Twins, database: str, tables: Iterable[tpc.Data]) -> None:
    twins.database(database)
    for data in tables:
        keys = data.ddl(keys=True) if data.key else ""
        twins.table(f"{database}.{data.name}", data.ddl(keys=False), data.ordered(), keys=keys)


@pytest.fixture(scope="module")
def texts() -> dict[str, Texts]:
    try:
        return {"tpcds": sparks_texts.texts("tpcds"), "tpch": sparks_texts.texts("tpch")}
    except DownloadError as e:
        pytest.skip(f"NO QUERY OF TPC-DS AND TPC-H WAS RUN, their texts cannot be had: {e}")


@pytest.fixture(scope="module")
def twins(
    spark: SparkSession, plain: SparkSession, texts: dict[str, Texts], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Twins]:
    folder = tmp_path_factory.mktemp("tpc")
    kinds: dict[str, Callable[[Iterable[str]], Sequence[tpc.Data]]] = {"tpcds": tpc.tpcds, "tpch": tpc.tpch}
    with acidsql.connect(spark, warehouse=folder / "warehouse") as acid:
        made = Twins(acid, plain, folder)
        for database, draw in kinds.items():
            load(made, database, draw(texts[database].values()))
        yield made
        made.close()


def qualified(text: str, database: str, tables: Iterable[str]) -> str:
    """The query with the database before each table. (Qualified columns are asked in ``test_names``.)"""
    names = "|".join(sorted(tables, key=len, reverse=True))
    return re.sub(rf"(\bfrom\s+|\bjoin\s+|,\s*)({names})\b(?!\s*[.(])", rf"\1{database}.\2", text, flags=re.I)


@pytest.fixture(scope="module")
def found() -> dict[str, bool]:
    """Whether queries had rows."""
    return {}


def check(twins: Twins, texts: Texts, database: str, query: str, found: dict[str, bool]) -> None:
    names = [n for n, _ in tpc.TPCDS.values()] if database == "tpcds" else list(tpc.TPCH)
    text = re.sub(r"\blimit\s+100\s*$", "", texts[query], flags=re.I)  # it may cut between rows that are alike
    twins.use(database)
    try:
        short = twins.same(text)
        assert not isinstance(short, Refusal), short
        found[f"{database} {query}"] = bool(short.rows)
    finally:
        twins.use("default")
    long = twins.same(qualified(text, database, names))
    assert isinstance(long, Rows), long
    assert long.rows == short.rows


@pytest.mark.parametrize("query", TPCDS)
def test_a_query_of_tpcds_answers_as_over_parquet(
    twins: Twins, texts: dict[str, Texts], found: dict[str, bool], query: str
) -> None:
    check(twins, texts["tpcds"], "tpcds", query, found)


@pytest.mark.parametrize("query", TPCH)
def test_a_query_of_tpch_answers_as_over_parquet(
    twins: Twins, texts: dict[str, Texts], found: dict[str, bool], query: str
) -> None:
    check(twins, texts["tpch"], "tpch", query, found)


def test_most_queries_find_rows(found: dict[str, bool]) -> None:
    """An oracle over empty answers would say little."""
    if len(found) < len(TPCDS):
        pytest.skip("only some of the queries were run")
    assert sum(found.values()) > len(found) / 2, sorted(q for q, rows in found.items() if not rows)
