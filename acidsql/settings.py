"""Settings: every name that acidsql knows, with its type, default and effect.

Names that Hive has keep Hive's name, unit and default. ``SET name = value`` changes one for the session; a name that
nobody knows is answered with the nearest one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from acidsql.errors import InvalidValue

T = TypeVar("T")

_UNITS = {
    "ms": 0.001,
    "msec": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def parse_bool(text: str) -> bool:
    """``true`` or ``false``, in any letter case."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError("true or false")


def parse_seconds(text: str) -> float:
    """A duration as Hive writes it: ``300s``, ``50ms``, ``5min``; a bare number is seconds."""
    m = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    unit = (m[2] if m[2] in _UNITS else m[2].rstrip("s")) if m else ""
    if m is None or (unit and unit not in _UNITS):
        raise ValueError("a duration such as 300s, 50ms or 5min")
    return float(m[1]) * _UNITS.get(unit, 1.0)


def parse_size(text: str) -> int:
    """A size in bytes: ``64mb``, ``1g``, or a bare number."""
    m = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if m is None or m[2] not in _SIZES:
        raise ValueError("a size such as 64mb")
    return int(m[1]) * _SIZES[m[2]]


def _count(text: str) -> int:
    if not re.fullmatch(r"\s*\d+\s*", text):
        raise ValueError("a whole number")
    return int(text)


def _at_least_one(text: str) -> int:
    if not _count(text):
        raise ValueError("a whole number above 0")
    return _count(text)


def _share(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise ValueError("a number of at least 0")
    return value


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(" or ".join(allowed))
        return text.lower()

    parse.__doc__ = ", ".join(allowed)
    return parse


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting: its name, how its text is read, its default text and what it does."""

    name: str
    parse: Callable[[str], T]
    default: str
    doc: str


REGISTRY: dict[str, Setting[Any]] = {}


def _setting(name: str, parse: Callable[[str], T], default: str, doc: str) -> Setting[T]:
    made = Setting(name, parse, default, doc)
    REGISTRY[name] = made
    return made


TXN_TIMEOUT = _setting(
    "hive.txn.timeout", parse_seconds, "300s", "A transaction or lock without a heartbeat for this long is timed out."
)
MAX_OPEN_BATCH = _setting(
    "hive.txn.max.open.batch",
    _at_least_one,
    "1000",
    "At most so many transactions are opened by one call; who asks for more gets so many.",
)
_setting(
    "hive.txn.heartbeat.threadpool.size",
    _at_least_one,
    "5",
    "None: a session sends all its heartbeats from one thread, in one call. Taken for Hive's sake.",
)
_setting(
    "hive.timedout.txn.reaper.start",
    parse_seconds,
    "100s",
    "None: the compactor's first round of hive.timedout.txn.reaper.interval comes at once. Taken for Hive's sake.",
)
MAX_OPEN_TXNS = _setting(
    "hive.max.open.txns", _count, "100000", "Opening a transaction beyond this many open ones is refused."
)
LOCK_RETRIES = _setting(
    "hive.lock.numretries", _count, "100", "How often a waiting lock is tried again before the statement gives up."
)
LOCK_SLEEP = _setting(
    "hive.lock.sleep.between.retries",
    parse_seconds,
    "60s",
    "Longest pause between two tries for a lock; the first ones are some milliseconds, and they grow.",
)
LOCK_WAIT = _setting(
    "acidsql.lock.timeout", parse_seconds, "300s", "Longest time that a statement waits for its locks."
)
XLOCK_WRITE = _setting(
    "hive.txn.xlock.write",
    parse_bool,
    "true",
    "UPDATE and DELETE take EXCL_WRITE locks; false: SHARED_WRITE, as INSERT does then, and the first to commit wins.",
)
XLOCK_IOW = _setting(
    "hive.txn.xlock.iow", parse_bool, "true", "INSERT OVERWRITE takes EXCLUSIVE locks; false: EXCL_WRITE."
)
XLOCK_MERGE_INSERT = _setting(
    "hive.txn.xlock.mergeinsert",
    parse_bool,
    "false",
    "The INSERT branch of MERGE takes EXCL_WRITE locks too: two that run at once then insert no row twice.",
)
MERGE_CARDINALITY = _setting(
    "hive.merge.cardinality.check",
    parse_bool,
    "true",
    "MERGE fails where a row of the target has several partners; false: only where several would change it.",
)
SNAPSHOT_RETRIES = _setting(
    "hive.txn.retrysnapshot.max.count",
    _count,
    "5",
    "How often a statement starts anew because its snapshot was outdated when its locks were granted.",
)
LOCK_PARTITIONS = _setting(
    "hive.locks.max.partitions", _count, "1000", "A statement over more partitions than this locks the whole table."
)
INITIATOR_ON = _setting(
    "hive.compactor.initiator.on",
    parse_bool,
    "true",
    "Whether the compactor looks for what is due by itself; requests of users are carried out anyway.",
)
CLEANER_ON = _setting(
    "hive.compactor.cleaner.on", parse_bool, "true", "Whether the compactor removes what nobody can need any more."
)
WORKER_THREADS = _setting(
    "hive.compactor.worker.threads", _count, "1", "Compactions that one process carries out at the same time."
)
WORKER_SLEEP = _setting(
    "hive.compactor.worker.sleep.time", parse_seconds, "1s", "Pause of a worker that finds no request."
)
WORKER_TIMEOUT = _setting(
    "hive.compactor.worker.timeout",
    parse_seconds,
    "86400s",
    "A compaction that is not finished after this time goes back into the queue.",
)
CHECK_INTERVAL = _setting(
    "hive.compactor.check.interval", parse_seconds, "300s", "Pause between two rounds of the initiator."
)
CLEANER_INTERVAL = _setting(
    "hive.compactor.cleaner.run.interval", parse_seconds, "5000ms", "Pause between two rounds of the cleaner."
)
HOUSEKEEPER_INTERVAL = _setting(
    "hive.timedout.txn.reaper.interval",
    parse_seconds,
    "180s",
    "Pause between two rounds in which dead transactions are timed out and old entries forgotten.",
)
DELTA_NUM_THRESHOLD = _setting(
    "hive.compactor.delta.num.threshold",
    _count,
    "10",
    "More deltas than this in a table or partition: a minor compaction is due.",
)
DELTA_PCT_THRESHOLD = _setting(
    "hive.compactor.delta.pct.threshold",
    _share,
    "0.1",
    "Deltas larger than this part of the base: a major compaction is due.",
)
_setting(
    "hive.compactor.max.num.delta",
    _at_least_one,
    "500",
    "None: a compaction takes on all deltas that there are. Taken for Hive's sake.",
)
ABORTED_TXN_THRESHOLD = _setting(
    "hive.compactor.abortedtxn.threshold",
    _count,
    "1000",
    "More aborted transactions than this on a table or partition: a major compaction is due.",
)
ABORTED_TXN_AGE = _setting(
    "hive.compactor.aborted.txn.time.threshold",
    parse_seconds,
    "12h",
    "Something aborted that is older than this: a minor compaction is due; 0: never.",
)
FAILED_COMPACTS_THRESHOLD = _setting(
    "hive.compactor.initiator.failed.compacts.threshold",
    _at_least_one,
    "2",
    "After this many failures in a row the initiator leaves a table or partition alone.",
)
FAILED_COMPACTS_RETRY = _setting(
    "hive.compactor.initiator.failed.retry.time",
    parse_seconds,
    "7d",
    "After this time it tries again all the same; 0: never.",
)
JOB_QUEUE = _setting(
    "hive.compactor.job.queue",
    str,
    "",
    "The pool whose requests the workers of this session take; empty: those of no pool.",
)
CLEANER_DELAYED = _setting(
    "hive.compactor.delayed.cleanup.enabled",
    parse_bool,
    "false",
    "Whether the cleaner waits for hive.compactor.cleaner.retention.time after a compaction.",
)
CLEANER_RETENTION = _setting(
    "hive.compactor.cleaner.retention.time",
    parse_seconds,
    "300s",
    "How long obsolete files stay where cleaning is delayed.",
)
CLEANER_MAX_RETRIES = _setting(
    "hive.compactor.cleaner.max.retry.attempts",
    _count,
    "5",
    "How often cleaning is tried again before it counts as failed.",
)
CLEANER_RETRY = _setting(
    "hive.compactor.cleaner.retry.retention.time",
    parse_seconds,
    "300s",
    "Pause before cleaning is tried again; it doubles each time.",
)
POOL_TIMEOUT = _setting(
    "hive.compactor.worker.pool.timeout",
    parse_seconds,
    "12h",
    "A request of a pool that none of its workers has taken after this time is taken by those of no pool.",
)
FETCH_SIZE = _setting(
    "hive.compactor.fetch.size", _at_least_one, "1000", "How many entries the cleaner takes on in one round."
)
HISTORY_SUCCEEDED = _setting(
    "hive.compactor.history.retention.succeeded",
    _count,
    "3",
    "How many successful compactions of a table or partition SHOW COMPACTIONS remembers.",
)
HISTORY_FAILED = _setting(
    "hive.compactor.history.retention.failed",
    _count,
    "3",
    "How many failed ones it remembers; at least hive.compactor.initiator.failed.compacts.threshold.",
)
HISTORY_DID_NOT_INITIATE = _setting(
    "hive.compactor.history.retention.did.not.initiate", _count, "2", "How many that did not initiate it remembers."
)
HISTORY_REFUSED = _setting(
    "hive.compactor.history.retention.refused", _count, "3", "How many refused ones it remembers, and how many aborted."
)
HISTORY_TIMEOUT = _setting(
    "hive.compactor.history.retention.timeout",
    parse_seconds,
    "7d",
    "What did not succeed is forgotten after this time, if a later compaction of the same did.",
)
STAGING_RETENTION = _setting(
    "acidsql.staging.retention",
    parse_seconds,
    "1d",
    "A staging directory in which nothing was written for this long is of a dead writer, and removed.",
)
STAGING_SWEEP = _setting(
    "acidsql.staging.sweep.interval", parse_seconds, "1h", "Pause between two searches for such directories."
)
COMPACTION_WAIT = _setting(
    "acidsql.compaction.wait.timeout",
    parse_seconds,
    "1h",
    "How long ALTER TABLE … COMPACT … AND WAIT waits for the worker; the compaction itself goes on afterwards.",
)
COMPACTION_LAYOUT = _setting(
    "acidsql.compactor.layout",
    _choice("hive3", "hive4"),
    "hive3",
    "How compacted directories are called on the embedded store: base_N and delta_min_max, which every engine reads, or"
    " with _v<transaction>, as Hive 4 does. On a Hive Metastore always the latter.",
)
AUTO_COMPACTION = _setting(
    "acidsql.compactor.auto",
    parse_bool,
    "false",
    "true: a thread of the session looks now and then, after a commit, whether a compaction of what was written is due,"
    " and carries it out. On a Hive Metastore its own initiator does so.",
)
COMPACTION_SPARK_SIZE = _setting(
    "acidsql.compactor.spark.size",
    parse_size,
    "256mb",
    "A compaction of more bytes than this runs as Spark tasks, a task a bucket; others run in the compactor's process.",
)
CONCATENATE_NO_WAIT = _setting(
    "hive.transactional.concatenate.noblock",
    parse_bool,
    "false",
    "true: ALTER TABLE … CONCATENATE, a major compaction of an ACID table, does not wait for the worker.",
)
DROP_IGNORES = _setting(
    "hive.exec.drop.ignorenonexistent",
    parse_bool,
    "true",
    "DROP TABLE, DROP VIEW and DROP PARTITION of what is not there do nothing; false: only with IF EXISTS.",
)
NANOSECONDS = _setting(
    "acidsql.timestamp.nanoseconds",
    _choice("error", "truncate"),
    "error",
    "What UPDATE and MERGE do with a row that they rewrite and that keeps a timestamp finer than a microsecond.",
)
DRIVER_WRITE_ROWS = _setting(
    "acidsql.write.driver.rows",
    _count,
    "20000",
    "A statement that changes no more rows than this is written by the driver, without a Spark write job.",
)
READ_LEASE = _setting(
    "acidsql.read.lease", parse_seconds, "1h", "How long a DataFrame's snapshot is pinned against the cleaner."
)
DYNAMIC_PARTITION = _setting(
    "hive.exec.dynamic.partition", parse_bool, "true", "Whether INSERT may take partition values from the query."
)
DYNAMIC_PARTITION_MODE = _setting(
    "hive.exec.dynamic.partition.mode",
    _choice("strict", "nonstrict"),
    "nonstrict",
    "strict: INSERT must name at least one static partition value.",
)
FETCH_DELETED = _setting(
    "acid.fetch.deleted.rows",
    parse_bool,
    "false",
    "A query that mentions ROW__IS__DELETED also gives deleted rows, while their files are there.",
)
METASTORE_BUSY = _setting(
    "acidsql.metastore.busy.timeout",
    parse_seconds,
    "60s",
    "How long a call waits for another process that is writing to the embedded store.",
)
METASTORE_SOCKET_TIMEOUT = _setting(
    "hive.metastore.client.socket.timeout",
    parse_seconds,
    "600s",
    "How long a call to a Hive Metastore waits for its answer.",
)
METASTORE_CONNECT_TIMEOUT = _setting(
    "acidsql.metastore.connect.timeout",
    parse_seconds,
    "10s",
    "How long one server of a Hive Metastore may take to accept a connection before the next one is tried.",
)
METASTORE_CONNECT_RETRIES = _setting(
    "hive.metastore.connect.retries", _at_least_one, "3", "How often all servers are tried when a connection is made."
)
METASTORE_CONNECT_DELAY = _setting(
    "hive.metastore.client.connect.retry.delay", parse_seconds, "1s", "Pause between two rounds over all servers."
)
METASTORE_FAILURE_RETRIES = _setting(
    "hive.metastore.failure.retries",
    _count,
    "1",
    "How often a call to a Hive Metastore is made again on a new connection when the connection is lost.",
)
DISALLOW_TYPE_CHANGES = _setting(
    "hive.metastore.disallow.incompatible.col.type.changes",
    parse_bool,
    "true",
    "false: ALTER TABLE may also make a column's type narrower; values that do not fit are read as NULL.",
)
METASTORE_URI_SELECTION = _setting(
    "hive.metastore.uri.selection",
    _choice("random", "sequential"),
    "random",
    "random: any server of a Hive Metastore first; sequential: in the order given.",
)


class Settings(Mapping[str, str]):
    """The settings of one session: texts by name, typed values by :class:`Setting`."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._texts: dict[str, str] = {}
        self._values: dict[str, Any] = {name: s.parse(s.default) for name, s in REGISTRY.items()}
        for name, text in (values or {}).items():
            self.set(name, str(text))

    def set(self, name: str, text: str) -> None:
        """Change a setting.

        Raises:
            InvalidValue: When nobody knows the name, or the text is not of its type.
        """
        setting = REGISTRY.get(name.lower())
        if setting is None:
            near = difflib.get_close_matches(name.lower(), REGISTRY, n=1, cutoff=0.5)
            raise InvalidValue(f"Unknown setting {name!r}", hint=f"Did you mean {near[0]}?" if near else None)
        try:
            self._values[setting.name] = setting.parse(text)
        except ValueError as e:
            raise InvalidValue(f"Setting {setting.name} takes {e}, not {text!r}") from e
        self._texts[setting.name] = text

    def value(self, setting: Setting[T]) -> T:
        """The typed value of a setting."""
        return cast(T, self._values[setting.name])

    def __getitem__(self, name: str) -> str:
        return self._texts.get(name) or REGISTRY[name].default

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTRY)

    def __len__(self) -> int:
        return len(REGISTRY)
