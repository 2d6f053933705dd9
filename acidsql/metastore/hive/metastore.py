"""The protocol over Thrift: each call is a call of the Hive Metastore's own API."""

from __future__ import annotations

from acidsql.metastore.hive.alterations import HiveAlterations
from acidsql.metastore.hive.catalog import HiveCatalog
from acidsql.metastore.hive.compactions import HiveCompactions
from acidsql.metastore.hive.locks import HiveLocks
from acidsql.metastore.hive.new_tables import HiveNewTables
from acidsql.metastore.hive.statistics import HiveStatistics
from acidsql.metastore.hive.transactions import HiveTransactions


class HiveMetastore(
    HiveNewTables, HiveAlterations, HiveTransactions, HiveStatistics, HiveCatalog, HiveLocks, HiveCompactions
):
    """:class:`~acidsql.metastore.protocol.Metastore` of a running Hive Metastore, version 3.1 or 4.

    What a method does and raises stands in the protocol. Besides that, each raises MetastoreError where no server
    answers or the metastore refuses. A call whose connection is lost is made again on another one (Hive's client does
    the same). Each of them bears that: an open transaction whose id got lost ends by its time-out, everything else is
    the same when done twice.

    The metastore itself times transactions out, prunes them and forgets components, so those calls do nothing here.

    Args:
        uris: ``thrift://host:port``, several separated by commas.
        settings: Time-outs, retries and ``hive.txn.xlock.write`` are looked up at each call.

    Raises:
        MetastoreError: When no server answers.
        UnsupportedError: When its version is below 3: it knows no write ids.
    """
