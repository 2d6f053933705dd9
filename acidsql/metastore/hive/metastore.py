"""The protocol over Thrift: each call is a call of the Hive Metastore's own API."""

from __future__ import annotations

import getpass
import logging
import re
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from operator import methodcaller
from typing import Any, TypeVar

from hive_metastore import ttypes

from acidsql.errors import (
    AcidError,
    AlreadyExists,
    AnalysisError,
    DatabaseNotFound,
    MetastoreError,
    NoSuchTransaction,
    PartitionNotFound,
    TableNotFound,
    TransactionAborted,
    TransactionError,
    UnsupportedError,
)
from acidsql.metastore.hive import translate, wire
from acidsql.metastore.hive.connection import Connections, parse_uris
from acidsql.metastore.hive.errors import NO_SUCH_TRANSACTION, TRANSACTION_ABORTED, hive_errors
from acidsql.metastore.hive.seeds import take_write_ids
from acidsql.metastore.model import (
    DEFAULT_DATABASE,
    CompactionFilter,
    CompactionInfo,
    CompactionRequest,
    CompactionResponse,
    Database,
    LockInfo,
    LockRequest,
    LockResponse,
    LockState,
    Operation,
    Partition,
    Table,
    TxnInfo,
    TxnState,
    TxnType,
)
from acidsql.settings import TXN_TIMEOUT, XLOCK_WRITE, Settings, parse_seconds
from acidsql.valid_ids import ValidTxnList, ValidWriteIdList

T = TypeVar("T")
logger = logging.getLogger(__name__)

CAPABILITIES = (
    "HIVEBUCKET2",
    "HIVEFULLACIDREAD",
    "HIVEFULLACIDWRITE",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "HIVECACHEINVALIDATE",
    "HIVEMANAGESTATS",
    "EXTREAD",
    "EXTWRITE",
)
"""What Hive 4 asks a client about, before it shows it a transactional table or makes one for it."""

PROCESSOR = "acidsql"
GAP_SECONDS = 2.0
_ALL = -1
_ABORT = ttypes.LockState.ABORT
_BLOCKER = re.compile(r"lockid:(\d+) intLockId:(\d+)")
"""How the metastore names a lock in its messages."""
_QUEUED = re.compile(r"state='([^']*)' and id=(\d+)")
"""How it names an entry of the compaction queue."""


class HiveMetastore:
    """:class:`~acidsql.metastore.protocol.Metastore` of a running Hive Metastore, version 3.1 or 4.

    What a method does and raises stands in the protocol. Besides that, each raises MetastoreError where no server
    answers or the metastore refuses. A call whose connection is lost is made again on another one (Hive's client does
    the same). Each of them bears that: an open transaction whose id got lost ends by its time-out, everything else is
    the same when done twice.

    The metastore itself times transactions out, prunes them and forgets components, so those calls do nothing here.

    Args:
        uris: ``thrift://host:port``, several parted by commas.
        settings: Time-outs, retries and ``hive.txn.xlock.write`` are looked up at each call.

    Raises:
        MetastoreError: When no server answers.
        UnsupportedError: When its version is below 3: it knows no write ids.
    """

    def __init__(self, uris: str, settings: Settings) -> None:
        self._settings = settings
        self._user = getpass.getuser()
        self._connections = Connections(parse_uris(uris), settings, self._user)
        try:
            self.version = self._call(lambda c: c.getVersion())
            if self._major < 3:
                raise UnsupportedError(
                    f"The Hive Metastore at {uris} is of version {self.version}", hint="Supported are 3.1 and 4."
                )
        except BaseException:
            self.close()
            raise

    version: str
    """As the server says it: ``4.0.1``."""

    def close(self) -> None:
        self._connections.close()

    @property
    def _major(self) -> int:
        number = self.version.partition(".")[0]
        if not number.isdigit():
            raise MetastoreError(f"The server is no Hive Metastore: it calls its version {self.version!r}")
        return int(number)

    @cached_property
    def txn_timeout(self) -> float:
        """The server's own ``hive.txn.timeout``: what this session has under that name does not bind the server."""
        return parse_seconds(self._config(TXN_TIMEOUT.name, TXN_TIMEOUT.default))

    def _config(self, name: str, default: str = "") -> str:
        return str(self._call(lambda c: c.get_config_value(name, default)))

    @cached_property
    def _is_hive4(self) -> bool:
        return self._major >= 4

    def _call(
        self, function: Callable[[Any], T], *, missing: type[AcidError] = TableNotFound, name: str | None = None
    ) -> T:
        with hive_errors(missing, name):
            return self._connections.call(function)

    # --- databases ---------------------------------------------------------------------------------------------------

    @cached_property
    def _warehouse(self) -> str:
        """Directory of managed tables of the database ``default``."""
        found = self._call(lambda c: c.get_database(DEFAULT_DATABASE), missing=DatabaseNotFound)
        managed = found.managedLocationUri
        if not managed and self._is_hive4:
            managed = self._config("hive.metastore.warehouse.dir")
        return translate.qualified(managed or found.locationUri)

    def create_database(self, database: Database) -> None:
        location = translate.qualified(database.location)
        usual = location == self._usual_location(database.name)
        made = ttypes.Database(
            name=database.name,
            description=database.comment,
            parameters=dict(database.parameters),
            ownerName=self._user,
            ownerType=ttypes.PrincipalType.USER,
            catalogName=translate.CATALOG,
            locationUri=None if usual or self._is_hive4 else location,
            managedLocationUri=None if usual or not self._is_hive4 else location,
        )
        self._made_once(
            lambda c: c.create_database(made), lambda: self.get_database(database.name).location == location
        )

    def get_database(self, name: str) -> Database:
        found = self._call(
            lambda c: c.get_database(name), missing=DatabaseNotFound, name=f"Database does not exist: {name}"
        )
        return translate.database_from_thrift(found, self._managed_location(found))

    def _managed_location(self, found: Any) -> str:
        if not self._is_hive4:
            return str(found.locationUri)
        return str(found.managedLocationUri or self._usual_location(found.name))

    def _usual_location(self, name: str) -> str:
        root = self._warehouse.rstrip("/")
        return root if name == DEFAULT_DATABASE else f"{root}/{name}.db"

    def list_databases(self) -> list[str]:
        return sorted(self._call(lambda c: c.get_all_databases()))

    def drop_database(self, name: str) -> None:
        if name == DEFAULT_DATABASE:
            raise AnalysisError(f"Can not drop {DEFAULT_DATABASE} database")

        def drop(client: Any) -> None:
            if not self._is_hive4:  # it falls over a database that is not there
                client.get_database(name)
            client.drop_database(name, True, False)

        self._gone_once(drop, DatabaseNotFound, f"Database does not exist: {name}")

    # --- tables ------------------------------------------------------------------------------------------------------

    def create_table(self, table: Table) -> None:
        self.get_database(table.database)
        made = translate.table_to_thrift(table)
        not_null, defaults = translate.not_null_constraints(table), translate.default_constraints(table)

        def create(client: Any) -> None:
            if self._is_hive4:
                client.create_table_req(
                    ttypes.CreateTableRequest(
                        table=made,
                        notNullConstraints=not_null or None,
                        defaultConstraints=defaults or None,
                        processorCapabilities=list(CAPABILITIES),
                        processorIdentifier=PROCESSOR,
                    )
                )
            elif not_null or defaults:
                client.create_table_with_constraints(made, [], [], [], not_null, defaults, [])
            else:
                client.create_table(made)

        self._made_once(create, lambda: self._is_registered(table))

    def _is_registered(self, table: Table) -> bool:
        found = self.get_table(table.database, table.name)
        return (found.columns, found.partition_keys, found.owner) == (table.columns, table.partition_keys, table.owner)

    def get_table(self, database: str, name: str) -> Table:
        found = self._raw_table(database, name)
        transactional = (found.parameters or {}).get("transactional", "").lower() == "true"
        return translate.table_from_thrift(found, self._constraints(database, name) if transactional else None)

    def find_table(self, database: str, name: str) -> Table | None:
        try:
            return self.get_table(database, name)
        except TableNotFound:
            return None

    def _raw_table(self, database: str, name: str) -> Any:
        request = ttypes.GetTableRequest(
            dbName=database,
            tblName=name,
            catName=translate.CATALOG,
            capabilities=ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=list(CAPABILITIES),
            processorIdentifier=PROCESSOR,
        )
        return self._call(lambda c: c.get_table_req(request), name=f"Table not found {database}.{name}").table

    def _constraints(self, database: str, name: str) -> Any:
        """NOT NULL, DEFAULT and CHECK of a table's columns."""
        key = {"catName": translate.CATALOG, "dbName": database, "tblName": name}
        if self._is_hive4:
            request = ttypes.AllTableConstraintsRequest(**key)
            return self._call(lambda c: c.get_all_table_constraints(request)).allTableConstraints
        key = {"catName": translate.CATALOG, "db_name": database, "tbl_name": name}
        return self._call(
            lambda c: ttypes.SQLAllTableConstraints(
                notNullConstraints=c.get_not_null_constraints(
                    ttypes.NotNullConstraintsRequest(**key)
                ).notNullConstraints,
                defaultConstraints=c.get_default_constraints(
                    ttypes.DefaultConstraintsRequest(**key)
                ).defaultConstraints,
                checkConstraints=c.get_check_constraints(ttypes.CheckConstraintsRequest(**key)).checkConstraints,
            )
        )

    def list_tables(self, database: str) -> list[str]:
        if not self._is_hive4:  # it falls over a database that is not there
            self.get_database(database)
        names = sorted(self._call(lambda c: c.get_all_tables(database), missing=DatabaseNotFound))
        if not names:
            self.get_database(database)
        return names

    def alter_table(
        self, table: Table, *, write_id: int | None = None, write_ids: ValidWriteIdList | None = None
    ) -> None:
        made = translate.altered_table(self._raw_table(table.database, table.name), table)
        missing = f"Table not found {table.full_name}"
        if not self._is_hive4:
            self._call(lambda c: c.alter_table(table.database, table.name, made), name=missing)
            return
        request = ttypes.AlterTableRequest(
            catName=translate.CATALOG,
            dbName=table.database,
            tableName=table.name,
            table=made,
            writeId=-1 if write_id is None else write_id,
            validWriteIdList=None if write_ids is None else write_ids.to_text(),
            processorCapabilities=list(CAPABILITIES),
            processorIdentifier=PROCESSOR,
        )
        self._call(lambda c: c.alter_table_req(request), name=missing)

    def drop_table(self, database: str, name: str, *, keep_files: bool = False) -> None:
        self._gone_once(
            lambda c: c.drop_table(database, name, not keep_files), TableNotFound, f"Table not found {database}.{name}"
        )

    # --- partitions --------------------------------------------------------------------------------------------------

    def add_partitions(self, partitions: Sequence[Partition]) -> None:
        by_table: dict[tuple[str, str], list[Partition]] = {}
        for partition in partitions:
            by_table.setdefault((partition.database, partition.table), []).append(partition)
        tables = {place: self._raw_table(*place) for place in by_table}
        for (database, name), added in by_table.items():
            table = tables[database, name]
            distinct = {p.values: p for p in reversed(added)}
            request = ttypes.AddPartitionsRequest(
                catName=translate.CATALOG,
                dbName=database,
                tblName=name,
                parts=[translate.partition_to_thrift(p, table) for p in distinct.values()],
                ifNotExists=True,
                needResult=False,
            )
            self._call(methodcaller("add_partitions_req", request))

    def list_partitions(self, database: str, table: str, names: Sequence[str] | None = None) -> list[Partition]:
        missing = f"Table not found {database}.{table}"
        if names is None:
            specs = self._call(lambda c: c.get_partitions_pspec(database, table, _ALL), name=missing)
            return translate.by_name(translate.partitions_from_specs(database, table, specs))
        wanted = list(dict.fromkeys(names))
        try:
            raw = self._call(lambda c: c.get_partitions_by_names(database, table, wanted), name=missing)
        except MetastoreError:  # Hive 4 has an answer to a missing table that the bindings do not know
            self._raw_table(database, table)
            raise
        return translate.by_name(translate.partition_from_thrift(database, table, one) for one in raw)

    def drop_partitions(self, database: str, table: str, names: Sequence[str]) -> None:
        self._raw_table(database, table)
        request = ttypes.DropPartitionsRequest(
            catName=translate.CATALOG,
            dbName=database,
            tblName=table,
            parts=ttypes.RequestPartsSpec(names=list(dict.fromkeys(names))),
            deleteData=True,
            ifExists=False,
            needResult=False,
        )
        self._gone_once(
            lambda c: c.drop_partitions_req(request),
            PartitionNotFound,
            f"Partition not found in {database}.{table}: {', '.join(names[:5])}",
        )

    # --- steps that a second try may find done -----------------------------------------------------------------------

    def _made_once(self, create: Callable[[Any], None], is_ours: Callable[[], bool]) -> None:
        """Create something; where a second try finds it there, it may be the first one's work."""
        tries = 0

        def counted(client: Any) -> None:
            nonlocal tries
            tries += 1
            create(client)

        try:
            self._call(counted, missing=DatabaseNotFound)
        except AlreadyExists:
            if tries == 1 or not is_ours():
                raise

    def _gone_once(self, remove: Callable[[Any], Any], missing: type[AcidError], name: str | None = None) -> None:
        """Remove something; where a second try does not find it, the first one was carried out."""
        tries = 0

        def counted(client: Any) -> None:
            nonlocal tries
            tries += 1
            remove(client)

        try:
            self._call(counted, missing=missing, name=name)
        except AcidError as e:
            if tries == 1 or not isinstance(e, missing):
                raise

    # --- transactions ------------------------------------------------------------------------------------------------

    def open_txns(
        self, count: int = 1, *, user: str, host: str, type: TxnType = TxnType.DEFAULT, agent_info: str = ""
    ) -> list[int]:
        request = ttypes.OpenTxnRequest(
            num_txns=count, user=user, hostname=host, agentInfo=agent_info or PROCESSOR, txn_type=int(type)
        )
        return list(self._call(lambda c: c.open_txns(request)).txn_ids)

    def commit_txn(self, txn_id: int) -> None:
        request = ttypes.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=self._settings.value(XLOCK_WRITE))
        # a metastore 3 forgets at once that a transaction has ended which wrote nothing
        self._gone_once(lambda c: c.commit_txn(request), NoSuchTransaction)

    def abort_txns(self, txn_ids: Sequence[int], reason: str = "") -> list[int]:
        """Abort those that are not committed; those that were aborted before count too. The reason is not kept.

        One by one: the call for many ignores those that it cannot abort, so one would not know.
        """
        aborted = []
        for txn_id in dict.fromkeys(txn_ids):
            try:
                self._call(methodcaller("abort_txn", ttypes.AbortTxnRequest(txnid=txn_id)))
                aborted.append(txn_id)
            except NoSuchTransaction as e:
                logger.debug("transaction %s is committed or forgotten: %s", txn_id, e)
        return aborted

    def heartbeat(self, *, txn_id: int = 0, lock_id: int = 0) -> None:
        request = ttypes.HeartbeatRequest(lockid=lock_id or None, txnid=txn_id or None)
        self._call(lambda c: c.heartbeat(request))

    def heartbeat_txns(self, txn_ids: Sequence[int]) -> tuple[list[int], list[int]]:
        """Hive's call for a range, for each run of ids without a gap: in a gap stand the transactions of others."""
        aborted: list[int] = []
        unknown: list[int] = []
        for first, last in _runs(txn_ids):
            request = ttypes.HeartbeatTxnRangeRequest(min=first, max=last)
            answer = self._call(methodcaller("heartbeat_txn_range", request))
            aborted += answer.aborted
            unknown += answer.nosuch
        return sorted(aborted), sorted(unknown)

    def show_txns(self) -> list[TxnInfo]:
        """As the protocol says.

        Hive 4.0 takes an id that is being handed out for an open transaction of nobody, and its own answer then fails
        to be written: the connection ends. That lasts for a second at most (``metastore.txn.opentxn.timeout``).
        """
        deadline = time.monotonic() + GAP_SECONDS
        while True:
            try:
                found = self._call(lambda c: c.get_open_txns_info()).open_txns
                return sorted((translate.txn_from_thrift(t) for t in found), key=lambda t: t.id)
            except MetastoreError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(GAP_SECONDS / 10)

    def time_out_txns(self) -> list[int]:
        """Nothing: the metastore's own housekeeper does it."""
        return []

    def clean_empty_aborted_txns(self) -> None:
        """Nothing: the metastore's own housekeeper does it."""

    def forget_txn_components(self, txn_id: int) -> None:
        """Nothing: Hive's initiator and cleaner do it."""

    # --- snapshots and write ids -------------------------------------------------------------------------------------

    def get_valid_txns(self, current_txn: int = 0) -> ValidTxnList:
        if self._is_hive4:  # readers write nothing, so it does not matter whether they are open
            request = ttypes.GetOpenTxnsRequest(excludeTxnTypes=[ttypes.TxnType.READ_ONLY])
            found = self._call(lambda c: c.get_open_txns_req(request))
        else:
            found = self._call(lambda c: c.get_open_txns())
        return translate.valid_txns_from_thrift(found, current_txn)

    def get_valid_write_ids(self, tables: Sequence[str], valid_txns: ValidTxnList) -> list[ValidWriteIdList]:
        if not tables:
            return []
        request = ttypes.GetValidWriteIdsRequest(
            fullTableNames=list(dict.fromkeys(tables)), validTxnList=valid_txns.to_text()
        )
        answer = self._call(lambda c: c.get_valid_write_ids(request)).tblValidWriteIds
        by_table = {found.table: found for found in map(translate.valid_write_ids_from_thrift, answer)}
        return [by_table[name] for name in tables]

    def allocate_table_write_id(self, txn_id: int, database: str, table: str, *, reallocate: bool = False) -> int:
        if reallocate:
            raise UnsupportedError("A Hive Metastore gives a transaction one write id in a table, and no other")
        request = ttypes.AllocateTableWriteIdsRequest(dbName=database, tableName=table, txnIds=[txn_id])
        try:
            [pair] = self._call(lambda c: c.allocate_table_write_ids(request)).txnToWriteIds
        except MetastoreError as e:
            if e.__cause__ is not None:  # all that Hive 4 says is "Internal error"; Hive 3 closes the connection
                self._require_writer(txn_id)
            raise
        return int(pair.writeId)

    def _require_writer(self, txn_id: int) -> None:
        """Raises: NoSuchTransaction, TransactionAborted, TransactionError where a transaction cannot write."""
        found = next((t for t in self.show_txns() if t.id == txn_id), None)
        name = f"Transaction [txnid:{txn_id},{txn_id}]"
        if found is None:
            raise NoSuchTransaction(f"{name} is not open", code=NO_SUCH_TRANSACTION)
        if found.state is TxnState.ABORTED:
            raise TransactionAborted(f"{name} already aborted", code=TRANSACTION_ABORTED)
        if self._is_hive4 and txn_id not in self.get_valid_txns().open_ids:
            raise TransactionError(f"{name} is read-only: it gets no write id")

    def seed_write_id(self, valid_write_ids: ValidWriteIdList) -> None:
        name, exceptions = valid_write_ids.table, valid_write_ids.exceptions
        [found] = self.get_valid_write_ids([name], self.get_valid_txns())
        if found.high_watermark:
            raise TransactionError(f"Table {name} has write ids already: they cannot start anew")
        first = 1  # a metastore 3 knows no call for a start
        if self._is_hive4:
            first = exceptions[0] if exceptions else valid_write_ids.high_watermark + 1
            if first > 1:
                database, _, table = name.partition(".")
                seed = ttypes.SeedTableWriteIdsRequest(dbName=database, tableName=table, seedWriteId=first - 1)
                self._call(lambda c: c.seed_write_id(seed))
        if first <= valid_write_ids.high_watermark:
            take_write_ids(self, valid_write_ids, first, self._user, PROCESSOR)

    def seed_txn_id(self, txn_id: int) -> None:
        """Nothing where the metastore is there already; else refused: all ids that are skipped would count as open."""
        high = self.get_valid_txns().high_watermark
        if txn_id > high:
            raise UnsupportedError(
                f"The directory names transaction {txn_id} of another metastore; this one is at {high}",
                hint="Only what was compacted under this metastore, or not at all, can be taken in.",
            )

    # --- what a transaction writes to --------------------------------------------------------------------------------

    def add_dynamic_partitions(
        self, txn_id: int, write_id: int, database: str, table: str, partitions: Sequence[str], operation: Operation
    ) -> None:
        if not partitions:
            return
        request = ttypes.AddDynamicPartitions(
            txnid=txn_id,
            writeid=write_id,
            dbname=database,
            tablename=table,
            partitionnames=list(partitions),
            operationType=translate.operation_to_thrift(operation),
        )
        self._call(lambda c: c.add_dynamic_partitions(request))

    def get_latest_txn_in_conflict(self, txn_id: int) -> int | None:
        """As the protocol says; a metastore 3 has no such call: it finds the conflict at the commit, always."""
        if not self._is_hive4:
            return None
        return int(self._call(lambda c: c.get_latest_txnid_in_conflict(txn_id))) or None

    # --- locks -------------------------------------------------------------------------------------------------------

    def lock(self, request: LockRequest) -> LockResponse:
        components = [translate.lock_component_to_thrift(c, exclusive_write=self._is_hive4) for c in request.components]
        asked = ttypes.LockRequest(
            component=components,
            txnid=request.txn_id,
            user=request.user,
            hostname=request.host,
            agentInfo=request.agent_info or PROCESSOR,
            zeroWaitReadEnabled=request.zero_wait_reads,
        )
        return self._lock_response(self._call(lambda c: c.lock(asked)))

    def check_lock(self, lock_id: int) -> LockResponse:
        request = ttypes.CheckLockRequest(lockid=lock_id)
        return self._lock_response(self._call(lambda c: c.check_lock(request)))

    def _lock_response(self, found: Any) -> LockResponse:
        """The answer; who is in the way is told by another call, made only while a request waits."""
        if found.state == _ABORT:
            raise TransactionAborted(
                f"The transaction of lock {found.lockid} is aborted: {found.errorMessage}", code=TRANSACTION_ABORTED
            )
        state = translate.lock_state_from_thrift(found.state)
        if state is LockState.ACQUIRED:
            return LockResponse(found.lockid, state)
        locks = self.show_locks()
        in_the_way = {
            (one.blocked_by_lock_id, one.blocked_by_internal_id) for one in locks if one.lock_id == found.lockid
        }
        if named := _BLOCKER.search(found.errorMessage or ""):  # a read that does not wait is not in the list
            in_the_way = {(int(named[1]), int(named[2]))}
        holder = next((one for one in locks if (one.lock_id, one.internal_id) in in_the_way), None)
        return LockResponse(found.lockid, state, holder)

    def unlock(self, lock_id: int) -> None:
        self._call(lambda c: c.unlock(ttypes.UnlockRequest(lockid=lock_id)))

    def show_locks(
        self, database: str | None = None, table: str | None = None, partition: str | None = None
    ) -> list[LockInfo]:
        request = ttypes.ShowLocksRequest(dbname=database, tablename=table, partname=partition)
        found = self._call(lambda c: c.show_locks(request)).locks or ()
        return [translate.lock_from_thrift(one) for one in found]

    # --- compaction --------------------------------------------------------------------------------------------------

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        self._raw_table(request.database, request.table)
        asked = wire.CompactionRequest(
            dbname=request.database,
            tablename=request.table,
            partitionname=request.partition,
            type=translate.COMPACTION_NUMBERS[request.type],
            runas=None,  # the owner of the table's directory, as the worker finds it
            properties=dict(request.properties) or None,
            initiatorId=f"{request.host}-manual",  # as Hive names a request of a user,
            poolName=request.pool,
            numberOfBuckets=request.buckets,
            orderByClause=request.order_by,
        )
        answer = self._call(lambda c: wire.compact(c, asked))
        id, state = answer.id, answer.state
        if queued := _QUEUED.search(answer.errormessage or ""):  # Hive 4 names the entry in the message alone
            id, state = int(queued[2]), queued[1]
        return CompactionResponse(id, state, bool(answer.accepted), answer.errormessage)

    def show_compactions(self, wanted: CompactionFilter) -> list[CompactionInfo]:
        """As the protocol says. A metastore 3 filters nothing, so all is filtered here again."""
        request = wire.ShowCompactRequest()
        if self._is_hive4:
            request = wire.ShowCompactRequest(
                id=wanted.id, dbName=wanted.database, tbName=wanted.table, partName=wanted.partition
            )
        found = self._call(lambda c: wire.show_compact(c, request))
        kept = [one for one in map(translate.compaction_from_thrift, found) if _is_wanted(one, wanted)]
        kept.sort(key=lambda one: one.id, reverse=True)
        return kept[: wanted.limit]

    def abort_compactions(self, ids: Sequence[int]) -> dict[int, str]:
        request = wire.AbortCompactionRequest(compactionIds=list(ids))
        answer = self._call(lambda c: wire.abort_compactions(c, request))
        return {id: found.message or found.status for id, found in answer.items()}


def _runs(ids: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive ids."""
    runs: list[tuple[int, int]] = []
    for id in sorted(set(ids)):
        if runs and id == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], id)
        else:
            runs.append((id, id))
    return runs


def _is_wanted(one: CompactionInfo, wanted: CompactionFilter) -> bool:
    pairs = (
        (one.id, wanted.id),
        (one.database, wanted.database),
        (one.table, wanted.table),
        (one.partition, wanted.partition),
        (one.pool, wanted.pool),
        (one.type, wanted.type),
        (one.state, wanted.state),
    )
    return all(want is None or have == want for have, want in pairs)
