"""The warehouse that two statements meet in: copied from a template for each run, always to the same place.

The store knows places by their full paths, so a copy has to be where the template was made.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

import acidsql
from acidsql.metastore.model import CompactionState, TxnState
from acidsql.session import AcidSession
from tests.phases.encounter import Walk
from tests.phases.statements import KINDS, ONLY_WORKER, PARTITIONED, attempt, ordered
from tests.phases.verdict import Rows, State, TableState

CREATE = {
    "partitioned": "CREATE TRANSACTIONAL TABLE t (id int, v string) PARTITIONED BY (p int)",
    "plain": "CREATE TRANSACTIONAL TABLE t (id int, v string, p int)",
}
_COMPACTED = ("INSERT INTO t VALUES (1, 'a', 1), (3, 'c', 2)", "INSERT INTO t VALUES (2, 'b', 1)")
"""A worker compacts what these have written; a cleaner finds something to do."""
_SINCE = ("INSERT INTO t VALUES (8, 'h', 1), (9, 'i', 2)", "UPDATE t SET v = 'j' WHERE id = 8")
"""The next compaction has something to do, too."""


class Warehouses:
    """A folder with a warehouse ``w``, files to be loaded in ``in``, and whatever statements make beside them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.root = folder / "case"
        self._templates: dict[str, Path] = {}

    def fresh(self, kind: str) -> Path:
        """A new copy of a template; the folder."""
        if kind not in self._templates:
            self._make(kind)
        self._empty()
        shutil.copytree(self._templates[kind], self.root)
        return self.root

    def connect(self, settings: Mapping[str, str]) -> AcidSession:
        """A session on the copy."""
        return acidsql.connect(self._spark, warehouse=self.root / "w", settings=settings)

    def _empty(self) -> None:
        if self.root.exists():
            shutil.rmtree(self.root)

    def _make(self, kind: str) -> None:
        assert kind in KINDS
        self._empty()
        with self.connect(ONLY_WORKER) as acid:
            self._write_files(acid)
            for text in (CREATE[kind], *_COMPACTED):
                acid.sql(text)
            acid.sql(f"ALTER TABLE t{' PARTITION (p = 1)' if kind == PARTITIONED else ''} COMPACT 'major'")
            [outcome] = acid.compactor.run_once().outcomes
            assert outcome.state is CompactionState.READY_FOR_CLEANING, outcome
            for text in _SINCE:
                acid.sql(text)
        template = self._folder / kind
        shutil.copytree(self.root, template)
        self._templates[kind] = template

    def _write_files(self, acid: AcidSession) -> None:
        """A file of rows without the partition key, and one with it."""
        for name, columns in (("two", "id, v"), ("three", "id, v, p")):
            rows = acid.spark.sql(f"SELECT {columns} FROM VALUES (20, 'l', 1) AS x (id, v, p)")
            rows.coalesce(1).write.orc(f"file:{self.root}/in/{name}")


def look(acid: AcidSession, root: Path) -> State:
    """All tables as this session finds them."""
    names = sorted(acid.metastore.list_tables("default"))
    return tuple((name, _table(acid, root, name)) for name in names)


def _table(acid: AcidSession, root: Path, name: str) -> TableState:
    def read(session: AcidSession, _: Path, pause: object) -> Rows:
        return ordered(tuple(tuple(row) for row in session.table(name).collect()))

    def short(location: str) -> str:
        return os.path.relpath(location.removeprefix("file:"), root)

    table = acid.metastore.get_table("default", name)
    partitions = acid.metastore.list_partitions("default", name) if table.partition_keys else []
    return TableState(
        tuple(c.name for c in table.all_columns),
        short(table.location),
        tuple(sorted(short(p.location) for p in partitions)),
        attempt(read, acid, root, Walk().pause),
    )


def left_behind(acid: AcidSession, root: Path) -> list[str]:
    """What statements that have ended should not have left: open transactions, locks, directories of their own."""
    store = acid.metastore
    found = [f"open transaction {t.id}" for t in store.show_txns() if t.state is TxnState.OPEN]
    found += [f"lock {lock.lock_id} of transaction {lock.txn_id}" for lock in store.show_locks()]
    return found + [f"directory {os.path.relpath(d, root)}" for d in _hidden(root)]


def _hidden(root: Path) -> Iterable[str]:
    for folder, directories, _ in os.walk(root):
        yield from (os.path.join(folder, d) for d in directories if d.startswith(("_", ".")))
