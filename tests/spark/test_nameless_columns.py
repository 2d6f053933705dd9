"""Files whose columns are all called ``_col<number>``, as Hive's CTAS wrote them: orc-core reads them by position."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.answers import rows
from tests.spark.hive_files import inserts, write_events, write_orc
from tests.spark.hive_tables import register

FIELDS = [("int", "id"), ("string", "name"), ("bigint", "v"), ("date", "d"), ("struct<_col0:int,_col1:int>", "s")]
IN_FILES = ",".join(f"_col{i}:{type}" for i, (type, _) in enumerate(FIELDS))
ROWS = [(i, None if i == 2 else f"n{i}", i * 100, None, (i, -i)) for i in range(1, 7)]
INSERT_ONLY = {"transactional_properties": "insert_only"}


def make(acid: AcidSession, kind: str, place: Path, names: list[str]) -> None:
    """A table ``t`` of files of a kind; its columns have these names."""
    if kind == "own":
        columns = ", ".join(f"`{name}` {type}" for (type, _), name in zip(FIELDS, names, strict=True))
        acid.sql(f"CREATE TRANSACTIONAL TABLE t ({columns})")
        acid.sql(
            "INSERT INTO t SELECT CAST(id AS int), CASE WHEN id <> 2 THEN concat('n', id) END, id * 100, NULL,"
            " named_struct('_col0', CAST(id AS int), '_col1', CAST(-id AS int)) FROM range(1, 7)"
        )
        return
    if kind == "events":
        write_events(place / "delta_0000001_0000001_0000/bucket_00000", IN_FILES, inserts(1, ROWS))
    elif kind == "version 1":
        events = [*inserts(1, ROWS[:-1]), (1, 1, 0, 0, 2, ROWS[0])]
        write_events(place / "delta_0000001_0000001/bucket_00000", IN_FILES, inserts(1, ROWS, bucket=0), version=1)
        write_events(place / "delta_0000002_0000002/bucket_00000", IN_FILES, events[-1:], version=1)
    elif kind == "originals":
        write_orc(place / "000000_0", f"struct<{IN_FILES}>", ROWS)
    else:
        write_orc(place / "delta_0000001_0000001_0000/000000_0", f"struct<{IN_FILES}>", ROWS)
    columns_of = [(name, type) for (type, _), name in zip(FIELDS, names, strict=True)]
    register(acid, place, columns_of, parameters=INSERT_ONLY if kind == "insert-only" else None)


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize("named", [True, False], ids=["named by the table", "nowhere"])
@pytest.mark.parametrize("kind", ["events", "version 1", "originals", "insert-only", "own"])
def test_each_column_has_its_own_values(acid: AcidSession, tmp_path: Path, kind: str, named: bool) -> None:
    names = [name if named else f"_col{i}" for i, (_, name) in enumerate(FIELDS)]
    make(acid, kind, tmp_path / "files", names)
    for i, name in enumerate(names):
        assert rows(acid, f"SELECT `{name}` FROM t") == sorted(((row[i],) for row in ROWS), key=repr)
    first, name, v, day, s = names
    assert rows(acid, f"SELECT `{first}` FROM t WHERE `{v}` = 300") == [(3,)]
    assert rows(acid, f"SELECT `{v}`, `{s}`.`_col1` FROM t WHERE `{s}`.`_col0` = 4") == [(400, -4)]
    assert rows(acid, f"SELECT max(`{v}`), count(`{name}`), count(`{day}`), count(*) FROM t") == [(600, 5, 0, 6)]
    assert rows(acid, f"SELECT `{name}` FROM t WHERE `{name}` >= 'n5'") == [("n5",), ("n6",)]
    if kind == "insert-only":
        return
    acid.sql(f"DELETE FROM t WHERE `{v}` <= 3")
    acid.sql(f"UPDATE t SET `{name}` = concat(`{name}`, '!') WHERE `{v}` = 400")
    acid.sql(
        f"MERGE INTO t USING (SELECT 'n5' AS k UNION ALL SELECT 'n0') s ON t.`{name}` = s.k WHEN MATCHED THEN DELETE"
    )
    acid.sql(f"DELETE FROM t WHERE `{s}`.`_col1` = -1")
    expected = [(3, "n3", 300), (4, "n4!", 400), (6, "n6", 600), (2, None, 200)]
    assert set(rows(acid, f"SELECT `{first}`, `{name}`, `{v}` FROM t")) == set(expected)
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert set(rows(acid, f"SELECT `{first}`, `{name}`, `{v}` FROM t")) == set(expected)
    assert rows(acid, f"SELECT `{v}` FROM t WHERE `{name}` IS NULL") == [(200,)]
