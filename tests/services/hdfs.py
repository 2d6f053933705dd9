"""An HDFS for tests: a namenode and a datanode in one Java process, on the loopback address alone.

They come from Maven Central and need Java 17 and some 400 MB of memory. Every start has a fresh and empty file system,
which is gone afterwards; whoever asks is its superuser.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from tests.services import maven, runs
from tests.services.java import BRISK, OPENS, NoJavaError, find_java
from tests.services.runs import Run, ServiceError

VERSION = "3.4.2"
LOCK = Path(__file__).with_name(f"hdfs-{VERSION}.lock")
_KIND = "hdfs"
_SECONDS = 120.0
_CLUSTER = "org.apache.hadoop.test.MiniDFSClusterManager"


def start_hdfs(cache: Path | None = None) -> Hdfs:
    """Start an HDFS and wait until it takes files.

    Args:
        cache: Where the jars and the runs' homes are; :func:`tests.services.maven.default_cache` if left out.

    Raises:
        ServiceError: When it does not come up, or there is no Java for it.
        DownloadError: When a jar cannot be had.
    """
    root = cache or maven.default_cache()
    try:
        java = find_java()
    except NoJavaError as e:
        raise ServiceError(str(e)) from e
    jars = maven.jars(LOCK, root / "jars")
    hdfs = Hdfs(Run.new(_KIND, root / "runs"))
    try:
        hdfs.start(java, [str(jar) for jar in jars] + [str(_jars_of_spark() / "*")])
    except BaseException:
        hdfs.stop()
        raise
    return hdfs


class Hdfs:
    """A running HDFS.

    Attributes:
        uri: Its root, ``hdfs://127.0.0.1:port``, once it was started.
    """

    uri: str

    def __init__(self, run: Run) -> None:
        self._run = run

    def start(self, java: Path, class_path: list[str]) -> None:
        """Start the process and wait until the datanode has reported to the namenode."""
        details = self._run.home / "details.json"
        temporary = self._run.home / "tmp"
        temporary.mkdir()
        arguments = [
            "-Xmx384m",
            *BRISK,
            *OPENS,
            f"-Djava.io.tmpdir={temporary}",
            f"-Dtest.build.data={self._run.home / 'data'}",
            *("-cp", ":".join(class_path), _CLUSTER),
            *("-format", "-datanodes", "1", "-nnport", "0", "-writeDetails", str(details)),
        ]
        self._run.launch(_KIND, java, arguments, runs.environment())
        self._run.wait(_KIND, lambda: _port(details) is not None, _SECONDS, "its first answer")
        self.uri = f"hdfs://127.0.0.1:{_port(details)}"

    def stop(self) -> None:
        """End the process and remove its files."""
        self._run.stop()


def _port(details: Path) -> int | None:
    """The namenode's port, which it chose itself; None until it has written it down."""
    try:
        return int(json.loads(details.read_text(encoding="utf-8"))["namenode_port"])
    except (OSError, ValueError):
        return None


def _jars_of_spark() -> Path:
    """PySpark brings the libraries that Hadoop's shaded jars leave out: logging and Snappy."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ServiceError("PySpark is not installed")
    return Path(spec.origin).parent / "jars"
