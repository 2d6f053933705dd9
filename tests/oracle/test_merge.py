"""MERGE between two tables of one name: qualifiers of the target and of the source are never mixed up."""

from __future__ import annotations

from typing import Any

import pytest

from acidsql.session import AcidSession
from tests.oracle.answers import Refusal, ask
from tests.oracle.choice import first_quick

pytestmark = pytest.mark.spark

TARGET = [(1, "Ann", 100), (2, "Bob", 200), (3, "Cid", 300)]
SOURCE = [(2, "Bea", 250), (3, "Cid", 50), (4, "Dan", 400)]
UPDATED = sorted([(1, "Ann", 100), (2, "Bea", 250), (3, "Cid", 50), (4, "Dan", 400)])

MERGES: list[tuple[str, list[tuple[Any, ...]]]] = [
    (
        "MERGE INTO prod.emp USING staging.emp ON prod.emp.id = staging.emp.id"
        " WHEN MATCHED THEN UPDATE SET name = staging.emp.name, pay = staging.emp.pay"
        " WHEN NOT MATCHED THEN INSERT VALUES (staging.emp.id, staging.emp.name, staging.emp.pay)",
        UPDATED,
    ),
    (
        "MERGE INTO prod.emp USING staging.emp ON prod.emp.id = staging.emp.id"
        " WHEN MATCHED AND staging.emp.pay > prod.emp.pay THEN UPDATE SET pay = prod.emp.pay + staging.emp.pay"
        " WHEN MATCHED THEN DELETE",
        [(1, "Ann", 100), (2, "Bob", 450)],
    ),
    (
        "MERGE INTO prod.emp USING staging.emp ON staging.emp.id = prod.emp.id + 1"
        " WHEN MATCHED AND prod.emp.name = 'Ann' THEN UPDATE SET prod.emp.name = staging.emp.name"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE",
        [(1, "Bea", 100), (2, "Bob", 200), (3, "Cid", 300)],
    ),
    (
        "MERGE INTO prod.emp USING staging.emp ON prod.emp.id = staging.emp.id AND staging.emp.name = prod.emp.name"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND staging.emp.id > 3 THEN INSERT *",
        [(1, "Ann", 100), (2, "Bob", 200), (3, "Cid", 50), (4, "Dan", 400)],
    ),
    (
        "MERGE INTO prod.emp AS staging USING staging.emp AS prod ON prod.id = staging.id"
        " WHEN MATCHED THEN UPDATE SET staging.pay = prod.pay",
        [(1, "Ann", 100), (2, "Bob", 250), (3, "Cid", 50)],
    ),
    (
        "MERGE INTO prod.emp AS emp USING staging.emp ON emp.id = staging.emp.id WHEN MATCHED THEN DELETE",
        [(1, "Ann", 100)],
    ),
    (
        "MERGE INTO prod.emp USING (SELECT staging.emp.* FROM staging.emp WHERE staging.emp.id NOT IN"
        " (SELECT prod.emp.id FROM prod.emp WHERE prod.emp.pay > 250)) AS emp ON prod.emp.id = emp.id"
        " WHEN MATCHED THEN UPDATE SET pay = 0",
        [(1, "Ann", 100), (2, "Bob", 0), (3, "Cid", 300)],
    ),
    (
        "MERGE INTO spark_catalog.prod.emp USING spark_catalog.staging.emp"
        " ON spark_catalog.prod.emp.id = spark_catalog.staging.emp.id"
        " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (staging.emp.id, spark_catalog.staging.emp.name)",
        [*TARGET, (4, "Dan", None)],
    ),
]


@pytest.fixture
def staff(acid: AcidSession) -> AcidSession:
    for database, rows in (("prod", TARGET), ("staging", SOURCE)):
        acid.sql(f"CREATE DATABASE {database}")
        acid.sql(f"CREATE TRANSACTIONAL TABLE {database}.emp (id int, name string, pay int)")
        acid.sql(f"INSERT INTO {database}.emp VALUES {', '.join(map(str, rows))}")
    return acid


def employees(acid: AcidSession) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in acid.sql("SELECT * FROM prod.emp").collect()), key=repr)


@pytest.mark.parametrize(("text", "expected"), first_quick(MERGES, 3))
def test_qualifiers_tell_target_and_source_apart(
    staff: AcidSession, text: str, expected: list[tuple[Any, ...]]
) -> None:
    staff.sql(text)
    assert employees(staff) == sorted(expected, key=repr)


@pytest.mark.parametrize("database", first_quick(["prod", "staging"]))
def test_the_current_database_does_not_change_what_a_full_name_means(staff: AcidSession, database: str) -> None:
    text, expected = MERGES[0]
    staff.sql(f"USE {database}")
    staff.sql(text)
    assert employees(staff) == expected


def test_the_builder_takes_full_qualifiers_too(staff: AcidSession) -> None:
    merge = staff.merge("prod.emp", "staging.emp").on("prod.emp.id = staging.emp.id")
    merge.when_matched_update({"pay": "staging.emp.pay"}).when_not_matched_insert_all().execute()
    assert employees(staff) == [(1, "Ann", 100), (2, "Bob", 250), (3, "Cid", 50), (4, "Dan", 400)]


@pytest.mark.parametrize("condition", first_quick(["id = 1", "emp.id = 1", "other.emp.id = staging.emp.id"]))
def test_a_name_of_both_or_of_neither_is_refused(staff: AcidSession, condition: str) -> None:
    answer = ask(staff.sql, f"MERGE INTO prod.emp USING staging.emp ON {condition} WHEN MATCHED THEN DELETE")
    assert isinstance(answer, Refusal)
    assert employees(staff) == TARGET
