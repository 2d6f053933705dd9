"""The first statement of a transaction, or one alone, looks names and partitions up, and then takes the snapshot.

Whoever inserts in between is seen: what was looked up before would be too old. Another session's INSERT is placed
before each call of the store that the statement makes.
"""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.errors import AnalysisException

import acidsql
from acidsql.commands.resolve.context import DefinitionChanged
from acidsql.errors import AcidError, AlreadyExists, LockTimeout, UnsupportedError, WriteConflict
from acidsql.fs.local import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.plan.snapshot import new_partition
from acidsql.plan.staging import Staging
from acidsql.session import AcidSession
from tests.spark.answers import nothing_is_open, rows

ONE_KEY = "(id int) PARTITIONED BY (p int)"
KINDS = {
    "full": f"CREATE TRANSACTIONAL TABLE t {ONE_KEY}",
    "insert-only": f"CREATE TABLE t {ONE_KEY} STORED AS ORC TBLPROPERTIES ('transactional'='true',"
    " 'transactional_properties'='insert_only')",
}
Rows = list[tuple[Any, ...]]
XLOCKS = ["hive.txn.xlock.iow=true", "hive.txn.xlock.iow=false", "hive.txn.xlock.write=false"]
IF_NOT_EXISTS = "INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT 70"


def truncated(inside: Rows, after: Rows) -> bool:
    """Both rows of the INSERT, or none."""
    return inside == [] and after in ([], [(50, 1), (51, 9)])


def truncated_in_1(inside: Rows, after: Rows) -> bool:
    return inside in ([], [(51, 9)]) and (after == inside or after == [(50, 1), (51, 9)])


def kept(inside: Rows, after: Rows) -> bool:
    """The partition is not overwritten when it is there, and what has come to it later is not hidden."""
    return ((70, 9) in inside) is ((70, 9) in after) and (51, 9) in after


def changed(inside: Rows, after: Rows) -> bool:
    """No row of p = 9 that the transaction sees is as it was."""
    return (51, 9) not in inside


CASES: list[tuple[str, str, Callable[[Rows, Rows], bool]]] = [
    ("full", "TRUNCATE TABLE t", truncated),
    ("insert-only", "TRUNCATE TABLE t", truncated),
    ("full", "TRUNCATE TABLE t PARTITION (p = 1)", truncated_in_1),
    ("full", IF_NOT_EXISTS, kept),
    ("insert-only", IF_NOT_EXISTS, kept),
    (
        "full",
        "FROM (SELECT 70 AS id) s INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT id"
        " INSERT INTO TABLE t PARTITION (p = 1) SELECT id",
        kept,
    ),
    ("full", "UPDATE t SET id = 0 WHERE p = 9", changed),
    ("full", "DELETE FROM t WHERE p = 9", changed),
]


@pytest.fixture
def other(acid: AcidSession, warehouse: Path) -> Iterator[AcidSession]:
    with acidsql.connect(acid.spark, warehouse=warehouse, settings={"acidsql.lock.timeout": "300ms"}) as session:
        yield session


def before_call(acid: AcidSession, monkeypatch: pytest.MonkeyPatch, number: int, do: Callable[[], object]) -> list[str]:
    """Do something before a call of the store, the first one being 1; the calls so far."""
    calls = list[str]()

    def placed(name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            if len(calls) == number:
                do()
            return real(*args, **kwargs)

        return call

    for name in dir(EmbeddedMetastore):
        if not name.startswith("_") and name not in ("close", "on_behalf_of", "capabilities", "register_undo"):
            real = getattr(acid.metastore, name)
            if callable(real):
                monkeypatch.setattr(acid.metastore, name, placed(name, real))
    return calls


def run(acid: AcidSession, other: AcidSession, kind: str, text: str, number: int) -> tuple[list[str], Rows, Rows]:
    """A statement as the first one of a transaction, with an INSERT before one of its calls of the store.

    Returns:
        Its calls, what the transaction sees after it, and what there is in the end.
    """
    acid.sql("DROP TABLE IF EXISTS t")
    acid.sql(KINDS[kind])
    acid.sql("INSERT INTO t VALUES (1, 1)")
    waits = False

    def insert() -> None:
        nonlocal waits
        try:
            other.sql("INSERT INTO t VALUES (50, 1), (51, 9)")
        except LockTimeout:
            waits = True

    with acid.transaction():
        with pytest.MonkeyPatch.context() as patch:
            calls = before_call(acid, patch, number, insert)
            acid.sql(text)
        inside = rows(acid, "SELECT * FROM t")
    nothing_is_open(acid)
    if waits:
        insert()
    return calls, inside, rows(acid, "SELECT * FROM t")


@pytest.mark.parametrize(("kind", "text", "right"), CASES)
def test_an_insert_just_before_its_snapshot(
    acid: AcidSession, other: AcidSession, kind: str, text: str, right: Callable[[Rows, Rows], bool]
) -> None:
    calls, *_ = run(acid, other, kind, text, 0)
    for name in ("latest_version", "get_valid_txns"):
        _, inside, after = run(acid, other, kind, text, calls.index(name) + 1)
        assert right(inside, after), (inside, after)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "text", "right"), CASES)
def test_an_insert_at_any_of_its_calls(
    acid: AcidSession, other: AcidSession, kind: str, text: str, right: Callable[[Rows, Rows], bool]
) -> None:
    for number in itertools.count(1):
        calls, inside, after = run(acid, other, kind, text, number)
        if len(calls) < number:
            break
        assert right(inside, after), (calls[number - 1], number, inside, after)
    assert number > 8


ALONE = {
    "one": "INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT id + 100 FROM t",
    "several": "FROM t INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT id + 100"
    " INSERT INTO t PARTITION (p = 2) SELECT id WHERE id > 900",
}


@pytest.mark.parametrize("setting", ["hive.txn.xlock.iow", "hive.txn.xlock.write"])
@pytest.mark.parametrize("text", ALONE.values(), ids=ALONE)
def test_a_partition_that_comes_before_the_snapshot_exists_for_a_statement_alone(
    acid: AcidSession, other: AcidSession, text: str, setting: str
) -> None:
    """Its look was before the snapshot, and its write id, too: the row was copied, and not hidden."""
    acid.sql(f"SET {setting}=false")

    def run_alone(number: int) -> tuple[list[str], Rows]:
        acid.sql("DROP TABLE IF EXISTS t")
        acid.sql(KINDS["full"])
        acid.sql("INSERT INTO t VALUES (1, 1)")
        waiting = list[str]()

        def insert() -> None:
            try:
                other.sql("INSERT INTO t VALUES (50, 1), (51, 9)")
            except LockTimeout as e:
                waiting.append(e.message)

        with pytest.MonkeyPatch.context() as patch:
            calls = before_call(acid, patch, number, insert)
            acid.sql(text)
        if waiting:
            insert()
        nothing_is_open(acid)
        return calls, sorted(rows(acid, "SELECT * FROM t"))

    calls, _ = run_alone(0)
    first, last = calls.index("latest_version"), len(calls) - calls[::-1].index("get_valid_txns")
    for number in range(first, last + 1):
        _, found = run_alone(number)
        assert found in (
            [(1, 1), (50, 1), (51, 9)],
            [(1, 1), (50, 1), (51, 9), (101, 9)],
        ), (number, calls[number - 1])


@pytest.mark.parametrize("place", ["alone", "first", "later"])
def test_what_an_attempt_of_its_own_has_made_does_not_exist(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    """It left its own INSERT out: an attempt that is undone leaves partitions without rows."""
    acid.sql(KINDS["full"])
    acid.sql(KINDS["full"].replace(" t ", " u "))
    add, placed = acid.metastore.add_partitions, list[str]()

    def beside(partitions: Any, **options: Any) -> None:
        if (partitions[0].table, partitions[0].values) == ("u", ("9",)) and not placed:
            placed.append("u")
            other.sql(f"ALTER TABLE u ADD PARTITION (p = 9) LOCATION '{tmp_path}/elsewhere'")
        add(partitions, **options)

    monkeypatch.setattr(acid.metastore, "add_partitions", beside)
    with nullcontext() if place == "alone" else acid.transaction():
        if place == "later":
            acid.sql("INSERT INTO u VALUES (1, 1)")
        acid.sql(
            "FROM (SELECT 70 AS id) s INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT id"
            " INSERT INTO u PARTITION (p = 9) SELECT id"
        )
    assert placed
    assert rows(acid, "SELECT * FROM u WHERE p = 9") == [(70, 9)]
    assert rows(acid, "SELECT * FROM t") == [(70, 9)]
    nothing_is_open(acid)


def _rolled_back(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    acid.sql("START TRANSACTION")
    acid.sql(IF_NOT_EXISTS)
    acid.sql("ROLLBACK")


def _not_committed(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails in its commit, and nobody answered whether it was made."""
    with monkeypatch.context() as patch:
        patch.setattr(acid.metastore, "commit_txn", Mock(side_effect=WriteConflict("placed")))
        with pytest.raises(WriteConflict):
            acid.sql(IF_NOT_EXISTS)


@contextmanager
def aborted_at_its_commit(acid: AcidSession) -> Iterator[None]:
    """What the session runs in the block is aborted by others, just as it commits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acid.metastore, "commit_txn", lambda txn_id, *_: acid.metastore.abort_txns([txn_id]))
        yield


def _killed(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others abort it: what it has published stays until the cleaner comes."""
    with monkeypatch.context() as patch, aborted_at_its_commit(acid):
        patch.setattr(Staging, "discard", lambda _: False)
        acid.sql(IF_NOT_EXISTS)


UNDONE = {"rolled back": _rolled_back, "not committed": _not_committed, "killed": _killed}


@pytest.mark.parametrize("undo", UNDONE.values(), ids=UNDONE)
def test_what_was_undone_does_not_exist_when_it_is_run_again(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch, undo: Callable[[AcidSession, pytest.MonkeyPatch], None]
) -> None:
    """The partition stays registered, without rows: it was taken for another one's, and nothing was written."""
    acid.sql(KINDS["full"])
    undo(acid, monkeypatch)
    assert rows(acid, "SELECT * FROM t") == []
    assert rows(acid, "SHOW PARTITIONS t") == [("p=9",)]
    assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 1
    assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    acid.sql("DELETE FROM t")
    assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    acid.compactor.run_once()  # removes what was aborted
    assert rows(acid, "SELECT * FROM t") == []
    nothing_is_open(acid)


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD PARTITION (p = 9)",
        "ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 9)",
        "INSERT INTO t PARTITION (p = 9) SELECT 1 WHERE false",
        "INSERT OVERWRITE TABLE t PARTITION (p = 9) SELECT 1 WHERE false",
        "INSERT INTO t VALUES (51, 9)",
    ],
)
@pytest.mark.parametrize("within", [False, True])
def test_what_was_undone_exists_once_others_have_made_it(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, text: str, within: bool
) -> None:
    acid.sql(KINDS["full"])
    _rolled_back(acid, monkeypatch)
    if within and not text.startswith("ALTER"):
        with other.transaction():
            other.sql(text)
            assert other.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    else:
        other.sql(text)
    before = rows(acid, "SELECT * FROM t")
    assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    assert rows(acid, "SELECT * FROM t") == before
    nothing_is_open(acid)


@pytest.mark.parametrize("is_later", [False, True])
def test_what_a_failed_statement_of_the_same_transaction_has_made_does_not_exist(
    acid: AcidSession, is_later: bool
) -> None:
    """Nor does it once that is committed."""
    acid.sql(KINDS["full"])
    acid.sql(KINDS["insert-only"].replace(" t ", " u "))
    with acid.transaction():
        acid.sql("INSERT OVERWRITE TABLE u PARTITION (p = 1) SELECT 1")
        with pytest.raises(UnsupportedError):  # once only, of an insert-only table
            acid.sql(
                "FROM (SELECT 70 AS id) s INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT id"
                " INSERT INTO u PARTITION (p = 1) SELECT id"
            )
        if not is_later:
            assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 1
            assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    if is_later:
        assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 1
    assert rows(acid, "SELECT * FROM t") == [(70, 9)]
    nothing_is_open(acid)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("setting", XLOCKS)
def test_it_waits_for_those_who_may_be_making_its_partition(
    acid: AcidSession, other: AcidSession, end: str, within: bool, setting: str
) -> None:
    """Nothing was written where it was there, and it went with their ROLLBACK."""
    acid.sql(KINDS["full"])
    acid.sql(f"SET {setting}")
    other.sql("START TRANSACTION")
    other.sql("INSERT INTO t VALUES (51, 9)")
    ending = threading.Timer(0.5, lambda: other.sql(end))
    ending.start()
    with acid.transaction() if within else nullcontext():
        written = acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows
    ending.join()
    assert written == (end == "ROLLBACK")
    assert rows(acid, "SELECT * FROM t") == ([(51, 9)] if end == "COMMIT" else [(70, 9)])
    nothing_is_open(acid)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("setting", XLOCKS)
@pytest.mark.parametrize("step", ["latest_version", "add_partitions"])
def test_nobody_makes_its_partition_meanwhile(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, step: str, within: bool, setting: str
) -> None:
    """ADD PARTITION and this statement both succeeded in making it."""
    acid.sql(KINDS["full"])
    acid.sql(f"SET {setting}")
    real, placed = getattr(acid.metastore, step), list[str]()

    def beside(*args: Any, **options: Any) -> Any:
        if not placed:
            placed.append(step)
            for text in ("ALTER TABLE t ADD PARTITION (p = 9)", "INSERT INTO t VALUES (51, 9)"):
                with pytest.raises(LockTimeout):
                    other.sql(text)
        return real(*args, **options)

    monkeypatch.setattr(acid.metastore, step, beside)
    with acid.transaction() if within else nullcontext():
        assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 1
    assert placed
    assert rows(acid, "SELECT * FROM t") == [(70, 9)]
    nothing_is_open(acid)


MAKERS = {
    "without rows": "INSERT INTO t PARTITION (p = 9) SELECT 1 WHERE false",
    "with rows": "INSERT INTO t VALUES (51, 9)",
}


@pytest.mark.parametrize("ends", ["first", "last"])
@pytest.mark.parametrize("kept", MAKERS.values(), ids=MAKERS)
def test_what_one_of_two_has_committed_exists(acid: AcidSession, other: AcidSession, kept: str, ends: str) -> None:
    """The other one, who had written to it as well, was rolled back, and it with that."""
    acid.sql(KINDS["full"])
    acid.sql("START TRANSACTION")
    other.sql("START TRANSACTION")
    if ends == "first":
        acid.sql(kept)
        other.sql("INSERT INTO t VALUES (61, 9)")
        acid.sql("COMMIT")
        other.sql("ROLLBACK")
    else:
        other.sql("INSERT INTO t VALUES (61, 9)")
        acid.sql(kept)
        other.sql("ROLLBACK")
        acid.sql("COMMIT")
    before = rows(acid, "SELECT * FROM t")
    assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    with pytest.raises(AlreadyExists):
        other.sql("ALTER TABLE t ADD PARTITION (p = 9)")
    assert rows(acid, "SELECT * FROM t") == before
    nothing_is_open(acid)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("text", ["ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 9)", "MSCK REPAIR TABLE t"])
def test_what_is_added_beside_its_maker_exists_however_that_one_ends(
    acid: AcidSession, other: AcidSession, text: str, end: str
) -> None:
    """ADD IF NOT EXISTS found it, and did nothing; it was gone with the other's ROLLBACK."""
    acid.sql(KINDS["full"])
    acid.sql("START TRANSACTION")
    acid.sql("INSERT INTO t VALUES (51, 9)")
    with pytest.raises(AlreadyExists, match=r"p=9") as failure:
        other.sql("ALTER TABLE t ADD PARTITION (p = 8) PARTITION (p = 9)")
    assert "not committed" in (failure.value.hint or "")
    other.sql(text)
    acid.sql(end)
    assert rows(acid, "SHOW PARTITIONS t") == [("p=9",)]
    assert other.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    assert rows(acid, "SELECT * FROM t") == ([(51, 9)] if end == "COMMIT" else [])
    nothing_is_open(acid)


def test_what_was_undone_at_another_place_is_added_there_again(acid: AcidSession, tmp_path: Path) -> None:
    """It was taken for somebody else's place by the same statement, and for existing with IF NOT EXISTS."""
    acid.sql(KINDS["full"])
    text, again = "ALTER TABLE t ADD PARTITION (p = 9)", "ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 9)"
    at = f" LOCATION '{tmp_path}/elsewhere'"

    def fail() -> None:
        with aborted_at_its_commit(acid):
            acid.sql(text + at)
        [found] = acid.metastore.list_partitions("default", "t")
        assert found.is_undone

    def location() -> str:
        [found] = acid.metastore.list_partitions("default", "t")
        assert found.exists
        return found.location.removeprefix("file:")

    fail()
    with pytest.raises(AlreadyExists) as failure:
        acid.sql(text)
    assert "DROP PARTITION" in (failure.value.hint or "")
    acid.sql(text + at)
    assert location() == f"{tmp_path}/elsewhere"
    acid.sql("INSERT INTO t VALUES (1, 9)")
    assert rows(acid, "SELECT * FROM t") == [(1, 9)]
    acid.sql("ALTER TABLE t DROP PARTITION (p = 9)")
    fail()
    acid.sql(again)
    assert location() == f"{tmp_path}/elsewhere"
    acid.sql("ALTER TABLE t DROP PARTITION (p = 9)")
    fail()
    acid.sql("ALTER TABLE t DROP PARTITION (p = 9)")
    acid.sql(text)
    assert location().endswith("/t/p=9")
    nothing_is_open(acid)


@pytest.mark.parametrize("text", ["TRUNCATE TABLE t", "TRUNCATE TABLE t PARTITION (p = 9)", "DELETE FROM t"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_undone_does_not_exist_for_what_removes_its_rows(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    acid.sql(KINDS[kind])
    acid.sql("INSERT INTO t VALUES (1, 1)")
    _rolled_back(acid, monkeypatch)
    acid.sql(text)
    assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 1
    with acid.transaction():
        acid.sql("INSERT INTO t VALUES (2, 8)")
        acid.sql(text.replace("9", "8"))
        assert rows(acid, "SELECT * FROM t WHERE p = 8") == []
    nothing_is_open(acid)


@pytest.fixture(params=[*KINDS, "elsewhere"])
def former(acid: AcidSession, warehouse: Path, tmp_path: Path, request: pytest.FixtureRequest) -> AcidSession:
    """A table with (1, 1), where the files of a former partition are that had (3, 9)."""
    acid.sql(KINDS[request.param] if request.param in KINDS else KINDS["full"])
    acid.sql("INSERT INTO t VALUES (1, 1), (3, 9)")
    if request.param == "elsewhere":
        acid.sql(f"ALTER TABLE t PARTITION (p = 9) SET LOCATION '{tmp_path}/elsewhere'")
        acid.sql("ALTER TABLE t DROP PARTITION (p = 9)")
    else:
        shutil.copytree(warehouse / "t" / "p=9", tmp_path / "copy")
        acid.sql("ALTER TABLE t DROP PARTITION (p = 9)")
        shutil.copytree(tmp_path / "copy", warehouse / "t" / "p=9")
    return acid


MERGE = "MERGE INTO t USING (SELECT 5 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 9)"
WRITES = [
    MERGE,
    "INSERT INTO t VALUES (33, 9)",
    "INSERT INTO t PARTITION (p = 9) SELECT 1 WHERE false",
    "INSERT OVERWRITE TABLE t PARTITION (p = 9) SELECT 33",
    "INSERT OVERWRITE TABLE t SELECT id, 9 FROM t",
    IF_NOT_EXISTS,
]
REGISTERS = [
    "MSCK REPAIR TABLE t",
    "ALTER TABLE t ADD PARTITION (p = 9)",
    "ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 9)",
]


@pytest.mark.parametrize("undone", [False, True])
@pytest.mark.parametrize("text", WRITES)
def test_what_writes_does_not_bring_rows_of_a_former_partition_back(
    former: AcidSession, text: str, undone: bool
) -> None:
    """They were seen before its COMMIT and after its ROLLBACK, and stayed where INSERT OVERWRITE had replaced them."""
    if undone:
        _registered_without_rows(former)
    if former.metastore.get_table("default", "t").is_insert_only:
        text = text.replace(MERGE, "INSERT INTO t SELECT 5, 9")
    for within in (False, True):
        with former.transaction() if within else nullcontext():
            with pytest.raises(UnsupportedError, match=r"p=9 of default\.t does not exist, but .*p=9 has files"):
                former.sql(text)
            assert rows(former, "SELECT * FROM t") == [(1, 1)]
        assert rows(former, "SELECT * FROM t") == [(1, 1)]
    former.sql("TRUNCATE TABLE t")
    former.sql("INSERT INTO t VALUES (2, 1)")
    former.sql("MSCK REPAIR TABLE t")
    assert rows(former, "SELECT * FROM t") == [(2, 1), (3, 9)]
    assert [p.created_by for p in former.metastore.list_partitions("default", "t")] == [None, None]
    former.sql("INSERT INTO t VALUES (33, 9)")
    assert rows(former, "SELECT * FROM t") == [(2, 1), (3, 9), (33, 9)]
    nothing_is_open(former)


def test_what_writes_does_not_take_over_files_of_another_table(acid: AcidSession, warehouse: Path) -> None:
    """Their write ids are still to come: their rows would be seen one day."""
    acid.sql(KINDS["full"])
    acid.sql(KINDS["full"].replace("TABLE t", "TABLE other"))
    for _ in range(9):
        acid.sql("INSERT INTO other VALUES (3, 9)")
    acid.sql("INSERT INTO t VALUES (1, 1)")
    shutil.copytree(warehouse / "other" / "p=9", warehouse / "t" / "p=9")
    for text in WRITES:
        with pytest.raises(UnsupportedError, match="never allocated"):
            acid.sql(text)
    assert rows(acid, "SELECT * FROM t") == [(1, 1)]
    nothing_is_open(acid)


def _registered_without_rows(acid: AcidSession) -> None:
    """The partition is registered, and undone, as by a transaction that was killed."""
    table = acid.metastore.get_table("default", "t")
    [txn_id] = acid.metastore.open_txns(user="u", host="h")
    with acid.metastore.on_behalf_of(txn_id):
        acid.metastore.add_partitions([new_partition(table, "p=9")])
    acid.metastore.abort_txns([txn_id])


@pytest.mark.parametrize("undone", [False, True])
@pytest.mark.parametrize("text", REGISTERS)
def test_who_has_an_older_snapshot_does_not_see_rows_that_are_registered(
    former: AcidSession, other: AcidSession, text: str, undone: bool
) -> None:
    """A transaction saw them in its second statement, changed them, and removed them."""
    if undone:
        _registered_without_rows(former)
    with other.transaction(read_only=True):
        assert rows(other, "SELECT * FROM t") == [(1, 1)]
        former.sql(text)
        assert rows(former, "SELECT * FROM t") == [(1, 1), (3, 9)]
        for query in ("SELECT * FROM t", "SELECT count(*) FROM t WHERE p = 9"):
            with pytest.raises(DefinitionChanged):
                other.sql(query)
    assert rows(other, "SELECT * FROM t") == [(1, 1), (3, 9)]
    other._env.heartbeats.end_released(collect=True)
    nothing_is_open(former)


@pytest.mark.parametrize("step", ["find_table", "list_partitions", "get_valid_write_ids"])
def test_a_statement_does_not_write_rows_that_are_registered_meanwhile(
    acid: AcidSession, other: AcidSession, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It had compared the table's version, and then listed its partitions."""
    acid.sql("CREATE TRANSACTIONAL TABLE x (id int)")
    acid.sql(KINDS["full"])
    acid.sql("INSERT INTO t VALUES (1, 1), (3, 9)")
    shutil.copytree(warehouse / "t" / "p=9", tmp_path / "copy")
    placed = 0
    for number in range(1, 7):
        acid.sql("ALTER TABLE t DROP IF EXISTS PARTITION (p = 9)")
        shutil.copytree(tmp_path / "copy", warehouse / "t" / "p=9", dirs_exist_ok=True)
        real, calls = getattr(other.metastore, step), itertools.count(1)

        def beside(*args: Any, real: Any = real, calls: Any = calls, number: int = number) -> Any:
            if next(calls) == number:
                acid.sql("ALTER TABLE t ADD PARTITION (p = 9)")
            return real(*args)

        other.sql("START TRANSACTION")
        assert rows(other, "SELECT * FROM t") == [(1, 1)]
        with monkeypatch.context() as patch:
            patch.setattr(other.metastore, step, beside)
            with suppress(DefinitionChanged):
                other.sql("INSERT INTO x SELECT id FROM t")
        other.sql("COMMIT")
        placed += len(rows(acid, "SHOW PARTITIONS t")) - 1
        assert set(rows(acid, "SELECT * FROM x")) <= {(1,)}, number
    assert placed
    other._env.heartbeats.end_released(collect=True)
    nothing_is_open(acid)


def test_rows_that_are_registered_stay_whatever_becomes_of_the_statement(former: AcidSession) -> None:
    with aborted_at_its_commit(former):
        former.sql("MSCK REPAIR TABLE t")
    assert former.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
    assert rows(former, "SELECT * FROM t") == [(1, 1), (3, 9)]


def test_repair_does_not_take_over_what_was_undone_elsewhere(former: AcidSession, tmp_path: Path) -> None:
    with aborted_at_its_commit(former):
        former.sql(f"ALTER TABLE t ADD PARTITION (p = 9) LOCATION '{tmp_path}/third'")
    with pytest.raises(AlreadyExists) as failure:
        former.sql("MSCK REPAIR TABLE t")
    assert "DROP PARTITION" in (failure.value.hint or "")
    former.sql("ALTER TABLE t DROP PARTITION (p = 9)")
    former.sql("MSCK REPAIR TABLE t")
    assert rows(former, "SELECT * FROM t") == [(1, 1), (3, 9)]


def test_a_partition_that_is_dropped_before_the_locks_does_not_exist(acid: AcidSession, other: AcidSession) -> None:
    """A multi-insert left the INSERT out, and saw nothing of the partition either."""
    text = (
        "FROM t INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT id + 100"
        " INSERT INTO u PARTITION (p = 9) SELECT id"
    )

    def run_alone(number: int) -> tuple[list[str], Rows, Rows]:
        for table in ("t", "u"):
            acid.sql(f"DROP TABLE IF EXISTS {table}")
            acid.sql(KINDS["full"].replace(" t ", f" {table} "))
        acid.sql("INSERT INTO t VALUES (1, 1), (3, 9)")
        with pytest.MonkeyPatch.context() as patch:
            calls = before_call(acid, patch, number, lambda: other.sql("ALTER TABLE t DROP PARTITION (p = 9)"))
            acid.sql(text)
        nothing_is_open(acid)
        return calls, sorted(rows(acid, "SELECT * FROM t")), sorted(rows(acid, "SELECT id FROM u"))

    calls, *kept = run_alone(0)
    assert kept == [[(1, 1), (3, 9)], [(1,), (3,)]]
    _, *found = run_alone(calls.index("lock") + 1)
    assert found == [[(1, 1), (101, 9)], [(1,)]]


def test_a_first_statement_that_writes_nothing_fixes_the_snapshot(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had looked at the partitions, and the next statement at rows of another moment."""
    acid.sql(KINDS["full"])
    acid.sql("INSERT INTO t VALUES (1, 1), (3, 9)")
    with acid.transaction():
        assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 0
        other.sql("INSERT INTO t VALUES (50, 1)")
        assert sorted(rows(acid, "SELECT * FROM t")) == [(1, 1), (3, 9)]
    latest_version, dropped = acid.metastore.latest_version, list[object]()

    def drop_before() -> int | None:
        if not dropped:
            dropped.append(other.sql("ALTER TABLE t DROP PARTITION (p = 9)"))
        return latest_version()

    monkeypatch.setattr(acid.metastore, "latest_version", drop_before)
    with acid.transaction():
        assert acid.sql(IF_NOT_EXISTS).collect()[0].num_inserted_rows == 1
        assert sorted(rows(acid, "SELECT * FROM t")) == [(1, 1), (50, 1), (70, 9)]
    nothing_is_open(acid)


@pytest.mark.parametrize("source", ["t", "missing"])
@pytest.mark.parametrize("columns", ["nope", "1, 2", "array(1)"])
def test_what_is_wrong_in_a_query_is_an_error_also_where_the_partition_exists(
    acid: AcidSession, columns: str, source: str
) -> None:
    acid.sql(KINDS["full"])
    acid.sql("ALTER TABLE t ADD PARTITION (p = 9)")
    one = f"INSERT OVERWRITE TABLE t PARTITION (p = 9) IF NOT EXISTS SELECT {columns}"
    for text in (f"{one} FROM {source}", f"FROM {source} {one} INSERT INTO t PARTITION (p = 8) SELECT 1"):
        with pytest.raises((AcidError, AnalysisException)):
            acid.sql(text)
    assert rows(acid, "SELECT * FROM t") == []
    nothing_is_open(acid)


@pytest.mark.parametrize(("has_rows", "comes_again"), [(False, False), (True, False), (True, True)])
def test_a_directory_that_a_failed_add_partition_takes_back_is_made_again(
    acid: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, has_rows: bool, comes_again: bool
) -> None:
    """It had made it just before: the partition was registered without one, and nothing could read the table."""
    acid.sql(KINDS["full"])
    place = warehouse / "t" / "p=9"
    place.mkdir()
    owner: Any = LocalFileSystem if has_rows else acid.metastore
    step = "rename" if has_rows else "add_partitions"
    real, taken = getattr(owner, step), list[str]()

    def taking(*args: Any, **options: Any) -> Any:
        is_first = not taken
        if is_first:
            taken.append(step)
            place.rmdir()
        try:
            return real(*args, **options)
        finally:
            if is_first and comes_again:  # by a third one
                place.mkdir()

    monkeypatch.setattr(owner, step, taking)
    acid.sql(f"INSERT INTO t PARTITION (p = 9) SELECT 1 WHERE {has_rows}")
    assert taken
    assert place.is_dir()
    assert rows(acid, "SELECT * FROM t") == ([(1, 9)] if has_rows else [])
    nothing_is_open(acid)
