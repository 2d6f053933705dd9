"""The tables of the run, and for each of them what every single snapshot must show.

A book hands out the statements that are to be carried out, keeps which of them were begun (issued) and which are
certainly done, and judges the rows of a snapshot: all must be there that was done before it was taken, nothing that was
not begun yet, and nothing in between that no statement could have left. What is sure is a lower bound, what was begun
an upper one, and each statement's rows come and go as a whole.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tests.soak.judge import Broken


class Line(NamedTuple):
    """A row of any book, as its ``select`` gives it."""

    a: int
    b: int
    c: int
    text: str


Lines = Sequence[Line]


@dataclass(frozen=True)
class Order:
    """A statement that is to be carried out, once.

    Attributes:
        text: The statement.
        counts: What it must answer: rows updated, deleted, inserted.
        witness: A query whose answer is ``done`` if it is done, for a writer who got no answer; None where no query
            can tell, later on.
        done: That answer.
        place: The book's own: which counter goes up.
    """

    text: str
    counts: tuple[int, int, int]
    place: tuple[object, ...]
    witness: str | None = None
    done: int = 1


class Book(Protocol):
    """A table and its rules."""

    name: str
    select: str

    @property
    def ddl(self) -> list[str]:
        """What makes it."""
        ...

    def issue(self, writer: int, chance: random.Random) -> Order:
        """The next statement of a writer: from now on its effect may be seen."""
        ...

    def acknowledge(self, order: Order) -> None:
        """It is done: from now on its effect must be seen."""
        ...

    def known(self) -> object:
        """What is known now, to be handed to :meth:`check`."""
        ...

    def check(self, lines: Lines, before: object, after: object) -> None:
        """Judge a snapshot.

        Args:
            lines: All its rows.
            before: What was known before it was taken.
            after: What was known once it had been taken.

        Raises:
            Broken: When it is none that can be.
        """
        ...


def require(condition: bool, *problem: object) -> None:
    if not condition:
        raise Broken(" ".join(map(str, problem)))


# --- transfers -------------------------------------------------------------------------------------------------------


class Accounts:
    """Accounts in two branches (partitions): each transfer goes from one to the other, and money is never made.

    A transfer is an UPDATE or MERGE of two rows, in two partitions. Transfers commute, so the last snapshot must be
    exactly the sum of all of them.
    """

    name = "account"
    select = "SELECT 'account' AS book, id AS a, balance AS b, moves AS c, branch AS text FROM account"
    SIZE, START = 12, 1000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._issued: Counter[int] = Counter()
        self._done: Counter[int] = Counter()
        self.balances = dict.fromkeys(range(self.SIZE), self.START)

    @property
    def ddl(self) -> list[str]:
        first = ", ".join(f"({i}, {self.START}, 0, '{self._branch(i)}')" for i in range(self.SIZE))
        return [
            "CREATE TRANSACTIONAL TABLE account (id int, balance bigint, moves int) PARTITIONED BY (branch string)",
            f"INSERT INTO account VALUES {first}",
        ]

    @staticmethod
    def _branch(id: int) -> str:
        return "even" if id % 2 == 0 else "odd"

    def issue(self, writer: int, chance: random.Random) -> Order:
        giver, taker, sum = chance.randrange(self.SIZE), chance.randrange(self.SIZE), chance.randint(1, 50)
        taker += (giver + taker + 1) % 2 * (1 if taker + 1 < self.SIZE else -1)
        with self._lock:
            self._issued.update((giver, taker))
        update = (
            f"UPDATE account SET balance = balance + CASE WHEN id = {giver} THEN -{sum} ELSE {sum} END,"
            f" moves = moves + 1 WHERE id IN ({giver}, {taker})"
        )
        merge = (
            f"MERGE INTO account AS a USING (VALUES ({giver}, -{sum}), ({taker}, {sum})) AS s (id, sum) ON a.id = s.id"
            " WHEN MATCHED THEN UPDATE SET balance = a.balance + s.sum, moves = a.moves + 1"
        )
        return Order(chance.choice((update, merge)), (2, 0, 0), (giver, taker, sum))

    def acknowledge(self, order: Order) -> None:
        giver, taker, sum = order.place
        assert isinstance(giver, int)
        assert isinstance(taker, int)
        assert isinstance(sum, int)
        with self._lock:
            self._done.update((giver, taker))
            self.balances[giver] -= sum
            self.balances[taker] += sum

    def known(self) -> tuple[Counter[int], Counter[int]]:
        with self._lock:
            return self._done.copy(), self._issued.copy()

    def check(self, lines: Lines, before: object, after: object) -> None:
        (done, _), (_, issued) = _pair(before), _pair(after)
        require(sorted(line.a for line in lines) == list(range(self.SIZE)), "accounts twice or lost:", lines)
        require(sum(line.b for line in lines) == self.SIZE * self.START, "money lost or made:", lines)
        require(sum(line.c for line in lines) % 2 == 0, "half a transfer:", lines)
        for line in lines:
            require(line.text == self._branch(line.a), "an account in the wrong partition:", line)
            require(done[line.a] <= line.c <= issued[line.a], line, "between", done[line.a], "and", issued[line.a])

    def check_end(self, lines: Lines) -> None:
        """When all is done: every transfer once."""
        require({line.a: line.b for line in lines} == self.balances, "transfers lost or twice:", lines, self.balances)


def _pair(known: object) -> tuple[Counter[int], Counter[int]]:
    assert isinstance(known, tuple)
    done, issued = known
    return done, issued


# --- numbered rows ---------------------------------------------------------------------------------------------------

_LONG_PASSED = 1000


@dataclass(frozen=True)
class Window:
    """The numbers that statements have written, and deleted, up to; one bound for each statement.

    Attributes:
        appended, trimmed: The bounds that are certainly reached.
        heads, tails: Where statements have ended and are to end, so that no snapshot shows half of one.
    """

    appended: int = 0
    trimmed: int = 0
    heads: frozenset[int] = frozenset({0})
    tails: frozenset[int] = frozenset({0})


class Ledger:
    """Every writer's rows are numbered: a snapshot shows them without a gap, from what was deleted to what was written.

    Rows are written some at a time, and the oldest deleted some at a time.
    """

    name = "ledger"
    select = "SELECT 'ledger' AS book, writer AS a, number AS b, 0 AS c, note AS text FROM ledger"
    ROOM = 40
    """More rows than this, and the oldest are deleted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[int, Window] = {}

    @property
    def ddl(self) -> list[str]:
        # hardly ever major: there are to be minor compactions too
        share = "'compactorthreshold.hive.compactor.delta.pct.threshold' = '20'"
        return [
            "CREATE TRANSACTIONAL TABLE ledger (writer int, number int, note string)"
            f" CLUSTERED BY (number) INTO 2 BUCKETS TBLPROPERTIES ({share})"
        ]

    def issue(self, writer: int, chance: random.Random) -> Order:
        with self._lock:
            window = self._windows.get(writer, Window())
            if window.appended - window.trimmed > self.ROOM:
                to = window.trimmed + chance.randint(1, self.ROOM)
                self._windows[writer] = replace_bounds(window, tails=window.tails | {to})
                rest = f"FROM ledger WHERE writer = {writer} AND number <= {to}"
                counts = (0, to - window.trimmed, 0)
                return Order(f"DELETE {rest}", counts, (writer, "trim", to), f"SELECT count(*) {rest}", 0)
            to = window.appended + chance.randint(1, 5)
            self._windows[writer] = replace_bounds(window, heads=window.heads | {to})
        numbers = range(window.appended + 1, to + 1)
        rows = ", ".join(f"({writer}, {n}, '{note(writer, n)}')" for n in numbers)
        witness = f"SELECT count(*) FROM ledger WHERE writer = {writer} AND number = {to}"
        return Order(f"INSERT INTO ledger VALUES {rows}", (0, 0, len(numbers)), (writer, "append", to), witness)

    def acknowledge(self, order: Order) -> None:
        writer, what, to = order.place
        assert isinstance(writer, int)
        assert isinstance(to, int)
        with self._lock:
            window = self._windows[writer]
            self._windows[writer] = (
                replace_bounds(window, appended=to) if what == "append" else replace_bounds(window, trimmed=to)
            )

    def known(self) -> dict[int, Window]:
        with self._lock:
            return dict(self._windows)

    def check(self, lines: Lines, before: object, after: object) -> None:
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        found: dict[int, list[int]] = {writer: [] for writer in before}
        for line in lines:
            require(line.text == note(line.a, line.b), "a row that nobody has written:", line)
            found.setdefault(line.a, []).append(line.b)
        for writer, numbers in found.items():
            numbers.sort()
            require(writer in after, "rows of", writer, "before it began")
            least, most = before.get(writer, Window()), after[writer]
            if not numbers:
                require(least.appended == 0, "all rows of", writer, "are lost:", least)
                continue
            first, last = numbers[0], numbers[-1]
            require(numbers == list(range(first, last + 1)), "a gap, or a row twice, of", writer, ":", numbers)
            require(last >= least.appended, "rows of", writer, "are lost: ends at", last, least)
            require(last in most.heads, "half a statement of", writer, ": ends at", last, most)
            require(first - 1 >= least.trimmed, "deleted rows of", writer, "are back: begins at", first, least)
            require(first - 1 in most.tails, "half a delete of", writer, ": begins at", first, most)


def replace_bounds(
    window: Window,
    *,
    appended: int | None = None,
    trimmed: int | None = None,
    heads: frozenset[int] | None = None,
    tails: frozenset[int] | None = None,
) -> Window:
    """The window with other bounds; those that were passed long before any snapshot under way are forgotten."""
    done = window.appended if appended is None else appended
    gone = window.trimmed if trimmed is None else trimmed
    return Window(
        done,
        gone,
        frozenset(n for n in (heads or window.heads) if n >= done - _LONG_PASSED),
        frozenset(n for n in (tails or window.tails) if n >= gone - _LONG_PASSED),
    )


def note(writer: int, number: int) -> str:
    """What stands in a row: its own number, in some length."""
    return f"{writer}-{number}-" + "x" * (number % 40)


# --- counters --------------------------------------------------------------------------------------------------------


@dataclass
class Counting:
    """A table in which each writer has one number, that goes up."""

    name: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _issued: dict[int, int] = field(default_factory=dict)
    _done: dict[int, int] = field(default_factory=dict)

    def _next(self, writer: int) -> int:
        with self._lock:
            self._issued[writer] = self._done.get(writer, 0) + 1
            return self._issued[writer]

    def acknowledge(self, order: Order) -> None:
        writer, number = order.place
        assert isinstance(writer, int)
        assert isinstance(number, int)
        with self._lock:
            self._done[writer] = number

    def known(self) -> tuple[dict[int, int], dict[int, int]]:
        with self._lock:
            return dict(self._done), dict(self._issued)

    def _check_numbers(self, found: dict[int, int], before: object, after: object) -> None:
        assert isinstance(before, tuple)
        assert isinstance(after, tuple)
        for writer, number in found.items():
            least, most = before[0].get(writer, 0), after[1].get(writer, 0)
            require(least <= number <= most, self.name, writer, "is", number, "not between", least, "and", most)


class Tokens(Counting):
    """Each writer has a token: a MERGE deletes the row with the old number and inserts one with the next.

    So there is always one of each; a deleted one that came back, or an insert without its delete, would be two.
    """

    select = "SELECT 'token' AS book, writer AS a, number AS b, 0 AS c, '' AS text FROM token"

    def __init__(self, writers: Iterable[int]) -> None:
        super().__init__("token")
        self._writers = sorted(writers)

    @property
    def ddl(self) -> list[str]:
        first = ", ".join(f"({writer}, 0)" for writer in self._writers)
        return ["CREATE TRANSACTIONAL TABLE token (writer int, number int)", f"INSERT INTO token VALUES {first}"]

    def issue(self, writer: int, chance: random.Random) -> Order:
        number = self._next(writer)
        text = (
            f"MERGE INTO token AS t USING (VALUES ({writer}, {number - 1}), ({writer}, {number})) AS s (writer, number)"
            " ON t.writer = s.writer AND t.number = s.number"
            " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.writer, s.number)"
        )
        witness = f"SELECT number FROM token WHERE writer = {writer}"
        return Order(text, (0, 1, 1), (writer, number), witness, number)

    def check(self, lines: Lines, before: object, after: object) -> None:
        require(sorted(line.a for line in lines) == self._writers, "tokens twice or lost:", lines)
        self._check_numbers({line.a: line.b for line in lines}, before, after)


class Board(Counting):
    """A table that is overwritten as a whole: all its rows are of one statement."""

    select = "SELECT 'board' AS book, place AS a, number AS b, 0 AS c, '' AS text FROM board"
    ROWS = 3

    def __init__(self) -> None:
        super().__init__("board")

    @property
    def ddl(self) -> list[str]:
        return [
            "CREATE TRANSACTIONAL TABLE board (place int, number int)",
            "INSERT INTO board VALUES (0, 0), (1, 0), (2, 0)",
        ]

    def issue(self, writer: int, chance: random.Random) -> Order:
        number = self._next(0)
        rows = ", ".join(f"({place}, {number})" for place in range(self.ROWS))
        witness = "SELECT max(number) FROM board"
        return Order(f"INSERT OVERWRITE board VALUES {rows}", (0, 0, self.ROWS), (0, number), witness, number)

    def check(self, lines: Lines, before: object, after: object) -> None:
        require(sorted(line.a for line in lines) == list(range(self.ROWS)), "rows twice or lost:", lines)
        require(len({line.b for line in lines}) == 1, "rows of several statements:", lines)
        self._check_numbers({0: lines[0].b}, before, after)
