"""Hive's worker compacts what both have written: under acidsql's readers and open transactions, at its request."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acidsql.metastore.model import CompactionFilter
from acidsql.metastore.model import CompactionState as State
from tests.interop.both import ACIDSQL, HIVE, SIDES, Both, SharedTable
from tests.interop.conftest import OpenAcid
from tests.interop.waiting import PATIENCE, until

CLEANER = 2
"""Seconds between two rounds of the cleaner."""

pytestmark = pytest.mark.usefixtures("cleaner")


def _written(both: Both, keys: bool = False) -> SharedTable:
    """A table with deltas and delete deltas of both sides; its partition is k=1."""
    t = both.table("id int, v string", "k int" if keys else "", by=ACIDSQL)
    tail = ", 1" if keys else ""
    both.run(HIVE, t.text(f"INSERT INTO {{t}} VALUES (1, 'h'{tail}), (2, 'h'{tail}), (3, 'h'{tail})"))
    both.run(ACIDSQL, t.text(f"INSERT INTO {{t}} VALUES (4, 'a'{tail}), (5, 'a'{tail}), (6, 'a'{tail})"))
    both.run(ACIDSQL, t.text("UPDATE {t} SET v = 'ua' WHERE id IN (1, 4)"))
    both.run(HIVE, t.text("UPDATE {t} SET v = 'uh' WHERE id IN (1, 5)"))
    both.run(ACIDSQL, t.text("DELETE FROM {t} WHERE id = 2"))
    both.run(HIVE, t.text("DELETE FROM {t} WHERE id = 6"))
    t.agree()
    return t


def _place(t: SharedTable) -> Path:
    return t.directory / "k=1" if t.keys else t.directory


def _directories(t: SharedTable) -> set[str]:
    return {p.name for p in _place(t).iterdir() if p.is_dir() and not p.name.startswith(("_", "."))}


def _compact(both: Both, t: SharedTable, kind: str, by: str = HIVE) -> None:
    """Compact the table, or its partition k=1, and wait until the worker is done."""
    partition = " PARTITION (k=1)" if t.keys else ""
    before = _directories(t)
    both.run(by, t.text(f"ALTER TABLE {{t}}{partition} COMPACT '{kind}' AND WAIT"))
    assert any("_v" in name for name in _directories(t) - before), "the worker wrote a directory"


def _cleaned(both: Both, t: SharedTable, gone: Sequence[str]) -> None:
    """Wait until the cleaner has removed directories."""
    until(lambda: not _directories(t) & set(gone), f"removal of {sorted(gone)}")


@pytest.mark.parametrize("keys", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("kind", ["major", "minor"])
def test_a_dataframe_made_before_reads_the_same_rows_after(both: Both, kind: str, keys: bool) -> None:
    t = _written(both, keys)
    old = _directories(t)
    before = t.read(HIVE)
    frame = both.acid.sql(t.text("SELECT ROW__ID, * FROM {t}"))
    rows = sorted(map(tuple, frame.collect()))
    _compact(both, t, kind)
    assert t.differences(before, t.read(HIVE)) == [], "compaction keeps rows and row ids"
    t.agree()
    assert sorted(map(tuple, frame.collect())) == rows
    time.sleep(3 * CLEANER)
    assert old <= _directories(t), "the cleaner leaves what an open reader may need"
    assert sorted(map(tuple, frame.collect())) == rows
    del frame
    gc.collect()
    both.ask(ACIDSQL, "SHOW TRANSACTIONS")  # ends the transactions of frames that are garbage
    _cleaned(both, t, sorted(old))
    t.agree()
    t.hive("UPDATE {t} SET v = 'h' WHERE id = 4")
    t.acid("UPDATE {t} SET v = 'a' WHERE id = 5", "DELETE FROM {t} WHERE id = 1")
    _compact(both, t, kind)
    t.agree()


@pytest.mark.parametrize("kind", ["major", "minor"])
def test_compaction_at_acidsqls_request(both: Both, kind: str) -> None:
    t = _written(both)
    before = t.read(HIVE)
    _compact(both, t, kind, by=ACIDSQL)
    t.agree()
    assert t.differences(before, t.read(ACIDSQL)) == []
    database, _, name = t.name.partition(".")
    [entry] = both.acid.metastore.show_compactions(CompactionFilter(database=database, table=name))
    assert entry.state in (State.READY_FOR_CLEANING, State.SUCCEEDED)
    assert entry.type.name.lower() == kind
    listed = [r for r in both.ask(HIVE, "SHOW COMPACTIONS") if r[1:3] == (database, name)]
    ours = [r for r in both.ask(ACIDSQL, "SHOW COMPACTIONS") if r[1:3] == (database, name)]
    assert [r[:5] for r in listed] == [tuple(map(str, r[:5])) for r in ours]


def test_compaction_stops_below_an_open_transaction_of_acidsqls(both: Both) -> None:
    t = _written(both)
    txn, open_id = t.begun_write()
    t.hive("INSERT INTO {t} VALUES (7, 'h')").acid("INSERT INTO {t} VALUES (8, 'a')")
    rows = t.agree()
    _compact(both, t, "major")
    [base] = [d for d in _directories(t) if d.startswith("base_")]
    assert base.startswith(f"base_{open_id - 1:07d}_v")
    assert t.agree() == rows
    both.acid.metastore.commit_txn(txn)
    t.acid("UPDATE {t} SET v = 'after' WHERE id = 7").hive("DELETE FROM {t} WHERE id = 8")


def test_compaction_drops_what_acidsql_aborted(
    both: Both, open_acid: OpenAcid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that dies after publishing leaves files of an open write id; once aborted, Hive sweeps them away."""
    t = _written(both)
    writer = open_acid()
    store = type(writer.metastore)
    with monkeypatch.context() as patched:
        for call in ("commit_txn", "abort_txns", "heartbeat_txns", "forget_txn_components"):
            original = getattr(store, call)

            def dead(self: object, *a: object, _call: object = original, **k: object) -> object:
                if self is writer.metastore:
                    raise ConnectionError("gone")
                return _call(self, *a, **k)  # type: ignore[operator]

            patched.setattr(store, call, dead)
        with pytest.raises(ConnectionError):
            writer.sql(t.text("UPDATE {t} SET v = 'never'"))
    rows = t.agree()
    orphans = [x.id for x in both.acid.metastore.show_txns() if x.state.name == "OPEN" and x.type.name == "DEFAULT"]
    assert orphans
    both.run(HIVE, f"ABORT TRANSACTIONS {' '.join(map(str, orphans))}")
    left = [p.name for p in t.directory.iterdir() if "0000007" in p.name]
    assert left, "files of the dead writer are there"
    assert t.agree() == rows
    _compact(both, t, "major")
    assert t.agree() == rows
    both.ask(ACIDSQL, "SHOW TRANSACTIONS")  # ends the transactions of frames that are garbage
    _cleaned(both, t, left)
    assert t.agree() == rows
    t.acid("UPDATE {t} SET v = 'u' WHERE id = 1").hive("UPDATE {t} SET v = 'u' WHERE id = 3")


def test_statements_of_acidsqls_while_hive_compacts(both: Both, open_acid: OpenAcid) -> None:
    t = _written(both)
    writer, reader = open_acid(), open_acid()
    with ThreadPoolExecutor(2) as pool:
        compaction = pool.submit(_compact, both, t, "major")
        for i in range(8):
            writer.sql(t.text(f"UPDATE {{t}} SET v = 'w{i}' WHERE id = 3"))
            [(value,)] = reader.sql(t.text("SELECT v FROM {t} WHERE id = 3")).collect()
            assert value == f"w{i}"
        compaction.result(PATIENCE)
    both.wrote(ACIDSQL, 8)
    t.agree()
    _compact(both, t, "minor")
    t.agree()


def test_writes_between_the_worker_and_the_cleaner(both: Both) -> None:
    t = _written(both)
    pin = both.acid.table(t.name)  # keeps the cleaner away
    for kind, side in (("major", ACIDSQL), ("minor", HIVE)):
        other = SIDES[1 - SIDES.index(side)]
        if kind == "major":
            _compact(both, t, kind)
        t.on(side, f"UPDATE {{t}} SET v = '{kind}' WHERE id = 3", "DELETE FROM {t} WHERE id = 5")
        t.on(other, f"INSERT INTO {{t}} VALUES (9, '{kind}')", "UPDATE {t} SET v = concat(v, '!')")
    rows = t.agree()
    del pin
    gc.collect()
    both.ask(ACIDSQL, "SHOW TRANSACTIONS")
    until(lambda: not any(d.startswith("delta_0000001") for d in _directories(t)), "the cleaner")
    assert t.agree() == rows
