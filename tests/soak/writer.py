"""A writer in a process of its own: ``python -m tests.soak.writer WAREHOUSE SETTINGS``.

Takes ``[statement, whether to die before its commit]`` from standard input, line by line, and answers ``[kind, …]``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import acidsql
from acidsql.errors import AcidError, WriteConflict
from acidsql.session import AcidSession, start_spark


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def answer(acid: AcidSession, text: str) -> list[Any]:
    try:
        [row] = acid.sql(text).collect()
    except WriteConflict as e:
        return ["conflict", str(e)]
    except AcidError as e:
        return ["failed", f"{type(e).__name__}: {e}"]
    return ["done", [row.num_updated_rows, row.num_deleted_rows, row.num_inserted_rows]]


def main(warehouse: str, settings: str) -> None:
    small = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1", "spark.log.level": "OFF"}
    spark = start_spark(warehouse, master="local[1]", conf=small)
    acid = acidsql.connect(spark, warehouse=warehouse, settings=json.loads(settings))
    print("ready", flush=True)
    for line in sys.stdin:
        text, dies = json.loads(line)
        if dies:
            type(acid.metastore).commit_txn = die  # type: ignore[method-assign]
        print(json.dumps(answer(acid, text)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
