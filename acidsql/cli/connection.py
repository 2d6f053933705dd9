"""The connection options of the command line, and the session opened with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import acidsql
from acidsql.session import start_spark

if TYPE_CHECKING:
    from acidsql.session import AcidSession

SPARK_PREFIX = "spark."


@dataclass(frozen=True)
class Connection:
    """Connection options.

    Attributes:
        conf: ``--conf``: names that begin with ``spark.`` are Spark's, all others are settings of acidsql.
    """

    warehouse: str | None = None
    metastore: str | None = None
    master: str | None = None
    database: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def for_spark(self) -> dict[str, str]:
        """Settings of Spark."""
        return {k: v for k, v in self.conf.items() if k.startswith(SPARK_PREFIX)}

    @property
    def settings(self) -> dict[str, str]:
        """Settings of acidsql."""
        return {k: v for k, v in self.conf.items() if not k.startswith(SPARK_PREFIX)}


@contextmanager
def open_session(connection: Connection, spark: SparkSession | None = None) -> Iterator[AcidSession]:
    """The session for these options, closed at the end."""
    for_spark, settings = connection.for_spark, connection.settings
    started = None
    if spark is None and (connection.master or for_spark):
        spark = started = start_spark(connection.warehouse, master=connection.master, conf=for_spark)
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
