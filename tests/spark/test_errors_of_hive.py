"""The statements that Hive 4.0.1 was asked, most of them wrong: its code and SQLSTATE, or the reason why not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.sql import SparkSession

import acidsql
from acidsql.errors import AcidError, NoSuchTransaction
from acidsql.metastore.model import CompactionRequest, CompactionResponse, CompactionType
from acidsql.metastore.model import CompactionState as State
from acidsql.plan.values import NotStorable
from acidsql.session import AcidSession
from tests.spark.hive_tables import GOLDEN
from tests.spark.refusals import assert_nothing_left

FACTS: dict[str, Any] = json.loads((GOLDEN / "errors.json").read_text())
STATEMENTS: dict[str, dict[str, Any]] = FACTS["statements"]
"""By what they are about: the statement, and Hive's code, SQLSTATE and message, null where Hive did as it was told."""


class Refusal(NamedTuple):
    """An error other than Hive's, or none of Hive's, and why."""

    kind: type[Exception]
    code: int | None
    sqlstate: str | None
    piece: str
    why: str


OTHERWISE = {
    "select missing table": Refusal(AnalysisException, None, "42P01", "`nope`", "a query's errors are Spark's own"),
    "select missing column": Refusal(AnalysisException, None, "42703", "`nope`", "a query's errors are Spark's own"),
    "abort transactions": Refusal(
        NoSuchTransaction, 10262, "08S01", "Transaction 999999 is not open", "Hive passes over a mistyped id in silence"
    ),
    "cast overflow insert": Refusal(
        ArithmeticException, None, "22003", "99999999999", "Hive stores another number, 1215752191"
    ),
    "insert string into int": Refusal(
        NotStorable, 40000, "42000", "Cannot store STRING in column id", "Hive stores NULL"
    ),
}
MORE = "begin transaction"
"""What Hive's grammar has, and Hive 4.0.1 refuses: here it is a statement like any other."""
ACCEPTED = [n for n, s in STATEMENTS.items() if s["code"] is None and n not in OTHERWISE]
REFUSED = [n for n, s in STATEMENTS.items() if s["code"] is not None and n not in OTHERWISE and n != MORE]


class Queue:
    """A queue of compactions that takes every request."""

    def __init__(self) -> None:
        self.requests: list[CompactionRequest] = []

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        self.requests.append(request)
        return CompactionResponse(len(self.requests), State.INITIATED, True)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gold")


@pytest.fixture(scope="module")
def gold(spark: SparkSession, home: Path) -> Iterator[AcidSession]:
    """The tables of the statements; ``e_n``, which is not transactional, is external as Hive's translator makes it."""
    with acidsql.connect(spark, warehouse=home / "warehouse") as acid:
        spark.sql(f"CREATE DATABASE gold LOCATION '{home / 'spark'}'")
        try:
            acid.sql("CREATE DATABASE gold")
            acid.sql("USE gold")
            acid.sql("CREATE TABLE e_a (id int, name string) STORED AS ORC TBLPROPERTIES('transactional'='true')")
            acid.sql("INSERT INTO e_a VALUES (1, 'a'), (2, 'b')")
            acid.sql(
                "CREATE TABLE e_b (id int, name string) PARTITIONED BY (p int) CLUSTERED BY (id) INTO 2 BUCKETS"
                " STORED AS ORC TBLPROPERTIES('transactional'='true')"
            )
            acid.sql("INSERT INTO e_b VALUES (1, 'a', 1), (2, 'b', 2)")
            acid.sql(
                "CREATE TABLE e_mm (id int, name string) STORED AS ORC"
                " TBLPROPERTIES('transactional'='true', 'transactional_properties'='insert_only')"
            )
            acid.sql("INSERT INTO e_mm VALUES (1, 'a'), (2, 'b'), (3, 'c')")
            spark.sql(f"CREATE TABLE gold.e_n (id int, name string) USING orc LOCATION '{home / 'e_n'}'")
            spark.sql("INSERT INTO gold.e_n VALUES (1, 'a')")
            yield acid
        finally:
            spark.catalog.setCurrentDatabase("default")
            spark.sql("DROP DATABASE gold CASCADE")


def rows(acid: AcidSession, query: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in acid.sql(query).collect()]


@pytest.mark.parametrize("name", REFUSED)
def test_what_hive_refuses_has_its_code_and_sqlstate_and_names_the_same(
    gold: AcidSession, home: Path, name: str
) -> None:
    fact = STATEMENTS[name]
    error = assert_nothing_left(gold, home, lambda: gold.sql(fact["sql"]).collect())
    assert isinstance(error, AcidError), error
    assert (error.code, error.sqlstate) == (fact["code"], fact["sqlstate"]), str(error)
    assert named(fact["sql"], fact["message"]) <= named(fact["sql"], error.message + " " + (error.excerpt or ""))
    if name != "cardinality violation":  # it has no place: it is the rows that are wrong
        assert error.line == 1


def named(statement: str, message: str) -> set[str]:
    """What a message names of its statement: the words that stand in both."""
    return {w for w in re.findall(r"[A-Za-z_]\w*", statement) if re.search(rf"\b{w}\b", message)}


def test_a_cardinality_violation_names_the_row_as_hive_does(gold: AcidSession) -> None:
    fact = STATEMENTS["cardinality violation"]
    ids = re.findall(r"\d+", fact["message"].rpartition("[")[2])
    with pytest.raises(AcidError) as caught:
        gold.sql(fact["sql"])
    assert re.findall(r"\d+", caught.value.message) == ids


def test_a_transaction_of_several_statements_is_one(gold: AcidSession) -> None:
    assert STATEMENTS[MORE]["sql"] == "START TRANSACTION"
    gold.sql("START TRANSACTION")
    gold.sql("DELETE FROM e_a")
    gold.sql("ROLLBACK")
    assert len(rows(gold, "SELECT * FROM e_a")) == 2


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_refused_otherwise_than_by_hive(gold: AcidSession, home: Path, name: str) -> None:
    wanted = OTHERWISE[name]
    error = assert_nothing_left(gold, home, lambda: gold.sql(STATEMENTS[name]["sql"]).collect())
    assert isinstance(error, wanted.kind), wanted.why
    assert wanted.piece in str(error), wanted.why
    if isinstance(error, AcidError):
        assert (error.code, error.sqlstate) == (wanted.code, wanted.sqlstate), wanted.why
    else:
        assert error.getSqlState() == wanted.sqlstate, wanted.why


class TestWhatHiveAccepts:
    def test_every_statement_is_here(self) -> None:
        tested = {
            "delete insert-only",
            "insert column list ok",
            "compact partitioned without partition",
            "drop missing",
            "select e_a",
            "rename table",
            "rename back",
        }
        assert set(ACCEPTED) == tested

    def test_delete_without_a_condition_empties_an_insert_only_table(self, gold: AcidSession) -> None:
        [counts] = gold.sql(STATEMENTS["delete insert-only"]["sql"]).collect()
        assert counts.num_deleted_rows == 3
        assert rows(gold, "SELECT * FROM e_mm") == []
        gold.sql("INSERT INTO e_mm VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    def test_insert_of_some_columns_leaves_the_others_null_and_the_rows_are_hives(self, gold: AcidSession) -> None:
        gold.sql(STATEMENTS["insert column list ok"]["sql"])
        found = rows(gold, STATEMENTS["select e_a"]["sql"])
        in_hive = [(id, name) for _, id, name in FACTS["rows of e_a"]]
        of_others = [(1215752191, "big"), (None, "z")]  # what the refused statements stored in Hive
        assert sorted(found, key=str) == sorted((r for r in in_hive if r not in of_others), key=str)
        gold.sql("DELETE FROM e_a WHERE id IS NULL")

    def test_compact_without_a_partition_asks_for_each_of_them(
        self, gold: AcidSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue = Queue()
        monkeypatch.setattr(gold.metastore, "compact", queue.compact)
        said = rows(gold, STATEMENTS["compact partitioned without partition"]["sql"])
        assert said == [("Compaction enqueued with id 1",), ("Compaction enqueued with id 2",)]
        asked = [(r.table, r.partition, r.type) for r in queue.requests]
        assert asked == [("e_b", "p=1", CompactionType.MINOR), ("e_b", "p=2", CompactionType.MINOR)]

    def test_drop_of_what_is_not_there_does_nothing_unless_a_setting_says_so(self, gold: AcidSession) -> None:
        text = STATEMENTS["drop missing"]["sql"]
        gold.sql(text)
        gold.sql("DROP VIEW nope")
        gold.sql("ALTER TABLE e_b DROP PARTITION (p = 77)")
        gold.sql("SET hive.exec.drop.ignorenonexistent = false")
        try:
            for wrong, code in (
                (text, 10001),
                ("DROP VIEW nope", 10001),
                ("ALTER TABLE e_b DROP PARTITION (p = 77)", 10006),
            ):
                with pytest.raises(AcidError) as caught:
                    gold.sql(wrong)
                assert caught.value.code == code
            gold.sql("DROP TABLE IF EXISTS nope")
        finally:
            gold.sql("SET hive.exec.drop.ignorenonexistent = true")

    def test_rename_there_and_back(self, gold: AcidSession) -> None:
        gold.sql(STATEMENTS["rename table"]["sql"])
        gold.sql(STATEMENTS["rename back"]["sql"])
        assert rows(gold, "SELECT id FROM e_a ORDER BY id") == [(1,), (2,)]
