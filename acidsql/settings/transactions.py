"""Transactions and locks."""

from __future__ import annotations

from acidsql.settings.setting import above_zero, define, parse_bool, parse_seconds, txn_manager, whole_number

define(
    "hive.txn.manager",
    txn_manager,
    "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "None: there is no other. Scripts of Hive's set it.",
)
TXN_TIMEOUT = define(
    "hive.txn.timeout",
    parse_seconds,
    "300s",
    "A transaction or lock without a heartbeat for this long is timed out: on the embedded store those of this session,"
    " whoever looks, and never sooner than was set when it began.",
)
MAX_OPEN_BATCH = define(
    "hive.txn.max.open.batch",
    above_zero,
    "1000",
    "At most so many transactions are opened by one call; who asks for more gets so many.",
)
define(
    "hive.txn.heartbeat.threadpool.size",
    above_zero,
    "5",
    "None: a session sends all its heartbeats from one thread, in one call. Taken for Hive's sake.",
)
HOUSEKEEPER_START = define(
    "hive.timedout.txn.reaper.start",
    parse_seconds,
    "100s",
    "When the first round of hive.timedout.txn.reaper.interval comes, after the compactor was started.",
)
MAX_OPEN_TXNS = define(
    "hive.max.open.txns", whole_number, "100000", "Opening a transaction beyond this many open ones is refused."
)
LOCK_RETRIES = define(
    "hive.lock.numretries",
    whole_number,
    "100",
    "How often a waiting lock is tried again before the statement gives up.",
)
LOCK_SLEEP = define(
    "hive.lock.sleep.between.retries",
    parse_seconds,
    "60s",
    "Longest pause between two tries for a lock; the first ones are some milliseconds, and they grow.",
)
LOCK_WAIT = define("acidsql.lock.timeout", parse_seconds, "300s", "Longest time that a statement waits for its locks.")
XLOCK_WRITE = define(
    "hive.txn.xlock.write",
    parse_bool,
    "true",
    "UPDATE and DELETE take EXCL_WRITE locks; false: SHARED_WRITE, as INSERT does then, and the first to commit wins.",
)
XLOCK_IOW = define(
    "hive.txn.xlock.iow",
    parse_bool,
    "true",
    (
        "INSERT OVERWRITE takes EXCLUSIVE locks; false: EXCL_WRITE, and as in Hive it then hides rows of an INSERT that"
        " began before and commits after it."
    ),
)
XLOCK_MERGE_INSERT = define(
    "hive.txn.xlock.mergeinsert",
    parse_bool,
    "false",
    "The INSERT branch of MERGE takes EXCL_WRITE locks too: two that run at once then insert no row twice.",
)
SNAPSHOT_RETRIES = define(
    "hive.txn.retrysnapshot.max.count",
    whole_number,
    "5",
    "How often a statement starts anew because its snapshot was outdated when its locks were granted.",
)
LOCK_PARTITIONS = define(
    "hive.locks.max.partitions",
    whole_number,
    "1000",
    "A statement over more partitions than this locks the whole table.",
)
HOUSEKEEPER_INTERVAL = define(
    "hive.timedout.txn.reaper.interval",
    parse_seconds,
    "180s",
    "Pause between two rounds in which dead transactions are timed out and old entries forgotten.",
)
READ_LEASE = define(
    "acidsql.read.lease", parse_seconds, "1h", "How long a DataFrame's snapshot is pinned against the cleaner."
)
