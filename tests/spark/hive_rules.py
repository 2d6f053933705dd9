"""The rules that Hive's readers rely on, checked on a directory by a reader of its own (pyorc, regular expressions).

Stands in for Hive 3.1, which runs nowhere near the tests; nothing of acidsql is used here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pyorc

_BASE = re.compile(r"base_(\d{7,})")
_DELTA = re.compile(r"(delete_delta|delta)_(\d{7,})_(\d{7,})(?:_(\d{4,}))?")
"""One without a statement is a compactor's, and may hold what several write ids have written."""
_COMPACTED = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
"""``_metadata_acid`` of a base that a compactor made: any other is INSERT OVERWRITE's, of one write id."""
_BUCKET = re.compile(r"bucket_(\d{5})")
_ORIGINAL = re.compile(r"\d{6}_\d+(_copy_\d+)?")
"""A file without events: of an insert-only table, of LOAD DATA, of before a table was transactional."""
_UNION = re.compile(r"HIVE_UNION_SUBDIR_\d+")
_FIELDS = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
V1 = 1 << 29

Identity = tuple[str, str, int, int, int]


@dataclass(frozen=True)
class Source:
    """Whose events a directory holds: of write ids from the first to the last, of a statement or of many."""

    first: int
    last: int
    statement: int | None

    @property
    def is_compacted(self) -> bool:
        return self.statement is None


def check_table(root: Path, *, insert_only: bool = False, rebalanced: bool = False) -> int:
    """Check every directory below a table or partition; the number of events seen.

    A base of INSERT OVERWRITE holds rows of its own write id. That of a rebalance, which has one of its own, too, holds
    older rows: only where the table was ``rebalanced``.
    """
    deleted: set[Identity] = set()
    events = 0
    for directory in sorted(p for p in root.rglob("*") if p.is_dir()):
        if "=" in directory.name or _UNION.fullmatch(directory.name):
            continue
        base, delta = _BASE.fullmatch(directory.name), _DELTA.fullmatch(directory.name)
        assert base or delta, f"{directory} is no name that Hive 3.1 parses"
        version = directory / "_orc_acid_version"
        assert version.exists() is not insert_only, f"{directory}: the version of the events, where there are some"
        assert insert_only or version.read_bytes() == b"2"
        files = [f for f in directory.iterdir() if not f.name.startswith(("_", "."))]
        assert files, f"{directory} holds no file: Trino would not see it"
        for file in files:
            if _ORIGINAL.fullmatch(file.name):
                assert not (delta and delta[1] == "delete_delta")
                assert list(pyorc.Reader(file.open("rb")).schema.fields) != _FIELDS
                continue
            assert not insert_only, f"{file} is no file of an insert-only table"
            bucket = _BUCKET.fullmatch(file.name)
            assert bucket, f"{file.name} is no name that Hive 3.1 parses"
            is_delete = bool(delta and delta[1] == "delete_delta")
            events += _check_file(file, int(bucket[1]), _source(directory, base, delta, rebalanced), is_delete, deleted)
    return events


def _source(directory: Path, base: re.Match[str] | None, delta: re.Match[str] | None, rebalanced: bool) -> Source:
    if delta:
        first, last = int(delta[2]), int(delta[3])
        assert first == last or delta[4] is None, f"{directory}: one statement writes under one write id"
        assert first <= last
        return Source(first, last, int(delta[4]) if delta[4] else None)
    assert base
    metadata = directory / "_metadata_acid"
    if not metadata.exists():
        return Source(0, int(base[1]), None) if rebalanced else Source(int(base[1]), int(base[1]), 0)
    assert metadata.read_bytes() == _COMPACTED
    return Source(0, int(base[1]), None)


def _check_file(file: Path, writer: int, source: Source, is_delete: bool, deleted: set[Identity]) -> int:
    with file.open("rb") as f:
        reader = pyorc.Reader(f, struct_repr=pyorc.StructRepr.TUPLE, column_indices=list(range(5)))
        names = list(pyorc.Reader(file.open("rb")).schema.fields)
        assert names == _FIELDS
        rows = [r[:5] for r in reader]
        _check_key_index(reader, rows)
    keys = [tuple(r[1:4]) for r in rows]
    assert keys == sorted(keys), f"{file} is not sorted"
    assert len(set(keys)) == len(keys), f"{file} holds an identity twice"
    partition = str(file.parent.parent)
    for operation, original, bucket, row_id, current in rows:
        assert source.first <= current <= source.last
        assert (bucket & 0x0FFF0000) >> 16 == writer, f"{file}: event of another writer"
        assert bucket & V1
        if is_delete:
            assert operation == 2
            assert original <= current
            copied = file.parent.name if source.is_compacted else ""  # what it replaces may still be there
            identity = (partition, copied, original, bucket, row_id)
            assert identity not in deleted, f"{identity} is deleted twice"
            deleted.add(identity)
        else:
            assert operation == 0
            assert original == current
            assert source.is_compacted or bucket & 0xFFF == source.statement
    return len(rows)


def _check_key_index(reader: pyorc.Reader, rows: list[tuple[int, ...]]) -> None:
    """``hive.acid.key.index`` is exact or absent: wrong values lose deletes in Hive."""
    if "hive.acid.key.index" not in reader.user_metadata:
        return
    entries = [e for e in reader.user_metadata["hive.acid.key.index"].decode().split(";") if e]
    assert len(entries) == reader.num_of_stripes
    end = 0
    for number, entry in enumerate(entries):
        end += len(reader.read_stripe(number))
        assert tuple(int(x) for x in entry.split(",")) == rows[end - 1][1:4]
    assert reader.user_metadata["hive.acid.version"] == b"2"
    counts = [sum(1 for r in rows if r[0] == operation) for operation in (0, 1, 2)]
    assert reader.user_metadata["hive.acid.stats"].decode() == ",".join(map(str, counts))
