"""Runs of servers: where they may live, and that nothing of them stays behind, nor anybody else is touched."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.services import runs
from tests.services.runs import Run, ServiceError

# What is started in Java's place: it takes Java's arguments, and lives until somebody ends it.
OBEDIENT = "import time; print('started', flush=True); time.sleep(300)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('started', flush=True); time.sleep(300)"
)
DYING = "import sys; print('no room in the cellar'); sys.exit(3)"


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


@pytest.mark.parametrize("hidden", [".cache", "_temporary"])
def test_a_home_below_a_hidden_directory_is_refused_since_hive_would_read_its_tables_as_empty(
    tmp_path: Path, hidden: str
) -> None:
    with pytest.raises(ServiceError, match=hidden):
        Run.new("hive", tmp_path / hidden / "runs")

    assert not (tmp_path / hidden).exists()


def test_a_link_does_not_hide_a_hidden_directory(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    (tmp_path / "plain").symlink_to(tmp_path / ".cache")

    with pytest.raises(ServiceError, match=r"\.cache"):
        Run.new("hive", tmp_path / "plain")


def test_every_run_has_a_home_of_its_own(root: Path) -> None:
    first, second = Run.new("hive", root), Run.new("hive", root)

    assert first.home != second.home
    assert {first.home.parent, second.home.parent} == {root}
    first.stop()
    second.stop()
    assert list(root.iterdir()) == []


def test_a_process_sees_its_arguments_through_a_file_that_its_command_line_names(
    run: Run, program: Callable[[str], Path]
) -> None:
    pid = launch(run, program(OBEDIENT))

    file = run.home / "run" / "server.args"
    assert f"@{file}" in runs.command_line(pid)
    assert file.read_text() == '"-Xmx1g"\n'


def test_arguments_are_quoted_as_java_reads_them(run: Run, program: Callable[[str], Path]) -> None:
    run.launch("server", program(OBEDIENT), ["a b", 'say "x"', "back\\slash"], dict(os.environ))

    assert (run.home / "run" / "server.args").read_text() == '"a b"\n"say \\"x\\""\n"back\\\\slash"\n'


def test_another_program_is_told_by_its_own_option_which_file_to_read(run: Run, program: Callable[[str], Path]) -> None:
    run.start("server", program(OBEDIENT), "--config-file=", "port = '1'\n", dict(os.environ))

    file = run.home / "run" / "server.args"
    pid = run.pid("server")
    assert pid is not None
    assert eventually(lambda: f"--config-file={file}" in runs.command_line(pid))
    assert file.read_text() == "port = '1'\n"


def test_a_process_is_ended_by_the_signal_that_it_wants_also_when_only_its_files_are_known(
    run: Run, program: Callable[[str], Path]
) -> None:
    wanting = OBEDIENT.replace("print", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print", 1)
    run.start("server", program(wanting), "@", "", dict(os.environ), ended_by=signal.SIGINT)
    assert eventually(lambda: "started" in run.output("server"))
    process = run._children["server"]

    found = Run(run.home)
    assert found.pid("server") == process.pid
    found._signal("server", found._ended_by("server"))

    assert process.wait(60) == -signal.SIGINT


def test_a_process_of_another_user_is_in_that_users_group_alone() -> None:
    assert runs.as_user(None) == {}
    assert runs.as_user("nobody") == {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}


def test_stopping_a_run_ends_its_processes_and_removes_its_home(run: Run, program: Callable[[str], Path]) -> None:
    pids = [launch(run, program(OBEDIENT), name) for name in ("metastore", "hiveserver2")]

    run.stop()

    assert not any(map(lives, pids))
    assert not run.home.exists()
    run.stop()  # a second time is no harm


def test_one_process_can_end_while_the_others_live(run: Run, program: Callable[[str], Path]) -> None:
    launch(run, program(OBEDIENT), "metastore")
    launch(run, program(OBEDIENT), "compactor")

    run.end("compactor")

    assert run.names() == ["metastore"]
    assert run.pid("metastore") is not None
    assert run.pid("compactor") is None


def test_a_process_that_does_not_want_to_end_is_killed(
    run: Run, program: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_PATIENCE", 0.2)
    pid = launch(run, program(STUBBORN))

    run.stop()

    assert not lives(pid)


def test_a_process_that_is_not_ours_is_left_alone_though_a_pid_file_has_its_id(root: Path) -> None:
    with process("sleep", "300") as stranger:
        home = root / "hive-standing-00"
        (home / "run").mkdir(parents=True)
        (home / "run" / "metastore.pid").write_text(str(stranger.pid))
        run = Run(home)

        assert run.pid("metastore") is None
        run.stop()

        assert stranger.poll() is None
        assert not home.exists()


@pytest.mark.parametrize("content", ["", "not a number"])
def test_a_broken_pid_file_means_that_nothing_lives(root: Path, content: str) -> None:
    home = root / "hive-standing-00"
    (home / "run").mkdir(parents=True)
    (home / "run" / "metastore.pid").write_text(content)

    assert Run(home).pid("metastore") is None


def test_waiting_for_a_process_that_dies_tells_what_it_said_last(run: Run, program: Callable[[str], Path]) -> None:
    run.launch("server", program(DYING), [], dict(os.environ))

    with pytest.raises(ServiceError, match=r"(?s)server died before the port answered.*no room in the cellar"):
        run.wait("server", lambda: False, 60, "the port answered")


def test_waiting_has_an_end(run: Run, program: Callable[[str], Path]) -> None:
    launch(run, program(OBEDIENT))

    with pytest.raises(ServiceError, match="did not come within 0 s"):
        run.wait("server", lambda: False, 0.3, "the port answered")


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is there no longer than the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as started:
        try:
            yield started
        finally:
            started.kill()


def in_python(code: str, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Another Python that knows this package."""
    return process(sys.executable, "-c", textwrap.dedent(code), *arguments)


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGKILL"])
def test_when_the_owner_is_killed_the_guard_ends_its_processes(
    root: Path, program: Callable[[str], Path], signal_name: str
) -> None:
    code = """
        import os, sys, time
        from pathlib import Path
        from tests.services.runs import Run
        run = Run.new("hive", Path(sys.argv[1]))
        run.launch("server", Path(sys.argv[2]), [], dict(os.environ))
        print(run.home, run.pid("server"), flush=True)
        time.sleep(300)
    """
    with in_python(code, str(root), str(program(OBEDIENT))) as owner:
        assert owner.stdout is not None
        home, pid = owner.stdout.readline().split()
        assert lives(int(pid))

        owner.send_signal(signal.Signals[signal_name])

        assert eventually(lambda: not lives(int(pid)))
        assert eventually(lambda: not Path(home).exists())


def test_the_end_of_python_stops_a_run_that_nobody_stopped(root: Path, program: Callable[[str], Path]) -> None:
    code = """
        import os, sys
        from pathlib import Path
        from tests.services.runs import Run
        run = Run.new("hive", Path(sys.argv[1]))
        run.launch("server", Path(sys.argv[2]), [], dict(os.environ))
        print(run.pid("server"))
    """
    with in_python(code, str(root), str(program(OBEDIENT))) as owner:
        output, _ = owner.communicate(timeout=60)

    assert owner.returncode == 0
    assert not lives(int(output))
    assert list(root.iterdir()) == []


def test_a_forked_child_does_not_stop_its_parents_run(run: Run, program: Callable[[str], Path]) -> None:
    pid = launch(run, program(OBEDIENT))
    child = os.fork()
    if child == 0:
        run.stop()
        os._exit(0)
    os.waitpid(child, 0)

    assert lives(pid)
    assert run.home.exists()


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


def test_a_standing_run_is_found_again_by_its_kind(root: Path) -> None:
    hive = Run.new("hive", root, standing=True)
    Run.new("metastore31", root, standing=True)

    assert [found.home for found in runs.standing(root, "hive")] == [hive.home]


def test_free_ports_are_different_and_free() -> None:
    ports = runs.free_ports(5)

    assert len(set(ports)) == 5
    for port in ports:
        assert not runs.answers(port)
        with socket.create_server(("127.0.0.1", port)):
            assert runs.answers(port)


def test_servers_do_not_inherit_what_other_installations_have_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx9g")
    monkeypatch.setenv("KEPT", "yes")

    environment = runs.environment(HIVE_HOME="/here")

    assert "HADOOP_CONF_DIR" not in environment
    assert "JAVA_TOOL_OPTIONS" not in environment
    assert environment["KEPT"] == "yes"
    assert environment["HIVE_HOME"] == "/here"
