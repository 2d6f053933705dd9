"""Statements over more partitions than anybody would list: the rows are the same, and so is what is on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acidsql.errors import CorruptFile
from acidsql.plan.leaves import estimated_bytes, read_bytes
from acidsql.plan.local import DriverLimit, may_be_small
from acidsql.session import AcidSession
from tests.spark.tree import tree

COUNT = 150


@pytest.fixture
def t(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id bigint, v int, s string) PARTITIONED BY (p int, q string)")
    rows = f"id, int(id % 7), concat('s', id), int(id % {COUNT}), if(id % 2 = 0, concat('a/b=', id % 3), NULL)"
    acid.sql(f"INSERT INTO t SELECT {rows} FROM range({2 * COUNT})")
    return acid


def _rows(acid: AcidSession) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in acid.sql("SELECT id, v, s, p, q FROM t").collect())


def _expected() -> list[tuple[Any, ...]]:
    return [(i, i % 7, f"s{i}", i % COUNT, f"a/b={i % 3}" if i % 2 == 0 else None) for i in range(2 * COUNT)]


def test_rows_are_read_from_the_partitions_that_they_were_inserted_into(t: AcidSession) -> None:
    assert _rows(t) == _expected()


@pytest.mark.parametrize("rows", [1_000_000, 10], ids=["by the driver", "by a job"])
def test_all_rows_are_updated_and_deleted_in_their_partitions(t: AcidSession, tmp_path: Path, rows: int) -> None:
    t.sql(f"SET acidsql.write.driver.rows = {rows}")
    [counts] = t.sql("UPDATE t SET v = v + 1, s = concat(s, '!')").collect()
    assert counts["num_updated_rows"] == 2 * COUNT
    assert _rows(t) == [(i, v + 1, f"{s}!", p, q) for i, v, s, p, q in _expected()]
    [counts] = t.sql("DELETE FROM t WHERE id % 3 = 0").collect()
    assert counts["num_deleted_rows"] == 2 * COUNT // 3
    assert _rows(t) == [(i, v + 1, f"{s}!", p, q) for i, v, s, p, q in _expected() if i % 3]
    files = tree(Path(t.warehouse) / "t")
    assert not [f for f in files if "_tmp_" in f or f.endswith(".crc") or "part-" in f]
    for kind in ("delta_0000002", "delete_delta_0000002"):
        written = {f.rpartition(f"/{kind}")[0] for f in files if f"/{kind}" in f}
        assert written == {f.rpartition("/delta_0000001")[0] for f in files if "/delta_0000001" in f}


def test_of_several_broken_partitions_the_first_is_told(t: AcidSession) -> None:
    directories = sorted(p for p in Path(t.warehouse, "t").iterdir() if p.name.startswith("p="))
    for number in (20, 70, 120):
        [broken] = directories[number].glob("q=*/delta_0000001_0000001_0000/bucket_00000")
        broken.write_bytes(b"no ORC file")
    with pytest.raises(CorruptFile, match=f"/{directories[20].name}/"):
        t.sql("SELECT * FROM t")


def test_spark_takes_the_rows_of_many_partitions_for_more_than_they_are(acid: AcidSession) -> None:
    """Its estimate of a join with the table of the partitions is the product of both sizes."""
    acid.sql("CREATE TRANSACTIONAL TABLE many (id int, v string) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO many SELECT id, 'v', id % 50 FROM range(100)")
    frame = acid.sql("SELECT id, v FROM many")
    small = DriverLimit(rows=1000, bytes=read_bytes(frame) * 8)
    assert estimated_bytes(frame) > small.bytes
    assert may_be_small(frame, small)
    assert not may_be_small(frame, DriverLimit(rows=1000, bytes=small.bytes - 1))
