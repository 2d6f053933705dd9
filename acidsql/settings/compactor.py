"""The compactor."""

from __future__ import annotations

from acidsql.settings.setting import (
    above_zero,
    choice,
    define,
    parse_bool,
    parse_seconds,
    parse_size,
    share,
    whole_number,
)

INITIATOR_ON = define(
    "hive.compactor.initiator.on",
    parse_bool,
    "true",
    "Whether the compactor looks for what is due by itself; requests of users are carried out anyway.",
)
CLEANER_ON = define(
    "hive.compactor.cleaner.on", parse_bool, "true", "Whether the compactor removes what nobody can need any more."
)
WORKER_THREADS = define(
    "hive.compactor.worker.threads", whole_number, "1", "Compactions that one process carries out at the same time."
)
WORKER_SLEEP = define(
    "hive.compactor.worker.sleep.time", parse_seconds, "1000ms", "Pause of a worker that finds no request."
)
WORKER_TIMEOUT = define(
    "hive.compactor.worker.timeout",
    parse_seconds,
    "86400s",
    "A compaction that is not finished after this time goes back into the queue.",
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
    share,
    "0.1",
    "Deltas larger than this part of the base: a major compaction is due.",
)
MAX_NUM_DELTA = define(
    "hive.compactor.max.num.delta",
    above_zero,
    "500",
    "A compaction of more deltas than this puts them together in several passes, so many at a time.",
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
    "Something aborted that is older than this: a minor compaction is due; 0: never.",
)
FAILED_COMPACTS_THRESHOLD = define(
    "hive.compactor.initiator.failed.compacts.threshold",
    above_zero,
    "2",
    "After this many failures in a row the initiator leaves a table or partition alone.",
)
FAILED_COMPACTS_RETRY = define(
    "hive.compactor.initiator.failed.retry.time",
    parse_seconds,
    "7d",
    "After this time it tries again all the same; 0: never.",
)
JOB_QUEUE = define(
    "hive.compactor.job.queue",
    str,
    "",
    "The pool whose requests the workers of this session take; empty: those of no pool.",
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
    "How long obsolete files stay where cleaning is delayed.",
)
CLEANER_MAX_RETRIES = define(
    "hive.compactor.cleaner.retry.maxattempts",
    whole_number,
    "5",
    "How often cleaning is tried again before it counts as failed.",
)
CLEANER_RETRY = define(
    "hive.compactor.cleaner.retry.retention.time",
    parse_seconds,
    "300s",
    "Pause before cleaning is tried again; it doubles each time.",
)
POOL_TIMEOUT = define(
    "hive.compactor.worker.pool.timeout",
    parse_seconds,
    "12h",
    "A request of a pool that none of its workers has taken after this time is taken by those of no pool.",
)
FETCH_SIZE = define(
    "hive.compactor.fetch.size", above_zero, "1000", "How many entries the cleaner takes on in one round."
)
HISTORY_SUCCEEDED = define(
    "hive.compactor.history.retention.succeeded",
    whole_number,
    "3",
    "How many successful compactions of a table or partition SHOW COMPACTIONS remembers.",
)
HISTORY_FAILED = define(
    "hive.compactor.history.retention.failed",
    whole_number,
    "3",
    "How many failed ones it remembers; at least hive.compactor.initiator.failed.compacts.threshold.",
)
HISTORY_DID_NOT_INITIATE = define(
    "hive.compactor.history.retention.did.not.initiate",
    whole_number,
    "2",
    "How many that did not initiate it remembers.",
)
HISTORY_REFUSED = define(
    "hive.compactor.history.retention.refused",
    whole_number,
    "3",
    "How many refused ones it remembers, and how many aborted.",
)
HISTORY_TIMEOUT = define(
    "hive.compactor.history.retention.timeout",
    parse_seconds,
    "7d",
    "What did not succeed is forgotten after this time, if a later compaction of the same did.",
)
STAGING_RETENTION = define(
    "acidsql.staging.retention",
    parse_seconds,
    "1d",
    "A staging directory in which nothing was written for this long is of a dead writer, and removed.",
)
STAGING_SWEEP = define(
    "acidsql.staging.sweep.interval", parse_seconds, "1h", "Pause between two searches for such directories."
)
COMPACTION_WAIT = define(
    "hive.compactor.wait.timeout",
    parse_seconds,
    "300000ms",
    "How long ALTER TABLE … COMPACT … AND WAIT waits for the worker; the compaction itself goes on afterwards.",
)
COMPACTION_LAYOUT = define(
    "acidsql.compactor.layout",
    choice("hive3", "hive4"),
    "hive3",
    "How compacted directories are called on the embedded store: base_N and delta_min_max, which every engine reads, or"
    " with _v<transaction>, as Hive 4 does. On a Hive Metastore always the latter.",
)
AUTO_COMPACTION = define(
    "acidsql.compactor.auto",
    parse_bool,
    "false",
    "true: a thread of the session looks now and then, after a commit, whether a compaction of what was written is due,"
    " and carries it out. On a Hive Metastore its own initiator does so.",
)
COMPACTION_SPARK_SIZE = define(
    "acidsql.compactor.spark.size",
    parse_size,
    "256mb",
    "A compaction of more bytes than this, of several buckets on a local file system, runs as Spark tasks, a task a"
    " bucket; others run in the compactor's process.",
)
CONCATENATE_NO_WAIT = define(
    "hive.transactional.concatenate.noblock",
    parse_bool,
    "false",
    "true: ALTER TABLE … CONCATENATE, a major compaction of an ACID table, does not wait for the worker.",
)
