"""What a Hive Metastore is asked for when tables and partitions change, in each version of Hive."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hive_metastore import ttypes

from acidsql.errors import AlreadyExists, PartitionNotFound, TableNotFound
from acidsql.metastore.hive import translate
from acidsql.metastore.hive.constraints import to_thrift
from acidsql.metastore.model import Column, Constraint, ConstraintKind, Partition, Table
from tests.metastore.situations import check
from tests.unit.metastore.conftest import Connect, Serve
from tests.unit.metastore.scripted import Fault, ScriptedMetastore

TABLE = Table(
    "d",
    "t",
    "file:/w/d.db/t",
    (Column("a", "int", not_null=True), Column("b", "string", default="'x'")),
    (Column("p", "int"),),
    {"transactional": "true"},
    owner="ann",
    created_at=7,
)
PLACE = Partition("d", "t", ("1",), "file:/w/d.db/t/p=1")
DATABASE = ttypes.Database(name="d", locationUri="file:/w/d.db")


class Catalog:
    """One table, its partitions and its constraints, as a Hive Metastore of either version tells of them."""

    def __init__(self, table: Table = TABLE) -> None:
        self.tables = {table.name: translate.table_to_thrift(table)}
        self.partitions = {"p=1": translate.partition_to_thrift(PLACE, self.tables[table.name])}
        structs = to_thrift(table, table.constraints)
        self.not_null = structs[ConstraintKind.NOT_NULL]
        for number, one in enumerate(self.not_null):
            one.nn_name = f"nn{number}"
        self.defaults = structs[ConstraintKind.DEFAULT]
        self.checks: list[Any] = []
        self.keys: dict[str, list[Any]] = {"primary": [], "unique": [], "foreign": []}
        self.contexts: list[Any] = []
        self.dropped: list[str] = []

    @property
    def answers(self) -> Mapping[str, Any]:
        return {
            "get_database": DATABASE,
            "get_config_value": "file:/w",
            "get_table_req": lambda request: ttypes.GetTableResult(table=self.get(request.tblName)),
            "get_all_table_constraints": lambda request: ttypes.AllTableConstraintsResponse(
                ttypes.SQLAllTableConstraints(
                    primaryKeys=self.keys["primary"],
                    foreignKeys=self.keys["foreign"],
                    uniqueConstraints=self.keys["unique"],
                    notNullConstraints=self.not_null,
                    defaultConstraints=self.defaults,
                    checkConstraints=self.checks,
                )
            ),
            "get_primary_keys": lambda request: ttypes.PrimaryKeysResponse(self.keys["primary"]),
            "get_foreign_keys": lambda request: ttypes.ForeignKeysResponse(
                self.keys["foreign"] if request.foreign_tbl_name in self.tables else []
            ),
            "get_unique_constraints": lambda request: ttypes.UniqueConstraintsResponse(self.keys["unique"]),
            "get_not_null_constraints": lambda request: ttypes.NotNullConstraintsResponse(self.not_null),
            "get_default_constraints": lambda request: ttypes.DefaultConstraintsResponse(self.defaults),
            "get_check_constraints": lambda request: ttypes.CheckConstraintsResponse(self.checks),
            "alter_table_req": lambda r: (
                self.alter(r.tableName, r.table, r.environmentContext) or ttypes.AlterTableResponse()
            ),
            "alter_table": lambda database, name, table: self.alter(name, table, None),
            "alter_table_with_environment_context": lambda d, name, table, context: self.alter(name, table, context),
            "get_partitions_by_names": lambda database, table, names: [
                self.partitions[n] for n in names if n in self.partitions
            ],
            "rename_partition": lambda database, table, values, partition: self.rename(values, partition),
            "rename_partition_req": lambda r: self.rename(r.partVals, r.newPart),
            "alter_partition": lambda database, table, partition: self.partitions.update(
                {f"p={partition.values[0]}": partition}
            ),
            "drop_constraint": lambda request: self.drop(request.constraintname),
            "add_not_null_constraint": lambda request: self.not_null.extend(request.notNullConstraintCols),
            "add_default_constraint": lambda request: self.defaults.extend(request.defaultConstraintCols),
            "add_check_constraint": lambda request: self.checks.extend(request.checkConstraintCols),
            "add_primary_key": lambda request: self.keys["primary"].extend(request.primaryKeyCols),
            "add_foreign_key": lambda request: self.keys["foreign"].extend(request.foreignKeyCols),
            "add_unique_constraint": lambda request: self.keys["unique"].extend(request.uniqueConstraintCols),
        }

    def get(self, name: str) -> Any:
        if name not in self.tables:
            raise ttypes.NoSuchObjectException(f"hive.d.{name} table not found")
        return deepcopy(self.tables[name])

    def alter(self, name: str, table: Any, context: Any) -> Any:
        if name not in self.tables:
            raise ttypes.InvalidOperationException(f"table hive.d.{name} doesn't exist")
        del self.tables[name]
        self.tables[table.tableName] = table
        self.contexts.append(context and context.properties)
        return ttypes.AlterTableResponse()

    def rename(self, values: list[str], partition: Any) -> Any:
        if f"p={values[0]}" not in self.partitions:
            raise ttypes.InvalidOperationException("Unable to rename partition because old partition does not exist")
        del self.partitions[f"p={values[0]}"]
        self.partitions[f"p={partition.values[0]}"] = partition
        return ttypes.RenamePartitionResponse()

    def drop(self, name: str) -> None:
        self.dropped.append(name)
        self.not_null = [c for c in self.not_null if c.nn_name != name]
        self.defaults = [c for c in self.defaults if c.dc_name != name]
        self.checks = [c for c in self.checks if c.dc_name != name]
        fields = {"primary": "pk_name", "unique": "uk_name", "foreign": "fk_name"}
        self.keys = {k: [c for c in found if getattr(c, fields[k]) != name] for k, found in self.keys.items()}


@pytest.fixture(params=["4.0.1", "3.1.3"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def serving(serve: Serve, catalog: Catalog, version: str) -> ScriptedMetastore:
    return serve(**{**catalog.answers, "getVersion": version})


class TestColumns:
    def test_go_to_all_partitions_where_they_change(self, serve: Serve, connect: Connect, version: str) -> None:
        catalog = Catalog()
        store = connect(serving(serve, catalog, version))
        store.alter_table(replace(TABLE, columns=(*TABLE.columns, Column("c", "date"))))
        store.alter_table(replace(store.get_table("d", "t"), comment="new"))
        assert catalog.contexts == [{"CASCADE": "true"}, None]

    def test_keep_what_they_declare(self, serve: Serve, connect: Connect, version: str) -> None:
        catalog = Catalog()
        store = connect(serving(serve, catalog, version))
        store.alter_table(replace(TABLE, comment="new"))
        assert catalog.dropped == []
        assert store.get_table("d", "t").columns == TABLE.columns

    def test_declare_what_they_are_told_to(self, serve: Serve, connect: Connect, version: str) -> None:
        catalog = Catalog()
        store = connect(serving(serve, catalog, version))
        columns = (Column("a", "int", default="5"), Column("b", "string", default="'y'", not_null=True))
        store.alter_table(replace(TABLE, columns=columns, table_constraints=(check("a > 0"),)))
        found = store.get_table("d", "t")
        assert (found.columns, found.checks) == (columns, ("a > 0",))
        assert "nn0" in catalog.dropped

    def test_get_back_what_hive_31_forgets(self, serve: Serve, connect: Connect) -> None:
        """Its ``ALTER TABLE`` keeps no constraints where columns change."""
        catalog = Catalog()
        catalog.not_null, catalog.defaults = [], []
        store = connect(serving(serve, catalog, "3.1.3"))
        store.alter_table(replace(TABLE, columns=(*TABLE.columns, Column("c", "date"))))
        assert store.get_table("d", "t").columns[:2] == TABLE.columns


class TestConstraints:
    def test_are_added_and_dropped_by_name_and_no_others_are_touched(
        self, serve: Serve, connect: Connect, version: str
    ) -> None:
        catalog = Catalog()
        store = connect(serving(serve, catalog, version))
        before = store.get_table("d", "t")
        kinds = ConstraintKind
        declared = (
            Constraint(kinds.PRIMARY_KEY, ("a", "b"), "pk", rely=True),
            Constraint(kinds.UNIQUE, ("b",), "uk"),
            Constraint(kinds.FOREIGN_KEY, ("b", "a"), "fk", parent="d.t", parent_columns=("a", "b")),
            Constraint(kinds.NOT_NULL, ("b",), "nn"),
        )
        everything = (*declared, check("a > 0", "positive"))
        store.alter_table(before.constrained(everything))
        found = store.get_table("d", "t")
        assert found.table_constraints == everything
        assert [c.name for c in found.table_constraints] == ["pk", "uk", "fk", "nn", "positive"]
        assert [(c.column_name, c.key_seq) for c in catalog.keys["primary"]] == [("a", 1), ("b", 2)]
        assert {c.enable_cstr for found in catalog.keys.values() for c in found} == {False}
        assert catalog.dropped == []
        store.alter_table(found.constrained(declared[:1]))
        assert sorted(catalog.dropped) == ["fk", "nn", "positive", "uk"]
        assert store.get_table("d", "t").columns == before.columns
        assert store.get_table("d", "t").informational == declared[:1]

    def test_that_get_another_name_are_made_anew(self, serve: Serve, connect: Connect, version: str) -> None:
        catalog = Catalog()
        store = connect(serving(serve, catalog, version))
        store.alter_table(TABLE.constrained([check("a > 0")]))
        [made_up] = (c.name for c in store.get_table("d", "t").table_constraints)
        store.alter_table(TABLE.constrained([check("a > 0", "positive")]))
        assert [c.name for c in store.get_table("d", "t").table_constraints] == ["positive"]
        assert catalog.dropped == [made_up]


class TestRenaming:
    def test_leaves_the_place_to_the_metastore(self, serve: Serve, connect: Connect, version: str) -> None:
        catalog = Catalog()
        store = connect(serving(serve, catalog, version))
        store.rename_table("d", "t", replace(TABLE, name="u", location="file:/somewhere"))
        assert set(catalog.tables) == {"u"}
        assert catalog.tables["u"].sd.location == TABLE.location

    @pytest.mark.parametrize("fault", [Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.CUTS])
    def test_is_done_once_though_an_answer_is_lost(
        self, serve: Serve, connect: Connect, version: str, fault: Fault
    ) -> None:
        catalog = Catalog()
        server = serving(serve, catalog, version)
        store = connect(server)
        server.fail("alter_table_req" if version.startswith("4") else "alter_table", fault)
        store.rename_table("d", "t", replace(TABLE, name="u"))
        assert set(catalog.tables) == {"u"}
        server.fail("rename_partition_req" if version.startswith("4") else "rename_partition", fault)
        store.rename_partition("p=1", replace(PLACE, table="u", values=("2",)))
        assert set(catalog.partitions) == {"p=2"}

    def test_needs_the_old_name_and_not_the_new_one(self, serve: Serve, connect: Connect, version: str) -> None:
        catalog = Catalog()
        catalog.tables["taken"] = catalog.tables["t"]
        store = connect(serving(serve, catalog, version))
        with pytest.raises(TableNotFound):
            store.rename_table("d", "nope", replace(TABLE, name="u"))
        with pytest.raises(AlreadyExists):
            store.rename_table("d", "t", replace(TABLE, name="taken"))
        with pytest.raises(PartitionNotFound):
            store.rename_partition("p=9", replace(PLACE, values=("2",)))

    def test_of_a_partition_keeps_its_storage(self, serve: Serve, connect: Connect, version: str) -> None:
        catalog = Catalog()
        store = connect(serving(serve, catalog, version))
        store.rename_partition("p=1", replace(PLACE, values=("2",), location="file:/somewhere"))
        assert catalog.partitions["p=2"].sd.location == PLACE.location
        store.alter_partition(replace(PLACE, values=("2",), location="/somewhere"))
        assert catalog.partitions["p=2"].sd.location == "file:/somewhere"
