"""Directories of what was dropped: they go once, whoever removes them, and whenever somebody is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from acidsql import fs
from acidsql.compactor.dropped import free_place, free_places, remove_dropped
from acidsql.errors import AlreadyExists, StorageError
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.embedded.store import Store
from acidsql.metastore.model import Column, DroppedDirectory, Partition, Table
from acidsql.settings import Settings


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "w"


@pytest.fixture
def store(tmp_path: Path, root: Path) -> Iterator[EmbeddedMetastore]:
    made = EmbeddedMetastore(str(tmp_path / "store.db"), Settings(), str(root))
    yield made
    made.close()


def table(root: Path, name: str = "t") -> Table:
    return Table("default", name, str(root / name), (Column("a", "int"),), (Column("p", "int"),))


def partition(root: Path, value: str) -> Partition:
    return Partition("default", "t", (value,), str(root / "t" / f"p={value}"))


@pytest.fixture
def dropped(store: EmbeddedMetastore, root: Path) -> None:
    """A dropped partition beside another one, both with files."""
    store.create_table(table(root))
    store.add_partitions([partition(root, "1"), partition(root, "2")])
    for value in "12":
        place = root / "t" / f"p={value}" / "delta_0000001_0000001_0000"
        place.mkdir(parents=True)
        (place / "bucket_00000").write_text("rows")
    store.drop_partitions("default", "t", ["p=1"])


def entries(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


LEFT = ["t", "t/p=2", "t/p=2/delta_0000001_0000001_0000", "t/p=2/delta_0000001_0000001_0000/bucket_00000"]


@pytest.mark.usefixtures("dropped")
class TestTheDirectoryOfADroppedPartition:
    def test_goes_with_its_record_and_nothing_else_does(self, store: EmbeddedMetastore, root: Path) -> None:
        remove_dropped(store)
        assert (entries(root), store.dropped_directories()) == (LEFT, [])

    @pytest.mark.parametrize("where", ["t", "t/p=1", "t/p=1/below", ""])
    def test_goes_before_its_place_is_used(self, store: EmbeddedMetastore, root: Path, where: str) -> None:
        free_place(store, f"file:{root / where}")
        assert (entries(root), store.dropped_directories()) == (LEFT, [])

    def test_has_left_its_place_durably_before_the_place_is_free(
        self, store: EmbeddedMetastore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a power cut it would stand there again otherwise."""
        steps: list[str] = []
        sync, set_aside = LocalFileSystem.sync, EmbeddedMetastore.set_aside

        def synced(self: LocalFileSystem, trees: Iterable[str] = (), directories: Iterable[str] = ()) -> None:
            places = list(directories)
            assert not (root / "t" / "p=1").exists()
            steps.extend(places)
            sync(self, trees, places)

        def freed(self: EmbeddedMetastore, dropped: Sequence[DroppedDirectory]) -> None:
            steps.append("set_aside")
            set_aside(self, dropped)

        monkeypatch.setattr(LocalFileSystem, "sync", synced)
        monkeypatch.setattr(EmbeddedMetastore, "set_aside", freed)
        remove_dropped(store)
        assert steps == [str(root / "t"), "set_aside"]

    def test_stays_while_other_places_are_used(self, store: EmbeddedMetastore, root: Path) -> None:
        free_places(store, [str(root / "t" / "p=10"), str(root / "u")])
        assert len(store.dropped_directories()) == 1
        assert (root / "t" / "p=1").exists()

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("number", range(1, 4))
    @pytest.mark.parametrize(
        ("owner", "step"),
        [
            (LocalFileSystem, "rename"),
            (LocalFileSystem, "delete"),
            (EmbeddedMetastore, "set_aside"),
            (EmbeddedMetastore, "forget_dropped"),
        ],
    )
    def test_goes_for_good_whenever_somebody_is_killed(
        self,
        store: EmbeddedMetastore,
        root: Path,
        monkeypatch: pytest.MonkeyPatch,
        owner: type,
        step: str,
        after: bool,
        number: int,
    ) -> None:
        """The Nth one is killed, too; the one after them finishes, and what was made there since is left alone."""
        with monkeypatch.context() as patched:
            killing(patched, owner, step, after)
            for _ in range(number):
                try:
                    remove_dropped(store)
                except Killed:
                    continue
        free_place(store, str(root / "t" / "p=1"))
        store.add_partitions([partition(root, "1")])
        (root / "t" / "p=1").mkdir()
        remove_dropped(store)
        assert (entries(root), store.dropped_directories()) == (sorted(["t/p=1", *LEFT]), [])

    def test_that_is_put_aside_late_does_not_take_what_stands_there_by_then(
        self, store: EmbeddedMetastore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        alone = EmbeddedMetastore.alone

        def late(self: EmbeddedMetastore) -> object:
            with monkeypatch.context() as undone:
                undone.setattr(EmbeddedMetastore, "alone", alone)
                remove_dropped(self)
            self.add_partitions([partition(root, "1")])
            (root / "t" / "p=1").mkdir()
            return alone(self)

        monkeypatch.setattr(EmbeddedMetastore, "alone", late)
        remove_dropped(store)
        assert entries(root) == sorted(["t/p=1", *LEFT])

    def test_that_cannot_be_moved_keeps_its_place_and_stays_invisible(
        self, store: EmbeddedMetastore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(LocalFileSystem, "rename", refused)
            patched.setattr(LocalFileSystem, "delete", refused)
            remove_dropped(store)
            with pytest.raises(StorageError, match="no"):
                free_place(store, str(root / "t" / "p=1"))
        with pytest.raises(AlreadyExists, match="has not been removed yet"):
            store.add_partitions([partition(root, "1")])
        assert [p.values for p in store.list_partitions("default", "t")] == [("2",)]
        remove_dropped(store)
        assert entries(root) == LEFT

    def test_is_removed_in_place_where_nothing_can_be_put_beside_it(
        self, store: EmbeddedMetastore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(LocalFileSystem, "rename", refused)
        remove_dropped(store)
        assert (entries(root), store.dropped_directories()) == (LEFT, [])

    def test_is_removed_in_place_where_a_rename_is_not_one_step(
        self, store: EmbeddedMetastore, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fs, "renames_in_one_step", lambda location: False)
        monkeypatch.delattr(LocalFileSystem, "rename")
        remove_dropped(store)
        assert (entries(root), store.dropped_directories()) == (LEFT, [])


def refused(*_: object) -> None:
    raise StorageError("no")


def killing(monkeypatch: pytest.MonkeyPatch, owner: type, step: str, after: bool) -> None:
    original: Callable[..., object] = getattr(owner, step)

    def killed(*args: object) -> None:
        if after:
            original(*args)
        raise Killed

    monkeypatch.setattr(owner, step, killed)


def test_a_place_is_owned_by_databases_tables_and_partitions(store: EmbeddedMetastore, root: Path) -> None:
    store.create_table(table(root))
    store.add_partitions([partition(root, "1")])
    owned = [str(root), f"file:{root}/t", f"file://{root}/t/p=1"]
    assert [store.has_owner(place) for place in [*owned, f"{root}/t/p=2", f"{root}/u"]] == [True] * 3 + [False] * 2


def test_hundreds_of_partitions_go_in_a_few_steps_of_the_store(
    store: EmbeddedMetastore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_table(table(root))
    named = [str(number) for number in range(250)]
    store.add_partitions([partition(root, value) for value in named])
    for value in named:
        (root / "t" / f"p={value}").mkdir(parents=True)
    store.drop_partitions("default", "t", [f"p={value}" for value in named])
    steps: list[int] = []
    original = Store.write
    monkeypatch.setattr(Store, "write", lambda self, **how: steps.append(1) or original(self, **how))
    remove_dropped(store)
    assert (entries(root), store.dropped_directories(), len(steps)) == (["t"], [], 9)
