"""Files of other writers on HDFS: original files, and streamed files whose writers are still at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from acidsql.session import AcidSession
from tests.hdfs.conftest import Directory
from tests.spark.hive_files import BUCKET_0, deletes, write_events, write_orc
from tests.spark.hive_tables import register
from tests.spark.test_streamed_files import of, stream

COLUMNS = [("a", "int"), ("b", "string")]


@pytest.fixture
def closed_at_the_end() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def upload(directory: Directory, local: Path, *below: str) -> None:
    path = directory.spark._jvm.org.apache.hadoop.fs.Path(f"file:{local}")  # type: ignore[union-attr]
    directory.hadoop.copyFromLocalFile(path, directory.path(*below))


def test_original_files_on_hdfs_are_numbered_and_hidden(
    acid: AcidSession, directory: Directory, tmp_path: Path
) -> None:
    local = tmp_path / "t"
    for number, name in enumerate(("000000_0", "000000_0_copy_1", "000001_0")):
        write_orc(local / name, "struct<a:int,b:string>", [(number * 10 + i, "x") for i in range(4)], stripe_rows=2)
    events = deletes(1, [(0, BUCKET_0, 1), (0, BUCKET_0, 6)])
    write_events(local / "delete_delta_0000001_0000001_0000/bucket_00000", "a:int,b:string", events)
    upload(directory, local, "t")
    register(acid, f"{directory.uri}/t", COLUMNS)
    found = acid.sql("SELECT ROW__ID.rowId, a FROM t ORDER BY ROW__ID.bucketId, 1").collect()
    assert [tuple(r) for r in found] == [
        (0, 0),
        (2, 2),
        (3, 3),
        (4, 10),
        (5, 11),
        (7, 13),
        *((i, 20 + i) for i in range(4)),
    ]


def test_a_file_that_is_being_written_on_hdfs_is_read_as_far_as_its_side_file_says(
    acid: AcidSession, directory: Directory, tmp_path: Path, closed_at_the_end: ExitStack
) -> None:
    ends = stream(tmp_path / "local" / "bucket_00000", 1, 5)
    content = (tmp_path / "local" / "bucket_00000").read_bytes()

    def write(name: str, data: bytes) -> None:
        opened: Any = directory.hadoop.create(directory.path("t", "delta_0000001_0000005", name))
        closed_at_the_end.enter_context(closing(opened))
        opened.write(data)
        opened.hflush()

    write("bucket_00000", content[: ends[2] + 10])
    write("bucket_00000_flush_length", b"".join(end.to_bytes(8, "big") for end in ends[:3]))
    register(acid, f"{directory.uri}/t", COLUMNS)
    assert sorted(r.a for r in acid.sql("SELECT a FROM t").collect()) == of(1, 2, 3)
