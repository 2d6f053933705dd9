"""Fail the Nth step of a statement that changes names, places, columns or whole tables, for N = 1, 2, 3 …

As in :mod:`tests.faults.test_every_step`; but what such a statement tells the metastore is true at once, and not with
its transaction. So after an error all is as it was, or as it was to be: never between, and with nothing left over.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.session import AcidSession
from tests.faults.test_every_step import FS_STEPS, METASTORE_STEPS
from tests.injection import Injector
from tests.spark.answers import nothing_is_open
from tests.spark.tree import tree

pytestmark = pytest.mark.long

STEPS = {
    LocalFileSystem: (*FS_STEPS, "delete", "delete_if_empty"),
    EmbeddedMetastore: (
        *METASTORE_STEPS,
        "alter_table",
        "rename_table",
        "rename_partition",
        "alter_partition",
        "list_partitions",
        "get_table",
    ),
}

STATEMENTS = {
    "rename": "ALTER TABLE t RENAME TO u",
    "rename into another database": "ALTER TABLE p RENAME TO hr.u",
    # a place whose rename was taken back is not used again, and so long a name has many
    "rename of a partition": "ALTER TABLE p PARTITION (p = 1) RENAME TO PARTITION (p = 70007)",
    "change of a column": "ALTER TABLE t CHANGE id id string",
    "new place": "ALTER TABLE t SET LOCATION '{elsewhere}'",
    "new place of a partition": "ALTER TABLE p PARTITION (p = 1) SET LOCATION '{elsewhere}'",
    "truncate": "TRUNCATE TABLE t",
    "truncate of partitions": "TRUNCATE TABLE p PARTITION (p = 1)",
    "load": "LOAD DATA INPATH '{file}' INTO TABLE t",
    "load over a partition": "LOAD DATA INPATH '{file}' OVERWRITE INTO TABLE p PARTITION (p = 1)",
}


class Situation:
    """A warehouse with two tables, and a file to be loaded."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.root = root
        self.spark = spark
        self.acid: AcidSession = acidsql.connect(spark, warehouse=root / "w")
        self.acid.sql("CREATE DATABASE hr")
        self.acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
        self.acid.sql("CREATE TRANSACTIONAL TABLE p (id int, v string) PARTITIONED BY (p int)")
        self.acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        self.acid.sql("INSERT INTO p VALUES (1, 'a', 1), (2, 'b', 2)")
        spark.sql("SELECT 5 AS id, 'e' AS v").coalesce(1).write.orc(f"file:{root}/in")

    def statement(self, name: str) -> str:
        return STATEMENTS[name].format(elsewhere=self.root / "elsewhere", file=next((self.root / "in").glob("*.orc")))

    def seen(self) -> dict[str, Any]:
        """All rows of all tables, by the tables' names."""
        store = self.acid.metastore
        names = [f"{d}.{t}" for d in ("default", "hr") for t in store.list_tables(d)]
        return {n: sorted(tuple(r) for r in self.acid.table(n).collect()) for n in names}

    @property
    def files(self) -> list[str]:
        return [f for f in tree(self.root) if "acidsql.db" not in f]


@pytest.mark.parametrize("after", [False, True], ids=["before the step", "after the step"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_an_error_at_any_step_leaves_all_or_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    numbers = itertools.count()
    done = Situation(spark, tmp_path / "done")
    before = done.seen()
    done.acid.sql(done.statement(name))
    wanted = done.seen()
    assert wanted != before
    now = Situation(spark, tmp_path / str(next(numbers)))
    injector = Injector(monkeypatch, STEPS)
    fired: list[str] = []
    for number in itertools.count(1):
        files, text = now.files, now.statement(name)
        injector.arm(number, after)
        with injector.on():
            now.acid.sql(text)
        if injector.fired is None:
            break
        fired.append(injector.fired)
        if injector.fired == "open_txns" and after:
            now.acid.metastore.abort_txns([t.id for t in now.acid.metastore.show_txns()])
            now.acid.metastore.clean_empty_aborted_txns()
        found = now.seen()
        assert found in (before, wanted), (fired, found)
        assert not [f for f in now.files if "_tmp_" in f], fired
        assert now.acid.sql("SHOW LOCKS").collect() == [], fired
        if found == before:
            assert now.files == files, fired
            nothing_is_open(now.acid)
        else:
            now.acid.close()
            now = Situation(spark, tmp_path / str(next(numbers)))
    assert {"open_txns", "lock", "allocate_table_write_id", "commit_txn"} <= set(fired)
    assert now.seen() == wanted
    now.acid.close()
    done.acid.close()
