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
    "How long a call to a Hive Metastore waits for the response.",
)
METASTORE_CONNECT_TIMEOUT = define(
    "acidsql.metastore.connect.timeout",
    parse_seconds,
    "10s",
    "How long one server of a Hive Metastore may take to accept a connection before the next one is tried.",
)
METASTORE_CONNECT_RETRIES = define(
    "hive.metastore.connect.retries", above_zero, "3", "Rounds over all servers before connecting fails."
)
METASTORE_CONNECT_DELAY = define(
    "hive.metastore.client.connect.retry.delay", parse_seconds, "1s", "Pause between two rounds over all servers."
)
METASTORE_FAILURE_RETRIES = define(
    "hive.metastore.failure.retries",
    whole_number,
    "1",
    "How often a call to a Hive Metastore is repeated on a new connection after the connection is lost.",
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
    "random: try the servers of a Hive Metastore in random order; sequential: in the order given.",
)
