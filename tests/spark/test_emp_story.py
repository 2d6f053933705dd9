"""The first five minutes: INSERT, UPDATE and DELETE on ``emp``, rows and directory tree after each statement."""

from __future__ import annotations

from pathlib import Path

from acidsql.session import AcidSession
from tests.spark.tree import tree, with_version

CREATE = "CREATE TABLE emp (id int, name string, salary int) STORED AS ORC TBLPROPERTIES('transactional'='true')"


def test_emp_story_writes_the_documented_directories(acid: AcidSession, warehouse: Path) -> None:
    emp = warehouse / "emp"
    acid.sql(CREATE)
    assert tree(emp) == []

    counts = acid.sql("INSERT INTO emp VALUES (1, 'Ann', 5000), (2, 'Bob', 5500), (3, 'Cid', 4000)").collect()
    assert [tuple(r) for r in counts] == [(3, 0, 0, 3)]
    first = "delta_0000001_0000001_0000"
    assert tree(emp) == with_version(first)

    assert [tuple(r) for r in acid.sql("UPDATE emp SET salary=6000 WHERE id=2").collect()] == [(1, 1, 0, 0)]
    second = ["delete_delta_0000002_0000002_0000", "delta_0000002_0000002_0000"]
    assert tree(emp) == with_version(first, *second)

    assert [tuple(r) for r in acid.sql("DELETE FROM emp WHERE id=3").collect()] == [(1, 0, 1, 0)]
    assert tree(emp) == with_version(first, *second, "delete_delta_0000003_0000003_0000")

    rows = acid.sql("SELECT ROW__ID, * FROM emp ORDER BY id").collect()
    assert [(tuple(r[0]), *r[1:]) for r in rows] == [
        ((1, 536870912, 0), 1, "Ann", 5000),
        ((2, 536870912, 0), 2, "Bob", 6000),
    ]
    for path in emp.glob("*/_orc_acid_version"):
        assert path.read_bytes() == b"2"


def test_a_count_reads_no_column_and_still_hides_deleted_rows(acid: AcidSession) -> None:
    acid.sql(CREATE)
    acid.sql("INSERT INTO emp VALUES (1, 'Ann', 5000), (2, 'Bob', 5500), (3, 'Cid', 4000)")
    acid.sql("DELETE FROM emp WHERE name = 'Bob'")
    assert acid.sql("SELECT count(*) FROM emp").collect()[0][0] == 2
    assert acid.table("emp").count() == 2
