"""The Java classes behind Hadoop's file systems, and what their exceptions mean here."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from acidsql.errors import AcidError, StorageError

DIRECT = 6000
"""Most bytes that a call of the JVM may answer. Beyond 8192 characters (py4j makes Base64 of bytes) Java sends the
answer in two pieces, the second of which waits for the delayed acknowledgement of the first: 40 ms every time."""


class HadoopClasses:
    """The classes in use, looked up once: py4j asks the JVM for every part of a dotted name."""

    def __init__(self, jvm: Any) -> None:
        hadoop, java = jvm.org.apache.hadoop, jvm.java
        self.path = hadoop.fs.Path
        self.file_context = hadoop.fs.FileContext
        self._version = hadoop.util.VersionInfo.getVersion
        self._array_writable = hadoop.io.ArrayWritable
        self._bytes_out = java.io.ByteArrayOutputStream
        self._data_out = java.io.DataOutputStream
        self._file_out = java.io.FileOutputStream
        self._array = java.lang.reflect.Array.newInstance
        self._copy = java.lang.System.arraycopy
        self._writable = java.lang.Class.forName("org.apache.hadoop.io.Writable")
        option = java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename")
        self.no_rename_options = self._array(option, 0)

    def version(self) -> str:
        """Version of Hadoop."""
        return str(self._version())

    def written(self, objects: Any) -> bytes:
        """An array of any kind of ``Writable`` as ``ArrayWritable`` writes it: their number, then each of them."""
        count = len(objects)
        writables = self._array(self._writable, count)  # py4j takes no array of a subclass for one of its superclass
        self._copy(objects, 0, writables, 0, count)
        out = self._bytes_out()
        self._array_writable(self._writable, writables).write(self._data_out(out))
        if out.size() <= DIRECT:
            return bytes(out.toByteArray())

        def write(path: str) -> None:
            file = self._file_out(path)
            try:
                out.writeTo(file)
            finally:
                file.close()

        return through_file(write)


def through_file(write: Callable[[str], None]) -> bytes:
    """Bytes that Java writes to a local file: the JVM of PySpark's driver runs on this machine, as this user."""
    with tempfile.TemporaryDirectory(prefix="acidsql-") as folder:
        path = os.path.join(folder, "bytes")
        write(path)
        with open(path, "rb") as file:
            return file.read()


@contextmanager
def java_errors(verb: str, path: str) -> Iterator[None]:
    """Turn what Java throws into the errors of this package.

    Raises:
        FileNotFoundError: For Java's exception of that meaning.
        StorageError: For everything else, with the first line of its message and no stack trace.
    """
    try:
        yield
    except (AcidError, FileNotFoundError):
        raise
    except Py4JJavaError as e:
        name = str(e.java_exception.getClass().getName())
        if name in ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"):
            raise FileNotFoundError(f"{path} does not exist") from e
        raise StorageError(f"Cannot {verb} {path}: {_sentence(name, e.java_exception.getMessage())}") from e
    except (Py4JError, ConnectionError) as e:  # the socket to the JVM
        reason = str(e).partition("\n")[0]
        raise StorageError(f"Cannot {verb} {path}: the Java process of Spark does not answer ({reason})") from e
    except Exception as e:  # PySpark turns some of Java's exceptions into its own, which this room does not know
        raise StorageError(f"Cannot {verb} {path}: {_sentence(type(e).__name__, str(e))}") from e


_CLASS_NAME = re.compile(r"(?:[a-z][\w-]*\.)+([A-Z]\w*): ")


def _sentence(class_name: str, message: str | None) -> str:
    """The first line of a message, without the class names that wrapping puts before it; they tell if nothing else."""
    short = re.split(r"[.$]", class_name)[-1]
    lines = (message or "").strip().splitlines()
    if not lines:
        return short
    line = lines[0].strip()
    while (wrapped := _CLASS_NAME.match(line)) is not None:
        short, line = wrapped[1], line[wrapped.end() :]
    return f"{line} ({short})"
