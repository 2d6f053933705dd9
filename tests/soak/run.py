"""A run: tables, load for some time, the end of all that is open, and what must be left then."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.session import AcidSession
from tests.soak.books import Accounts, Board, Book, Ledger, Tokens
from tests.soak.end import ENDING, count_compactions, settle
from tests.soak.fates import Fate, Fates
from tests.soak.judge import Judge
from tests.soak.load import Counter, Hands, Operator, OwnHands, Reader, Worker, Writer
from tests.soak.others import Daemon, OtherHands
from tests.soak.watch import Watch

BOUND = 150
"""More directories than this at one place, at any time, and what is written is not put together fast enough."""
LEAST = {
    "compactions: MAJOR succeeded": 1,
    "compactions: MINOR succeeded": 1,
    "directories removed": 3,
    "snapshots read": 4,
    "snapshots read again": 4,
    "statements": 20,
}
"""A run goes on until so much of everything was done."""
LEAST_KILLED = {"compactors killed": 1, "writers killed": 1}
"""And of this, where there are processes."""
PATIENCE = 300.0
"""Seconds that it goes on at most for that."""
DEAD_AFTER = 20
"""Seconds without a heartbeat after which a transaction is aborted."""
SETTINGS = {
    "hive.txn.timeout": f"{DEAD_AFTER}s",
    "hive.timedout.txn.reaper.start": "0s",
    "hive.timedout.txn.reaper.interval": "1s",
    "hive.compactor.check.interval": "1s",
    "hive.compactor.cleaner.run.interval": "1s",
    "hive.compactor.cleaner.retry.retention.time": "1s",
    "hive.compactor.worker.sleep.time": "200ms",
    "hive.compactor.worker.threads": "2",
    "hive.compactor.delta.num.threshold": "3",
    "hive.compactor.abortedtxn.threshold": "3",
    "acidsql.staging.retention": "60s",
    "acidsql.staging.sweep.interval": "5s",
    # whoever waits for the dead waits longer than they live, and looks often
    "hive.lock.numretries": "100000",
    "hive.lock.sleep.between.retries": "200ms",
    "hive.txn.retrysnapshot.max.count": "1000",
    # the report counts all of them
    "hive.compactor.history.retention.succeeded": "1000000",
    "hive.compactor.history.retention.failed": "1000000",
    "hive.compactor.history.retention.refused": "1000000",
}
UNLUCKY = {Fate.FAILS: 0.08, Fate.LOST: 0.04}
MORTAL = {**UNLUCKY, Fate.DIES: 0.05}
"""Of writers whose death stops nobody else; the locks of the others are in everybody's way until they time out."""
REQUESTS = (
    "ALTER TABLE account PARTITION (branch = 'even') COMPACT 'minor'",
    "ALTER TABLE account PARTITION (branch = 'odd') COMPACT 'major'",
    "ALTER TABLE ledger COMPACT 'minor'",
    "ALTER TABLE ledger COMPACT 'minor'",
    "ALTER TABLE ledger COMPACT 'major'",
    "ALTER TABLE token COMPACT 'major'",
    "ALTER TABLE token COMPACT 'rebalance'",
    "ALTER TABLE board COMPACT 'minor'",
)
CHEAP = 1.0
"""Seconds that writers rest at most whose statements are cheap: conflicts and waiting are the others' share."""
TOKENS = (4, 5, 20)
"""Who holds a token: the last one is a process of its own, where there is one."""


@dataclass
class Plan:
    """What a run is to be.

    Attributes:
        layouts: ``acidsql.compactor.layout``: the first, and those that follow it when their share of the time begins.
        seconds: How long the load lasts.
        seed: Of all that is drawn by chance; the order of the threads is not.
        processes: Whether there are a writer and a compactor in processes of their own, which are killed.
    """

    layouts: Sequence[str]
    seconds: float
    seed: int
    processes: bool


class Run:
    """One run on a warehouse of its own."""

    def __init__(self, plan: Plan, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan = plan
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.judge = Judge()
        self.watch = Watch(monkeypatch, self.judge)
        self.fates = Fates(monkeypatch)
        self.settings = {**SETTINGS, "acidsql.compactor.layout": plan.layouts[0]}
        self.accounts, self.ledger, self.tokens, self.board = Accounts(), Ledger(), Tokens(TOKENS), Board()
        self.books: list[Book] = [self.accounts, self.ledger, self.tokens, self.board]
        self.spark = spark
        self.acid = self._connected()
        # who takes no exclusive locks and learns of a conflict at its commit
        self.bold = self._connected({"hive.txn.xlock.write": "false"})
        self.counter = Counter(self.places, BOUND, self.judge)

    def places(self) -> list[Path]:
        """The directories of all tables and partitions."""
        flat = [self.warehouse / name for name in ("ledger", "token", "board")]
        return [*flat, *sorted((self.warehouse / "account").glob("branch=*"))]

    def run(self) -> None:
        """All of it; raises AssertionError with the report."""
        judge = self.judge
        with judge.watching("the beginning"):
            for statement in (text for book in self.books for text in book.ddl):
                self.acid.sql(statement)
        begin = time.monotonic()
        with _complaints(judge), judge.watching("the load"):
            self._load()
        judge.count("seconds of load", int(time.monotonic() - begin))
        missing = self._missing()
        self.bold.close()
        self.acid.close()
        if not judge.failures:
            with judge.watching("the end"), self._connected(ENDING) as acid:
                settle(acid, self.books, self.places())
                self.counter.look()
                count_compactions(acid, judge)
        self._report(missing)

    def _connected(self, more: Mapping[str, str] | None = None) -> AcidSession:
        return acidsql.connect(self.spark, warehouse=self.warehouse, settings={**self.settings, **(more or {})})

    # --- load --------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        plan, judge = self.plan, self.judge
        with ExitStack() as stack:
            hands: list[tuple[int, Book, Hands]] = []
            if plan.processes:
                other = OtherHands(self.folder, self.warehouse, self.settings, judge)
                daemon = Daemon(self.folder, self.warehouse, self.settings, judge, f"{plan.seed} daemon")
                stack.callback(other.end)
                stack.callback(daemon.end)
                hands = [(20, self.tokens, other), (21, self.ledger, other)]
            workers = self._workers(hands)
            if plan.processes:
                workers["the other compactor"] = daemon
            threads = [threading.Thread(target=self._watched, args=one, name=one[0]) for one in workers.items()]
            self.acid.compactor.start()
            for thread in threads:
                thread.start()
            for layout in plan.layouts:
                self.acid.sql(f"SET acidsql.compactor.layout = {layout}")
                judge.stop.wait(plan.seconds / len(plan.layouts))
            patience = time.monotonic() + PATIENCE
            while self._missing() and time.monotonic() < patience and not judge.stop.wait(0.5):
                pass
            judge.stop.set()
            for thread in threads:
                thread.join()
            self.acid.compactor.stop()

    def _missing(self) -> list[str]:
        """What was not done yet, or not often enough to say that anything was tested."""
        count_compactions(self.acid, self.judge)
        wanted = {**LEAST, **LEAST_KILLED} if self.plan.processes else LEAST
        return [what for what, least in wanted.items() if self.judge.counts[what] < least]

    def _workers(self, others: list[tuple[int, Book, Hands]]) -> dict[str, Worker]:
        acid, bold, judge, seed = self.acid, self.bold, self.judge, str(self.plan.seed)
        careful = OwnHands(acid, judge, self.fates, UNLUCKY)
        daring = OwnHands(bold, judge, self.fates, {**UNLUCKY, Fate.DIES: 0.02} if self.plan.processes else UNLUCKY)
        mortal = OwnHands(acid, judge, self.fates, MORTAL)
        writers: list[tuple[int, Book, Hands]] = [
            (0, self.accounts, careful),
            (1, self.accounts, daring),
            (2, self.accounts, daring),
            (3, self.ledger, mortal),
            (4, self.tokens, careful),
            (7, self.board, careful),
            *others,
        ]
        if self.plan.processes:
            writers += [(5, self.tokens, daring), (6, self.ledger, mortal)]
        made: dict[str, Worker] = {}
        for number, book, hands in writers:
            pause = CHEAP if book in (self.ledger, self.board) else 0
            made[f"writer {number} of {book.name}"] = Writer(number, book, hands, acid, judge, seed, pause)
        for number, session in enumerate((acid, bold)):
            made[f"reader {number}"] = Reader(number, self.books, session, judge, seed, self.watch)
        made["operator"] = Operator(REQUESTS, acid, judge, seed, pause=2.0 if self.plan.processes else 0.5)
        made["counter"] = self.counter
        return made

    def _watched(self, name: str, worker: Worker) -> None:
        with self.judge.watching(name):
            worker.work()

    # --- report ------------------------------------------------------------------------------------------------------

    def _report(self, missing: list[str]) -> None:
        plan = self.plan
        again = f"ACIDSQL_TEST_SEED={plan.seed}"
        head = f"soak, {', '.join(plan.layouts)}; again: {again} make test-soak SECONDS={plan.seconds:g}"
        report = f"{head}\n{self.judge.report()}"
        print(report)
        assert not self.judge.failures, report
        assert not missing, f"{report}\ntoo little was done: {missing}"


@contextmanager
def _complaints(judge: Judge) -> Iterator[None]:
    """An error that a service reports is a failure; warnings are counted."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                judge.fail(f"{record.name}: {record.getMessage()}")
            else:
                judge.count(f"warnings: {record.name}")

    listener = Listener(logging.WARNING)
    logging.getLogger("acidsql").addHandler(listener)
    try:
        yield
    finally:
        logging.getLogger("acidsql").removeHandler(listener)


def soak(plan: Plan, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a plan."""
    Run(plan, spark, folder, monkeypatch).run()
