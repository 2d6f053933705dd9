"""``acidsql compactor`` in processes of its own: it works, stops when it is told to, and others go on where it died."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acidsql.session import AcidSession
from tests.spark.answers import rows
from tests.spark.processes import environment, run
from tests.spark.tree import shown

pytestmark = pytest.mark.file_store

BUSY = (
    "hive.compactor.check.interval=200ms",
    "hive.compactor.cleaner.run.interval=200ms",
    "hive.compactor.worker.sleep.time=100ms",
    "hive.timedout.txn.reaper.start=0s",
    "hive.timedout.txn.reaper.interval=200ms",
    "hive.compactor.delta.num.threshold=2",
)
"""Settings of a compactor that finds something to do at once."""


class Daemons:
    """Starts compactors on one warehouse; none of them outlives the test."""

    def __init__(self, warehouse: Path, place: Path) -> None:
        self.warehouse = warehouse
        self.place = place
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *conf: str, stalled: bool = False, host: str = "") -> subprocess.Popen[str]:
        """A compactor of its own; a stalled one stops in the middle of each compaction until ``go``."""
        program = ["tests.spark.stalled", str(self.place), host] if stalled else ["acidsql"]
        settings = [word for setting in (*BUSY, *conf) for word in ("--conf", setting)]
        command = [sys.executable, "-m", *program, "compactor", "--warehouse", str(self.warehouse), *settings]
        made = subprocess.Popen(
            command, cwd=self.place, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.started.append(made)
        return made

    def go_on(self) -> None:
        (self.place / "go").touch()

    def until_begun(self) -> None:
        until((self.place / "begun").exists, self.started[-1])

    def end(self) -> None:
        for one in self.started:
            one.kill()
            one.communicate()


@pytest.fixture
def daemons(warehouse: Path, tmp_path: Path) -> Iterator[Daemons]:
    made = Daemons(warehouse, tmp_path)
    yield made
    made.end()


@pytest.fixture
def due(acid: AcidSession) -> AcidSession:
    """A table of which a compaction is due."""
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    for i in range(4):
        acid.sql(f"INSERT INTO t VALUES ({i})")
    return acid


def until(condition: Callable[[], object], alive: subprocess.Popen[str]) -> None:
    """Wait until it is so, as long as a compactor lives; the test's own time limit is the only one."""
    while not condition():
        assert alive.poll() is None, alive.communicate()[1]
        time.sleep(0.05)


def compactions(acid: AcidSession) -> list[tuple[str, str]]:
    return [(r.tabname, r.state) for r in acid.sql("SHOW COMPACTIONS").collect()]


def told(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    """Send a signal; the exit code and what was said on standard error."""
    process.send_signal(number)
    _, said = process.communicate()
    return process.returncode, said


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_it_compacts_and_cleans_what_is_due_and_leaves_when_it_is_told_to(
    due: AcidSession, daemons: Daemons, warehouse: Path, number: int
) -> None:
    process = daemons.start()
    until(lambda: compactions(due) == [("t", "succeeded")], process)
    code, said = told(process, number)
    assert code == 0, said
    line = (
        r"INFO compaction 1 of default\.t: MAJOR, ready for cleaning, 4 rows, 4 -> 1 files, \d+ -> \d+ bytes, \d+\.\d s"
    )
    assert len(re.findall(line, said)) == 1, said
    assert "compaction 1 of default.t is cleaned" in said
    assert "starting Spark" not in said
    assert shown(warehouse / "t") == ["base_0000004"]
    assert sorted(rows(due, "SELECT id FROM t")) == [(0,), (1,), (2,), (3,)]


def test_a_compaction_under_way_is_finished_before_it_leaves(
    due: AcidSession, daemons: Daemons, warehouse: Path
) -> None:
    process = daemons.start(stalled=True)
    daemons.until_begun()
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    assert compactions(due) == [("t", "working")]
    daemons.go_on()
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert "stopping after the compactions in progress" in said
    assert compactions(due)[0][1] in ("ready for cleaning", "succeeded")
    assert (warehouse / "t" / "base_0000004").is_dir()


def test_a_second_signal_ends_it_at_once_and_the_next_one_on_the_host_takes_over(
    due: AcidSession, daemons: Daemons
) -> None:
    process = daemons.start(stalled=True)
    daemons.until_begun()
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    code, _ = told(process, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert compactions(due) == [("t", "working")]
    follower = daemons.start()
    until(lambda: compactions(due) == [("t", "succeeded")], follower)
    code, said = told(follower, signal.SIGTERM)
    assert code == 0
    assert "is queued again: its worker" in said


def test_what_a_killed_one_of_another_host_was_at_is_done_after_the_worker_timeout(
    due: AcidSession, daemons: Daemons, warehouse: Path
) -> None:
    killed = daemons.start(stalled=True, host="elsewhere")
    daemons.until_begun()
    follower = daemons.start("hive.compactor.worker.timeout=1s")
    killed.kill()
    until(lambda: compactions(due)[0][1] in ("ready for cleaning", "succeeded"), follower)
    code, said = told(follower, signal.SIGTERM)
    assert code == 0
    assert "1 compactions were not finished in time" in said
    assert "is dead" not in said
    assert (warehouse / "t" / "base_0000004").is_dir()
    assert sorted(rows(due, "SELECT id FROM t")) == [(0,), (1,), (2,), (3,)]


def test_one_that_begins_leaves_alone_what_a_living_one_of_the_host_is_at(due: AcidSession, daemons: Daemons) -> None:
    first = daemons.start(stalled=True)
    daemons.until_begun()
    second = daemons.start()
    due.sql("CREATE TRANSACTIONAL TABLE u (id int)")
    for i in range(4):
        due.sql(f"INSERT INTO u VALUES ({i})")
    until(lambda: ("u", "ready for cleaning") in compactions(due) or ("u", "succeeded") in compactions(due), second)
    assert ("t", "working") in compactions(due)
    daemons.go_on()
    until(lambda: {state for _, state in compactions(due)} <= {"ready for cleaning", "succeeded"}, first)
    assert len(compactions(due)) == 2
    assert told(first, signal.SIGTERM)[0] == 0
    code, said = told(second, signal.SIGTERM)
    assert code == 0
    assert "queued again" not in said


def test_a_single_round_prints_what_it_did(due: AcidSession, warehouse: Path, tmp_path: Path) -> None:
    conf = [word for setting in BUSY for word in ("--conf", setting)]
    command = [sys.executable, "-m", "acidsql", "--warehouse", str(warehouse), *conf, "compactor", "--once"]
    first, second = run(command, tmp_path), run([*command, "--no-spark"], tmp_path)
    assert (first.returncode, first.stdout) == (0, "initiated 1, compacted 1, refused 0, failed 0, cleaned 1\n")
    assert (second.returncode, second.stdout) == (0, "initiated 0, compacted 0, refused 0, failed 0, cleaned 0\n")


def test_spark_is_started_for_what_needs_it_and_a_compactor_without_says_what_it_cannot_do(
    acid: AcidSession, warehouse: Path, tmp_path: Path
) -> None:
    acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
    acid.sql("INSERT INTO t VALUES (1)")
    acid.sql("ALTER TABLE t CHANGE COLUMN id id bigint")  # its file has to be converted
    acid.sql("INSERT INTO t VALUES (2)")
    command = [sys.executable, "-m", "acidsql", "compactor", "--warehouse", str(warehouse), "--once"]
    acid.sql("ALTER TABLE t COMPACT 'major'")
    without = run([*command, "--no-spark"], tmp_path)
    assert (without.returncode, without.stdout.split(", ")[3]) == (1, "failed 1")
    assert "only a compactor with Spark can convert it" in without.stderr
    acid.sql("ALTER TABLE t COMPACT 'major'")
    done = run([*command, "--conf", "spark.driver.memory=1g"], tmp_path)
    assert (done.returncode, done.stdout.split(", ")[1]) == (0, "compacted 1"), done.stderr
    assert "INFO starting Spark" in done.stderr
    assert sorted(rows(acid, "SELECT id FROM t")) == [(1,), (2,)]
