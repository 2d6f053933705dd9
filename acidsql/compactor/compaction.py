"""One compaction inside its transaction: from the snapshot to publishing the new directories."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import SparkSession

from acidsql import fs
from acidsql.compactor.convert import convert, needs_conversion
from acidsql.compactor.measure import measured, metrics_of
from acidsql.compactor.overrides import settings_of, table_of
from acidsql.compactor.passes import Passes
from acidsql.compactor.plan import Layout, NewDirectory, Subject, is_enough, needs_one_rename, plan, to_compact
from acidsql.compactor.run import Task, run_tasks, tasks_of
from acidsql.errors import AcidError, CompactionError, StorageError
from acidsql.format.bucket import MAX_WRITER_ID
from acidsql.format.directory import AcidFile, AcidState, acid_state
from acidsql.format.names import (
    ACID_VERSION,
    ACID_VERSION_FILE,
    METADATA_FILE,
    BaseName,
    bucket_file,
    original_file,
    staging_name,
)
from acidsql.format.orc import write_empty
from acidsql.format.rewrite import Rewritten
from acidsql.format.tail import OrcFooter, read_footer
from acidsql.metastore.heartbeat import Heartbeats
from acidsql.metastore.model import CompactionInfo, CompactionType, Partition, Table
from acidsql.metastore.protocol import Metastore
from acidsql.plan.prefixes import runs_here_alone
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.target import compression_of
from acidsql.settings import COMPACTION_LAYOUT, COMPACTION_SPARK_SIZE, MAX_NUM_DELTA, ORC_COMPRESS, Settings
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

logger = logging.getLogger(__name__)

NOTHING_TO_DO = "None of the compaction thresholds met, compaction request is refused!"
"""Hive's message."""
_LARGE = 256 << 20
"""Bytes of a compaction that a cluster shares."""
_COMPACTED = b'{"thisFileVersion":"0","dataFormat":"compacted"}'


@dataclass(frozen=True)
class Limits:
    """Limits of the services for which Hive has no setting.

    Attributes:
        writers_wait: Seconds that a rebalance waits for open transactions that have allocated write ids.
        max_buckets: The maximum number of files that a rebalance writes.
        first_back_off: Seconds to wait after a failed round, doubled each time, if the usual pause is shorter.
        longest_back_off: The maximum of that wait, in seconds.
        first_pause: Seconds before a statement that waits for a compaction first polls its state; the pauses then
            grow.
        longest_pause: The maximum of these pauses, in seconds.
    """

    writers_wait: float = 10.0
    max_buckets: int = MAX_WRITER_ID + 1
    first_back_off: float = 0.1
    longest_back_off: float = 60.0
    first_pause: float = 0.2
    longest_pause: float = 5.0


@dataclass
class WorkerContext:
    """The shared context of the services.

    Attributes:
        metastore: The store with the queue.
        heartbeats: Keeps the compactor's transactions alive.
        settings: The settings of the session.
        host: The host name shown by SHOW COMPACTIONS.
        user: The user shown by SHOW TRANSACTIONS.
        spark: For large compactions; None to run everything in this process.
        start_spark: Starts Spark on first use if there is no session yet.
        limits: The limits of the services.
        clock: Returns the time, in seconds since 1970.
        sleep: Waits for a number of seconds.
    """

    metastore: Metastore
    heartbeats: Heartbeats
    settings: Settings
    host: str
    user: str
    spark: SparkSession | None = None
    start_spark: Callable[[], SparkSession] | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _starting: threading.Lock = field(default_factory=threading.Lock)

    def needed_spark(self) -> SparkSession | None:
        """The Spark session, started now if necessary; None if everything runs in this process."""
        with self._starting:
            if self.spark is None and self.start_spark is not None:
                self.spark = self.start_spark()
            return self.spark


class RefusedError(AcidError):
    """Nothing to compact, or compaction is not allowed."""


def place_of(entry: CompactionInfo) -> str:
    """The compacted table or partition: ``hr.emp`` or ``hr.emp.p=1``."""
    return ".".join(part for part in (entry.database, entry.table, entry.partition) if part)


class Compaction:
    """Writes the directories that replace a table's or partition's deltas.

    Everything is written into a hidden staging directory and moved into place as the last step before the commit: in
    the layout of Hive 4 it is visible from the commit on, in that of Hive 3 from the move on, which changes nothing for
    any reader, since all its rows were committed before.
    """

    _marks_bases = True
    """Whether bases are marked as compacted if their names do not say so."""

    def __init__(
        self,
        context: WorkerContext,
        entry: CompactionInfo,
        worker: str,
        table: Table,
        partition: Partition | None,
        txn_id: int,
    ) -> None:
        self._context = context
        self._entry = entry
        self._worker = worker
        self._table = table_of(table, entry.properties)
        self._settings = settings_of(context.settings, table, entry.properties)
        self._txn_id = txn_id
        self._location = table.location if partition is None else partition.location
        self._fs, self._path = fs.resolve(self._location)
        self._layout = Layout(self._settings.value(COMPACTION_LAYOUT))
        if context.metastore.capabilities.is_shared_with_hive or not fs.renames_in_one_step(self._location):
            self._layout = Layout.HIVE4  # with Hive 3's a reader could see a partial directory
        self._footers: dict[str, OrcFooter] = {}
        self.leaves_nothing = True
        """Whether an error would leave no files that carry the transaction or its write id."""
        self._job = f"{context.host}-compactor-{place_of(entry)}"

    def run(self) -> Rewritten:
        """Run the compaction.

        Raises:
            RefusedError: When there is nothing to compact, and nothing to clean.
            CompactionError: When another worker has already compacted it.
        """
        metastore = self._context.metastore
        txns, committed = self._snapshot()
        write_ids = to_compact(self._fs, self._path, committed)
        top = self._highest(write_ids)
        metastore.update_compactor_state(self._entry.id, self._txn_id, top, worker=self._worker)
        state = acid_state(self._fs, self._path, write_ids, txns, any_file_name=self._table.is_insert_only)
        done = Rewritten()
        if self._is_enough(state):
            done = self._write(self._subject(state, write_ids))
        elif not (state.obsolete or state.aborted):
            raise RefusedError(NOTHING_TO_DO)
        metastore.mark_compacted(self._entry.id, worker=self._worker, metrics=metrics_of(done))
        return done

    @property
    def layout(self) -> Layout:
        """The naming of the new directories."""
        return self._layout

    def preview(self, state: AcidState, write_ids: ValidWriteIdList) -> list[NewDirectory]:
        """What :meth:`run` would write for a directory in this state; nothing if it would only be cleaned.

        Raises:
            RefusedError: As :meth:`run` does.
        """
        if self._is_enough(state):
            return self._planned(self._subject(state, write_ids))
        if not (state.obsolete or state.aborted):
            raise RefusedError(NOTHING_TO_DO)
        return []

    def _snapshot(self) -> tuple[ValidTxnList, ValidWriteIdList]:
        """The current snapshot."""
        txns = self._context.metastore.get_valid_txns(self._txn_id)
        [write_ids] = self._context.metastore.get_valid_write_ids([self._table.full_name], txns)
        return txns, write_ids

    def _subject(self, state: AcidState, write_ids: ValidWriteIdList) -> Subject:
        table = self._table
        metastore, settings = self._context.metastore, self._context.settings
        types = row_type_of(table)
        compression = compression_of(table, metastore.capabilities, settings.value(ORC_COMPRESS))
        return Subject(state, write_ids, types, compression, table.is_full_acid, self._footer)

    def _highest(self, write_ids: ValidWriteIdList) -> int:
        """The write id up to which the new directory replaces existing ones."""
        return write_ids.high_watermark

    def _is_enough(self, state: AcidState) -> bool:
        return is_enough(state, self._entry.type)

    def _footer(self, file: AcidFile) -> OrcFooter:
        return self._footer_at(file.path, file.length if file.is_prefix else None)

    def _footer_at(self, path: str, length: int | None) -> OrcFooter:
        if path not in self._footers:
            self._footers[path] = read_footer(self._fs, path, length)
        return self._footers[path]

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self, subject: Subject) -> Rewritten:
        directories = self._planned(subject)
        for directory in directories:
            target = fs.join(self._path, str(directory.name))
            if self._fs.exists(target):
                raise RefusedError(
                    f"{target} exists: another worker made it, or an aborted transaction that is not cleaned"
                )
        staging = fs.join(self._path, staging_name(self._txn_id))
        published: list[str] = []
        try:
            done = measured(self._fs, self._fill(subject, directories, staging), subject.state, directories, staging)
            # Always, regardless of acidsql.sync: the cleaner removes rows that were durable before.
            self._fs.sync(trees=[fs.join(staging, str(directory.name)) for directory in directories])
            self._context.metastore.heartbeat(txn_id=self._txn_id)  # a timed-out transaction must not publish
            self.leaves_nothing = self._is_seen_at_once  # such names do not depend on the transaction
            try:
                for directory in directories:
                    self._publish(staging, str(directory.name), published)
            except (StorageError, FileNotFoundError):
                self._context.metastore.heartbeat(txn_id=self._txn_id)  # the cleaner has removed what was staged
                raise
            self._fs.sync(directories=[self._path])
            # nor have published after a suspension: the cleaner ran before the files existed
            self._context.metastore.heartbeat(txn_id=self._txn_id)
        except BaseException:
            # A directory visible from its rename on may be in use by a reader, or be another worker's: it is complete.
            self.leaves_nothing = self._remove(*([] if self._is_seen_at_once else published), staging)
            raise
        self._remove(staging)
        return done

    @property
    def _is_seen_at_once(self) -> bool:
        """Whether a directory is visible from its rename on, before the commit."""
        return self._layout is Layout.HIVE3 and self._marks_bases

    def _planned(self, subject: Subject) -> list[NewDirectory]:
        directories = plan(subject, self._entry.type, self._layout, self._txn_id)
        if needs_one_rename(directories, self._layout):
            return plan(subject, CompactionType.MAJOR, self._layout, self._txn_id)
        return directories

    def _remove(self, *paths: str) -> bool:
        """Remove paths; whether all are gone. What cannot be removed is invisible, and left to the cleaner."""
        is_left = False
        for path in paths:
            try:
                self._fs.delete(path)
            except AcidError as e:
                is_left = True
                logger.warning("%s is left to the cleaner: %s", path, e)
        return not is_left

    def _publish(self, staging: str, name: str, published: list[str]) -> None:
        target = fs.join(self._path, name)
        if self._fs.exists(target):
            raise CompactionError(f"{target} already exists: another worker has compacted it")
        published.append(target)  # before the rename, whose error leaves unknown whether it was done
        self._fs.rename(fs.join(staging, name), target)

    def _fill(self, subject: Subject, directories: list[NewDirectory], staging: str) -> Rewritten:
        """Write the directories below the staging directory."""
        self._context.metastore.set_job_id(self._entry.id, self._job, worker=self._worker)
        spark = self._spark_for(subject.state)
        tasks: list[Task] = []
        for directory in directories:
            path = self._new_directory(subject, directory, staging)
            tasks += tasks_of(self._prepared(subject, directory, staging, spark), path)
        results = run_tasks(tasks, spark, self._job)
        for task, result in zip(tasks, results, strict=True):
            if not result.rows:
                self._fs.delete(task.work.target)
        for directory in directories:
            self._keep_one_file(subject, directory, fs.join(staging, str(directory.name)))
        return sum(results, Rewritten())

    def _new_directory(self, subject: Subject, directory: NewDirectory, staging: str) -> str:
        """Create a directory below the staging directory, without its data files."""
        path = fs.join(staging, str(directory.name))
        self._fs.mkdirs(path, durable=False)
        if subject.is_full_acid:
            self._fs.write_bytes(fs.join(path, ACID_VERSION_FILE), ACID_VERSION)
        if isinstance(directory.name, BaseName) and self._layout is Layout.HIVE3 and self._marks_bases:
            self._fs.write_bytes(fs.join(path, METADATA_FILE), _COMPACTED)
        return path

    def _prepared(
        self, subject: Subject, directory: NewDirectory, staging: str, spark: SparkSession | None
    ) -> NewDirectory:
        """The directory with inputs reduced so that one task can merge each file."""
        directory = self._converted(subject, directory, staging)
        run = partial(run_tasks, spark=spark, job_name=self._job)
        passes = Passes(self._settings.value(MAX_NUM_DELTA), fs.join(staging, "passes"), run)
        return replace(directory, rewrites=tuple(passes.of(work) for work in directory.rewrites))

    def _converted(self, subject: Subject, directory: NewDirectory, staging: str) -> NewDirectory:
        """The directory with inputs of the table's current types: files with other types are converted first."""
        rewrites = []
        for work in directory.rewrites:
            inputs = []
            for file in work.inputs:
                footer = self._footer_at(file.path, file.length)
                if needs_conversion(footer, subject.row_type):
                    target = fs.join(staging, "converted", uuid.uuid4().hex)
                    convert(self._context.needed_spark(), file.path, footer, subject.row_type, target, file.length)
                    file = replace(file, path=target, length=None)
                inputs.append(file)
            rewrites.append(replace(work, inputs=tuple(inputs)))
        return replace(directory, rewrites=tuple(rewrites))

    def _keep_one_file(self, subject: Subject, directory: NewDirectory, path: str) -> None:
        """Write an empty file: for some readers a directory without files hides nothing."""
        names = [one.target for one in directory.rewrites]
        if not any(self._fs.exists(fs.join(path, name)) for name in names):
            name = bucket_file(0) if subject.is_full_acid else original_file(0)
            events = subject.is_full_acid
            write_empty(self._fs, fs.join(path, name), subject.row_type, events=events, compression=subject.compression)

    def _spark_for(self, state: AcidState) -> SparkSession | None:
        """Spark, for large inputs that its workers can access: they do not have our Hadoop client."""
        if not fs.is_local(self._location):
            return None
        files = [f for directory in (*state.data_directories, *state.delete_deltas) for f in directory.files]
        size = sum(f.length for f in (*files, *state.originals))
        limit = self._settings.value(COMPACTION_SPARK_SIZE)
        spark = self._context.needed_spark() if size > (_LARGE if limit is None else limit) else None
        if spark is not None and limit is None and runs_here_alone(spark):
            return None  # its Python workers would use the same cores as threads, and have to start first
        return spark
