"""A directory that is on its way arrives once, whoever brings it there, and however often."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from acidsql.compactor.rename_journal import carry_out, carry_out_announced, finish_moves, new_move, take_back
from acidsql.errors import AcidError, AlreadyExists, StorageError, TransactionAborted
from acidsql.fs import LocalFileSystem, renames_in_one_step
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import Column, DirectoryMove, Table, TxnState
from acidsql.plan.staging import Staging
from acidsql.settings import Settings
from acidsql.sql.parser import parse_statement
from tests.unit.commands.definitions import Session


@pytest.fixture
def move(tmp_path: Path) -> DirectoryMove:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").write_text("rows")
    return new_move(str(tmp_path / "old"), str(tmp_path / "below" / "new"))


def test_a_directory_is_moved_with_the_parents_that_it_needs(move: DirectoryMove) -> None:
    carry_out(move)
    assert Path(move.target, "file").read_text() == "rows"
    assert not Path(move.source).exists()


def test_moving_twice_is_moving(move: DirectoryMove) -> None:
    carry_out(move)
    carry_out(move)
    assert Path(move.target, "file").read_text() == "rows"


def test_what_is_made_at_the_old_place_afterwards_is_left_alone(move: DirectoryMove) -> None:
    carry_out(move)
    Path(move.source).mkdir()
    carry_out(move)
    assert Path(move.source).is_dir()


def test_somebody_faster_is_no_error(move: DirectoryMove, monkeypatch: pytest.MonkeyPatch) -> None:
    real = LocalFileSystem.rename

    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        real(self, source, target)
        raise StorageError("it is not there any longer")

    monkeypatch.setattr(LocalFileSystem, "rename", rename)
    carry_out(move)
    assert Path(move.target, "file").exists()


def test_an_error_is_one_where_the_directory_did_not_arrive(
    move: DirectoryMove, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        raise StorageError("no")

    monkeypatch.setattr(LocalFileSystem, "rename", rename)
    with pytest.raises(StorageError, match="no"):
        carry_out(move)
    assert Path(move.source, "file").exists()


def test_a_move_is_taken_back_whether_it_was_done_or_not(move: DirectoryMove) -> None:
    take_back(move)
    carry_out(move)
    take_back(move)
    assert Path(move.source, "file").read_text() == "rows"
    assert not Path(move.target).exists()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedMetastore]:
    found = EmbeddedMetastore(str(tmp_path / "store.db"), Settings(), str(tmp_path))
    yield found
    found.close()


def test_what_the_journal_holds_is_done_and_forgotten(store: EmbeddedMetastore, move: DirectoryMove) -> None:
    table = Table("default", "t", move.source, (Column("a", "int"),), (), {"kept": "yes"})
    store.create_table(table)
    store.rename_table("default", "t", replace(table, name="u", location=move.target), move=move)
    table = store.get_table("default", "u")
    assert table.moves == (move,)
    found = finish_moves(store, table)
    assert found == store.get_table("default", "u") == replace(table, moves=())
    assert Path(move.target, "file").exists()
    assert finish_moves(store, found) is found


def test_a_move_that_is_forgotten_takes_nothing_along(store: EmbeddedMetastore, move: DirectoryMove) -> None:
    table = Table("default", "t", move.source, (Column("a", "int"),), (), {"transactional": "true", "old": "x"})
    store.create_table(table)
    store.rename_table("default", "t", replace(table, name="u", location=move.target), move=move)
    moving = store.get_table("default", "u")
    store.alter_table(replace(moving, parameters={"transactional": "true", "kept": "yes"}))
    store.forget_moves(moving)
    found = store.get_table("default", "u")
    assert (found.moves, found.parameters) == ((), {"transactional": "true", "kept": "yes"})


def test_a_move_that_was_done_long_ago_moves_nothing_of_somebody_elses(
    store: EmbeddedMetastore, move: DirectoryMove, tmp_path: Path
) -> None:
    table = Table("default", "t", move.source, (Column("a", "int"),))
    store.create_table(table)
    store.rename_table("default", "t", replace(table, name="u", location=move.target), move=move)
    slow = store.get_table("default", "u")
    finish_moves(store, slow)
    Path(move.target).rename(tmp_path / "moved on")
    Path(move.source).mkdir()
    finish_moves(store, slow)
    carry_out_announced(store, slow, move)
    assert (Path(move.source).is_dir(), Path(move.target).exists()) == (True, False)


def test_what_does_not_lead_to_the_tables_own_place_is_not_done(store: EmbeddedMetastore, move: DirectoryMove) -> None:
    table = Table("default", "t", "/elsewhere", (Column("a", "int"),))
    store.create_table(table)
    store.rename_table("default", "t", replace(table, name="u"), move=move)
    finish_moves(store, store.get_table("default", "u"))
    assert store.get_table("default", "u").moves == ()
    assert Path(move.source, "file").exists()


def test_a_rename_that_is_taken_back_leaves_no_move(store: EmbeddedMetastore, move: DirectoryMove) -> None:
    table = Table("default", "t", move.source, (Column("a", "int"),))
    store.create_table(table)
    store.rename_table("default", "t", replace(table, name="u", location=move.target), move=move)
    store.rename_table("default", "u", table)
    assert store.get_table("default", "t") == table


def test_only_file_systems_that_rename_in_one_step_move_directories() -> None:
    places = ("/w/t", "file:/w/t", "hdfs://host:8020/w/t", "s3a://bucket/w/t", "gs://bucket/t")
    assert [renames_in_one_step(place) for place in places] == [True, True, True, False, False]


def test_nobody_gets_the_place_that_a_directory_is_about_to_leave(
    store: EmbeddedMetastore, move: DirectoryMove
) -> None:
    """Else that directory would stay where it is for ever, and its rows be those of another table."""
    table = Table("default", "t", move.source, (Column("a", "int"),))
    store.create_table(table)
    store.rename_table("default", "t", replace(table, name="u", location=move.target), move=move)
    for place in (move.source, f"{move.source}/below"):
        with pytest.raises(AlreadyExists, match=r"table default\.u is at"):
            store.create_table(replace(table, location=place))
    finish_moves(store, store.get_table("default", "u"))
    store.create_table(table)


@pytest.mark.parametrize(
    ("text", "step", "below", "name"),
    [
        ("ALTER TABLE t RENAME TO u", "rename_table", "w/u/below", "default.t"),
        (
            "ALTER TABLE p PARTITION (p = 1) RENAME TO PARTITION (p = 9)",
            "rename_partition",
            "w/p/p=9/below",
            "default.p",
        ),
    ],
)
@pytest.mark.parametrize("made", ["directory", "file"])
def test_a_rename_is_not_taken_for_done_because_something_is_at_its_new_place(
    session: Session,
    other: Session,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    step: str,
    below: str,
    name: str,
    made: str,
) -> None:
    """A statement that is going to be refused makes its directory first: the rows stayed where they were, out of sight,
    and the rename was acknowledged."""
    session.table()
    session.insert(1)
    session.table("p", "p int")
    session.insert(2, name="p", part="p=1")
    before = session.rows(name)
    real = getattr(EmbeddedMetastore, step)
    calls = list[object]()

    def overtaken(store: EmbeddedMetastore, *args: Any, **kwargs: Any) -> None:
        real(store, *args, **kwargs)
        if not calls:
            (session.root / below).mkdir(parents=True)
            if made == "file":
                (session.root / below / "theirs").write_text("theirs")
        calls.append(args)

    monkeypatch.setattr(EmbeddedMetastore, step, overtaken)
    with pytest.raises(StorageError, match="cannot be moved"):
        session.sql(text)
    assert other.rows(name) == before
    assert (other.is_idle, other.store.get_table(*name.split(".")).moves) == (True, ())
    assert (session.root / below).is_dir()


@pytest.mark.parametrize("key", ["p", "_p"])
@pytest.mark.parametrize("text", ["RENAME TO u", "PARTITION (`{key}` = 1) RENAME TO PARTITION (`{key}` = 9)"])
def test_a_rename_that_fails_is_undone_whoever_looks_meanwhile(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch, text: str, key: str
) -> None:
    """He found the move in the journal and carried it out again; then the old place was given back, with no files."""
    session.sql(f"CREATE TRANSACTIONAL TABLE t (a int) PARTITIONED BY (`{key}` int)")
    session.sql(f"ALTER TABLE t ADD PARTITION (`{key}` = 1)")
    session.insert(7, name="t", part=f"{key}=1")
    real = LocalFileSystem.sync
    steps, lookers = [0], list[Thread]()

    def sync(self: LocalFileSystem, *args: Any, **kwargs: Any) -> None:
        steps[0] += 1
        if steps[0] == 1:  # that of the move
            raise StorageError("power is low")
        real(self, *args, **kwargs)

    def look() -> None:
        for name in ("t", "u"):
            other.env.registered(parse_statement(f"DROP TABLE {name}").table)

    def overtaken(real: Any) -> Any:
        def step(store: EmbeddedMetastore, *args: Any, **kwargs: Any) -> None:
            if steps[0]:  # the name is given back
                lookers.append(Thread(target=look))
                lookers[0].start()
                lookers[0].join(0.3)
            real(store, *args, **kwargs)

        return step

    with monkeypatch.context() as failing:
        failing.setattr(EmbeddedMetastore, "rename_table", overtaken(EmbeddedMetastore.rename_table))
        failing.setattr(EmbeddedMetastore, "rename_partition", overtaken(EmbeddedMetastore.rename_partition))
        failing.setattr(LocalFileSystem, "sync", sync)
        with pytest.raises(StorageError, match="power is low"):
            session.sql(f"ALTER TABLE t {text.format(key=key)}")
        lookers[0].join()
    assert other.seen == {"default.t": {f"{key}=1": [7]}}
    assert (other.is_idle, other.store.get_table("default", "t").moves) == (True, ())


def test_a_directory_whose_partition_key_begins_like_a_hidden_name_is_taken_in_whole(session: Session) -> None:
    session.sql("CREATE TRANSACTIONAL TABLE t (a int) PARTITIONED BY (`_p` int)")
    session.sql("ALTER TABLE t ADD PARTITION (`_p` = 1)")
    for number in (1, 2, 3):
        session.insert(number, name="t", part="_p=1")
    copy = session.root / "copy"
    shutil.copytree(session.root / "w" / "t", copy)
    session.sql("CREATE TRANSACTIONAL TABLE u (a int) PARTITIONED BY (`_p` int) LOCATION '{root}/copy'")
    session.insert(4, name="u", part="_p=1")
    assert session.rows("default.u") == {"_p=1": [1, 2, 3, 4]}


def test_a_move_is_forgotten_in_the_step_that_carries_it_out(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two it was taken back, by a rename whose undoing then failed: its rows stayed where they had been."""
    session.table()
    session.insert(1)
    old = session.store.get_table("default", "t")
    new = replace(old, name="u", location=f"{old.location}-u")
    move = new_move(old.location, new.location)
    session.store.rename_table("default", "t", new, move=move)
    real = EmbeddedMetastore.forget_moves
    waiting = list[Thread]()

    def back() -> None:
        with suppress(AcidError), other.store.alone():
            if move in other.store.get_table("default", "u").moves:
                take_back(move)
                raise StorageError("the name is taken")

    def forget(store: EmbeddedMetastore, table: Table) -> None:
        waiting.append(Thread(target=back))
        waiting[0].start()
        waiting[0].join(0.3)
        real(store, table)

    monkeypatch.setattr(EmbeddedMetastore, "forget_moves", forget)
    finish_moves(session.store, session.store.get_table("default", "u"))
    waiting[0].join()
    assert session.rows("default.u") == {"": [1]}


RENAMES = {
    "table": "ALTER TABLE p RENAME TO q",
    "partition": "ALTER TABLE p PARTITION (k = 1) RENAME TO PARTITION (k = 5)",
}


@pytest.mark.parametrize("renamed", RENAMES)
@pytest.mark.parametrize("is_ended_by_others", [True, False], ids=["others", "its own error"])
def test_what_a_statement_has_published_before_it_failed_is_remembered_under_the_new_name(
    session: Session, monkeypatch: pytest.MonkeyPatch, renamed: str, is_ended_by_others: bool
) -> None:
    """It looks for it under the old name and finds nothing: were it forgotten, it would count as committed."""
    session.table("p", "k int")
    session.insert(1, name="p", part="k=1")
    real = Staging.discard

    def discard(self: Staging) -> bool:
        if not is_ended_by_others:
            session.sql(RENAMES[renamed])  # it has waited for the locks
        return real(self)

    commit = EmbeddedMetastore.commit_txn

    def fail(*given: Any) -> None:
        if not any(given[5:]):  # it has changed no rows
            commit(*given)
            return
        if is_ended_by_others:
            session.store.abort_txns([t.id for t in session.store.show_txns() if t.state is TxnState.OPEN])
            session.sql(RENAMES[renamed])
        raise StorageError("after it was published")

    with monkeypatch.context() as patched:
        patched.setattr(Staging, "discard", discard)
        patched.setattr(EmbeddedMetastore, "commit_txn", fail)
        with pytest.raises((StorageError, TransactionAborted)):
            session.insert(666, name="p", part="k=1")
    remembered = {w for one in session.store.aborted_components() for w in one.write_ids}
    assert remembered == {2}
    name, part = ("default.q", "k=1") if renamed == "table" else ("default.p", "k=5")
    assert session.rows(name) == {part: [1]}
