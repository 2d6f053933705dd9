"""What a statement found before it had its locks may be another thing once it has them: it is looked up again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from acidsql.commands.ddl import create_table
from acidsql.commands.dml import truncate
from acidsql.errors import AcidError, AlreadyExists, PartitionNotFound, TableNotFound, TransactionError
from acidsql.format.names import BaseName
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import LockComponent, LockRequest, LockResponse, LockType
from acidsql.plan.staging import Staging
from acidsql.plan.target import Target
from tests.unit.commands.definitions import Session


@contextmanager
def before_the_lock(session: Session, *texts: str, does: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Another session runs statements right before the first lock of a session's next statement."""
    lock, waiting = EmbeddedMetastore.lock, [True]

    def step(store: EmbeddedMetastore, request: LockRequest) -> LockResponse:
        if waiting and store is session.store:
            waiting.clear()
            other = Session(session.root)
            for text in texts:
                other.sql(text)
            other.close()
            does()
        return lock(store, request)

    with patch.object(EmbeddedMetastore, "lock", step):
        yield
    assert not waiting


NEW_TABLE = ("DROP TABLE t", "CREATE TRANSACTIONAL TABLE t (a int) LOCATION '{root}/w/new'")
SAME_AGAIN = ("DROP TABLE t", "CREATE TRANSACTIONAL TABLE t (a int)")
NEW_PARTITION = (
    "ALTER TABLE p DROP PARTITION (p = 1)",
    "ALTER TABLE p ADD PARTITION (p = 1) LOCATION '{root}/w/new'",
)


@pytest.fixture
def filled(session: Session) -> Session:
    session.table()
    session.insert(1, 2)
    session.table("p", "p int")
    session.insert(1, name="p", part="p=1")
    session.insert(2, name="p", part="p=2")
    return session


class TestDropTable:
    def test_drops_the_table_where_it_is_by_then(self, filled: Session) -> None:
        with before_the_lock(filled, "ALTER TABLE t SET LOCATION '{root}/w/elsewhere'"):
            filled.sql("DROP TABLE t")
        assert "t/delta_0000001_0000001_0000" in filled.files  # SET LOCATION has left that to the user
        assert "elsewhere" not in filled.files
        assert "default.t" not in filled.seen

    @pytest.mark.parametrize("texts", [NEW_TABLE, SAME_AGAIN])
    def test_drops_the_table_that_has_its_name_by_then(self, filled: Session, texts: tuple[str, ...]) -> None:
        with before_the_lock(filled, *texts):
            filled.sql("DROP TABLE t")
        assert [f for f in filled.files if f.startswith(("t", "new"))] == []
        assert ("default.t" not in filled.seen, filled.is_idle) == (True, True)

    def test_of_one_that_is_gone_by_then_says_so(self, filled: Session) -> None:
        filled.env.settings.set("hive.exec.drop.ignorenonexistent", "false")
        with before_the_lock(filled, "DROP TABLE t"), pytest.raises(TableNotFound):
            filled.sql("DROP TABLE t")
        filled.table()
        with before_the_lock(filled, "DROP TABLE t"):
            filled.sql("DROP TABLE IF EXISTS t")
        assert filled.is_idle

    def test_does_not_take_the_directory_of_one_that_is_made_while_it_drops(self, filled: Session) -> None:
        dropped = EmbeddedMetastore.drop_table

        def drop(store: EmbeddedMetastore, *args: object, **kwargs: object) -> None:
            dropped(store, *args, **kwargs)  # type: ignore[arg-type]
            if store is filled.store:
                other = Session(filled.root)
                other.table()
                other.close()

        unlocked = LockComponent(LockType.SHARED_READ, "default")
        with (
            patch.object(EmbeddedMetastore, "drop_table", drop),
            patch.object(create_table, "name_lock", lambda *_: unlocked),
        ):
            filled.sql("DROP TABLE t")
        assert (filled.rows(), filled.is_idle) == ({"": []}, True)


class TestDropPartition:
    def test_drops_the_partition_where_it_is_by_then(self, filled: Session) -> None:
        with before_the_lock(filled, *NEW_PARTITION, does=lambda: filled_elsewhere(filled)):
            filled.sql("ALTER TABLE p DROP PARTITION (p = 1)")
        assert (filled.rows("default.p"), filled.is_idle) == ({"p=2": [2]}, True)
        assert not [f for f in filled.files if f.startswith("new") or "p=1" in f]

    def test_drops_those_that_have_come_since(self, filled: Session) -> None:
        filled.table("q", "p int, r int")
        filled.insert(1, name="q", part="p=1/r=1")
        with before_the_lock(filled, does=lambda: inserted(filled, "q", "p=1/r=2", 5)):
            filled.sql("ALTER TABLE q DROP PARTITION (p = 1)")
        assert (filled.rows("default.q"), filled.is_idle) == ({}, True)

    def test_of_one_that_is_gone_by_then_says_so(self, filled: Session) -> None:
        filled.env.settings.set("hive.exec.drop.ignorenonexistent", "false")
        text = "ALTER TABLE p DROP PARTITION (p = 1)"
        with before_the_lock(filled, text), pytest.raises(PartitionNotFound):
            filled.sql(text)
        filled.insert(3, name="p", part="p=1")
        with before_the_lock(filled, text):
            filled.sql("ALTER TABLE p DROP IF EXISTS PARTITION (p = 1)")
        assert filled.rows("default.p") == {"p=2": [2]}

    def test_of_a_table_that_was_made_anew_is_refused(self, filled: Session) -> None:
        texts = ("DROP TABLE p", "CREATE TRANSACTIONAL TABLE p (a int, b int) PARTITIONED BY (p int)")
        again = (*texts, "ALTER TABLE p ADD PARTITION (p = 1)")
        with before_the_lock(filled, *again), pytest.raises(TransactionError, match="was changed while"):
            filled.sql("ALTER TABLE p DROP PARTITION (p = 1)")
        assert filled.store.list_partitions("default", "p", ["p=1"])


class TestTruncate:
    def test_empties_partitions_that_have_come_since(self, filled: Session) -> None:
        filled.table("q", "p int, r int")
        filled.insert(1, name="q", part="p=1/r=1")
        with before_the_lock(filled, does=lambda: inserted(filled, "q", "p=1/r=2", 5)), no_spark_writer():
            filled.sql("TRUNCATE TABLE q PARTITION (p = 1)")
        assert filled.rows("default.q") == {"p=1/r=1": [], "p=1/r=2": []}

    def test_of_a_table_that_moved_is_refused(self, filled: Session) -> None:
        moved = before_the_lock(filled, "ALTER TABLE t SET LOCATION '{root}/w/elsewhere'")
        with moved, pytest.raises(TransactionError, match="was changed while"):
            filled.sql("TRUNCATE TABLE t")


class TestRename:
    def test_of_a_table_that_moved_is_refused(self, filled: Session) -> None:
        moved = before_the_lock(filled, "ALTER TABLE t SET LOCATION '{root}/w/elsewhere'")
        with moved, pytest.raises(TransactionError, match="was changed while"):
            filled.sql("ALTER TABLE t RENAME TO u")
        assert filled.rows() == {"": []}

    @pytest.mark.parametrize(
        "text",
        ["CREATE TRANSACTIONAL TABLE u (a int)", "CREATE TRANSACTIONAL TABLE v (a int) LOCATION '{root}/w/u'"],
    )
    def test_to_a_name_or_place_that_is_taken_by_then_is_refused(self, filled: Session, text: str) -> None:
        with before_the_lock(filled, text), pytest.raises(AlreadyExists):
            filled.sql("ALTER TABLE t RENAME TO u")
        assert (filled.rows(), filled.is_idle) == ({"": [1, 2]}, True)

    def test_of_a_partition_that_moved_is_refused(self, filled: Session) -> None:
        with before_the_lock(filled, *NEW_PARTITION), pytest.raises(TransactionError, match="was changed while"):
            filled.sql("ALTER TABLE p PARTITION (p = 1) RENAME TO PARTITION (p = 7)")
        assert filled.rows("default.p") == {"p=1": [], "p=2": [2]}

    def test_of_a_partition_to_one_that_exists_by_then_is_refused(self, filled: Session) -> None:
        with before_the_lock(filled, "ALTER TABLE p ADD PARTITION (p = 7)"), pytest.raises(AlreadyExists):
            filled.sql("ALTER TABLE p PARTITION (p = 1) RENAME TO PARTITION (p = 7)")
        assert filled.rows("default.p") == {"p=1": [1], "p=2": [2], "p=7": []}

    def test_of_a_partition_to_one_that_is_being_inserted_is_told_of_that_partition(self, filled: Session) -> None:
        """Its directory is there before it is registered: what was said was that the location exists."""
        [old] = filled.store.list_partitions("default", "p", ["p=1"])
        new = replace(old, values=("7",), location=old.location.replace("p=1", "p=7"))
        (filled.root / "w" / "p" / "p=7" / "delta_0000003_0000003_0000").mkdir(parents=True)
        registered = before_the_lock(filled, does=lambda: filled.store.add_partitions([new], if_not_exists=False))
        with registered, pytest.raises(AlreadyExists, match="Partition already exists: p=7"):
            filled.sql("ALTER TABLE p PARTITION (p = 1) RENAME TO PARTITION (p = 7)")
        assert filled.is_idle

    def test_of_a_partition_to_a_directory_with_files_is_refused(self, filled: Session) -> None:
        (filled.root / "w" / "p" / "p=7" / "else").mkdir(parents=True)
        with pytest.raises(AlreadyExists, match="New location for this partition already exists"):
            filled.sql("ALTER TABLE p PARTITION (p = 1) RENAME TO PARTITION (p = 7)")
        assert (filled.rows("default.p"), filled.is_idle) == ({"p=1": [1], "p=2": [2]}, True)


class TestDropOfAPartition:
    def test_that_moved_meanwhile_removes_it_where_it_is(self, filled: Session) -> None:
        moved = "ALTER TABLE p PARTITION (p = 1) SET LOCATION '{root}/w/third'"
        with before_the_lock(filled, moved):
            filled.sql("ALTER TABLE p DROP PARTITION (p = 1)")
        assert (filled.rows("default.p"), filled.is_idle) == ({"p=2": [2]}, True)
        assert "third" not in filled.files
        assert any(name.startswith("p/p=1/delta") for name in filled.files)  # of no partition, by SET LOCATION


class TestSetLocation:
    def test_of_a_partition_that_moved_is_refused(self, filled: Session) -> None:
        with before_the_lock(filled, *NEW_PARTITION), pytest.raises(TransactionError, match="was changed while"):
            filled.sql("ALTER TABLE p PARTITION (p = 1) SET LOCATION '{root}/w/third'")
        assert "third" not in filled.files

    def test_to_a_place_where_something_was_dropped_finds_it_empty(self, filled: Session) -> None:
        filled.store.drop_table("default", "t")  # killed there
        filled.sql("ALTER TABLE p SET LOCATION '{root}/w/t'")
        filled.insert(5, name="p", part="p=5")
        assert filled.rows("default.p") == {"p=1": [1], "p=2": [2], "p=5": [5]}


class TestAddPartition:
    def test_that_another_one_has_added_meanwhile_is_refused_or_left(self, filled: Session) -> None:
        text = "ALTER TABLE p ADD PARTITION (p = 5) LOCATION '{root}/w/five'"
        with before_the_lock(filled, text), pytest.raises(AlreadyExists):
            filled.sql("ALTER TABLE p ADD PARTITION (p = 5)")
        with before_the_lock(filled, text.replace("5", "6").replace("five", "six")):
            filled.sql("ALTER TABLE p ADD IF NOT EXISTS PARTITION (p = 6)")
        places = {p.location.rpartition("/")[2] for p in filled.store.list_partitions("default", "p")}
        assert {"five", "six"} < places
        assert not [f for f in filled.files if f.endswith(("p=5", "p=6"))]


class TestMsckRepair:
    def test_does_not_find_what_a_killed_drop_left(self, filled: Session) -> None:
        filled.store.drop_partitions("default", "p", ["p=1"])
        filled.sql("MSCK REPAIR TABLE p")
        assert filled.rows("default.p") == {"p=2": [2]}


class TestCreateTable:
    def test_in_a_database_that_moved_is_in_the_new_place(self, filled: Session) -> None:
        filled.sql("CREATE DATABASE hr")
        with before_the_lock(filled, "DROP DATABASE hr", "CREATE DATABASE hr LOCATION '{root}/w/hr2'"):
            filled.sql("CREATE TRANSACTIONAL TABLE hr.t (a int)")
        assert filled.store.get_table("hr", "t").location.endswith("/w/hr2/t")

    def test_that_another_one_has_made_meanwhile_is_refused_or_left(self, filled: Session) -> None:
        with before_the_lock(filled, "CREATE TRANSACTIONAL TABLE n (b int)"), pytest.raises(AlreadyExists):
            filled.sql("CREATE TRANSACTIONAL TABLE n (a int)")
        with before_the_lock(filled, "CREATE TRANSACTIONAL TABLE m (b int)"):
            filled.sql("CREATE TRANSACTIONAL TABLE IF NOT EXISTS m (a int)")
        assert filled.store.get_table("default", "m").columns[0].name == "b"


class TestDropDatabase:
    def test_drops_what_is_in_it_by_then(self, filled: Session) -> None:
        filled.sql("CREATE DATABASE hr")
        with before_the_lock(filled, "CREATE TRANSACTIONAL TABLE hr.n (a int)"):
            filled.sql("DROP DATABASE hr CASCADE")
        assert ([f for f in filled.files if f.startswith("hr")], filled.is_idle) == ([], True)

    def test_of_one_that_is_gone_by_then_says_so(self, filled: Session) -> None:
        filled.sql("CREATE DATABASE hr")
        with before_the_lock(filled, "DROP DATABASE hr"), pytest.raises(AcidError, match="does not exist"):
            filled.sql("DROP DATABASE hr")
        filled.sql("CREATE DATABASE hr")
        with before_the_lock(filled, "DROP DATABASE hr"):
            filled.sql("DROP DATABASE IF EXISTS hr")


class TestDropView:
    def test_does_not_drop_a_table(self, filled: Session) -> None:
        view = filled.store.get_table("default", "t")
        filled.store.create_table(
            replace(view, name="v", location="", view_text="SELECT 1", table_type="VIRTUAL_VIEW", parameters={})
        )

        def made_a_table() -> None:
            filled.store.drop_table("default", "v")
            inserted(filled, "v", "", 7, make=True)

        with before_the_lock(filled, does=made_a_table), pytest.raises(TransactionError, match="table"):
            filled.sql("DROP VIEW v")
        assert filled.rows("default.v") == {"": [7]}


def test_a_drop_of_a_partition_whose_table_is_renamed_brings_nothing_along(filled: Session) -> None:
    filled.store.drop_partitions("default", "p", ["p=1"])  # killed there
    filled.sql("ALTER TABLE p RENAME TO u")
    filled.insert(9, name="u", part="p=1")
    assert filled.rows("default.u") == {"p=1": [9], "p=2": [2]}


def filled_elsewhere(session: Session) -> None:
    inserted(session, "p", "p=1", 9)


def inserted(session: Session, name: str, part: str, number: int, *, make: bool = False) -> None:
    other = Session(session.root)
    if make:
        other.table(name)
    other.insert(number, name=name, part=part)
    other.close()


@contextmanager
def no_spark_writer() -> Iterator[None]:
    """TRUNCATE's empty base, written without Spark."""

    class Writer:
        def __init__(self, spark: object, target: Target, staging: Staging, rows: object) -> None:
            self._name, self._staging = BaseName(target.write_id), staging

        def write_nothing(self, partition: str) -> None:
            self._staging.directory(partition, self._name)

    with patch.object(truncate, "Writer", Writer):
        yield
