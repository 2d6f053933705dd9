"""DESCRIBE HISTORY and VERSION AS OF over what both engines wrote."""

from __future__ import annotations

from pathlib import Path

from tests.interop.both import ACIDSQL, HIVE, Both


def test_the_writes_of_both_sides_are_told_by_their_directories(both: Both) -> None:
    t = both.table("id int, v string", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")
    t.acid("INSERT INTO {t} VALUES (3, 'c')")
    t.hive("UPDATE {t} SET v = 'x' WHERE id = 1")
    t.acid("DELETE FROM {t} WHERE id = 3")
    t.hive("INSERT OVERWRITE TABLE {t} VALUES (9, 'z')")
    t.hive("TRUNCATE TABLE {t}")
    t.acid("INSERT INTO {t} VALUES (10, 'n')")
    found = [tuple(r) for r in both.acid.sql(f"DESCRIBE HISTORY {t.name}").collect()]
    # Hive's INSERTs are also write ids of their statistics: only the order is compared
    assert [(r[3], r[6], r[7], r[8]) for r in reversed(found)] == [
        ("INSERT", 2, 0, True),
        ("INSERT", 1, 0, True),
        ("UPDATE", 1, 1, True),
        ("DELETE", 0, 1, True),
        ("OVERWRITE", 1, None, True),
        ("TRUNCATE", 0, None, True),
        ("INSERT", 1, 0, True),
    ]
    assert all(r[1] is None and r[2] is None for r in found), "the metastore's calls do not tell"
    counts = [both.acid.table(t.name, version=r[0]).count() for r in reversed(found)]
    assert counts == [2, 3, 3, 2, 1, 0, 1]


def test_a_load_without_a_partition_is_hives_own(both: Both, tmp_path: Path) -> None:
    made = both.acid.spark.sql("SELECT * FROM VALUES (1, 'a', 5), (2, 'b', 6), (3, 'c', 5) AS t(id, v, k)")
    made.coalesce(1).write.orc(f"file:{tmp_path}/in")
    one, other = both.table("id int, v string", "k int", by=HIVE), both.table("id int, v string", "k int", by=HIVE)
    one.hive(f"LOAD DATA LOCAL INPATH '{tmp_path}/in' INTO TABLE {{t}}")
    other.acid(f"LOAD DATA LOCAL INPATH '{tmp_path}/in' INTO TABLE {{t}}")
    assert one.agree() == other.agree()
    both.run(ACIDSQL, other.text("UPDATE {t} SET v = 'x' WHERE k = 5"))
    other.agree()
