"""A process that dies between writing and committing: run by test_kill.py with the warehouse and a statement."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import acidsql
from tests.oracle.small_spark import small_spark


def main(warehouse: str, statement: str) -> None:
    spark = small_spark()
    acid = acidsql.connect(spark, warehouse=warehouse, settings={"hive.txn.timeout": "1s"})

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    type(acid.metastore).commit_txn = die  # type: ignore[method-assign]
    acid.sql(statement)


if __name__ == "__main__":
    main(*sys.argv[1:])
