"""Fields of structs are found by their names: what a compaction writes is what readers saw before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from acidsql.session import AcidSession

STRUCTS = {
    "fields swapped": (
        "struct<x:int,y:int>",
        "struct<y:int,x:int>",
        "named_struct('x', 1, 'y', 2)",
        "named_struct('y', 4, 'x', 3)",
    ),
    "a field renamed": (
        "struct<x:int,y:string>",
        "struct<x:int,w:string>",
        "named_struct('x', 1, 'y', 'a')",
        "named_struct('x', 2, 'w', 'b')",
    ),
    "another letter case": ("struct<x:int>", "struct<X:int>", "named_struct('x', 1)", "named_struct('X', 2)"),
    "swapped below an array and a map": (
        "map<string,array<struct<x:int,y:int>>>",
        "map<string,array<struct<y:int,x:int>>>",
        "map('k', array(named_struct('x', 1, 'y', 2), NULL))",
        "map('k', array(named_struct('y', 4, 'x', 3)))",
    ),
    "swapped and widened": (
        "struct<x:int,y:int>",
        "struct<y:bigint,x:int,z:string>",
        "named_struct('x', 1, 'y', 2)",
        "named_struct('y', 4L, 'x', 3, 'z', 'new')",
    ),
}


INSERT_ONLY = "TBLPROPERTIES ('transactional_properties'='insert_only')"


@pytest.mark.parametrize("case", STRUCTS)
@pytest.mark.parametrize(
    ("kind", "properties"),
    [("major", ""), ("minor", ""), ("rebalance", ""), ("major", INSERT_ONLY), ("minor", INSERT_ONLY)],
)
def test_a_compaction_finds_fields_of_structs_by_name_as_readers_do(
    acid: AcidSession, case: str, kind: str, properties: str
) -> None:
    old, new, before, after = STRUCTS[case]
    acid.sql(f"CREATE TRANSACTIONAL TABLE t (A int, s {old}, last int) {properties}")
    acid.sql(f"INSERT INTO t VALUES (1, {before}, 1)")
    acid.sql(f"INSERT INTO t VALUES (2, {before}, 2)")
    acid.sql(f"ALTER TABLE t CHANGE s s {new}")
    acid.sql("ALTER TABLE t CHANGE a b int")
    acid.sql(f"INSERT INTO t VALUES (3, {after}, 3)")
    acid.sql("INSERT INTO t VALUES (4, NULL, 4)")
    if not properties:
        acid.sql("DELETE FROM t WHERE b = 2")
    expected = acid.sql("SELECT * FROM t ORDER BY b").collect()
    acid.sql(f"ALTER TABLE t COMPACT '{kind}' AND WAIT")
    acid.compactor.run_once()
    assert acid.sql("SELECT * FROM t ORDER BY b").collect() == expected


def test_a_compaction_of_loaded_files_finds_fields_of_structs_by_name(acid: AcidSession, tmp_path: Path) -> None:
    fields = pa.struct([("y", pa.int32()), ("x", pa.int32())])
    orc.write_table(
        pa.table({"a": pa.array([1], pa.int32()), "s": pa.array([{"y": 1, "x": 2}], fields)}), tmp_path / "f"
    )
    acid.sql("CREATE TRANSACTIONAL TABLE t (a int, s struct<x:int,y:int>)")
    for _ in range(2):
        acid.sql(f"LOAD DATA LOCAL INPATH '{tmp_path}/f' INTO TABLE t")
    acid.sql("INSERT INTO t VALUES (1, named_struct('x', 2, 'y', 1))")
    acid.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert [r.asDict(True) for r in acid.sql("SELECT s.x, s.y FROM t").collect()] == [{"x": 2, "y": 1}] * 3
