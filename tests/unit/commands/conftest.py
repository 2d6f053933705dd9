"""Two sessions at one store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.commands.definitions import Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path)
    yield made
    made.close()


@pytest.fixture
def other(session: Session) -> Iterator[Session]:
    made = Session(session.root)
    yield made
    made.close()
