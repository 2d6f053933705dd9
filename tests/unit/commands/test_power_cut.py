"""What a statement of the driver's makes visible was synced before its commit (rule 9); by Spark in tests/spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.power_cut import Disk, watch_commits
from tests.unit.commands.session import Session


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path / "warehouse")
    made.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    made.sql("CREATE TRANSACTIONAL TABLE p (id int) PARTITIONED BY (k int)")
    yield made
    made.close()


def test_survives_a_power_cut(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch, shop.warehouse)
    lost = watch_commits(monkeypatch, disk)
    for step in (
        lambda: shop.insert("t", 1),
        lambda: shop.insert("p", 1, part=1),
        lambda: shop.insert("p", 2, part=1),
        lambda: shop.sql("TRUNCATE TABLE p"),
        lambda: shop.sql("CREATE DATABASE hr"),
        lambda: shop.sql("CREATE TRANSACTIONAL TABLE hr.n (id int)"),
        lambda: shop.sql("ALTER TABLE t RENAME TO u"),
        lambda: shop.sql(f"ALTER TABLE u SET LOCATION '{shop.warehouse}/far/away'"),
        lambda: shop.insert("u", 1),
    ):
        step()
        assert [one for one in lost if one] == []
        assert disk.lost() == []


def test_one_insert_syncs_each_file_and_directory_once(shop: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files, the directory that they are in, and the one that this is in."""
    disk = Disk(monkeypatch, shop.warehouse)
    shop.insert("t", 1)
    assert disk.syncs == 4
    shop.sql("SET acidsql.sync = false")
    shop.insert("t", 1)
    assert disk.syncs == 4
