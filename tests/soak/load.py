"""The threads of a run: writers, readers, somebody who asks for compactions, and one who counts directories."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row

from acidsql.errors import CompactionError, WriteConflict
from acidsql.format.names import STAGING_PREFIX, parse_directory
from acidsql.session import AcidSession
from tests.soak.books import Book, Line, Order, require
from tests.soak.fates import Fate, Fates, Interrupted
from tests.soak.judge import Broken, Judge
from tests.soak.watch import Watch

HOLD = 30
"""A reader keeps a DataFrame for so many statements of others, then reads it a last time."""
SAMPLES = 0.2
"""Seconds between two counts of directories."""


class Unanswered(Exception):
    """It is not known whether the statement was done."""


class Worker(Protocol):
    """What a thread of the run does."""

    def work(self) -> None:
        """Go on until the judge says stop."""
        ...


class Hands(Protocol):
    """Carries statements out: in a session, or in another process."""

    def run(self, text: str, chance: random.Random) -> tuple[int, int, int]:
        """The rows that it updated, deleted and inserted.

        Raises:
            WriteConflict: When another one was first.
            Interrupted: When it was not done, on purpose.
            Unanswered: When it may be done.
        """
        ...


@dataclass
class OwnHands:
    """Statements of a session of this process; some meet a fate."""

    acid: AcidSession
    judge: Judge
    fates: Fates
    of: Mapping[Fate, float] = field(default_factory=dict)
    """How likely each fate is."""

    def run(self, text: str, chance: random.Random) -> tuple[int, int, int]:
        fate = self._draw(chance)
        try:
            with self.fates.of_this_thread(fate, chance.randint(1, 20)):
                [row] = self.acid.sql(text).collect()
        except Interrupted as e:
            assert fate is not None
            self.judge.count(fate.value)
            if fate is Fate.LOST:
                raise Unanswered from e
            raise
        return row.num_updated_rows, row.num_deleted_rows, row.num_inserted_rows

    def _draw(self, chance: random.Random) -> Fate | None:
        drawn = chance.random()
        for fate, share in self.of.items():
            drawn -= share
            if drawn < 0 and not self.judge.stop.is_set():
                return fate
        return None


@dataclass
class Writer:
    """Carries out a book's statements one by one, each until it is done; only a conflict or a fate is no failure."""

    number: int
    book: Book
    hands: Hands
    acid: AcidSession
    """Where it looks whether a statement was done that nobody answered."""
    judge: Judge
    seed: str
    pause: float = 0.0
    """Seconds that it rests at most between two statements."""

    def work(self) -> None:
        chance = random.Random(f"{self.seed} writer {self.number}")
        while not self.judge.stop.is_set():
            order = self.book.issue(self.number, chance)
            while not self._is_done(order, chance):
                if self.judge.failures:
                    return
            self.book.acknowledge(order)
            self.judge.stop.wait(chance.uniform(0, self.pause))
            self.judge.count("statements")
            self.judge.count(f"statements: {order.text.split(None, 1)[0]} {self.book.name}")

    def _is_done(self, order: Order, chance: random.Random) -> bool:
        try:
            counts = self.hands.run(order.text, chance)
        except WriteConflict:
            self.judge.count("conflicts")
            return False
        except Interrupted:
            return False
        except Unanswered:
            return order.witness is None or self.acid.sql(order.witness).collect()[0][0] == order.done
        require(counts == order.counts, order.text, "answers", counts, "instead of", order.counts)
        return True


@dataclass(frozen=True)
class Kept:
    """A DataFrame that a reader has read, and will read again."""

    frame: DataFrame
    rows: list[Row]
    since: int
    txn_id: int
    """The transaction that holds its files."""


@dataclass
class Reader:
    """Takes snapshots of some books in one query, has them judged, and reads some of them again later."""

    number: int
    books: Sequence[Book]
    acid: AcidSession
    judge: Judge
    seed: str
    watch: Watch

    def work(self) -> None:
        chance = random.Random(f"{self.seed} reader {self.number}")
        kept: list[Kept] = []
        while not self.judge.stop.is_set():
            taken = self._read(chance.sample(self.books, chance.randint(1, len(self.books))))
            if len(kept) < 2:
                kept.append(taken)
            old = [one for one in kept if self.judge.statements - one.since >= HOLD]
            again = chance.choice(old or kept)
            self._read_again(again)
            if old or chance.random() < 0.1:
                kept.remove(again)
            del taken, again, old  # or its snapshot is held on to while this one sleeps

    def _read(self, books: Sequence[Book]) -> Kept:
        since = self.judge.statements
        before = [book.known() for book in books]
        frame = self.acid.sql(" UNION ALL ".join(book.select for book in books))
        txn_id, after = self.watch.opened(), [book.known() for book in books]
        found = self._collected(frame, txn_id)
        for book, then, now in zip(books, before, after, strict=True):
            lines = [Line(r.a, r.b, r.c, r.text) for r in found if r.book == book.name]
            book.check(lines, then, now)
        self.judge.count("snapshots read")
        return Kept(frame, found, since, txn_id)

    def _collected(self, frame: DataFrame, txn_id: int) -> list[Row]:
        try:
            return sorted(frame.collect())
        except (PySparkException, Py4JError) as e:
            end = self.watch.end_of(txn_id)
            raise Broken(f"a snapshot cannot be read, its transaction {txn_id} was {end}: {e}") from e

    def _read_again(self, kept: Kept) -> None:
        now = self._collected(kept.frame, kept.txn_id)
        if now != kept.rows:
            raise Broken(f"a snapshot has changed: {set(now) ^ set(kept.rows)}")
        self.judge.count("snapshots read again")
        self.judge.highest("most statements behind a snapshot that was read", self.judge.statements - kept.since)


@dataclass
class Operator:
    """Asks for compactions beside the initiator, and never waits for them."""

    requests: Sequence[str]
    acid: AcidSession
    judge: Judge
    seed: str
    pause: float
    """Seconds between two requests, on average."""

    def work(self) -> None:
        chance = random.Random(f"{self.seed} operator")
        while not self.judge.stop.wait(chance.uniform(0, 2 * self.pause)):
            try:
                self.acid.sql(chance.choice(self.requests))
            except CompactionError as e:  # the same is queued already
                require("already" in str(e), e)
            self.judge.count("compactions asked for by hand")


@dataclass
class Counter:
    """Looks at the directories of all places again and again: how many, how many bytes, and which are gone."""

    places: Callable[[], Sequence[Path]]
    bound: int
    judge: Judge
    _seen: dict[Path, set[str]] = field(default_factory=dict)

    def work(self) -> None:
        while not self.judge.stop.wait(SAMPLES):
            self.look()

    def look(self) -> None:
        """Count once."""
        for place in self.places():
            names = set(os.listdir(place))
            data = {name for name in names if parse_directory(name) is not None}
            before = self._seen.get(place, set())
            self._seen[place] = data
            self.judge.count("directories removed", len(before - data))
            self.judge.count("directories made", len(data - before))
            self.judge.highest("most directories at one place", len(data))
            staged = sum(name.startswith(STAGING_PREFIX) for name in names)
            self.judge.highest("most staging directories at one place", staged)
            require(len(data) <= self.bound, place, "has", len(data), "directories:", sorted(data))
