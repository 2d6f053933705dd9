"""Timestamps finer than a microsecond, which Hive stores and Spark cannot carry: none is cut without a word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyorc
import pytest

from acidsql import fs
from acidsql.errors import ConstraintViolation
from acidsql.format.orc import read_events
from acidsql.format.schema import EVENT_COLUMNS
from acidsql.format.values import CONVERTERS
from acidsql.session import AcidSession
from tests.spark.hive_files import inserts

SECONDS = {1: (1_700_000_000, 123_456_789), 2: (1_700_000_000, 123_456_000), 3: (-62_135_596_800, 5), 4: None}
"""id: seconds and nanoseconds; the third is in year 1, beyond what 64 bits of nanoseconds hold."""


@pytest.fixture(params=["20000", "0"], ids=["driver", "job"])
def hives(acid: AcidSession, warehouse: Path, request: pytest.FixtureRequest) -> AcidSession:
    """A table with a delta as Hive writes it: nanoseconds in a plain column, and in an array."""
    acid.sql(f"SET acidsql.write.driver.rows = {request.param}")
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, at timestamp, n int, more array<timestamp>)")
    acid.sql("INSERT INTO t VALUES (9, timestamp'2024-01-01 00:00:00.000001', 1, NULL)")
    acid.sql("INSERT INTO t VALUES (0, NULL, 0, NULL)")
    delta = warehouse / "t" / "delta_0000002_0000002_0000"
    row = "struct<id:int,at:timestamp,n:int,more:array<timestamp>>"
    rows = [(id, at, id, [(0, 7)] if id == 2 else None) for id, at in SECONDS.items()]
    _write_inserts(delta / "bucket_00000", row, 2, rows)
    return acid


def _write_inserts(path: Path, row: str, write_id: int, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert events whose timestamps are seconds and nanoseconds."""
    names = ("int", "bigint", "int", "bigint", "bigint", row)
    schema = f"struct<{','.join(f'{n}:{t}' for n, t in zip(EVENT_COLUMNS, names, strict=True))}>"
    with open(path, "wb") as file, pyorc.Writer(file, schema, converters=CONVERTERS) as writer:
        writer.writerows(inserts(write_id, rows))


def _stored(warehouse: Path) -> dict[int, object]:
    """The timestamp of each id in all insert events, newest last, as the files have it."""
    found = {}
    for delta in sorted((warehouse / "t").glob("delta_*")):
        for path in sorted(delta.glob("bucket_*")):
            filesystem, where = fs.resolve(str(path))
            found.update({e.row["id"]: e.row["at"] for e in read_events(filesystem, where) if e.row})
    return found


@pytest.mark.parametrize("id", [1, 2, 3])
def test_a_row_that_would_lose_nanoseconds_is_not_rewritten(hives: AcidSession, id: int) -> None:
    """The second one has them in an array only."""
    with pytest.raises(ConstraintViolation, match="nanoseconds"):
        hives.sql(f"UPDATE t SET n = 0 WHERE id = {id}")
    merge = f"MERGE INTO t USING (VALUES ({id})) s(id) ON t.id = s.id WHEN MATCHED THEN"
    with pytest.raises(ConstraintViolation, match="nanoseconds"):
        hives.sql(f"{merge} UPDATE SET n = 0")
    assert hives.sql("SELECT count(*) FROM t WHERE n = 0 AND id > 0").collect()[0][0] == 0
    assert hives.sql(f"{merge} DELETE").collect()[0][0] == 1


def test_rows_without_them_are_rewritten(hives: AcidSession, warehouse: Path) -> None:
    assert hives.sql("UPDATE t SET n = -1 WHERE id IN (4, 9)").collect()[0][0] == 2
    assert _stored(warehouse)[9] == "2024-01-01 00:00:00.000001"


def test_setting_all_timestamps_loses_nothing(hives: AcidSession) -> None:
    assert hives.sql("UPDATE t SET at = NULL, more = NULL WHERE id < 4 AND id > 0").collect()[0][0] == 3


def test_truncate_is_the_users_word(hives: AcidSession, warehouse: Path) -> None:
    hives.sql("SET acidsql.timestamp.nanoseconds = truncate")
    assert hives.sql("UPDATE t SET n = -1 WHERE id = 1").collect()[0][0] == 1
    assert _stored(warehouse)[1] == "2023-11-14 22:13:20.123456"


def test_a_name_with_a_dot_is_no_field_of_a_struct(acid: AcidSession, warehouse: Path) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int, `a.b` timestamp, n int, a struct<b:int>, m map<string,int>)")
    acid.sql("INSERT INTO t VALUES (9, NULL, 1, named_struct('b', 1), map('x', 1))")
    delta = warehouse / "t" / "delta_0000001_0000001_0000"
    row = "struct<id:int,`a.b`:timestamp,n:int,a:struct<b:int>,m:map<string,int>>"
    rows = [(i, (1_700_000_000, nanos), 1, (5,), {"x": i}) for i, nanos in ((1, 123_456_789), (2, 123_456_000))]
    _write_inserts(delta / "bucket_00000", row, 1, rows)
    with pytest.raises(ConstraintViolation, match="nanoseconds"):
        acid.sql("UPDATE t SET n = 0 WHERE id = 1")
    assert acid.sql("UPDATE t SET n = 0 WHERE id = 2").collect()[0].num_updated_rows == 1
