"""Names of directories and files of an ACID table: the one place that makes and reads them.

The rules are those of Hive's ``AcidUtils`` and ``AcidConstants``, with their order of steps.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from functools import lru_cache

from acidsql.format.bucket import MAX_STATEMENT_ID

BASE_PREFIX = "base_"
DELTA_PREFIX = "delta_"
DELETE_DELTA_PREFIX = "delete_delta_"
BUCKET_PREFIX = "bucket_"
VISIBILITY_PREFIX = "_v"
ACID_VERSION_FILE = "_orc_acid_version"
ACID_VERSION = b"2"
METADATA_FILE = "_metadata_acid"
SIDE_FILE_SUFFIX = "_flush_length"
STAGING_PREFIX = "_tmp_"
"""What is not at its place yet, or is on its way out: a name that every engine skips."""
NO_STATEMENT = -1
_NAMES = 4096
"""So many names are kept with what they say: those in one partition are those in the next."""
MIN_LONG = -(2**63)
"""Write id of the base that the first compaction of a converted table makes when nothing was written since."""

_BUCKET = re.compile(r"bucket_([0-9]+)(?:_([0-9]+))?")
_ORIGINAL = re.compile(r"([0-9]+)_[0-9]+(?:_copy_[0-9]+)?")
_LONG = re.compile(r"-?[0-9]+")
_STAGING = re.compile(STAGING_PREFIX + r"(?:([0-9]+)_)?[0-9a-f]{32}")
_MANIFESTS = re.compile(r"-tmp\.(?:base|(?:delete_)?delta)_([0-9]+)(?:_[0-9]+)*")


@dataclass(frozen=True)
class BaseName:
    """``base_<write id>[_v<txn>]``: everything up to a write id.

    Attributes:
        write_id: The write id; :data:`MIN_LONG` for a base of original files only.
        visibility_txn: The transaction of the compactor that made it, 0 where the name has none.
    """

    write_id: int
    visibility_txn: int = 0

    @property
    def min_write_id(self) -> int:
        """Where it begins, as a delta does: before the first one."""
        return 0

    @property
    def max_write_id(self) -> int:
        """The last one in it, as in a delta: 0, that of original files, where it has no others."""
        return max(self.write_id, 0)

    def __str__(self) -> str:
        return f"{BASE_PREFIX}{self.write_id:07d}{_visibility(self.visibility_txn)}"


@dataclass(frozen=True)
class DeltaName:
    """``[delete_]delta_<min>_<max>[_<statement>][_v<txn>]``: the events of a range of write ids.

    Attributes:
        min_write_id: Smallest write id.
        max_write_id: Largest write id.
        statement_id: The statement of the transaction, :data:`NO_STATEMENT` in a compacted one.
        visibility_txn: The transaction of the compactor that made it, 0 where the name has none.
        is_delete: Whether it holds delete events.
    """

    min_write_id: int
    max_write_id: int
    statement_id: int = NO_STATEMENT
    visibility_txn: int = 0
    is_delete: bool = False

    @property
    def first_statement(self) -> int:
        """The first statement that may have written it: of a directory without a number any of its transaction."""
        return max(0, self.statement_id)

    @property
    def last_statement(self) -> int:
        """The last one that may have."""
        return self.statement_id if self.statement_id >= 0 else MAX_STATEMENT_ID

    def __str__(self) -> str:
        prefix = DELETE_DELTA_PREFIX if self.is_delete else DELTA_PREFIX
        statement = f"_{self.statement_id:04d}" if self.statement_id >= 0 else ""
        return f"{prefix}{self.min_write_id:07d}_{self.max_write_id:07d}{statement}{_visibility(self.visibility_txn)}"


def staging_name(txn_id: int) -> str:
    """A new name for a directory of what a transaction has not published yet."""
    return f"{STAGING_PREFIX}{txn_id}_{uuid.uuid4().hex}"


def staging_txn(name: str) -> int | None:
    """The transaction that a staging directory's name says; None for any other name."""
    match = _STAGING.fullmatch(name)
    return int(match[1]) if match and match[1] else None


def is_staged(name: str) -> bool:
    """Whether this is a name of staging directories, and nothing of somebody else's that begins alike."""
    return _STAGING.fullmatch(name) is not None


@lru_cache(maxsize=_NAMES)
def manifests_write_id(name: str) -> int | None:
    """The write id of the statement whose manifests a directory holds; None for any other name.

    A statement of Hive 4 writes its files where they stay (``hive.acid.direct.insert.enabled``) and lists them in
    ``-tmp.delta_0000005_0000005_0000/<task>.manifest`` (``Utilities.getManifestDir``). When it commits, it removes its
    files that are not listed there: where the directory is gone, so are its rows.
    """
    match = _MANIFESTS.fullmatch(name)
    return None if match is None else int(match[1])


@dataclass(frozen=True)
class BucketFile:
    """``bucket_<n>[_<attempt>]``; the attempt is that of Hive's task, None where the name has none."""

    bucket_id: int
    attempt_id: int | None = None


def _visibility(txn: int) -> str:
    return f"{VISIBILITY_PREFIX}{txn:07d}" if txn > 0 else ""


@lru_cache(maxsize=_NAMES)
def parse_directory(name: str) -> BaseName | DeltaName | None:
    """What a directory's name says; None for one that is neither base nor delta.

    A name that starts like one of them and does not go on so (``delta_x``) is None too; Hive fails on it.
    """
    ids, mark, visibility = name.partition(VISIBILITY_PREFIX)
    try:
        visibility_txn = _long(visibility) if mark else 0
        if ids.startswith(BASE_PREFIX):
            return BaseName(_long(ids[len(BASE_PREFIX) :]), visibility_txn)
        for prefix in (DELETE_DELTA_PREFIX, DELTA_PREFIX):
            if ids.startswith(prefix):
                first, last, *statement = ids[len(prefix) :].split("_", 2)
                return DeltaName(
                    _long(first),
                    _long(last),
                    _long(statement[0]) if statement else NO_STATEMENT,
                    visibility_txn,
                    is_delete=prefix == DELETE_DELTA_PREFIX,
                )
    except ValueError:
        return None
    return None


def write_ids_of(path: str) -> frozenset[int]:
    """The write ids in the name of a base or delta; none for any other, and for one with a compactor's transaction."""
    name = parse_directory(path.rstrip("/").rpartition("/")[2])
    if name is None or name.visibility_txn:
        return frozenset()
    if isinstance(name, BaseName):
        return frozenset({name.write_id})
    return frozenset(range(name.min_write_id, name.max_write_id + 1))


def _long(text: str) -> int:
    """A number as Java's ``Long.parseLong`` takes it: no blanks, underscores or other digits, as ``int`` allows."""
    if _LONG.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def bucket_file(bucket_id: int) -> str:
    """The name of a data file. Never with an attempt id: not every reader finds the deletes of a file that has one."""
    return f"{BUCKET_PREFIX}{bucket_id:05d}"


def original_file(bucket_id: int) -> str:
    """The name of a file without ACID columns, as Hive's tasks name theirs."""
    return f"{bucket_id:06d}_0"


def parse_bucket_file(name: str) -> BucketFile | None:
    """What the name of a data file in a base or delta says, None where it is not one."""
    m = _BUCKET.fullmatch(name)
    return m and BucketFile(int(m[1]), None if m[2] is None else int(m[2]))


def parse_original_file(name: str) -> int | None:
    """The bucket number in the name of a file without ACID columns (``000001_0``, ``000001_0_copy_2``), or None."""
    m = _ORIGINAL.fullmatch(name)
    return m and int(m[1])


@lru_cache(maxsize=_NAMES)
def parse_bucket_id(name: str) -> int:
    """The bucket number in the name of either kind of file, -1 where it has none (Hive: ``parseBucketId``)."""
    original = parse_original_file(name)
    if original is not None:
        return original
    bucket = parse_bucket_file(name)
    return -1 if bucket is None else bucket.bucket_id


def is_hidden(name: str) -> bool:
    """Whether readers pass over a file or directory of this name."""
    return name.startswith(("_", "."))


def side_file(name: str) -> str:
    """The file beside a streamed data file that says how much of it is written."""
    return name + SIDE_FILE_SUFFIX


def is_side_file(name: str) -> bool:
    """Whether this is the name of a side file."""
    return name.endswith(SIDE_FILE_SUFFIX)
