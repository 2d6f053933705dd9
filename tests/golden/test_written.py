"""Which directories of Hive-written tables belong to which write id, and what each write did to rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acidsql.metastore.model import Column, Table
from acidsql.plan.written import count_rows, written_directories
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

DATA = Path(__file__).parent / "data"


def _written(step: str) -> list[tuple[int, str, bool]]:
    """Write id, name and whether a compactor made it, of all directories that a step's snapshot may see."""
    meta = json.loads((DATA / step / "meta.json").read_text())
    [valid] = meta["validWriteIds"]
    aborted = tuple(valid["invalidWriteIds"])
    write_ids = ValidWriteIdList("d.t", valid["writeIdHighWaterMark"], (), aborted)
    table = Table("d", "t", str(DATA / step / "data"), (Column("a", "int"),), parameters={"transactional": "true"})
    found = written_directories(table, write_ids, ValidTxnList(10**9), None)
    return sorted((d.write_id, str(d.name), d.is_compacted) for d in found)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (
            "emp/03_delete",
            [
                (1, "delta_0000001_0000001_0000", False),
                (2, "delete_delta_0000002_0000002_0000", False),
                (2, "delta_0000002_0000002_0001", False),
                (3, "delete_delta_0000003_0000003_0000", False),
            ],
        ),
        ("emp/13_major_cleaned", [(7, "base_0000007_v*", True)]),
        ("ab/11_minor_cleaned", [(4, "delete_delta_0000001_0000005_v*", True), (4, "delta_0000001_0000005_v*", True)]),
    ],
)
def test_a_directory_stands_with_the_highest_committed_write_id_in_it(
    step: str, expected: list[tuple[int, str, bool]]
) -> None:
    found = [
        (w, name.partition("_v")[0] + "_v*" if compacted else name, compacted) for w, name, compacted in _written(step)
    ]
    assert found == expected


def test_rows_are_counted_from_the_footers_of_a_writes_own_directories() -> None:
    table = Table("d", "t", str(DATA / "emp/03_delete/data"), (Column("a", "int"),))
    found = written_directories(table, ValidWriteIdList("d.t", 3), ValidTxnList(10**9), None)
    counts = {w: count_rows([d for d in found if d.write_id == w]) for w in (1, 2, 3)}
    assert counts == {1: (3, 0), 2: (1, 1), 3: (0, 1)}
    assert count_rows([]) == (None, None)
