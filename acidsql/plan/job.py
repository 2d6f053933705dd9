"""Writing events with one Spark job, for results that are too large for the driver.

The job writes part files below the staging directory, and :mod:`acidsql.plan.job_files` makes bucket files of them: on
the local file system flat ones (:mod:`acidsql.format.flat`), of a plain INSERT without the event columns; on others,
where the driver would have to fetch them, files of events as they are to be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.catalyst import Catalyst, Draft, ended_with_the_call
from acidsql.errors import CardinalityViolation
from acidsql.format.bucket import VERSION_SHIFT, WRITER_MASK, WRITER_SHIFT, encode
from acidsql.format.schema import EVENT_COLUMNS, KEY_COLUMNS, ROW
from acidsql.format.stripes import INDEX_STRIDE
from acidsql.fs.java import java_errors
from acidsql.partition_names import DEFAULT_PARTITION
from acidsql.plan.changes import BUCKET, KIND, ChangeSet, value_column
from acidsql.plan.failures import failing_with, failure_of
from acidsql.plan.job_files import DELETES, INSERTS, KEY, PLACE, SINK_SHIFT, VERSIONS, Content, collect
from acidsql.plan.snapshot import row_type_of
from acidsql.plan.staging import Staging
from acidsql.plan.target import IDENTITY, Change, RowCounts, Target
from acidsql.plan.text import TASK_SHIFT, literal, quote, row_number_of
from acidsql.plan.values import with_leaves
from acidsql.types import Char, HiveType, to_spark


def writer_of(bucket: str) -> str:
    """An expression for the number of the bucket file of a row, over its ``bucketId``."""
    number = f"({bucket} & {WRITER_MASK}) >> {WRITER_SHIFT}"
    return f"CASE WHEN shiftright({bucket}, {VERSION_SHIFT}) = 0 THEN {bucket} ELSE {number} END"


_WRITER = writer_of("bucketId")
_OF_TASKS = ("HiveTableRelation", "InMemoryRelation", "LogicalRDD", "LogicalRelation", "Range")
"""Leaves of plans whose rows are read by tasks."""
_WRITER_OPTIONS = {
    "maxRecordsPerFile": "0",
    "orc.compression.zstd.level": "1",
    "orc.create.index": "true",
    "orc.dictionary.implementation": "hash",
    "orc.row.index.stride": str(INDEX_STRIDE),
}
"""Of ORC's writer: one file a task and directory; the quicker of its two dictionaries, and a level at which files are
no larger; index entries as all files have them."""
_WITHOUT_CHECKSUMS = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache": "true"}
"""Of Hadoop's local file system, which would write a file of checksums beside each file, and call ``chmod`` for it, a
process of its own: nobody reads them, and they do not follow a file to its place."""
_NUMBER = "__acid_writer"
"""The number of the bucket file that a change goes to."""
_MANY = 1 << 20
"""More tasks than any job has: ``coalesce`` then joins none."""
_TWICE = re.compile(r"matched twice: (-?\d+), (-?\d+), (-?\d+)")


def write_by_job(catalyst: Catalyst, target: Target, staging: Staging, changes: ChangeSet) -> RowCounts:
    """Write all changes with one job.

    Raises:
        AcidError: When more than 4096 tasks would each write a bucket file (``BucketCodec`` numbers no more).
        CardinalityViolation: When a row is named twice in changes of several kinds.
    """
    change, keys = changes.change, [f"{KEY}{i}" for i in range(len(changes.keys))]
    shuffled = change is not Change.INSERT or changes.is_bucketed
    content = _content(target, staging, change)
    if shuffled:
        events, by = _placed_events(catalyst, target, changes, keys, content), [*keys, PLACE]
    else:
        events, by = _task_events(catalyst, target, changes, keys, content), keys
    output = fs.join(staging.path, "job")
    options = {**_WRITER_OPTIONS, **(_WITHOUT_CHECKSUMS if fs.is_local(output) else {})}
    write = events.frame().write.options(compression=target.compression, **options)
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
    return collect(target, staging, output, change, content, shuffled=shuffled)


def _content(target: Target, staging: Staging, change: Change | None) -> Content:
    """What the files of the job hold."""
    if not target.table.is_full_acid:
        return Content.ROWS
    if not fs.is_local(staging.path):
        return Content.EVENTS
    return Content.ROWS_OF_EVENTS if change is Change.INSERT else Content.FLAT_EVENTS


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


def _task_events(catalyst: Catalyst, target: Target, changes: ChangeSet, keys: list[str], content: Content) -> Draft:
    """One file per task and partition, the task's number is the writer's: no shuffle is needed."""
    number = "monotonically_increasing_id() AS id"
    if content is not Content.EVENTS:
        values = _rows(target, content)
        rows = Draft.of(catalyst, changes.frame)
        if not keys:
            return rows.select(*values)
        numbered = rows.select(*changes.values, *changes.keys, number)
        placed = numbered.select("*", *_directory_keys(changes.keys, "id", keys))
        return placed.sorted_within([*keys, "id"]).select(*values, *keys)
    numbered = Draft.of(catalyst, _in_tasks(changes.frame)).select(*changes.values, *changes.keys, number)
    events = numbered.select(
        "0 AS operation",
        f"{target.write_id}L AS originalTransaction",
        f"{encode(0, target.statement_id)} | (CAST(id >> {TASK_SHIFT} AS int) << {WRITER_SHIFT}) AS bucket",
        f"{row_number_of('id')} AS rowId",
        f"{target.write_id}L AS currentTransaction",
        f"{_row(target)} AS {ROW}",
        *_directory_keys(changes.keys, "id", keys),
    )
    return events.sorted_within([*keys, "rowId"]) if keys else events


def _rows(target: Target, content: Content) -> list[str]:
    """The columns of a file without event columns."""
    columns = enumerate(_columns(target))
    return [f"{value} AS {quote(n) if content is Content.ROWS else f'c{i}'}" for i, (n, value) in columns]


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


def _placed_events(catalyst: Catalyst, target: Target, changes: ChangeSet, keys: list[str], content: Content) -> Draft:
    """All directories of a statement in one job: of each change its delete event, its insert event, or both.

    All rows of a bucket meet in one task (one file a bucket), sorted as readers need them.
    """
    change = changes.change
    placed = _numbered(_placed(catalyst, changes, keys), keys, change)
    if content in (Content.ROWS, Content.ROWS_OF_EVENTS):
        above = [*keys, PLACE]
        rows = placed.select("*", _place(f"if(number < 0, 0, {INSERTS})"))
        return rows.sorted_within([*above, "number"]).select(*_rows(target, content), *above)
    values = _Values(target, flat=content is Content.FLAT_EVENTS)
    events = placed.select(*keys, _NUMBER, f"explode({_events(target, change, values)}) AS e")
    columns = [f"e.{name} AS {name}" for name in (*EVENT_COLUMNS[:-1], *values.names)]
    made = events.select(*keys, _place("e.sink"), *columns)
    return made.sorted_within([*keys, PLACE, *KEY_COLUMNS])


def _place(sink: str) -> str:
    """The directory of a row's file; Spark sorts by a constant one anew, and then drops the sort below."""
    return f"shiftleft(CAST({sink} AS bigint), {SINK_SHIFT}) | CAST({_NUMBER} AS bigint) AS {PLACE}"


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


def _events(target: Target, change: Change | None, values: _Values) -> str:
    """An array of the events of a change, each with the directory that it goes to."""
    if change is not None:
        return _events_of(target, change, target, values)
    kinds = (Change.INSERT, Change.UPDATE, Change.DELETE)
    cases = [f"WHEN {int(k)} THEN {_events_of(target, k, target.next, values)}" for k in kinds]
    return f"CASE {KIND} {' '.join(cases)} END"


def _events_of(target: Target, change: Change, inserts: Target, values: _Values) -> str:
    events = []
    if change is not Change.INSERT:
        events.append(_event(target, DELETES, 2, IDENTITY, values.nothing))
    if change is not Change.DELETE:
        sink, into = (INSERTS, inserts) if change is Change.INSERT else (VERSIONS, target)
        bucket = f"{encode(0, into.statement_id)} | ({_NUMBER} << {WRITER_SHIFT})"
        events.append(_event(target, sink, 0, (f"{target.write_id}L", bucket, "number"), values.row))
    return f"array({', '.join(events)})"


def _event(target: Target, sink: int, operation: int, key: Sequence[str], values: Sequence[str]) -> str:
    original, bucket, row_id = key
    fields = [("sink", str(sink)), ("operation", str(operation)), ("originalTransaction", original)]
    fields += [("bucket", bucket), ("rowId", row_id), ("currentTransaction", f"{target.write_id}L")]
    return f"named_struct({', '.join([*(f'{literal(n)}, {value}' for n, value in fields), *values])})"


class _Values:
    """The values of a row behind the event columns: in the struct ``row``, or beside them.

    Attributes:
        names, columns: Their columns, and those with their values.
        row: Names and values of a row, each name as a text in front of its value.
        nothing: The same of a delete event.
    """

    def __init__(self, target: Target, *, flat: bool) -> None:
        type = row_type_of(target.table)
        ddl = to_spark(type, plain_strings=True)
        self.names, given = [ROW], [(_row(target), ddl)]
        if flat:
            self.names = [f"c{i}" for i in range(len(type.fields))]
            types = (to_spark(one, plain_strings=True) for _, one in type.fields)
            given = [(value, one) for (_, value), one in zip(_columns(target), types, strict=True)]
        self.columns = [f"{v} AS {n}" for n, (v, _) in zip(self.names, given, strict=True)]
        self.row = [f"'{n}', CAST({v} AS {t})" for n, (v, t) in zip(self.names, given, strict=True)]
        self.nothing = [f"'{n}', CAST(NULL AS {t})" for n, (_, t) in zip(self.names, given, strict=True)]
