"""Settings of single statements."""

from __future__ import annotations

from acidsql.settings.setting import choice, define, parse_bool, parse_size, whole_number

MERGE_CARDINALITY = define(
    "hive.merge.cardinality.check",
    parse_bool,
    "true",
    "MERGE fails where a target row is matched by more than one source row; false: only where two would change it.",
)
DROP_IGNORES = define(
    "hive.exec.drop.ignorenonexistent",
    parse_bool,
    "true",
    "DROP TABLE, DROP VIEW and DROP PARTITION ignore what does not exist; false: only with IF EXISTS.",
)
SYNC = define(
    "acidsql.sync",
    parse_bool,
    "true",
    "Files and directories on a local disk are synced before the commit, so that committed data survives a power"
    " failure; false: a power failure may leave empty files under the commits of the last minute. Compactions always"
    " sync.",
)
NANOSECONDS = define(
    "acidsql.timestamp.nanoseconds",
    choice("error", "truncate"),
    "error",
    "What UPDATE and MERGE do when they rewrite a row with a timestamp that has nanoseconds.",
)
DRIVER_WRITE_ROWS = define(
    "acidsql.write.driver.rows",
    whole_number,
    "1000000",
    "A statement that changes at most this many rows, of no more bytes than the next setting says, is written by the"
    " driver, without a Spark write job.",
)
DRIVER_WRITE_BYTES = define(
    "acidsql.write.driver.bytes",
    parse_size,
    "16mb",
    "The bytes of the rows that the driver writes, as their types let expect them: a text counts as 24.",
)
ORC_COMPRESS = define(
    "acidsql.orc.compress",
    choice("auto", "none", "zlib", "snappy", "lz4", "zstd"),
    "auto",
    "How the files of tables without the property `orc.compress` are compressed; auto: with ZSTD, which Hive 4, Spark"
    " and Trino read, and with ZLIB where the tables are those of a Hive Metastore before version 4.",
)
DYNAMIC_PARTITION = define(
    "hive.exec.dynamic.partition", parse_bool, "true", "Whether INSERT may take partition values from the query."
)
DYNAMIC_PARTITION_MODE = define(
    "hive.exec.dynamic.partition.mode",
    choice("strict", "nonstrict"),
    "nonstrict",
    "strict: INSERT must name at least one static partition value.",
)
FETCH_DELETED = define(
    "acid.fetch.deleted.rows",
    parse_bool,
    "false",
    "A query that names ROW__IS__DELETED also returns deleted rows, as long as their files exist.",
)
