"""The embedded metastore: catalog and transactions in one SQL database, without a server.

:class:`~acidsql.metastore.embedded.metastore.EmbeddedMetastore` is the face; each of its calls is one transaction of
the database, made of the functions of the other modules. The tables are Hive's, with Hive's column names.
"""

from __future__ import annotations

from acidsql.metastore.embedded.metastore import EmbeddedMetastore

__all__ = ["EmbeddedMetastore"]
