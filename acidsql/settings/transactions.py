"""Transactions and locks."""

from __future__ import annotations

from acidsql.settings.setting import above_zero, choice, define, parse_bool, parse_seconds, txn_manager, whole_number

define(
    "hive.txn.manager",
    txn_manager,
    "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "None: it is the only transaction manager. Accepted because Hive scripts set it.",
)
TXN_TIMEOUT = define(
    "hive.txn.timeout",
    parse_seconds,
    "300s",
    "A transaction or lock without a heartbeat for this long is timed out. On the embedded store the value applies to"
    " those of this session, whichever session checks, and never less than the value set when they began.",
)
MAX_OPEN_BATCH = define(
    "hive.txn.max.open.batch",
    above_zero,
    "1000",
    "Maximum number of transactions opened by one call; a call for more opens only this many.",
)
define(
    "hive.txn.heartbeat.threadpool.size",
    above_zero,
    "5",
    "None: a session sends all its heartbeats from one thread, in one call.",
)
HOUSEKEEPER_START = define(
    "hive.timedout.txn.reaper.start",
    parse_seconds,
    "100s",
    "Delay of the first round of hive.timedout.txn.reaper.interval after the compactor has started.",
)
MAX_OPEN_TXNS = define(
    "hive.max.open.txns", whole_number, "100000", "Maximum number of open transactions; opening more is refused."
)
LOCK_RETRIES = define(
    "hive.lock.numretries",
    whole_number,
    "100",
    "How often a waiting lock is retried before the statement gives up, at pauses that grow to the longest; a store of"
    " acidsql's own is asked more often in that time.",
)
LOCK_SLEEP = define(
    "hive.lock.sleep.between.retries",
    parse_seconds,
    "60s",
    "Longest pause between two attempts to get a lock; pauses start at some milliseconds and grow.",
)
LOCK_WAIT = define("acidsql.lock.timeout", parse_seconds, "300s", "Maximum time that a statement waits for its locks.")
XLOCK_WRITE = define(
    "hive.txn.xlock.write",
    parse_bool,
    "true",
    "UPDATE and DELETE take EXCL_WRITE locks; false: they and INSERT take SHARED_WRITE, and the first to commit wins.",
)
WRITE_CONFLICTS = define(
    "acidsql.write.conflicts",
    choice("partition", "row"),
    "partition",
    (
        "row: UPDATE, DELETE and MERGE without INSERT take SHARED_WRITE locks, and only those that change the same rows"
        " are in conflict: the later one runs again, then with EXCL_WRITE. partition, and always on a Hive Metastore:"
        " hive.txn.xlock.write decides."
    ),
)
WRITE_CONFLICT_ROWS = define(
    "acidsql.write.conflicts.rows.max",
    whole_number,
    "1000000",
    (
        "With acidsql.write.conflicts=row: a transaction that deletes more rows of a table than this is in conflict"
        " with all that change the same partitions."
    ),
)
XLOCK_IOW = define(
    "hive.txn.xlock.iow",
    parse_bool,
    "true",
    (
        "INSERT OVERWRITE takes EXCLUSIVE locks; false: EXCL_WRITE, which lets readers and INSERT go on: it waits until"
        " whoever has begun to write before it has ended."
    ),
)
XLOCK_MERGE_INSERT = define(
    "hive.txn.xlock.mergeinsert",
    parse_bool,
    "false",
    "The INSERT branch of MERGE takes EXCL_WRITE locks too: two concurrent MERGEs then insert no row twice.",
)
SNAPSHOT_RETRIES = define(
    "hive.txn.retrysnapshot.max.count",
    whole_number,
    "5",
    "How often a statement restarts because its snapshot was outdated when its locks were granted.",
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
    "Pause between two rounds that abort timed-out transactions and prune old entries.",
)
READ_LEASE = define(
    "acidsql.read.lease", parse_seconds, "1h", "How long the cleaner keeps the files of a DataFrame's snapshot."
)
