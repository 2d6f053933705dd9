"""A file that goes between the listing and the scan is an error, and a reason to start over: never fewer rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from acidsql.catalyst import InternalSessions, file_scan
from acidsql.format.data_files import DirectoryGone
from acidsql.session import AcidSession
from tests.spark.answers import rows


def test_the_missing_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).coalesce(1).write.orc(f"file:{tmp_path}/a b%20")
    [there] = (tmp_path / "a b%20").glob("part-*")
    own = InternalSessions.of(spark).own
    assert file_scan(own, "orc", "id bigint", [f"file:{there}"], {}).count() == 3
    for paths in ([f"file:{there}", f"file:{there}x"], [f"file:{there}x"]):
        with pytest.raises(DirectoryGone, match=f"{there.name}x does not exist"):
            file_scan(own, "orc", "id bigint", paths, {})


def test_a_query_starts_over(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    acid.sql("UPDATE t SET id = id + 10")
    moves = iter([lambda: acid.sql("ALTER TABLE t PARTITION (p=2) RENAME TO PARTITION (p=7)")])

    def later(*arguments: Any, **options: Any) -> DataFrame:
        next(moves, lambda: None)()
        return file_scan(*arguments, **options)

    monkeypatch.setattr("acidsql.plan.files.file_scan", later)
    assert rows(acid, "SELECT id, p FROM t") == [(11, 1), (12, 7), (13, 3)]
    assert next(moves, None) is None
