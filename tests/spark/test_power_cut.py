"""What is acknowledged is durable (rule 9): whatever a commit makes visible was synced before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.fs.local import LocalFileSystem
from acidsql.session import AcidSession
from tests.power_cut import Disk, watch_commits

BY_DRIVER = (
    "INSERT INTO t VALUES (9, 'new')",
    "INSERT INTO o VALUES (9, 'new')",
    "INSERT INTO o VALUES (10, 'newer')",
    "INSERT INTO p VALUES (9, 'new', 1, 'x'), (9, 'new', 7, 'y')",
    "UPDATE t SET v = 'changed' WHERE id = 1",
    "UPDATE p SET v = 'changed'",
    "DELETE FROM p WHERE id = 2",
    "MERGE INTO p USING (SELECT explode(array(1, 8)) AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'"
    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'n', 5, 'z')",
    "ALTER TABLE t COMPACT 'minor' AND WAIT",
    "ALTER TABLE p PARTITION (p = 1, q = 'x') COMPACT 'major' AND WAIT",
    "ALTER TABLE o COMPACT 'major' AND WAIT",
    "INSERT OVERWRITE TABLE t SELECT id, v FROM p",
    "INSERT OVERWRITE TABLE p PARTITION (p = 1, q = 'x') SELECT 5, 'five'",
    "FROM t INSERT INTO t SELECT id, 'again' INSERT INTO o SELECT id, v",
    "LOAD DATA LOCAL INPATH '{file}' INTO TABLE t",
    "LOAD DATA LOCAL INPATH '{file}' INTO TABLE p PARTITION (p = 3, q = 'n')",
    "LOAD DATA LOCAL INPATH '{wide}' INTO TABLE p",
    "CREATE TRANSACTIONAL TABLE n (id int)",
    "INSERT INTO n VALUES (1)",
    "ALTER TABLE n COMPACT 'rebalance' AND WAIT",
    "CREATE TRANSACTIONAL TABLE c AS SELECT * FROM p",
    "CREATE DATABASE d",
    "CREATE TRANSACTIONAL TABLE d.n AS SELECT 1 AS id",
    "ALTER TABLE p ADD PARTITION (p = 8, q = 'added')",
    "ALTER TABLE p ADD PARTITION (p = 8, q = 'elsewhere') LOCATION '{home}/a/b'",
    "INSERT INTO p VALUES (1, 'there', 8, 'elsewhere')",
    "ALTER TABLE n0 SET LOCATION '{home}/e/f'",
    "INSERT INTO n0 VALUES (1)",
    "OPTIMIZE p",
    "ALTER TABLE t RENAME TO renamed",
    "ALTER TABLE p PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 10, q = 'r')",
    "TRUNCATE TABLE renamed",
)
BY_JOB = (
    "INSERT INTO t VALUES (9, 'new')",
    "INSERT INTO p VALUES (9, 'new', 1, 'x'), (9, 'new', 7, 'y')",
    "INSERT INTO o VALUES (9, 'new')",
    "UPDATE p SET v = 'changed'",
    "DELETE FROM p WHERE id = 2",
    "MERGE INTO p USING (SELECT explode(array(1, 8)) AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm'"
    " WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'n', 5, 'z')",
    "INSERT OVERWRITE TABLE t SELECT id, v FROM p",
    "CREATE TRANSACTIONAL TABLE n AS SELECT * FROM p",
    "LOAD DATA LOCAL INPATH '{wide}' INTO TABLE p",
)


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder, made = tmp_path_factory.mktemp("files"), {}
    for name, query in (
        ("file", "SELECT 7 AS id, 'seven' AS v"),
        ("wide", "SELECT 7 AS id, 's' AS v, 1 AS p, 'q' AS q"),
    ):
        spark.sql(query).coalesce(1).write.orc(f"file:{folder}/{name}")
        [path] = (folder / name).glob("part-*.orc")
        made[name] = str(path.rename(folder / f"{name}.orc"))
    return made


@pytest.fixture
def shop(spark: SparkSession, warehouse: Path) -> Iterator[AcidSession]:
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int, v string)")
        acid.sql("CREATE TRANSACTIONAL TABLE n0 (id int)")
        acid.sql("CREATE TRANSACTIONAL TABLE p (id int, v string) PARTITIONED BY (p int, q string)")
        only = "'transactional'='true', 'transactional_properties'='insert_only'"
        acid.sql(f"CREATE TABLE o (id int, v string) TBLPROPERTIES ({only})")
        acid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        acid.sql("INSERT INTO t VALUES (3, 'c')")
        acid.sql("INSERT INTO p VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'x'), (2, 'c', 2, 'y')")
        acid.sql("UPDATE p SET v = 'A' WHERE id = 1")
        yield acid


@pytest.mark.parametrize(("statements", "driver_rows"), [(BY_DRIVER, 20000), (BY_JOB, 0)], ids=["driver", "job"])
def test_what_a_commit_makes_visible_survives_a_power_cut(
    shop: AcidSession,
    warehouse: Path,
    files: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    statements: Sequence[str],
    driver_rows: int,
) -> None:
    shop.sql(f"SET acidsql.write.driver.rows={driver_rows}")
    disk = Disk(monkeypatch, warehouse)
    lost = watch_commits(monkeypatch, disk)
    for text in statements:
        shop.sql(text.format(**files, home=warehouse))
        assert (text, [one for one in lost if one], disk.lost()) == (text, [], [])
    assert len(lost) >= len(statements) - 1


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO p PARTITION (p = 5, q = 'new') SELECT 1, 'no row' WHERE false",
        "ALTER TABLE p ADD PARTITION (p = 5, q = 'new')",
        "MSCK REPAIR TABLE p",
    ],
)
def test_a_directory_that_another_is_making_is_synced_by_whoever_registers_it(
    shop: AcidSession, spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A partition whose directory is away is an error for every query of the table."""
    disk = Disk(monkeypatch, warehouse)
    lost = list[list[str]]()
    real = LocalFileSystem.rename

    def rename(self: LocalFileSystem, source: str, target: str) -> None:
        if "p=5" in target and not lost:
            lost.append(["at work"])
            with acidsql.connect(spark, warehouse=warehouse) as other:
                other.sql(text)
                lost.append([one for one in disk.lost() if "delta" not in one])
        real(self, source, target)

    monkeypatch.setattr(LocalFileSystem, "rename", rename)
    shop.sql("INSERT INTO p VALUES (9, 'new', 5, 'new')")
    assert (lost, disk.lost()) == ([["at work"], []], [])


def test_a_new_warehouse_is_durable_too(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = tmp_path / "new"
    disk = Disk(monkeypatch, warehouse)
    with acidsql.connect(spark, warehouse=warehouse) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t AS SELECT 1 AS id")
    assert disk.lost() == []


def test_with_sync_off_only_compactions_sync(
    shop: AcidSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.sql("SET acidsql.sync=false")
    disk = Disk(monkeypatch, warehouse)
    shop.sql("INSERT INTO t VALUES (9, 'new')")
    assert disk.syncs == 0
    assert disk.lost() == ["t/delta_0000003_0000003_0000"]
    lost = watch_commits(monkeypatch, disk)
    shop.sql("ALTER TABLE t COMPACT 'major' AND WAIT")
    assert disk.syncs > 0
    assert all("t/base_0000003" not in path for paths in lost for path in paths)
