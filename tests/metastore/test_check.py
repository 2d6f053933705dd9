"""``acidsql store check``: what does not fit together in a store is told; nothing of what calls make is."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from acidsql.cli.store import check
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.model import CompactionRequest, CompactionType, Operation
from acidsql.metastore.protocol import Metastore
from acidsql.row_set import RowSet
from tests.metastore.conftest import OpenStore, Outside
from tests.metastore.situations import EXCLUSIVE, begin, partition, table, take, write
from tests.metastore.stores import Opening

pytestmark = pytest.mark.needs("embedded")


@pytest.fixture
def used(store: Metastore) -> EmbeddedMetastore:
    """A store with something of everything."""
    assert isinstance(store, EmbeddedMetastore)
    store.create_table(table())
    store.create_table(table("u", partitioned=True))
    store.add_partitions([partition("1", "u")])
    store.commit_txn(write(store))
    store.abort_txns([write(store)])
    waiting = begin(store)
    take(store, begin(store), EXCLUSIVE)
    store.allocate_table_write_id(waiting, "default", "u")
    store.compact(CompactionRequest("default", "t", None, CompactionType.MAJOR, "ann", "desk"))
    rows = RowSet.of("p=1", *[np.array([1, 2], np.int64)] * 3)
    store.commit_txn(write(store, "default.u/p=1", Operation.UPDATE), {"default.u": rows})
    return store


BROKEN = {
    "DBS": "DELETE FROM DBS WHERE NAME = 'default'",
    "TBLS": "DELETE FROM TBLS WHERE TBL_NAME = 't'",
    "TABLE_PARAMS": "INSERT INTO TABLE_PARAMS (TBL_ID, PARAM_KEY, PARAM_VALUE) VALUES (4711, 'a', 'b')",
    "PARTITION_PARAMS": "INSERT INTO PARTITION_PARAMS (TBL_ID, PART_NAME, PARAM_KEY, PARAM_VALUE)"
    " VALUES (2, 'p=2', 'a', 'b')",
    "HIVE_LOCKS": "UPDATE HIVE_LOCKS SET HL_TXNID = 4711",
    "TXN_COMPONENTS": "UPDATE TXN_COMPONENTS SET TC_TXNID = 1",
    "TXN_TO_WRITE_ID": "UPDATE NEXT_WRITE_ID SET NWI_NEXT = 1",
    "NEXT_LOCK_ID": "UPDATE NEXT_LOCK_ID SET NL_NEXT = 1",
    "NEXT_COMPACTION_QUEUE_ID": "DELETE FROM NEXT_COMPACTION_QUEUE_ID",
    "COMPLETED_TXN_COMPONENTS": "UPDATE COMPLETED_TXN_COMPONENTS SET CTC_TXNID = 4711",
    "WRITE_SET": "UPDATE WRITE_SET SET WS_ROWS = NULL, WS_TXNID = 4711",
    "the rows": "UPDATE WRITE_SET SET WS_ROWS = CAST('damaged' AS {binary})",
    "TXNS": "DELETE FROM TXNS",
}


def test_a_store_that_was_used_is_right(used: EmbeddedMetastore) -> None:
    found = used.check()
    assert found.problems == ()
    assert (found.counts["tables"], found.counts["partitions"], found.counts["open transactions"]) == (2, 1, 2)


TOLD = {"DBS": "TBLS: 2 tables of no database", "TBLS": "rows of no table", "the rows": "not a set of rows"}


@pytest.mark.parametrize("place", BROKEN)
def test_what_does_not_fit_is_told(used: EmbeddedMetastore, outside: Outside, place: str) -> None:
    outside(BROKEN[place].format(binary="bytea" if used._store.name.startswith("postgresql") else "blob"))
    assert [problem for problem in used.check().problems if TOLD.get(place, place) in problem]


def test_the_command_tells_it(used: EmbeddedMetastore, opening: Opening, outside: Outside) -> None:
    out = io.StringIO()
    assert check(None, opening.url, {}, out) == 0
    assert "2 tables" in out.getvalue()
    assert "fits together" in out.getvalue()
    outside(BROKEN["HIVE_LOCKS"])
    assert check(None, opening.url, {}, out) == 1
    assert "NOT RIGHT: HIVE_LOCKS" in out.getvalue()


def test_the_command_makes_no_store(opening: Opening, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (opening.url, str(tmp_path / "nothing.db")):
        assert check(None, place, {}, io.StringIO()) == 1
        assert "there is none" in capsys.readouterr().err
    assert not (tmp_path / "nothing.db").exists()
    assert not opening.file.exists()


def test_the_command_brings_nothing_up_to_date(
    open_store: OpenStore, opening: Opening, outside: Outside, capsys: pytest.CaptureFixture[str]
) -> None:
    open_store().close()
    outside("UPDATE VERSION SET SCHEMA_VERSION = 7")
    assert check(None, opening.url, {}, io.StringIO()) == 1
    assert "version 7" in capsys.readouterr().err
    assert outside("SELECT SCHEMA_VERSION FROM VERSION") == [(7,)]


def test_a_hive_metastore_is_not_ours_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(None, "thrift://h:9083", {}, io.StringIO()) == 1
    assert "schematool" in capsys.readouterr().err
