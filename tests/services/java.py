"""The Java that the servers run on, and what they must be allowed there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

LEAST = 17
# From 24 on, Java has no security manager any more, and Hadoop 3.3 cannot tell who is logged in.
BELOW = 24

# Hive, Hadoop, DataNucleus and Kryo look into these packages of java.base by reflection.
_OPENED = (
    "java.io",
    "java.lang",
    "java.lang.invoke",
    "java.lang.ref",
    "java.lang.reflect",
    "java.math",
    "java.net",
    "java.nio",
    "java.nio.charset",
    "java.security",
    "java.text",
    "java.time",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.util.concurrent.locks",
    "java.util.regex",
    "java.util.zip",
    "jdk.internal.misc",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
OPENS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.sql/java.sql=ALL-UNNAMED",
    "--add-opens=java.management/javax.management=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.dns=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
)
# Servers that live for some minutes: the quick compiler and the plain collector start sooner and take less memory.
BRISK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


class NoJavaError(Exception):
    """Raised when there is no Java that the servers run on."""


@lru_cache(maxsize=1)
def find_java() -> Path:
    """The executable of a Java that the servers run on: JAVA_HOME's, that of the PATH, or one in the usual places.

    Raises:
        NoJavaError: When none of them fits.
    """
    seen = []
    for java in _candidates():
        version = _version(java)
        if LEAST <= version < BELOW:
            return java
        seen.append(f"{java} is {version or 'none'}")
    raise NoJavaError(
        f"Hive needs Java {LEAST} to {BELOW - 1}: set JAVA_HOME, or install one (Debian: openjdk-17-jre-headless). "
        + ("Found: " + ", ".join(seen) if seen else "There is no Java at all.")
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin/java")
    if on_path := shutil.which("java"):
        yield Path(on_path)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    yield from sorted(Path("/opt/homebrew/opt").glob("openjdk*/bin/java"))
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home/bin/java"))


def _version(java: Path) -> int:
    """The major version of a Java, 0 where it is none."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(match[1]) if match else 0
