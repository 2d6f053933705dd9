"""The tables. Those of transactions and locks are Hive's own, column by column, so that who knows Hive can read them.

What differs from Hive's schema: there are no replication, materialized view and compaction tables yet, and the catalog
is as wide as this project needs (a table's storage stands in its row, a partition's values in its name).
Every name is upper case and therefore quoted, as in Hive's PostgreSQL schema.
"""

from __future__ import annotations

from sqlalchemy import (
    CHAR,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
)

SCHEMA_VERSION = 2
"""Version of these tables; a store of a newer version is refused, an older one is brought up to it when it is opened.

2: views (VIEW_…_TEXT of TBLS), parameters of partitions, statistics of columns, CHECK constraints.
"""

metadata = MetaData()

_ID = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER is SQLite's own row id
_NAME = String(256)
_PARTITION = String(767)

VERSION = Table(
    "VERSION",
    metadata,
    Column("VER_ID", _ID, primary_key=True),
    Column("SCHEMA_VERSION", Integer, nullable=False),
    Column("VERSION_COMMENT", String(255)),
)

# --- catalog ---------------------------------------------------------------------------------------------------------

DBS = Table(
    "DBS",
    metadata,
    Column("DB_ID", _ID, primary_key=True),
    Column("NAME", _NAME, nullable=False, unique=True),
    Column("DB_LOCATION_URI", Text, nullable=False),
    Column("DESC", Text),
)

DATABASE_PARAMS = Table(
    "DATABASE_PARAMS",
    metadata,
    Column("DB_ID", _ID, primary_key=True),
    Column("PARAM_KEY", _NAME, primary_key=True),
    Column("PARAM_VALUE", Text, nullable=False),
)

TBLS = Table(
    "TBLS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("DB_ID", _ID, nullable=False),
    Column("TBL_NAME", _NAME, nullable=False),
    Column("TBL_TYPE", String(128), nullable=False),
    Column("OWNER", _NAME, nullable=False),
    Column("CREATE_TIME", BigInteger, nullable=False),
    Column("LOCATION", Text, nullable=False),
    Column("NUM_BUCKETS", Integer, nullable=False),
    Column("COMMENT", Text),
    Column("VIEW_ORIGINAL_TEXT", Text),
    Column("VIEW_EXPANDED_TEXT", Text),
    UniqueConstraint("DB_ID", "TBL_NAME", name="UNIQUETABLE"),
)

TABLE_PARAMS = Table(
    "TABLE_PARAMS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("PARAM_KEY", _NAME, primary_key=True),
    Column("PARAM_VALUE", Text, nullable=False),
)

COLUMNS_V2 = Table(
    "COLUMNS_V2",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("IS_PARTITION_KEY", Boolean, primary_key=True),
    Column("COLUMN_NAME", String(767), nullable=False),
    Column("TYPE_NAME", Text, nullable=False),
    Column("COMMENT", Text),
    Column("DEFAULT_VALUE", Text),
    Column("NOT_NULL", Boolean, nullable=False),
)

BUCKETING_COLS = Table(
    "BUCKETING_COLS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("BUCKET_COL_NAME", String(767), nullable=False),
)

CHECK_CONSTRAINTS = Table(
    "CHECK_CONSTRAINTS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("CHECK_EXPRESSION", Text, nullable=False),
)

PARTITIONS = Table(
    "PARTITIONS",
    metadata,
    Column("PART_ID", _ID, primary_key=True),
    Column("TBL_ID", _ID, nullable=False),
    Column("PART_NAME", _PARTITION, nullable=False),
    Column("LOCATION", Text, nullable=False),
    UniqueConstraint("TBL_ID", "PART_NAME", name="UNIQUEPARTITION"),
)

PARTITION_PARAMS = Table(
    "PARTITION_PARAMS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("PART_NAME", _PARTITION, primary_key=True),
    Column("PARAM_KEY", _NAME, primary_key=True),
    Column("PARAM_VALUE", Text, nullable=False),
)

TAB_COL_STATS = Table(
    "TAB_COL_STATS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("PART_NAME", _PARTITION, primary_key=True),  # empty for the table as a whole
    Column("COLUMN_NAME", String(767), primary_key=True),
    Column("COLUMN_TYPE", Text, nullable=False),
    Column("NUM_NULLS", BigInteger, nullable=False),
    Column("NUM_DISTINCTS", BigInteger),
    Column("LOW_VALUE", Text),
    Column("HIGH_VALUE", Text),
    Column("AVG_COL_LEN", Float),
    Column("MAX_COL_LEN", BigInteger),
    Column("NUM_TRUES", BigInteger),
    Column("NUM_FALSES", BigInteger),
)

# --- transactions ----------------------------------------------------------------------------------------------------

TXNS = Table(
    "TXNS",
    metadata,
    Column("TXN_ID", _ID, primary_key=True, autoincrement=False),
    Column("TXN_STATE", CHAR(1), nullable=False),
    Column("TXN_STARTED", BigInteger, nullable=False),
    Column("TXN_LAST_HEARTBEAT", BigInteger, nullable=False),
    Column("TXN_USER", String(128), nullable=False),
    Column("TXN_HOST", String(128), nullable=False),
    Column("TXN_AGENT_INFO", String(128)),
    Column("TXN_META_INFO", Text),
    Column("TXN_TYPE", Integer, nullable=False),
    # few transactions are open or aborted, many are committed: snapshots must not read those
    Index("TXN_STATE_INDEX", "TXN_STATE", "TXN_ID"),
)

TXN_COMPONENTS = Table(
    "TXN_COMPONENTS",
    metadata,
    Column("TC_TXNID", BigInteger, nullable=False),
    Column("TC_DATABASE", _NAME, nullable=False),
    Column("TC_TABLE", _NAME),
    Column("TC_PARTITION", _PARTITION),
    Column("TC_OPERATION_TYPE", CHAR(1), nullable=False),
    Column("TC_WRITEID", BigInteger),
    Index("TC_TXNID_INDEX", "TC_TXNID"),
    Index("TC_TABLE_INDEX", "TC_DATABASE", "TC_TABLE"),
)

COMPLETED_TXN_COMPONENTS = Table(
    "COMPLETED_TXN_COMPONENTS",
    metadata,
    Column("CTC_TXNID", BigInteger, nullable=False),
    Column("CTC_DATABASE", _NAME, nullable=False),
    Column("CTC_TABLE", _NAME),
    Column("CTC_PARTITION", _PARTITION),
    Column("CTC_TIMESTAMP", DateTime, nullable=False, server_default=func.current_timestamp()),
    Column("CTC_WRITEID", BigInteger),
    Column("CTC_UPDATE_DELETE", CHAR(1), nullable=False),
    Index("CTC_TXNID_INDEX", "CTC_TXNID"),
    Index("COMPLETED_TXN_COMPONENTS_INDEX", "CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION"),
)

TXN_TO_WRITE_ID = Table(
    "TXN_TO_WRITE_ID",
    metadata,
    Column("T2W_TXNID", BigInteger, nullable=False),
    Column("T2W_DATABASE", _NAME, nullable=False),
    Column("T2W_TABLE", _NAME, nullable=False),
    Column("T2W_WRITEID", BigInteger, nullable=False),
    Index("TBL_TO_TXN_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_TXNID", unique=True),
    Index("TBL_TO_WRITE_ID_IDX", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID", unique=True),
    Index("T2W_TXNID_IDX", "T2W_TXNID"),
)

NEXT_WRITE_ID = Table(
    "NEXT_WRITE_ID",
    metadata,
    Column("NWI_DATABASE", _NAME, primary_key=True),
    Column("NWI_TABLE", _NAME, primary_key=True),
    Column("NWI_NEXT", BigInteger, nullable=False),
)

WRITE_SET = Table(
    "WRITE_SET",
    metadata,
    Column("WS_DATABASE", _NAME, nullable=False),
    Column("WS_TABLE", _NAME, nullable=False),
    Column("WS_PARTITION", _PARTITION),
    Column("WS_TXNID", BigInteger, nullable=False),
    Column("WS_COMMIT_ID", BigInteger, nullable=False),
    Column("WS_OPERATION_TYPE", CHAR(1), nullable=False),
    Index("WS_TABLE_INDEX", "WS_DATABASE", "WS_TABLE", "WS_COMMIT_ID"),
    Index("WS_COMMIT_ID_INDEX", "WS_COMMIT_ID"),
)

# --- locks -----------------------------------------------------------------------------------------------------------

HIVE_LOCKS = Table(
    "HIVE_LOCKS",
    metadata,
    Column("HL_LOCK_EXT_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("HL_LOCK_INT_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("HL_TXNID", BigInteger, nullable=False),
    Column("HL_DB", _NAME, nullable=False),
    Column("HL_TABLE", _NAME),
    Column("HL_PARTITION", _PARTITION),
    Column("HL_LOCK_STATE", CHAR(1), nullable=False),
    Column("HL_LOCK_TYPE", CHAR(1), nullable=False),
    Column("HL_LAST_HEARTBEAT", BigInteger, nullable=False),
    Column("HL_ACQUIRED_AT", BigInteger),
    Column("HL_USER", String(128), nullable=False),
    Column("HL_HOST", String(128), nullable=False),
    Column("HL_AGENT_INFO", String(128)),
    Column("HL_BLOCKEDBY_EXT_ID", BigInteger),
    Column("HL_BLOCKEDBY_INT_ID", BigInteger),
    Index("HL_TXNID_INDEX", "HL_TXNID"),
    Index("HL_DB_INDEX", "HL_DB", "HL_TABLE"),
)

NEXT_LOCK_ID = Table(
    "NEXT_LOCK_ID",
    metadata,
    Column("NL_NEXT", BigInteger, nullable=False),
)
