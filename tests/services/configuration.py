"""What Hive's processes are told: their settings, their logging, their command lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.services.java import BRISK, OPENS

_LOG4J = """\
status = ERROR
appender.file.type = File
appender.file.name = file
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %5p [%t] %c{2}: %m%n
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
logger.datanucleus.name = DataNucleus
logger.datanucleus.level = ERROR
"""


def write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Write settings as Hadoop's XML."""
    root = ElementTree.Element("configuration")
    for name, value in settings.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    file.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def java_arguments(
    home: Path, name: str, heap: str, class_path: Sequence[Path], main: Sequence[str], options: Sequence[str] = ()
) -> list[str]:
    """The arguments of a Java process that belongs to a run.

    Args:
        home: The run's home; its directory ``conf`` comes first on the class path.
        name: The process's name: its log becomes ``log/name.log``.
        heap: The most memory of its heap, as Java spells it.
        class_path: The jars.
        main: The class to run, and that class's arguments.
        options: Further options of Java.
    """
    conf, temporary = home / "conf", home / "tmp"
    conf.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    logging = conf / "log4j2.properties"
    logging.write_text(_LOG4J, encoding="utf-8")
    return [
        *(f"-Xmx{heap}", *BRISK, *OPENS),
        *("-Duser.timezone=UTC", f"-Djava.io.tmpdir={temporary}"),
        *(f"-Dlog4j.configurationFile={logging}", f"-Dlog.file={home / 'log' / f'{name}.log'}"),
        *options,
        *("-cp", ":".join(map(str, [conf, *class_path]))),
        *main,
    ]


def environment_of(home: Path) -> dict[str, str]:
    """Where Hive's processes look for their settings."""
    homes = dict.fromkeys(("HIVE_HOME", "METASTORE_HOME"), str(home))
    return homes | dict.fromkeys(("HIVE_CONF_DIR", "METASTORE_CONF_DIR", "HADOOP_CONF_DIR"), str(home / "conf"))


def hadoop_settings(home: Path) -> dict[str, str]:
    return {"fs.defaultFS": "file:///", "hadoop.tmp.dir": f"{home}/tmp/hadoop"}


def hive_settings(home: Path, *, metastore: int, hiveserver2: int, database: Mapping[str, str]) -> dict[str, str]:
    """The settings that the processes of a Hive 4.0 share. Nothing compacts; whoever shall do so is told on his own.

    Args:
        home: The run's home.
        metastore: The metastore's port.
        hiveserver2: HiveServer2's port.
        database: The settings that name the metastore's database.
    """
    return (
        _metastore(home, metastore)
        | dict(database)
        | _transactions()
        | _hiveserver2(home, hiveserver2)
        | _queries(home)
        | _tez(home)
    )


def _metastore(home: Path, port: int) -> dict[str, str]:
    return {
        "hive.metastore.uris": f"thrift://127.0.0.1:{port}",
        "metastore.thrift.bind.host": "127.0.0.1",
        # HiveServer2 starts beside the metastore, and has to wait for it.
        "hive.metastore.connect.retries": "120",
        "hive.metastore.client.connect.retry.delay": "1s",
        "hive.metastore.client.socket.timeout": "600s",
        "hive.metastore.warehouse.dir": f"file://{home}/warehouse",
        "hive.metastore.warehouse.external.dir": f"file://{home}/external",
        "hive.metastore.event.db.notification.api.auth": "false",
        "metastore.housekeeping.threads.on": "false",
    }


def _transactions() -> dict[str, str]:
    return {
        "hive.support.concurrency": "true",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "metastore.compactor.initiator.on": "false",
        "metastore.compactor.cleaner.on": "false",
        "metastore.compactor.worker.threads": "0",
        "metastore.compactor.check.interval": "5s",
        "hive.compactor.check.interval": "5s",
        "hive.compactor.worker.sleep.time": "500ms",
        "hive.compactor.worker.max.sleep.time": "500ms",
        "hive.compactor.cleaner.run.interval": "1000ms",
    }


def _hiveserver2(home: Path, port: int) -> dict[str, str]:
    return {
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.server2.thrift.port": str(port),
        "hive.server2.webui.port": "0",
        "hive.server2.authentication": "NONE",
        "hive.server2.enable.doAs": "false",
        "hive.server2.idle.session.timeout": "0",
        "hive.server2.tez.initialize.default.sessions": "false",
        "hive.server2.materializedviews.registry.impl": "DUMMY",
        "hive.server2.logging.operation.log.location": f"{home}/tmp/operations",
        "hive.scheduled.queries.executor.enabled": "false",
        "hive.notification.event.poll.interval": "0s",
    }


def _queries(home: Path) -> dict[str, str]:
    return {
        "hive.exec.dynamic.partition.mode": "nonstrict",
        "hive.exec.scratchdir": f"file://{home}/scratch",
        "hive.exec.local.scratchdir": f"{home}/tmp/scratch",
        "hive.exec.submit.local.task.via.child": "false",
        "hive.downloaded.resources.dir": f"{home}/tmp/resources",
        "hive.querylog.location": f"{home}/tmp/queries",
        "hive.user.install.directory": f"file://{home}/tmp/install",
        "hive.jar.directory": f"file://{home}/tmp/install",
        # A test wants to know what is in the table now.
        "hive.query.results.cache.enabled": "false",
    }


def _tez(home: Path) -> dict[str, str]:
    """Tez inside the process that asks, with no cluster and no sockets."""
    return {
        "hive.execution.engine": "tez",
        "hive.llap.execution.mode": "none",
        "hive.tez.container.size": "512",
        "hive.tez.exec.inplace.progress": "false",
        "tez.local.mode": "true",
        "tez.local.mode.without.network": "true",
        "tez.ignore.lib.uris": "true",
        "tez.staging-dir": f"{home}/tmp/tez",
        "tez.am.resource.memory.mb": "512",
        "tez.task.resource.memory.mb": "512",
        # With more than one at a time, Tez 0.10 loses rows in local mode.
        "tez.am.inline.task.execution.max-tasks": "1",
        "tez.runtime.optimize.local.fetch": "true",
        "tez.runtime.io.sort.mb": "64",
        "tez.runtime.unordered.output.buffer.size-mb": "16",
        "tez.history.logging.service.class": "org.apache.tez.dag.history.logging.impl.SimpleHistoryLoggingService",
        "tez.simple.history.logging.dir": f"{home}/tmp/tez-history",
    }
