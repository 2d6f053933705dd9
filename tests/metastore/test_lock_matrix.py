"""Which lock blocks which, at each pair of levels (``TestTxnHandler.testLock…``; LockTypeComparator in Hive).

The expectations are written out here as tables; they are not taken from the code.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from acidsql.metastore.model import LockState, LockType
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import EXCL_WRITE, EXCLUSIVE, READ, SHARED_WRITE, ask, begin, take

TYPES = {"r": READ, "w": SHARED_WRITE, "x": EXCL_WRITE, "e": EXCLUSIVE}

# a line is the lock that is asked for, a column the one that is held
MATRIX = """
    r w x e
  r - - - B
  w - - B B
  x - B B B
  e B B B B
"""

LEVELS = {"database": "d1", "table": "d1.t1", "partition": "d1.t1/p=1"}

EXCEPTIONS = {
    # reading a database (SHOW TABLES, CREATE TABLE in it) goes together with dropping one of its tables, both ways
    ("r", "database", "e", "table"),
    ("r", "database", "e", "partition"),
    ("e", "table", "r", "database"),
    ("e", "partition", "r", "database"),
}
"""(asked type, asked level, held type, held level) that go together although the matrix says that they do not."""

OTHERS = [("d1", "d2"), ("d1", "d2.t1"), ("d1.t1", "d1.t2"), ("d1.t1", "d1.t2/p=1"), ("d1.t1/p=1", "d1.t1/p=2")]
"""Objects that have nothing in common."""


def _matrix() -> dict[tuple[str, str], bool]:
    head, *lines = MATRIX.strip().splitlines()
    return {
        (line.split()[0], held): cell == "B"
        for line in lines
        for held, cell in zip(head.split(), line.split()[1:], strict=True)
    }


def _cells() -> Iterator[tuple[str, str, str, str, bool]]:
    for (asked, held), blocks in _matrix().items():
        for asked_level in LEVELS:
            for held_level in LEVELS:
                excepted = (asked, asked_level, held, held_level) in EXCEPTIONS
                yield asked, asked_level, held, held_level, blocks and not excepted


SHARED = pytest.mark.needs("shared writes go together")
CELLS = [
    pytest.param(
        *cell, id=f"{cell[0]} on {cell[1]} after {cell[2]} on {cell[3]}", marks=[SHARED] * (cell[0] == cell[2] == "w")
    )
    for cell in _cells()
]


@pytest.mark.parametrize(("asked", "asked_level", "held", "held_level", "blocks"), CELLS)
def test_cell(store: Metastore, asked: str, asked_level: str, held: str, held_level: str, blocks: bool) -> None:
    holder = take(store, begin(store), TYPES[held], LEVELS[held_level])
    response = ask(store, begin(store), TYPES[asked], LEVELS[asked_level])
    if blocks:
        assert response.state is LockState.WAITING
        assert response.blocked_by is not None
        assert response.blocked_by.lock_id == holder
    else:
        assert response.state is LockState.ACQUIRED
        assert response.blocked_by is None


@pytest.mark.parametrize("other_way", [False, True])
@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_locks_on_different_objects_never_block(store: Metastore, one: str, other: str, other_way: bool) -> None:
    held, asked = (other, one) if other_way else (one, other)
    take(store, begin(store), EXCLUSIVE, held)
    take(store, begin(store), EXCLUSIVE, asked)


@pytest.mark.parametrize("first", list(LockType))
@pytest.mark.parametrize("second", list(LockType))
def test_locks_of_one_transaction_never_block_each_other(store: Metastore, first: LockType, second: LockType) -> None:
    txn_id = begin(store)
    take(store, txn_id, first)
    take(store, txn_id, second)


def test_locks_without_a_transaction_do_block_each_other(store: Metastore) -> None:
    take(store, 0, EXCLUSIVE)
    assert ask(store, 0, READ).state is LockState.WAITING


def test_a_partition_of_the_same_name_in_another_table_is_another_object(store: Metastore) -> None:
    take(store, begin(store), EXCLUSIVE, "d1.t1/p=1")
    take(store, begin(store), EXCLUSIVE, "d1.t2/p=1")
    take(store, begin(store), EXCLUSIVE, "d2.t1/p=1")
