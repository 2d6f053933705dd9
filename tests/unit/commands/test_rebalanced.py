"""Of which partitions a rebalance may have been committed since a snapshot, by Hive's history of compactions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from acidsql.commands.transaction.unseen import _rebalanced, _Unseen
from acidsql.format.unseen import Snapshot
from acidsql.metastore.model import CompactionInfo, CompactionState, CompactionType, Table
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

TABLE = Table("default", "t", "file:/w/t", (), (), {})
WRITE_IDS = ValidWriteIdList("default.t", 3)
UNSEEN = _Unseen(Snapshot(ValidTxnList(20, (15,)), WRITE_IDS), Snapshot(ValidTxnList(40, (33,)), WRITE_IDS))
"""Of a snapshot that sees transactions up to 20, but for 15, which has committed since, as have others but for 33."""

REBALANCE, MAJOR, MINOR = CompactionType.REBALANCE, CompactionType.MAJOR, CompactionType.MINOR
DONE, CLEANING, WORKING = CompactionState.SUCCEEDED, CompactionState.READY_FOR_CLEANING, CompactionState.WORKING
FAILED, INITIATED = CompactionState.FAILED, CompactionState.INITIATED


@pytest.mark.parametrize(
    ("entries", "is_rebalanced"),
    [
        ([], False),
        ([(REBALANCE, DONE, 12)], False),
        ([(REBALANCE, DONE, 15)], True),
        ([(REBALANCE, CLEANING, 30)], True),
        ([(REBALANCE, WORKING, 33)], False),  # open
        ([(REBALANCE, FAILED, 30)], True),  # its cleaning has failed
        ([(REBALANCE, INITIATED, None)], False),
        ([(REBALANCE, DONE, None)], True),
        ([(MAJOR, DONE, 30)], False),
        ([(MAJOR, DONE, 30), (MINOR, DONE, 31)], False),
        ([(MAJOR, DONE, 30), (MINOR, DONE, 31), (MAJOR, DONE, 32)], True),  # others are forgotten
        ([(MAJOR, DONE, 12), (MINOR, DONE, 31), (MAJOR, DONE, 32)], False),
        ([(MAJOR, CLEANING, 30), (MINOR, DONE, 31), (MAJOR, DONE, 32)], False),
    ],
)
def test_the_history_tells_of_a_rebalance(
    entries: list[tuple[CompactionType, CompactionState, int | None]], is_rebalanced: bool
) -> None:
    known = [
        CompactionInfo(id, "default", "t", "p=1", type, state, txn_id=txn)
        for id, (type, state, txn) in enumerate(entries)
    ]
    other = CompactionInfo(99, "default", "t", "p=2", MAJOR, DONE, txn_id=30)
    metastore: Any = SimpleNamespace(show_compactions=lambda wanted: [*known, other])
    assert _rebalanced(metastore, TABLE, UNSEEN) == ({"p=1"} if is_rebalanced else set())
