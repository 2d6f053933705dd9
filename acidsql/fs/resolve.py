"""From a location as users and Hive write it to a file system and a path."""

from __future__ import annotations

import os
import re

from acidsql.errors import UnsupportedError
from acidsql.fs.local import LocalFileSystem
from acidsql.fs.protocol import FileSystem

_LOCAL = LocalFileSystem()
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def resolve(location: str) -> tuple[FileSystem, str]:
    """The file system of a location and the path in it.

    Args:
        location: ``/a/b``, a relative path, ``file:/a/b`` or ``file:///a/b``. Percent signs are taken literally, as
            Hadoop's ``Path`` takes them.

    Raises:
        UnsupportedError: When the scheme has no file system here.
    """
    scheme = _SCHEME.match(location)
    if scheme is None:
        return _LOCAL, os.path.abspath(location)
    if scheme[1].lower() == "file":
        return _LOCAL, os.path.normpath("/" + location[scheme.end() :].lstrip("/"))
    raise UnsupportedError(
        f"No file system for {location!r}: only local paths and file: locations are supported",
        hint="Use a local path for the warehouse and for LOCATION.",
    )


def join(base: str, *names: str) -> str:
    """A path below another, with single slashes between."""
    return "/".join([base.rstrip("/"), *names])


def spark_path(path: str) -> str:
    """The form of a local path that Spark reads literally (a ``file:`` URI as Hadoop's ``Path`` takes it)."""
    return "file:" + path
