"""Writing events with one Spark job, for results that are too large for the driver.

The job writes part files below the staging directory; they are then moved into the staged directories under their
bucket names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.catalyst import Catalyst, Draft, ended_with_the_call
from acidsql.errors import CardinalityViolation, CorruptFile
from acidsql.format.bucket import VERSION_SHIFT, WRITER_MASK, WRITER_SHIFT, decode, encode
from acidsql.format.names import BaseName, DeltaName
from acidsql.format.orc_statistics import integer_range
from acidsql.format.schema import EVENT_COLUMNS, KEY_COLUMNS
from acidsql.format.tail import footer_of, read_tail
from acidsql.fs.java import java_errors
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.changes import BUCKET, KIND, ChangeSet, value_column
from acidsql.plan.failures import failing_with, failure_of
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import IDENTITY, Change, RowCounts, Target
from acidsql.plan.text import TASK_SHIFT, literal, quote, row_number_of
from acidsql.plan.values import with_leaves
from acidsql.types import Char, HiveType, to_spark

_WRITER = (
    f"CASE WHEN shiftright(bucketId, {VERSION_SHIFT}) = 0 THEN bucketId"
    f" ELSE (bucketId & {WRITER_MASK}) >> {WRITER_SHIFT} END"
)
_KEY, _SINK, _NUMBER = "__acid_k", "__acid_sink", "__acid_writer"
"""Directories of the job's output: the partition keys, which directory of events, and which bucket file in it."""
_DELETES, _VERSIONS, _INSERTS = 0, 1, 2
_OF_TASKS = ("HiveTableRelation", "InMemoryRelation", "LogicalRDD", "LogicalRelation", "Range")
"""Leaves of plans whose rows are read by tasks."""
_MANY = 1 << 20
"""More tasks than any job has: ``coalesce`` then joins none."""
_TWICE = re.compile(r"matched twice: (-?\d+), (-?\d+), (-?\d+)")


def write_by_job(catalyst: Catalyst, target: Target, staging: Staging, changes: ChangeSet) -> RowCounts:
    """Write all changes with one job.

    Raises:
        AcidError: When more than 4096 tasks would each write a bucket file (``BucketCodec`` numbers no more).
        CardinalityViolation: When a row is named twice in changes of several kinds.
    """
    change, keys = changes.change, [f"{_KEY}{i}" for i in range(len(changes.keys))]
    shuffled = change is not Change.INSERT or changes.is_bucketed
    if shuffled:
        events, by = _placed_events(catalyst, target, changes, keys), [*keys, _SINK, _NUMBER]
    else:
        events, by = _task_events(catalyst, target, changes, keys), keys
    output = fs.join(staging.path, "job")
    write = events.frame().write.option("compression", target.compression).option("maxRecordsPerFile", "0")
    try:
        with ended_with_the_call(catalyst.spark):
            (write.partitionBy(*by) if by else write).orc(fs.spark_path(output))
    except Py4JJavaError as e:  # neither an error of Spark's own nor of a task: the driver could not write
        with java_errors("write", output):
            raise e from None
    except PySparkException as e:
        found = _TWICE.fullmatch(failure_of(e) or "")
        if found is None:
            raise
        raise matched_twice(*map(int, found.groups())) from None
    return _collect(target, staging, output, change, shuffled)


def matched_twice(write_id: int, bucket: int, row_id: int) -> CardinalityViolation:
    """The error of a row that is named twice."""
    return CardinalityViolation(
        "Cardinality Violation in Merge statement: more than one source row matches the row"
        f' {{"writeid":{write_id},"bucketid":{bucket},"rowid":{row_id}}} of the target',
        hint="Make the source rows unique in the columns that ON compares.",
    )


# --- events ----------------------------------------------------------------------------------------------------------


def _columns(target: Target) -> list[tuple[str, str]]:
    """Name and value of each column. The session uses the zone of the files, so values are stored unchanged."""
    fields = enumerate(row_type_of(target.table).fields)
    return [(name, with_leaves(value_column(i), type, _without_padding)) for i, (name, type) in fields]


def _without_padding(value: str, type: HiveType) -> str:
    """A text as its ``char`` has it in a file of strings, as Spark writes it: padded it would stay so where the column
    becomes a ``string`` later, other than in files of Hive's and of the driver's."""
    return f"rtrim({value})" if isinstance(type, Char) else value


def _row(target: Target) -> str:
    return f"named_struct({', '.join(f'{literal(n)}, {value}' for n, value in _columns(target))})"


def _task_events(catalyst: Catalyst, target: Target, changes: ChangeSet, keys: list[str]) -> Draft:
    """One file per task and partition, the task's number is the writer's: no shuffle is needed."""
    rows = Draft.of(catalyst, _in_tasks(changes.frame))
    numbered = rows.select(*changes.values, *changes.keys, "monotonically_increasing_id() AS id")
    above = _directory_keys(changes.keys, "id", keys)
    if not target.table.is_full_acid:
        plain = numbered.select(*(f"{value} AS {quote(n)}" for n, value in _columns(target)), *above)
        return plain.sorted_within(keys) if keys else plain
    events = numbered.select(
        "0 AS operation",
        f"{target.write_id}L AS originalTransaction",
        f"{encode(0, target.statement_id)} | (CAST(id >> {TASK_SHIFT} AS int) << {WRITER_SHIFT}) AS bucket",
        f"{row_number_of('id')} AS rowId",
        f"{target.write_id}L AS currentTransaction",
        f"{_row(target)} AS row",
        *above,
    )
    return events.sorted_within([*keys, "rowId"]) if keys else events


def _in_tasks(frame: DataFrame) -> DataFrame:
    """The rows such that what depends on the task is evaluated by tasks.

    Over rows that Spark has already (``LocalRelation``) its optimiser evaluates it on the driver, as if all were one
    task's, and then gives them to several (``ConvertToLocalRelation``). Not so through a step in between.
    """
    if all(leaf.nodeName() in _OF_TASKS for leaf in Catalyst.leaves(Catalyst.analyzed(frame))):
        return frame
    return frame.coalesce(_MANY)


def _directory_keys(keys: Sequence[str], number: str, names: Sequence[str]) -> list[str]:
    """The keys, under the names of their directories, as texts that Spark neither takes for constants nor for NULL.

    Of a constant, and of a string that can be NULL, Spark's writer sorts by its directories anew (``V1Writes``), and
    its optimiser then drops the sort below, which is ours: events would stand in the order in which they were read.
    ``number`` is a column that is never negative.
    """
    default = literal(DEFAULT_PARTITION)
    given = zip(keys, names, strict=True)
    return [f"CASE WHEN {number} < 0 THEN '' ELSE coalesce({key}, {default}) END AS {name}" for key, name in given]


def _placed_events(catalyst: Catalyst, target: Target, changes: ChangeSet, keys: list[str]) -> Draft:
    """All directories of a statement in one job: of each change its delete event, its insert event, or both.

    All rows of a bucket meet in one task (one file a bucket), sorted as readers need them.
    """
    change = changes.change
    placed = _numbered(_placed(catalyst, changes, keys), keys, change)
    if not target.table.is_full_acid:
        rows = [f"{value} AS {quote(n)}" for n, value in _columns(target)]
        above = [*keys, f"CAST(if(number < 0, 0, {_INSERTS}) AS int) AS {_SINK}", _NUMBER]
        return placed.select(*rows, *above).sorted_within([*keys, _SINK, _NUMBER])
    events = placed.select(*keys, _NUMBER, f"explode({_events(target, change)}) AS e")
    flat = events.select(*keys, f"e.sink AS {_SINK}", _NUMBER, *[f"e.{n} AS {n}" for n in EVENT_COLUMNS])
    return flat.sorted_within([*keys, _SINK, _NUMBER, *KEY_COLUMNS])


def _placed(catalyst: Catalyst, changes: ChangeSet, keys: list[str]) -> Draft:
    """The changes with the number of the bucket file that each one's events go to, all of one number in one task."""
    tasks, change = max(1, catalyst.spark.sparkContext.defaultParallelism), changes.change
    new = BUCKET if changes.is_bucketed else f"spark_partition_id() % {tasks}"
    if change is None:
        number = f"CASE WHEN rowId IS NULL THEN {new} ELSE {_WRITER} END"
    else:
        number = new if change is Change.INSERT else _WRITER
    positive = "0" if change is Change.INSERT else "coalesce(rowId, 0L)"
    kept = [*changes.values, *changes.identity, *([KIND] if change is None else [])]
    made = [*kept, *_directory_keys(changes.keys, positive, keys), f"CAST({number} AS int) AS {_NUMBER}"]
    return Draft.of(catalyst, changes.frame).select(*made).distributed([*keys, _NUMBER])


def _numbered(placed: Draft, keys: list[str], change: Change | None) -> Draft:
    """The changes with a number that is unique in their task; where they are of several kinds, each row only once."""
    numbered = placed.select("*", f"{row_number_of()} AS number")
    if change is not None:
        return numbered
    # rows that are inserted have no identity: each one is a group of its own
    group = ", ".join([*keys, _NUMBER, "writeId", "bucketId", "coalesce(rowId, -1L - number)"])
    checked = numbered.select("*", f"count(*) OVER (PARTITION BY {group}) AS times")
    twice = failing_with(f"concat('matched twice: ', concat_ws(', ', {', '.join(IDENTITY)}))")
    once = f"CASE WHEN times > 1 THEN {twice} ELSE {KIND} <> {int(Change.NOTHING)} END"
    return checked.filter(once)


def _events(target: Target, change: Change | None) -> str:
    """An array of the events of a change, each with the directory that it goes to."""
    if change is not None:
        return _events_of(target, change, target)
    kinds = (Change.INSERT, Change.UPDATE, Change.DELETE)
    cases = [f"WHEN {int(k)} THEN {_events_of(target, k, target.next)}" for k in kinds]
    return f"CASE {KIND} {' '.join(cases)} END"


def _events_of(target: Target, change: Change, inserts: Target) -> str:
    events = []
    if change is not Change.INSERT:
        events.append(_event(target, _DELETES, 2, *IDENTITY, None))
    if change is not Change.DELETE:
        sink, into = (_INSERTS, inserts) if change is Change.INSERT else (_VERSIONS, target)
        bucket = f"{encode(0, into.statement_id)} | ({_NUMBER} << {WRITER_SHIFT})"
        events.append(_event(target, sink, 0, f"{target.write_id}L", bucket, "number", _row(target)))
    return f"array({', '.join(events)})"


def _event(target: Target, sink: int, operation: int, original: str, bucket: str, row_id: str, row: str | None) -> str:
    ddl = to_spark(row_type_of(target.table), plain_strings=True)
    return (
        f"named_struct('sink', {sink}, 'operation', {operation}, 'originalTransaction', {original},"
        f" 'bucket', {bucket}, 'rowId', {row_id}, 'currentTransaction', {target.write_id}L,"
        f" 'row', CAST({row or 'NULL'} AS {ddl}))"
    )


# --- files -----------------------------------------------------------------------------------------------------------


def _collect(target: Target, staging: Staging, output: str, change: Change | None, shuffled: bool) -> RowCounts:
    """Move the job's part files into the staged directories, under their bucket names."""
    sinks: dict[int, BaseName | DeltaName] = {_DELETES: target.deletes, _VERSIONS: target.inserts}
    sinks[_INSERTS] = target.inserts if change is not None else target.next.inserts
    written = dict.fromkeys(sinks, 0)
    for path, above in _part_files(output, staging.fs):
        values = dict(name.partition("=")[::2] for name in above)
        # Spark escapes the values of partition directories as Hive does (it took the code over from there)
        keys = enumerate(target.table.partition_keys)
        partition = "/".join(f"{key.name}={values[f'{_KEY}{i}']}" for i, key in keys)
        sink = int(values[_SINK]) if shuffled else _INSERTS
        number = int(values[_NUMBER]) if shuffled else _task_number(path)
        encode(number, target.statement_id)  # refuses a number that the bucket property cannot hold
        rows = rows_of(staging.fs, path, number if target.table.is_full_acid else None)
        if not rows:
            continue
        directory = staging.directory(partition, sinks[sink])
        staging.fs.rename(path, directory.bucket(number))
        staging.wrote(directory, rows)
        written[sink] += rows
    staging.fs.delete(output)
    updated = written[_VERSIONS]
    return RowCounts(written[_INSERTS], updated, written[_DELETES] - updated)


def rows_of(filesystem: fs.FileSystem, path: str, number: int | None) -> int:
    """The number of rows in a file.

    Args:
        filesystem: The file system of ``path``.
        path: The file.
        number: That of the bucket file that it becomes; None if it has no events.

    Raises:
        CorruptFile: When its events belong to another bucket file: readers look for delete events by its number.
    """
    with filesystem.open_read(path) as file:
        tail = read_tail(file, path)
    rows = footer_of(tail, path).row_count
    if rows and number is not None:
        found = integer_range(tail, EVENT_COLUMNS.index("bucket") + 1)
        if found is None or {decode(prop).writer_id for prop in found} != {number}:
            raise CorruptFile(f"Events of {path}, written as bucket {number}, have bucket properties {found}")
    return rows


def _part_files(output: str, filesystem: fs.FileSystem) -> Iterator[tuple[str, list[str]]]:
    """Part files of a Spark write with the ``name=value`` directories above them.

    Raises:
        CorruptFile: When there is anything else: what the job wrote must not be left behind.
    """

    def walk(path: str, above: list[str]) -> Iterator[tuple[str, list[str]]]:
        for entry in filesystem.list(path):
            if entry.is_dir:
                yield from walk(entry.path, [*above, entry.name])
            elif entry.name.startswith("part-"):
                yield entry.path, above
            elif not entry.name.startswith(("_", ".")):
                raise CorruptFile(f"A Spark job has written {entry.path}: its files are called part-…")

    yield from walk(output, [])


def _task_number(path: str) -> int:
    match = re.match(r"part-(\d+)-", path.rpartition("/")[2])
    assert match is not None
    return int(match[1])
