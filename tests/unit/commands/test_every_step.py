"""Fail the Nth step of a statement, the syncs among them: the table is wholly before it or wholly after it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.sql.statements import Span, TableName
from tests.injection import Injector
from tests.spark.tree import tree
from tests.unit.commands.session import Session

STEPS = {
    LocalFileSystem: ("list", "exists", "mkdirs", "rename", "sync", "write_bytes", "open_write", "delete"),
    EmbeddedMetastore: (
        *("open_txns", "lock", "allocate_table_write_id", "get_valid_txns", "get_valid_write_ids", "commit_txn"),
        *("get_latest_txn_in_conflict", "alter_table", "rename_table", "forget_moves", "add_partitions"),
        *("get_table", "find_table", "list_partitions"),
    ),
}
NOWHERE = Span("", 0, 0)
STATEMENTS = {
    "rename": "ALTER TABLE t RENAME TO u",
    "rename of a table with partitions": "ALTER TABLE p RENAME TO u",
    "new place": "ALTER TABLE t SET LOCATION '{home}/else/where'",
    "truncate": "TRUNCATE TABLE t",
    "insert": "",
}


IN_EVERY_RUN = (("rename", True), ("new place", True), ("insert", False))
CASES = [
    pytest.param(
        name,
        after,
        id=f"{name}-{'after' if after else 'before'} the step",
        marks=[] if (name, after) in IN_EVERY_RUN else [pytest.mark.long],
    )
    for name in STATEMENTS
    for after in (False, True)
]


def begun(home: Path) -> Session:
    session = Session(home)
    session.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    session.insert("t", 1)
    session.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (k int)")
    session.insert("p", 1, part=1)
    return session


def run(session: Session, name: str) -> None:
    if name == "insert":
        session.insert("p", 2, part=2)
    else:
        session.sql(STATEMENTS[name].format(home=session.warehouse))


def seen(session: Session) -> dict[str, list[str]]:
    """The directories of committed writes of each table, at the places that the store has for them.

    To look a table up finishes a rename that was left under way, as in any statement.
    """
    metastore, found = session.metastore, {}
    for name in metastore.list_tables("default"):
        table = session.env.registered(TableName(name, None, NOWHERE))
        assert table is not None
        assert table.moves == ()
        [valid] = metastore.get_valid_write_ids([table.full_name], metastore.get_valid_txns())
        places = [p.location for p in metastore.list_partitions("default", name)] or [table.location]
        names = [d.name for place in places for d in Path(place).iterdir()]
        found[name] = sorted(d for d in names if valid.is_valid(int(d.split("_")[1])))
    return found


@pytest.mark.parametrize(("name", "after"), CASES)
def test_an_error_at_any_step_leaves_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    done = begun(tmp_path / "done")
    before = seen(done)
    run(done, name)
    wanted = seen(done)
    assert wanted != before
    done.close()
    injector, fired = Injector(monkeypatch, STEPS), set()
    for number in itertools.count(1):
        session = begun(tmp_path / str(number))
        files = tree(session.warehouse)
        injector.arm(number, after)
        with injector.on():
            run(session, name)
        if injector.fired is None:
            session.close()
            break
        fired.add(injector.fired)
        found = seen(session)
        assert found in (before, wanted), (injector.fired, found)
        left = tree(session.warehouse)
        assert not [f for f in left if "_tmp_" in f], injector.fired
        assert session.metastore.show_locks() == [], injector.fired
        if found == before:
            assert left == files, injector.fired
        session.close()
    assert {"lock", "allocate_table_write_id", "commit_txn"} <= fired
    assert "sync" in fired or name == "new place"
