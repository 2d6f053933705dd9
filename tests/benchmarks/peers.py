"""The peers benchmark harness, as programs beside it use it: its engines, and ours, each in a process of its own."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def generate(peers: Path, rows: int | str) -> None:
    """Have the source of so many rows made, unless it is there."""
    source = [sys.executable, str(peers / "bench.py"), "--one", "--engines", "gen", "--scales", str(rows)]
    subprocess.run(source, check=True)


@contextmanager
def engine_at_work(peers: Path, name: str, folder: str) -> Iterator[tuple[Any, Any, Path]]:
    """The harness's module, an engine, and the directory of this name that it works in, which is empty before and gone
    after it."""
    sys.path.insert(0, str(peers))
    import bench as harness  # type: ignore[import-not-found]

    engines = {**harness.all_engines(), **runpy.run_path(str(HERE / "adapter.py"))["ENGINES"]}
    os.chdir(harness.HERE)
    work = Path(harness.HERE, "tmp", folder)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield harness, engines[name](str(work)), work
    finally:
        shutil.rmtree(work, ignore_errors=True)
