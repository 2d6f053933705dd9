"""Groups the files of a snapshot by how they are read: one scan for all that can be read alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from acidsql.errors import CorruptFile, UnsupportedError
from acidsql.format.directory import AcidDirectory, AcidFile
from acidsql.format.names import DeltaName
from acidsql.format.originals import OriginalFile, number_originals
from acidsql.format.schema import AcidSchema
from acidsql.metastore.model import Table
from acidsql.partition_names import key_texts
from acidsql.plan.facts import FileMetadata, facts_of, plain_types, read_ahead
from acidsql.plan.files import AT
from acidsql.plan.prefixes import whole_file
from acidsql.plan.ranges import Ranges
from acidsql.plan.snapshot import PartitionState, TableSnapshot
from acidsql.types import Char, HiveType, Primitive, Struct, Varchar, contains, is_as_wide, parse_type

_NO_NAME = re.compile("_col[0-9]+")
"""orc-core: ``SchemaEvolution.missingMetadataPattern``."""

Place = tuple[int | str | None, ...]
"""Where a file's rows belong: the number of its partition in the snapshot, and the partition's key values."""


@dataclass
class EventFiles:
    """Files of events whose columns have the same names.

    Attributes:
        names: Those names, as far as the table has columns.
        unbounded: Positions of the ``varchar`` columns whose values may be longer in these files than they are now.
        retyped: Positions of the columns whose values are of another kind in these files than they are now. A predicate
            on one must not be pushed down: orc-core fails on a constant that is not of the file's kind.
        is_merged: Whether their events are laid over each other by key (ACID version 1).
        own_names: Whether the names are the table's own.
        by_position: Whether orc-core finds the columns by their positions, as all are called ``_col<number>``: so Hive
            before 2.0, and its CTAS, wrote them. Those before a column that is read have to be read, too.
        files: The files.
        present: How many of the columns every one of them has.
        exact: Whether orc-core takes all of them for ACID files (the six names letter by letter).
        places: By path.
        statements: The statement ids of their directories, by path; only where they are merged.
        ranges: The ranges of columns in files that are alone in their directories, by path.
    """

    names: tuple[str, ...]
    unbounded: tuple[int, ...]
    retyped: tuple[int, ...]
    is_merged: bool
    own_names: bool
    by_position: bool
    files: list[AcidFile] = field(default_factory=list)
    present: int = 1 << 30
    exact: bool = True
    places: dict[str, Place] = field(default_factory=dict)
    statements: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, Ranges] = field(default_factory=dict)

    @property
    def is_searchable(self) -> bool:
        """Whether conditions over columns may be asked of the files: only where they have the table's names, and
        orc-core takes them for ACID ones, is the rule of finding columns known."""
        return self.own_names and self.exact and not self.retyped

    def columns(self, table: Table) -> tuple[tuple[str, str], ...]:
        """Name in the files and type of each column of the table; columns that the files lack get a generated name."""
        own = self.names
        free = AT
        while any(name.lower().startswith(free) for name in own):
            free += "_"
        return tuple((own[i] if i < len(own) else f"{free}{i}", c.type) for i, c in enumerate(table.columns))


@dataclass
class OriginalFiles:
    """Files without event columns in a full-ACID table, all read by one scan: columns go by position there."""

    files: list[OriginalFile] = field(default_factory=list)
    width: int = 0
    places: dict[str, Place] = field(default_factory=dict)


@dataclass
class PlainFiles:
    """Files of an insert-only table, all of one format.

    Attributes:
        files: The files.
        width: The number of columns of the widest ORC file.
        retyped: As for :class:`EventFiles`, of any ORC file.
        places: By path.
    """

    files: list[AcidFile] = field(default_factory=list)
    width: int = 0
    retyped: set[int] = field(default_factory=set)
    places: dict[str, Place] = field(default_factory=dict)


@dataclass(frozen=True)
class PlainLayout:
    """How the files of an insert-only table are read."""

    orc: PlainFiles
    parquet: PlainFiles


@dataclass
class Layout:
    """How the files of a full-ACID table are read. ``merged_originals`` lie below the updates of ACID version 1."""

    events: list[EventFiles]
    originals: OriginalFiles
    merged_originals: OriginalFiles


def plain_layout(snapshot: TableSnapshot) -> PlainLayout:
    """The files of an insert-only table.

    All files of a directory come from one statement, so one of them represents all.

    Raises:
        UnsupportedError: When they are neither ORC nor Parquet files.
    """
    layout = PlainLayout(PlainFiles(), PlainFiles())
    kinds = [kind_of(parse_type(c.type)) for c in snapshot.table.columns]
    for number, part in enumerate(snapshot.partitions):
        place = _place(number, part)
        for files in (part.state.originals, *(d.files for d in part.state.data_directories)):
            filled = [f for f in files if f.length]
            if filled:
                types = plain_types(filled[0])
                found = layout.parquet if types is None else layout.orc
                found.width = max(found.width, len(types or ()))
                found.retyped |= {
                    i for i, (now, was) in enumerate(zip(kinds, types or (), strict=False)) if now != kind_of(was)
                }
                found.files += filled
                found.places.update((f.path, place) for f in filled)
    if layout.parquet.files and any(contains(parse_type(c.type), "timestamp") for c in snapshot.table.columns):
        raise UnsupportedError(
            f"Insert-only table {snapshot.table.full_name} has timestamps in Parquet files, which is not supported",
            hint="Their values depend on the writer's time zone. Copy the table into one that is STORED AS ORC.",
        )
    return layout


def layout(spark: SparkSession, snapshot: TableSnapshot) -> Layout:
    """How the files of a full-ACID table are read.

    Hive finds a column by its position (a renamed column keeps its values), Spark by its name: event files with other
    names are read under those. Missing columns at the end are NULL, other types are the ORC reader's work. All files
    of events in a directory come from one statement or one compaction, so one footer tells for all of them.

    Raises:
        CorruptFile: When a file is not what its name says.
        UnsupportedError: When an original file has no bucket number.
    """
    return _Layout(spark, snapshot).found


class _Layout:
    def __init__(self, spark: SparkSession, snapshot: TableSnapshot) -> None:
        self._spark = spark
        self._table = snapshot.table
        self._types = tuple(parse_type(c.type) for c in snapshot.table.columns)
        self._groups: dict[tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...], bool, bool], EventFiles] = {}
        self._plain, self._merged_plain = OriginalFiles(), OriginalFiles()
        found = (d.files for part in snapshot.partitions for d in part.state.data_directories)
        read_ahead([files[0] for files in found if files and files[0].length], snapshot.table.location)
        for number, part in enumerate(snapshot.partitions):
            self._partition(_place(number, part), part)
        self.found = Layout(list(self._groups.values()), self._plain, self._merged_plain)

    def _partition(self, place: Place, part: PartitionState) -> None:
        split = [(d, *_kinds(d)) for d in part.state.data_directories]
        is_merged = any(_changes_rows(d, events) for d, events, _ in split)
        originals = self._merged_plain if is_merged else self._plain
        for directory, events, plain in split:
            self._events(place, directory, events, is_merged)
            self._originals(place, originals, directory, plain)
        self._originals(place, originals, None, part.state.originals)

    def _events(self, place: Place, directory: AcidDirectory, files: list[AcidFile], is_merged: bool) -> None:
        if not files:
            return
        facts = facts_of(files[0])
        group = self._group(facts, is_merged)
        group.present = min(group.present, len(facts.columns), len(self._types))
        group.exact = group.exact and facts.acid is AcidSchema.EXACT
        name = directory.name
        statement = name.first_statement if isinstance(name, DeltaName) else 0
        for file in files:
            readable = whole_file(self._spark, self._table, file)
            group.files.append(readable)
            group.places[readable.path] = place
            group.statements[readable.path] = statement
            if len(files) == 1:
                group.ranges[readable.path] = self._ranges(facts)

    def _ranges(self, facts: FileMetadata) -> Ranges:
        """By the table's names. A column that was narrowed since has other values than the file tells."""
        columns = self._table.columns
        return {
            columns[i].name: bounds
            for i, bounds in facts.ranges.items()
            if i < len(columns) and _is_as_wide(self._types[i], facts.columns[i][1])
        }

    def _group(self, facts: FileMetadata, is_merged: bool) -> EventFiles:
        wanted = tuple(c.name for c in self._table.columns)
        names = tuple(name for name, _ in facts.columns[: len(wanted)])
        same = tuple(n.lower() for n in names) == wanted[: len(names)]
        names = wanted if same else names
        types = [type for _, type in facts.columns]
        pairs = list(enumerate(zip(self._types, types, strict=False)))
        unbounded = tuple(i for i, (now, was) in pairs if _may_be_longer(now, was))
        retyped = tuple(i for i, (now, was) in pairs if kind_of(now) != kind_of(was))
        by_position = all(_NO_NAME.fullmatch(name) for name, _ in facts.columns)
        key = (names, unbounded, retyped, is_merged, by_position)
        return self._groups.setdefault(
            key, EventFiles(names, unbounded, retyped, is_merged, own_names=same, by_position=by_position)
        )

    def _originals(
        self, place: Place, into: OriginalFiles, directory: AcidDirectory | None, files: Sequence[AcidFile]
    ) -> None:
        name = directory.name if directory else None
        for file in number_originals(files, name, lambda f: facts_of(f).stripes):
            into.width = max(into.width, len(facts_of(file.file).columns))
            into.files.append(file)
            into.places[file.file.path] = place


def _place(number: int, part: PartitionState) -> Place:
    values = part.partition.values if part.partition is not None else ()
    return (number, *key_texts(values))


def _kinds(directory: AcidDirectory) -> tuple[list[AcidFile], list[AcidFile]]:
    """The files of events and the original files of a base or delta (``AcidUtils.MetaDataFile.isRawFormat``).

    Raises:
        CorruptFile: When a file of events is empty, which Spark would pass over as if it held no rows; or holds none.
    """
    events: list[AcidFile] = []
    originals: list[AcidFile] = []
    for file in directory.files:
        is_bucket = file.name.startswith("bucket_")
        if not file.length and (file.is_prefix or not is_bucket):
            continue
        if not file.length:
            raise CorruptFile(f"{file.path} is empty: not an ORC file")
        known = is_bucket and bool(events)  # the first event file represents all
        (events if known or facts_of(file).acid else originals).append(file)
    name = directory.name
    if originals and isinstance(name, DeltaName) and name.min_write_id != name.max_write_id:
        raise CorruptFile(f"{originals[0].path} has no event columns, so the write ids of its rows are unknown")
    return events, originals


def _changes_rows(directory: AcidDirectory, events: list[AcidFile]) -> bool:
    """Whether files may hold events of ACID version 1 that replace or delete rows.

    Since Hive 3 files and directories name their version, and there are none; before, the counts in the files tell.
    """
    if not events:
        return False
    first = facts_of(events[0])
    if first.stats is not None and first.changes_rows:
        return True
    return not (directory.has_version_file or first.is_versioned) and any(facts_of(f).changes_rows for f in events)


def kind_of(type: HiveType) -> str:
    """Types of one kind, and their fields, have constants of one kind in a search argument (``PredicateLeaf.Type``)."""
    if isinstance(type, Char | Varchar):
        return "string"
    if isinstance(type, Struct):
        return f"struct<{','.join(f'{name.lower()}:{kind_of(field)}' for name, field in type.fields)}>"
    name = type.name if isinstance(type, Primitive) else type.__class__.__name__
    return {"tinyint": "bigint", "smallint": "bigint", "int": "bigint", "float": "double"}.get(name, name)


def _is_as_wide(now: HiveType, was: HiveType) -> bool:
    """Whether a type of whole numbers has all values of another one."""
    return isinstance(now, Primitive) and isinstance(was, Primitive) and is_as_wide(now.name, was.name)


def _may_be_longer(now: HiveType, was: HiveType) -> bool:
    """Whether values of a column may be too long for its type."""
    return isinstance(now, Varchar) and not (isinstance(was, Varchar | Char) and was.length <= now.length)
