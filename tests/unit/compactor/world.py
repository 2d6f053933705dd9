"""A store with tables, whose directories hold what statements would have written; and readers that can be asked later.

Writers go the way of the commands: transaction, lock, write id, files, commit. No Spark: the rows are written with
pyorc, and a reader is ``acid_state`` and ``read_events`` with the rules of a snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyorc

from acidsql.compactor.cleaner import Cleaner
from acidsql.compactor.compaction import WorkerContext
from acidsql.compactor.housekeeper import Housekeeper
from acidsql.compactor.initiator import Initiator
from acidsql.compactor.worker import Outcome, Worker
from acidsql.format.bucket import encode
from acidsql.format.directory import AcidState, acid_state, qualifies
from acidsql.format.names import ACID_VERSION, ACID_VERSION_FILE, BaseName, DeltaName
from acidsql.format.orc import read_events, write_deletes, write_inserts, write_rows
from acidsql.format.originals import number_originals
from acidsql.format.schema import KEY_COLUMNS, Operation
from acidsql.format.tail import read_footer
from acidsql.fs import LocalFileSystem
from acidsql.metastore.embedded import EmbeddedMetastore
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import (
    Column,
    CompactionFilter,
    CompactionInfo,
    CompactionRequest,
    CompactionType,
    LockComponent,
    LockRequest,
    LockType,
    Partition,
    Table,
    TxnType,
)
from acidsql.metastore.model import CompactionState as State
from acidsql.metastore.model import Operation as Writes
from acidsql.settings import Settings
from acidsql.types import Struct, parse_type
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList
from tests.metastore.situations import Clock

FS = LocalFileSystem()
ROW_TYPE = Struct((("a", parse_type("int")),))
EVENT = "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,row:struct<a:int>>"  # noqa: E501
MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR

Key = tuple[int, int, int]
Rows = dict[Key, int]


def values(*numbers: int) -> pa.Table:
    return pa.table({"a": pa.array(numbers, pa.int32())})


@dataclass(frozen=True)
class Snapshot:
    """What a transaction sees of a table, and of its directory when it looked."""

    txn_id: int
    txns: ValidTxnList
    write_ids: ValidWriteIdList
    states: tuple[AcidState, ...] = ()


def rows_of(state: AcidState, write_ids: ValidWriteIdList) -> Rows:
    """The live rows of a directory by their row ids, read as every engine has to (A.6 of the format)."""
    found: Rows = {}
    deletes = [
        (d, event)
        for d in state.delete_deltas
        for file in d.files
        for event in read_events(FS, file.path)
        if write_ids.is_valid(event.current_transaction or 0)
    ]
    for directory in state.data_directories:
        hidden = {
            (e.original_transaction, e.bucket, e.row_id)
            for d, e in deletes
            if isinstance(d.name, DeltaName) and qualifies(d.name, directory.name)
        }
        for file in directory.files:
            for event in read_events(FS, file.path):
                key = (event.original_transaction or 0, event.bucket or 0, event.row_id or 0)
                if write_ids.is_valid(event.current_transaction or 0) and key not in hidden:
                    assert key not in found
                    assert event.row is not None
                    found[key] = event.row["a"]
    hidden = {(e.original_transaction, e.bucket, e.row_id) for _, e in deletes}
    for one in number_originals(state.originals, None, lambda f: read_footer(FS, f.path).stripes):
        for row_id, event in enumerate(read_events(FS, one.file.path), one.first_row_id):
            assert event.row is not None
            if (one.write_id, one.bucket, row_id) not in hidden:
                found[one.write_id, one.bucket, row_id] = event.row["a"]
    return found


@dataclass
class World:
    """A store at a path, and the services."""

    root: Path
    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = Clock(int(time.time() * 1000))  # the times of files go by the real one
        self.settings = Settings({"acidsql.compactor.layout": "hive4", **self.values})
        self.store = EmbeddedMetastore(str(self.root / "s.db"), self.settings, str(self.root / "w"), self.clock)
        self.heartbeats = Heartbeats(self.store, 1000.0)
        self.context = WorkerContext(self.store, self.heartbeats, self.settings, "desk", "ann")
        self.cleaner = Cleaner(self.context)
        self.housekeeper = Housekeeper(self.context, self.cleaner)
        self.worker = Worker(self.context, "desk-1")

    def close(self) -> None:
        self.heartbeats.close()
        self.store.close()

    # --- tables ---

    def table(self, name: str = "t", *parts: str, **parameters: str) -> Table:
        """A table; with ``parts`` one by ``p`` that has these partitions."""
        made = Table(
            "default",
            name,
            str(self.root / "w" / name),
            (Column("a", "int"),),
            (Column("p", "string"),) if parts else (),
            {"transactional": "true", **parameters},
        )
        self.store.create_table(made)
        FS.mkdirs(made.location)
        self.store.add_partitions([Partition("default", name, (p,), f"{made.location}/p={p}") for p in parts])
        for p in parts:
            FS.mkdirs(f"{made.location}/p={p}")
        return made

    def path(self, name: str = "t", part: str | None = None) -> Path:
        return self.root / "w" / name / (f"p={part}" if part is not None else "")

    def names(self, name: str = "t", part: str | None = None) -> list[str]:
        """The directories and files of a table or partition, but for the hidden ones."""
        return sorted(p.name for p in self.path(name, part).iterdir() if p.name[0] not in "._")

    # --- writers ---

    def begin(self, type: TxnType = TxnType.DEFAULT) -> int:
        [txn_id] = self.store.open_txns(user="ann", host="desk", type=type)
        return txn_id

    def write_id(
        self, txn_id: int, name: str = "t", part: str | None = None, *, operation: Writes = Writes.INSERT
    ) -> int:
        """The lock of a write, and its write id."""
        type = LockType.SHARED_READ if operation is Writes.INSERT else LockType.SHARED_WRITE
        place = None if part is None else f"p={part}"
        lock = LockComponent(type, "default", name, place, operation)
        self.store.lock(LockRequest((lock,), txn_id, "ann", "desk", "test"))
        return self.store.allocate_table_write_id(txn_id, "default", name)

    def burn(self, name: str, up_to: int) -> None:
        """Use up write ids by transactions that write nothing to this table's partitions, up to a number."""
        while self.store.allocate_table_write_id(txn := self.begin(), "default", name) < up_to:
            self.store.commit_txn(txn)
        self.store.commit_txn(txn)

    def insert(
        self, *numbers: int, name: str = "t", part: str | None = None, end: str = "commit", buckets: int = 1
    ) -> int:
        """Rows in a delta of their own; its write id. ``end``: ``commit``, ``abort`` or ``open``."""
        txn_id = self.begin()
        write_id = self.write_id(txn_id, name, part)
        directory = self.path(name, part) / str(DeltaName(write_id, write_id, 0))
        for bucket in range(buckets):
            path = f"{directory}/bucket_{bucket:05d}"
            write_inserts(FS, path, ROW_TYPE, values(*numbers), write_id=write_id, bucket=encode(bucket))
        FS.write_bytes(f"{directory}/{ACID_VERSION_FILE}", ACID_VERSION)
        self.end(txn_id, end)
        return write_id

    def delete(self, *numbers: int, name: str = "t", part: str | None = None, end: str = "commit") -> int:
        """A delete of the rows with these values; its write id."""
        txn_id = self.begin()
        write_id = self.write_id(txn_id, name, part, operation=Writes.DELETE)
        self.delete_as(write_id, txn_id, numbers, name, part)
        self.end(txn_id, end)
        return write_id

    def delete_as(
        self, write_id: int, txn_id: int, numbers: Iterable[int], name: str = "t", part: str | None = None
    ) -> list[Key]:
        """The files of a delete of what the transaction sees; the rows that it deletes."""
        gone = set(numbers)
        keys = sorted(k for k, value in self.rows(self.snapshot(txn_id, name), part).items() if value in gone)
        name_ = DeltaName(write_id, write_id, 0, is_delete=True)
        for bucket in sorted({key[1] for key in keys}):
            of_bucket = [key for key in keys if key[1] == bucket]
            table = pa.table({c: [key[i] for key in of_bucket] for i, c in enumerate(KEY_COLUMNS)})
            path = f"{self.path(name, part)}/{name_}/bucket_{bucket >> 16 & 0xFFF:05d}"
            write_deletes(FS, path, ROW_TYPE, table, write_id=write_id)
        return keys

    def stream(self, *ends: str, name: str = "t", part: str | None = None) -> tuple[int, int]:
        """One delta of several transactions, as streaming writes it: the row of each is its write id.

        Args:
            ends: How each of them ends.
        """
        txns = [self.begin() for _ in ends]
        ids = [self.write_id(txn, name, part) for txn in txns]
        path = self.path(name, part) / str(DeltaName(ids[0], ids[-1])) / "bucket_00000"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file, pyorc.Writer(file, EVENT) as writer:
            writer.writerows([(int(Operation.INSERT), w, encode(0), 0, w, (w,)) for w in ids])
        for txn, end in zip(txns, ends, strict=True):
            self.end(txn, end)
        return ids[0], ids[-1]

    def overwrite(self, *numbers: int, name: str = "t", part: str | None = None, end: str = "commit") -> int:
        """INSERT OVERWRITE: a base that is no compaction's."""
        txn_id = self.begin()
        write_id = self.write_id(txn_id, name, part)
        path = f"{self.path(name, part)}/{BaseName(write_id)}/bucket_00000"
        write_inserts(FS, path, ROW_TYPE, values(*numbers), write_id=write_id, bucket=encode(0))
        self.end(txn_id, end)
        return write_id

    def original(self, *numbers: int, file: str = "000000_0", name: str = "t") -> None:
        """A file from before the table was transactional."""
        write_rows(FS, str(self.path(name) / file), ROW_TYPE, values(*numbers))

    def end(self, txn_id: int, how: str = "commit") -> None:
        if how == "commit":
            self.store.commit_txn(txn_id)
        elif how == "abort":
            self.store.abort_txns([txn_id])
        else:
            assert how == "open"

    # --- readers ---

    def snapshot(self, txn_id: int = 0, name: str = "t") -> Snapshot:
        """What a transaction sees, or somebody without one."""
        txns = self.store.get_valid_txns(txn_id)
        [write_ids] = self.store.get_valid_write_ids([f"default.{name}"], txns)
        return Snapshot(txn_id, txns, write_ids)

    def state(self, of: Snapshot, part: str | None = None) -> AcidState:
        name = of.write_ids.table.partition(".")[2]
        return acid_state(FS, str(self.path(name, part)), of.write_ids, of.txns, is_pinned=of.txn_id > 0)

    def rows(self, of: Snapshot, part: str | None = None) -> Rows:
        return rows_of(self.state(of, part), of.write_ids)

    def reader(self, name: str = "t", part: str | None = None) -> Snapshot:
        """A reader that has begun: its transaction is open, and it has chosen its files."""
        found = self.snapshot(self.begin(TxnType.READ_ONLY), name)
        return Snapshot(found.txn_id, found.txns, found.write_ids, (self.state(found, part),))

    def content(self, name: str = "t", part: str | None = None) -> list[int]:
        """The values that one who comes now reads."""
        return sorted(self.rows(self.snapshot(name=name), part).values())

    # --- services ---

    def ask(self, type: CompactionType = MAJOR, name: str = "t", part: str | None = None) -> int:
        place = None if part is None else f"p={part}"
        response = self.store.compact(CompactionRequest("default", name, place, type, "ann", "desk"))
        assert response.accepted, response
        return response.id

    def compact(self, type: CompactionType = MAJOR, name: str = "t", part: str | None = None) -> Outcome:
        """A compaction from the request to the commit."""
        id = self.ask(type, name, part)
        outcome = self.worker.run_one()
        assert outcome is not None
        assert outcome.entry.id == id
        return outcome

    def initiate(self) -> list[tuple[str, str | None, str]]:
        """A round of the initiator; table, partition and type of what waits then."""
        Initiator(self.context, "desk-7").run()
        waiting = [one for one in self.entries() if one.state == State.INITIATED]
        return sorted((one.table, one.partition, one.type.name) for one in waiting)

    def clean(self) -> int:
        return self.cleaner.run()

    def entries(self) -> list[CompactionInfo]:
        return self.store.show_compactions(CompactionFilter())

    def states(self) -> list[State]:
        """The states of all entries, the latest first."""
        return [one.state for one in self.entries()]

    def remembered(self) -> set[int]:
        """The aborted write ids whose files may still be there."""
        return {w for one in self.store.aborted_components() for w in one.write_ids}


def versioned(pattern: str, txn_id: int) -> str:
    """A directory's name in the layout of Hive 4."""
    return f"{pattern}_v{txn_id:07d}"


def unversioned(names: Sequence[str]) -> list[str]:
    """Names without the transactions of compactors."""
    return sorted(name.partition("_v")[0] for name in names)
