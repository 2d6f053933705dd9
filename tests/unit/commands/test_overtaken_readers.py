"""Readers take no locks: what others rename, drop or make anew while a reader looks must not cost it a row, or give it
one. It reads what was there when it looked the table up, or it looks everything up again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acidsql.commands.ddl import renames
from acidsql.commands.query import over_snapshot
from acidsql.commands.resolve.context import StartOver, StatementContext, StatementSnapshot
from acidsql.commands.resolve.names import AcidTable, Missing
from acidsql.commands.transaction.pin import Pin, ReaderPin
from acidsql.commands.transaction.run import in_transaction
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import LockTimeout, TransactionError, UnsupportedError
from acidsql.fs import LocalFileSystem
from acidsql.fs.protocol import FileStatus
from acidsql.metastore.model import Column, LockComponent, LockType
from tests.unit.commands.definitions import Session, queries_of
from tests.unit.compactor.world import rows_of
from tests.unit.sleeping import this_thread_instead

DEFINITIONS: dict[str, list[str]] = {
    "DROP": ["DROP TABLE x"],
    "DROP and CREATE AS": ["DROP TABLE x", "CREATE TRANSACTIONAL TABLE x AS SELECT 1"],
    "DROP and CREATE AS at its place": [
        "DROP TABLE x",
        "CREATE TRANSACTIONAL TABLE x LOCATION '{root}/w/x' AS SELECT 1",
    ],
    "DROP and CREATE of other columns": ["DROP TABLE x", "CREATE TRANSACTIONAL TABLE x (b string)"],
    "DROP and CREATE with partitions": ["DROP TABLE x", "CREATE TRANSACTIONAL TABLE x (a int) PARTITIONED BY (k int)"],
    "RENAME": ["ALTER TABLE x RENAME TO y"],
    "RENAME there and back": ["ALTER TABLE x RENAME TO y", "ALTER TABLE y RENAME TO x"],
    "RENAME and CREATE AS": ["ALTER TABLE x RENAME TO y", "CREATE TRANSACTIONAL TABLE x AS SELECT 1"],
    "swap": ["ALTER TABLE x RENAME TO y", "ALTER TABLE other RENAME TO x"],
    "SET LOCATION": ["ALTER TABLE x SET LOCATION '{root}/w/else'"],
}
OF_PARTITIONS: dict[str, list[str]] = {
    "RENAME PARTITION": ["ALTER TABLE p PARTITION (k = 1) RENAME TO PARTITION (k = 3)"],
    "RENAME PARTITION there and back": [
        "ALTER TABLE p PARTITION (k = 1) RENAME TO PARTITION (k = 3)",
        "ALTER TABLE p PARTITION (k = 3) RENAME TO PARTITION (k = 1)",
    ],
    "DROP PARTITION": ["ALTER TABLE p DROP PARTITION (k = 1)"],
    "DROP and ADD PARTITION": ["ALTER TABLE p DROP PARTITION (k = 1)", "ALTER TABLE p ADD PARTITION (k = 1)"],
    "SET LOCATION of a partition": ["ALTER TABLE p PARTITION (k = 1) SET LOCATION '{root}/w/else'"],
}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "w").mkdir()
    made = Session(tmp_path)
    for name in ("x", "other"):
        made.table(name)
    made.insert(4, 5, name="x")
    made.insert(6, name="x")
    made.insert(1, name="other")
    made.table("p", "k int")
    made.insert(10, name="p", part="k=1")
    made.insert(20, name="p", part="k=2")
    yield made
    made.close()


def read(pin: Pin, name: str, between: Callable[[], object] = lambda: None) -> list[int]:
    """The rows of a table, as a query looks them up; with something that happens between its name and its files."""
    found = pin.context.resolve(name)
    assert isinstance(found, AcidTable)
    partitions = pin.context.partitions(found.table)
    between()
    seen = pin.context.table_snapshot(found.table, partitions)
    return sorted(v for p in seen.partitions for v in rows_of(p.state, seen.write_ids).values())


def run(shop: Session, statements: list[str]) -> None:
    with queries_of(77):
        for statement in statements:
            shop.sql(statement)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_table_that_another_one_changes_is_looked_up_again(shop: Session, name: str) -> None:
    pin = ReaderPin(shop.env)
    with pytest.raises(StartOver, match=r"Table default\.x was changed, renamed, moved or dropped"):
        read(pin, "x", lambda: run(shop, DEFINITIONS[name]))
    pin.end()


@pytest.mark.parametrize("name", OF_PARTITIONS)
def test_a_partition_that_another_one_changes_is_looked_up_again(shop: Session, name: str) -> None:
    pin = ReaderPin(shop.env)
    with pytest.raises(StartOver, match=r"Table default\.p was changed"):
        read(pin, "p", lambda: run(shop, OF_PARTITIONS[name]))
    pin.end()


WRITES: dict[str, Callable[[Session], object]] = {
    "INSERT": lambda s: s.insert(9, name="x"),
    "INSERT into a new partition": lambda s: s.insert(9, name="p", part="k=9"),
    "ADD PARTITION": lambda s: s.sql("ALTER TABLE p ADD PARTITION (k = 9)"),
    "CREATE of another one": lambda s: s.table("y"),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("table", "rows"), [("x", [4, 5, 6]), ("p", [10, 20])])
def test_what_others_write_is_no_reason_to(shop: Session, name: str, table: str, rows: list[int]) -> None:
    pin = ReaderPin(shop.env)
    assert read(pin, table, lambda: WRITES[name](shop)) == rows
    pin.end()


def listing(monkeypatch: pytest.MonkeyPatch, step: int, meanwhile: Callable[[], object]) -> list[int]:
    """Do something before one of the listings from now on; returns how many there were."""
    count, real = [0], LocalFileSystem.list

    def listed(self: LocalFileSystem, path: str) -> list[FileStatus]:
        count[0] += 1
        if count[0] == step:
            monkeypatch.setattr(LocalFileSystem, "list", real)
            meanwhile()
        return real(self, path)

    monkeypatch.setattr(LocalFileSystem, "list", listed)
    return count


ALL = {**DEFINITIONS, **OF_PARTITIONS}


@pytest.mark.parametrize("layout", ["usual", "with directories below", "with files beside"])
@pytest.mark.parametrize("name", ALL)
def test_each_moment_of_the_listing(
    shop: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, layout: str
) -> None:
    """A SELECT answers what was there before or after, with as many rows; the tables are made anew for each moment."""
    of = "p" if name in OF_PARTITIONS else "x"
    for step in range(1, 20):
        root = tmp_path / f"at-{step}"
        (root / "w").mkdir(parents=True)
        session = Session(root)
        session.table("other")
        session.insert(1, name="other")
        session.table(of, "k int" if of == "p" else "")
        for number, part in ((10, "k=1"), (20, "k=2")):
            session.insert(number, name=of, part=part if of == "p" else "")
        if layout != "usual":
            for file in list((root / "w").rglob("bucket_00000")):
                below = file.parent / "HIVE_UNION_SUBDIR_1" if layout == "with directories below" else file.parent
                below.mkdir(exist_ok=True)
                file.rename(below / file.name)
                (file.parent / "_orc_acid_version").write_text("2")
        with monkeypatch.context() as patched:
            count = listing(patched, step, lambda s=session: run(s, ALL[name]))  # type: ignore[misc]
            pin = ReaderPin(session.env)
            try:
                assert read(pin, of) == [10, 20], (step, name)
                reached = count[0] >= step
            except StartOver:
                reached = True
            pin.end()
        session.close()
        shutil.rmtree(root)
        if not reached:
            assert step > 2
            return
    raise AssertionError("the listing has no end")


def test_a_reader_starts_over_by_itself(shop: Session) -> None:
    attempts: list[int] = []

    def look(pin: Pin) -> list[int]:
        attempts.append(pin.id)
        again = len(attempts) < 3
        return read(pin, "x", lambda: run(shop, DEFINITIONS["DROP and CREATE AS"]) if again else None)

    assert over_snapshot(shop.env, look) == [77]
    assert len(set(attempts)) == 3
    shop.env.heartbeats.end(attempts[-1])
    assert not shop.store.show_txns()


def test_but_not_for_ever(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the end it takes locks, and those who would be in its way wait for it."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", this_thread_instead(pauses.append))
    shop.sql("SET acidsql.lock.timeout = 0s")
    ends: list[str] = []

    def others() -> None:
        ends.append("waits")
        with suppress(LockTimeout):
            run(shop, DEFINITIONS["RENAME there and back"])
            ends[-1] = "done"

    pin_ids: list[int] = []

    def look(pin: Pin) -> list[int]:
        pin_ids.append(pin.id)
        return read(pin, "x", others)

    assert over_snapshot(shop.env, look) == [4, 5, 6]
    assert ends == [*["done"] * 5, "waits"]
    assert pauses == pytest.approx([0.1, 0.3, 0.9])
    shop.env.heartbeats.end(pin_ids[-1])
    assert not shop.store.show_txns()
    assert not shop.store.show_locks()


def test_a_rename_that_is_undone_meanwhile_is_noticed(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is as before, but for its version."""

    def fails(*_: Any) -> None:
        raise TransactionError("no")

    monkeypatch.setattr(renames, "carry_out_announced", fails)

    def undone() -> None:
        with pytest.raises(TransactionError):
            shop.sql("ALTER TABLE x RENAME TO y")

    pin = ReaderPin(shop.env)
    with pytest.raises(StartOver):
        read(pin, "x", undone)
    pin.end()


# --- between the snapshot and the names -------------------------------------------------------------------------------

REPLACED: dict[str, tuple[list[str], list[Callable[[Session], object]]]] = {
    "INSERT": (["x"], [lambda s: s.insert(9, name="x")]),
    "DROP, CREATE AS": (
        ["x"],
        [lambda s: run(s, ["DROP TABLE x"]), lambda s: run(s, ["CREATE TRANSACTIONAL TABLE x AS SELECT 1"])],
    ),
    "CREATE AS, DROP, RENAME": (
        ["x"],
        [
            lambda s: run(s, ["CREATE TRANSACTIONAL TABLE n AS SELECT 1"]),
            lambda s: run(s, ["DROP TABLE x"]),
            lambda s: run(s, ["ALTER TABLE n RENAME TO x"]),
        ],
    ),
    "INSERT, RENAME there and back": (
        ["x"],
        [
            lambda s: s.insert(9, name="x"),
            lambda s: run(s, ["ALTER TABLE x RENAME TO y"]),
            lambda s: run(s, ["ALTER TABLE y RENAME TO x"]),
        ],
    ),
    "rows into another table, DROP PARTITION": (
        ["p", "other"],
        [lambda s: s.insert(10, name="other"), lambda s: run(s, OF_PARTITIONS["DROP PARTITION"])],
    ),
    "rows into another partition, DROP PARTITION": (
        ["p"],
        [lambda s: s.insert(10, name="p", part="k=2"), lambda s: run(s, OF_PARTITIONS["DROP PARTITION"])],
    ),
    "rows into a partition, RENAME PARTITION to another": (
        ["p"],
        [lambda s: s.insert(9, name="p", part="k=1"), lambda s: run(s, OF_PARTITIONS["RENAME PARTITION"])],
    ),
}
"""What others do one after the other, and the tables that are read."""


def answer(context: StatementContext, tables: list[str]) -> list[int]:
    made: list[int] = []
    for name in tables:
        found = context.resolve(name)
        assert isinstance(found, AcidTable)
        seen = context.table_snapshot(found.table, context.partitions(found.table))
        made += sorted(v for p in seen.partitions for v in rows_of(p.state, seen.write_ids).values())
    return made


def now(shop: Session, tables: list[str]) -> list[int] | None:
    """What one who comes now reads; None where a table is not there."""
    pin = ReaderPin(shop.env)
    try:
        return answer(pin.context, tables)
    except AssertionError:
        return None
    finally:
        pin.end()


@pytest.mark.parametrize("who", ["reader", "writer"])
@pytest.mark.parametrize("name", REPLACED)
def test_the_answer_is_that_of_one_moment(shop: Session, name: str, who: str) -> None:
    """What is looked up after the snapshot was taken must not be newer than it is."""
    tables, steps = REPLACED[name]
    serial, attempts = [now(shop, tables)], [0]

    def others() -> None:
        attempts[0] += 1
        if attempts[0] == 1:
            for step in steps:
                step(shop)
                serial.append(now(shop, tables))

    def read(pin: Pin) -> list[int]:
        others()
        return answer(pin.context, tables)

    def write(txn: WriteTransaction) -> list[int]:
        others()
        context = StatementContext(shop.env)
        for one in tables:
            context.resolve(one)
        txn.lock([LockComponent(LockType.SHARED_READ, "default", one) for one in tables])
        context.revalidate(txn.snapshot)
        return answer(context, tables)

    if who == "reader":
        assert over_snapshot(shop.env, read) in serial
        assert attempts == [1 if name == "INSERT" else 2]
    else:  # its snapshot comes after its locks
        assert in_transaction(shop.env, write) == serial[-1]
        assert attempts == [1]


# --- those that change ------------------------------------------------------------------------------------------------


def test_a_property_set_before_the_locks_is_no_reason_to(shop: Session) -> None:
    """What is compared is what was looked up under the locks."""
    version, context = shop.store.latest_version(), StatementContext(shop.env)
    found = context.resolve("x")
    assert isinstance(found, AcidTable)
    other = shop.store.get_table("default", "other")
    context.add(other)
    for name in ("x", "other"):
        shop.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')")
    snapshot = StatementSnapshot(shop.store.get_valid_txns(), version)
    context.revalidate(snapshot)
    for table in (found.table, other):
        with context.unchanged(table):
            shop.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('a' = 'c')")
        shop.sql(f"ALTER TABLE {table.name} ADD COLUMNS (b int)")
        with pytest.raises(StartOver):
            context.revalidate(snapshot)


def test_nor_are_columns_that_the_statement_itself_will_add(shop: Session) -> None:
    context = StatementContext(shop.env, StatementSnapshot(shop.store.get_valid_txns(), shop.store.latest_version()))
    table = shop.store.get_table("default", "x")
    context.add(table)
    with context.unchanged(replace(table, columns=(*table.columns, Column("new", "int")))):
        pass


# --- paths of Spark 4.3 -----------------------------------------------------------------------------------------------


def test_a_name_alone_is_refused_where_spark_looks_for_it_in_several_databases(
    shop: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop.env.catalyst, "looks_along_a_path", lambda: True)
    context = StatementContext(shop.env)
    with pytest.raises(UnsupportedError, match=r"spark\.sql\.path\.enabled.*\bx\b") as refused:
        context.resolve("x")
    assert refused.value.hint is not None
    assert "default.x" in refused.value.hint
    assert isinstance(context.resolve("x", "default"), AcidTable)
    assert isinstance(context.resolve("nobody"), Missing)  # Spark looks for it


def test_a_table_that_is_committed_after_the_snapshot_is_not_empty(shop: Session) -> None:
    """It was registered before, and nobody else has seen it then."""
    pins: list[Pin] = []
    with queries_of(77, meanwhile=lambda: pins.append(ReaderPin(shop.env))):
        shop.sql("CREATE TRANSACTIONAL TABLE new AS SELECT 1")
    with pytest.raises(StartOver):
        answer(pins[0].context, ["new"])
    pins[0].end()
    assert now(shop, ["new"]) == [77]
