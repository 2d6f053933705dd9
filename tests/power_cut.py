"""A disk whose power may be cut: what survives is what was synced before, names and contents apart.

It is the least that POSIX promises. A file's content survives if the file was synced after its last change; a name
survives if its directory was synced while the name stood in it. :meth:`Disk.lost` tells what would be gone now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acidsql.format.names import is_hidden
from acidsql.metastore.embedded import EmbeddedMetastore

Content = tuple[int, int]
"""Size and time of the last change."""


class Disk:
    """Records every fsync from now on; what is there already counts as safe."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.syncs = 0
        self._contents: dict[int, Content] = {}
        self._names: dict[int, set[tuple[str, int]]] = {}
        for directory, _, files in os.walk(root.parent):
            self._keep(directory)
            for name in files:
                self._keep(os.path.join(directory, name))
        fsync = os.fsync

        def recorded(descriptor: int) -> None:
            fsync(descriptor)
            self.syncs += 1
            self._keep(os.readlink(f"/proc/self/fd/{descriptor}"))

        monkeypatch.setattr(os, "fsync", recorded)

    def _keep(self, path: str) -> None:
        stat = os.stat(path)
        if os.path.isdir(path):
            self._names[stat.st_ino] = {(entry.name, entry.inode()) for entry in os.scandir(path)}
        else:
            self._contents[stat.st_ino] = (stat.st_size, stat.st_mtime_ns)

    def lost(self) -> list[str]:
        """What readers would look for below the root, and would not find, or find otherwise, after a power cut."""
        names = self._names.get(os.stat(self.root.parent).st_ino, set())
        if (self.root.name, os.stat(self.root).st_ino) not in names:
            return [str(self.root)]
        return [os.path.relpath(path, self.root) for path in self._lost(str(self.root))]

    def _lost(self, directory: str) -> Iterator[str]:
        safe = self._names.get(os.stat(directory).st_ino, set())
        for entry in os.scandir(directory):
            if (
                entry.name.startswith("_tmp_")
                or (is_hidden(entry.name) and entry.is_dir())
                or "acidsql.db" in entry.name
            ):
                continue
            if (entry.name, entry.inode()) not in safe:
                yield entry.path
            elif entry.is_dir():
                yield from self._lost(entry.path)
            else:
                stat = entry.stat()
                if self._contents.get(entry.inode()) != (stat.st_size, stat.st_mtime_ns):
                    yield entry.path


def watch_commits(monkeypatch: pytest.MonkeyPatch, disk: Disk) -> list[list[str]]:
    """What would be lost at the beginning of each commit of a transaction that has taken a write id, or compacts."""
    seen: list[list[str]] = []
    commit = EmbeddedMetastore.commit_txn

    def watched(self: EmbeddedMetastore, txn_id: int, *args: Any) -> None:
        seen.append(disk.lost())
        commit(self, txn_id, *args)

    monkeypatch.setattr(EmbeddedMetastore, "commit_txn", watched)
    return seen
