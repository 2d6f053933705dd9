"""Jars from Maven Central, for the servers that tests start: named and checksummed by lock files, fetched once.

A lock file has one artifact a line, ``group:artifact:version sha256`` or ``group:artifact:version:classifier sha256``;
``@tar.gz`` behind the coordinates names another kind of file than a jar. Empty lines and lines that begin with ``#``
are passed over. They are fetched by Ivy, the client that PySpark itself brings. The environment variable ``MAVEN_REPO``
names another repository than Maven Central.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import quoteattr

from tests.services.java import find_java

_AT_ONCE = 6
_COORDINATES = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?(?:@([\w.-]+))?")
_LAYOUT = "[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="acidsql" module="services"/>
<configurations><conf name="default"/></configurations>
<dependencies>
{}
<conflict manager="all"/>
</dependencies>
</ivy-module>
"""
_SETTINGS = """<ivysettings>
<settings defaultResolver="given"/>
<resolvers><ibiblio name="given" m2compatible="true" root={}/></resolvers>
</ivysettings>
"""


class DownloadError(Exception):
    """Raised when an artifact cannot be had, or is not the one that the lock file means."""


@dataclass(frozen=True)
class Artifact:
    """One line of a lock file."""

    group: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str

    @property
    def path(self) -> str:
        """Where a repository has it, relative to its root."""
        return f"{self.group.replace('.', '/')}/{self._below_group}"

    @property
    def retrieved(self) -> str:
        """Where Ivy puts it."""
        return f"{self.group}/{self._below_group}"

    @property
    def _below_group(self) -> str:
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}/{self.version}/{self.name}-{self.version}{tail}.{self.extension}"


def default_cache() -> Path:
    """The directory that downloads and the servers' homes stay in between runs.

    It is ``ACIDSQL_TEST_CACHE``, or a directory in /var/tmp, which outlives a reboot. Not in the user's cache folder:
    below a directory whose name begins with a dot or an underscore Hive reads ACID tables as empty.
    """
    given = os.environ.get("ACIDSQL_TEST_CACHE")
    cache = Path(given).absolute() if given else Path(f"/var/tmp/acidsql-tests-{os.getuid()}")
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    if cache.stat().st_uid != os.getuid():
        raise DownloadError(f"{cache} belongs to somebody else: set ACIDSQL_TEST_CACHE to a directory of your own")
    return cache


def read_lock(lock: Path) -> list[Artifact]:
    """The artifacts of a lock file."""
    return list(_artifacts(lock))


def _artifacts(lock: Path) -> Iterator[Artifact]:
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        coordinates, _, sha256 = line.partition(" ")
        match = _COORDINATES.fullmatch(coordinates)
        if match is None or not re.fullmatch(r"[0-9a-f]{64}", sha256.strip()):
            raise DownloadError(f"{lock}:{number} is not 'group:artifact:version sha256'")
        group, name, version, classifier, extension = match.groups()
        yield Artifact(group, name, version, classifier or "", extension or "jar", sha256.strip())


def jars(lock: Path, cache: Path | None = None) -> list[Path]:
    """The files of a lock file, in its order, downloaded where they are not in the cache yet.

    Args:
        lock: The lock file.
        cache: Where they are kept, laid out as in a Maven repository; ``jars`` in :func:`default_cache` if left out.

    Raises:
        DownloadError: When one cannot be downloaded, or its checksum is another.
        NoJavaError: When there is no Java that could fetch them.
    """
    return fetched(read_lock(lock), cache if cache is not None else default_cache() / "jars")


def fetched(artifacts: Sequence[Artifact], root: Path) -> list[Path]:
    """The files of artifacts, in their order; as :func:`jars`."""
    missing = [a for a in artifacts if not (root / a.path).exists()]  # it gets there once its checksum is right
    if missing:
        root.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(lambda some: _fetch(some, root), _shares(missing)))
    return [root / artifact.path for artifact in artifacts]


def publish(made: Path, target: Path) -> None:
    """Give a finished directory of the cache its name, unless somebody else was faster."""
    try:
        os.rename(made, target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(made)


def _shares(artifacts: Sequence[Artifact]) -> list[Sequence[Artifact]]:
    """The work of each Ivy: it fetches one file after the other."""
    ordered = sorted(artifacts, key=lambda a: (a.name, a.group))
    size = max(1, -(-len(ordered) // _AT_ONCE))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def _fetch(artifacts: Sequence[Artifact], root: Path) -> None:
    with TemporaryDirectory(dir=root, prefix=".fetch-") as folder:
        _fetch_into(artifacts, Path(folder), root)


def _fetch_into(artifacts: Sequence[Artifact], folder: Path, root: Path) -> None:
    (folder / "ivy.xml").write_text(ivy_file(artifacts), encoding="utf-8")
    command = [find_java(), "-jar", str(_ivy()), "-ivy", str(folder / "ivy.xml"), "-cache", str(folder / "ivy")]
    if repository := os.environ.get("MAVEN_REPO"):
        (folder / "settings.xml").write_text(_SETTINGS.format(quoteattr(repository)), encoding="utf-8")
        command += ["-settings", str(folder / "settings.xml")]
    done = subprocess.run(
        [*command, "-retrieve", f"{folder}/out/{_LAYOUT}"], capture_output=True, text=True, check=False
    )
    for artifact in artifacts:
        found = folder / "out" / artifact.retrieved
        if not found.exists():
            raise DownloadError(f"Cannot download {artifact.path}:\n{(done.stdout + done.stderr)[-3000:]}")
        if (sha256 := _sha256(found)) != artifact.sha256:
            raise DownloadError(f"{artifact.path} has the SHA-256 {sha256}, the lock file says {artifact.sha256}")
        target = root / artifact.path
        target.parent.mkdir(parents=True, exist_ok=True)
        found.replace(target)


def ivy_file(artifacts: Sequence[Artifact]) -> str:
    """What Ivy reads: these artifacts and nothing that they depend on, different versions of one side by side."""
    modules: dict[tuple[str, str, str], list[Artifact]] = {}
    for artifact in artifacts:
        modules.setdefault((artifact.group, artifact.name, artifact.version), []).append(artifact)
    lines = []
    for (group, name, version), wanted in modules.items():
        lines.append(f'<dependency org="{group}" name="{name}" rev="{version}" transitive="false" conf="default->*">')
        for one in wanted:
            classifier = f' m:classifier="{one.classifier}"' if one.classifier else ""
            lines.append(f'<artifact name="{name}" type="{one.extension}" ext="{one.extension}"{classifier}/>')
        lines.append("</dependency>")
    return _MODULE.format("\n".join(lines))


def _ivy() -> Path:
    """The client of Maven repositories that PySpark brings for ``--packages``."""
    spec = find_spec("pyspark")
    folders = spec.submodule_search_locations if spec is not None else None
    found = sorted(Path(folders[0], "jars").glob("ivy-*.jar")) if folders else []
    if not found:
        raise DownloadError("PySpark, whose Ivy fetches the jars, is not installed")
    return found[-1]


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as data:
        while block := data.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
