"""Both engines write to one table at once: no update is lost, no row is lost.

Hive's own inserts come from one connection: in one HiveServer2 with Tez in local mode, two jobs at once would share
state that they do not share on a cluster. Its updates of one table wait for each other, so there two connections do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from acidsql.errors import LockTimeout, TransactionError, WriteConflict
from acidsql.session import AcidSession
from tests.interop.both import ACIDSQL, HIVE, Both
from tests.interop.conftest import OpenAcid, OpenHive
from tests.services.hiveserver2 import Hive, HiveError

TIMES = 5
"""So many statements each connection runs."""
RETRIES = 5
RETRIED_BY_HIVE = ("lock", "conflict", "aborted", "snapshot")
"""Words in Hive's errors after which a client tries again."""

Outcome = Counter[str]


def _of_hive(hive: Hive, statements: Sequence[str]) -> Outcome:
    """Run statements, each until it succeeds; how many did, and how often one was tried again."""
    outcome: Outcome = Counter()
    for statement in statements:
        for _ in range(RETRIES):
            try:
                hive.run(statement)
            except HiveError as e:
                if not any(word in str(e).lower() for word in RETRIED_BY_HIVE):
                    raise
                outcome["retried by Hive"] += 1
            else:
                outcome[HIVE] += 1
                break
    return outcome


def _of_acidsql(acid: AcidSession, statements: Sequence[str]) -> Outcome:
    """As :func:`_of_hive`."""
    outcome: Outcome = Counter()
    for statement in statements:
        for _ in range(RETRIES):
            try:
                acid.sql(statement)
            except (LockTimeout, WriteConflict, TransactionError):
                outcome["retried by acidsql"] += 1
            else:
                outcome[ACIDSQL] += 1
                break
    return outcome


def _at_once(both: Both, work: Sequence[Callable[[], Outcome]]) -> Outcome:
    with ThreadPoolExecutor(len(work)) as pool:
        outcomes = [done.result() for done in [pool.submit(one) for one in work]]
    total: Outcome = Counter()
    for outcome in outcomes:
        total.update(outcome)
    for side in (HIVE, ACIDSQL):
        both.wrote(side, total[side])
    return total


@pytest.mark.parametrize("keys", ["", "p int"], ids=["plain", "partitioned"])
def test_a_counter_that_both_increment(
    both: Both, open_hive: OpenHive, open_acid: OpenAcid, capsys: pytest.CaptureFixture[str], keys: str
) -> None:
    t = both.table("n int" + ("" if keys else ", p int"), keys, by=ACIDSQL)
    t.hive("INSERT INTO {t} VALUES (0, 1)")
    increments = [t.text("UPDATE {t} SET n = n + 1")] * TIMES
    engines = [(open_hive(), open_acid()) for _ in range(2)]
    for hive, _ in engines:
        hive.run("SET hive.lock.sleep.between.retries=1s")
    work: list[Callable[[], Outcome]] = []
    for hive, acid in engines:
        work += [lambda h=hive: _of_hive(h, increments), lambda a=acid: _of_acidsql(a, increments)]  # type: ignore[misc]
    outcome = _at_once(both, work)
    with capsys.disabled():
        print(f" {dict(outcome)}", end="")
    assert outcome[HIVE] > 0
    assert outcome[ACIDSQL] > 0
    t.holds((outcome[HIVE] + outcome[ACIDSQL], 1))


@pytest.mark.parametrize("keys", ["", "p int"], ids=["plain", "partitioned"])
def test_inserts_by_both_at_once(both: Both, open_hive: OpenHive, open_acid: OpenAcid, keys: str) -> None:
    t = both.table("who string, i int" + ("" if keys else ", p int"), keys, by=HIVE)
    rows = {who: [(who, i, i % 2) for i in range(TIMES)] for who in ("hive", "one", "two")}
    texts = {who: [t.text(f"INSERT INTO {{t}} VALUES {row}") for row in rows[who]] for who in rows}
    hive, one, two = open_hive(), open_acid(), open_acid()
    _at_once(
        both,
        [
            lambda: _of_hive(hive, texts["hive"]),
            lambda: _of_acidsql(one, texts["one"]),
            lambda: _of_acidsql(two, texts["two"]),
        ],
    )
    t.holds(*rows["hive"], *rows["one"], *rows["two"])


def test_the_first_to_commit_wins_where_neither_excludes_the_other(
    both: Both, open_acid: OpenAcid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hive.txn.xlock.write=false on both sides: whoever commits second is told so, and nothing of it stays."""
    t = both.table("n int", by=HIVE)
    t.hive("INSERT INTO {t} VALUES (0)")
    optimistic = open_acid(**{"hive.txn.xlock.write": "false"})
    both.hive.run("SET hive.txn.xlock.write=false")
    store = type(optimistic.metastore)
    commit = store.commit_txn

    def second(self: object, txn_id: int, *args: Any) -> None:
        if self is optimistic.metastore:
            both.run(HIVE, t.text("UPDATE {t} SET n = n + 100"))
        commit(self, txn_id, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(store, "commit_txn", second)
        with pytest.raises(WriteConflict):
            optimistic.sql(t.text("UPDATE {t} SET n = n + 1"))
    t.holds((100,))
