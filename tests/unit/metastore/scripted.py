"""A Hive Metastore that plays a script, at a port of the loopback address: what it answers, and how it fails."""

from __future__ import annotations

import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

from hive_metastore.ThriftHiveMetastore import Processor
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.TMultiplexedProcessor import StoredMessageProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TMemoryBuffer


class Fault(Enum):
    """What a server does instead of answering."""

    DIES_BEFORE = "closes the connection and does not carry out the call"
    DIES_AFTER = "carries out the call and closes the connection"
    CUTS = "carries out the call and closes the connection in the middle of the answer"
    IS_SILENT = "carries out the call and answers nothing"


class ScriptedMetastore:
    """A server of the metastore's API.

    Args:
        answers: By the name of a call, what it answers: a function of its arguments, an exception, or a value.

    Attributes:
        carried_out: The names of the calls that were carried out, in their order.
        connections: How many connections were made.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"set_ugi": lambda user, groups: groups, "getVersion": "4.0.1", **answers}
        self.carried_out: list[str] = []
        self.connections = 0
        self._faults: dict[str, deque[Fault | Callable[[bytes], bytes]]] = {}
        self._open: set[socket.socket] = set()
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def counts(self) -> Counter[str]:
        """How often each call was carried out, but for those that every session begins with."""
        return Counter(name for name in self.carried_out if name not in ("set_ugi", "getVersion"))

    def fail(self, name: str, *faults: Fault | Callable[[bytes], bytes]) -> None:
        """Have the next calls of a name fail, one fault each. A function changes the bytes of the answer."""
        self._faults.setdefault(name, deque()).extend(faults)

    def close_connections(self) -> None:
        """End all connections that are open now, as a server that is started anew."""
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._stop.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_connections()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        handle = TSocket()
        handle.setHandle(connection)
        input = TBinaryProtocol(TBufferedTransport(handle))
        with suppress(TException, OSError, EOFError):
            while self._answer(input, connection):
                pass
        self._open.discard(connection)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def _answer(self, input: TBinaryProtocol, connection: socket.socket) -> bool:
        """Answer one call; whether another one may follow."""
        message = input.readMessageBegin()
        faults = self._faults.get(message[0])
        fault = faults.popleft() if faults else None
        if fault is Fault.DIES_BEFORE:
            return False
        output = TMemoryBuffer()
        Processor(self).process(StoredMessageProtocol(input, message), TBinaryProtocol(output))
        answer = output.getvalue()
        if fault is Fault.DIES_AFTER:
            return False
        if fault is Fault.IS_SILENT:
            self._stop.wait()
            return False
        if fault is Fault.CUTS:
            connection.sendall(answer[: len(answer) // 2])
            return False
        connection.sendall(fault(answer) if callable(fault) else answer)
        return True

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The handler of a call: Thrift's processor asks for it by its name."""
        if name.startswith("_") or name not in self.answers:
            raise AttributeError(name)

        def handle(*arguments: Any) -> Any:
            self.carried_out.append(name)
            answer = self.answers[name]
            if isinstance(answer, BaseException):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return handle


@contextmanager
def raw_server(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that is no Thrift server; ``behave`` gets each connection, which is closed after it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            behave(connection)

    def listen() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=run, args=(connection,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield f"thrift://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def dead_uri() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"thrift://127.0.0.1:{port}"


@contextmanager
def black_hole() -> Iterator[str]:
    """An address that takes connections and never answers: a full queue, which nobody empties."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(address)
            yield f"thrift://127.0.0.1:{address[1]}"
        finally:
            for one in waiting:
                one.close()
