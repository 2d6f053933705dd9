"""A process of a herd (:mod:`tests.isolation.herd`): some sessions at work, which write a journal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from acidsql.metastore.embedded import sqlite
from tests.isolation.herd import Plan
from tests.isolation.journal import Journal
from tests.isolation.run import Faults, Run
from tests.oracle.small_spark import small_spark


def main(given: dict[str, Any]) -> None:
    plan, number, clock = Plan.of(given["plan"]), given["number"], Path(given["clock"])
    real = sqlite.system_ms

    def now() -> int:
        """The clock of the machine, as it has been set."""
        return real() + int(clock.read_text() or 0)

    with patch.object(sqlite, "system_ms", now):
        spark = small_spark(spark__local__dir=given["local"])
        journal = Journal(str(number), Path(given["journal"]))
        run = Run(lambda: plan.connect(spark), plan.seed, Faults(fails=True), journal, number)
        run.go(plan.sessions, given["seconds"])
        spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
