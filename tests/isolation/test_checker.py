"""The checker on histories whose anomalies are known by name, and on ones that snapshot isolation allows."""

from __future__ import annotations

import random

import pytest

from tests.isolation.checker import anomalies
from tests.isolation.history import Append, Operation, Outcome, Read, Txn

A, R = Append, lambda key, *values: Read(key, values)


def history(*txns: tuple[Operation, ...]) -> list[Txn]:
    """Transactions that all overlapped."""
    return [Txn(number, operations) for number, operations in enumerate(txns)]


GOOD: dict[str, list[Txn]] = {
    "nothing": [],
    "one": history((A("x", 1), R("x", 1))),
    "one after another": history((A("x", 1),), (R("x", 1), A("x", 2), R("x", 1, 2)), (R("x", 1, 2),)),
    "write skew": history((R("x"), R("y"), A("x", 1)), (R("x"), R("y"), A("y", 2)), (R("x", 1), R("y", 2))),
    "old snapshot of a reader that began before": history((A("x", 1), A("y", 1)), (R("x"), R("y")), (R("x", 1),)),
    "unknown that nobody saw": [Txn(0, (A("x", 1),), Outcome.UNKNOWN), Txn(1, (R("x"),))],
    "unknown that was seen": [Txn(0, (A("x", 1),), Outcome.UNKNOWN), Txn(1, (R("x", 1),))],
    "aborted that nobody saw": [Txn(0, (A("x", 1), R("x", 1)), Outcome.ABORTED), Txn(1, (R("x"),))],
}

BAD: dict[str, tuple[str, list[Txn]]] = {
    "dirty write": ("G0", history((A("x", 1), A("y", 1)), (A("x", 2), A("y", 2)), (R("x", 1, 2), R("y", 2, 1)))),
    "aborted read": ("G1a", [Txn(0, (A("x", 1),), Outcome.ABORTED), Txn(1, (R("x", 1),))]),
    "aborted read by an aborted one": (
        "G1a",
        [Txn(0, (A("x", 1),), Outcome.ABORTED), Txn(1, (R("x", 1),), Outcome.ABORTED)],
    ),
    "intermediate read": ("G1b", history((A("x", 1), A("x", 2)), (R("x", 1),))),
    "circular information": ("G1c", history((A("x", 1), R("y", 2)), (A("y", 2), R("x", 1)))),
    "lost update": ("G-SI", history((R("x"), A("x", 1)), (R("x"), A("x", 2)), (R("x", 1, 2),))),
    "read skew": ("G-SI", history((A("x", 1), A("y", 1)), (R("x", 1), R("y")), (R("y", 1),))),
    "long fork": (
        "G-SI",
        history((A("x", 1),), (A("y", 1),), (R("x", 1), R("y")), (R("x"), R("y", 1)), (R("x", 1), R("y", 1))),
    ),
    "stale snapshot": (
        "G-SI",
        [Txn(0, (A("x", 1),), began=1, ended=2), Txn(1, (R("x"),), began=3, ended=4), Txn(2, (R("x", 1),), began=5)],
    ),
    "own write not seen": ("internal", history((A("x", 1), R("x")))),
    "two states": ("internal", history((A("x", 1),), (R("x"), R("x", 1)))),
    "two orders": ("order", history((A("x", 1),), (A("x", 2),), (R("x", 1, 2),), (R("x", 2, 1),))),
    "read of nothing that was written": ("garbage", history((R("x", 7),))),
    "twice": ("duplicate", history((A("x", 1),), (R("x", 1, 1),))),
    "lost append": (
        "lost append",
        [Txn(0, (A("x", 1),), began=1, ended=2), Txn(1, (R("x"),), began=3, ended=4)],
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_snapshot_isolation_allows(name: str) -> None:
    assert anomalies(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_what_it_does_not_allow(name: str) -> None:
    kind, txns = BAD[name]
    assert kind in {one.kind for one in anomalies(txns)}


def test_write_skew_is_found_where_serializability_is_asked_for() -> None:
    [found] = anomalies(GOOD["write skew"], serializable=True)
    assert found.kind == "write skew"
    assert set(found.txns) == {0, 1}


def simulated(chance: random.Random, *, count: int, mistakes: float) -> list[Txn]:
    """A history of an engine with snapshots and first-committer-wins, which sometimes commits a lost update."""
    state: dict[str, tuple[int, ...]] = dict.fromkeys("xyz", ())
    open_ones: list[tuple[int, dict[str, tuple[int, ...]], list[Operation], set[str]]] = []
    done, clock, value, changed = list[Txn](), 0, 0, dict[str, int]()
    while len(done) < count:
        clock += 1
        if len(open_ones) < 3 and chance.random() < 0.5:
            open_ones.append((clock, dict(state), [], set()))
            continue
        if not open_ones:
            continue
        began, seen, operations, written = one = chance.choice(open_ones)
        key = chance.choice("xyz")
        if chance.random() < 0.6:
            if chance.random() < 0.5:
                operations.append(Read(key, seen[key]))
            else:
                value += 1
                seen[key] = (*seen[key], value)
                written.add(key)
                operations.append(Append(key, value))
            continue
        open_ones.remove(one)
        conflict = any(changed.get(k, 0) > began for k in written)
        commits = not conflict or chance.random() < mistakes
        if commits:
            for k in written:
                own = {o.value for o in operations if isinstance(o, Append) and o.key == k}
                state[k] = (*state[k], *(v for v in seen[k] if v in own))
                changed[k] = clock
        outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
        done.append(Txn(len(done), tuple(operations), outcome, began, clock))
    last = tuple(Read(key, values) for key, values in state.items())
    return [*done, Txn(len(done), last, began=clock + 1)]


@pytest.mark.parametrize("seed", range(20))
def test_random_histories_of_a_right_engine_are_right(seed: int) -> None:
    assert anomalies(simulated(random.Random(seed), count=150, mistakes=0)) == []


def test_an_engine_that_loses_updates_is_found_out() -> None:
    """Blind appends in conflict are no lost updates: nearly all of these histories have a read in one, too."""
    found = [anomalies(simulated(random.Random(seed), count=150, mistakes=0.3)) for seed in range(20)]
    assert sum(bool(one) for one in found) >= 18
