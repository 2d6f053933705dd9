"""The source files of LOAD DATA."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from acidsql import fs
from acidsql.commands.error_location import with_location
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.errors import AcidError, AnalysisError, CorruptFile
from acidsql.format.names import is_hidden
from acidsql.format.tail import OrcFooter, read_footer
from acidsql.interrupts import Deferred
from acidsql.metastore.model import Table
from acidsql.sql.statements import LoadData

logger = logging.getLogger(__name__)

INVALID_PATH = 10027
ILLEGAL_PATH = 10028
ACID_FILE = 10413

_PATTERN = frozenset("*?[")


@contextmanager
def at_path(statement: LoadData) -> Iterator[None]:
    """Locate errors of the block at the statement's path, also for a missing file (Hive 10027)."""
    try:
        yield
    except (AcidError, FileNotFoundError) as e:
        error = e if isinstance(e, AcidError) else _invalid(f"{e.filename} no longer exists")
        raise with_location(statement.path.span, error) from e


def source_files(statement: LoadData, table: Table) -> tuple[fs.FileSystem, list[fs.FileStatus]]:
    """One file, the visible files of a directory, or those that match a pattern, sorted by name.

    Raises:
        AnalysisError: When there are none, or a directory is among them (Hive 10027), or they are on a file system that
            the statement does not allow, or belong to the table itself (10028).
    """
    filesystem, path = _path(statement, table)
    found = _files(filesystem, path)
    if not found:
        raise _invalid(f"No files matching path {path}")
    folder = next((f for f in found if f.is_dir), None)
    if folder is not None:
        raise _invalid(f"source contains directory: {folder.path}")
    return filesystem, sorted(found, key=lambda f: f.name)


def _path(statement: LoadData, table: Table) -> tuple[fs.FileSystem, str]:
    text = statement.path.value
    location = fs.absolute(text) if statement.local else fs.qualify(text)
    filesystem, path = fs.resolve(location)
    if statement.local and filesystem.root:
        raise _illegal('Source file system should be "file" if "local" is specified')
    if not statement.local and filesystem.root != fs.resolve(table.location)[0].root:
        raise _illegal(f"Move from: {path} to: {table.location} is not valid")
    if fs.overlap(path, fs.resolve(table.location)[1]):
        raise _illegal(f"{path} contains files of {table.full_name}, or is one of them")
    return filesystem, path


def _files(filesystem: fs.FileSystem, path: str) -> Sequence[fs.FileStatus]:
    """The visible files and directories of a path."""
    parent, _, name = path.rpartition("/")
    beside = filesystem.list(parent)
    exact = next((f for f in beside if f.name == name), None)
    if exact is not None:
        matching = [exact]
    else:
        matching = [f for f in beside if _PATTERN & set(name) and fnmatch.fnmatchcase(f.name, name)]
        matching = [f for f in matching if not is_hidden(f.name)]
    if len(matching) == 1 and matching[0].is_dir:
        return [f for f in filesystem.list(matching[0].path) if not is_hidden(f.name)]
    return matching


def plain_footer(filesystem: fs.FileSystem, status: fs.FileStatus) -> OrcFooter:
    """The footer of an ORC file without events.

    Raises:
        AnalysisError: When it is not an ORC file (Hive's message, without a code), or has events (Hive 10413).
    """
    try:
        footer = read_footer(filesystem, status.path)
    except CorruptFile as e:
        message = "The file that you are trying to load does not match the file format of the destination table."
        raise AnalysisError(f"Unable to load data to destination table. Error: {message}", hint=e.message) from e
    if footer.is_acid:
        message = f'"{status.path}" was created by Acid write - it cannot be loaded into another Acid table'
        raise AnalysisError(message, code=ACID_FILE, hint="CREATE TABLE … LOCATION registers a whole table directory.")
    return footer


@contextmanager
def claimed_files() -> Iterator[ClaimedFiles]:
    """Files that a block, in which a transaction is opened and ended, may claim; they are ended as the transaction is,
    also where an interrupt comes just before that."""
    claimed = ClaimedFiles()
    try:
        try:
            yield claimed
        finally:
            claimed.end()
    finally:
        claimed.end()


class ClaimedFiles:
    """Source files of one directory that one LOAD DATA claims by renaming each to a hidden name there, such as
    ``.acidsql_load_17_name`` in transaction 17.

    When the transaction has been committed they are deleted; when it has been aborted they get their names back.
    """

    def __init__(self) -> None:
        self._renamed: list[tuple[fs.FileStatus, str]] = []
        self._txn: WriteTransaction | None = None
        self._folder = ""

    def claim(self, files: Sequence[fs.FileStatus], txn: WriteTransaction) -> None:
        """Rename files, which must be unchanged since they were listed.

        Raises:
            AnalysisError: When another statement or process took, moved or replaced one of them (Hive 10027).
        """
        self._txn, self._folder = txn, files[0].path.rpartition("/")[0]
        filesystem, folder = fs.resolve(self._folder)
        unchanged = set(filesystem.list(folder))
        for status in files:
            if status not in unchanged:
                raise _invalid(f"{status.path} was moved or replaced while it was loaded")
        for status in files:
            hidden = f".acidsql_load_{txn.id}_{status.name}"
            self._renamed.append((status, hidden))  # before it: an error does not tell whether it was done
            try:
                filesystem.rename(fs.join(folder, status.name), fs.join(folder, hidden))
            except FileNotFoundError as e:
                self._renamed.pop()
                raise _invalid(f"{status.path} was moved while it was loaded") from e
        claimed = {status.name: status for status in filesystem.list(folder)}
        keeps_times = fs.renames_in_one_step(self._folder)
        for status, hidden in self._renamed:
            now = claimed.get(hidden)
            if now is None or now.length != status.length or (keeps_times and now.modified_ns != status.modified_ns):
                raise _invalid(f"{status.path} was replaced while it was loaded")

    def end(self) -> None:
        """Delete them, or give them their names back; once."""
        with Deferred():
            if self._txn is None or not self._renamed:
                return
            filesystem, folder = fs.resolve(self._folder)
            if self._txn.is_committed:
                self._remove(filesystem, folder)
            elif self._txn.is_aborted:
                self._give_back(filesystem, folder)
            else:  # not confirmed: with their old names the rows could be loaded twice
                for _, hidden in self._renamed:
                    logger.warning("whether %s was loaded is unknown: it keeps this name", fs.join(folder, hidden))
            self._renamed.clear()

    def _give_back(self, filesystem: fs.FileSystem, folder: str) -> None:
        for status, hidden in self._renamed:
            try:
                if filesystem.exists(fs.join(folder, hidden)):
                    filesystem.rename(fs.join(folder, hidden), fs.join(folder, status.name))
            except (AcidError, FileNotFoundError) as e:
                logger.warning("%s was not loaded, and cannot be renamed from %s: %s", status.path, hidden, e)

    def _remove(self, filesystem: fs.FileSystem, folder: str) -> None:
        """The rows are committed, so that a file that cannot be deleted is only logged."""
        for _, hidden in self._renamed:
            try:
                filesystem.delete(fs.join(folder, hidden))
            except AcidError as e:
                logger.warning("a loaded file could not be deleted, %s: %s", fs.join(folder, hidden), e)


def _invalid(problem: str) -> AnalysisError:
    return AnalysisError(f"Invalid path: {problem}", code=INVALID_PATH)


def _illegal(problem: str) -> AnalysisError:
    return AnalysisError(f"Path is not legal: {problem}", code=ILLEGAL_PATH)
