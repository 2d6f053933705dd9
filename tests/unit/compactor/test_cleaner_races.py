"""The cleaner beside DROP, RENAME and writers that were killed: it removes by path, and forgets for ever."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from acidsql.compactor.cleaner import Cleaner
from acidsql.compactor.dropped import remove_dropped
from acidsql.compactor.rename_journal import new_move
from acidsql.compactor.vacuum import TableCleaner
from acidsql.errors import AlreadyExists, LockTimeout, NoSuchLock, StorageError, TableNotFound
from acidsql.format.bucket import encode
from acidsql.format.names import STAGING_PREFIX, DeltaName
from acidsql.format.orc import write_inserts
from acidsql.fs import LocalFileSystem
from acidsql.fs.protocol import FileStatus
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import (
    CompactionRequest,
    LockComponent,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
    Partition,
    Table,
    TxnType,
)
from acidsql.metastore.model import CompactionState as State
from tests.unit.compactor.world import FS, MAJOR, MINOR, ROW_TYPE, World, values
from tests.unit.sleeping import this_thread_instead


def cleaner(world: World, name: str = "t") -> TableCleaner:
    return TableCleaner(world.context, world.store.get_table("default", name))


def forget(world: World) -> None:
    """What the store forgets of ended transactions when it has waited for long enough."""
    for _ in range(2):
        world.end(world.begin())
        world.clock.pass_seconds(10)
    world.store.clean_empty_aborted_txns()


def exclusive(world: World, txn_id: int) -> LockResponse:
    """The lock of DROP and RENAME."""
    lock = LockComponent(LockType.EXCLUSIVE, "default", "t")
    return world.store.lock(LockRequest((lock,), txn_id, "bob", "desk", "dropper"))


@contextmanager
def before_each_delete(does: Callable[[str], None]) -> Iterator[None]:
    delete = LocalFileSystem.delete

    def step(fs: LocalFileSystem, path: str) -> None:
        does(path)
        delete(fs, path)

    with patch.object(LocalFileSystem, "delete", step):
        yield


# --- what is below the table, and not registered ---------------------------------------------------------------------


def clean(world: World) -> None:
    world.clean()


def vacuum(world: World) -> None:
    listed = cleaner(world).removable()
    assert cleaner(world).remove() == listed


BOTH = pytest.mark.parametrize("cleans", [clean, vacuum])


def register(world: World, part: str) -> None:
    world.store.add_partitions([Partition("default", "t", (part,), str(world.path(part=part)))])


@BOTH
def test_given_an_insert_killed_before_its_new_partition_was_registered_when_cleaned_then_its_rows_never_come_back(
    world: World, cleans: Callable[[World], None]
) -> None:
    world.table("t", "9")
    txn_id = world.begin()
    write_id = world.write_id(txn_id, part="1")
    directory = world.path(part="1") / str(DeltaName(write_id, write_id, 0))
    write_inserts(FS, f"{directory}/bucket_00000", ROW_TYPE, values(666), write_id=write_id, bucket=encode(0))
    world.store.abort_txns([txn_id])
    world.insert(1, part="9")
    cleans(world)
    assert (directory.exists(), world.remembered()) == (False, set())
    forget(world)
    register(world, "1")
    world.insert(2, part="1")
    assert world.content(part="1") == [2]


@BOTH
def test_given_a_drop_partition_that_was_killed_when_the_partition_is_added_again_then_no_row_comes_back(
    world: World, cleans: Callable[[World], None]
) -> None:
    world.table("t", "1")
    world.insert(1, part="1")
    world.insert(666, part="1", end="abort")
    world.store.drop_partitions("default", "t", ["p=1"])
    cleans(world)
    assert (world.names(part="1"), world.remembered()) == (["delta_0000001_0000001_0000"], set())
    forget(world)
    with pytest.raises(AlreadyExists, match="has not been removed yet"):
        register(world, "1")
    remove_dropped(world.store)
    register(world, "1")
    assert not world.path(part="1").exists()


@BOTH
def test_given_an_aborted_compaction_of_a_partition_that_was_dropped_when_cleaned_then_its_directory_goes(
    world: World, cleans: Callable[[World], None]
) -> None:
    world.table("t", "1")
    world.insert(1, part="1")
    world.ask(part="1")
    txn_id = begin_compaction(world)
    made = world.path(part="1") / f"base_0000001_v{txn_id:07d}"
    made.mkdir()
    world.store.abort_txns([txn_id])
    world.store.drop_partitions("default", "t", ["p=1"])
    cleans(world)
    assert (made.exists(), world.store.aborted_compactions()) == (False, [])


def begin_compaction(world: World) -> int:
    entry = world.store.find_next_compact("desk-9")
    assert entry is not None
    txn_id = world.begin(TxnType.COMPACTION)
    world.store.update_compactor_state(entry.id, txn_id, 1, worker="desk-9")
    return txn_id


@BOTH
def test_given_a_partition_elsewhere_when_it_was_compacted_there_then_what_is_at_its_usual_place_is_not_forgotten(
    world: World, cleans: Callable[[World], None]
) -> None:
    world.table("t", "1")
    world.insert(666, part="1", end="abort")
    other = world.root / "w" / "elsewhere"
    world.store.alter_partition(Partition("default", "t", ("1",), str(other)))
    for number in (2, 3):
        txn_id = world.begin()
        write_id = world.write_id(txn_id, part="1")
        path = f"{other}/{DeltaName(write_id, write_id, 0)}/bucket_00000"
        write_inserts(FS, path, ROW_TYPE, values(number), write_id=write_id, bucket=encode(0))
        world.end(txn_id)
    world.compact(part="1")
    cleans(world)
    assert world.states() == [State.SUCCEEDED]
    assert (world.names(part="1"), world.remembered()) == ([], set())


@pytest.mark.parametrize("part", [None, "1"], ids=["table", "partition"])
@pytest.mark.parametrize("is_compacted", [False, True], ids=["aborted", "compacted"])
@BOTH
def test_given_a_directory_that_is_away_for_now_when_cleaned_then_nothing_is_forgotten(
    world: World, cleans: Callable[[World], None], is_compacted: bool, part: str | None
) -> None:
    """A disk that is not mounted: its rows are there again tomorrow, those of aborted transactions with the others."""
    world.table("t", *([part] if part else []))
    world.insert(1, part=part)
    world.insert(666, part=part, end="abort")
    world.insert(2, part=part)
    if is_compacted:
        world.compact(part=part)
    before = world.remembered()
    world.path().rename(world.root / "unmounted")
    with suppress(StorageError):
        cleans(world)
    forget(world)
    world.store.prune_txn_to_write_id()
    shutil.rmtree(world.path(), ignore_errors=True)
    (world.root / "unmounted").rename(world.path())
    assert (world.content(part=part), world.remembered()) == ([1, 2], before)
    for entry in world.entries():
        assert entry.state == State.READY_FOR_CLEANING
    world.clock.pass_seconds(3600)
    world.clean()
    world.clean()
    assert (world.content(part=part), world.remembered()) == ([1, 2], set())
    for entry in world.entries():
        assert entry.state == State.SUCCEEDED


@BOTH
def test_given_a_table_that_is_away_for_now_when_cleaned_then_unregistered_partitions_are_not_forgotten(
    world: World, cleans: Callable[[World], None]
) -> None:
    """A killed INSERT had published it and not registered it."""
    world.table("t", "1")
    txn_id = world.begin()
    write_id = world.write_id(txn_id, part="9")
    directory = world.path(part="9") / str(DeltaName(write_id, write_id, 0))
    write_inserts(FS, f"{directory}/bucket_00000", ROW_TYPE, values(666), write_id=write_id, bucket=encode(0))
    world.store.abort_txns([txn_id])
    world.path().rename(world.root / "unmounted")
    with suppress(StorageError):
        cleans(world)
    assert world.remembered() == {write_id}
    (world.root / "unmounted").rename(world.path())
    cleans(world)
    assert (directory.exists(), world.remembered()) == (False, set())


# --- two that clean at once ------------------------------------------------------------------------------------------


def initiates(world: World) -> None:
    world.initiate()
    assert State.DID_NOT_INITIATE not in world.states()


def previews(world: World) -> None:
    cleaner(world).removable()


@contextmanager
def before_listing(number: int, does: Callable[[], object]) -> Iterator[list[int]]:
    """Do something before one of the listings; gives how many there were so far."""
    count, real = [0], LocalFileSystem.list

    def listed(fs: LocalFileSystem, path: str) -> list[FileStatus]:
        count[0] += 1
        if count[0] == number:
            with patch.object(LocalFileSystem, "list", real):
                does()
        return real(fs, path)

    with patch.object(LocalFileSystem, "list", listed):
        yield count


@pytest.mark.parametrize("looks", [clean, previews, initiates])
def test_given_another_cleaner_at_each_moment_of_the_listing_then_it_is_no_error(
    tmp_path: Path, looks: Callable[[World], None]
) -> None:
    for step in range(1, 60):
        root = tmp_path / str(step)
        (root / "w").mkdir(parents=True)
        world = World(root, {"acidsql.compactor.layout": "hive3", "hive.compactor.delta.num.threshold": "2"})
        world.table()
        for number in range(4):
            world.insert(number)
        world.compact(MINOR)
        world.insert(9)
        with before_listing(step, Cleaner(world.context).run) as count:
            looks(world)
        assert world.content() == [0, 1, 2, 3, 9]
        assert all(entry.error is None for entry in world.entries())
        world.close()
        shutil.rmtree(root)
        if count[0] < step:
            assert step > 3
            return
    raise AssertionError("the listing has no end")


# --- what the lock keeps away ----------------------------------------------------------------------------------------


def compacted(world: World) -> None:
    world.insert(1)
    world.insert(2)
    world.compact()


def aborted(world: World) -> None:
    world.insert(0)
    world.insert(1, end="abort")
    world.insert(2, end="abort")


def aborted_compaction(world: World) -> None:
    world.insert(1)
    world.ask()
    txn_id = begin_compaction(world)
    for name in ("base_0000001", "delta_0000001_0000001"):
        (world.path() / f"{name}_v{txn_id:07d}").mkdir()
    world.store.abort_txns([txn_id])
    world.store.revoke_timed_out_workers(0)


def overwritten(world: World) -> None:
    world.insert(1)
    world.insert(2)
    world.overwrite(3)


def staged(world: World) -> None:
    for number in (1, 2):
        staged = world.path() / f"{STAGING_PREFIX}{number:032x}"
        staged.mkdir()
        os.utime(staged, (0, 0))


def sweep(world: World) -> None:
    world.cleaner.sweep_staging()


WORK = pytest.mark.parametrize(
    ("prepare", "cleans"),
    [
        (compacted, clean),
        (aborted, clean),
        (aborted_compaction, clean),
        (staged, sweep),
        (compacted, vacuum),
        (aborted, vacuum),
        (aborted_compaction, vacuum),
        (overwritten, vacuum),
        (staged, vacuum),
    ],
)


@WORK
def test_while_files_are_removed_a_drop_waits_and_no_transaction_is_open(
    world: World, prepare: Callable[[World], None], cleans: Callable[[World], None]
) -> None:
    world.table()
    prepare(world)
    dropper = world.begin()
    seen: list[tuple[LockResponse, int, int]] = []
    min_open = world.store.min_open_txn()
    world.end(dropper)

    def drop(path: str) -> None:
        if not seen:
            txn_id = world.begin()
            seen.append((exclusive(world, txn_id), world.store.min_open_txn(), txn_id))

    with before_each_delete(drop):
        cleans(world)
    [(response, oldest, txn_id)] = seen
    assert response.state is LockState.WAITING
    assert response.blocked_by is not None
    held = response.blocked_by
    assert (held.type, held.txn_id, held.table, held.user) == (LockType.SHARED_READ, 0, "t", "ann")
    assert ("vacuum" if cleans is vacuum else "cleaner") in held.agent_info
    assert oldest == txn_id > min_open
    assert world.store.check_lock(response.lock_id).state is LockState.ACQUIRED
    assert [one.txn_id for one in world.store.show_locks()] == [txn_id]


@WORK
def test_a_lock_that_was_lost_ends_the_removing(
    world: World, prepare: Callable[[World], None], cleans: Callable[[World], None]
) -> None:
    world.table()
    prepare(world)
    removed: list[str] = []

    def lose(path: str) -> None:
        removed.append(path)
        for one in world.store.show_locks():
            world.store.unlock(one.lock_id)

    before = world.remembered()
    with before_each_delete(lose):
        if cleans is vacuum:
            with pytest.raises(NoSuchLock, match=r"lost its lock on default\.t") as caught:
                cleaner(world).remove()
            assert caught.value.hint is not None
        else:
            cleans(world)
    assert len(removed) == 1
    assert world.remembered() == before
    assert State.SUCCEEDED not in world.states()
    world.clock.pass_seconds(301)
    world.context.clock = lambda: world.clock.ms / 1000
    vacuum(world)
    assert cleaner(world).removable() == []
    assert world.store.show_locks() == []


@pytest.mark.parametrize("prepare", [compacted, aborted, aborted_compaction])
def test_a_table_that_others_have_locked_is_left_for_the_next_round(
    world: World, prepare: Callable[[World], None]
) -> None:
    world.table()
    prepare(world)
    world.table("u")
    world.insert(1, name="u", end="abort")
    staged(world)
    before, entries = world.names(), world.entries()
    dropper = world.begin()
    assert exclusive(world, dropper).state is LockState.ACQUIRED
    assert (world.clean(), world.names("u")) == (1, [])
    assert world.cleaner.sweep_staging() == 0
    assert (world.names(), world.entries()) == (before, entries)
    assert [one.txn_id for one in world.store.show_locks()] == [dropper]
    world.end(dropper)
    assert world.clean() > 0
    assert world.cleaner.sweep_staging() == 2
    assert world.names() != before


def test_only_the_partition_that_is_cleaned_is_locked(world: World) -> None:
    world.table("t", "1", "2")
    world.insert(1, part="1")
    world.insert(2, part="1")
    world.compact(part="1")
    world.insert(3, part="2", end="abort")
    locked: list[str | None] = []
    with before_each_delete(lambda _: locked.extend(one.partition for one in world.store.show_locks())):
        world.clean()
    assert locked == ["p=1", "p=1", "p=2"]


# --- who comes between the question and the lock ---------------------------------------------------------------------


def made_anew(world: World) -> None:
    """DROP, CREATE and INSERT by another session."""
    world.store.drop_table("default", "t")
    remove_dropped(world.store)
    world.table()
    world.insert(77)


def renamed(world: World) -> Table:
    """RENAME TO of a table whose files stay."""
    table = world.store.get_table("default", "t")
    made = replace(table, name="u")
    world.store.rename_table("default", "t", made)
    return made


@contextmanager
def before_the_lock(world: World, does: Callable[[], object]) -> Iterator[None]:
    lock = EmbeddedMetastore.lock
    done: list[int] = []

    def step(store: EmbeddedMetastore, request: LockRequest) -> LockResponse:
        if not request.txn_id and not done:
            done.append(1)
            does()
        return lock(store, request)

    with patch.object(EmbeddedMetastore, "lock", step):
        yield
    assert done


@pytest.mark.parametrize("prepare", [compacted, aborted, aborted_compaction])
def test_a_table_that_was_made_anew_before_the_lock_keeps_its_rows(
    world: World, prepare: Callable[[World], None]
) -> None:
    world.table()
    prepare(world)
    with before_the_lock(world, lambda: made_anew(world)):
        world.clean()
    assert (world.content(), world.store.show_locks()) == ([77], [])


def test_a_compaction_of_a_table_that_was_renamed_before_the_lock_is_cleaned_under_the_new_name(world: World) -> None:
    world.table()
    world.insert(666, end="abort")
    compacted(world)
    with before_the_lock(world, lambda: renamed(world)):
        world.clean()
    assert (world.states(), len(world.names())) == ([State.READY_FOR_CLEANING], 3)
    world.clean()
    assert (world.states(), len(world.names())) == ([State.SUCCEEDED], 1)
    assert world.store.show_locks() == []


def test_vacuum_of_a_table_that_was_renamed_meanwhile_removes_nothing(world: World) -> None:
    """Of a name that the store does not know every write id counts as committed, those of aborted ones too."""
    world.table()
    world.insert(1)
    world.insert(2)
    world.overwrite(666, end="abort")
    world.insert(4)
    found, before = cleaner(world), world.names()
    renamed(world)
    with pytest.raises(TableNotFound):
        found.remove()
    assert (world.names(), world.store.show_locks()) == (before, [])


def test_vacuum_waits_for_who_has_the_table_and_looks_at_it_again_then(world: World) -> None:
    world.table()
    overwritten(world)
    found, dropper = cleaner(world), world.begin()
    exclusive(world, dropper)

    def drop(_: float) -> None:
        made_anew(world)
        world.end(dropper)

    with patch("acidsql.metastore.waiting.time.sleep", this_thread_instead(drop)):
        assert found.remove() == []
    assert (world.content(), world.store.show_locks()) == ([77], [])


def test_vacuum_that_waits_too_long_names_who_has_the_table_and_leaves_the_queue(world: World) -> None:
    world.table()
    overwritten(world)
    dropper, before = world.begin(), world.names()
    exclusive(world, dropper)
    world.settings.set("acidsql.lock.timeout", "0s")
    with pytest.raises(LockTimeout, match=r"default\.t is locked EXCLUSIVE .*bob@desk \(dropper\)"):
        cleaner(world).remove()
    assert world.names() == before
    assert [one.txn_id for one in world.store.show_locks()] == [dropper]


# --- the lock is given back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["lock", "unlock"])
@pytest.mark.parametrize("after", [False, True], ids=["before the step", "after the step"])
@BOTH
def test_the_lock_is_given_back_though_the_store_was_away_for_a_moment(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, after: bool, cleans: Callable[[World], None]
) -> None:
    world.table()
    aborted(world)
    original = getattr(EmbeddedMetastore, step)
    failed: list[str] = []

    def fails_once(*args: object) -> object:
        if failed:
            return original(*args)
        failed.append(step)
        if after:
            original(*args)
        raise StorageError("away")

    monkeypatch.setattr(EmbeddedMetastore, step, fails_once)
    if step == "lock" and cleans is vacuum:
        with pytest.raises(StorageError, match="away"):
            cleaner(world).remove()
    else:
        world.clean() if cleans is clean else cleaner(world).remove()
    assert failed
    assert world.store.show_locks() == []


def test_a_lock_that_cannot_be_given_back_is_told_of_and_times_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.table()
    aborted(world)
    with patch.object(EmbeddedMetastore, "unlock", side_effect=StorageError("away")):
        world.clean()
    assert "the cleaner's lock on default.t is held until it times out: away" in caplog.text
    assert len(world.names()) == 1
    world.clock.pass_seconds(301)
    world.store.time_out_txns()
    assert world.store.show_locks() == []


def test_a_request_for_a_compaction_is_not_refused_by_the_lock(world: World, tmp_path: Path) -> None:
    """The cleaner's lock is that of a reader: writers and workers go on beside it."""
    world.table()
    compacted(world)
    done: list[object] = []

    def work(_: str) -> None:
        if not done:
            world.insert(3)
            world.delete(3)
            done.append(world.store.compact(CompactionRequest("default", "t", None, MAJOR, "ann", "desk")))

    with before_each_delete(work):
        world.clean()
    assert done
    assert (world.states()[-1], world.content()) == (State.SUCCEEDED, [1, 2])


@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_on_its_way_to_a_new_name_is_brought_there_before_it_is_cleaned(world: World, compacted: bool) -> None:
    """The cleaner found nothing at the new place and forgot the aborted write ids: their rows came back."""
    world.table()
    world.insert(1)
    world.insert(666, end="abort")
    if compacted:
        world.insert(2)
        world.compact()
    old = world.store.get_table("default", "t")
    new = replace(old, name="u", location=f"{old.location}-u")
    world.store.rename_table("default", "t", new, move=new_move(old.location, new.location))  # and killed
    assert world.clean()
    world.initiate()
    left = [p.name for p in Path(new.location).iterdir() if p.name[0] not in "._"]
    assert [name.partition("_")[0] for name in left] == ["base" if compacted else "delta"]
    assert not Path(old.location).exists()
    assert world.store.get_table("default", "u").moves == ()
