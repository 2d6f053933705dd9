"""Import of existing directories into a new table, and discovery of partition directories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidsql import fs
from acidsql.format.foreign import directory_summary
from acidsql.format.names import is_hidden, parse_directory
from acidsql.format.orc import read_footer
from acidsql.metastore.model import Column, Import, Table
from acidsql.partition_names import parse_partition_name
from acidsql.plan.snapshot import new_partition
from acidsql.valid_ids import ValidWriteIdList


class ImportedDirectory:
    """The contents of a directory that a new table imports: bases, deltas and original files, also of partitions.

    Args:
        table: The table.
        valid_write_ids: Hive's text of the valid write ids; None if all directories count as committed.

    Raises:
        CorruptFile: When a file is not ORC.
    """

    def __init__(self, table: Table, valid_write_ids: str | None) -> None:
        self.table = table
        self.given = ValidWriteIdList.from_text(valid_write_ids) if valid_write_ids else None
        self.partitions = list(find_partitions(table))
        filesystem, root = fs.resolve(table.location)
        paths = [fs.join(root, p) for p in self.partitions] if table.partition_keys else [root]
        self.max_write_id = self.max_txn = 0
        for path in paths:
            write_id, txn = directory_summary(filesystem, path)
            self.max_write_id, self.max_txn = max(self.max_write_id, write_id), max(self.max_txn, txn)
            _check_files(filesystem, path)

    def facts(self) -> Import:
        """What the metastore has to register: the valid write ids, and the partitions."""
        table = self.table
        valid = ValidWriteIdList(table.full_name, self.max_write_id)
        if self.given is not None:
            high = max(self.given.high_watermark, self.max_write_id)
            beyond = tuple(range(self.given.high_watermark + 1, high + 1))  # on disk, but not in the given snapshot
            valid = ValidWriteIdList(table.full_name, high, self.given.open_ids, self.given.aborted_ids + beyond)
        return Import(valid, self.max_txn, tuple(new_partition(table, name) for name in self.partitions))


def _check_files(filesystem: fs.FileSystem, path: str) -> None:
    """Check that one file of each directory, and one original file, is ORC, to fail now instead of at a query."""
    listed = filesystem.list(path)
    acid = [d for d in listed if d.is_dir and parse_directory(d.name) is not None]
    for entries in (listed, *(filesystem.list(d.path) for d in acid)):
        first = next((f for f in entries if not f.is_dir and not is_hidden(f.name)), None)
        if first is not None and first.length:
            read_footer(filesystem, first.path)


def find_partitions(table: Table) -> Iterator[str]:
    """Names of the partition directories below a table, at the depth and with the key names that it declares."""
    if not table.partition_keys:
        return
    filesystem, root = fs.resolve(table.location)

    def walk(path: str, above: list[str], keys: Sequence[Column]) -> Iterator[str]:
        if not keys:
            yield "/".join(above)
            return
        for entry in filesystem.list(path):
            if not entry.is_dir or "=" not in entry.name or (is_hidden(entry.name) and not is_hidden(keys[0].name)):
                continue
            [(key, _)] = parse_partition_name(entry.name)
            if key.lower() == keys[0].name:
                yield from walk(entry.path, [*above, entry.name], keys[1:])

    yield from walk(root, [], table.partition_keys)
