"""The partitions of a table are looked at in their order, whatever the file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.errors import CorruptFile
from acidsql.fs import FileSystem, LocalFileSystem
from acidsql.metastore.model import Column, Partition, Table
from acidsql.plan.snapshot import take_snapshot
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

COUNT = 200


@pytest.mark.parametrize("root", ["", "s3a://bucket"], ids=["local", "remote"])
class TestPartitions:
    @pytest.fixture
    def table(self, root: str) -> Table:
        keys = (Column("p", "int"),)
        return Table("default", "t", f"{root}/w/t", (Column("a", "int"),), keys, {"transactional": "true"})

    @pytest.fixture
    def partitions(self, table: Table, tmp_path: Path) -> list[Partition]:
        for number in range(COUNT):
            bucket = tmp_path / f"w/t/p={number}/delta_0000001_0000001_0000/bucket_00000"
            bucket.parent.mkdir(parents=True)
            bucket.write_bytes(b"x" * number)
        return [Partition("default", "t", (str(n),), f"{table.location}/p={n}") for n in range(COUNT)]

    def _look(self, table: Table, partitions: list[Partition], folder: Path) -> list[int]:
        def resolve(location: str) -> tuple[FileSystem, str]:
            return LocalFileSystem(), f"{folder}/w/{location.partition('/w/')[2]}"

        valid = ValidWriteIdList("default.t", 1)
        found = take_snapshot(table, valid, ValidTxnList(1), partitions, resolve=resolve, is_pinned=True).partitions
        assert [one.partition for one in found] == partitions
        return [file.length for one in found for file in one.state.files]

    def test_are_seen_in_their_order(self, table: Table, partitions: list[Partition], tmp_path: Path) -> None:
        assert self._look(table, partitions, tmp_path) == list(range(COUNT))

    def test_of_several_that_are_broken_the_first_is_told(
        self, table: Table, partitions: list[Partition], tmp_path: Path
    ) -> None:
        for number in (33, 34, 150):
            (tmp_path / f"w/t/p={number}/delta_x").mkdir()
        with pytest.raises(CorruptFile, match="/p=33/delta_x"):
            self._look(table, partitions, tmp_path)
