"""The database of a metastore: an embedded Derby with the schema that Hive's own tool makes.

A metastore that starts on an empty database makes its tables by itself, but not those of its transactions. Hive's
scripts have all of them; they come with the distribution of the stand-alone metastore, and with no jar.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.services.java import BRISK, OPENS, find_java
from tests.services.runs import ServiceError, environment

_WANTED = ("lib/", "scripts/metastore/upgrade/derby/")


def unpacked(archive: Path, target: Path) -> Path:
    """A distribution of the stand-alone metastore, unpacked once: its directories ``lib`` and ``scripts``."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch, tarfile.open(archive) as files:
            members = [member for member in files if member.name.partition("/")[2].startswith(_WANTED)]
            # The archive's checksum is known; where Python has the filter, it wants to be named.
            safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            files.extractall(scratch, members, **safe)
            (top,) = Path(scratch).iterdir()
            _publish(top, target)
    return target


def empty_metastore(distribution: Path, tool: str, class_path: Sequence[Path], target: Path) -> Path:
    """A Derby database with Hive's schema and nothing in it, made once: to be copied for every run.

    Args:
        distribution: The unpacked distribution that has the scripts.
        tool: The class of its schema tool.
        class_path: What the tool needs beside the distribution's own jars.
        target: Where the database is made.

    Raises:
        ServiceError: When the tool fails.
    """
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            database = Path(scratch, "metastore")
            jars = [*sorted((distribution / "lib").glob("*.jar")), *class_path]
            Path(scratch, "metastore-site.xml").write_text("<configuration/>\n", encoding="utf-8")
            arguments = Path(scratch, "arguments")
            arguments.write_text("-cp\n" + f'"{":".join(map(str, [Path(scratch), *jars]))}"\n', encoding="utf-8")
            made = subprocess.run(
                [
                    str(find_java()),
                    *(*OPENS, *BRISK, f"@{arguments}", tool),
                    *("-dbType", "derby", "-initSchema", "-userName", "APP", "-passWord", "none"),
                    *("-driver", "org.apache.derby.jdbc.EmbeddedDriver"),
                    *("-url", f"jdbc:derby:;databaseName={database};create=true"),
                ],
                cwd=scratch,
                env=environment(METASTORE_HOME=str(distribution)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if made.returncode:
                raise ServiceError(f"Hive's schema tool failed:\n{made.stdout[-4000:]}")
            _publish(database, target)
    return target


def _publish(made: Path, target: Path) -> None:
    """Give a finished directory its name, unless somebody else was faster."""
    try:
        os.rename(made, target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(made)
