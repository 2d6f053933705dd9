"""Kill a statement that drops, makes or renames something before its Nth step, for N = 1, 2, 3 …

What the next session finds is as it was or as it was to be; and that stays so: whoever goes on with the table adds rows
to those, and none comes back.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from acidsql.compactor.cleaner import Cleaner
from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.dropped import remove_dropped
from acidsql.compactor.housekeeper import Housekeeper
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from tests.injection import Mortal
from tests.unit.commands.definitions import Session, queries_of

STEPS = {
    LocalFileSystem: ("mkdirs", "rename", "delete", "delete_if_empty", "write_bytes"),
    EmbeddedMetastore: (
        *("open_txns", "lock", "allocate_table_write_id", "commit_txn", "abort_txns", "forget_txn_components"),
        *("create_database", "drop_database", "create_table", "drop_table", "discard_table"),
        *("add_partitions", "drop_partitions", "set_aside", "forget_dropped", "alone"),
        *("alter_table", "alter_partition", "rename_table", "rename_partition", "forget_moves"),
        *("seed_txn_id", "seed_write_id"),
    ),
}


class Deaths:
    """Tables in a warehouse, put back as they were for each death."""

    def __init__(self, root: Path) -> None:
        self._now, self._kept = root / "now", root / "kept"
        self._now.mkdir()
        first = Session(self._now)
        first.sql("CREATE DATABASE hr")
        for name in ("hr.a", "hr.b", "t"):
            first.table(name)
            first.insert(1, 2, name=name)
        first.table("p", "p int")
        first.insert(1, name="p", part="p=1")
        first.insert(2, name="p", part="p=2")
        first.table("made", "p int")
        for number in (1, 2, 3):
            first.insert(number, name="made", part=f"p={number}")
        shutil.copytree(self._now / "w" / "made", self._now / "foreign")
        first.sql("DROP TABLE made")
        self.before = first.seen
        first.close()
        shutil.copytree(self._now, self._kept)

    def of(self, mortal: Mortal, text: str) -> Iterator[tuple[Session, str | None]]:
        """The next session after each death of a statement, at last after none; and the step that was not done."""
        for number in itertools.count(1):
            shutil.rmtree(self._now)
            shutil.copytree(self._kept, self._now)
            dying = Session(self._now)
            with mortal.before(number):
                dying.sql(text)
            dying.close()
            session = Session(self._now)
            session.store.abort_txns([t.id for t in session.store.show_txns()])  # the dead one's time is out
            session.store.clean_empty_aborted_txns()
            yield session, mortal.died
            session.close()
            if mortal.died is None:
                return


@pytest.fixture
def deaths(tmp_path: Path) -> Deaths:
    return Deaths(tmp_path)


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> Mortal:
    return Mortal(monkeypatch, STEPS)


CHANGES = {
    "DROP PARTITION": ("ALTER TABLE p DROP PARTITION (p = 1)", "p", ["p=1"], "drop_partitions"),
    "DROP TABLE": ("DROP TABLE t", "t", [""], "drop_table"),
    "DROP of a partitioned table": ("DROP TABLE p", "p", ["p=1", "p=2"], "drop_table"),
    "TRUNCATE": ("TRUNCATE TABLE p PARTITION (p = 1)", "p", ["p=1"], "rename"),
    "RENAME PARTITION": (
        "ALTER TABLE p PARTITION (p = 1) RENAME TO PARTITION (p = 7)",
        "p",
        ["p=1", "p=7"],
        "rename_partition",
    ),
    "RENAME TABLE": ("ALTER TABLE t RENAME TO u", "t", [""], "rename_table"),
    "DROP DATABASE": ("DROP DATABASE hr CASCADE", "hr.a", [""], "drop_database"),
}
"""A statement, a table and partitions that others go on to write to, and a step of its own."""


@pytest.mark.parametrize("name", CHANGES)
def test_nothing_comes_back_wherever_it_is_killed(deaths: Deaths, mortal: Mortal, name: str) -> None:
    text, table, parts, own = CHANGES[name]
    full_name = table if "." in table else f"default.{table}"
    died: list[str | None] = []
    outcomes = []
    for session, step in deaths.of(mortal, text):
        died.append(step)
        after = _seen(session)
        outcomes.append(after)
        session.sql("CREATE DATABASE IF NOT EXISTS hr")
        keys = " PARTITIONED BY (p int)" if table == "p" else ""
        session.sql(f"CREATE TRANSACTIONAL TABLE IF NOT EXISTS {table} (a int){keys}")
        for part in parts:
            session.insert(9, name=table, part=part)
        wanted = dict(after)
        added = {part: [*after.get(full_name, {}).get(part, []), 9] for part in parts}
        wanted[full_name] = {**after.get(full_name, {}), **added}
        assert _seen(session) == wanted, (step, session.files)
        remove_dropped(session.store)
        assert _seen(session) == wanted, (step, session.files)
        assert session.store.dropped_directories() == []
        assert not [f for f in session.files if "_tmp_" in f and "TRUNCATE" not in name], step
    assert {own, "commit_txn", "open_txns"} <= set(died), died
    assert outcomes[-1] != deaths.before
    if name != "DROP DATABASE":  # one table after the other, each wholly
        assert all(outcome in (deaths.before, outcomes[-1]) for outcome in outcomes), outcomes


def _seen(session: Session) -> dict[str, dict[str, list[int]]]:
    """What is read by one who names the tables: who looks for a table finishes its moves."""
    for database in session.store.list_databases():
        for table in session.store.list_tables(database):
            session.sql(f"ALTER TABLE {database}.{table} SET TBLPROPERTIES ('seen' = 'yes')")
    return session.seen


TAKES_IN = "CREATE TRANSACTIONAL TABLE n (a int) PARTITIONED BY (p int) LOCATION '{root}/foreign'"


def test_a_directory_that_is_taken_in_collides_with_no_insert_wherever_it_is_killed(
    deaths: Deaths, mortal: Mortal
) -> None:
    died = []
    for session, step in deaths.of(mortal, TAKES_IN):
        died.append(step)
        session.sql(TAKES_IN.replace("TABLE n", "TABLE IF NOT EXISTS n"))
        assert session.rows("default.n") == {"p=1": [1], "p=2": [2], "p=3": [3]}, step
        session.insert(9, name="n", part="p=1")
        session.insert(10, name="n", part="p=4")
        assert session.rows("default.n") == {"p=1": [1, 9], "p=2": [2], "p=3": [3], "p=4": [10]}, step
        names = sorted(path.name for path in (session.root / "foreign" / "p=1").iterdir())
        assert names == ["delta_0000001_0000001_0000", "delta_0000004_0000004_0000"], step
    assert {"create_table", "commit_txn"} <= set(died)


MAKES = {
    "CREATE TABLE": "CREATE TRANSACTIONAL TABLE n (a int)",
    "CREATE TABLE AS": "CREATE TRANSACTIONAL TABLE n AS SELECT 1",
}


@pytest.mark.parametrize("name", MAKES)
def test_a_table_can_be_made_again_wherever_it_is_killed(deaths: Deaths, mortal: Mortal, name: str) -> None:
    query: AbstractContextManager[None] = queries_of(4, 5) if "AS" in name else nullcontext()
    whole = {"": [4, 5] if "AS" in name else []}
    died = []
    with query:
        for session, step in deaths.of(mortal, MAKES[name]):
            died.append(step)
            assert session.seen.get("default.n", {"": []}) in ({"": []}, whole), step
            session.sql("DROP TABLE IF EXISTS n")
            session.sql(MAKES[name])
            assert session.rows("default.n") == whole, step
            assert {n: r for n, r in session.seen.items() if n != "default.n"} == deaths.before, step
    assert {"create_table", "commit_txn"} <= set(died)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("CREATE DATABASE n", "CREATE DATABASE IF NOT EXISTS n"),
        ("ALTER TABLE p ADD PARTITION (p = 5)", "ALTER TABLE p ADD IF NOT EXISTS PARTITION (p = 5)"),
        ("ALTER TABLE p SET LOCATION '{root}/w/other'", "ALTER TABLE p SET LOCATION '{root}/w/other'"),
    ],
)
def test_what_is_made_can_be_made_again_wherever_it_is_killed(
    deaths: Deaths, mortal: Mortal, text: str, again: str
) -> None:
    for session, step in deaths.of(mortal, text):
        for dead in session.store.show_txns():  # VACUUM: no place is changed while files of aborted ones may be left
            session.store.forget_txn_components(dead.id)
        session.sql(again)
        session.insert(9, name="p", part="p=5")
        found = session.seen
        assert found.pop("default.p") == {**deaths.before["default.p"], "p=5": [9]}, step
        assert found == {n: r for n, r in deaths.before.items() if n != "default.p"}, step


def test_the_housekeeper_removes_what_a_killed_statement_left(deaths: Deaths, mortal: Mortal) -> None:
    left = 0
    for session, _ in deaths.of(mortal, "DROP TABLE t"):
        left += len(session.store.dropped_directories())
        context = WorkerContext(session.store, session.env.heartbeats, session.env.settings, "desk", "ann")
        Housekeeper(context, Cleaner(context)).run()
        assert session.is_idle
    assert left


def test_a_dropped_database_takes_along_what_a_killed_rename_left(deaths: Deaths, mortal: Mortal) -> None:
    """The directory may still be at its old place: without it a later table of that name could not be made."""
    for session, step in deaths.of(mortal, "ALTER TABLE hr.a RENAME TO hr.c"):
        session.sql("DROP DATABASE hr CASCADE")
        assert not [file for file in session.files if "hr.db" in file], step
        session.sql("CREATE DATABASE hr")
        session.sql("CREATE TRANSACTIONAL TABLE hr.a (a int)")
        assert session.rows("hr.a") == {"": []}, step
