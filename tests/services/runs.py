"""The homes of running servers: a fresh directory a run, the processes in it, and that nothing of it stays behind.

A server's processes are started in sessions of their own, so that Ctrl-C reaches the tests and not them. They end

- when the run is stopped, which also happens as Python ends;
- when the process that started the run dies in any other way: a guard, a process that waits for the end of a pipe,
  then stops them (this file, run as a script);
- when even the guard was killed: by the next run that starts, which sweeps up after dead ones.

A process is ended by the id in its pid file, and only while its command line names that run's home: the ids of dead
processes are used again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_STANDING = "standing"
_NAME = re.compile(rf"(?P<kind>[a-z0-9]+)-(?P<owner>\d+|{_STANDING})-[0-9a-f]+")
_PATIENCE = 8.0
"""Seconds that a process has to end by itself."""


class ServiceError(Exception):
    """Raised when a server cannot be started, or has died."""


class Run:
    """One run of a server: its home and the processes that live in it.

    Attributes:
        home: The directory: ``run`` has the pid files, ``log`` the processes' outputs, the rest is the server's own.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._owner = os.getpid()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._guard: subprocess.Popen[bytes] | None = None

    @classmethod
    def new(cls, kind: str, root: Path, *, standing: bool = False) -> Run:
        """Sweep up what dead runs left in a directory, and make the home of a new one there.

        Args:
            kind: What the server is: the first word of the home's name.
            root: The directory that gets the home.
            standing: Whether the run outlives this process: somebody must stop it by hand.

        Raises:
            ServiceError: When Hive could not work below this directory.
        """
        root = root.resolve()
        check_home(root)
        root.mkdir(parents=True, exist_ok=True)
        sweep(root)
        owner = _STANDING if standing else str(os.getpid())
        run = cls(root / f"{kind}-{owner}-{secrets.token_hex(4)}")
        for folder in ("run", "log"):
            (run.home / folder).mkdir(parents=True)
        if not standing:
            # The pipe's other end is in no other process: it ends as this one does, however that comes about.
            run._guard = subprocess.Popen(
                [sys.executable, "-I", __file__, str(run.home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            atexit.register(run.stop)
        return run

    @property
    def kind(self) -> str:
        return self.home.name.partition("-")[0]

    def launch(self, name: str, java: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a Java process in the home: as :meth:`start`, with the process's arguments in the file."""
        self.start(name, java, "@", "".join(f"{_quoted(argument)}\n" for argument in arguments), environment)

    def start(
        self,
        name: str,
        program: Path,
        option: str,
        settings: str,
        environment: Mapping[str, str],
        *,
        user: str | None = None,
        ended_by: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start a process in the home.

        What it is told stands in a file whose name is all that the command line shows: so it is short, and tells whose
        process this is.

        Args:
            name: The process's name.
            program: The executable.
            option: Its option that takes the name of a file, up to that name.
            settings: The file's text.
            environment: The process's environment.
            user: Who the process runs as, if not the user of this one.
            ended_by: The signal that asks the process to end.
        """
        file = self._arguments(name)
        file.write_text(settings, encoding="utf-8")
        if user is not None:
            shutil.chown(file, user)
        with (self.home / "log" / f"{name}.out").open("wb") as output:
            process = subprocess.Popen(
                [program, f"{option}{file}"],
                cwd=self.home,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **as_user(user),
            )
        self._pid_file(name).write_text(f"{process.pid} {ended_by.name}", encoding="utf-8")
        self._children[name] = process

    def names(self) -> list[str]:
        """The processes that were started and not stopped, whether they live or not."""
        return sorted(file.stem for file in (self.home / "run").glob("*.pid"))

    def pid(self, name: str) -> int | None:
        """The id of a process of this run that lives; None if it does not."""
        if child := self._children.get(name):
            # Asking also takes note of its end: until then it is a zombie.
            return child.pid if child.poll() is None else None
        try:
            pid = int(self._pid_file(name).read_text(encoding="utf-8").partition(" ")[0])
        except (OSError, ValueError):
            return None
        return pid if str(self._arguments(name)) in command_line(pid) else None

    def wait(self, name: str, done: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until something holds that a process of this run brings about.

        Raises:
            ServiceError: When the process died, or the time is over; with the end of its output.
        """
        end = time.monotonic() + seconds
        while not done():
            if self.pid(name) is None:
                raise ServiceError(f"{name} died before {what}:\n{self.output(name)}")
            if time.monotonic() > end:
                raise ServiceError(f"{name}: {what} did not come within {seconds:.0f} s:\n{self.output(name)}")
            time.sleep(0.1)

    def output(self, name: str, lines: int = 30) -> str:
        """The last lines of a process's output and log."""
        files = [self.home / "log" / f"{name}{suffix}" for suffix in (".out", ".log")]
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files if file.exists()]
        return "\n".join(line for text in texts for line in text.splitlines()[-lines:])

    def end(self, *names: str) -> None:
        """End processes of this run, and wait until they are gone; those that live too long are killed."""
        for name in names:
            self._signal(name, self._ended_by(name))
        end = time.monotonic() + _PATIENCE
        while any(self.pid(name) for name in names) and time.monotonic() < end:
            time.sleep(0.05)
        for name in names:
            self._signal(name, signal.SIGKILL)
        while any(self.pid(name) for name in names):
            time.sleep(0.05)
        for name in names:
            self._pid_file(name).unlink(missing_ok=True)

    def stop(self) -> None:
        """End all processes and remove the home. Does nothing in a forked child of the process that started the run."""
        if os.getpid() != self._owner:
            return
        self.end(*self.names())
        shutil.rmtree(self.home, ignore_errors=True)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.wait()
            self._guard = None
        atexit.unregister(self.stop)

    def _signal(self, name: str, number: signal.Signals) -> None:
        if pid := self.pid(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _ended_by(self, name: str) -> signal.Signals:
        with contextlib.suppress(OSError, KeyError):
            return signal.Signals[self._pid_file(name).read_text(encoding="utf-8").partition(" ")[2]]
        return signal.SIGTERM

    def _pid_file(self, name: str) -> Path:
        return self.home / "run" / f"{name}.pid"

    def _arguments(self, name: str) -> Path:
        return self.home / "run" / f"{name}.args"


def check_home(path: Path) -> None:
    """See that Hive can work below a directory.

    Raises:
        ServiceError: When a part of its path begins with ``.`` or ``_``. Hadoop's input formats take such names for
            hidden ones, and Hive applies that to the whole path of a bucket file: it silently reads ACID tables as
            empty.
    """
    hidden = [part for part in path.parts if part.startswith((".", "_"))]
    if hidden:
        raise ServiceError(
            f"Hive reads ACID tables below {path} as empty, since {hidden[0]!r} begins with '.' or '_': "
            "set ACIDSQL_TEST_CACHE to another directory"
        )


def standing(root: Path, kind: str) -> list[Run]:
    """The runs of a kind that wait to be stopped by hand."""
    return [run for owner, run in _runs(root) if owner == _STANDING and run.kind == kind]


def sweep(root: Path) -> None:
    """Stop the processes of runs whose owner has died, and remove their homes."""
    for owner, run in _runs(root):
        if owner != _STANDING and not _exists(int(owner)):
            run.stop()


def _runs(root: Path) -> Iterator[tuple[str, Run]]:
    for home in sorted(root.glob("*-*-*")):
        if match := _NAME.fullmatch(home.name):
            yield match["owner"], Run(home)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def command_line(pid: int) -> str:
    """The command line of a process; empty if there is none, or it has ended and nobody has taken note yet."""
    if not Path("/proc/self").exists():
        asked = ["ps", "-ww", "-o", "args=", "-p", str(pid)]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    for _ in range(50):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return ""
        if words or state in "ZX":
            return words.replace(b"\0", b" ").decode(errors="replace")
        time.sleep(0.01)  # a process that is just being replaced by another program has none for a moment
    return ""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on.

    They lie below those that systems give to outgoing connections, one of which might take a port before the server
    comes to listen on it.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as taken:
        for port in random.SystemRandom().sample(range(20000, 32000), 200):
            try:
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise ServiceError("There are no free ports between 20000 and 32000")


def answers(port: int) -> bool:
    """Whether somebody listens on a port of the loopback address."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def environment(**settings: str) -> dict[str, str]:
    """This process's environment for a server: without what Hadoop's, Hive's and Spark's own scripts would set."""
    foreign = re.compile(r"(HADOOP|HIVE|METASTORE|YARN|TEZ|SPARK)_|CLASSPATH$|(JDK_JAVA|JAVA_TOOL|_JAVA)_OPTIONS$")
    return {name: value for name, value in os.environ.items() if not foreign.match(name)} | settings


def as_user(user: str | None) -> dict[str, Any]:
    """What :mod:`subprocess` is told for a process to run as another user, in that user's group and no other."""
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _quoted(argument: str) -> str:
    """An argument as Java reads it from a file."""
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _watch(home: Path) -> None:
    """The guard: stop a run as soon as the process that holds the other end of standard input is gone."""
    sys.stdin.buffer.read()
    if home.exists():
        Run(home).stop()


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
