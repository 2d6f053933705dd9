"""A real Apache Hive 4.0.1 for tests: metastore, on PostgreSQL, HiveServer2, and a compaction worker on demand.

It is installed from Maven Central, needs Java 17 and some 4 GB of memory, listens on the loopback address alone and
asks for no log-in. Every start has a fresh home: an empty metastore and an empty warehouse, which are gone afterwards.

    python -m tests.services.hive up | status | sql "SELECT 1" ["…" …] | down
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.services import maven, runs
from tests.services.configuration import (
    environment_of,
    hadoop_settings,
    hive_settings,
    java_arguments,
    write_settings,
)
from tests.services.hiveserver2 import Hive, HiveError
from tests.services.java import NoJavaError, find_java
from tests.services.postgres import PostgresServer, postgres_is_possible
from tests.services.runs import Run, ServiceError
from tests.services.schema import database_settings, empty_metastore, template_of, unpacked

VERSION = "4.0.1"
LOCK = Path(__file__).with_name(f"hive-{VERSION}.lock")
_KIND = "hive"
STAGED = {"hive.acid.direct.insert.enabled": "false"}
"""Settings of a session whose statements write aside first, and so may run beside Hive's cleaner."""
_SECONDS = 300.0
"""The longest that a process may take to come up."""

_METASTORE = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_HIVESERVER2 = "org.apache.hive.service.server.HiveServer2"
_SCHEMA_TOOL = "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool"


def hive_is_possible() -> str | None:
    """Why Hive cannot be started here; None if nothing speaks against it."""
    missing = [name for name in ("pyhive", "thrift", "thrift_sasl", "puresasl") if find_spec(name) is None]
    if missing:
        return f"Python lacks {', '.join(missing)}: they come with acidsql[dev]"
    try:
        find_java()
        runs.check_home(_root(None).resolve())
    except (NoJavaError, ServiceError, maven.DownloadError) as e:
        return str(e)
    return postgres_is_possible()


class HiveServer:
    """Hive, from its installation to the end of one run. As a context manager it starts and stops.

    Attributes:
        home: The directory of this run.
        warehouse: The directory of its managed tables.
        metastore_uri: The metastore's address, ``thrift://127.0.0.1:port``.
        port: The port of HiveServer2 at 127.0.0.1.
        has_cleaner: Whether this object has started Hive's cleaner.

    All but the last are there once it was started.
    """

    home: Path
    warehouse: Path
    metastore_uri: str
    port: int
    has_cleaner: bool = False

    def __init__(self, *, settings: Mapping[str, str] | None = None, cache: Path | None = None) -> None:
        """Start nothing yet.

        Args:
            settings: Hive's settings for all its processes, where they shall be others than those of
                :func:`hive_settings`.
            cache: Where the installation and the runs' homes are; :func:`maven.default_cache` if left out.
        """
        self._settings = dict(settings or {})
        self._cache = cache
        self._run: Run | None = None
        self._ports: dict[str, int] = {}
        self._class_path: list[Path] = []

    def install(self) -> Path:
        """Download what is not there yet, and make the empty metastore that every run begins with.

        Returns:
            The template of that metastore's database.

        Raises:
            DownloadError: When a jar cannot be had.
            NoJavaError: When there is no Java for it.
            ServiceError: When the metastore cannot be made.
        """
        cache = self._cache or maven.default_cache()
        archive, *self._class_path = maven.jars(LOCK, cache / "jars")
        template = template_of(VERSION, cache)
        if not template.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                distribution = unpacked(archive, Path(scratch, "distribution"))
                empty_metastore(distribution, _SCHEMA_TOOL, self._class_path, template, cache)
        return template

    def start(self, *, compactor: bool = False, standing: bool = False) -> None:
        """Start the metastore and HiveServer2, and see that an ACID table comes back from them.

        Args:
            compactor: Whether to start the compaction worker, too.
            standing: Whether they go on when this process ends; :meth:`attach` finds them again.

        Raises:
            DownloadError: When a jar cannot be had.
            NoJavaError: When there is no Java for it.
            ServiceError: When one of them does not come up, or Hive loses rows.
        """
        template = self.install()
        ports = dict(zip(("metastore", "hiveserver2", "compactor"), runs.free_ports(3), strict=True))
        self._adopt(Run.new(_KIND, _root(self._cache), standing=standing), ports)
        try:
            self._launch(template)
            if compactor:
                self.start_compactor()
            self._check()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all processes and remove the home. Does nothing where nothing runs."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def start_compactor(self, *, cleaner: bool = False, initiator: bool = False, query_based: bool = False) -> None:
        """Start what compacts: one worker, and, if wanted, the cleaner and the initiator.

        They live in a second metastore, so that a test can have them come and go. While they are not there, requests
        wait in the queue. Those that run already make room.

        Hive 4.0.1's cleaner removes the manifests of statements that are running (:data:`STAGED`). With PostgreSQL it
        looks at a table without partitions again and again: it cannot mark one as cleaned (``MarkCleanedFunction``).

        Args:
            cleaner: Whether old files are removed, too. Open sessions of Hive that write with :data:`STAGED` then.
            initiator: Whether tables are compacted that nobody asked for, too.
            query_based: Whether Hive compacts by queries on Tez, and not, which is its default, by MapReduce.

        Raises:
            ServiceError: When they do not come up.
        """
        self.stop_compactor()
        settings = {
            "hive.metastore.runworker.in": "metastore",
            "metastore.compactor.worker.threads": "1",
            "metastore.compactor.cleaner.on": str(cleaner).lower(),
            "metastore.compactor.initiator.on": str(initiator).lower(),
            "hive.compactor.crud.query.based": str(query_based).lower(),
            # The worker looks so often (in milliseconds) whether its job is done.
            "mapreduce.client.completion.pollinterval": "200",
        }
        self._launch_metastore("compactor", "2g", settings)
        self._wait("compactor")
        self.has_cleaner = cleaner

    def stop_compactor(self) -> None:
        """End the compaction worker, the cleaner and the initiator."""
        self._running().end("compactor")
        self.has_cleaner = False

    def connect(self, *, database: str = "default", settings: Mapping[str, str] | None = None) -> Hive:
        """A new session in HiveServer2."""
        return Hive(self.port, database=database, settings=settings)

    @classmethod
    def attach(cls, *, cache: Path | None = None) -> HiveServer | None:
        """The Hive that was started as a standing one; None if there is none."""
        for run in runs.standing(_root(cache), _KIND):
            server = cls(cache=cache)
            server._adopt(run, json.loads((run.home / "run" / "ports.json").read_text(encoding="utf-8")))
            return server
        return None

    def status(self) -> dict[str, bool]:
        """Which processes belong to this run, and whether they live."""
        run = self._running()
        return {name: run.pid(name) is not None for name in run.names()}

    def __enter__(self) -> HiveServer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _adopt(self, run: Run, ports: dict[str, int]) -> None:
        (run.home / "run" / "ports.json").write_text(json.dumps(ports), encoding="utf-8")
        self._run, self._ports = run, ports
        self.home, self.warehouse = run.home, run.home / "warehouse"
        self.metastore_uri, self.port = f"thrift://127.0.0.1:{ports['metastore']}", ports["hiveserver2"]

    def _running(self) -> Run:
        if self._run is None:
            raise ServiceError("Hive does not run: start it first")
        return self._run

    def _launch(self, template: Path) -> None:
        home, ports = self.home, self._ports
        database = PostgresServer(run=self._running(), template=template, cache=self._cache)
        database.start()
        write_settings(home / "conf" / "core-site.xml", hadoop_settings(home))
        hive = hive_settings(
            home,
            metastore=ports["metastore"],
            hiveserver2=ports["hiveserver2"],
            database=database_settings(database),
        )
        write_settings(home / "conf" / "hive-site.xml", hive | self._settings)
        self._launch_metastore("metastore", "1g")
        self._java("hiveserver2", "2g", [_HIVESERVER2])
        self._wait("metastore")
        self._wait("hiveserver2")

    def _launch_metastore(self, name: str, heap: str, settings: Mapping[str, str] | None = None) -> None:
        given = [part for setting in (settings or {}).items() for part in ("--hiveconf", "=".join(setting))]
        self._java(name, heap, [_METASTORE, "-p", str(self._ports[name]), *given])

    def _java(self, name: str, heap: str, main: Sequence[str]) -> None:
        class_path = self._class_path or maven.jars(LOCK, (self._cache or maven.default_cache()) / "jars")[1:]
        arguments = java_arguments(self.home, name, heap, class_path, main)
        self._running().launch(name, find_java(), arguments, runs.environment(**environment_of(self.home)))

    def _wait(self, name: str) -> None:
        port = self._ports[name]
        self._running().wait(name, lambda: runs.answers(port), _SECONDS, f"port {port} answered")

    def _check(self) -> None:
        """See that Hive reads back what it wrote: an open port alone proves little."""
        try:
            with self.connect() as hive:
                hive.run("CREATE TABLE up (id int, name string) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
                hive.run("INSERT INTO up VALUES (1, 'a'), (2, 'b')")
                hive.run("UPDATE up SET name = 'c' WHERE id = 2")
                rows = hive.run("SELECT id, name, ROW__ID.writeid FROM up")
                hive.run("DROP TABLE up PURGE")
        except HiveError as e:
            raise ServiceError(f"Hive answers, but fails: {e}\n{self._running().output('hiveserver2')}") from e
        if sorted(rows or ()) != [(1, "a", 1), (2, "c", 2)]:
            raise ServiceError(f"Hive answers, but reads an ACID table wrongly: {rows}")


def _root(cache: Path | None) -> Path:
    return (cache or maven.default_cache()) / "runs"


# --- the command line ---


def main(arguments: Sequence[str] | None = None) -> int:
    """What ``python -m tests.services.hive`` does; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.hive", description="A real Hive to try things in.")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="install it where needed, and start it")
    up.add_argument("--compactor", action="store_true", help="with a compaction worker")
    commands.add_parser("down", help="stop it, and forget its tables")
    commands.add_parser("status", help="what runs, and where")
    commands.add_parser("sql", help="run statements in it").add_argument("statement", nargs="+")
    given = parser.parse_args(arguments)
    server = HiveServer.attach()
    if given.command == "up":
        return _up(server, compactor=given.compactor)
    if server is None:
        print("Hive does not run", file=sys.stderr)
        return 1
    if given.command == "sql":
        return _sql(server, given.statement)
    if given.command == "down":
        server.stop()
        print("Hive has stopped")
    else:
        _tell(server)
    return 0


def _up(server: HiveServer | None, *, compactor: bool) -> int:
    if server is None:
        if reason := hive_is_possible():
            print(reason, file=sys.stderr)
            return 1
        server = HiveServer()
        print("Starting Hive (the first time it is downloaded, some 380 MB) ...", flush=True)
        server.start(compactor=compactor, standing=True)
    elif compactor and not server.status().get("compactor"):
        server.start_compactor()
    _tell(server)
    return 0


def _tell(server: HiveServer) -> None:
    states = ", ".join(f"{name} {'lives' if alive else 'is dead'}" for name, alive in server.status().items())
    print(f"metastore    {server.metastore_uri}")
    print(f"HiveServer2  127.0.0.1:{server.port}")
    print(f"warehouse    {server.warehouse}")
    print(f"processes    {states}")


def _sql(server: HiveServer, statements: Sequence[str]) -> int:
    try:
        with server.connect() as hive:
            for statement in statements:
                for row in hive.run(statement) or ():
                    print("\t".join("NULL" if value is None else str(value) for value in row))
    except HiveError as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
