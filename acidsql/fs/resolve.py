"""From a location as users and Hive write it to a file system and a path.

Inside acidsql a path without a scheme is a local file, always. Where users write a location, Spark's rule holds: there
it stands on Hadoop's default file system, and :func:`qualify` puts that before it.
"""

from __future__ import annotations

import os
import posixpath
import re

from acidsql.errors import UnsupportedError
from acidsql.fs.jvm import attached, needed
from acidsql.fs.local import LocalFileSystem
from acidsql.fs.protocol import FileSystem

_LOCAL = LocalFileSystem()
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ONE_STEP = ("hdfs", "viewfs", "webhdfs", "swebhdfs", "ofs")
"""Besides the local one."""
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", re.DOTALL)


def absolute(location: str) -> str:
    """The full path of a location in acidsql's own form; no file system is asked.

    Args:
        location: ``/a/b``, a relative path, ``file:/a/b``, ``file:///a/b``, ``hdfs://host:8020/a/b`` and the like.
            Percent signs are taken literally, as Hadoop's ``Path`` takes them.

    Returns:
        ``/a/b`` for local files, a whole URI (``hdfs://host:8020/a/b``) for all others.
    """
    uri = _URI.match(location)
    if uri is None:
        return os.path.abspath(location)
    scheme, authority, path = uri.groups()
    if scheme.lower() == "file":
        return os.path.normpath("/" + location[len("file:") :].lstrip("/"))
    return _root(scheme, authority) + posixpath.normpath("/" + path.lstrip("/"))


def resolve(location: str) -> tuple[FileSystem, str]:
    """The file system of a location and the path in it. For local files this is all Python.

    Args:
        location: As for :func:`absolute`.

    Raises:
        UnsupportedError: When the scheme is not a local one and there is no Spark yet, or its Hadoop has no such file
            system.
        StorageError: When the file system cannot be opened.
    """
    path = absolute(location)
    if is_local(path):
        return _LOCAL, path
    uri = _URI.match(path)
    hadoop = needed()
    assert uri is not None
    scheme, authority, below = uri.groups()
    if hadoop is None:
        raise UnsupportedError(
            f"{location} cannot be accessed: files that are not local need Spark, and no session is running"
        )
    filesystem = hadoop.open(_root(scheme, authority))
    if not authority and "//" in filesystem.root:  # hdfs:/a is on the default one of its kind
        path = filesystem.root + below
    return filesystem, path


def qualify(location: str) -> str:
    """The full path of a location that a user wrote.

    As everywhere in Spark, a location without a scheme stands on the default file system (``fs.defaultFS``); that is
    the local one unless the cluster's configuration says otherwise, or there is no Spark.

    Raises:
        StorageError: When the default file system cannot be opened.
    """
    hadoop = attached()
    if hadoop is None or _SCHEME.match(location):
        return resolve(location)[1]
    default = hadoop.default()
    if absolute(default) == "/":
        return absolute(location)
    return resolve(_under(default, location))[1]


def _under(default: str, location: str) -> str:
    """A location without a scheme on the default file system; a relative one is in the user's home there."""
    uri = _URI.match(default)
    assert uri is not None
    root = _root(uri[1], uri[2])
    if location.startswith("/"):
        return root + location
    hadoop = attached()
    assert hadoop is not None
    return join(hadoop.open(root).home(), location)


def _root(scheme: str, authority: str | None) -> str:
    return f"{scheme.lower()}:" + (f"//{authority}" if authority else "")


def is_local(path: str) -> bool:
    """Whether a full path is one of the local file system."""
    return path.startswith("/")


def renames_in_one_step(location: str) -> bool:
    """Whether a directory is renamed in one step where it is; object stores copy it file by file."""
    path = absolute(location)
    return is_local(path) or path.partition(":")[0] in _ONE_STEP


def overlap(one: str, other: str) -> bool:
    """Whether one full path is the other, or below it."""
    a, b = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return a.startswith(b) or b.startswith(a)


def up_to(path: str, root: str) -> list[str]:
    """A full path and those of the directories above it, up to another one; itself alone where it is not below that."""
    if not path.startswith(f"{root}/"):
        return [path]
    below = path[len(root) + 1 :].split("/")
    return [join(root, *below[:depth]) for depth in range(len(below), 0, -1)] + [root]


def join(base: str, *names: str) -> str:
    """A path below another, with single slashes between."""
    return "/".join([base.rstrip("/"), *names])


def spark_path(path: str) -> str:
    """The form of a full path that Spark reads literally: a URI as Hadoop's ``Path`` takes it."""
    return "file:" + path if is_local(path) else path
