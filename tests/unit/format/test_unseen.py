"""Whether others have removed rows, unseen by a snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql import fs
from acidsql.format.unseen import Snapshot, hidden_by, removed_rows
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

SEEN = Snapshot(ValidTxnList(20), ValidWriteIdList("default.t", 9, (3, 4, 6, 7)))
NOW = Snapshot(ValidTxnList(40, aborted_ids=(35,)), ValidWriteIdList("default.t", 12, aborted_ids=(11,)))
CASES: list[tuple[list[str], list[int], int | None]] = [
    ([], [7], None),  # it wrote elsewhere
    (["delta_0000007_0000007_0000"], [7], None),
    (["delta_0000005_0000009"], [7, 8], None),  # of a stream, or compacted
    (["delete_delta_0000007_0000007_0001"], [7], 7),
    (["delta_0000007_0000007_0000", "delete_delta_0000007_0000007_0000"], [6, 7, 8], 7),
    (["delete_delta_0000005_0000009_v0000033"], [4, 7], 7),
    (["base_0000007"], [7], 7),  # TRUNCATE, INSERT OVERWRITE
    (["base_0000006"], [7], None),
    (["base_0000008"], [3], None),  # of a transaction that the snapshot sees
    (["base_0000008/compacted"], [3], 3),
    (["base_0000011"], [7], None),  # of a writer that was killed
    (["base_0000009_v0000035"], [7], None),
    (["base_0000009_v0000033"], [7], 7),  # what it had done is not to be told any more
    (["base_0000009_v0000019"], [3], None),
    (["base_0000009_v0000033", "delta_0000007_0000007_0000"], [7], None),  # it is, while its files are there
    (["base_0000006_v0000033", "delta_0000007_0000007_0000"], [7], None),
    (["_tmp_3_00000000000000000000000000000000", "_delete_delta_0000007_0000007", "000000_0"], [7], None),
]


@pytest.mark.parametrize(("names", "unseen", "expected"), CASES)
def test_what_the_names_tell(tmp_path: Path, names: list[str], unseen: list[int], expected: int | None) -> None:
    for name in names:
        directory, _, compacted = name.partition("/")
        (tmp_path / directory).mkdir()
        if compacted:
            (tmp_path / directory / "_metadata_acid").write_text('{"thisFileVersion":"0","dataFormat":"compacted"}')
    assert removed_rows(*fs.resolve(str(tmp_path)), unseen, SEEN, NOW) == expected


@pytest.mark.parametrize(
    ("names", "unseen", "expected"),
    [
        ([], [7], None),
        (["delta_0000007_0000007_0000"], [7], 7),
        (["delta_0000006_0000006_0000"], [7], None),
        (["base_0000009_v0000033", "delta_0000007_0000007_0000"], [7], 7),
        (["base_0000009_v0000019"], [3], None),
    ],
)
def test_who_has_added_rows(tmp_path: Path, names: list[str], unseen: list[int], expected: int | None) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    assert removed_rows(*fs.resolve(str(tmp_path)), unseen, SEEN, NOW, or_added=True) == expected


def test_what_was_compacted_since(tmp_path: Path) -> None:
    place = fs.resolve(str(tmp_path))
    for name in ("base_0000006", "base_0000008_v0000019", "base_0000008_v0000035", "delta_0000007_0000008_v0000033"):
        (tmp_path / name).mkdir()
        assert removed_rows(*place, (), SEEN, NOW, or_compacted=True) is None
    (tmp_path / "base_0000009_v0000033").mkdir()
    assert removed_rows(*place, (), SEEN, NOW, or_compacted=True) == 9


def test_which_base_hides_what_is_written(tmp_path: Path) -> None:
    place, committed = fs.resolve(str(tmp_path)), ValidWriteIdList("default.t", 11, (10,), (11,))
    assert hidden_by(*place, 7, committed) is None
    for name in (
        "base_0000006_v0000033",
        "delta_0000009_0000009_0000",
        "_base_0000009",
        "base_0000010",
        "base_0000011",
    ):
        (tmp_path / name).mkdir()
    assert hidden_by(*place, 7, committed) is None
    (tmp_path / "base_0000008").mkdir()
    assert (hidden_by(*place, 7, committed), hidden_by(*place, 8, committed)) == (8, None)
