"""The directory tree of a table, as the tests compare it."""

from __future__ import annotations

import os
from pathlib import Path


def tree(path: Path | str) -> list[str]:
    """Paths of all files below a directory, relative to it, sorted."""
    found = []
    for folder, _, files in os.walk(path):
        found += [os.path.relpath(os.path.join(folder, f), path) for f in files]
    return sorted(found)


def with_version(*directories: str) -> list[str]:
    """The tree of directories that hold one bucket file and the version file each."""
    return sorted(f"{d}/{f}" for d in directories for f in ("_orc_acid_version", "bucket_00000"))
