"""``acidsql store``: the store of catalog and transactions, without Spark or Java."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acidsql.errors import AcidError, InvalidValue
from acidsql.metastore import is_hive_metastore
from acidsql.session import DEFAULT_WAREHOUSE, STORE_NAME
from acidsql.settings import Settings

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def check(warehouse: str | None, metastore: str | None, settings: Mapping[str, str], out: SupportsWrite[str]) -> int:
    """Check a store, and print what is in it and what does not fit.

    Returns:
        The exit code: 1 where something does not fit, or the store cannot be read.
    """
    try:
        problems = _check(warehouse, metastore, settings, out)
    except AcidError as e:
        click.echo(f"acidsql: {e}", err=True)
        return 1
    return 1 if problems else 0


def _check(warehouse: str | None, metastore: str | None, settings: Mapping[str, str], out: SupportsWrite[str]) -> int:
    if is_hive_metastore(metastore):
        raise InvalidValue("A Hive Metastore is not acidsql's to check", hint="Hive has schematool -validate.")
    url = metastore or str(Path(warehouse or DEFAULT_WAREHOUSE).absolute() / STORE_NAME)
    from acidsql.metastore.embedded import EmbeddedMetastore

    store = EmbeddedMetastore(url, Settings(settings), None)
    try:
        found = store.check()
    finally:
        store.close()
    out.write(f"{found.name}: schema version {found.version}\n")
    out.write("".join(f"  {count} {what}\n" for what, count in found.counts.items()))
    out.write("".join(f"NOT RIGHT: {problem}\n" for problem in found.problems) or "all of it fits together\n")
    return len(found.problems)
