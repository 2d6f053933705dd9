"""Jobs of an interrupted statement, where the connection to the JVM fails, with stand-ins for Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from acidsql.catalyst import jobs


class _Context:
    """Jobs as they are told of one after another, and what the calls that ask for their end raise before."""

    def __init__(self, failures: list[Exception], seen: list[list[int]]) -> None:
        self.failures, self.seen, self.cancelled = failures, seen, 0
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=self._tracker))

    def cancelJobsWithTag(self, tag: str) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.cancelled += 1

    def _tracker(self) -> Any:
        return SimpleNamespace(getJobIdsForTag=lambda tag: self.seen.pop(0) if self.seen else [])

    def statusTracker(self) -> Any:
        return SimpleNamespace(getJobInfo=lambda job: SimpleNamespace(status="RUNNING", stageIds=[]))


_THREAD = SimpleNamespace(getStackTrace=list)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MOMENT", "_LATER"):
        monkeypatch.setattr(jobs, name, 0.01)
    monkeypatch.setattr(jobs, "_END", 1.0)


@pytest.mark.parametrize("error", [Py4JNetworkError("Answer from Java side is empty"), Py4JError("An error occurred")])
def test_a_connection_that_py4j_closed_is_no_reason_to_leave_jobs(error: Exception) -> None:
    """py4j answers an interrupt by closing the connections of all threads, also that of the one that cancels."""
    context = _Context([error, error], seen=[[7], [7]])
    jobs._start_to_cancel(context, "tag", _THREAD).wait(5)  # type: ignore[arg-type]
    assert (context.failures, context.seen) == ([], [])
    assert context.cancelled >= 2 + jobs._QUIET


def test_a_jvm_that_is_gone_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    context = _Context([ConnectionRefusedError("nobody listens"), ConnectionRefusedError("nobody listens")], seen=[])
    assert jobs._start_to_cancel(context, "tag", _THREAD).wait(0.9)  # type: ignore[arg-type]
    assert (len(context.failures), context.cancelled) == (1, 0)
    assert "nobody listens" in caplog.text
