"""What Hive puts into its metastore and acidsql reads: views, CHECK constraints, tables that are not transactional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acidsql.metastore.model import Column
from acidsql.metastore.protocol import Metastore
from tests.metastore.situations import home, table

pytestmark = pytest.mark.needs("Hive's own tables")

Hive = Callable[[Callable[[Any], Any]], Any]


@pytest.fixture
def hive(store: Metastore) -> Hive:
    """Makes calls of the metastore's own API."""
    return store._call  # type: ignore[attr-defined,no-any-return]


def storage(location: str | None) -> Any:
    from hive_metastore import ttypes

    return ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("A", "int", "the number")],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def test_a_view_is_read_with_its_query(store: Metastore, hive: Hive) -> None:
    from hive_metastore import ttypes

    store.create_table(table())
    view = ttypes.Table(
        dbName="default",
        tableName="v",
        owner="bob",
        sd=storage(None),
        partitionKeys=[],
        parameters={"comment": "numbers"},
        tableType="VIRTUAL_VIEW",
        viewOriginalText="SELECT a FROM t",
        viewExpandedText="SELECT `t`.`a` FROM `default`.`t`",
    )
    hive(lambda client: client.create_table(view))
    found = store.get_table("default", "v")
    assert (found.table_type, found.view_text) == ("VIRTUAL_VIEW", "SELECT `t`.`a` FROM `default`.`t`")
    assert (found.comment, found.owner, found.location) == ("numbers", "bob", "")
    assert found.columns == (Column("a", "int", "the number"),)
    assert store.list_tables("default") == ["t", "v"]
    store.drop_table("default", "v")
    assert store.list_tables("default") == ["t"]


def test_check_constraints_are_read_where_they_are_enabled(store: Metastore, hive: Hive) -> None:
    from hive_metastore import ttypes

    store.create_table(table())
    for number, enabled in enumerate((True, False)):
        check = ttypes.SQLCheckConstraint(
            "hive", "default", "t", "a", f"a > {number}", f"check_{number}", enabled, False, True
        )
        hive(lambda client, c=check: client.add_check_constraint(ttypes.AddCheckConstraintRequest([c])))
    assert store.get_table("default", "t").checks == ("a > 0",)


def test_not_null_that_is_only_declared_binds_nobody(store: Metastore, hive: Hive) -> None:
    from hive_metastore import ttypes

    store.create_table(table())
    declared = ttypes.SQLNotNullConstraint("hive", "default", "t", "a", "nn", False, False, True)
    hive(lambda client: client.add_not_null_constraint(ttypes.AddNotNullConstraintRequest([declared])))
    assert store.get_table("default", "t").columns == (Column("a", "int"),)


def test_a_table_that_is_not_transactional_is_read_as_one(store: Metastore, hive: Hive) -> None:
    from hive_metastore import ttypes

    plain = ttypes.Table(
        dbName="default",
        tableName="plain",
        sd=storage(f"{home()}/plain"),
        partitionKeys=[],
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )
    hive(lambda client: client.create_table(plain))
    found = store.get_table("default", "plain")
    assert not found.is_transactional
    assert (found.table_type, found.columns) == ("EXTERNAL_TABLE", (Column("a", "int", "the number"),))
