"""A real Hive metastore 3.1.3 for tests: the stand-alone one, on PostgreSQL, without an engine.

It listens on the loopback address alone and asks for no log-in. Every start has a fresh home: an empty metastore and
an empty warehouse, which are gone afterwards. Nothing in it compacts: requests stay in the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.services import maven, runs
from tests.services.configuration import environment_of, hadoop_settings, java_arguments, write_settings
from tests.services.java import NoJavaError, find_java
from tests.services.postgres import PostgresServer, postgres_is_possible
from tests.services.runs import Run, ServiceError
from tests.services.schema import database_settings, empty_metastore, template_of, unpacked

VERSION = "3.1.3"
LOCK = Path(__file__).with_name(f"hive-metastore-{VERSION}.lock")
_SECONDS = 180.0
_METASTORE = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_SCHEMA_TOOL = "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool"
# 3.1 has no setting for the address, and would listen on all of them.
_LOOPBACK = """\
RULE listen on the loopback address alone
CLASS org.apache.hadoop.hive.metastore.utils.SecurityUtils
METHOD getServerSocket
AT ENTRY
IF $1 == null
DO $1 = "127.0.0.1"
ENDRULE
"""


def metastore31_is_possible() -> str | None:
    """Why this metastore cannot be started here; None if nothing speaks against it."""
    missing = [name for name in ("thrift", "hive_metastore") if find_spec(name) is None]
    if missing:
        return f"Python lacks {', '.join(missing)}: they come with acidsql[dev]"
    try:
        find_java()
        maven.default_cache()
    except (NoJavaError, maven.DownloadError) as e:
        return str(e)
    return postgres_is_possible()


class Metastore31:
    """The metastore, from its installation to the end of one run. As a context manager it starts and stops.

    Attributes:
        home: The directory of this run.
        warehouse: The directory of its managed tables.
        metastore_uri: Its address, ``thrift://127.0.0.1:port``.
        port: Its port at 127.0.0.1.

    They are there once it was started.
    """

    home: Path
    warehouse: Path
    metastore_uri: str
    port: int

    def __init__(self, *, settings: Mapping[str, str] | None = None, cache: Path | None = None) -> None:
        """Start nothing yet.

        Args:
            settings: Further settings of the metastore.
            cache: Where the installation and the runs' homes are; :func:`maven.default_cache` if left out.
        """
        self._settings = dict(settings or {})
        self._cache = cache
        self._run: Run | None = None
        self._class_path: list[Path] = []
        self._agent = Path()

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
        archive, *rest, self._agent = maven.jars(LOCK, cache / "jars")
        distribution = unpacked(archive, cache / f"metastore-{VERSION}")
        self._class_path = [*sorted((distribution / "lib").glob("*.jar")), *rest]
        template = template_of(VERSION, cache)
        if not template.exists():
            empty_metastore(distribution, _SCHEMA_TOOL, rest, template, cache)
        return template

    def start(self) -> None:
        """Start the metastore, and see that it has a transaction to give.

        Raises:
            DownloadError: When a jar cannot be had.
            NoJavaError: When there is no Java for it.
            ServiceError: When it does not come up.
        """
        template = self.install()
        run = self._run = Run.new("metastore31", (self._cache or maven.default_cache()) / "runs")
        (self.port,) = runs.free_ports(1)
        self.home, self.warehouse = run.home, run.home / "warehouse"
        self.metastore_uri = f"thrift://127.0.0.1:{self.port}"
        try:
            database = PostgresServer(run=run, template=template, cache=self._cache)
            database.start()
            write_settings(run.home / "conf" / "core-site.xml", hadoop_settings(run.home))
            write_settings(run.home / "conf" / "metastore-site.xml", _settings(run.home, database) | self._settings)
            rules = run.home / "conf" / "loopback.btm"
            rules.write_text(_LOOPBACK, encoding="utf-8")
            arguments = java_arguments(
                run.home,
                "metastore",
                "512m",
                self._class_path,
                [_METASTORE, "-p", str(self.port)],
                [f"-javaagent:{self._agent}=script:{rules}"],
            )
            run.launch("metastore", find_java(), arguments, runs.environment(**environment_of(run.home)))
            run.wait("metastore", lambda: runs.answers(self.port), _SECONDS, f"port {self.port} answered")
            self._check()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it and remove the home. Does nothing where nothing runs."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def __enter__(self) -> Metastore31:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _check(self) -> None:
        """See that it writes a transactional table down, and counts a transaction of it."""
        from hive_metastore import ThriftHiveMetastore, ttypes
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.Thrift import TException
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport

        transport = TBufferedTransport(TSocket("127.0.0.1", self.port))
        client = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        try:
            transport.open()
            client.create_table(_table(ttypes))
            (txn,) = client.open_txns(ttypes.OpenTxnRequest(num_txns=1, user="tests", hostname="localhost")).txn_ids
            write = client.allocate_table_write_ids(
                ttypes.AllocateTableWriteIdsRequest(dbName="default", tableName="up", txnIds=[txn])
            )
            client.commit_txn(ttypes.CommitTxnRequest(txnid=txn))
            client.drop_table("default", "up", True)
        except TException as e:
            assert self._run is not None
            raise ServiceError(f"The metastore answers, but fails: {e}\n{self._run.output('metastore')}") from e
        finally:
            transport.close()
        if [pair.writeId for pair in write.txnToWriteIds] != [1]:
            raise ServiceError(f"The metastore answers, but counts wrongly: {write}")


def _settings(home: Path, database: PostgresServer) -> dict[str, str]:
    return database_settings(database) | {
        "metastore.warehouse.dir": f"file://{home}/warehouse",
        "metastore.event.db.notification.api.auth": "false",
        "metastore.compactor.initiator.on": "false",
        # Hive's defaults name classes that only a whole Hive has.
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
    }


def _table(ttypes: Any) -> Any:
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name="id", type="int", comment="")],
        inputFormat=f"{orc}InputFormat",
        outputFormat=f"{orc}OutputFormat",
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(serializationLib=f"{orc}Serde", parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    return ttypes.Table(
        dbName="default",
        tableName="up",
        owner="tests",
        sd=storage,
        partitionKeys=[],
        parameters={"transactional": "true"},
        tableType="MANAGED_TABLE",
    )
