"""The compactor."""

from __future__ import annotations

from acidsql.settings.setting import (
    above_zero,
    choice,
    define,
    parse_bool,
    parse_seconds,
    ratio,
    size_or_auto,
    whole_number,
)

INITIATOR_ON = define(
    "hive.compactor.initiator.on",
    parse_bool,
    "true",
    "Whether the compactor schedules due compactions automatically; explicit requests are always executed.",
)
CLEANER_ON = define("hive.compactor.cleaner.on", parse_bool, "true", "Whether the compactor removes obsolete files.")
WORKER_THREADS = define(
    "hive.compactor.worker.threads", whole_number, "1", "Compactions that one process runs concurrently."
)
WORKER_SLEEP = define(
    "hive.compactor.worker.sleep.time", parse_seconds, "1000ms", "How long a worker sleeps when the queue is empty."
)
WORKER_TIMEOUT = define(
    "hive.compactor.worker.timeout",
    parse_seconds,
    "86400s",
    "A compaction that has not finished after this time is requeued.",
)
CHECK_INTERVAL = define(
    "hive.compactor.check.interval", parse_seconds, "300s", "Pause between two rounds of the initiator."
)
CLEANER_INTERVAL = define(
    "hive.compactor.cleaner.run.interval", parse_seconds, "5000ms", "Pause between two rounds of the cleaner."
)
DELTA_NUM_THRESHOLD = define(
    "hive.compactor.delta.num.threshold",
    whole_number,
    "10",
    "More deltas than this in a table or partition: a minor compaction is due.",
)
DELTA_PCT_THRESHOLD = define(
    "hive.compactor.delta.pct.threshold",
    ratio,
    "0.1",
    "Deltas larger than this fraction of the base: a major compaction is due.",
)
MAX_NUM_DELTA = define(
    "hive.compactor.max.num.delta",
    above_zero,
    "500",
    "A compaction of more deltas than this merges them in several passes, at most this many at a time.",
)
ABORTED_TXN_THRESHOLD = define(
    "hive.compactor.abortedtxn.threshold",
    whole_number,
    "1000",
    "More aborted transactions than this on a table or partition: a major compaction is due.",
)
ABORTED_TXN_AGE = define(
    "hive.compactor.aborted.txn.time.threshold",
    parse_seconds,
    "12h",
    "An aborted transaction older than this on a table or partition: a minor compaction is due; 0: never.",
)
FAILED_COMPACTS_THRESHOLD = define(
    "hive.compactor.initiator.failed.compacts.threshold",
    above_zero,
    "2",
    "After this many consecutive failures the initiator schedules no compaction of a table or partition.",
)
FAILED_COMPACTS_RETRY = define(
    "hive.compactor.initiator.failed.retry.time",
    parse_seconds,
    "7d",
    "After this time it tries again nevertheless; 0: never.",
)
JOB_QUEUE = define(
    "hive.compactor.job.queue",
    str,
    "",
    "The pool that the workers of this session serve; empty: requests without a pool.",
)
CLEANER_DELAYED = define(
    "hive.compactor.delayed.cleanup.enabled",
    parse_bool,
    "false",
    "Whether the cleaner waits for hive.compactor.cleaner.retention.time.seconds after a compaction.",
)
CLEANER_RETENTION = define(
    "hive.compactor.cleaner.retention.time.seconds",
    parse_seconds,
    "300s",
    "How long obsolete files are kept when cleanup is delayed.",
)
CLEANER_MAX_RETRIES = define(
    "hive.compactor.cleaner.retry.maxattempts",
    whole_number,
    "5",
    "How often cleaning is retried before it counts as failed.",
)
CLEANER_RETRY = define(
    "hive.compactor.cleaner.retry.retention.time",
    parse_seconds,
    "300s",
    "Pause before cleaning is retried; it doubles each time.",
)
POOL_TIMEOUT = define(
    "hive.compactor.worker.pool.timeout",
    parse_seconds,
    "12h",
    "A request that no worker of its pool has taken after this time may be taken by a worker without a pool.",
)
FETCH_SIZE = define(
    "hive.compactor.fetch.size", above_zero, "1000", "How many queue entries the cleaner processes in one round."
)
HISTORY_SUCCEEDED = define(
    "hive.compactor.history.retention.succeeded",
    whole_number,
    "3",
    "How many successful compactions of a table or partition SHOW COMPACTIONS keeps.",
)
HISTORY_FAILED = define(
    "hive.compactor.history.retention.failed",
    whole_number,
    "3",
    "How many failed compactions it keeps; at least hive.compactor.initiator.failed.compacts.threshold.",
)
HISTORY_DID_NOT_INITIATE = define(
    "hive.compactor.history.retention.did.not.initiate",
    whole_number,
    "2",
    "How many compactions in state 'did not initiate' it keeps.",
)
HISTORY_REFUSED = define(
    "hive.compactor.history.retention.refused",
    whole_number,
    "3",
    "How many refused compactions it keeps, and how many aborted ones.",
)
HISTORY_TIMEOUT = define(
    "hive.compactor.history.retention.timeout",
    parse_seconds,
    "7d",
    "After this time the history drops an unsuccessful compaction if a later one of the same target succeeded.",
)
CHANGES_RETENTION = define(
    "acidsql.changes.retention",
    parse_seconds,
    "0s",
    "How long files that a compaction has replaced are kept for those who read changes; also a property of a table.",
)
STAGING_RETENTION = define(
    "acidsql.staging.retention",
    parse_seconds,
    "1d",
    "A staging directory without a write for this long belongs to a dead writer and is removed.",
)
STAGING_SWEEP = define(
    "acidsql.staging.sweep.interval", parse_seconds, "1h", "Pause between two searches for such directories."
)
COMPACTION_WAIT = define(
    "hive.compactor.wait.timeout",
    parse_seconds,
    "300000ms",
    "How long ALTER TABLE … COMPACT … AND WAIT waits for the worker; the compaction itself continues.",
)
COMPACTION_LAYOUT = define(
    "acidsql.compactor.layout",
    choice("hive3", "hive4"),
    "hive3",
    "How compacted directories are named on the embedded store: base_N and delta_min_max, which every engine reads, or"
    " with _v<transaction>, as Hive 4 does. On a Hive Metastore always the latter.",
)
AUTO_COMPACTION = define(
    "acidsql.compactor.auto",
    parse_bool,
    "false",
    "true: after a commit, a background thread of the session checks whether the tables written are due for compaction,"
    " and compacts them. On a Hive Metastore the metastore's initiator does this.",
)
COMPACTION_SPARK_SIZE = define(
    "acidsql.compactor.spark.size",
    size_or_auto,
    "auto",
    "A compaction of more bytes than this, of several buckets on a local file system, runs as Spark tasks, one per"
    " bucket; other compactions run in threads of the compactor's process. auto: 256mb on a cluster, no limit where"
    " Spark runs on this machine alone (local[*]): its tasks need Python processes, which take time to start.",
)
CONCATENATE_NO_WAIT = define(
    "hive.transactional.concatenate.noblock",
    parse_bool,
    "false",
    "true: ALTER TABLE … CONCATENATE, a major compaction of an ACID table, does not wait for the worker.",
)
