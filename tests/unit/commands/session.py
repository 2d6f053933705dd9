"""A session without Spark: DDL runs as it is, and rows are written by the driver as a statement's are.

What asks Spark something finds one that knows no table and no view.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pyarrow as pa

from acidsql.commands.environment import Environment
from acidsql.commands.registry import execute
from acidsql.commands.transaction.run import write_transaction
from acidsql.compactor import Compactor
from acidsql.compactor.compaction import WorkerContext
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import LockComponent, LockType, Operation, TxnState
from acidsql.plan.target import Change, Target
from acidsql.plan.write import Writer
from acidsql.settings import Settings
from acidsql.sql.parser import parse_statement


class Session:
    """Tables have one column ``id int``, and a key ``k int`` where they are partitioned."""

    def __init__(self, warehouse: Path) -> None:
        warehouse.mkdir(parents=True, exist_ok=True)
        self.warehouse, spark = warehouse, MagicMock()
        spark.catalog.tableExists.return_value = False
        settings = Settings()
        self.metastore = EmbeddedMetastore(str(warehouse / "acidsql.db"), settings, str(warehouse))
        self.heartbeats = Heartbeats(self.metastore, self.metastore.txn_timeout)
        self.env = Environment(
            spark=spark,
            metastore=self.metastore,
            settings=settings,
            heartbeats=self.heartbeats,
            compactor=Compactor(WorkerContext(self.metastore, self.heartbeats, settings, "host", "user")),
            warehouse=str(warehouse),
            user="user",
            host="host",
            agent="tests",
        )
        sessions = self.env.__dict__["sessions"] = MagicMock()  # no Spark is asked
        sessions.user.is_temporary_view.return_value = False
        sessions.user.looks_along_a_path.return_value = False

    def close(self) -> None:
        self.heartbeats.close()
        self.metastore.close()

    def sql(self, text: str) -> None:
        execute(self.env, parse_statement(text), {})

    def insert(
        self, name: str, *values: int, part: int | None = None, before_publish: Callable[[], object] | None = None
    ) -> None:
        """Insert rows, into one partition where the table has any."""
        table = self.metastore.get_table("default", name)
        lock = LockComponent(LockType.SHARED_READ, "default", name, None, Operation.INSERT)
        with write_transaction(self.env, [lock]) as txn:
            target, staging = Target(table, txn.allocate_write_id(table), "zstd"), txn.stage(table)
            columns = {"c0": pa.array(values, pa.int32())}
            if part is not None:
                columns["k0"] = pa.array([str(part)] * len(values))
            Writer(self.env.sessions.own, target, staging, self.env.driver_limit).write_fetched(
                pa.table(columns), Change.INSERT
            )
            if before_publish is not None:
                before_publish()
            txn.publish(table, staging)

    def partitions(self, name: str) -> list[str]:
        """The values of the partitions."""
        return [p.values[0] for p in self.metastore.list_partitions("default", name)]

    def nothing_is_open(self) -> bool:
        """Whether no transaction and no lock is left."""
        opened = [txn for txn in self.metastore.show_txns() if txn.state is TxnState.OPEN]
        return not opened and not self.metastore.show_locks()
