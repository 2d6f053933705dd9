"""Running acidsql in a process of its own, with a Spark as small as it gets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

ROOT = Path(__file__).parents[2]
SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
_BRISK = Path(__file__).parent / "brisk"
"""Spark's configuration for such a process, where Spark interprets queries."""
SMALL = (
    "--conf",
    "spark.driver.memory=1g",
    "--conf",
    "spark.ui.enabled=false",
    "--conf",
    "spark.driver.host=127.0.0.1",
)


def environment() -> dict[str, str]:
    """This process's environment, with the project on Python's path and the same Python for Spark."""
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH")) if p)
    made = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    if os.environ.get("ACIDSQL_TEST_CODEGEN") != "true":  # see tests/conftest.py
        made["SPARK_CONF_DIR"] = str(_BRISK)
    return made


def run(command: Sequence[str | os.PathLike[str]], cwd: Path, *, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=cwd, env=environment(), input=typed, capture_output=True, text=True, check=False, timeout=300
    )


def on_small_disk(place: Path, megabytes: int) -> list[str]:
    """What a command begins with that finds a file system of so many megabytes at a place, which nobody else sees.

    A mount namespace of its own has it; the test is skipped where the system has none.
    """
    mounted = f'mount -t tmpfs -o size={megabytes}m none "$1" && shift && exec "$@"'
    unshared = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, "sh", str(place)]
    if subprocess.run([*unshared, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a file system of his own")
    return unshared
