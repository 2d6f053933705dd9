"""The store behind a session."""

from __future__ import annotations

from acidsql.settings.setting import above_zero, choice, define, parse_bool, parse_seconds, whole_number

METASTORE_BUSY = define(
    "acidsql.metastore.busy.timeout",
    parse_seconds,
    "60s",
    "How long a call waits for another process that is writing to the embedded store.",
)
METASTORE_SOCKET_TIMEOUT = define(
    "hive.metastore.client.socket.timeout",
    parse_seconds,
    "600s",
    "How long a call to a Hive Metastore waits for its answer.",
)
METASTORE_CONNECT_TIMEOUT = define(
    "acidsql.metastore.connect.timeout",
    parse_seconds,
    "10s",
    "How long one server of a Hive Metastore may take to accept a connection before the next one is tried.",
)
METASTORE_CONNECT_RETRIES = define(
    "hive.metastore.connect.retries", above_zero, "3", "How often all servers are tried when a connection is made."
)
METASTORE_CONNECT_DELAY = define(
    "hive.metastore.client.connect.retry.delay", parse_seconds, "1s", "Pause between two rounds over all servers."
)
METASTORE_FAILURE_RETRIES = define(
    "hive.metastore.failure.retries",
    whole_number,
    "1",
    "How often a call to a Hive Metastore is made again on a new connection when the connection is lost.",
)
DISALLOW_TYPE_CHANGES = define(
    "hive.metastore.disallow.incompatible.col.type.changes",
    parse_bool,
    "true",
    "false: ALTER TABLE may also make a column's type narrower; values that do not fit are read as NULL.",
)
METASTORE_URI_SELECTION = define(
    "hive.metastore.uri.selection",
    choice("random", "sequential"),
    "random",
    "random: any server of a Hive Metastore first; sequential: in the order given.",
)
