"""What all calls of a Hive Metastore share: connections, the server's version, and steps that may be done twice."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from math import inf
from typing import Any, TypeVar

from hive_metastore import ttypes

from acidsql.errors import (
    AcidError,
    AlreadyExists,
    DatabaseNotFound,
    MetastoreError,
    TableNotFound,
    UnsupportedError,
)
from acidsql.metastore.hive import translate
from acidsql.metastore.hive.connection import Connections, parse_uris
from acidsql.metastore.hive.errors import hive_errors
from acidsql.metastore.model import Capabilities
from acidsql.metastore.owner import Owner
from acidsql.settings import TXN_TIMEOUT, Settings, parse_seconds

T = TypeVar("T")

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


def capabilities_of_hive(is_hive4: bool) -> Capabilities:
    """What a Hive Metastore of version 4, or of version 3, does itself."""
    return Capabilities(
        owns_directories=True,
        runs_compactor=True,
        is_shared_with_hive=True,
        has_open_queue=is_hive4,
        hides_new_tables=False,
        tells_creators=False,
        versions_places=False,
        compares_rows=False,
        reads_zstd=is_hive4,
    )


class HiveClient:
    """Calls of one Hive Metastore. What its parts do is told by :class:`~acidsql.metastore.hive.HiveMetastore`."""

    def __init__(self, uris: str, settings: Settings) -> None:
        self._settings = settings
        self._user = getpass.getuser()
        self._owner = Owner()
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

    def hurry(self) -> None:
        pass  # what it waits for are a few attempts, which Hive's own settings limit

    def close(self) -> None:
        self._connections.close()

    @property
    def _major(self) -> int:
        number = self.version.partition(".")[0]
        if not number.isdigit():
            raise MetastoreError(f"The server is no Hive Metastore: it calls its version {self.version!r}")
        return int(number)

    def on_behalf_of(self, txn_id: int) -> AbstractContextManager[None]:
        return self._owner.is_txn(txn_id)

    def _require_owner(self) -> None:
        """Called before the catalog is changed: no call of the metastore's does both.

        Raises:
            NoSuchTransaction, TransactionAborted: When the transaction that the thread works for is not open.
        """
        if self._owner.txn_id:
            self._call(lambda c: c.heartbeat(ttypes.HeartbeatRequest(txnid=self._owner.txn_id)))

    @property
    def lock_pauses(self) -> tuple[float, float]:
        """As Hive's own ``DbLockManager`` begins: each try is a heartbeat and a lock of the server's database."""
        return 0.05, inf

    @cached_property
    def txn_timeout(self) -> float:
        """The server's own ``hive.txn.timeout``: what this session has under that name does not bind the server."""
        return parse_seconds(self._config(TXN_TIMEOUT.name, TXN_TIMEOUT.default))

    def _config(self, name: str, default: str = "") -> str:
        return str(self._call(lambda c: c.get_config_value(name, default)))

    @cached_property
    def _is_hive4(self) -> bool:
        return self._major >= 4

    @property
    def capabilities(self) -> Capabilities:
        return capabilities_of_hive(self._is_hive4)

    def _call(
        self, function: Callable[[Any], T], *, missing: type[AcidError] = TableNotFound, name: str | None = None
    ) -> T:
        with hive_errors(missing, name):
            return self._connections.call(function)

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
