"""Where the command line asks to connect to, and the session made from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import acidsql
from acidsql import fs

if TYPE_CHECKING:
    from acidsql.session import AcidSession

SPARK_PREFIX = "spark."


@dataclass(frozen=True)
class Connection:
    """Where to connect to.

    Attributes:
        conf: ``--conf``: names that begin with ``spark.`` are Spark's, all others are settings of acidsql.
    """

    warehouse: str = "warehouse"
    metastore: str | None = None
    master: str | None = None
    database: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def open_session(connection: Connection, spark: SparkSession | None = None) -> Iterator[AcidSession]:
    """The session that the command line asks for, closed at the end."""
    for_spark = {k: v for k, v in connection.conf.items() if k.startswith(SPARK_PREFIX)}
    settings = {k: v for k, v in connection.conf.items() if not k.startswith(SPARK_PREFIX)}
    started = None
    if spark is None and (connection.master or for_spark):
        spark = started = _start_spark(connection, for_spark)
    try:
        with acidsql.connect(
            spark, warehouse=connection.warehouse, metastore=connection.metastore, settings=settings
        ) as session:
            if connection.database is not None:
                session.sql(f"USE `{connection.database.replace('`', '``')}`")
            yield session
    finally:
        if started is not None:
            started.stop()


def _start_spark(connection: Connection, conf: Mapping[str, str]) -> SparkSession:
    """A Spark session as :func:`acidsql.connect` starts one, with the user's own master and configuration on top."""
    logging = Path(acidsql.__file__).with_name("log4j2.properties").as_uri()
    filesystem_root = fs.resolve(connection.warehouse)[1]
    builder = (
        SparkSession.builder.appName("acidsql")
        .master(connection.master or "local[*]")
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC -Dlog4j2.configurationFile={logging}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", fs.spark_path(fs.join(filesystem_root, "spark")))
    )
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
