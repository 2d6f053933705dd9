"""Partitioned tables: static and dynamic partitions, odd key values, partitions that one side adds or drops."""

from __future__ import annotations

import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both

ODD = [
    (3, 2, "a=b/c%[x]"),
    (4, None, None),
    (5, 2, "z"),
    (6, 3, None),
    (7, 4, "x y"),
    (8, 4, "żółć 😀"),
    (9, -5, 'it\'s "q" {b ^t~#?*:'),
    (10, 6, "UPPER"),
    (11, 6, "upper"),
    (12, 8, ".."),
]


def _values(rows: list[tuple[int, int | None, str | None]], shift: int = 0) -> str:
    def text(value: str | None) -> str:
        return "CAST(NULL AS string)" if value is None else "'" + value.replace("'", "\\'") + "'"

    def number(value: int | None) -> str:
        return "CAST(NULL AS int)" if value is None else str(value)

    return " UNION ALL ".join(f"SELECT {i + shift}, 'v{i}', {number(p)}, {text(q)}" for i, p, q in rows)


@pytest.mark.parametrize("by", SIDES)
def test_dynamic_partitions_with_odd_values(both: Both, by: str) -> None:
    other = ACIDSQL if by == HIVE else HIVE
    part = both.table("id int, v string", "p int, q string", by=other)
    part.on(by, "INSERT INTO {t} PARTITION (p, q) " + _values(ODD))
    names = part.partitions()
    part.on(other, "INSERT INTO {t} PARTITION (p, q) " + _values(ODD, 100))
    assert part.partitions() == names
    part.on(other, "UPDATE {t} SET v = concat(v, '!') WHERE p = 2")
    part.on(by, "UPDATE {t} SET v = upper(v) WHERE id IN (8, 109, 10)")
    part.on(other, "DELETE FROM {t} WHERE p IS NULL", "DELETE FROM {t} WHERE id = 107")
    for condition in ("p = 2", "p IS NULL", "q = 'a=b/c%[x]'", "p > 3 AND id < 100", "q = 'upper'"):
        part.answer_alike(f"SELECT id, v FROM {{t}} WHERE {condition}")
    part.answer_alike("SELECT p, count(*), sum(id) FROM {t} GROUP BY p")


def test_static_dynamic_and_half_static_inserts_by_turns(both: Both) -> None:
    part = both.table("id int, v string", "p int, q string", by=ACIDSQL)
    part.hive("INSERT INTO {t} PARTITION (p=1, q='a') VALUES (1, 'h'), (2, 'h')")
    part.acid("INSERT INTO {t} PARTITION (p=1, q='a') VALUES (3, 'a')")
    part.acid("INSERT INTO {t} PARTITION (p=2, q) VALUES (4, 'a', 'x'), (5, 'a', 'y')")
    part.hive("INSERT INTO {t} PARTITION (p=2, q) VALUES (6, 'h', 'x'), (7, 'h', 'z')")
    part.acid("UPDATE {t} SET v = 'u' WHERE q = 'x' OR q = 'a'")
    part.hive("UPDATE {t} SET v = concat(v, q) WHERE id IN (1, 4, 5)", "DELETE FROM {t} WHERE q = 'y'")
    part.acid("DELETE FROM {t} WHERE p = 2 AND q = 'z'")
    part.holds((1, "ua", 1, "a"), (2, "u", 1, "a"), (3, "u", 1, "a"), (4, "ux", 2, "x"), (6, "u", 2, "x"))
    assert part.partitions() == ["p=1/q=a", "p=2/q=x", "p=2/q=y", "p=2/q=z"]


def test_insert_overwrite_of_single_partitions(both: Both) -> None:
    part = both.table("id int", "p int", by=HIVE)
    part.hive("INSERT INTO {t} VALUES (1, 1), (2, 2), (3, 3)")
    part.acid("INSERT OVERWRITE TABLE {t} PARTITION (p=1) SELECT 10").holds((10, 1), (2, 2), (3, 3))
    part.hive("INSERT OVERWRITE TABLE {t} PARTITION (p=2) SELECT 20").holds((10, 1), (20, 2), (3, 3))
    part.acid("UPDATE {t} SET id = id + 1").hive("UPDATE {t} SET id = id + 1")
    part.acid("INSERT OVERWRITE TABLE {t} PARTITION (p) SELECT 30, 3 UNION ALL SELECT 40, 4")
    part.hive("INSERT OVERWRITE TABLE {t} PARTITION (p) SELECT 41, 4 UNION ALL SELECT 50, 5")
    part.holds((12, 1), (22, 2), (30, 3), (41, 4), (50, 5))
    assert part.partitions() == [f"p={i}" for i in range(1, 6)]


@pytest.mark.parametrize("by", SIDES)
@pytest.mark.parametrize("kind", ["full ACID", "insert-only"])
def test_a_partition_that_is_named_is_there_without_rows(both: Both, by: str, kind: str) -> None:
    other = ACIDSQL if by == HIVE else HIVE
    part = both.table("id int", "p int", by=other, insert_only=kind == "insert-only")
    part.on(by, "INSERT INTO {t} PARTITION (p=1) SELECT id FROM {t} WHERE id > 5")
    part.on(by, "INSERT OVERWRITE TABLE {t} PARTITION (p=2) SELECT id FROM {t} WHERE id > 5")
    part.holds()
    assert part.partitions() == ["p=1", "p=2"]
    part.on(other, "INSERT INTO {t} PARTITION (p=1) SELECT 10", "INSERT INTO {t} PARTITION (p=2) SELECT 20")
    part.holds((10, 1), (20, 2))


@pytest.mark.parametrize(
    "key", ["date", "timestamp", "decimal(10,2)", "boolean", "char(3)", "varchar(3)", "double", "bigint"]
)
def test_keys_of_other_types(both: Both, key: str) -> None:
    value = {
        "date": "date '2024-02-29'",
        "timestamp": "timestamp '2024-02-29 12:34:56.5'",
        "decimal(10,2)": "CAST('1.50' AS decimal(10,2))",
        "boolean": "true",
        "char(3)": "CAST('a' AS char(3))",
        "varchar(3)": "CAST('ab' AS varchar(3))",
        "double": "CAST(0.5 AS double)",
        "bigint": "-9223372036854775807L",
    }[key]
    t = both.table("id int", f"k {key}", by=ACIDSQL)
    t.acid(f"INSERT INTO {{t}} SELECT 1, {value}").hive(f"INSERT INTO {{t}} SELECT 2, {value}")
    assert len(t.partitions()) == 1
    t.acid(f"UPDATE {{t}} SET id = id + 10 WHERE k = {value}").hive(f"UPDATE {{t}} SET id = id + 1 WHERE k = {value}")
    assert sorted(r[0] for r in t.agree()) == [12, 13]


def test_partitions_that_hive_adds_and_drops(both: Both) -> None:
    t = both.table("id int", "p int", by=ACIDSQL)
    t.acid("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    t.hive("ALTER TABLE {t} ADD PARTITION (p=3)")
    assert t.partitions() == ["p=1", "p=2", "p=3"]
    t.acid("INSERT INTO {t} VALUES (3, 3)").hive("UPDATE {t} SET id = id + 10 WHERE p > 1")
    t.hive("ALTER TABLE {t} DROP PARTITION (p=1)").holds((12, 2), (13, 3))
    t.acid("INSERT INTO {t} VALUES (4, 1)").holds((12, 2), (13, 3), (4, 1))
    t.hive("TRUNCATE TABLE {t} PARTITION (p=2)").holds((13, 3), (4, 1))


def test_partitions_that_acidsql_adds_and_drops(both: Both) -> None:
    t = both.table("id int", "p int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 1), (2, 2)")
    t.acid("ALTER TABLE {t} ADD PARTITION (p=3)")
    assert t.partitions() == ["p=1", "p=2", "p=3"]
    t.hive("INSERT INTO {t} VALUES (3, 3)").acid("UPDATE {t} SET id = id + 10 WHERE p > 1")
    t.acid("ALTER TABLE {t} DROP PARTITION (p=1)").holds((12, 2), (13, 3))
    t.hive("INSERT INTO {t} VALUES (4, 1)").holds((12, 2), (13, 3), (4, 1))


def test_a_partition_that_acidsql_made_is_right_in_hive(both: Both) -> None:
    t = both.table("id int", "p int", by=HIVE)
    t.hive("INSERT INTO {t} PARTITION (p=1) VALUES (1)").acid("INSERT INTO {t} VALUES (2, 2)")

    def described(value: int) -> dict[str, str]:
        rows = both.ask(HIVE, f"DESCRIBE FORMATTED {t.name} PARTITION (p={value})")
        told = {str(r[0]).strip(): str(r[1]).strip() for r in rows if r[0] and str(r[0]).strip().endswith(":")}
        wanted = ("SerDe Library:", "InputFormat:", "OutputFormat:", "Compressed:", "Num Buckets:", "Sort Columns:")
        return {k: told[k] for k in wanted} | {"Location:": told["Location:"].replace(f"p={value}", "p=?")}

    assert described(2) == described(1)
