"""The metastore: catalog, transactions and locks behind one protocol, whatever store they are in.

Both stores follow one pattern: each part of the protocol is a class in a module of its own, over the one class that
holds what all calls share (``client.py``), and the store is the union of its parts (``metastore.py``); so a call is
implemented where ``def`` and its name stand, once. A façade over functions was the other candidate, and it repeated
every signature; functions (of the embedded store, with ``db``) are only the steps that several calls share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acidsql.errors import UnsupportedError
from acidsql.settings import Settings

if TYPE_CHECKING:
    from acidsql.metastore.protocol import Metastore

__all__ = ["is_hive_metastore", "open_metastore"]


def is_hive_metastore(url: str | None) -> bool:
    """Whether a URL names a Hive Metastore, which has a warehouse of its own."""
    return url is not None and url.lower().startswith("thrift:")


def open_metastore(url: str, settings: Settings, *, warehouse: str) -> Metastore:
    """Open a metastore; an embedded one is created where it does not exist.

    Args:
        url: ``thrift://host:port`` of a Hive Metastore, several separated by commas; or a SQLAlchemy URL of SQLite
            (``sqlite:////absolute/path/file.db``), or the path of the file; or one of PostgreSQL
            (``postgresql+psycopg://user@host:5432/database``).
        settings: The session's settings.
        warehouse: Directory of the database ``default``, for a store that is created.

    Raises:
        UnsupportedError: When the URL is of another kind of store, or what speaks to that kind is not installed.
        MetastoreError: When the store cannot be opened, is no metastore, or is one of a newer version.
    """
    if is_hive_metastore(url):
        try:
            from acidsql.metastore.hive import HiveMetastore
        except ImportError as e:
            raise UnsupportedError(
                f"A Hive Metastore needs packages that are not installed: {e.name}", hint="pip install 'acidsql[hive]'"
            ) from e
        return HiveMetastore(url, settings)
    # SQLAlchemy is loaded only where a store is opened
    from acidsql.metastore.embedded import EmbeddedMetastore

    return EmbeddedMetastore(url, settings, warehouse)
