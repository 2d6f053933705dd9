"""acidsql's worker serves the metastore's queue: what it compacts is Hive's to read, whoever has asked for it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest

from acidsql.errors import CompactionError
from acidsql.metastore.model import CompactionState as State
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.conftest import OpenAcid, OpenHive
from tests.interop.waiting import PATIENCE

COLUMNS = "id int, v string, t timestamp, d decimal(20,4), c char(5), a array<int>, s struct<x:int,y:string>"


def _insert(number: int) -> str:
    """Two rows: one with values, one with NULLs, as far as Hive lets a SELECT have them, and an ancient day."""
    nested = "array(1), named_struct('x', 1, 'y', 'y')"
    none = "if(false, array(1), NULL), if(false, named_struct('x', 1, 'y', 'y'), NULL)"
    texts = "CAST(NULL AS string), TIMESTAMP '0099-12-31 23:59:59', CAST(NULL AS decimal(20,4)), CAST(NULL AS char(5))"
    return (
        f"INSERT INTO {{t}} SELECT {number}, 'h', TIMESTAMP '1968-07-20 20:17:40.123456', 1.5, 'c', {nested}"
        f" UNION ALL SELECT {number + 1}, {texts}, {none}"
    )


def _written(both: Both, keys: bool) -> SharedTable:
    """A table with deltas and delete deltas of both sides; its partition is k=1."""
    t = both.table("id int, v string", "k int" if keys else "", by=ACIDSQL)
    tail = ", 1" if keys else ""
    for number in range(4):
        t.on(SIDES[number % 2], f"INSERT INTO {{t}} VALUES ({number}, 'a'{tail}), ({number + 10}, 'b'{tail})")
    t.acid("UPDATE {t} SET v = 'acidsql' WHERE id = 1").hive("UPDATE {t} SET v = 'hive' WHERE id = 2")
    t.acid("DELETE FROM {t} WHERE id = 10").hive("DELETE FROM {t} WHERE id = 11")
    t.agree()
    return t


def _directories(t: SharedTable) -> set[str]:
    place = t.directory / "k=1" if t.keys else t.directory
    return {p.name for p in place.iterdir() if p.is_dir() and not p.name.startswith(("_", "."))}


@pytest.mark.parametrize("asking", SIDES)
@pytest.mark.parametrize("keys", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("kind", ["major", "minor"])
def test_what_acidsql_compacts_is_read_and_changed_by_both(both: Both, kind: str, keys: bool, asking: str) -> None:
    t = _written(both, keys)
    before, old = t.read(HIVE), _directories(t)
    partition = " PARTITION (k=1)" if keys else ""
    both.run(asking, t.text(f"ALTER TABLE {{t}}{partition} COMPACT '{kind}'"))
    [outcome] = [o for o in both.acid.compactor.run_once().outcomes if o.entry.table == t.name.partition(".")[2]]
    assert outcome.state == State.READY_FOR_CLEANING
    made = _directories(t) - old
    assert made
    assert all("_v" in name for name in made)
    assert t.differences(before, t.read(HIVE)) == [], "compaction keeps rows and row ids"
    t.agree()
    t.hive("UPDATE {t} SET v = 'again' WHERE id = 1").acid("DELETE FROM {t} WHERE id = 2")
    t.agree()


def test_statements_of_hives_while_acidsql_compacts(both: Both, open_acid: OpenAcid, open_hive: OpenHive) -> None:
    t = _written(both, keys=False)
    writer, reader, worker = open_hive(), open_hive(), open_acid()
    stop = threading.Event()
    states: list[State] = []

    def compact() -> None:
        for kind in cycle(("minor", "major")):
            if stop.is_set():
                return
            try:
                worker.sql(t.text(f"ALTER TABLE {{t}} COMPACT '{kind}'"))
            except CompactionError as e:
                if "already scheduled with state='ready for cleaning'" not in e.message:
                    raise
                time.sleep(0.2)  # nothing was written since the last one
                continue
            states.extend(o.state for o in worker.compactor.run_once().outcomes)

    with ThreadPoolExecutor(1) as pool:
        compacting = pool.submit(compact)
        try:
            for i in range(8):
                writer.run(t.text(f"UPDATE {{t}} SET v = 'w{i}' WHERE id IN (0, 3)"))
                writer.run(t.text(f"INSERT INTO {{t}} VALUES ({100 + i}, 'new')"))
                rows = reader.run(t.text("SELECT id, v FROM {t} WHERE id IN (0, 3) OR id >= 100")) or []
                assert sorted(map(tuple, rows)) == [
                    (0, f"w{i}"),
                    (3, f"w{i}"),
                    *((100 + n, "new") for n in range(i + 1)),
                ]
        finally:
            stop.set()
        compacting.result(PATIENCE)
    both.wrote(HIVE, 16)
    assert states.count(State.READY_FOR_CLEANING) >= 2
    assert set(states) <= {State.READY_FOR_CLEANING, State.REFUSED}
    t.agree()


@pytest.mark.parametrize("insert_only", [False, True], ids=["full ACID", "insert-only"])
def test_what_a_statement_of_hives_lists_while_it_runs_is_no_data(both: Both, insert_only: bool) -> None:
    """Neither read nor compacted, in a table that has no base yet; Hive itself fails on a full-ACID one then."""
    t = both.table("id int, v string", by=HIVE, insert_only=insert_only)
    t.hive("INSERT INTO {t} VALUES (1, 'h')").acid("INSERT INTO {t} VALUES (2, 'a')")
    rows = t.read(HIVE)
    txn, write_id = t.begun_write()
    manifest = t.directory / f"-tmp.delta_{write_id:07d}_{write_id:07d}_0000" / "000000_0.manifest"
    manifest.parent.mkdir()
    manifest.write_bytes(b"\0\0\0\1\0\5a/b_c")
    try:
        assert t.differences(rows, t.read(ACIDSQL)) == []
        both.run(HIVE, t.text("ALTER TABLE {t} COMPACT 'major'"))
        [outcome] = [o for o in both.acid.compactor.run_once().outcomes if o.entry.table == t.name.partition(".")[2]]
        assert outcome.state == State.READY_FOR_CLEANING
        assert t.differences(rows, t.read(ACIDSQL)) == []
        assert t.differences(t.read(HIVE), rows) == []
        assert manifest.exists()
    finally:
        both.acid.metastore.abort_txns([txn])


def test_values_of_all_kinds_survive_our_compaction_as_hive_reads_them(both: Both) -> None:
    t = both.table(COLUMNS, by=HIVE)
    for number in (0, 2, 4):
        t.hive(_insert(number))
    t.hive("DELETE FROM {t} WHERE id = 2")
    before = t.read(HIVE)
    both.run(HIVE, t.text("ALTER TABLE {t} COMPACT 'major'"))
    assert [o.state for o in both.acid.compactor.run_once().outcomes] == [State.READY_FOR_CLEANING]
    assert t.differences(before, t.read(HIVE)) == []
    t.agree()
