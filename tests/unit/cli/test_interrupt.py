"""Ctrl-C while a statement runs: what it cancels and where it raises."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import Any

import pytest

from acidsql.cli.interrupt import Terminated, interruptible


class Spark:
    """Stands in for a Spark session and its context; jobs start some time after it was made."""

    def __init__(self, jobs: list[int], after: float = 0.0) -> None:
        self.jobs = jobs
        self.starts_at = time.monotonic() + after
        self.cancelled_in: list[str] = []
        self.sparkContext = self

    def statusTracker(self) -> Spark:
        return self

    def getActiveJobsIds(self) -> list[int]:
        return self.jobs if time.monotonic() >= self.starts_at else []

    def cancelAllJobs(self) -> None:
        self.jobs = []
        self.cancelled_in.append(threading.current_thread().name)


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)  # the handler runs before the next line


def in_call_to_jvm() -> str:
    """Press Ctrl-C below a frame that is py4j's, as far as its module's name tells."""
    names: dict[str, Any] = {"__name__": "py4j.java_gateway", "press": press_ctrl_c}
    exec("def call():\n    press()\n    return 'answer of the JVM'", names)
    return str(names["call"]())


def test_in_python_it_raises_and_the_old_handler_is_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible(Spark([])):  # type: ignore[arg-type]
        press_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is before


def test_in_a_call_to_the_jvm_its_jobs_are_cancelled_by_another_thread_and_the_call_ends_by_itself() -> None:
    spark = Spark([7])
    with interruptible(spark):  # type: ignore[arg-type]
        assert in_call_to_jvm() == "answer of the JVM"
    [thread] = spark.cancelled_in
    assert thread != threading.main_thread().name


def test_a_call_that_is_still_planning_is_waited_for_until_it_has_jobs() -> None:
    spark = Spark([7], after=0.3)
    with interruptible(spark):  # type: ignore[arg-type]
        assert in_call_to_jvm() == "answer of the JVM"
    assert len(spark.cancelled_in) == 1


def test_a_call_without_jobs_is_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible(Spark([]), patience=0.05):  # type: ignore[arg-type]
        in_call_to_jvm()


def test_what_py4j_tells_of_an_interrupted_call_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Which closes its connection, and may fail in doing so; other failures are shown."""

    def close(name: str | None, during: BaseException) -> None:
        try:
            try:
                raise during
            finally:
                raise BrokenPipeError("Broken pipe")
        except OSError:
            logging.getLogger(name).exception("while shutting down connection")

    with interruptible(Spark([])):  # type: ignore[arg-type]
        for name in (None, "py4j.clientserver"):
            close(name, KeyboardInterrupt())
        assert caplog.messages == []
        close("py4j.clientserver", ValueError())
    close("py4j.clientserver", KeyboardInterrupt())
    assert len(caplog.messages) == 2


def test_outside_the_main_thread_nothing_is_set() -> None:
    seen = []

    def run() -> None:
        with interruptible(Spark([])):  # type: ignore[arg-type]
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_process_ends_the_statement_first(number: signal.Signals) -> None:
    """Also where the call has ended by itself; the next one finds no handler any more."""
    spark, then = Spark([7]), list[Any]()

    def statement() -> None:
        try:
            signal.raise_signal(number)
        finally:
            then.append(signal.getsignal(number))

    with pytest.raises(Terminated, match=number.name) as ended, interruptible(spark):  # type: ignore[arg-type]
        statement()
    assert then == [signal.SIG_DFL]
    assert ended.value.code == 128 + number
    assert spark.jobs == []
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so() -> None:
    """``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible(Spark([])):  # type: ignore[arg-type]
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
