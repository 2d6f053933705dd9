"""A compaction keeps numbers bit by bit: NaNs that differ in sign and payload come out as they went in.

Files without compression hold them as they are (8 or 4 bytes, little-endian), so that no reader stands in between: one
might make all NaNs alike.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from acidsql.format.bucket import encode
from acidsql.format.delete_set import reach
from acidsql.format.inputs import InputFile
from acidsql.format.names import DeltaName
from acidsql.format.orc import write_deletes, write_inserts
from acidsql.format.rewrite import Rewrite, StripeSizes, rewrite_rows
from acidsql.fs import LocalFileSystem
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidWriteIdList

FS = LocalFileSystem()
IDS = ValidWriteIdList("db.t", 9).for_compaction()
ROW_TYPE = Struct((("d", parse_type("double")), ("f", parse_type("float"))))

DOUBLES = [
    0x7FF8000000000000,  # Java's
    0xFFF8000000000000,  # what x86 makes of 0/0
    0x7FF8000000000123,
    0xFFFEDCBA98765432,
    0x7FF0000000000001,  # signalling
    0xFFF4000000000ABC,
]
FLOATS = [
    0x7FC00000,
    0xFFC00000,
    0x7FC00123,
    0xFFFEDCBA,
    0x7F800001,  # signalling
    0xFFA00ABC,
]
QUIET = 0x00400000
"""The bit that a signalling float gets wherever it is made a double: Arrow does so as it decodes and encodes ORC."""
FIRST_DOUBLE, FIRST_FLOAT = 0x4004CCCCCCCCCCCD, 0x40266667
"""The numbers of the first row: no NaNs."""


def of_doubles(bits: list[int]) -> bytes:
    return struct.pack(f"<{len(bits)}Q", *bits)


def of_floats(bits: list[int]) -> bytes:
    return struct.pack(f"<{len(bits)}I", *bits)


@pytest.fixture
def stored(tmp_path: Path) -> InputFile:
    """A delta with a row of numbers, and one of NaNs for each pattern."""
    doubles = struct.unpack("<7d", of_doubles([FIRST_DOUBLE, *DOUBLES]))
    places = [2.6 + number for number in range(7)]  # the writer makes signalling floats quiet: they are put in later
    rows = pa.table({"d": pa.array(doubles, pa.float64()), "f": pa.array(places, pa.float32())})
    path = tmp_path / str(DeltaName(1, 1, 0)) / "bucket_00000"
    write_inserts(FS, str(path), ROW_TYPE, rows, write_id=1, bucket=encode(0), compression="none")
    content = path.read_bytes()
    assert content.count(struct.pack("<7f", *places)) == 1
    path.write_bytes(content.replace(struct.pack("<7f", *places), of_floats([FIRST_FLOAT, *FLOATS])))
    assert of_doubles([FIRST_DOUBLE, *DOUBLES]) in path.read_bytes()
    return InputFile(str(path), reach(DeltaName(1, 1, 0)))


@pytest.fixture
def work(tmp_path: Path, stored: InputFile) -> Rewrite:
    return Rewrite(str(tmp_path / "base_0000002" / "bucket_00000"), ROW_TYPE, "none", IDS, (stored,))


def test_given_nans_of_several_patterns_when_their_stripe_is_copied_then_every_bit_stays(work: Rewrite) -> None:
    made = rewrite_rows(FS, work)
    assert (made.copied, made.encoded, made.rows) == (1, 0, 7)
    content = Path(work.target).read_bytes()
    assert of_doubles([FIRST_DOUBLE, *DOUBLES]) in content
    assert of_floats([FIRST_FLOAT, *FLOATS]) in content


@pytest.mark.parametrize("small_rows", [1, StripeSizes().small_rows], ids=["a large stripe", "a small stripe"])
def test_given_nans_of_several_patterns_when_a_row_of_their_stripe_is_deleted_then_sign_and_payload_stay(
    work: Rewrite, tmp_path: Path, small_rows: int
) -> None:
    work = replace(work, sizes=StripeSizes(small_rows=small_rows))
    name = DeltaName(2, 2, 0, is_delete=True)
    path = str(tmp_path / str(name) / "bucket_00000")
    keys = pa.table({"originalTransaction": [1], "bucket": pa.array([encode(0)], pa.int32()), "rowId": [0]})
    write_deletes(FS, path, ROW_TYPE, keys, write_id=2)
    made = rewrite_rows(FS, replace(work, deletes=(InputFile(path, reach(name, deletes=True)),)))
    assert (made.copied, made.encoded, made.rows, made.dropped) == (0, 1, 6, 1)
    content = Path(work.target).read_bytes()
    assert of_doubles(DOUBLES) in content
    assert of_floats([bits | QUIET for bits in FLOATS]) in content
