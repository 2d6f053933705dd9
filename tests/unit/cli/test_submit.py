"""``submit.py`` as a script: it finds its package, and the package's modules hide none of Python's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import acidsql

SUBMIT = Path(acidsql.__file__).with_name("submit.py")


def submit(cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, SUBMIT, *args], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def test_its_help_comes_from_inside_the_package_too() -> None:
    done = submit(SUBMIT.parent, "--help")
    assert done.returncode == 0, done.stderr
    assert "spark-submit" in done.stdout
    assert "--hivevar" in done.stdout
    assert "--master" not in done.stdout


def test_a_wrong_command_line_is_refused_before_spark_starts(tmp_path: Path) -> None:
    refused = submit(tmp_path, "-e", "SELECT 1", "--conf", "spark.driver.memory=1g")
    assert refused.returncode == 2
    assert "to spark-submit" in refused.stderr
