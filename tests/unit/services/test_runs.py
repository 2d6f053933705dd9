"""Runs of servers: nothing of them stays behind, and nobody else's processes are touched.

The servers themselves are tested by being used (``make test-hive``, ``make test-hdfs``); here is what could do harm
on a developer's machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services import runs
from tests.services.runs import Run, ServiceError

# What is started in Java's place: it takes Java's arguments, and lives until it is ended.
OBEDIENT = "import time; print('started', flush=True); time.sleep(300)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('started', flush=True); time.sleep(300)"
)
DYING = "import sys; print('no room in the cellar'); sys.exit(3)"
OWNER = """
import os, sys, time
from pathlib import Path
from tests.services.runs import Run
run = Run.new("hive", Path(sys.argv[1]))
run.launch("server", Path(sys.argv[2]), [], dict(os.environ))
print(run.home, run.pid("server"), flush=True)
time.sleep(300)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def run(root: Path) -> Iterator[Run]:
    made = Run.new("hive", root)
    yield made
    made.stop()


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Makes an executable of Python code."""

    def make(code: str) -> Path:
        file = tmp_path / "java"
        file.write_text(f"#!{sys.executable}\n{code}\n")
        file.chmod(0o755)
        return file

    return make


def eventually(holds: Callable[[], bool]) -> bool:
    for _ in range(200):
        if holds():
            return True
        time.sleep(0.05)
    return False


def launch(run: Run, program: Path, name: str = "server") -> int:
    run.launch(name, program, ["-Xmx1g"], dict(os.environ))
    assert eventually(lambda: "started" in run.output(name))
    pid = run.pid(name)
    assert pid is not None
    return pid


def lives(pid: int) -> bool:
    return bool(runs.command_line(pid))


def test_a_home_below_a_hidden_directory_is_refused_since_hive_would_read_its_tables_as_empty(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / "plain").symlink_to(tmp_path / ".cache")

    with pytest.raises(ServiceError, match=r"\.cache"):
        Run.new("hive", tmp_path / "plain")


def test_stopping_a_run_ends_its_processes_and_removes_its_home(run: Run, program: Callable[[str], Path]) -> None:
    pids = [launch(run, program(OBEDIENT), name) for name in ("metastore", "hiveserver2")]

    run.stop()

    assert not any(map(lives, pids))
    assert not run.home.exists()
    run.stop()  # a second time is no harm


def test_a_process_that_does_not_want_to_end_is_killed(
    run: Run, program: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_PATIENCE", 0.2)
    pid = launch(run, program(STUBBORN))

    run.stop()

    assert not lives(pid)


def test_a_process_that_is_not_ours_is_left_alone_though_a_pid_file_has_its_id(root: Path) -> None:
    stranger = subprocess.Popen(["sleep", "300"])
    try:
        home = root / "hive-standing-00"
        (home / "run").mkdir(parents=True)
        (home / "run" / "metastore.pid").write_text(str(stranger.pid))
        run = Run(home)

        assert run.pid("metastore") is None
        run.stop()

        assert stranger.poll() is None
        assert not home.exists()
    finally:
        stranger.kill()
        stranger.wait()


def test_waiting_for_a_process_that_dies_shows_its_last_output(run: Run, program: Callable[[str], Path]) -> None:
    run.launch("server", program(DYING), [], dict(os.environ))

    with pytest.raises(ServiceError, match=r"(?s)server died before the port answered.*no room in the cellar"):
        run.wait("server", lambda: False, 60, "the port answered")


def test_when_the_owner_is_killed_the_guard_ends_its_processes(root: Path, program: Callable[[str], Path]) -> None:
    command = [sys.executable, "-c", OWNER, str(root), str(program(OBEDIENT))]
    project = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=project) as owner:
        try:
            assert owner.stdout is not None
            home, pid = owner.stdout.readline().split()
            assert lives(int(pid))

            owner.send_signal(signal.SIGKILL)

            assert eventually(lambda: not lives(int(pid)))
            assert eventually(lambda: not Path(home).exists())
        finally:
            owner.kill()


def test_a_new_run_sweeps_up_after_those_whose_owner_died(root: Path, program: Callable[[str], Path]) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = Run(root / f"hive-{dead.pid}-0a")
    for folder in ("run", "log"):
        (left.home / folder).mkdir(parents=True)
    pid = launch(left, program(OBEDIENT))

    new = Run.new("hive", root)

    assert eventually(lambda: left.pid("server") is None)
    assert not lives(pid)
    assert list(root.iterdir()) == [new.home]
    new.stop()


def test_a_sweep_spares_runs_that_live_and_those_that_stand_and_whatever_is_no_run(root: Path, run: Run) -> None:
    standing = Run.new("hive", root, standing=True)
    (root / "hive-notes-of-mine").mkdir()

    runs.sweep(root)

    assert {path.name for path in root.iterdir()} == {run.home.name, standing.home.name, "hive-notes-of-mine"}
