"""Where the files of the tests are: in memory, where a file system in memory has room for them.

Whatever is committed is synced to the disk, some ten times a statement: on a disk the tests wait for that half of
their time. ``TMPDIR`` or ``--basetemp`` say otherwise.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_ROOM = 3 * 1024**3
"""Bytes: what a run needs at most, several times over."""


def use_memory(config: pytest.Config) -> None:
    """Let this process and those that it starts make their temporary directories in memory, if nothing else is said."""
    if "TMPDIR" in os.environ or config.getoption("basetemp"):
        return
    if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)
