"""What ANALYZE found: kept by table and partition, carried on by writes, not exact beside writes that it missed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from acidsql.errors import TableNotFound, TransactionAborted
from acidsql.metastore.model import ColumnStatistics, RowChange, Statistics, Table, TableChanges
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import begin, partition, sweep, table

BASIC = {"numRows": "7", "numFiles": "2", "totalSize": "100"}
EXACT = "COLUMN_STATS_ACCURATE"
OF_A = ColumnStatistics("a", "int", 1, 5, "-3", "9")


def analyze(store: Metastore, t: Table, found: Mapping[str, Statistics]) -> None:
    """A transaction of its own, as ANALYZE has one."""
    txn_id = begin(store)
    valid = store.get_valid_txns(txn_id)
    write_id = store.allocate_table_write_id(txn_id, t.database, t.name)
    [write_ids] = store.get_valid_write_ids([t.full_name], valid)
    store.set_statistics(t, write_id, write_ids, found)
    store.commit_txn(txn_id)


def changed(store: Metastore, txn_id: int, t: Table, rows: Mapping[str, RowChange]) -> TableChanges:
    """What a write tells with its commit."""
    write_id = store.allocate_table_write_id(txn_id, t.database, t.name)
    [write_ids] = store.get_valid_write_ids([t.full_name], store.get_valid_txns(txn_id))
    return TableChanges(t, write_id, write_ids, rows)


def parameters(store: Metastore, t: Table) -> Mapping[str, str]:
    return store.get_table(t.database, t.name).parameters


@pytest.fixture
def t(store: Metastore) -> Table:
    store.create_table(table())
    return table()


@pytest.fixture
def pt(store: Metastore) -> Table:
    made = table("pt", partitioned=True)
    store.create_table(made)
    store.add_partitions([partition("1", "pt"), partition("2", "pt")])
    return made


@pytest.mark.needs("exact statistics")
def test_numbers_are_properties_of_the_table(store: Metastore, t: Table) -> None:
    analyze(store, t, {"": Statistics(BASIC, exact=True)})
    found = parameters(store, t)
    assert BASIC.items() <= found.items()
    assert json.loads(found[EXACT])["BASIC_STATS"] == "true"
    assert found["transactional"] == "true"


@pytest.mark.needs("carries statistics on")
@pytest.mark.parametrize(
    ("changes", "rows"),
    [
        (RowChange(inserted=3), "10"),
        (RowChange(deleted=2), "5"),
        (RowChange(inserted=4, overwrites=True), "4"),
        (RowChange(), "7"),
    ],
)
def test_a_write_carries_them_on_and_nothing_is_exact(
    store: Metastore, t: Table, changes: RowChange, rows: str
) -> None:
    analyze(store, t, {"": Statistics(BASIC, exact=True)})
    txn_id = begin(store)
    store.commit_txn(txn_id, changes=[changed(store, txn_id, t, {"": changes})])
    found = parameters(store, t)
    assert found["numRows"] == rows
    assert EXACT not in found


REFUSED = [RowChange(inserted=3), RowChange(inserted=5, deleted=2), RowChange(inserted=4, overwrites=True)]


@pytest.mark.needs("carries statistics on")
@pytest.mark.parametrize("keys", ["", "p=1"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("rows", REFUSED)
def test_a_refused_commit_leaves_them(
    store: Metastore, t: Table, pt: Table, rows: RowChange, known: bool, keys: str
) -> None:
    """They counted what was never committed, and what was tried again twice."""
    written = store.get_table("default", "pt" if keys else "t")
    if known:
        analyze(store, written, {keys: Statistics(BASIC, exact=True)})

    def counted() -> str | None:
        found = store.partition_parameters("default", "pt")["p=1"] if keys else parameters(store, t)
        return found.get("numRows")

    before = counted()
    assert before == "7" or not known
    for _ in range(2):
        txn_id = begin(store)
        told = changed(store, txn_id, written, {keys: rows})
        store.abort_txns([txn_id])
        with pytest.raises(TransactionAborted):
            store.commit_txn(txn_id, changes=[told])
    assert counted() == before


@pytest.mark.needs("carries statistics on")
def test_a_commit_counts_once_and_never_below_zero(store: Metastore, t: Table) -> None:
    counted = {"numRows": "7"}
    for found, deleted, rows in ((counted, 2, "5"), (counted, 8, None), ({}, 1, None)):
        analyze(store, t, {"": Statistics(found, exact=True)})
        txn_id = begin(store)
        told = changed(store, txn_id, t, {"": RowChange(deleted=deleted)})
        store.commit_txn(txn_id, changes=[told])
        if store.capabilities.tells_creators:  # an embedded store: committing twice is no error
            store.commit_txn(txn_id, changes=[told])
        assert parameters(store, t).get("numRows") == rows


@pytest.mark.needs("exact statistics")
def test_a_writer_that_is_not_seen_keeps_them_from_being_exact(store: Metastore, t: Table) -> None:
    writer = begin(store)
    told = changed(store, writer, t, {"": RowChange(inserted=3)})
    analyze(store, t, {"": Statistics(BASIC, exact=True)})
    store.commit_txn(writer, changes=[told])
    assert EXACT not in parameters(store, t)
    assert parameters(store, t)["numRows"] == "10"
    analyze(store, t, {"": Statistics(BASIC, exact=True)})
    assert EXACT in parameters(store, t)


def test_one_that_committed_later_keeps_them_from_being_exact(store: Metastore, t: Table) -> None:
    """ANALYZE begins, a writer begins and commits, ANALYZE ends: its number is that of before."""
    analyst = begin(store)
    valid = store.get_valid_txns(analyst)
    writer = begin(store)
    store.commit_txn(writer, changes=[changed(store, writer, t, {"": RowChange(inserted=3)})])
    write_id = store.allocate_table_write_id(analyst, "default", "t")
    [write_ids] = store.get_valid_write_ids([t.full_name], valid)
    store.set_statistics(t, write_id, write_ids, {"": Statistics(BASIC, exact=True)})
    assert EXACT not in parameters(store, t)


@pytest.mark.needs("exact statistics")
def test_an_aborted_writer_does_not(store: Metastore, t: Table) -> None:
    writer = begin(store)
    store.allocate_table_write_id(writer, "default", "t")
    store.abort_txns([writer])
    analyze(store, t, {"": Statistics(BASIC, exact=True)})
    assert EXACT in parameters(store, t)


def test_sizes_alone_are_not_exact_rows(store: Metastore, t: Table) -> None:
    analyze(store, t, {"": Statistics({"numFiles": "1"})})
    assert parameters(store, t)["numFiles"] == "1"
    assert EXACT not in parameters(store, t)


@pytest.mark.needs("exact statistics")
def test_partitions_have_their_own(store: Metastore, pt: Table) -> None:
    analyze(store, pt, {"p=1": Statistics(BASIC, exact=True), "p=2": Statistics({"numRows": "0"}, exact=True)})
    found = store.partition_parameters("default", "pt")
    assert {name: found[name]["numRows"] for name in found} == {"p=1": "7", "p=2": "0"}
    assert list(store.partition_parameters("default", "pt", ["p=2"])) == ["p=2"]
    txn_id = begin(store)
    store.commit_txn(txn_id, changes=[changed(store, txn_id, pt, {"p=1": RowChange(deleted=1)})])
    found = store.partition_parameters("default", "pt")
    assert (found["p=1"]["numRows"], EXACT in found["p=1"]) == ("6", False)
    assert (found["p=2"]["numRows"], EXACT in found["p=2"]) == ("0", True)
    with pytest.raises(TableNotFound):
        store.partition_parameters("default", "nowhere")


@pytest.mark.needs("exact statistics")
@pytest.mark.needs("carries statistics on")
def test_a_write_carries_on_those_of_hundreds_of_partitions(store: Metastore, pt: Table) -> None:
    numbers = range(10, 1210)
    names = [f"p={number}" for number in numbers]
    added = [partition(str(number), "pt") for number in numbers]
    store.add_partitions(added, with_rows=added)
    analyze(store, pt, {name: Statistics({**BASIC, "numRows": name[2:]}, exact=True) for name in names[::2]})
    txn_id = begin(store)
    rows_of_each = {name: RowChange(inserted=1) for name in names[:1000]}
    store.commit_txn(txn_id, changes=[changed(store, txn_id, pt, rows_of_each)])
    found = store.partition_parameters("default", "pt", names)
    rows = {name: one["numRows"] for name, one in found.items() if "numRows" in one}
    assert rows == {n: str(int(n[2:]) + 1) for n in names[:1000:2]} | {n: n[2:] for n in names[1000::2]}
    assert {name for name, one in found.items() if EXACT in one} == set(names[1000::2])


class TestColumns:
    pytestmark = pytest.mark.needs("statistics of columns")

    def test_are_found_by_table_and_partition(self, store: Metastore, pt: Table) -> None:
        of_partition = ColumnStatistics("a", "int", 0, 1, "9", "9")
        text = ColumnStatistics("s", "string", 2, 3, average_length=1.5, max_length=4)
        flag = ColumnStatistics("b", "boolean", 0, trues=1, falses=2)
        analyze(
            store, pt, {"": Statistics({}, (OF_A, text, flag)), "p=1": Statistics(BASIC, (of_partition,), exact=True)}
        )
        assert store.column_statistics(pt) == [OF_A, flag, text]
        assert store.column_statistics(pt, "p=1") == [of_partition]
        assert store.column_statistics(pt, "p=2") == []

    def test_of_one_analysis_go_over_those_of_an_older_one(self, store: Metastore, t: Table) -> None:
        other = ColumnStatistics("z", "int", 0)
        analyze(store, t, {"": Statistics(BASIC, (OF_A, other), exact=True)})
        newer = ColumnStatistics("a", "int", 4)
        analyze(store, t, {"": Statistics(BASIC, (newer,), exact=True)})
        assert store.column_statistics(t) == [newer, other]
        assert json.loads(parameters(store, t)[EXACT])["COLUMN_STATS"] == {"a": "true", "z": "true"}

    def test_go_with_their_table_and_partition(self, store: Metastore, pt: Table) -> None:
        analyze(store, pt, {"p=1": Statistics(BASIC, (OF_A,), exact=True), "": Statistics({}, (OF_A,))})
        store.drop_partitions("default", "pt", ["p=1"])
        sweep(store)
        store.add_partitions([partition("1", "pt")])
        assert store.column_statistics(pt, "p=1") == []
        assert store.partition_parameters("default", "pt", ["p=1"]) == {"p=1": {}}
        store.drop_table("default", "pt")
        sweep(store)
        store.create_table(pt)
        assert store.column_statistics(pt) == []


@pytest.mark.parametrize("value", ["{", "[1]", "[" * 100_000, "", "9" * 5000, "-1", "x"])
def test_statistics_that_a_user_wrote_as_properties_are_no_error(store: Metastore, value: str) -> None:
    made = replace(table(), parameters={"transactional": "true", "numRows": value, "COLUMN_STATS_ACCURATE": value})
    store.create_table(made)
    txn_id = begin(store)
    told = changed(store, txn_id, made, {"": RowChange(inserted=1)})
    store.commit_txn(txn_id, changes=[told])
    store.set_statistics(made, told.write_id, told.write_ids, {"": Statistics({"numRows": "1"}, exact=True)})
    assert store.get_table("default", "t").parameters["numRows"] == "1"
