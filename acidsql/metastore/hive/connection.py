"""Connections to a Hive Metastore: several servers with failover, reconnecting, time-outs, a few at once."""

from __future__ import annotations

import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from acidsql.errors import InvalidValue, MetastoreError
from acidsql.settings import (
    METASTORE_CONNECT_DELAY,
    METASTORE_CONNECT_RETRIES,
    METASTORE_CONNECT_TIMEOUT,
    METASTORE_FAILURE_RETRIES,
    METASTORE_SOCKET_TIMEOUT,
    METASTORE_URI_SELECTION,
    Settings,
)

T = TypeVar("T")
logger = logging.getLogger(__name__)

DEFAULT_PORT = 9083
MAX_IDLE = 8
"""Connections that are kept open between calls; a session makes few calls at once."""

_URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^:/\[\]@]+)(?::(?P<port>\d+))?/?"
)
LOST = (
    TTransportException,
    TProtocolException,
    OSError,
    EOFError,
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
)
"""What shows that a connection cannot be used any more; the last four are raised where an answer is no Thrift."""

MAX_STRING = 256 << 20
"""The longest text in an answer, in bytes; Thrift takes whatever it gets as lengths, and makes room for that first."""
MAX_ITEMS = 10_000_000
"""The longest list in an answer."""
_UNKNOWN = "Whether the last call was carried out is not known."

# it logs what is raised anyway, as an error with traceback, which Python shows where logging is not set up
logging.getLogger("thrift").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Address:
    """Where a metastore listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


def parse_uris(text: str) -> list[Address]:
    """Addresses of a text such as ``thrift://a:9083,thrift://b`` (Hive's ``hive.metastore.uris``); the port is 9083
    where none is given.

    Raises:
        InvalidValue: When it is not of that form.
    """
    found = []
    for one in (part.strip() for part in text.split(",")):
        match = _URI.fullmatch(one)
        port = int(match["port"] or DEFAULT_PORT) if match else 0
        if match is None or match["scheme"].lower() != "thrift" or not 0 < port < 65536:
            raise InvalidValue(
                f"{one!r} is not the address of a Hive Metastore",
                hint="thrift://host:9083, several separated by commas.",
            )
        found.append(Address(match["host"].strip("[]"), port))
    return found


class _Connection:
    """An open connection, on which one call at a time can run."""

    def __init__(self, address: Address, settings: Settings, user: str) -> None:
        self.address = address
        self._socket = TSocket(address.host, address.port, socket_keepalive=True)
        self._socket.setTimeout(_milliseconds(settings.value(METASTORE_CONNECT_TIMEOUT)))
        self._transport = TBufferedTransport(self._socket)
        protocol = TBinaryProtocolAccelerated(
            self._transport, strictRead=True, string_length_limit=MAX_STRING, container_length_limit=MAX_ITEMS
        )
        self.client: Any = Client(protocol)
        try:
            self._transport.open()
            # as Hive's client does; the server makes directories in that name (hive.metastore.execute.setugi)
            self.client.set_ugi(user, [user])
        except BaseException:
            self.close()
            raise
        self._socket.setTimeout(_milliseconds(settings.value(METASTORE_SOCKET_TIMEOUT)))

    @property
    def is_open(self) -> bool:
        """Whether the other end still holds the connection, as far as can be told without a call."""
        return bool(self._socket.isOpen())

    def close(self) -> None:
        self._transport.close()


class Connections:
    """A pool of connections to whichever of several servers answers.

    Args:
        addresses: The servers; all serve the same metastore.
        settings: Time-outs and retries, looked up at each connection.
        user: In whose name the server is to work.
        sleep: Waits for so many seconds, between two attempts to connect.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        settings: Settings,
        user: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._addresses = list(addresses)
        self._sleep = sleep
        self._settings = settings
        self._user = user
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._pid = os.getpid()
        self._closed = False

    def call(self, function: Callable[[Any], T]) -> T:
        """Run a function on a client, again on a new connection where the old one is lost.

        The function may so run twice, and the first run may have been carried out: what it asks for must bear that.

        Args:
            function: Gets the Thrift client.

        Raises:
            MetastoreError: When no server answers, or the connection is lost ``hive.metastore.failure.retries`` + 1
                times.
            TException: Whatever the server answers.
        """
        retries = self._settings.value(METASTORE_FAILURE_RETRIES)
        lost = ""
        for left in range(retries, -1, -1):
            try:
                connection = self._take()
            except MetastoreError as e:
                if not lost:
                    raise
                raise MetastoreError(f"{lost}. {e.message}", hint=_UNKNOWN) from e
            try:
                result = function(connection.client)
            except LOST as e:
                connection.close()
                self._forget(connection.address)
                lost = f"The connection to the Hive Metastore at {connection.address} was lost: {_reason(e)}"
                if not left:
                    raise MetastoreError(lost, hint=_UNKNOWN) from e
                logger.info("connection to %s lost, trying again: %s", connection.address, _reason(e))
            except TException:
                self._give_back(connection)
                raise
            except BaseException:  # an interrupt in the middle of an answer: the rest of it would be read by the next
                connection.close()
                raise
            else:
                self._give_back(connection)
                return result
        raise AssertionError("the loop above returns or raises")

    def close(self) -> None:
        """Close what is idle; what is in use is closed when its call ends."""
        with self._own():
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _own(self) -> threading.Lock:
        """The lock of this process: in a forked child, that of the parent may stay locked for ever."""
        if self._pid != os.getpid():
            self._lock, self._idle, self._pid = threading.Lock(), [], os.getpid()  # those sockets are the parent's
        return self._lock

    def _forget(self, address: Address) -> None:
        """Close the idle connections to a server that has just failed: they have most likely ended with this one."""
        with self._own():
            gone = [one for one in self._idle if one.address == address]
            self._idle = [one for one in self._idle if one.address != address]
        for connection in gone:
            connection.close()

    def _take(self) -> _Connection:
        while True:
            with self._own():
                if self._closed:
                    raise MetastoreError("The connection to the Hive Metastore is closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connect()
            if connection.is_open:
                return connection
            connection.close()

    def _give_back(self, connection: _Connection) -> None:
        with self._own():
            keep = not self._closed and len(self._idle) < MAX_IDLE
            if keep:
                self._idle.append(connection)
        if not keep:
            connection.close()

    def _connect(self) -> _Connection:
        """Connect to the first server that answers, in the order that ``hive.metastore.uri.selection`` asks for."""
        settings = self._settings
        order = list(self._addresses)
        if settings.value(METASTORE_URI_SELECTION) == "random":
            random.shuffle(order)
        problems: dict[Address, str] = {}
        for attempt in range(settings.value(METASTORE_CONNECT_RETRIES)):
            if attempt:
                self._sleep(settings.value(METASTORE_CONNECT_DELAY))
            for address in order:
                try:
                    return _Connection(address, settings, self._user)
                except (TException, *LOST) as e:
                    problems[address] = _reason(e)
                    logger.info("no connection to %s: %s", address, problems[address])
        raise MetastoreError(
            "No Hive Metastore answers: " + "; ".join(f"{a}: {why}" for a, why in problems.items()),
            hint="A metastore that asks for Kerberos, SASL, TLS or HTTP is not supported; it closes the connection.",
        )


def _milliseconds(seconds: float) -> float | None:
    """A time-out for a socket: none at all for 0, as in Hive."""
    return seconds * 1000 or None


def _reason(error: BaseException) -> str:
    return str(getattr(error, "message", None) or error or type(error).__name__)
