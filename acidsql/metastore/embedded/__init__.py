"""The embedded metastore: catalog and transactions in one SQL database, without a server.

Each call is one transaction of the database. The tables are Hive's, with Hive's column names.

``sqlite`` and ``store`` hold the database, ``schema`` its tables, ``client`` what all calls share, ``changes`` what
those share that change the catalog. The parts of the protocol: ``databases``, ``catalog``, ``renames``, ``statistics``,
``dropped_places``; ``txns``, ``aborts``, ``write_ids``, ``locks``, ``commit``, ``timeouts``; ``queue``,
``compaction_history``, ``cleaning``. ``metastore`` is their union.
Functions that take ``db`` are steps that several calls share.
"""

from __future__ import annotations

from acidsql.metastore.embedded.metastore import EmbeddedMetastore

__all__ = ["EmbeddedMetastore"]
