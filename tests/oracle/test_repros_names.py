"""Statements whose names could be taken for other names, and texts that go on behind what a statement may say."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

from acidsql.catalyst import Catalyst
from acidsql.commands.resolve.binding import Binding
from acidsql.errors import AcidError
from acidsql.session import AcidSession
from tests.oracle.choice import first_quick
from tests.spark.answers import nothing_is_open, rows
from tests.spark.refusals import assert_nothing_left

pytestmark = pytest.mark.spark


@pytest.fixture
def namesakes(acid: AcidSession) -> AcidSession:
    """``a.t`` and ``b.t``, which have row 3 in common."""
    for database in ("a", "b"):
        acid.sql(f"CREATE DATABASE {database}")
        acid.sql(f"CREATE TRANSACTIONAL TABLE {database}.t (id int, v string)")
    acid.sql("INSERT INTO a.t VALUES (1, 'a1'), (2, 'a2'), (3, 'a3')")
    acid.sql("INSERT INTO b.t VALUES (3, 'b3'), (4, 'b4')")
    return acid


def test_update_looks_up_its_namesake_row_by_row(namesakes: AcidSession) -> None:
    namesakes.sql("UPDATE a.t SET v = (SELECT max(b.t.v) FROM b.t WHERE b.t.id = a.t.id)")
    assert rows(namesakes, "SELECT * FROM a.t") == [(1, None), (2, None), (3, "b3")]


def test_delete_asks_its_namesake_row_by_row(namesakes: AcidSession) -> None:
    namesakes.sql("DELETE FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)")
    assert rows(namesakes, "SELECT id FROM a.t") == [(1,), (2,)]


def test_merge_of_namesakes_joins_them(namesakes: AcidSession) -> None:
    namesakes.sql(
        "MERGE INTO a.t USING b.t ON a.t.id = b.t.id WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT VALUES (b.t.id, b.t.v)"
    )
    assert rows(namesakes, "SELECT * FROM a.t") == [(1, "a1"), (2, "a2"), (4, "b4")]


def test_delete_by_a_short_name_asks_its_namesake_by_a_full_one(namesakes: AcidSession) -> None:
    namesakes.sql("USE a")
    namesakes.sql("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)")
    assert rows(namesakes, "SELECT id FROM t") == [(3,)]


def test_a_struct_of_an_inner_table_is_not_taken_for_the_outer_table(acid: AcidSession) -> None:
    acid.sql("CREATE DATABASE a")
    acid.sql("CREATE TRANSACTIONAL TABLE a.t (id int)")
    acid.sql("INSERT INTO a.t VALUES (1), (2)")
    acid.sql("CREATE TRANSACTIONAL TABLE x (k int, t struct<id:int>)")
    acid.sql("INSERT INTO x VALUES (1, named_struct('id', 1))")
    acid.sql("DELETE FROM a.t WHERE EXISTS (SELECT 1 FROM x WHERE x.k = a.t.id)")
    assert rows(acid, "SELECT * FROM a.t") == [(2,)]


@pytest.mark.parametrize("written_by", ["job", "driver"])
@pytest.mark.parametrize(
    "value", first_quick(["explode(array(7, 8, 9))", "explode(CAST(array() AS array<int>))", "stack(2, 1, 2)"])
)
def test_update_to_a_generator_is_refused(acid: AcidSession, warehouse: Path, written_by: str, value: str) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {20000 if written_by == 'driver' else 1}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    acid.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    assert_nothing_left(acid, warehouse, lambda: acid.sql(f"UPDATE t SET v = {value} WHERE id = 1"))
    assert rows(acid, "SELECT * FROM t") == [(1, 10), (2, 20)]


TAILS = [
    "LIMIT 1",
    "ORDER BY id LIMIT 1",
    "UNION ALL SELECT 1L, 536870912, 2L",
    "UNION ALL SELECT * FROM t",
    "EXCEPT SELECT * FROM t",
    "|> WHERE false",
    "GROUP BY id",
    "HAVING true",
    "WINDOW w AS (ORDER BY id)",
    "QUALIFY row_number() OVER (ORDER BY id) > 1",
    "LATERAL VIEW explode(array(1, 2)) e AS n",
]


MERGING = "MERGE INTO t USING (SELECT 1 AS k) s ON t.id = s.k"


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM t WHERE id > 0 {}",
        "UPDATE t SET v = 0 WHERE id > 0 {}",
        "UPDATE t SET v = 0 {}",
        "UPDATE t SET v = 0 {} WHERE id > 0",
        f"{MERGING} {{}} WHEN MATCHED THEN DELETE",
        f"{MERGING} WHEN MATCHED AND t.v > 0 {{}} THEN DELETE",
        f"{MERGING} WHEN MATCHED THEN UPDATE SET v = 0 {{}}",
        f"{MERGING} AND t.v = 5 WHEN NOT MATCHED THEN INSERT VALUES (s.k, 7 {{}})",
    ],
)
def test_a_clause_behind_the_condition_is_refused(acid: AcidSession, text: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    accepted = []
    for tail in TAILS:
        with suppress(AcidError, PySparkException):
            acid.sql(text.format(tail))
            accepted.append(tail)
    assert accepted == []
    nothing_is_open(acid)
    assert rows(acid, "SELECT * FROM t") == [(1, 1), (2, 2), (3, 3)]


INSIDE = ["v0", "k0", "rowId", "writeId", "bucketId", "`__acid_key_0`", "_c0", "originalTransaction", "`__acid_v_0`"]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET a = 5, b = {}",
        "UPDATE t SET a = 5 WHERE b < {}",
        "DELETE FROM t WHERE a < {}",
        "MERGE INTO t USING (SELECT 1 AS k) s ON t.a = s.k WHEN MATCHED THEN UPDATE SET b = {}",
        "MERGE INTO t USING (SELECT 1 AS k) s ON t.a = s.k AND {} > 0 WHEN MATCHED THEN DELETE",
    ],
)
def test_names_that_the_engine_uses_inside_are_not_the_users(acid: AcidSession, text: str) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 2, 3)")
    accepted = []
    for name in INSIDE:
        with suppress(AcidError, PySparkException):
            acid.sql(text.format(name))
            accepted.append(name)
    assert accepted == []
    assert rows(acid, "SELECT * FROM t") == [(1, 2, 3)]


def test_names_that_the_engine_gives_cannot_be_known(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement has a secret in the names that it gives to columns."""
    seen = list[set[str]]()
    analysed = Binding.analysed

    def noted(self: Binding, plan: Any) -> Any:
        made = analysed(self, plan)
        names = {attribute.name() for attribute in Catalyst.items(made.output())}
        seen.append({name for name in names if name.startswith("__acid")})
        assert all(self.secret in name for name in seen[-1]), names
        assert len(self.secret) >= 8
        return made

    monkeypatch.setattr(Binding, "analysed", noted)
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 2, 3)")
    for _ in range(2):
        acid.sql("UPDATE t SET b = 3 WHERE a = 1")
    given = [names for names in seen if names]
    assert len(given) >= 2
    assert not given[0] & given[-1]


@pytest.mark.parametrize("written_by", ["job", "driver"])
@pytest.mark.parametrize(
    "clause",
    [
        "WHEN MATCHED THEN UPDATE SET v = explode(array(7, 8, 9))",
        "WHEN MATCHED AND explode(array(true, true)) THEN UPDATE SET v = 1",
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, explode(array(7, 8)))",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = posexplode(array(7, 8))",
    ],
)
def test_merge_with_a_generator_in_a_clause_is_refused(
    acid: AcidSession, warehouse: Path, written_by: str, clause: str
) -> None:
    acid.sql(f"SET acidsql.write.driver.rows = {20000 if written_by == 'driver' else 1}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    acid.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    text = f"MERGE INTO t USING (SELECT explode(array(1, 5)) AS id) s ON t.id = s.id {clause}"
    assert_nothing_left(acid, warehouse, lambda: acid.sql(text))
    assert rows(acid, "SELECT * FROM t") == [(1, 10), (2, 20)]


def test_the_builder_of_an_update_refuses_generators(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v int)")
    acid.sql("INSERT INTO t VALUES (1, 10)")
    for value in (functions.explode(functions.expr("array(7, 8)")), functions.expr("stack(2, 1, 2)")):
        assert_nothing_left(acid, warehouse, lambda value=value: acid.update("t", {"v": value}))
    assert rows(acid, "SELECT * FROM t") == [(1, 10)]


def test_a_condition_above_a_window_is_none_for_partitions(acid: AcidSession) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, k string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 2), (2, 'a', 3), (3, 'b', 2)")
    numbered = "SELECT id, p, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM t"
    assert rows(acid, f"SELECT id FROM ({numbered}) WHERE p = 2 AND n = 1") == [(3,)]
    assert rows(acid, f"SELECT id FROM ({numbered}) WHERE p = 2") == [(1,), (3,)]
    assert rows(acid, "SELECT id FROM (SELECT *, sum(id) OVER (PARTITION BY p) AS n FROM t) WHERE p = 2 AND n = 4") == [
        (1,),
        (3,),
    ]
    acid.sql(f"DELETE FROM t WHERE id IN (SELECT id FROM ({numbered}) WHERE p = 2 AND n = 1)")
    assert rows(acid, "SELECT id FROM t") == [(1,), (2,)]


def test_qualify_is_no_condition_for_partitions(acid: AcidSession, spark: SparkSession) -> None:
    """As Spark answers it over a view of the same rows; older versions refuse it."""
    text = (
        "SELECT id, k, p FROM {} WHERE p > 0"
        " QUALIFY row_number() OVER (PARTITION BY k ORDER BY id DESC) = 1 AND p = 2 AND true"
    )
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, k string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 'a', 2), (2, 'a', 3), (3, 'b', 2)")
    acid.table("t").createOrReplaceTempView("plain")
    try:
        expected = sorted(tuple(r) for r in spark.sql(text.format("plain")).collect())
    except PySparkException:
        with pytest.raises((AcidError, PySparkException)):
            acid.sql(text.format("t"))
    else:
        assert rows(acid, text.format("t")) == expected == [(3, "b", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t ORDER BY :n DESC",
        "SELECT * FROM t SORT BY b, :n",
        "SELECT count(*) FROM t GROUP BY :n",
        "SELECT a FROM t UNION ALL SELECT b FROM t ORDER BY :n",
        "WITH c AS (SELECT * FROM t ORDER BY :n LIMIT 1) SELECT * FROM c",
        "DELETE FROM t WHERE a IN (SELECT a FROM t ORDER BY :n LIMIT 1)",
        "INSERT INTO t SELECT * FROM t ORDER BY :n LIMIT 1",
        "MERGE INTO t USING (SELECT * FROM t ORDER BY :n LIMIT 1) s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "SELECT INTERVAL :n DAY FROM t",
        "SELECT * FROM t TABLESAMPLE (:n PERCENT)",
        "SELECT CAST(a AS decimal(:n, 0)) FROM t",
        "UPDATE t SET b = CAST(a AS decimal(:n, 0))",
    ],
)
def test_a_parameter_where_no_expression_stands(acid: AcidSession, text: str) -> None:
    """Spark 4.1 puts its text there, so that it is the position of a column; 4.0 takes it for a constant."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, b int)")
    acid.sql("INSERT INTO t VALUES (1, 3), (2, 2), (3, 1)")
    with pytest.raises(AcidError):
        acid.sql(text, n=1)
    nothing_is_open(acid)
    assert rows(acid, "SELECT * FROM t WHERE a < :n + 1 ORDER BY b + :n LIMIT :n", n=1) == [(1, 3)]
    assert rows(acid, "SELECT count(*) FROM t") == [(3,)]
