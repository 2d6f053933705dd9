"""Tables of the embedded store.

Those of transactions and locks mirror Hive's own (``TXNS``, ``HIVE_LOCKS`` …) with Hive's column names, so that whoever
knows one knows the other. Differences: ids come from ``SEQUENCES``, so that no row has to stay for its id's sake, and
whatever is not listed in ``TXNS`` with a lower id counts as committed.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, PrimaryKeyConstraint, String, Table, Text

SCHEMA_VERSION = 1

metadata = MetaData()


def _key(name: str) -> Column[str]:
    return Column(name, String(256), nullable=False)


Table("VERSION", metadata, Column("SCHEMA_VERSION", Integer, primary_key=True))

Table("SEQUENCES", metadata, Column("NAME", String(64), primary_key=True), Column("NEXT", BigInteger, nullable=False))

Table(
    "DBS",
    metadata,
    Column("NAME", String(256), primary_key=True),
    Column("LOCATION", Text, nullable=False),
    Column("COMMENT", Text),
    Column("PARAMETERS", Text, nullable=False),
)

Table(
    "TBLS",
    metadata,
    _key("DB"),
    _key("TBL"),
    Column("LOCATION", Text, nullable=False),
    Column("TBL_TYPE", String(64), nullable=False),
    Column("COMMENT", Text),
    Column("OWNER", String(256), nullable=False),
    Column("CREATE_TIME", BigInteger, nullable=False),
    Column("PARAMETERS", Text, nullable=False),
    Column("COLUMNS", Text, nullable=False),
    Column("PARTITION_KEYS", Text, nullable=False),
    Column("BUCKET_COLUMNS", Text, nullable=False),
    Column("NUM_BUCKETS", Integer, nullable=False),
    PrimaryKeyConstraint("DB", "TBL"),
)

Table(
    "PARTITIONS",
    metadata,
    _key("DB"),
    _key("TBL"),
    Column("PART_NAME", String(1024), nullable=False),
    Column("PART_VALUES", Text, nullable=False),
    Column("LOCATION", Text, nullable=False),
    PrimaryKeyConstraint("DB", "TBL", "PART_NAME"),
)

Table(
    "TXNS",
    metadata,
    Column("TXN_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("TXN_STATE", String(1), nullable=False),
    Column("TXN_TYPE", Integer, nullable=False),
    Column("TXN_STARTED", BigInteger, nullable=False),
    Column("TXN_LAST_HEARTBEAT", BigInteger, nullable=False),
    Column("TXN_USER", String(256), nullable=False),
    Column("TXN_HOST", String(256), nullable=False),
    Column("TXN_AGENT_INFO", Text, nullable=False),
    Column("TXN_ABORT_REASON", Text),
    Index("TXN_STATE_IDX", "TXN_STATE"),
)

Table(
    "TXN_COMPONENTS",
    metadata,
    Column("TC_TXNID", BigInteger, nullable=False),
    _key("TC_DATABASE"),
    _key("TC_TABLE"),
    Column("TC_PARTITION", String(1024)),
    Column("TC_OPERATION_TYPE", String(1), nullable=False),
    Column("TC_WRITEID", BigInteger),
    Index("TC_TXNID_IDX", "TC_TXNID"),
)

Table(
    "COMPLETED_TXN_COMPONENTS",
    metadata,
    Column("CTC_TXNID", BigInteger, nullable=False),
    _key("CTC_DATABASE"),
    _key("CTC_TABLE"),
    Column("CTC_PARTITION", String(1024)),
    Column("CTC_TIMESTAMP", BigInteger, nullable=False),
    Column("CTC_WRITEID", BigInteger),
    Column("CTC_UPDATE_DELETE", String(1), nullable=False),
    Index("COMPLETED_TXN_COMPONENTS_IDX", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION"),
)

Table(
    "HIVE_LOCKS",
    metadata,
    Column("HL_LOCK_EXT_ID", BigInteger, nullable=False),
    Column("HL_LOCK_INT_ID", BigInteger, nullable=False),
    Column("HL_TXNID", BigInteger, nullable=False),
    _key("HL_DB"),
    Column("HL_TABLE", String(256)),
    Column("HL_PARTITION", String(1024)),
    Column("HL_LOCK_STATE", String(1), nullable=False),
    Column("HL_LOCK_TYPE", String(1), nullable=False),
    Column("HL_LAST_HEARTBEAT", BigInteger, nullable=False),
    Column("HL_ACQUIRED_AT", BigInteger),
    Column("HL_USER", String(256), nullable=False),
    Column("HL_HOST", String(256), nullable=False),
    Column("HL_AGENT_INFO", Text, nullable=False),
    Column("HL_BLOCKEDBY_EXT_ID", BigInteger),
    Column("HL_BLOCKEDBY_INT_ID", BigInteger),
    PrimaryKeyConstraint("HL_LOCK_EXT_ID", "HL_LOCK_INT_ID"),
    Index("HL_TXNID_IDX", "HL_TXNID"),
)

Table(
    "TXN_TO_WRITE_ID",
    metadata,
    Column("T2W_TXNID", BigInteger, nullable=False),
    _key("T2W_DATABASE"),
    _key("T2W_TABLE"),
    Column("T2W_WRITEID", BigInteger, nullable=False),
    Index("T2W_TXN_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_TXNID", unique=True),
    Index("T2W_WRITEID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID", unique=True),
)

Table(
    "NEXT_WRITE_ID",
    metadata,
    _key("NWI_DATABASE"),
    _key("NWI_TABLE"),
    Column("NWI_NEXT", BigInteger, nullable=False),
    PrimaryKeyConstraint("NWI_DATABASE", "NWI_TABLE"),
)

Table(
    "WRITE_SET",
    metadata,
    _key("WS_DATABASE"),
    _key("WS_TABLE"),
    Column("WS_PARTITION", String(1024)),
    Column("WS_TXNID", BigInteger, nullable=False),
    Column("WS_COMMIT_ID", BigInteger, nullable=False),
    Column("WS_OPERATION_TYPE", String(1), nullable=False),
    Index("WRITE_SET_IDX", "WS_DATABASE", "WS_TABLE"),
)
