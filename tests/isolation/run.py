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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from unittest.mock import patch

from acidsql.errors import AcidError, Deadlock, LockTimeout, MetastoreError, WriteConflict
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.session import AcidSession
from tests.isolation.checker import anomalies
from tests.isolation.history import Outcome
from tests.isolation.journal import Entry, Journal, Report, report_of

SESSIONS = 5
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
        fails: Statements may fail with any error at all, of Spark's jobs too.
    """

    sleeps: float = 0.0
    cuts: float = 0.0
    cut: Callable[[], None] | None = None
    fails: bool = False


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
        journal: Where they write down what they do.
        number: Of the process, where there are several.
    """

    def __init__(
        self, connect: Callable[[], AcidSession], seed: int, faults: Faults, journal: Journal, number: int = 0
    ) -> None:
        self._connect, self._seed, self._faults = connect, f"{seed}/{number}", faults
        self._numbers = itertools.count(number * 1_000_000 + 1)
        self._journal = journal

    def go(self, sessions: int, seconds: float) -> None:
        """Run for some seconds."""
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self._session, args=(n, end)) for n in range(sessions)]
        threads.append(threading.Thread(target=self._compactor, args=(end,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def look(self, acid: AcidSession, before: Report) -> None:
        """Read all of it at the end.

        Args:
            acid: A session.
            before: What was done.
        """
        entry = self._journal.begin()
        try:
            with acid.transaction(read_only=True):
                for key in KEYS:
                    entry.read(key, _read(acid, key))
                self._check_money(acid)
                counted = acid.sql("SELECT n FROM counter").collect()[0].n
        except AssertionError as e:
            self._journal.problem(str(e))
            return
        entry.end(Outcome.COMMITTED)
        done = before.counts
        if not done["counted"] <= counted <= done["counts begun"] - done["counts aborted"]:
            self._journal.problem(f"the counter is {counted}: {dict(done)}")

    # --- sessions ----------------------------------------------------------------------------------------------------

    def _session(self, number: int, end: float) -> None:
        chance = random.Random(f"{self._seed}/{number}")
        try:
            with self._connect() as acid:
                while time.monotonic() < end:
                    kind = chance.choices((self._lists, self._money, self._count), (6, 2, 1))[0]
                    kind(acid, chance)
        except Exception as e:
            self._journal.problem(f"session {number}: {e!r}")

    def _compactor(self, end: float) -> None:
        chance = random.Random(f"{self._seed}/compactor")
        with self._connect() as acid:
            while time.monotonic() < end:
                table = chance.choice((*TABLES, "checking", "saving", "counter"))
                partition = f" PARTITION (p = {chance.choice(PARTITIONS)})" if table in TABLES else ""
                with suppress(AcidError):
                    acid.sql(f"ALTER TABLE {table}{partition} COMPACT '{chance.choice(('minor', 'major'))}'")
                    acid.compactor.run_once()
                    self._journal.count("compactor's rounds")
                time.sleep(chance.random())

    def _lists(self, acid: AcidSession, chance: random.Random) -> None:
        """A transaction over lists, with autocommit or without."""
        entry = self._journal.begin()
        alone = chance.random() < 0.25
        gives_up = not alone and chance.random() < 0.1

        def work() -> None:
            for _ in range(1 if alone else chance.randint(1, 4)):
                self._operate(acid, chance, entry)
                if not alone and chance.random() < 0.05:
                    with suppress(Exception):  # undone alone
                        acid.sql("UPDATE x SET l = array(raise_error('on purpose')) WHERE p = 0 AND k = 0")
                self._suffer(acid, chance)

        entry.end(self._outcome(acid, work, alone=alone, gives_up=gives_up))

    def _operate(self, acid: AcidSession, chance: random.Random, entry: Entry) -> None:
        """Read or append; an append that fails may have been done, where it is a transaction of its own."""
        key = chance.choice(KEYS)
        if chance.random() < 0.5:
            entry.read(key, _read(acid, key))
            return
        value = next(self._numbers)
        entry.append(key, value)
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
        self._journal.count(f"{'looks at money' if look else 'transfers'} {outcome.value}")

    def _check_money(self, acid: AcidSession) -> None:
        total = sum(acid.sql(f"SELECT sum(balance) AS s FROM {t}").collect()[0].s for t in ("checking", "saving"))
        if acid.in_transaction and total != 2 * ACCOUNTS * START:
            self._journal.problem(f"{total} of money, {2 * ACCOUNTS * START} is right")

    def _count(self, acid: AcidSession, chance: random.Random) -> None:
        def work() -> None:
            acid.sql("UPDATE counter SET n = n + 1")

        self._journal.count("counts begun")
        outcome = self._outcome(acid, work, alone=True, gives_up=False)
        if outcome is not Outcome.UNKNOWN:
            self._journal.count("counted" if outcome is Outcome.COMMITTED else "counts aborted")

    def _outcome(self, acid: AcidSession, work: Callable[[], None], *, alone: bool, gives_up: bool) -> Outcome:
        """Run a transaction; what came of it."""
        try:
            if not alone:
                acid.sql("START TRANSACTION")
            work()
            if gives_up:
                acid.sql("ROLLBACK")
                return Outcome.ABORTED
        except AssertionError:
            raise
        except Exception as e:
            if not (isinstance(e, AcidError | OSError) or self._faults.fails):
                raise
            self._journal.count(type(e).__name__)
            if not alone:
                self._roll_back(acid)
            is_sure = not alone or isinstance(e, WriteConflict | Deadlock | LockTimeout)
            return Outcome.ABORTED if is_sure else Outcome.UNKNOWN
        if alone:
            return Outcome.COMMITTED
        try:
            acid.sql("COMMIT")
        except MetastoreError as e:
            self._journal.count(f"{type(e).__name__} at a commit")
            self._roll_back(acid)
            return Outcome.UNKNOWN
        except AcidError as e:
            self._journal.count(f"{type(e).__name__} at a commit")
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
            self._journal.count("away for too long")
            with _silent(acid._env.heartbeats):
                time.sleep(DEAD_AFTER + 2)
        if self._faults.cut is not None and chance.random() < self._faults.cuts:
            self._journal.count("cuts")
            self._faults.cut()


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


def ran(connect: Callable[[], AcidSession], seed: int, seconds: float, faults: Faults) -> Report:
    """Make the tables, run sessions for some seconds, look at the end."""
    with connect() as acid:
        make_tables(acid)
    journal = Journal("threads")
    run = Run(connect, seed, faults, journal)
    run.go(SESSIONS, seconds)
    with connect() as acid:
        run.look(acid, report_of(journal.events))
    with connect() as acid:
        acid._env.heartbeats.end_released(collect=True)
        left = [r.txnid for r in acid.sql("SHOW TRANSACTIONS").collect() if r.state == "OPEN"]
        locks = [r.lockid for r in acid.sql("SHOW LOCKS").collect() if r.lockid.isdigit()]
    report = report_of(journal.events)
    if not faults.sleeps and not faults.cuts:
        report.problems += [f"transaction {one} is left" for one in left] + [f"lock {one} is left" for one in locks]
    return report


def judged(report: Report, seed: int) -> None:
    """Fail with all that was found, and with the seed."""
    found = anomalies(report.history)
    told = "\n".join([f"seed {seed}", *report.problems, *map(str, found), str(dict(report.counts))])
    assert not found, told
    assert not report.problems, told
    assert report.counts["transactions committed"] >= 5, told
    print("isolation:", told)
