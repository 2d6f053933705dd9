"""Sessions of acidsql's own beside the user's, with settings that are known.

What acidsql generates must mean the same whatever the user's session is set to: ANSI mode, letter case, parsing of
literals, the meaning of ``timestamp``, missing files … So its own plans are made in sessions of the same Spark in
which all of Spark's SQL settings have their defaults, but for those that change only speed and the time zone: these
follow the user's. A plan keeps what it was analysed with, and a scan the session that it was made in.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from acidsql.catalyst.active import active
from acidsql.catalyst.builder import Plan
from acidsql.catalyst.plans import Catalyst
from acidsql.catalyst.zones import ExecutorZones
from acidsql.errors import UnsupportedError

ZONE = "spark.sql.session.timeZone"
_SQL = "spark.sql."
_CATALOGS = "spark.sql.catalog."
_PATH_FILTER = "mapreduce.input.pathFilter.class"
_BETWEEN = "\x02\x03"
_FOLLOWED = (
    ZONE,
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.codegen.",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.maxPartitionNum",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.ignoreDataLocality",
    "spark.sql.ui.explainMode",
)
"""Names of settings, or beginnings of names, that change the speed of a plan or how it is shown, not what it gives."""

_ASKED_LATE = (
    "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.csv.",
    "spark.sql.icu.caseMappings.",
    "spark.sql.json.",
    "spark.sql.jsonGenerator.",
    "spark.sql.legacy.allowHashOnMapType",
    "spark.sql.legacy.allowNegativeScaleOfDecimal",
    "spark.sql.legacy.allowZeroIndexInFormatString",
    "spark.sql.legacy.castComplexTypesToString.",
    "spark.sql.legacy.codingErrorAction",
    "spark.sql.legacy.collationAwareHashFunctions",
    "spark.sql.legacy.csv.",
    "spark.sql.legacy.disableMapKeyNormalization",
    "spark.sql.legacy.fromDayTimeString.",
    "spark.sql.legacy.histogramNumericPropagateInputType",
    "spark.sql.legacy.inSubqueryNullability",
    "spark.sql.legacy.javaCharsets",
    "spark.sql.legacy.json.",
    "spark.sql.legacy.nullInEmptyListBehavior",
    "spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv",
    "spark.sql.legacy.raiseErrorWithoutErrorClass",
    "spark.sql.legacy.scalarSubqueryCountBugBehavior",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.truncateForEmptyRegexSplit",
    "spark.sql.legacy.useLegacyXMLParser",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.mapZipWithUsesJavaCollections",
    "spark.sql.timeType.enabled",
)
"""What Spark asks the session that runs a plan, not the one that analysed it: it changes what functions of the user's
text give. What acidsql generates depends on none of these. Most are those for which Spark 4.1's sources have
``SQLConf.get`` in an expression's fields or its evaluation, and do not keep the answer in an argument of it; the others
are asked by rules and checks that run again there. ``tests/oracle/test_functions.py`` looks for further ones."""

_FOLLOWED_BY_VIEWS = (
    *_FOLLOWED,
    _CATALOGS,
    "spark.sql.files.",
    "spark.sql.hive.",
    "spark.sql.orc.",
    "spark.sql.parquet.",
    "spark.sql.sources.",
)
"""Of the session that reads a view, too: how Spark reads its own tables."""

_NOT_CAPTURED = (
    "spark.sql.adaptive.",
    "spark.sql.additionalRemoteRepositories",
    "spark.sql.analyzer.singlePassResolver.",
    "spark.sql.codegen.",
    "spark.sql.execution.",
    "spark.sql.hive.convert",
    "spark.sql.optimizer.",
    ZONE,
    "spark.sql.shuffle.",
    "spark.sql.view.maxNestedViewDepth",
)
"""What Spark does not keep with a view either (``CapturesConfig``); and the zone, which Spark does keep: the timestamps
of Hive's tables are wall clocks, which every session sees alike."""
_CURRENT_FOR_VIEWS = "spark.sql.legacy.useCurrentConfigsForView"
_ANSI = "spark.sql.ansi.enabled"

_OF_FORMATS = ("hive.", "mapred", "orc.", "parquet.")
"""Beginnings of Hadoop's settings that change what is read of a file, or how it is written and called."""

PINNED = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.output.basename": "part",
    "orc.filter.plugin": "false",
    "orc.filter.use.selected": "false",
    "orc.force.positional.evolution": "false",
    "orc.max.file.length": str((1 << 63) - 1),
    "orc.proleptic.gregorian": "false",
    "orc.proleptic.gregorian.default": "false",
    "orc.sarg.to.filter": "false",
    "orc.skip.corrupt.data": "false",
    "orc.tolerate.missing.schema": "true",
    "orc.write.format": "0.12",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.maxConcurrentOutputFileWriters": "0",
    "spark.sql.orc.enableVectorizedReader": "true",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.impl": "native",
    "spark.sql.orc.mergeSchema": "false",
    "spark.sql.parquet.filterPushdown.date": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",
}
"""What plans of ours count on, whatever a version of Spark or its environment takes for the default; Hadoop's settings,
too, which may come from the application's start (``spark.hadoop.…``), and would be true of all sessions. The threshold
keeps Spark from starting a job that looks at files which acidsql has just listed. A file ``_SUCCESS``, which nobody
reads, would cost two processes: Hadoop calls ``chmod`` for each local file and its checksum. Predicates that Spark
pushes into the ORC reader are useless for ACID files, would overwrite acidsql's own search argument
(:mod:`acidsql.catalyst.push_down`), and fail if a subquery returns NULL; days that it pushes into that of Parquet would
lose rows, as Java's old calendar does not have each of them."""


_HELD = "_acidsql_sessions"
"""The attribute of a Spark session that holds those of acidsql's."""
_RECENT = 4
"""Of so many Spark sessions they are held anyway."""


class _Statement(threading.local):
    """The sessions that the statement of this thread has followed; None outside of :meth:`InternalSessions.fixed`."""

    sessions: dict[str | None, Catalyst] | None = None


class InternalSessions:
    """The user's session and those of acidsql's own. Get them from :meth:`of`.

    Attributes:
        user: Where the user's text is parsed and analysed, and where answers live.
    """

    _recent: ClassVar[OrderedDict[tuple[str, int], InternalSessions]] = OrderedDict()
    _creating: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def of(cls, spark: SparkSession) -> InternalSessions:
        """Those of a Spark session, which has them once, however many sessions of acidsql are connected to it.

        The session itself holds them, so that they go with it; and this class the last ones: ``foreachBatch`` has
        another Python object for the same session with each batch.
        """
        with cls._creating:
            key = _identity(spark)
            for other in [known for known in cls._recent if known[0] != key[0]]:  # of a Spark that was stopped
                del cls._recent[other]
            recent = cls._recent.pop(key, None)
            made: InternalSessions | None = vars(spark).get(_HELD)
            if made is None and recent is not None and is_same_session(recent.user.spark, spark):
                made = recent
            if made is None:
                made = cls(spark)
            vars(spark)[_HELD] = cls._recent[key] = made
            if len(cls._recent) > _RECENT:
                cls._recent.popitem(last=False)
        return made

    def __init__(self, spark: SparkSession) -> None:
        self.user = Catalyst(spark)
        self._zones = ExecutorZones(spark)
        self._lock = threading.Lock()
        self._statement = _Statement()
        self._own: dict[str | None, Catalyst] = {}
        self._seen: dict[str | None, int] = {}

    @property
    def own(self) -> Catalyst:
        """A session with known settings, in the user's time zone."""
        return self._session(None)

    @property
    def file_zone(self) -> str | None:
        """The zone in which files are read and written; None for that of the driver's JVM.

        Raises:
            UnsupportedError: When the executors have several.
        """
        return self._zones.zone

    def in_zone(self, zone: str) -> Catalyst:
        """A session with known settings, in a time zone."""
        return self._session(zone)

    def captured(self) -> dict[str, str]:
        """The settings of the user's session under which a view that is created now is read, whoever reads it."""
        conf = self.user.spark.conf
        # names that Spark has not registered, such as those of catalogs, are followed where they matter
        found = {n: v for n, v in _settings(self.user.spark).items() if _is_captured(n) and conf.isModifiable(n)}
        return found | {_ANSI: str(conf.get(_ANSI))}

    def hides(self, text: str) -> bool:
        """Whether a temporary function of the user's session has a name that stands in the text of a view, or a session
        variable may have one.

        A view of the metastore never means them: it was created without them.
        """
        names = self.user.temporary_functions()
        return self.user.has_variables() or any(name.lower() in text.lower() for name in names)

    def of_view(self, settings: Mapping[str, str], database: str | None, *, hidden: bool = False) -> Catalyst:
        """A session in which a view is read that was created under these settings, in this current database.

        It is the user's own one where the same holds there, else a new one: a session keeps the files of Spark's tables
        that it has read, and is not told when another session writes them.

        Args:
            settings: None stand for those that the user's session has now.
            database: None for its current one.
            hidden: Whether the user's session :meth:`hides` what the view means.
        """
        user, now = self.user.spark, self.captured()
        wanted = {name: value for name, value in settings.items() if _is_captured(name)}
        if not settings or user.conf.get(_CURRENT_FOR_VIEWS, "false") == "true":
            wanted = now
        database = database or user.catalog.currentDatabase()
        if wanted == now and database == user.catalog.currentDatabase() and not hidden:
            return self.user
        session = _beside(user)
        for name, value in wanted.items():
            if session.conf.isModifiable(name):
                session.conf.set(name, value)
        _follow(user, session, None, _FOLLOWED_BY_VIEWS)
        if session.catalog.databaseExists(database):
            session.catalog.setCurrentDatabase(database)
        return Catalyst(session)

    @contextmanager
    def fixed(self) -> Iterator[None]:
        """For the duration of a block this thread follows the user's settings once, not whenever it asks."""
        outer, self._statement.sessions = self._statement.sessions, {}
        try:
            yield
        finally:
            # what ran in the block may have been SET
            self._statement.sessions = None if outer is None else {}

    def _session(self, zone: str | None) -> Catalyst:
        known = self._statement.sessions
        if known is not None and zone in known:
            return known[zone]
        with self._lock:
            found = self._known(zone)
        if known is not None:
            known[zone] = found
        return found

    def _known(self, zone: str | None) -> Catalyst:
        known = self._own.get(zone)
        if known is None:
            _refuse_filter(self.user.spark)
            session = _beside(self.user.spark)
            for name, value in PINNED.items():
                session.conf.set(name, value)
            known = self._own[zone] = Catalyst(session)
        state = _state(self.user.spark)
        if self._seen.get(zone) != state:
            _follow(self.user.spark, known.spark, zone)
            self._seen[zone] = state
        return known


_AS_RDD = {
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(2**31 - 1),  # a batch becomes a task
}
_LOCAL_ROWS = 1000
_TASK_BYTES = 16 << 20
"""A task is sent with its rows: far less than ``spark.rpc.message.maxSize`` (128 MiB)."""
_IN_MEMORY = "acidsql: rows of the driver, bytes: "


class _OwnSession(SparkSession):
    """A session that does not become the active one of its thread: that stays the user's."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._creating = threading.Lock()

    def createDataFrame(self, *arguments: Any, **options: Any) -> Any:
        """As PySpark's, which makes its session the active one."""
        with self._creating:
            return self._created(*arguments, **options)

    def _created(self, *arguments: Any, **options: Any) -> Any:
        before = SparkSession._activeSession
        try:
            with active(self):
                return super().createDataFrame(*arguments, **options)
        finally:
            SparkSession._activeSession = before

    def rdd_of(self, rows: pa.Table, schema: StructType | None) -> DataFrame:
        """A frame over an RDD of the driver's rows, in no more tasks than run at once or can be sent."""
        pieces = pa.concat_tables(_pieces(rows, self.sparkContext.defaultParallelism))
        # what is fetched meanwhile comes in larger batches; nothing else asks for these settings
        with self._creating:
            for name, value in _AS_RDD.items():
                self.conf.set(name, value)
            try:
                made: DataFrame = self._created(pieces, schema)
            finally:
                for name in _AS_RDD:
                    self.conf.unset(name)
        Catalyst.analyzed(made).rdd().setName(f"{_IN_MEMORY}{rows.nbytes}")
        return made


def _pieces(rows: pa.Table, count: int) -> Iterator[pa.Table]:
    """Rows in so many pieces of one batch each, more where a task would be sent with too many bytes."""
    step = max(1, math.ceil(rows.num_rows / count))
    for start in range(0, rows.num_rows, step):
        piece = rows.slice(start, step)
        if piece.nbytes > _TASK_BYTES and piece.num_rows > 1:
            yield from _pieces(piece, 2)
        else:
            yield with_copied_lists(piece).combine_chunks()


def with_copied_lists(rows: pa.Table) -> pa.Table:
    """The rows with nested columns that were copied, chunk by chunk: their lists begin where their memory does.

    PySpark fails on parts of lists with a NULL inside. Java's Arrow leaves out the offsets of an array that has no
    elements at all, inside of another one; pyarrow takes most things from such an array, but crashes where it adds up
    its bytes or puts it together with another.
    """
    for position, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            chunks = [chunk.take(pa.array(range(len(chunk)), pa.int64())) for chunk in rows.column(position).chunks]
            rows = rows.set_column(position, field, pa.chunked_array(chunks, field.type))
    return rows


def rows_in_memory(own: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Rows of the driver as a frame.

    Few stand in the plan itself, and Spark's optimiser evaluates what it can over them, without a job. Many are in an
    RDD beside it: each of the many rules of Spark's planner looks at each row that stands in a plan.

    Args:
        own: A session of acidsql's own.
        rows: The rows.
        schema: Their types; those of Arrow when left out.
    """
    if rows.num_rows > _LOCAL_ROWS:
        assert isinstance(own, _OwnSession)
        return own.rdd_of(rows, schema)
    made: DataFrame = own.createDataFrame(rows, schema)
    return made


def bytes_in_memory(leaf: Plan) -> int | None:
    """The size of rows that :func:`rows_in_memory` has put into an RDD, which Spark does not know; None for any other
    leaf of a plan."""
    name = leaf.rdd().name() if leaf.nodeName() == "LogicalRDD" else None
    return int(name.removeprefix(_IN_MEMORY)) if name is not None and name.startswith(_IN_MEMORY) else None


def _refuse_filter(spark: SparkSession) -> None:
    """Raises: UnsupportedError where Spark would leave out files that it is told to read."""
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    if settings.get(_PATH_FILTER) is not None:
        raise UnsupportedError(f"Spark was started with spark.hadoop.{_PATH_FILTER}, which hides files of tables")


def _beside(spark: SparkSession) -> SparkSession:
    """A new session of the same Spark, with Spark's defaults for whatever the application was started with."""
    session = _OwnSession(spark.sparkContext, spark._jsparkSession.newSession())
    for name in _settings(session):
        if name.startswith(_SQL) and session.conf.isModifiable(name):
            session.conf.unset(name)
    return session


def copied(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session as another one is now, but for some settings."""
    session: Any = spark._jsparkSession.cloneSession()
    for name, value in settings.items():
        session.conf().set(name, value)
    return _OwnSession(spark.sparkContext, session)


def _identity(spark: SparkSession) -> tuple[str, int]:
    """The application, and a number that other sessions in it hardly have."""
    jvm: Any = spark._jvm
    return spark.sparkContext.applicationId, int(jvm.java.lang.System.identityHashCode(spark._jsparkSession))


def is_same_session(one: SparkSession, other: SparkSession) -> bool:
    """Whether two objects stand for the same session of the JVM."""
    session: Any = one._jsparkSession
    return bool(session.equals(other._jsparkSession))


def _state(spark: SparkSession) -> int:
    """A number that changes with the session's settings."""
    settings: Any = spark._jsparkSession.conf().getAll()
    return int(settings.hashCode())


def _is_captured(name: str) -> bool:
    return name.startswith(_SQL) and not name.startswith(_NOT_CAPTURED)


def _is_followed(name: str, followed: tuple[str, ...]) -> bool:
    if not name.startswith("spark."):  # Hadoop's: file systems, and who may see them
        return not name.startswith(_OF_FORMATS)
    return name.startswith((*followed, "spark.hadoop."))


def _follow(
    user: SparkSession, session: SparkSession, zone: str | None, followed: tuple[str, ...] = (*_FOLLOWED, *_ASKED_LATE)
) -> None:
    theirs = {name: value for name, value in _settings(user).items() if _is_followed(name, followed)}
    ours = {name: value for name, value in _settings(session).items() if _is_followed(name, followed)}
    for name in ours.keys() - theirs.keys():
        if _can_change(session, name):
            session.conf.unset(name)
    for name, value in theirs.items():
        if ours.get(name) != value and _can_change(session, name):
            session.conf.set(name, value)
    wanted = zone or user.conf.get(ZONE) or "UTC"
    if session.conf.get(ZONE) != wanted:
        session.conf.set(ZONE, wanted)


def _can_change(session: SparkSession, name: str) -> bool:
    """Whether a session takes a setting: those of catalogs and of Hadoop, which Spark does not know, it does."""
    return not name.startswith("spark.") or name.startswith(_CATALOGS) or bool(session.conf.isModifiable(name))


def _settings(spark: SparkSession) -> Mapping[str, str]:
    """The settings of a session; as one text from the JVM, since each call takes time."""
    settings: Any = spark._jsparkSession.conf().getAll()
    entries = str(settings.mkString(_BETWEEN)).split(_BETWEEN)
    return dict(entry.split(" -> ", 1) for entry in entries if entry)
