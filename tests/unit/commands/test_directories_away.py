"""A directory that is away for now, as of a disk that is not mounted: nothing is done that is wrong when it is back."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acidsql.format.data_files import DirectoryGone
from tests.unit.commands.definitions import Session


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "w").mkdir()
    made = Session(tmp_path)
    made.table("p", "k int")
    for number in (1, 2):
        made.insert(number, name="p", part=f"k={number}")
    yield made
    made.close()


STATEMENTS: dict[str, Callable[[Session], object]] = {
    "INSERT": lambda s: s.insert(9, name="p", part="k=9"),
    "TRUNCATE": lambda s: s.sql("TRUNCATE TABLE p"),
    "DROP PARTITION": lambda s: s.sql("ALTER TABLE p DROP PARTITION (k = 1)"),
    "RENAME PARTITION": lambda s: s.sql("ALTER TABLE p PARTITION (k = 1) RENAME TO PARTITION (k = 3)"),
    "RENAME": lambda s: s.sql("ALTER TABLE p RENAME TO q"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_changes_a_table_is_refused(shop: Session, tmp_path: Path, name: str) -> None:
    home, away = tmp_path / "w" / "p", tmp_path / "unmounted"
    before = shop.rows("default.p")
    home.rename(away)
    with pytest.raises(DirectoryGone, match="does not exist") as refused:
        STATEMENTS[name](shop)
    assert "mounted" in (refused.value.hint or "")
    assert not home.exists()
    away.rename(home)
    assert shop.rows("default.p") == before == {"k=1": [1], "k=2": [2]}
    assert not shop.store.show_txns()
    STATEMENTS[name](shop)


def test_what_is_dropped_may_be_away(shop: Session, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "w" / "p")
    shop.sql("DROP TABLE p")
    assert shop.store.list_tables("default") == []
