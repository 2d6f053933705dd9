"""A network between a client and a server that fails: connections end in the middle of calls, and none is made."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType

_CHUNK = 65536


class Relay:
    """Passes on what goes to and fro between clients and a server, until it is cut.

    Args:
        host, port: The server.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._left: int | None = None
        self._away_until = 0.0
        self.cuts = 0
        """How often it was cut while something was under way."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where clients connect to."""
        port: int = self._listener.getsockname()[1]
        return port

    def cut_after(self, pieces: int, seconds: float) -> None:
        """Let so many further pieces pass, requests and answers; lose the next one, end all connections, and make none
        for some seconds."""
        with self._lock:
            self._left, self._seconds = pieces, seconds

    def heal(self) -> None:
        """Work from now on."""
        with self._lock:
            self._left, self._away_until = None, 0.0

    def close(self) -> None:
        """End it."""
        self._listener.close()
        self._end_all()

    def __enter__(self) -> Relay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if time.monotonic() < self._away_until:
                client.close()
                continue
            server = socket.create_connection(self._server)
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(_CHUNK):
                if self._is_lost():
                    self._end_all()
                    return
                target.sendall(piece)
        except OSError:
            pass
        _end(source, target)

    def _is_lost(self) -> bool:
        with self._lock:
            if self._left is None:
                return False
            self._left -= 1
            if self._left >= 0:
                return False
            self._left, self._away_until = None, time.monotonic() + self._seconds
            self.cuts += 1
            return True

    def _end_all(self) -> None:
        with self._lock:
            gone, self._open = self._open, set()
        _end(*gone)


def _end(*sockets: socket.socket) -> None:
    """End connections: what another thread waits for, closing alone would leave open."""
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


def times(draw: random.Random, most: int) -> int:
    """A number up to a bound, small ones more often: most calls of a statement are at its beginning and its end."""
    return int(most * draw.random() ** 1.5)
