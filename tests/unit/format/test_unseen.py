"""Whether others have removed rows, unseen by a snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql import fs
from acidsql.format.unseen import removed_rows

CASES: list[tuple[list[str], list[int], int | None]] = [
    ([], [7], None),  # it wrote elsewhere
    (["delta_0000007_0000007_0000"], [7], None),
    (["delta_0000005_0000009"], [7, 8], None),  # of a stream, or compacted
    (["delete_delta_0000007_0000007_0001"], [7], 7),
    (["delta_0000007_0000007_0000", "delete_delta_0000007_0000007_0000"], [6, 7, 8], 7),
    (["delete_delta_0000005_0000009_v0000033"], [4, 7], 7),
    (["base_0000007"], [7], 7),  # TRUNCATE, INSERT OVERWRITE
    (["base_0000006"], [7], None),
    (["base_0000009_v0000033"], [7], 7),  # what it had done is not to be told any more
    (["base_0000009_v0000033", "delta_0000007_0000007_0000"], [7], None),  # it is, while its files are there
    (["base_0000006_v0000033", "delta_0000007_0000007_0000"], [7], None),
    (["_tmp_3_00000000000000000000000000000000", "_delete_delta_0000007_0000007", "000000_0"], [7], None),
]


@pytest.mark.parametrize(("names", "unseen", "expected"), CASES)
def test_what_the_names_tell(tmp_path: Path, names: list[str], unseen: list[int], expected: int | None) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    assert removed_rows(*fs.resolve(str(tmp_path)), unseen) == expected
