"""The stores that the suite runs over, and what each of them can do.

One suite, every store: a new store is one more row of :data:`STORES`. A store is left out where it is not there (see
:attr:`StoreKind.missing`); what one that is there cannot do, or does otherwise, is a capability that it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings
from tests.metastore import hive_store, postgres_store
from tests.metastore.situations import Clock

CAPABILITIES = {
    "carries statistics on": "a write changes the number of rows that was counted",
    "commits of readers twice": "to commit a transaction twice is no error, although it wrote nothing",
    "cleans compactions": "what the initiator and the cleaner of compactions need is offered to clients",
    "compaction queue": "requests for compactions are taken, and wait for a worker",
    "compares rows": "transactions that delete different rows of a table are not in conflict",
    "counts on": "a table made anew under a name, or at a place, has write ids above those that were there before",
    "counts from one": "a new store's transaction ids count from one",
    "database file": "the store is a SQLite file of ours",
    "embedded": "the store is a SQL database of ours, whose tables can be looked into",
    "describes compactions": "a request is shown with when and by whom it was made, and for which pool",
    "describes transactions": "a transaction is shown with its type and with the agent that opened it",
    "drops write sets": "what was changed in a dropped table is in conflict with nothing in the next one of its name",
    "exclusive writes": "EXCL_WRITE is a kind of lock besides SHARED_WRITE",
    "exact statistics": "a number of rows that was counted is known to be exact",
    "follows renamed parents": "a foreign key keeps its columns when one of its parent's is renamed",
    "forgets components": "the components of an aborted transaction can be dropped by the client",
    "Hive's own tables": "what only Hive makes can be put into it by the metastore's own API",
    "hides new tables": "a table can be registered so that others see it from the commit on",
    "keeps blockers up to date": "each waiting lock in SHOW LOCKS names one that is in its way now",
    "keeps constraints": "a table keeps NOT NULL and DEFAULT where they are when it gets another column",
    "keeps house when asked": "ended transactions that left nothing are forgotten when the client says so",
    "keeps reasons": "an aborted transaction tells why it was aborted",
    "keeps tables to the letter": "a table has no properties and no creation time but those that it was made with",
    "own clock": "time comes from the test's clock",
    "own settings": "each session has its own hive.txn.timeout and hive.max.open.txns",
    "processes": "test programs of other processes can open it from its URL",
    "read-only transactions": "a transaction that was opened for reading gets no write id",
    "reallocate": "a transaction can give back its write id for a new one",
    "refuses locks after the end": "a committed transaction gets no more locks",
    "remembers write ids without locks": "an aborted write id without a lock is still hidden when house was kept",
    "seeds are for all": "write ids of a seed are seen by transactions from before, too",
    "seeds transaction ids": "transaction ids can start above those of files made elsewhere",
    "seeds write ids": "write ids can start above those of files made elsewhere",
    "statistics of columns": "what ANALYZE found of a column is kept where DESCRIBE looks for it",
    "shared writes go together": "two transactions may have SHARED_WRITE locks on the same object",
    "table meets partition": "a change of a whole table is in conflict with one of its partitions",
    "takes compactions back": "a request that no worker has taken yet can be aborted",
    "tells conflicts": "the latest transaction in conflict can be asked for, and xlock.write needs no check at commit",
    "tells who writes": "it is known whose an open write id is",
    "tells what it aborted": "of several transactions to abort, those that were open are told from the others",
    "hands compactions to workers": "a worker that is not the store's own can take requests",
    "unlocks once": "to unlock what is not locked is an error",
    "zero-wait reads": "a read that would have to wait can be answered at once",
}
"""What a store can do, in a sentence each; a test names what it needs with ``@pytest.mark.needs("…")``."""


@dataclass(frozen=True)
class Opening:
    """With what a session is opened."""

    directory: Path
    settings: Settings
    clock: Clock | None
    url: str
    warehouse: str
    """Directory of the database ``default``."""

    @property
    def file(self) -> Path:
        """Where an embedded store is."""
        return self.directory / "metastore.db"


@dataclass(frozen=True)
class StoreKind:
    """A store under test.

    Attributes:
        open: Opens a session.
        url: Its URL, by the directory of the test.
        warehouse: The directory of its database ``default``, by the directory of the test.
        capabilities: What it can do.
        missing: Why it cannot run here, None where it can.
        empty: Makes it a new store again, where all tests share one.
    """

    open: Callable[[Opening], Metastore]
    url: Callable[[Path], str]
    warehouse: Callable[[Path], str]
    capabilities: frozenset[str]
    missing: Callable[[], str | None] = lambda: None
    empty: Callable[[], None] = lambda: None

    def opening(self, directory: Path, settings: Settings, clock: Clock | None) -> Opening:
        return Opening(directory, settings, clock, self.url(directory), self.warehouse(directory))


def _open_embedded(opening: Opening) -> Metastore:
    clock: dict[str, Any] = {} if opening.clock is None else {"now_ms": opening.clock}
    return EmbeddedMetastore(opening.url, opening.settings, opening.warehouse, **clock)


def _hive(variable: str, capabilities: frozenset[str]) -> StoreKind:
    server = hive_store.Server(variable)
    return StoreKind(
        open=lambda opening: server.open(opening.settings),
        url=lambda _: server.uri,
        warehouse=lambda _: server.warehouse,
        capabilities=capabilities,
        missing=server.missing,
        empty=server.empty,
    )


NOT_EMBEDDED = {"Hive's own tables"}
"""What the store of our own lacks."""

HIVE_3 = frozenset(
    {"Hive's own tables", "compaction queue", "processes", "refuses locks after the end", "seeds write ids"}
)
"""Where Hive 3.1.3 does as the suite has it; the missing ones are what it was seen to do otherwise."""

HIVE_4 = HIVE_3 - {"refuses locks after the end"} | {
    "carries statistics on",
    "describes compactions",
    "exact statistics",
    "takes compactions back",
    "commits of readers twice",
    "exclusive writes",
    "keeps constraints",
    "read-only transactions",
    "seeds are for all",
    "shared writes go together",
    "tells conflicts",
    "zero-wait reads",
    "hands compactions to workers",
}
"""The same of Hive 4.0.1."""

STORES: Mapping[str, StoreKind] = {
    "sqlite": StoreKind(
        _open_embedded,
        url=lambda directory: f"sqlite:///{directory}/metastore.db",
        warehouse=lambda directory: f"file:{directory}/warehouse",
        capabilities=frozenset(CAPABILITIES) - NOT_EMBEDDED,
    ),
    "postgres": StoreKind(
        _open_embedded,
        url=lambda _: postgres_store.new_database(),
        warehouse=lambda directory: f"file:{directory}/warehouse",
        capabilities=frozenset(CAPABILITIES) - NOT_EMBEDDED - {"database file"},
        missing=postgres_store.missing,
    ),
    "hive": _hive("ACIDSQL_TEST_METASTORE", HIVE_4),
    "hive31": _hive("ACIDSQL_TEST_METASTORE31", HIVE_3),
}
