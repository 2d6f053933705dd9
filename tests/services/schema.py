"""The database of a metastore: one of PostgreSQL with the schema that Hive's own tool makes.

Not Hive's own default, an embedded Derby: there commit_txn and check_lock may wait for each other until they time out.
For Derby alone, Hive's ``TxnHandler`` shuts one out from the other by a lock of Java, and holds it while it waits for
a row that the other has locked.

A metastore that starts on an empty database makes its tables by itself, but not those of its transactions. Hive's
scripts have all of them; they come with the distribution of the stand-alone metastore, and with no jar.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.services.java import BRISK, OPENS, find_java
from tests.services.maven import publish
from tests.services.postgres import USER, PostgresServer
from tests.services.postgres import VERSION as POSTGRES_VERSION
from tests.services.runs import ServiceError, environment

DRIVER = "org.postgresql.Driver"

_WANTED = ("lib/", "scripts/metastore/upgrade/postgres/")


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
            publish(top, target)
    return target


def empty_metastore(distribution: Path, tool: str, class_path: Sequence[Path], target: Path, cache: Path) -> None:
    """Make what a PostgreSQL server with Hive's schema and nothing in it begins with: its template.

    Args:
        distribution: The unpacked distribution that has the scripts.
        tool: The class of its schema tool.
        class_path: What the tool needs beside the distribution's own jars, PostgreSQL's driver among it.
        target: Where the template is made.
        cache: Where PostgreSQL and its run are.

    Raises:
        ServiceError: When the tool fails, or PostgreSQL does not come up.
    """
    with PostgresServer(cache=cache) as server, tempfile.TemporaryDirectory(dir=cache) as scratch:
        jars = [*sorted((distribution / "lib").glob("*.jar")), *class_path]
        Path(scratch, "metastore-site.xml").write_text("<configuration/>\n", encoding="utf-8")
        arguments = Path(scratch, "arguments")
        arguments.write_text("-cp\n" + f'"{":".join(map(str, [Path(scratch), *jars]))}"\n', encoding="utf-8")
        made = subprocess.run(
            [
                str(find_java()),
                *(*OPENS, *BRISK, f"@{arguments}", tool),
                *("-dbType", "postgres", "-initSchema", "-userName", USER, "-passWord", "none"),
                *("-driver", DRIVER, "-url", server.jdbc_url()),
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
        server.freeze(target)


def template_of(version: str, cache: Path) -> Path:
    """Where the template of a Hive version's empty metastore is. PostgreSQL reads none of another version's."""
    return cache / f"metastore-{version}-postgres-{POSTGRES_VERSION}"


def database_settings(server: PostgresServer) -> dict[str, str]:
    """What a metastore is told about its database."""
    return {
        "javax.jdo.option.ConnectionURL": server.jdbc_url(),
        "javax.jdo.option.ConnectionDriverName": DRIVER,
        "javax.jdo.option.ConnectionUserName": USER,
    }
