"""A compactor that stops in the middle of each compaction: run by test_compactor_daemon.py.

``python -m tests.spark.stalled DIRECTORY HOST arguments of acidsql…``: a compaction makes the file ``begun`` in the
directory, and goes on when ``go`` is there.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path
from typing import Any

from acidsql.cli import main
from acidsql.compactor import compaction


def stall(place: Path) -> None:
    """Have compactions wait before they write their files."""
    write = compaction.run_tasks

    def run_tasks(*work: Any) -> Any:
        (place / "begun").touch()
        while not (place / "go").exists():
            time.sleep(0.02)
        return write(*work)

    compaction.run_tasks = run_tasks


if __name__ == "__main__":
    directory, host, *arguments = sys.argv[1:]
    stall(Path(directory))
    if host:
        socket.gethostname = lambda: host
    main(arguments)
