"""Hadoop's file systems (HDFS, S3A and whatever else Spark has on its class path), through the JVM of Spark.

Each call of the JVM costs some 0.1 ms, so what goes over is whole: a listing, a range of bytes, a file's content.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

from acidsql.errors import StorageError
from acidsql.fs.java import DIRECT, HadoopClasses, java_errors, through_file
from acidsql.fs.listing import decode_listing
from acidsql.fs.protocol import FileStatus
from acidsql.fs.streams import Reading, Upload, buffered


class HadoopFileSystem:
    """:class:`~acidsql.fs.protocol.FileSystem` of one scheme and authority; paths are full URIs (``hdfs://host/a/b``).

    They are taken as Hadoop's ``Path`` takes them: percent signs and all other odd characters literally.
    """

    def __init__(self, classes: HadoopClasses, root: str, configuration: Any) -> None:
        self._classes = classes
        self._configuration = configuration
        self._top = classes.path(root + "/")
        self._uri = self._fs.getUri()
        self._context: Any = None
        self.root = str(self._uri.toString()).rstrip("/")

    @property
    def _fs(self) -> Any:
        """Hadoop keeps it, and makes another where somebody has closed it: notebooks do, and Spark's goes on, too."""
        return self._top.getFileSystem(self._configuration)

    def list(self, path: str) -> list[FileStatus]:
        try:
            with java_errors("list", path):
                data = self._classes.written(self._fs.listStatus(self._classes.path(path)))
        except FileNotFoundError:
            return []
        return sorted(decode_listing(data, path), key=lambda f: f.name)

    def exists(self, path: str) -> bool:
        with java_errors("look at", path):
            return bool(self._fs.exists(self._classes.path(path)))

    def mkdirs(self, path: str, *, durable: bool = True) -> None:
        with java_errors("create", path):
            if not self._fs.mkdirs(self._classes.path(path)):
                raise StorageError(f"Cannot create {path}: the file system refused")

    def rename(self, source: str, target: str) -> None:
        """Hadoop's ``FileSystem.rename`` would move the source *into* an existing target directory."""
        with java_errors("rename", source):
            paths = self._classes.path(source), self._classes.path(target)
            if self._context is None:
                self._context = self._file_context()
            if self._context is not False:
                self._context.rename(*paths, self._classes.no_rename_options)
            else:
                self._rename_where_nothing_is(source, target, *paths)

    def _rename_where_nothing_is(self, source: str, target: str, source_path: Any, target_path: Any) -> None:
        """A rename with ``FileSystem.rename``, which would make missing parents, and tells little."""
        fs = self._fs
        if fs.exists(target_path):
            raise StorageError(f"Cannot rename {source}: {target} already exists")
        if not fs.exists(target_path.getParent()):
            raise FileNotFoundError(f"The directory of {target} does not exist")
        if not fs.rename(source_path, target_path):
            if not fs.exists(source_path):
                raise FileNotFoundError(f"{source} does not exist")
            raise StorageError(f"Cannot rename {source} to {target}: the file system refused")

    def _file_context(self) -> Any:
        """What renames without moving into the target; False where the scheme has no such implementation."""
        try:
            with java_errors("open the file system", self.root):
                return self._classes.file_context.getFileContext(self._uri, self._configuration)
        except StorageError as e:
            if "No AbstractFileSystem configured" in e.message:
                return False
            raise

    def delete(self, path: str) -> None:
        try:
            with java_errors("delete", path):
                fs, target = self._fs, self._classes.path(path)
                if not fs.delete(target, True) and fs.exists(target):
                    raise StorageError(f"Cannot delete {path}: the file system refused")
        except FileNotFoundError:
            return

    def delete_if_empty(self, path: str) -> bool:
        if self.list(path):
            return False
        try:
            with java_errors("delete", path):
                self._fs.delete(self._classes.path(path), False)  # refused where something came meanwhile
        except FileNotFoundError:
            return True
        except StorageError:
            if self.list(path):
                return False
            raise
        return True

    def read_bytes(self, path: str) -> bytes:
        with java_errors("read", path):
            fs, source = self._fs, self._classes.path(path)
            stream = fs.open(source)
            try:
                start = bytes(stream.readNBytes(DIRECT))
            finally:
                stream.close()
            if len(start) < DIRECT:
                return start
            raw_local = True  # or a checksum file would come with it
            return through_file(
                lambda file: fs.copyToLocalFile(False, source, self._classes.path(f"file:{file}"), raw_local)
            )

    def write_bytes(self, path: str, data: bytes) -> None:
        with self._create(path, overwrite=True) as file:
            file.write(data)

    def open_read(self, path: str) -> BinaryIO:
        with java_errors("read", path):
            fs, target = self._fs, self._classes.path(path)
            stream = fs.open(target)
            return buffered(Reading(stream, path, self._length(stream, target)))

    def _length(self, stream: Any, path: Any) -> int:
        """The length of an opened file.

        Of a file that is still being written HDFS tells by the stream alone how much of it can be read already.
        """
        if str(stream.getClass().getName()).endswith(".HdfsDataInputStream"):
            return int(stream.getVisibleLength())
        return int(self._fs.getFileStatus(path).getLen())

    def open_write(self, path: str) -> BinaryIO:
        return self._create(path, overwrite=False)

    def _create(self, path: str, *, overwrite: bool) -> BinaryIO:
        return Upload(path, lambda: self._fs.create(self._classes.path(path), overwrite))

    def sync(self, trees: Iterable[str] = (), directories: Iterable[str] = ()) -> None:
        """Nothing: names are durable in HDFS's edit log, and :meth:`open_write` syncs what the driver writes.

        What Spark's executors have closed there is in the memory of as many data nodes as the file has replicas; its
        disk is written when they see fit, or at once with ``dfs.datanode.synconclose``.
        """

    def home(self) -> str:
        """The user's home, where a relative path begins."""
        with java_errors("look for the home on", self.root):
            return str(self._fs.getHomeDirectory().toString())
