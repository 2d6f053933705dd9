"""After the load: the dead are timed out, everything is compacted and cleaned, and what is left is looked at."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from acidsql.metastore.model import CompactionFilter
from acidsql.metastore.model import CompactionState as State
from acidsql.session import AcidSession
from tests.soak.books import Accounts, Book, Line, require
from tests.soak.judge import Judge

ENDING = {
    "hive.txn.timeout": "2s",  # whoever is still there is this session
    "hive.compactor.initiator.on": "false",
    "acidsql.staging.retention": "0s",
    "acidsql.staging.sweep.interval": "0s",
}
"""Settings of the session that comes after all others."""
UNDER_WAY = {State.INITIATED, State.WORKING, State.READY_FOR_CLEANING}


def settle(acid: AcidSession, books: Sequence[Book], places: Sequence[Path]) -> None:
    """Bring everything to its end, and look at it.

    Args:
        acid: A session with :data:`ENDING`, when all others are closed.
        books: The tables.
        places: The directories of tables and partitions.

    Raises:
        Broken: When a row is lost, or anything is left over.
    """
    until_quiet(acid, aborted=True)  # below a minor compaction they are remembered until a base has taken its rows
    check_rows(acid, books)
    for book in books:
        acid.sql(f"ALTER TABLE {book.name} COMPACT 'major'")
    until_quiet(acid)
    check_rows(acid, books)
    until_quiet(acid)  # but for those who have just read
    require(acid.sql("SHOW LOCKS").collect() == [], "locks are left")
    require(acid.metastore.aborted_components() == [], "aborted write ids are left")
    for place in places:
        names = sorted(path.name for path in place.iterdir())
        require(len(names) == 1 and names[0].startswith("base_"), place, "is left with", names)


def until_quiet(acid: AcidSession, *, aborted: bool = False) -> None:
    """Rounds of the compactor until no transaction is left, and nothing to compact or to clean.

    With ``aborted`` such transactions may be left.
    """
    while True:
        gc.collect()  # readers end with their DataFrames
        acid.compactor.run_once()
        states = {entry.state for entry in acid.metastore.show_compactions(CompactionFilter())}
        txns = {row.state for row in acid.sql("SHOW TRANSACTIONS").collect()}
        if not states & UNDER_WAY and not txns - ({"ABORTED"} if aborted else set()):
            return
        time.sleep(0.2)


def check_rows(acid: AcidSession, books: Sequence[Book]) -> None:
    """Every statement is there that was acknowledged, once; no two rows have one row id."""
    for book in books:
        known = book.known()
        lines = [Line(r.a, r.b, r.c, r.text) for r in acid.sql(book.select).collect()]
        book.check(lines, known, known)
        if isinstance(book, Accounts):
            book.check_end(lines)
        place = "branch" if isinstance(book, Accounts) else "0"
        ids = Counter((*r[0], r[1]) for r in acid.sql(f"SELECT ROW__ID, {place} FROM {book.name}").collect())
        require(max(ids.values()) == 1, "row ids twice in", book.name, ids)


def count_compactions(acid: AcidSession, judge: Judge) -> None:
    """By type and state, from the history."""
    tally = Counter((e.type.name, e.state) for e in acid.metastore.show_compactions(CompactionFilter()))
    judge.replace("compactions: ", {f"{type} {state}": number for (type, state), number in tally.items()})
