"""The store of a warehouse is in its directory, whatever characters the path has."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.session import STORE_NAME, open_store
from acidsql.settings import Settings


@pytest.mark.parametrize("name", ["w%20y", "w?mode=memory", "w#1", "w y", "wé&=", "%2e%2e"])
def test_a_path_is_taken_literally(tmp_path: Path, name: str) -> None:
    (tmp_path / "w y").mkdir()
    store, root = open_store(tmp_path / name, None, Settings())
    store.close()
    assert root == str(tmp_path / name)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.db")] == [f"{name}/{STORE_NAME}"]
