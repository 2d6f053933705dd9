"""Between the metastore's structs and the values of :mod:`acidsql.metastore.model`.

A table made here is described as Hive describes one that it made itself: the ORC serde and formats, complete columns in
its storage descriptor and in that of each partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from hive_metastore import ttypes

from acidsql.errors import MetastoreError
from acidsql.metastore import stringable_map
from acidsql.metastore.model import (
    COMMENT,
    MANAGED_TABLE,
    Column,
    CompactionInfo,
    CompactionState,
    CompactionType,
    Database,
    LockComponent,
    LockInfo,
    LockState,
    LockType,
    Operation,
    Partition,
    Table,
    TxnInfo,
    TxnState,
    TxnType,
)
from acidsql.partition_names import partition_name
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

CATALOG = "hive"
"""The one catalog of a Hive Metastore that Hive itself uses."""

ORC_SERDE = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
ORC_INPUT = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
ORC_OUTPUT = "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"
TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"

_OPERATIONS = {
    Operation.SELECT: ttypes.DataOperationType.SELECT,
    Operation.INSERT: ttypes.DataOperationType.INSERT,
    Operation.UPDATE: ttypes.DataOperationType.UPDATE,
    Operation.DELETE: ttypes.DataOperationType.DELETE,
    Operation.NO_TXN: ttypes.DataOperationType.NO_TXN,
}
_LOCK_STATES = {
    ttypes.LockState.ACQUIRED: LockState.ACQUIRED,
    ttypes.LockState.WAITING: LockState.WAITING,
    ttypes.LockState.NOT_ACQUIRED: LockState.NOT_ACQUIRED,
}
_TXN_STATES = {
    ttypes.TxnState.OPEN: TxnState.OPEN,
    ttypes.TxnState.ABORTED: TxnState.ABORTED,
    ttypes.TxnState.COMMITTED: TxnState.COMMITTED,
}
_COMPACTIONS = {1: CompactionType.MINOR, 2: CompactionType.MAJOR, 3: CompactionType.REBALANCE}
_COMPACTIONS[4] = CompactionType.ABORT_TXN_CLEANUP
COMPACTION_NUMBERS = {type: number for number, type in _COMPACTIONS.items()}
"""Numbers of Thrift's ``CompactionType``; the bindings know only the first two."""
_COMPACTION_STATES = {str(state): state for state in CompactionState}
_COMPACTION_STATES["attempted"] = CompactionState.DID_NOT_INITIATE  # as Hive 3.1 calls it


def qualified(location: str) -> str:
    """A location as Hadoop's ``Path`` prints it, with its scheme: Hive compares locations as texts."""
    if location.startswith("/"):
        return f"file:{location}"
    return re.sub(r"^file:/*", "file:/", location)


# --- catalog ---------------------------------------------------------------------------------------------------------


def database_from_thrift(found: Any, location: str) -> Database:
    """A database; ``location`` is the directory of its managed tables."""
    return Database(found.name, location, found.description or None, dict(found.parameters or {}))


def table_from_thrift(found: Any) -> Table:
    """A table or view, without its constraints."""
    storage = found.sd
    parameters = dict(found.parameters or {})
    comment = parameters.pop(COMMENT, None)

    def column(field: Any) -> Column:
        return Column(field.name.lower(), field.type.lower(), field.comment)

    return Table(
        database=found.dbName.lower(),
        name=found.tableName.lower(),
        location=storage.location or "",
        columns=tuple(column(f) for f in storage.cols or ()),
        partition_keys=tuple(column(f) for f in found.partitionKeys or ()),
        parameters=parameters,
        comment=comment,
        bucket_columns=tuple(c.lower() for c in storage.bucketCols or ()),
        num_buckets=storage.numBuckets if storage.numBuckets is not None else -1,
        table_type=found.tableType or MANAGED_TABLE,
        owner=found.owner or "",
        created_at=found.createTime or 0,
        view_text=found.viewExpandedText or found.viewOriginalText or None,
        view_original=found.viewOriginalText or None,
        version=found.id or 0,  # of Hive 4: that of a table which is made anew is another
        id=found.id or 0,
    )


def table_to_thrift(table: Table) -> Any:
    """A table as CREATE TABLE of Hive would register it."""
    return ttypes.Table(
        catName=CATALOG,
        dbName=table.database,
        tableName=table.name,
        owner=table.owner,
        ownerType=ttypes.PrincipalType.USER,
        createTime=table.created_at,
        lastAccessTime=0,
        retention=0,
        sd=_storage(table),
        partitionKeys=_fields(table.partition_keys),
        parameters=table.all_parameters,
        tableType=table.table_type,
        viewOriginalText=table.view_original,
        viewExpandedText=table.view_text,
    )


def altered_table(found: Any, table: Table) -> Any:
    """A registered table with the columns, properties, comment and location of another description; or a view."""
    made = deepcopy(found)
    made.sd.cols = _fields(table.columns)
    made.viewOriginalText, made.viewExpandedText = table.view_original, table.view_text
    if not table.is_view:
        made.sd.location = qualified(table.location)
    made.tableType = table.table_type
    made.partitionKeys = _fields(table.partition_keys)
    made.parameters = table.all_parameters
    return made


def _storage(table: Table) -> Any:
    if table.is_view:  # as Hive's CreateViewOperation leaves it: no serde, the formats of a text file
        return ttypes.StorageDescriptor(
            cols=_fields(table.columns),
            inputFormat=TEXT_INPUT,
            outputFormat=TEXT_OUTPUT,
            compressed=False,
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(parameters={}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )
    return ttypes.StorageDescriptor(
        cols=_fields(table.columns),
        location=qualified(table.location),
        inputFormat=ORC_INPUT,
        outputFormat=ORC_OUTPUT,
        compressed=False,
        numBuckets=table.num_buckets,
        serdeInfo=ttypes.SerDeInfo(name=None, serializationLib=ORC_SERDE, parameters={"serialization.format": "1"}),
        bucketCols=list(table.bucket_columns),
        sortCols=[],
        parameters={},
        skewedInfo=ttypes.SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={}),
        storedAsSubDirectories=False,
    )


def _fields(columns: Iterable[Column]) -> list[Any]:
    return [ttypes.FieldSchema(name=c.name, type=c.type, comment=c.comment) for c in columns]


def partition_to_thrift(partition: Partition, table: Any) -> Any:
    """A partition with its own copy of the table's storage descriptor, as Hive registers one."""
    storage = deepcopy(table.sd)
    storage.location = qualified(partition.location)
    return ttypes.Partition(
        catName=CATALOG,
        dbName=partition.database,
        tableName=partition.table,
        values=list(partition.values),
        createTime=0,
        lastAccessTime=0,
        sd=storage,
        parameters={},
    )


def partitions_from_specs(database: str, table: str, specs: Iterable[Any]) -> list[Partition]:
    """Partitions of ``get_partitions_pspec``: those below the table share one storage descriptor."""
    found = []
    for spec in specs:
        shared, composed = spec.sharedSDPartitionSpec, spec.partitionList
        for one in shared.partitions if shared else ():
            location = f"{spec.rootPath}{one.relativePath}"
            found.append(Partition(database, table, tuple(one.values), location, one.createTime or 0))
        for one in composed.partitions if composed else ():
            found.append(partition_from_thrift(database, table, one))
    return found


def partition_from_thrift(database: str, table: str, found: Any) -> Partition:
    return Partition(database, table, tuple(found.values), found.sd.location, found.createTime or 0)


def by_name(partitions: Iterable[Partition]) -> list[Partition]:
    """Partitions of one table in the order of their names; what the keys are called makes no difference to it."""
    return sorted(partitions, key=lambda p: partition_name(["k"] * len(p.values), p.values))


# --- transactions ----------------------------------------------------------------------------------------------------


def valid_txns_from_thrift(found: Any, current_txn: int) -> ValidTxnList:
    """The snapshot of a transaction, or one of no transaction for 0 (Hive's ``createValidReadTxnList``)."""
    high = min(current_txn, found.txn_high_water_mark) if current_txn else found.txn_high_water_mark
    opened, aborted = _split(found.open_txns, found.abortedBits)

    def seen(ids: Iterable[int]) -> tuple[int, ...]:
        return tuple(t for t in ids if t <= high and t != current_txn)

    return ValidTxnList(high, seen(opened), seen(aborted))


def valid_write_ids_from_thrift(found: Any) -> ValidWriteIdList:
    opened, aborted = _split(found.invalidWriteIds, found.abortedBits)
    return ValidWriteIdList(found.fullTableName.lower(), found.writeIdHighWaterMark, tuple(opened), tuple(aborted))


def _split(ids: Sequence[int], bits: bytes | None) -> tuple[list[int], list[int]]:
    """Open and aborted ids: an id is aborted where the bit of its position is set (bytes of a Java ``BitSet``)."""
    kinds: tuple[list[int], list[int]] = ([], [])
    for position, id in enumerate(ids):
        byte = position // 8
        is_aborted = bits is not None and byte < len(bits) and bits[byte] >> position % 8 & 1
        kinds[bool(is_aborted)].append(id)
    return kinds


def txn_from_thrift(found: Any) -> TxnInfo:
    return TxnInfo(
        id=found.id,
        state=_TXN_STATES[found.state],
        type=TxnType.DEFAULT,  # the call does not tell
        started_ms=found.startedTime or 0,
        heartbeat_ms=found.lastHeartbeatTime or 0,
        user=found.user,
        host=found.hostname,
        agent_info=found.agentInfo or "",
        abort_reason=found.metaInfo or None,
    )


# --- locks -----------------------------------------------------------------------------------------------------------


def lock_component_to_thrift(component: LockComponent, *, exclusive_write: bool) -> Any:
    """A component; a metastore 3 knows no EXCL_WRITE, its UPDATE and DELETE take SHARED_WRITE."""
    level = ttypes.LockLevel.DB
    if component.table is not None:
        level = ttypes.LockLevel.TABLE if component.partition is None else ttypes.LockLevel.PARTITION
    type = component.type
    if type is LockType.EXCL_WRITE and not exclusive_write:
        type = LockType.SHARED_WRITE
    return ttypes.LockComponent(
        type=int(type),
        level=level,
        dbname=component.database,
        tablename=component.table,
        partitionname=component.partition,
        operationType=_OPERATIONS[component.operation],
        isTransactional=component.table is not None,
        isDynamicPartitionWrite=component.is_dynamic_partition_write,
    )


def lock_state_from_thrift(state: int) -> LockState:
    return _LOCK_STATES[state]


def operation_to_thrift(operation: Operation) -> int:
    return int(_OPERATIONS[operation])


def lock_from_thrift(found: Any) -> LockInfo:
    return LockInfo(
        lock_id=found.lockid,
        internal_id=found.lockIdInternal or 0,
        txn_id=found.txnid or 0,
        database=found.dbname,
        table=found.tablename,
        partition=found.partname,
        type=LockType(found.type),
        state=lock_state_from_thrift(found.state),
        blocked_by_lock_id=found.blockedByExtId or None,
        blocked_by_internal_id=found.blockedByIntId or None,
        heartbeat_ms=found.lastheartbeat or None,
        acquired_ms=found.acquiredat or None,
        user=found.user,
        host=found.hostname,
        agent_info=found.agentInfo or "",
    )


# --- compaction ------------------------------------------------------------------------------------------------------


def compaction_state(word: str) -> CompactionState:
    """Raises: MetastoreError for an unknown word."""
    found = _COMPACTION_STATES.get(word)
    if found is None:
        raise MetastoreError(f"The Hive Metastore reports an unknown compaction state: {word!r}")
    return found


def compaction_from_thrift(found: Any) -> CompactionInfo:
    return CompactionInfo(
        id=found.id or 0,
        database=found.dbname,
        table=found.tablename,
        partition=found.partitionname or None,
        type=_COMPACTIONS[found.type],
        state=compaction_state(found.state),
        worker=found.workerid or None,
        enqueued_ms=found.enqueueTime or None,
        started_ms=found.start or None,
        ended_ms=found.endTime or None,
        job_id=None if found.hadoopJobId in (None, "", "None") else found.hadoopJobId,
        error=found.errorMessage or None,
        initiator=found.initiatorId or None,
        pool=found.poolName or None,
        txn_id=found.txnId or None,
        next_txn_id=found.nextTxnId or None,
        committed_ms=found.commitTime or None,
        highest_write_id=found.hightestWriteId or found.hightestTxnId or None,  # Hive 4.0 tells it under the latter
        worker_version=found.workerVersion or None,
        initiator_version=found.initiatorVersion or None,
    )


def taken_from_thrift(found: Any, worker: str) -> CompactionInfo:
    """An entry that a worker has taken: Hive tells it as it was before."""
    return CompactionInfo(
        id=found.id,
        database=found.dbname,
        table=found.tablename,
        partition=found.partitionname or None,
        type=_COMPACTIONS[found.type],
        state=CompactionState.WORKING,
        worker=worker,
        enqueued_ms=found.enqueueTime or None,
        pool=found.poolname or None,
        properties=stringable_map.from_text(found.properties),
        buckets=found.numberOfBuckets or None,
        order_by=found.orderByClause or None,
    )
