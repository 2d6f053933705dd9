"""The tables. Those of transactions and locks are Hive's own, column by column, so that who knows Hive can read them.

What differs from Hive's schema: there are no tables of replication, materialized views and metrics. TXN_MIN_OPEN,
TXN_TIMEOUT, HL_TIMEOUT, CQ_RETRIES, CREATING_TXN, MAKES_DIRECTORY, TBL_VERSION and WS_ROWS are columns of ours;
RENAME_JOURNAL, DROPPED_DIRECTORIES, PLACE_WRITE_IDS, NEXT_TBL_VERSION and LAST_WRITES are tables of ours. The catalog
is as wide as this project needs: a table's storage stands in its row, a partition's values in its name.
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
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
)
from sqlalchemy.types import TypeEngine

SCHEMA_VERSION = 11
"""Version of these tables; a store of a newer version is refused, an older one is brought up to it when it is opened.

2: views (VIEW_…_TEXT of TBLS), parameters of partitions, statistics of columns, CHECK constraints.
3: names of constraints, and the constraints that are not enforced.
4: the queue of compactions and its history, TXN_MIN_OPEN of TXNS.
5: timeouts of transactions and locks (TXN_TIMEOUT, HL_TIMEOUT), DROPPED_DIRECTORIES, PLACE_WRITE_IDS, RENAME_JOURNAL in
   the place of properties that users could write, indexes of locations.
6: tables that are their transaction's alone until it is committed (CREATING_TXN, MAKES_DIRECTORY of TBLS).
7: files of such a table in a directory that was there before it (DD_MADE_BY, DD_WRITE_ID of DROPPED_DIRECTORIES).
8: TBL_VERSION of TBLS, NEXT_TBL_VERSION.
9: WS_ROWS of WRITE_SET.
10: LAST_WRITES.
11: PARTITION_CREATORS.
"""

metadata = MetaData()


def _text(length: int) -> TypeEngine[str]:
    """A text that may be as long as Hive allows; SQLite does not count, and neither do we elsewhere.

    Texts are compared and ordered by their bytes, as in SQLite, whatever the language of a database is.
    """
    return String(length).with_variant(Text(collation="C"), "postgresql")


_ID = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER is SQLite's own row id
_NAME = _text(256)
_PARTITION = _text(767)
_LONG = Text().with_variant(Text(collation="C"), "postgresql")


def _by_location(name: str) -> Index:
    """An index of paths: PostgreSQL's usual ones hold none of more than 2,700 bytes."""
    return Index(name, "LOCATION", postgresql_using="hash")


VERSION = Table(
    "VERSION",
    metadata,
    Column("VER_ID", _ID, primary_key=True),
    Column("SCHEMA_VERSION", Integer, nullable=False),
    Column("VERSION_COMMENT", _text(255)),
)

# --- catalog ---------------------------------------------------------------------------------------------------------

DBS = Table(
    "DBS",
    metadata,
    Column("DB_ID", _ID, primary_key=True),
    Column("NAME", _NAME, nullable=False, unique=True),
    Column("DB_LOCATION_URI", _LONG, nullable=False),
    Column("DESC", _LONG),
)

DATABASE_PARAMS = Table(
    "DATABASE_PARAMS",
    metadata,
    Column("DB_ID", _ID, primary_key=True),
    Column("PARAM_KEY", _NAME, primary_key=True),
    Column("PARAM_VALUE", _LONG, nullable=False),
)

TBLS = Table(
    "TBLS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("DB_ID", _ID, nullable=False),
    Column("TBL_NAME", _NAME, nullable=False),
    Column("TBL_TYPE", _text(128), nullable=False),
    Column("OWNER", _NAME, nullable=False),
    Column("CREATE_TIME", BigInteger, nullable=False),
    Column("LOCATION", _LONG, nullable=False),
    Column("NUM_BUCKETS", Integer, nullable=False),
    Column("COMMENT", _LONG),
    Column("VIEW_ORIGINAL_TEXT", _LONG),
    Column("VIEW_EXPANDED_TEXT", _LONG),
    Column("CREATING_TXN", BigInteger),  # NULL once that is committed
    Column("MAKES_DIRECTORY", Boolean),  # whether that has made the directory, which is then dropped with the table
    Column("TBL_VERSION", BigInteger),  # a new one after each change; NULL: not since the store has them
    _by_location("ix_TBLS_LOCATION"),
    Index("TBLS_CREATING_TXN_IDX", "CREATING_TXN"),
    UniqueConstraint("DB_ID", "TBL_NAME", name="UNIQUETABLE"),
)

TABLE_PARAMS = Table(
    "TABLE_PARAMS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("PARAM_KEY", _NAME, primary_key=True),
    Column("PARAM_VALUE", _LONG, nullable=False),
)

RENAME_JOURNAL = Table(  # directories that follow a new name; not in Hive, which moves them in its server
    "RENAME_JOURNAL",
    metadata,
    Column("RJ_ID", _text(64), primary_key=True),
    Column("TBL_ID", _ID, nullable=False, index=True),
    Column("RJ_SOURCE", _LONG, nullable=False),
    Column("RJ_TARGET", _LONG, nullable=False),
)

COLUMNS_V2 = Table(
    "COLUMNS_V2",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("IS_PARTITION_KEY", Boolean, primary_key=True),
    Column("COLUMN_NAME", _text(767), nullable=False),
    Column("TYPE_NAME", _LONG, nullable=False),
    Column("COMMENT", _LONG),
    Column("DEFAULT_VALUE", _LONG),
    Column("NOT_NULL", Boolean, nullable=False),
    Column("DEFAULT_NAME", _NAME),
    Column("NOT_NULL_NAME", _NAME),
)

BUCKETING_COLS = Table(
    "BUCKETING_COLS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("BUCKET_COL_NAME", _text(767), nullable=False),
)

CHECK_CONSTRAINTS = Table(
    "CHECK_CONSTRAINTS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("CHECK_EXPRESSION", _LONG, nullable=False),
    Column("CHECK_NAME", _NAME),
)

KEY_CONSTRAINTS = Table(  # those that are not enforced, of all kinds
    "KEY_CONSTRAINTS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("INTEGER_IDX", Integer, primary_key=True),
    Column("CONSTRAINT_TYPE", _text(16), nullable=False),
    Column("CONSTRAINT_NAME", _NAME, nullable=False),
    Column("COLUMN_NAMES", _LONG, nullable=False),  # a JSON list
    Column("RELY", Boolean, nullable=False),
    Column("EXPRESSION", _LONG),
    Column("PARENT_TBL_ID", _ID),
    Column("PARENT_COLUMN_IDS", _LONG),  # a JSON list of [INTEGER_IDX, IS_PARTITION_KEY]: their names may change
)

PARTITIONS = Table(
    "PARTITIONS",
    metadata,
    Column("PART_ID", _ID, primary_key=True),
    Column("TBL_ID", _ID, nullable=False),
    Column("PART_NAME", _PARTITION, nullable=False),
    Column("LOCATION", _LONG, nullable=False),
    _by_location("ix_PARTITIONS_LOCATION"),
    UniqueConstraint("TBL_ID", "PART_NAME", name="UNIQUEPARTITION"),
)

# the transactions that have made a partition, until one of them is committed; 0: one that has undone what it wrote
PARTITION_CREATORS = Table(
    "PARTITION_CREATORS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("PART_NAME", _PARTITION, primary_key=True),
    Column("TXN_ID", BigInteger, primary_key=True),
    Index("PARTITION_CREATORS_TXN_IDX", "TXN_ID"),
)

PARTITION_PARAMS = Table(
    "PARTITION_PARAMS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("PART_NAME", _PARTITION, primary_key=True),
    Column("PARAM_KEY", _NAME, primary_key=True),
    Column("PARAM_VALUE", _LONG, nullable=False),
)

TAB_COL_STATS = Table(
    "TAB_COL_STATS",
    metadata,
    Column("TBL_ID", _ID, primary_key=True),
    Column("PART_NAME", _PARTITION, primary_key=True),  # empty for the table as a whole
    Column("COLUMN_NAME", _text(767), primary_key=True),
    Column("COLUMN_TYPE", _LONG, nullable=False),
    Column("NUM_NULLS", BigInteger, nullable=False),
    Column("NUM_DISTINCTS", BigInteger),
    Column("LOW_VALUE", _LONG),
    Column("HIGH_VALUE", _LONG),
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
    Column("TXN_USER", _text(128), nullable=False),
    Column("TXN_HOST", _text(128), nullable=False),
    Column("TXN_AGENT_INFO", _text(128)),
    Column("TXN_META_INFO", _LONG),
    Column("TXN_TYPE", Integer, nullable=False),
    Column("TXN_MIN_OPEN", BigInteger),  # the oldest transaction that was open when this one began, or itself
    Column("TXN_TIMEOUT", BigInteger),  # milliseconds between heartbeats that its opener allows itself
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
    Column("WS_ROWS", LargeBinary),  # those that were deleted, a packed RowSet; NULL: any
    Index("WS_TABLE_INDEX", "WS_DATABASE", "WS_TABLE", "WS_COMMIT_ID"),
    Index("WS_COMMIT_ID_INDEX", "WS_COMMIT_ID"),
)

# --- directories -----------------------------------------------------------------------------------------------------

DROPPED_DIRECTORIES = Table(
    "DROPPED_DIRECTORIES",
    metadata,
    Column("DD_ID", _ID, primary_key=True),
    Column("DD_LOCATION", _LONG, nullable=False),
    Column("DD_TOKEN", _text(32), nullable=False),  # in the name that it gets before it is removed
    Column("DD_IS_ASIDE", Boolean, nullable=False),
    Column("DD_MADE_BY", BigInteger),  # the transaction whose files are removed from it; NULL where it goes itself
    Column("DD_WRITE_ID", BigInteger),  # that transaction's
)

PLACE_WRITE_IDS = Table(
    "PLACE_WRITE_IDS",
    metadata,
    Column("PW_LOCATION", _LONG, primary_key=True),
    Column("PW_NEXT", BigInteger, nullable=False),
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
    Column("HL_USER", _text(128), nullable=False),
    Column("HL_HOST", _text(128), nullable=False),
    Column("HL_AGENT_INFO", _text(128)),
    Column("HL_BLOCKEDBY_EXT_ID", BigInteger),
    Column("HL_BLOCKEDBY_INT_ID", BigInteger),
    Column("HL_TIMEOUT", BigInteger),  # of a lock of no transaction, as TXN_TIMEOUT
    Index("HL_TXNID_INDEX", "HL_TXNID"),
    Index("HL_DB_INDEX", "HL_DB", "HL_TABLE"),
)

NEXT_LOCK_ID = Table(
    "NEXT_LOCK_ID",
    metadata,
    Column("NL_NEXT", BigInteger, nullable=False),
)

NEXT_TBL_VERSION = Table(
    "NEXT_TBL_VERSION",
    metadata,
    Column("NTV_NEXT", BigInteger, nullable=False),
)

LAST_WRITES = Table(  # of each process, where what came of a commit has to be asked: at PostgreSQL
    "LAST_WRITES",
    metadata,
    Column("LW_WRITER", _NAME, primary_key=True),
    Column("LW_TOKEN", _NAME, nullable=False),
    Column("LW_AT", BigInteger, nullable=False),
)

# --- compaction ------------------------------------------------------------------------------------------------------

_WORKER = _text(128)

COMPACTION_QUEUE = Table(
    "COMPACTION_QUEUE",
    metadata,
    Column("CQ_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("CQ_DATABASE", _NAME, nullable=False),
    Column("CQ_TABLE", _NAME, nullable=False),
    Column("CQ_PARTITION", _PARTITION),
    Column("CQ_STATE", CHAR(1), nullable=False),
    Column("CQ_TYPE", CHAR(1), nullable=False),
    Column("CQ_TBLPROPERTIES", _LONG),
    Column("CQ_WORKER_ID", _WORKER),
    Column("CQ_ENQUEUE_TIME", BigInteger),
    Column("CQ_START", BigInteger),
    Column("CQ_RUN_AS", _text(128)),
    Column("CQ_HIGHEST_WRITE_ID", BigInteger),
    Column("CQ_META_INFO", LargeBinary),
    Column("CQ_HADOOP_JOB_ID", _LONG),
    Column("CQ_ERROR_MESSAGE", _LONG),
    Column("CQ_NEXT_TXN_ID", BigInteger),
    Column("CQ_TXN_ID", BigInteger),
    Column("CQ_COMMIT_TIME", BigInteger),
    Column("CQ_INITIATOR_ID", _WORKER),
    Column("CQ_INITIATOR_VERSION", _WORKER),
    Column("CQ_WORKER_VERSION", _WORKER),
    Column("CQ_CLEANER_START", BigInteger),
    Column("CQ_RETRY_RETENTION", BigInteger, nullable=False, server_default="0"),
    Column("CQ_POOL_NAME", _text(128)),
    Column("CQ_NUMBER_OF_BUCKETS", Integer),
    Column("CQ_ORDER_BY", _LONG),
    Column("CQ_RETRIES", Integer, nullable=False, server_default="0"),
    Index("CQ_TABLE_INDEX", "CQ_DATABASE", "CQ_TABLE"),
    Index("CQ_TXN_ID_INDEX", "CQ_TXN_ID"),
)

NEXT_COMPACTION_QUEUE_ID = Table(
    "NEXT_COMPACTION_QUEUE_ID",
    metadata,
    Column("NCQ_NEXT", BigInteger, nullable=False),
)

COMPLETED_COMPACTIONS = Table(
    "COMPLETED_COMPACTIONS",
    metadata,
    Column("CC_ID", BigInteger, primary_key=True, autoincrement=False),
    Column("CC_DATABASE", _NAME, nullable=False),
    Column("CC_TABLE", _NAME, nullable=False),
    Column("CC_PARTITION", _PARTITION),
    Column("CC_STATE", CHAR(1), nullable=False),
    Column("CC_TYPE", CHAR(1), nullable=False),
    Column("CC_TBLPROPERTIES", _LONG),
    Column("CC_WORKER_ID", _WORKER),
    Column("CC_ENQUEUE_TIME", BigInteger),
    Column("CC_START", BigInteger),
    Column("CC_END", BigInteger),
    Column("CC_RUN_AS", _text(128)),
    Column("CC_HIGHEST_WRITE_ID", BigInteger),
    Column("CC_META_INFO", LargeBinary),
    Column("CC_HADOOP_JOB_ID", _LONG),
    Column("CC_ERROR_MESSAGE", _LONG),
    Column("CC_NEXT_TXN_ID", BigInteger),
    Column("CC_TXN_ID", BigInteger),
    Column("CC_COMMIT_TIME", BigInteger),
    Column("CC_INITIATOR_ID", _WORKER),
    Column("CC_INITIATOR_VERSION", _WORKER),
    Column("CC_WORKER_VERSION", _WORKER),
    Column("CC_POOL_NAME", _text(128)),
    Column("CC_NUMBER_OF_BUCKETS", Integer),
    Column("CC_ORDER_BY", _LONG),
    Index("COMPLETED_COMPACTIONS_RES", "CC_DATABASE", "CC_TABLE", "CC_PARTITION"),
)
