"""PostgreSQL as a store under test: one server for a run, started for the first test that asks; a database for each."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.services.java import NoJavaError
from tests.services.maven import DownloadError, default_cache
from tests.services.postgres import PostgresServer, install, postgres_is_possible
from tests.services.relay import Relay
from tests.services.runs import ServiceError

_numbers = itertools.count()


@functools.cache
def missing() -> str | None:
    """Why it cannot run here; it is downloaded where it is not there yet."""
    if reason := postgres_is_possible():
        return reason
    try:
        install(default_cache())
    except (DownloadError, NoJavaError, ServiceError, OSError) as e:
        return str(e)
    return None


@functools.cache
def _started() -> PostgresServer | str:
    """The server, which ends with this process; or why it does not start here."""
    made = PostgresServer()
    try:
        made.start()
    except ServiceError as e:
        return str(e)
    return made


def new_database() -> str:
    """The URL of an empty database."""
    server = _started()
    if isinstance(server, str):
        pytest.skip(f"NO POSTGRESQL, nothing of it was tested: {server}")
    return server.create_database(f"store_{os.getpid()}_{next(_numbers)}")


@contextmanager
def relayed(url: str) -> Iterator[tuple[Relay, str]]:
    """A network to the server that can be cut, and the URL of a database through it."""
    host, _, port = url.split("@")[1].partition("/")[0].partition(":")
    with Relay(host, int(port)) as relay:
        yield relay, url.replace(f":{port}/", f":{relay.port}/")
