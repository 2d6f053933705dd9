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


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(" or ".join(allowed))
        return text.lower()

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
    "UPDATE and DELETE take EXCL_WRITE locks; false: SHARED_WRITE, and the first to commit wins.",
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
COMPACTION_LAYOUT = _setting(
    "acidsql.layout",
    _choice("hive3", "hive4"),
    "hive3",
    "Names of compacted directories: hive3 without, hive4 with the visibility suffix _v<txn>.",
)
COMPACTION_WAIT = _setting(
    "acidsql.compaction.wait.timeout",
    parse_seconds,
    "1h",
    "How long ALTER TABLE … COMPACT … AND WAIT waits for the worker; the compaction itself goes on afterwards.",
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
