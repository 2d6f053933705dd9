"""The transaction that holds a query's files is kept alive from the first moment on, not only once it is planned."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import acidsql
from acidsql.commands.resolve.binding import Binding
from acidsql.metastore.embedded import EmbeddedMetastore
from tests.spark.answers import rows


def test_a_query_whose_planning_takes_long_sends_heartbeats_meanwhile(
    spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: set[int] = set()
    beat = threading.Condition()
    heartbeat, bind = EmbeddedMetastore.heartbeat_txns, Binding.query

    def heard(store: EmbeddedMetastore, txn_ids: Sequence[int]) -> tuple[list[int], list[int]]:
        with beat:
            alive.update(txn_ids)
            beat.notify_all()
        return heartbeat(store, txn_ids)

    def slow(self: Binding, *arguments: Any) -> Any:
        [own] = [txn.id for txn in self.env.metastore.show_txns()]
        with beat:
            assert beat.wait_for(lambda: own in alive, timeout=20)
        return bind(self, *arguments)

    with acidsql.connect(spark, warehouse=warehouse, settings={"hive.txn.timeout": "1s"}) as acid:
        acid.sql("CREATE TRANSACTIONAL TABLE t (id int)")
        acid.sql("INSERT INTO t VALUES (1)")
        monkeypatch.setattr(EmbeddedMetastore, "heartbeat_txns", heard)
        monkeypatch.setattr(Binding, "query", slow)
        assert rows(acid, "SELECT id FROM t") == [(1,)]
