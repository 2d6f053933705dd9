"""A real Hive Metastore as the store: its catalog, its transactions, its locks, its queue of compactions, over Thrift.

``connection`` finds a server and keeps connections, ``wire`` holds what the bindings lack, ``translate`` turns the
metastore's structs into the values of :mod:`acidsql.metastore.model` and back, ``client`` is what all calls share. The
parts of the protocol: ``catalog``, ``alterations``, ``new_tables``, ``statistics``; ``locks``, ``transactions`` (with
``seeds``); ``compactions``. ``metastore`` is their union; a part that needs another one derives from it.
The bindings are those that pyiceberg carries (package ``hive_metastore``); a Metastore 3.1 skips the fields that it
does not know, and calls that it lacks are replaced by its own.
"""

from acidsql.metastore.hive.metastore import HiveMetastore

__all__ = ["HiveMetastore"]
