"""PostgreSQL as a store under test: one server for a run, started for the first test that asks; a database for each."""

from __future__ import annotations

import functools
import itertools
import os

from tests.services.postgres import PostgresServer, postgres_is_possible

_numbers = itertools.count()


@functools.cache
def missing() -> str | None:
    """Why it cannot run here."""
    return postgres_is_possible()


@functools.cache
def server() -> PostgresServer:
    """It ends with this process."""
    made = PostgresServer()
    made.start()
    return made


def new_database() -> str:
    """The URL of an empty database."""
    return server().create_database(f"store_{os.getpid()}_{next(_numbers)}")
