"""The directory tree of a table, as the tests compare it."""

from __future__ import annotations

import os
from pathlib import Path

_NOTE = "_acidsql_history_"
"""What a cleaner leaves for those who read changes (:mod:`acidsql.format.history`)."""


def tree(path: Path | str) -> list[str]:
    """Paths of all files below a directory, relative to it, sorted, but for the notes of cleaners."""
    found = []
    for folder, _, files in os.walk(path):
        found += [os.path.relpath(os.path.join(folder, f), path) for f in files if not f.startswith(_NOTE)]
    return sorted(found)


def shown(directory: Path) -> list[str]:
    """What there is in a directory, sorted, but for hidden files and the notes of cleaners."""
    return sorted(p.name for p in directory.iterdir() if not p.name.startswith((".", _NOTE)))


def with_version(*directories: str) -> list[str]:
    """The tree of directories that hold one bucket file and the version file each."""
    return sorted(f"{d}/{f}" for d in directories for f in ("_orc_acid_version", "bucket_00000"))
