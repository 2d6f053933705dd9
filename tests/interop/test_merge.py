"""MERGE of both engines by turns: after each one both read the same rows and row ids."""

from __future__ import annotations

import pytest

from tests.interop.both import ACIDSQL, HIVE, SIDES, Both

UPSERT = (
    "MERGE INTO {t} t USING (SELECT stack(3, 1, 'one', 2, 'two', {new}, 'new') AS (id, v)) s ON t.id = s.id"
    " WHEN MATCHED AND t.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET v = concat(s.v, '{by}')"
    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, {k})"
)


@pytest.mark.parametrize("form", ["plain", "partitioned", "bucketed"])
@pytest.mark.parametrize("by", SIDES)
def test_merges_by_turns(both: Both, by: str, form: str) -> None:
    columns, keys = ("id int, v string", "k int") if form == "partitioned" else ("id int, v string, k int", "")
    t = both.table(columns, keys, by=by, buckets="(id) INTO 3 BUCKETS" if form == "bucketed" else "")
    t.hive("INSERT INTO {t} VALUES (1, 'a', 0), (5, 'b', 1)")
    t.acid("INSERT INTO {t} VALUES (2, 'gone', 1), (6, NULL, 2)")
    t.acid(UPSERT.replace("{new}", "10").replace("{by}", "A").replace("{k}", "1"))
    t.holds((1, "oneA", 0), (5, "b", 1), (6, None, 2), (10, "new", 1))
    t.hive(UPSERT.replace("{new}", "11").replace("{by}", "H").replace("{k}", "3"))
    t.holds((1, "oneH", 0), (2, "two", 3), (5, "b", 1), (6, None, 2), (10, "new", 1), (11, "new", 3))
    both.acid.sql("SET acidsql.write.driver.rows = 0")
    t.acid(UPSERT.replace("{new}", "12").replace("{by}", "J").replace("{k}", "2"))
    both.acid.sql("SET acidsql.write.driver.rows = 20000")
    t.acid("MERGE INTO {t} t USING (VALUES (5)) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE")
    t.hive("UPDATE {t} SET v = 'h' WHERE id >= 10").acid("DELETE FROM {t} WHERE id = 11")
    t.holds((1, "oneJ", 0), (2, "twoJ", 3), (6, None, 2), (10, "h", 1), (12, "h", 2))


def test_merges_only_of_acidsqls(both: Both) -> None:
    """Forms that Hive does not have: Hive reads what they write."""
    t = both.table("id int, v string", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    t.acid(
        "MERGE INTO {t} t USING (VALUES (2, 'B'), (9, 'Z')) s(id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        " WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DELETE"
        " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'orphan'"
    )
    t.holds((2, "B"), (3, "orphan"), (9, "Z"))
    t.hive("UPDATE {t} SET v = concat(v, '!')").holds((2, "B!"), (3, "orphan!"), (9, "Z!"))
    wider = "(VALUES (9, 'z', 1.5D)) s(id, v, n) ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    both.run(ACIDSQL, t.text(f"MERGE WITH SCHEMA EVOLUTION INTO {{t}} t USING {wider}"))
    assert sorted(map(tuple, both.ask(HIVE, f"SELECT * FROM {t.name}"))) == [
        (2, "B!", None),
        (3, "orphan!", None),
        (9, "z", 1.5),
    ]


@pytest.mark.parametrize("side", SIDES)
def test_both_find_a_row_with_two_partners(both: Both, side: str) -> None:
    t = both.table("id int, v string", by=ACIDSQL)
    t.hive("INSERT INTO {t} VALUES (1, 'a')")
    twice = "MERGE INTO {t} t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    with pytest.raises(Exception, match=r"(?i)cardinality.?violation"):
        both.run(side, t.text(twice))
    t.holds((1, "a"))


def test_several_inserts_in_one_statement(both: Both) -> None:
    a, b = both.table("id int, v string", by=HIVE), both.table("id int", "k int", by=ACIDSQL)
    a.hive("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    for number, side in enumerate(SIDES):
        both.run(
            side,
            f"FROM (SELECT id, v FROM {a.name}) x"
            f" INSERT INTO {a.name} SELECT id + {10 * (number + 1)}, v WHERE id < 3"
            f" INSERT INTO {b.name} PARTITION (k) SELECT id, id % 2",
        )
        assert len(a.agree()) == 3 + 2 * (number + 1)
        b.agree()
    a.hive("DELETE FROM {t} WHERE id > 20").acid("UPDATE {t} SET v = 'u' WHERE id > 10")
    b.acid("DELETE FROM {t} WHERE k = 1").hive("UPDATE {t} SET id = 0")
