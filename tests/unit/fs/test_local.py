"""The local file system keeps the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidsql.fs import LocalFileSystem
from tests.filesystem_rules import FileSystemRules, Place


class TestLocal(FileSystemRules):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return Place(LocalFileSystem(), str(tmp_path))
