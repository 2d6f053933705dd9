"""A statement that fails takes back what is its own, and nothing that another session has made meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acidsql.errors import AcidError, AlreadyExists, StorageError
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.plan.staging import Staging
from tests.unit.commands.definitions import Session, queries_of


class TestATableMadeAsAQuery:
    def test_has_all_its_rows(self, session: Session) -> None:
        with queries_of(1, 2):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (session.rows(), session.is_idle) == ({"": [1, 2]}, True)

    @pytest.mark.parametrize("numbers", [(), (7, 8)], ids=["without rows", "with rows"])
    def test_leaves_the_table_alone_that_another_session_has_made_meanwhile(
        self, session: Session, other: Session, numbers: tuple[int, ...]
    ) -> None:
        def make() -> None:
            other.table()
            if numbers:
                other.insert(*numbers)

        with queries_of(1, 2, meanwhile=make), pytest.raises(AlreadyExists):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (other.rows(), other.is_idle) == ({"": sorted(numbers)}, True)
        other.insert(9)
        assert other.rows() == {"": sorted([*numbers, 9])}

    def test_leaves_the_directory_alone_that_another_table_has_by_then(self, session: Session, other: Session) -> None:
        def make() -> None:
            other.sql("CREATE TRANSACTIONAL TABLE u (a int) LOCATION '{root}/w/t'")

        with queries_of(1, meanwhile=make), pytest.raises(AlreadyExists, match=r"table default\.u is at"):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (other.seen, other.is_idle) == ({"default.u": {"": []}}, True)

    def test_leaves_nothing_when_it_fails_before_it_is_registered(self, session: Session) -> None:
        before = session.files
        with queries_of(1), fails(EmbeddedMetastore, "create_table"), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (session.seen, session.files, session.is_idle) == ({}, before, True)

    @pytest.mark.parametrize("after", [False, True])
    def test_leaves_nothing_when_it_fails_after_it_was_registered(self, session: Session, after: bool) -> None:
        before = session.files
        with queries_of(1), fails(Staging, "publish", after=after), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (session.seen, session.files, session.is_idle) == ({}, before, True)

    def test_that_fails_leaves_the_rows_that_others_have_put_into_it(self, session: Session, other: Session) -> None:
        def insert() -> None:
            other.insert(7)

        with queries_of(1), fails(Staging, "publish", before=insert), pytest.raises(StorageError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert (other.rows(), other.is_idle) == ({"": [7]}, True)

    def test_that_fails_leaves_the_table_that_another_session_has_made_in_its_place(
        self, session: Session, other: Session
    ) -> None:
        """Its transaction was taken for dead: whoever waited for its locks went on."""

        def take_over() -> None:
            other.store.abort_txns([t.id for t in other.store.show_txns()])
            other.sql("DROP TABLE t")
            other.sql("CREATE TRANSACTIONAL TABLE t (b int)")

        with queries_of(1), fails(Staging, "publish", before=take_over), pytest.raises(AcidError):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert [c.name for c in other.store.get_table("default", "t").columns] == ["b"]
        assert (other.rows(), other.is_idle) == ({"": []}, True)

    def test_takes_the_name_of_one_that_was_killed(self, session: Session) -> None:
        left = session.root / "w" / "t" / "_tmp_0123" / "delta_0000001_0000001_0000"
        left.mkdir(parents=True)
        session.table()
        assert session.rows() == {"": []}

    def test_does_not_keep_others_from_making_that_table_meanwhile(self, session: Session, other: Session) -> None:
        with queries_of(1, meanwhile=other.table), pytest.raises(AlreadyExists):
            session.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1")
        assert other.rows() == {"": []}


def test_a_failed_create_table_leaves_the_directory_of_the_one_that_was_faster(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdirs = LocalFileSystem.mkdirs
    later = [other.table]

    def slow(self: LocalFileSystem, path: str, *, durable: bool = True) -> None:
        mkdirs(self, path, durable=durable)
        while later and path.endswith("/t"):
            later.pop()()

    monkeypatch.setattr(LocalFileSystem, "mkdirs", slow)
    with pytest.raises(AlreadyExists):
        session.table()
    assert (session.rows(), session.is_idle) == ({"": []}, True)


def test_a_create_table_whose_directory_was_taken_back_by_a_failed_one_has_one(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = EmbeddedMetastore.create_table

    def slow(self: EmbeddedMetastore, *args: object, **kwargs: object) -> None:
        if self is session.store:
            (session.root / "w" / "t").rmdir()  # the other one's take_back
        create(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddedMetastore, "create_table", slow)
    session.table()
    assert session.rows() == {"": []}


@pytest.mark.parametrize("step", ["create_table", "add_partitions", "create_database", "alter_table"])
def test_a_statement_whose_registration_fails_leaves_no_directory(session: Session, step: str) -> None:
    session.table("p", "p int")
    before, text = (
        session.files,
        {
            "create_table": "CREATE TRANSACTIONAL TABLE t (a int)",
            "add_partitions": "ALTER TABLE p ADD PARTITION (p = 1)",
            "create_database": "CREATE DATABASE hr",
            "alter_table": "ALTER TABLE p SET LOCATION '{root}/w/elsewhere'",
        }[step],
    )
    with fails(EmbeddedMetastore, step), pytest.raises(StorageError):
        session.sql(text)
    assert (session.files, session.is_idle) == (before, True)
    session.sql(text)


def test_a_failed_create_database_leaves_the_one_that_was_faster(
    session: Session, other: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = EmbeddedMetastore.create_database

    def slow(self: EmbeddedMetastore, *args: object) -> None:
        if self is session.store:
            other.sql("CREATE DATABASE hr")
        create(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddedMetastore, "create_database", slow)
    with pytest.raises(AlreadyExists):
        session.sql("CREATE DATABASE hr")
    assert session.store.list_databases() == ["default", "hr"]
    assert (session.root / "w" / "hr.db").is_dir()


class fails(pytest.MonkeyPatch):
    """A step that fails once, before or after it is done."""

    def __init__(
        self, owner: type, step: str, *, after: bool = False, before: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__()
        original = getattr(owner, step)

        def failing(*args: object, **kwargs: object) -> object:
            self.undo()
            before()
            if after:
                original(*args, **kwargs)
            raise StorageError("injected")

        self.setattr(owner, step, failing)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.undo()
