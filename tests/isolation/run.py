"""A run: sessions that append to lists, move money and count, in transactions of their own, while tables are compacted.

Each list is a row; two tables of two partitions have two rows each, so that transactions meet in rows, partitions and
tables, and miss each other. Money is moved from one table to another one, and is never made. What sessions suffer
(:class:`Faults`) is drawn by chance, too: a session that is away for longer than its transactions live, and a store
that is away for a while.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from unittest.mock import patch

from acidsql.errors import AcidError, Deadlock, LockTimeout, MetastoreError, WriteConflict
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.session import AcidSession
from tests.isolation.history import Append, Operation, Outcome, Read, Txn

TABLES, PARTITIONS, ROWS = ("x", "y"), (0, 1), (0, 1)
KEYS = [f"{table}{p}{k}" for table in TABLES for p in PARTITIONS for k in ROWS]
ACCOUNTS, START = 4, 100
DEAD_AFTER = 3.0
"""Seconds without a heartbeat after which a transaction is aborted."""
SETTINGS = {
    "hive.txn.timeout": f"{DEAD_AFTER:g}s",
    "hive.timedout.txn.reaper.start": "0s",
    "hive.timedout.txn.reaper.interval": "1s",
    "acidsql.lock.timeout": "60s",
    "hive.lock.numretries": "100000",
    "acidsql.metastore.busy.timeout": "20s",
}


@dataclass(frozen=True)
class Faults:
    """How often what happens to a session, of all its transactions.

    Attributes:
        sleeps: It is away in the middle of one, without a heartbeat, for longer than that lives.
        cuts: Its connections to the store are lost.
        cut: Loses all connections to the store, which is away for a moment then.
    """

    sleeps: float = 0.0
    cuts: float = 0.0
    cut: Callable[[], None] | None = None


@dataclass
class Report:
    """What was done.

    Attributes:
        history: The transactions over lists.
        counts: How many of what.
        problems: What must not be, besides anomalies of the history.
    """

    history: list[Txn] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def make_tables(acid: AcidSession) -> None:
    """The lists, all empty, and the accounts."""
    for table in TABLES:
        acid.sql(f"CREATE TRANSACTIONAL TABLE {table} (k int, l array<int>) PARTITIONED BY (p int)")
        rows = ", ".join(f"({k}, array(), {p})" for p in PARTITIONS for k in ROWS)
        acid.sql(f"INSERT INTO {table} SELECT * FROM VALUES {rows} AS t(k, l, p)")
    for table in ("checking", "saving"):
        acid.sql(f"CREATE TRANSACTIONAL TABLE {table} (id int, balance int)")
        acid.sql(f"INSERT INTO {table} VALUES {', '.join(f'({i}, {START})' for i in range(ACCOUNTS))}")
    acid.sql("CREATE TRANSACTIONAL TABLE counter (n int)")
    acid.sql("INSERT INTO counter VALUES (0)")


class Run:
    """Sessions at work, each in a thread of its own.

    Args:
        connect: Opens a session over the store.
        seed: Of all that is drawn by chance; the order of the threads is not.
        faults: What they suffer.
    """

    def __init__(self, connect: Callable[[], AcidSession], seed: int, faults: Faults) -> None:
        self._connect, self._seed, self._faults = connect, seed, faults
        self._numbers, self._clock = itertools.count(1), itertools.count(1)
        self._lock = threading.Lock()
        self.report = Report()

    def go(self, sessions: int, seconds: float) -> Report:
        """Run for some seconds, and read all lists at the end."""
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self._session, args=(n, end)) for n in range(sessions)]
        threads.append(threading.Thread(target=self._compactor, args=(end,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        try:
            with self._connect() as acid:
                self._look_at_the_end(acid)
        except AssertionError as e:
            self.report.problems.append(str(e))
        return self.report

    def _look_at_the_end(self, acid: AcidSession) -> None:
        began = next(self._clock)
        with acid.transaction(read_only=True):
            last = tuple(Read(key, _read(acid, key)) for key in KEYS)
            self._check_money(acid)
            counted = acid.sql("SELECT n FROM counter").collect()[0].n
        self._record(last, Outcome.COMMITTED, began)
        done = self.report.counts
        if not done["counted"] <= counted <= done["counted"] + done["counts of unknown outcome"]:
            self.report.problems.append(f"the counter is {counted}")

    # --- sessions ----------------------------------------------------------------------------------------------------

    def _session(self, number: int, end: float) -> None:
        chance = random.Random(f"{self._seed}/{number}")
        try:
            with self._connect() as acid:
                while time.monotonic() < end:
                    kind = chance.choices((self._lists, self._money, self._count), (6, 2, 1))[0]
                    kind(acid, chance)
        except Exception as e:
            self.report.problems.append(f"session {number}: {e!r}")

    def _compactor(self, end: float) -> None:
        chance = random.Random(f"{self._seed}/compactor")
        with self._connect() as acid:
            while time.monotonic() < end:
                table = chance.choice((*TABLES, "checking", "saving", "counter"))
                partition = f" PARTITION (p = {chance.choice(PARTITIONS)})" if table in TABLES else ""
                with suppress(AcidError):
                    acid.sql(f"ALTER TABLE {table}{partition} COMPACT '{chance.choice(('minor', 'major'))}'")
                    acid.compactor.run_once()
                    self.report.counts["compactor's rounds"] += 1
                time.sleep(chance.random())

    def _lists(self, acid: AcidSession, chance: random.Random) -> None:
        """A transaction over lists, with autocommit or without."""
        operations: list[Operation] = []
        began = next(self._clock)
        alone = chance.random() < 0.25
        gives_up = not alone and chance.random() < 0.1

        def work() -> None:
            for _ in range(1 if alone else chance.randint(1, 4)):
                self._operate(acid, chance, operations)
                if not alone and chance.random() < 0.05:
                    with suppress(Exception):  # undone alone
                        acid.sql("UPDATE x SET l = array(raise_error('on purpose')) WHERE p = 0 AND k = 0")
                self._suffer(acid, chance)

        outcome = self._outcome(acid, work, alone=alone, gives_up=gives_up)
        self._record(tuple(operations), outcome, began)

    def _operate(self, acid: AcidSession, chance: random.Random, operations: list[Operation]) -> None:
        """Read or append; an append that fails may have been done, where it is a transaction of its own."""
        key = chance.choice(KEYS)
        if chance.random() < 0.5:
            operations.append(Read(key, _read(acid, key)))
            return
        value = next(self._numbers)
        operations.append(Append(key, value))
        done = acid.sql(f"UPDATE {key[0]} SET l = concat(l, array({value})) WHERE {_where(key)}").collect()[0]
        assert done.num_updated_rows == 1, (key, done)

    def _money(self, acid: AcidSession, chance: random.Random) -> None:
        """Move money from one table to another one, or look at all of it."""
        amount, one, other = chance.randint(1, 9), chance.randrange(ACCOUNTS), chance.randrange(ACCOUNTS)
        source, target = chance.sample(("checking", "saving"), 2)

        def move() -> None:
            acid.sql(f"UPDATE {source} SET balance = balance - {amount} WHERE id = {one}")
            self._suffer(acid, chance)
            acid.sql(f"UPDATE {target} SET balance = balance + {amount} WHERE id = {other}")

        look = chance.random() < 0.5
        work = (lambda: self._check_money(acid)) if look else move
        outcome = self._outcome(acid, work, alone=False, gives_up=not look and chance.random() < 0.1)
        self.report.counts[f"{'looks at money' if look else 'transfers'} {outcome.value}"] += 1

    def _check_money(self, acid: AcidSession) -> None:
        total = sum(acid.sql(f"SELECT sum(balance) AS s FROM {t}").collect()[0].s for t in ("checking", "saving"))
        if acid.in_transaction and total != 2 * ACCOUNTS * START:
            self.report.problems.append(f"{total} of money, {2 * ACCOUNTS * START} is right")

    def _count(self, acid: AcidSession, chance: random.Random) -> None:
        def work() -> None:
            acid.sql("UPDATE counter SET n = n + 1")

        outcome = self._outcome(acid, work, alone=True, gives_up=False)
        if outcome is not Outcome.ABORTED:
            self.report.counts["counted" if outcome is Outcome.COMMITTED else "counts of unknown outcome"] += 1

    def _outcome(self, acid: AcidSession, work: Callable[[], None], *, alone: bool, gives_up: bool) -> Outcome:
        """Run a transaction; what came of it."""
        try:
            if not alone:
                acid.sql("START TRANSACTION")
            work()
            if gives_up:
                acid.sql("ROLLBACK")
                return Outcome.ABORTED
        except (AcidError, OSError) as e:
            self.report.counts[type(e).__name__] += 1
            if not alone:
                self._roll_back(acid)
            is_sure = not alone or isinstance(e, WriteConflict | Deadlock | LockTimeout)
            return Outcome.ABORTED if is_sure else Outcome.UNKNOWN
        if alone:
            return Outcome.COMMITTED
        try:
            acid.sql("COMMIT")
        except MetastoreError as e:
            self.report.counts[f"{type(e).__name__} at a commit"] += 1
            self._roll_back(acid)
            return Outcome.UNKNOWN
        except AcidError as e:
            self.report.counts[f"{type(e).__name__} at a commit"] += 1
            self._roll_back(acid)
            return Outcome.ABORTED
        return Outcome.COMMITTED

    @staticmethod
    def _roll_back(acid: AcidSession) -> None:
        if acid.in_transaction:
            with suppress(AcidError):
                acid.sql("ROLLBACK")

    def _suffer(self, acid: AcidSession, chance: random.Random) -> None:
        if chance.random() < self._faults.sleeps:
            self.report.counts["away for too long"] += 1
            with _silent(acid._env.heartbeats):
                time.sleep(DEAD_AFTER + 2)
        if self._faults.cut is not None and chance.random() < self._faults.cuts:
            self.report.counts["cuts"] += 1
            self._faults.cut()

    def _record(self, operations: tuple[Operation, ...], outcome: Outcome, began: int) -> None:
        with self._lock:
            history = self.report.history
            history.append(Txn(len(history), operations, outcome, began, next(self._clock)))
        self.report.counts[f"transactions {outcome.value}"] += 1


def _where(key: str) -> str:
    return f"p = {key[1]} AND k = {key[2]}"


def _read(acid: AcidSession, key: str) -> tuple[int, ...]:
    found = acid.sql(f"SELECT l FROM {key[0]} WHERE {_where(key)}").collect()
    if len(found) != 1:
        raise AssertionError(f"{key} is there {len(found)} times")
    return tuple(found[0].l)


@contextmanager
def _silent(heartbeats: Heartbeats) -> Iterator[None]:
    """A block in which a session sends no heartbeats, as a process that is stopped."""
    with patch.object(heartbeats, "_beat", lambda: None):
        yield
