"""Deltas of Hive's streaming ingest: of a file only what its side file counts is read."""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest
from pyspark.sql import SparkSession

from acidsql.errors import CorruptFile
from acidsql.plan import prefixes
from acidsql.session import AcidSession
from acidsql.valid_ids import ValidWriteIdList
from tests.spark.hive_files import BUCKET_0, EVENT
from tests.spark.hive_tables import register

COLUMNS = [("a", "int"), ("b", "string")]
SCHEMA = f"struct<{EVENT},row:struct<a:int,b:string>>"


def stream(path: Path, first_write_id: int, transactions: int, rows: int = 10) -> list[int]:
    """A file to which each transaction appends rows and a footer; the lengths after each. The file is closed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "_orc_acid_version").write_text("2")
    ends = []
    with path.open("wb") as file:
        writer = pyorc.Writer(file, SCHEMA, batch_size=rows, stripe_size=1 << 40)
        writer.set_user_metadata(**{"hive.acid.version": b"2"})
        for n in range(transactions):
            write_id = first_write_id + n
            writer.writerows((0, write_id, BUCKET_0, i, write_id, (write_id * 100 + i, "x")) for i in range(rows))
            writer.write_intermediate_footer()
            file.flush()
            ends.append(file.tell())
        writer.close()
    return ends


def side_file(path: Path, *lengths: int) -> None:
    content = b"".join(length.to_bytes(8, "big") for length in lengths)
    path.with_name(f"{path.name}_flush_length").write_bytes(content)


def cut(path: Path, length: int, rest: bytes = b"") -> None:
    path.write_bytes(path.read_bytes()[:length] + rest)


def seen(acid: AcidSession) -> list[int]:
    return sorted(r[0] for r in acid.sql("SELECT a FROM t").collect())


def of(*write_ids: int) -> list[int]:
    return [w * 100 + i for w in write_ids for i in range(10)]


FILE = "t/delta_0000001_0000005/bucket_00000"


def test_a_file_counts_up_to_the_last_length_in_its_side_file(acid: AcidSession, tmp_path: Path) -> None:
    ends = stream(tmp_path / FILE, 1, 5)
    side_file(tmp_path / FILE, ends[0], ends[2])
    register(acid, tmp_path / "t", COLUMNS)
    assert seen(acid) == of(1, 2, 3)


@pytest.mark.parametrize("rest", [b"", b"half a stripe of the next transaction" * 100])
def test_a_file_that_is_still_being_written_is_read(acid: AcidSession, tmp_path: Path, rest: bytes) -> None:
    ends = stream(tmp_path / FILE, 1, 5)
    cut(tmp_path / FILE, ends[1], rest)
    side_file(tmp_path / FILE, *ends[:2])
    register(acid, tmp_path / "t", COLUMNS)
    assert seen(acid) == of(1, 2)
    assert acid.sql("SELECT count(*) FROM t WHERE a = 105").collect()[0][0] == 1


def test_of_a_file_with_length_0_nothing_is_read(acid: AcidSession, tmp_path: Path) -> None:
    ends = stream(tmp_path / FILE, 1, 2)
    side_file(tmp_path / FILE, 0)
    other = tmp_path / "t/delta_0000001_0000005/bucket_00001"
    other.write_bytes((tmp_path / FILE).read_bytes())
    side_file(other, *ends)
    register(acid, tmp_path / "t", COLUMNS)
    assert seen(acid) == of(1, 2)


def test_of_a_file_without_side_file_everything_is_read(acid: AcidSession, tmp_path: Path) -> None:
    stream(tmp_path / FILE, 1, 5)
    register(acid, tmp_path / "t", COLUMNS)
    assert seen(acid) == of(1, 2, 3, 4, 5)


def test_rows_of_open_and_aborted_transactions_in_the_file_are_not_seen(acid: AcidSession, tmp_path: Path) -> None:
    ends = stream(tmp_path / FILE, 1, 5)
    side_file(tmp_path / FILE, *ends[:4])
    register(acid, tmp_path / "t", COLUMNS, valid=ValidWriteIdList("default.t", 5, (4, 5), (2,)))
    assert seen(acid) == of(1, 3)


def test_a_frame_stays_what_it_was_while_the_file_grows(acid: AcidSession, tmp_path: Path) -> None:
    ends = stream(tmp_path / FILE, 1, 5)
    whole = (tmp_path / FILE).read_bytes()
    cut(tmp_path / FILE, ends[1])
    side_file(tmp_path / FILE, *ends[:2])
    register(acid, tmp_path / "t", COLUMNS)
    frame = acid.table("t")
    assert frame.count() == 20
    (tmp_path / FILE).write_bytes(whole)
    side_file(tmp_path / FILE, *ends)
    assert frame.count() == 20
    assert seen(acid) == of(1, 2, 3, 4, 5)


def test_rows_of_a_streamed_file_are_updated_and_deleted_by_their_ids(acid: AcidSession, tmp_path: Path) -> None:
    ends = stream(tmp_path / FILE, 1, 5)
    side_file(tmp_path / FILE, *ends[:3])
    register(acid, tmp_path / "t", COLUMNS)
    assert acid.sql("DELETE FROM t WHERE a % 100 > 0").collect()[0].num_deleted_rows == 27
    assert seen(acid) == [100, 200, 300]


def test_a_file_shorter_than_its_side_file_says_is_an_error(acid: AcidSession, tmp_path: Path) -> None:
    ends = stream(tmp_path / FILE, 1, 3)
    cut(tmp_path / FILE, ends[0])
    side_file(tmp_path / FILE, *ends)
    register(acid, tmp_path / "t", COLUMNS)
    with pytest.raises(CorruptFile):
        acid.sql("SELECT * FROM t")


def test_on_a_cluster_the_finished_part_is_copied_into_a_hidden_directory_of_the_table(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefixes, "runs_here_alone", lambda _: False)
    ends = stream(tmp_path / FILE, 1, 5)
    side_file(tmp_path / FILE, ends[0])
    register(acid, tmp_path / "t", COLUMNS)
    assert seen(acid) == of(1)
    [copy] = [p for p in (tmp_path / "t").iterdir() if p.name.startswith("_tmp_")]
    assert (copy / "bucket_00000").stat().st_size == ends[0]
    assert seen(acid) == of(1)
    assert len([p for p in (tmp_path / "t").iterdir() if p.name.startswith("_tmp_")]) == 1
