"""A directory that is on its way arrives once, whoever brings it there, and however often."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.commands.ddl.rename_journal import PREFIX, Move, finish_moves, moves_of
from acidsql.errors import StorageError
from acidsql.fs import LocalFileSystem, renames_in_one_step
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import Column, Table
from acidsql.settings import Settings


@pytest.fixture
def move(tmp_path: Path) -> Move:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").write_text("rows")
    return Move.of(str(tmp_path / "old"), str(tmp_path / "below" / "new"))


def test_a_directory_is_moved_with_the_parents_that_it_needs(move: Move) -> None:
    move.carry_out()
    assert Path(move.target, "file").read_text() == "rows"
    assert not Path(move.source).exists()


def test_moving_twice_is_moving(move: Move) -> None:
    move.carry_out()
    move.carry_out()
    assert Path(move.target, "file").read_text() == "rows"


def test_what_is_made_at_the_old_place_afterwards_is_left_alone(move: Move) -> None:
    move.carry_out()
    Path(move.source).mkdir()
    move.carry_out()
    assert Path(move.source).is_dir()


def test_somebody_faster_is_no_error(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    real = LocalFileSystem.rename

    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        real(self, source, target)
        raise StorageError("it is not there any longer")

    monkeypatch.setattr(LocalFileSystem, "rename", rename)
    move.carry_out()
    assert Path(move.target, "file").exists()


def test_an_error_is_one_where_the_directory_did_not_arrive(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        raise StorageError("no")

    monkeypatch.setattr(LocalFileSystem, "rename", rename)
    with pytest.raises(StorageError, match="no"):
        move.carry_out()
    assert Path(move.source, "file").exists()


def test_a_move_is_taken_back_whether_it_was_done_or_not(move: Move) -> None:
    move.take_back()
    move.carry_out()
    move.take_back()
    assert Path(move.source, "file").read_text() == "rows"
    assert not Path(move.target).exists()


def test_what_the_tables_properties_announce_is_done_and_forgotten(move: Move, tmp_path: Path) -> None:
    store = EmbeddedMetastore(str(tmp_path / "store.db"), Settings(), str(tmp_path))
    table = Table("default", "t", move.target, (Column("a", "int"),), (), move.announced({"kept": "yes"}))
    store.create_table(table)
    assert moves_of(table) == [move]
    found = finish_moves(store, table)
    assert found.parameters == {"kept": "yes"}
    assert store.get_table("default", "t") == found
    assert Path(move.target, "file").exists()
    assert finish_moves(store, found) is found
    store.close()


def test_only_file_systems_that_rename_in_one_step_move_directories() -> None:
    places = ("/w/t", "file:/w/t", "hdfs://host:8020/w/t", "s3a://bucket/w/t", "gs://bucket/t")
    assert [renames_in_one_step(place) for place in places] == [True, True, True, False, False]
    assert PREFIX == "acidsql.move."
