"""Catalog, transactions and locks behind one protocol (:mod:`acidsql.metastore.protocol`)."""

from __future__ import annotations

import re

from acidsql.errors import UnsupportedError
from acidsql.metastore.interim import EmbeddedMetastore
from acidsql.metastore.protocol import Metastore
from acidsql.settings import Settings

__all__ = ["Metastore", "open_metastore"]


def open_metastore(url: str, settings: Settings, *, warehouse: str) -> Metastore:
    """Open a metastore.

    Args:
        url: ``sqlite:///<path>``, or the path of a SQLite file.
        settings: Time-outs and limits.
        warehouse: Location of the ``default`` database where the store is made anew.

    Raises:
        MetastoreError: When the store cannot be used.
        UnsupportedError: When there is no metastore of that kind.
    """
    scheme = re.match(r"([a-z0-9+]+):", url)
    if scheme is None:
        return EmbeddedMetastore(f"sqlite:///{url}", settings, warehouse)
    if scheme[1] in ("sqlite", "sqlite+pysqlite"):
        return EmbeddedMetastore(url, settings, warehouse)
    raise UnsupportedError(
        f"No metastore of the kind {scheme[1]!r}: {url}",
        hint="This version has the embedded one (sqlite:///path/file.db); postgresql and thrift come later.",
    )
