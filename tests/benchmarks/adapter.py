"""acidsql as an engine of the peers benchmark: what its ``bench.py`` is given with ``--adapter``.

``bench.py`` makes its own package ``engines`` importable before it runs this file. ``README.md`` beside this file has
the commands. The harness skips the steps that need a capability which :attr:`Acidsql.caps` does not claim.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from engines import all_engines  # type: ignore[import-not-found]
from engines.base import COLS, Engine, ddl  # type: ignore[import-not-found]

import acidsql


class Acidsql(Engine):  # type: ignore[misc]
    """Hive full-ACID tables in the default database of an embedded warehouse.

    ``rows`` is the harness's own: the answer of every statement is collected, the row of counts of a DML statement too,
    as it is for the other engines.
    """

    name = "acidsql"
    caps = frozenset({"insert", "update", "delete", "merge", "compact", "concurrent"})
    settings: Mapping[str, str] = {}
    """Settings of the session under test. None: what is measured is what a user gets who sets nothing."""

    def __init__(self, work: str) -> None:
        super().__init__(os.path.abspath(work))
        self.warehouse = os.path.join(self.work, "wh")

    def start(self, spark: Any) -> None:
        """Open the acidsql session on the harness's Spark session, whose temporary views the statements read."""
        super().start(spark)
        self.acid = acidsql.connect(spark, warehouse=self.warehouse, settings=self.settings)

    def create(self, short: str, cols: Sequence[tuple[str, str]] = COLS) -> None:
        """An empty full-ACID table without partitions or declared buckets."""
        self.sql(f"CREATE TABLE {short} ({ddl(cols)}) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")

    def sql(self, text: str) -> Any:
        """Run one statement: DML is done when this returns, a SELECT is a lazy DataFrame."""
        return self.acid.sql(text)

    def compact(self, short: str) -> None:
        """A major compaction, carried out in this process as a user's own request is."""
        self.sql(f"ALTER TABLE {short} COMPACT 'major' AND WAIT").collect()

    def clean(self, short: str) -> None:
        """Remove the files that nobody needs any more."""
        gc.collect()  # DataFrames that are garbage no longer hold on to theirs
        self.sql(f"VACUUM {short}").collect()

    def location(self, short: str) -> str:
        """The directory of a table: in the default database it lies in the warehouse itself."""
        return os.path.join(self.warehouse, short)

    def versions(self) -> dict[str, str]:
        """Versions that go into the results."""
        try:
            own = version("acidsql")
        except PackageNotFoundError:
            own = "source tree"
        return {"spark": self.spark.version, "acidsql": own}


class AcidsqlByRow(Acidsql):
    """The same where only those are in conflict who change the same rows."""

    name = "acidsql-by-row"
    settings: Mapping[str, str] = {"acidsql.write.conflicts": "row"}


def _same_steps(name: str, make: Callable[[str], Any]) -> Callable[[str], Any]:
    """A peer cut down to what acidsql can, so that all tables are in the same state at every step."""

    def factory(work: str) -> Any:
        engine = make(work)
        engine.caps, engine.name = Acidsql.caps & set(engine.caps), name
        return engine

    return factory


ENGINES: dict[str, Callable[[str], Any]] = {"acidsql": Acidsql, "acidsql-by-row": AcidsqlByRow}
ENGINES |= {f"{name}-same": _same_steps(f"{name}-same", all_engines()[name]) for name in ("delta-dv", "iceberg-mor-v3")}
