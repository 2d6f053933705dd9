"""Hive answers count(*), min and max from statistics where it takes them for exact: a write of acidsql's ends that.

``hive.compute.query.using.stats`` is on, as it is in Hive by default.
"""

from __future__ import annotations

from typing import cast

import pytest

from acidsql.errors import TransactionAborted
from acidsql.metastore.hive.metastore import HiveMetastore
from acidsql.metastore.model import TableChanges, TxnState
from tests.interop.both import HIVE, Both, SharedTable

WRITES = [
    ("INSERT INTO {t} VALUES (9, 'i', {k})", (1, 9)),
    ("INSERT INTO {t} SELECT 10, 'job', {k}", (1, 10)),
    ("UPDATE {t} SET id = 20 WHERE id = 9", (1, 20)),
    ("DELETE FROM {t} WHERE id IN (1, 20)", (2, 10)),
    ("INSERT OVERWRITE TABLE {t} SELECT id + 100, v, k FROM {t}", (102, 110)),
    ("DELETE FROM {t}", (None, None)),
]


def _from_statistics(both: Both, query: str) -> bool:
    """Whether Hive answers a query without looking at the data: its plan has no stage that scans."""
    plan = "\n".join(str(r[0]) for r in both.ask(HIVE, f"EXPLAIN {query}"))
    return "TableScan" not in plan


def _check(both: Both, t: SharedTable, low: int | None, high: int | None) -> None:
    rows = t.agree()  # which also compares count(*)
    where = " WHERE k = 1" if t.keys else ""
    for condition in ("", where):
        found = both.ask(HIVE, f"SELECT count(*), min(id), max(id), count(v) FROM {t.name}{condition}")
        assert found == [(len(rows), low, high, len(rows))], condition


@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_count_min_and_max_after_each_write(both: Both, keys: str) -> None:
    t = both.table("id int, v string" + ("" if keys else ", k int"), keys, by=HIVE)
    into = "{t} PARTITION (k=1)" if keys else "{t}"
    t.hive("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1)")
    count = f"SELECT count(*) FROM {t.name}"
    assert _from_statistics(both, count), "Hive's own INSERT keeps its statistics exact"
    for write, (low, high) in WRITES:
        text = write.replace("{k}", "1")
        if keys and "OVERWRITE" in text:
            text = text.replace("{t} SELECT", f"{into} SELECT").replace(", v, k FROM", ", v FROM")
        t.acid(text)
        _check(both, t, low, high)


@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_after_hive_gathered_statistics_itself(both: Both, keys: str) -> None:
    t = both.table("id int, v string" + ("" if keys else ", k int"), keys, by="acidsql")
    part = " PARTITION (k)" if keys else ""
    t.acid("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1)")
    count, bounds = (f"SELECT {what} FROM {t.name}" for what in ("count(*)", "count(*), min(id), max(id)"))
    for write, (low, high) in WRITES:
        both.run(HIVE, f"ANALYZE TABLE {t.name}{part} COMPUTE STATISTICS")
        both.run(HIVE, f"ANALYZE TABLE {t.name}{part} COMPUTE STATISTICS FOR COLUMNS")
        assert _from_statistics(both, count), write
        assert _from_statistics(both, bounds), write
        text = write.replace("{k}", "1")
        if keys and "OVERWRITE" in text:
            text = text.replace("{t} SELECT", "{t} PARTITION (k=1) SELECT").replace(", v, k FROM", ", v FROM")
        t.acid(text)
        _check(both, t, low, high)


def test_hive_trusts_its_own_statistics_again_after_its_next_analyze(both: Both) -> None:
    t = both.table("id int", by="acidsql")
    t.acid("INSERT INTO {t} VALUES (1)")
    assert not _from_statistics(both, f"SELECT count(*) FROM {t.name}")
    t.hive("INSERT INTO {t} VALUES (2)")
    assert not _from_statistics(both, f"SELECT count(*) FROM {t.name}")
    both.run(HIVE, f"ANALYZE TABLE {t.name} COMPUTE STATISTICS")
    assert _from_statistics(both, f"SELECT count(*) FROM {t.name}")
    t.holds((1,), (2,))


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("keys", ["", "k int"], ids=["plain", "partitioned"])
def test_a_refused_commit_is_not_counted(both: Both, keys: str, is_late: bool) -> None:
    """After a major compaction Hive takes the number of rows that stands there for exact, and does not count."""
    t = both.table("id int, v string" + ("" if keys else ", k int"), keys, by=HIVE)
    part = " PARTITION (k=1)" if keys else ""
    t.hive("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    store = cast(HiveMetastore, both.acid.metastore)
    real, values = store.carry_on, "" if keys else ", 1"

    def end() -> None:
        store.abort_txns([one.id for one in store.show_txns() if one.state is TxnState.OPEN and one.id > before])

    def carry_on(made: TableChanges) -> dict[str, int | None]:
        found = real(made)
        end()
        return found

    for text in (
        f"INSERT INTO {t.name} SELECT id + 10, 'x', 1 FROM range(100)",
        f"DELETE FROM {t.name} WHERE id > 1",
        f"INSERT OVERWRITE TABLE {t.name}{part} SELECT 7, 'only'{values}",
    ):
        before = store.get_valid_txns().high_watermark
        with pytest.MonkeyPatch.context() as patch:
            if is_late:
                patch.setattr(store, "carry_on", carry_on)
            else:
                both.acid.sql("START TRANSACTION")
                both.acid.sql(text)
                end()
            with pytest.raises(TransactionAborted):
                both.acid.sql(text if is_late else "COMMIT")
        database, name = t.name.split(".")
        found = (
            store.partition_parameters(database, name)["k=1"] if keys else store.get_table(database, name).parameters
        )
        assert found["numRows"] == "3"
        assert both.ask(HIVE, f"SELECT count(*) FROM {t.name}") == [(3,)]
    t.agree()
