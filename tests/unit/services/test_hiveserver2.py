"""The client of HiveServer2, with a server that is played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.services.hiveserver2 import Hive, HiveError

pyhive = pytest.importorskip("pyhive.hive")


class Cursor:
    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self.description: Any = None
        self.closed = False

    def execute(self, sql: str) -> None:
        self._answer = self._answers[sql]
        if isinstance(self._answer, Exception):
            raise self._answer
        self.description = None if self._answer is None else [("id", "INT_TYPE")]

    def fetchall(self) -> Any:
        return self._answer

    def close(self) -> None:
        self.closed = True


class Connection:
    """What pyhive gives."""

    answers: dict[str, Any]
    given: dict[str, Any]
    cursors: list[Cursor]

    def __init__(self, **given: Any) -> None:
        type(self).given = given
        type(self).cursors = []

    def cursor(self) -> Cursor:
        self.cursors.append(Cursor(self.answers))
        return self.cursors[-1]

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyhive, "Connection", Connection)


def test_a_query_gives_rows_and_another_statement_none() -> None:
    Connection.answers = {"SELECT 1": [(1,)], "SELECT nothing": [], "CREATE": None}

    with Hive(10000) as hive:
        assert hive.run("SELECT 1") == [(1,)]
        assert hive.run("SELECT nothing") == []
        assert hive.run("CREATE") is None
        assert hive.statements == 3
    assert all(cursor.closed for cursor in Connection.cursors)


def test_a_refusal_says_why_and_counts() -> None:
    status = SimpleNamespace(errorMessage="Table not found", errorCode=10001, sqlState="42S02")
    Connection.answers = {"SELECT": pyhive.OperationalError(SimpleNamespace(status=status))}
    hive = Hive(10000)

    with pytest.raises(HiveError) as refused:
        hive.run("SELECT")

    assert (refused.value.message, refused.value.code, refused.value.sqlstate) == ("Table not found", 10001, "42S02")
    assert "SQLSTATE 42S02" in str(refused.value)
    assert hive.statements == 1
    assert Connection.cursors[0].closed


def test_a_session_has_settings_and_a_database_and_no_log_in() -> None:
    Hive(10000, database="hr", settings={"hive.lock.numretries": "1"})

    assert Connection.given["auth"] == "NONE"
    assert (Connection.given["host"], Connection.given["port"]) == ("127.0.0.1", 10000)
    assert Connection.given["database"] == "hr"
    assert Connection.given["configuration"] == {"hive.lock.numretries": "1"}
