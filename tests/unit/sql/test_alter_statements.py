"""What the parser puts into the dataclasses of ALTER TABLE, SHOW COMPACTIONS and ABORT."""

from __future__ import annotations

from dataclasses import fields

import pytest

from acidsql.sql.statements import (
    AbortCompactions,
    AbortTransactions,
    AddColumns,
    AddConstraint,
    AddPartitions,
    ChangeColumn,
    Compact,
    DropColumns,
    DropConstraint,
    DropPartitions,
    Name,
    PartitionSpec,
    Passthrough,
    RenamePartition,
    RenameTable,
    ReplaceColumns,
    SetLocation,
    SetProperties,
    ShowCompactions,
    Span,
    UnsetProperties,
)
from tests.unit.sql.parsed import parse, text_of


def spec_of(spec: PartitionSpec | None) -> dict[str, str | None]:
    assert spec is not None
    return {key.text: None if value is None else value.text for key, value in spec.keys}


# --- COMPACT ---------------------------------------------------------------------------------------------------------


def test_compact_with_every_clause() -> None:
    found = parse(
        Compact,
        """ALTER TABLE hr.emp PARTITION (p = 1, q = 'a') COMPACT 'Rebalance' CLUSTERED INTO 4 BUCKETS AND WAIT
           POOL 'night' WITH OVERWRITE TBLPROPERTIES ('a.b' = 'c', d = 5) ORDER BY x DESC, f(y, 1) WHERE p > 1 AND q""",
    )
    assert (found.table.database, found.table.table, found.type.value, found.wait) == ("hr", "emp", "Rebalance", True)
    assert spec_of(found.partition) == {"p": "1", "q": "'a'"}
    assert found.buckets is not None
    assert found.buckets.value == 4
    assert found.pool is not None
    assert (found.pool.value, found.properties) == ("night", {"a.b": "c", "d": "5"})
    assert text_of(found.order_by) == "ORDER BY x DESC, f(y, 1)"
    assert text_of(found.where) == "p > 1 AND q"
    assert found.type.span.text == "'Rebalance'"


def test_compact_alone_says_nothing_more() -> None:
    found = parse(Compact, "ALTER TABLE emp COMPACT 'minor'")
    assert (found.partition, found.buckets, found.wait, found.pool) == (None, None, False, None)
    assert (found.properties, found.order_by, found.where) == ({}, None, None)


# --- SHOW COMPACTIONS and ABORT --------------------------------------------------------------------------------------


def test_show_compactions_of_a_partition_with_every_clause() -> None:
    found = parse(
        ShowCompactions,
        "SHOW COMPACTIONS emp PARTITION (p = 1) POOL 'n' TYPE 'major' STATUS 'did not initiate'"
        " ORDER BY tabname, starttime DESC, `type` ASC LIMIT 3",
    )
    assert found.table is not None
    assert spec_of(found.partition) == {"p": "1"}
    assert [t.value for t in (found.pool, found.type, found.status) if t] == ["n", "major", "did not initiate"]
    assert [(k.column.text, k.descending) for k in found.order_by] == [
        ("tabname", False),
        ("starttime", True),
        ("type", False),
    ]
    assert (found.limit, found.id, found.database) == (3, None, None)


@pytest.mark.parametrize(
    ("text", "id", "database", "table"),
    [
        ("SHOW COMPACTIONS", None, None, None),
        ("SHOW COMPACTIONS COMPACTIONID = 12", 12, None, None),
        ("SHOW COMPACTIONS DATABASE hr LIMIT 1", None, "hr", None),
        ("SHOW COMPACTIONS schema.emp", None, None, "emp"),
        ("SHOW COMPACTIONS compactionid", None, None, "compactionid"),
        ("SHOW COMPACTIONS pool POOL 'x'", None, None, "pool"),
        ("SHOW COMPACTIONS POOL 'x'", None, None, None),
        ("SHOW COMPACTIONS type", None, None, "type"),
        ("SHOW COMPACTIONS limit LIMIT 5", None, None, "limit"),
        ("SHOW COMPACTIONS LIMIT 5", None, None, None),
        ("SHOW COMPACTIONS order ORDER BY type", None, None, "order"),
        ("SHOW COMPACTIONS ORDER BY type", None, None, None),
    ],
)
def test_what_show_compactions_is_about(text: str, id: int | None, database: str | None, table: str | None) -> None:
    found = parse(ShowCompactions, text)
    assert found.id == id
    assert (found.database.text if found.database else None) == database
    assert (found.table.table if found.table else None) == table


def test_aborts_know_their_ids_and_where_they_stand() -> None:
    found = parse(AbortTransactions, "ABORT TRANSACTIONS 7 12")
    assert [(n.value, n.span.start) for n in found.ids] == [(7, 19), (12, 21)]
    assert [n.value for n in parse(AbortCompactions, "ABORT COMPACTIONS 3").ids] == [3]


# --- properties and columns ------------------------------------------------------------------------------------------


def test_properties_know_their_places() -> None:
    found = parse(SetProperties, "ALTER TABLE emp SET TBLPROPERTIES ('a' = 'x', b.c = TRUE)")
    assert [(k.text, k.span.text, v) for k, v in found.properties] == [("a", "'a'", "x"), ("b.c", "b.c", "true")]
    unset = parse(UnsetProperties, "ALTER TABLE emp UNSET TBLPROPERTIES IF EXISTS (b.c, 'd')")
    assert ([k.text for k in unset.keys], unset.if_exists) == (["b.c", "d"], True)
    assert not parse(UnsetProperties, "ALTER TABLE emp UNSET TBLPROPERTIES ('d')").if_exists


@pytest.mark.parametrize(
    "text", ["ADD COLUMNS (a int COMMENT 'x', b map<string, int>)", "ADD COLUMN a int COMMENT 'x', b map<string, int>"]
)
def test_columns_with_and_without_brackets(text: str) -> None:
    found = parse(AddColumns, f"ALTER TABLE emp {text}")
    assert [(c.name.text, c.type.text, c.comment) for c in found.columns] == [
        ("a", "int", "x"),
        ("b", "map<string, int>", None),
    ]


@pytest.mark.parametrize("end", ["", " CASCADE", " restrict"])
def test_columns_of_hive_may_end_in_cascade_or_restrict(end: str) -> None:
    assert len(parse(AddColumns, f"ALTER TABLE emp ADD COLUMNS (a int){end}").columns) == 1


# --- partitions ------------------------------------------------------------------------------------------------------


def test_partitions_to_add() -> None:
    found = parse(
        AddPartitions,
        "ALTER TABLE emp ADD IF NOT EXISTS PARTITION (p = 1, q = upper('a')) LOCATION '/x' PARTITION (p = 2, q = NULL)",
    )
    assert found.if_not_exists
    assert [spec_of(n.spec) for n in found.partitions] == [{"p": "1", "q": "upper('a')"}, {"p": "2", "q": "NULL"}]
    assert [n.location.value if n.location else None for n in found.partitions] == ["/x", None]
    assert found.partitions[1].spec.span.text == "PARTITION (p = 2, q = NULL)"


def test_partitions_to_drop() -> None:
    found = parse(DropPartitions, "ALTER TABLE emp DROP IF EXISTS PARTITION (p = 1), PARTITION (q == 'b') PURGE")
    assert (found.if_exists, found.purge) == (True, True)
    assert [spec_of(s) for s in found.partitions] == [{"p": "1"}, {"q": "'b'"}]
    plain = parse(DropPartitions, "ALTER TABLE emp DROP PARTITION (p = 1)")
    assert (plain.if_exists, plain.purge) == (False, False)


# --- what is left to Spark -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "later", "place"),
    [
        ("TRUNCATE TABLE emp COLUMNS (a)", "TRUNCATE TABLE … COLUMNS", "TRUNCATE"),
        ("ALTER TABLE emp REPLACE COLUMNS (s.f int)", "This form of ALTER TABLE … REPLACE COLUMNS", "REPLACE COLUMNS"),
        (
            "ALTER TABLE emp REPLACE COLUMNS (a int FIRST)",
            "This form of ALTER TABLE … REPLACE COLUMNS",
            "REPLACE COLUMNS",
        ),
        ("ALTER TABLE emp CHANGE s.f g int", "This form of ALTER TABLE … CHANGE", "CHANGE"),
        ("ALTER TABLE emp ALTER COLUMN a FIRST, b FIRST", "This form of ALTER TABLE … ALTER", "ALTER"),
        ("ALTER TABLE emp RENAME COLUMN s.f TO g", "This form of ALTER TABLE … RENAME COLUMN", "RENAME COLUMN"),
        ("ALTER TABLE emp DROP COLUMN a, s.f", "This form of ALTER TABLE … DROP COLUMN", "DROP COLUMN"),
        ("ALTER TABLE emp ADD COLUMN a int CHECK (a > 0)", "This form of ALTER TABLE … ADD COLUMN", "ADD COLUMN"),
        ("ALTER TABLE emp ADD COLUMNS (a int FIRST)", "This form of ALTER TABLE … ADD COLUMNS", "ADD COLUMNS"),
        ("ALTER TABLE emp ADD COLUMN s.f int", "This form of ALTER TABLE … ADD COLUMN", "ADD COLUMN"),
        (
            "ALTER TABLE emp PARTITION (p = 1) SET SERDEPROPERTIES ('a' = 'b')",
            "This form of ALTER TABLE … SET SERDEPROPERTIES",
            "SET SERDEPROPERTIES",
        ),
    ],
)
def test_what_acid_tables_do_not_have_yet_is_named_with_its_place(text: str, later: str, place: str) -> None:
    found = parse(Passthrough, text)
    assert found.later is not None
    assert (found.later.text, found.later.span.text) == (later, place)
    assert "emp" in {n.table for n in found.names}
    assert found.span.text == text


# --- names, places, columns ------------------------------------------------------------------------------------------


def test_tables_and_partitions_are_renamed_and_moved() -> None:
    renamed = parse(RenameTable, "ALTER TABLE hr.emp RENAME TO x.people")
    assert (renamed.new_name.database, renamed.new_name.table) == ("x", "people")
    moved = parse(SetLocation, "ALTER TABLE emp SET LOCATION '/x'")
    assert (moved.location.value, moved.partition) == ("/x", None)
    moved = parse(SetLocation, "ALTER TABLE emp PARTITION (p = 1) SET LOCATION 'hdfs://x/y'")
    assert (moved.location.value, spec_of(moved.partition)) == ("hdfs://x/y", {"p": "1"})
    partition = parse(RenamePartition, "ALTER TABLE emp PARTITION (p = 1, q = 2) RENAME TO PARTITION (p = 3, q = 'b')")
    assert (spec_of(partition.partition), spec_of(partition.new_partition)) == (
        {"p": "1", "q": "2"},
        {"p": "3", "q": "'b'"},
    )


@pytest.mark.parametrize("end", ["", " CASCADE", " RESTRICT"])
def test_all_columns_are_replaced(end: str) -> None:
    found = parse(ReplaceColumns, f"ALTER TABLE emp REPLACE COLUMNS (a int COMMENT 'x', b map<string, int>){end}")
    assert [(c.name.text, c.type.text, c.comment) for c in found.columns] == [
        ("a", "int", "x"),
        ("b", "map<string, int>", None),
    ]


def changed(text: str) -> dict[str, object]:
    """What the statement says of the column, without what it leaves as it is."""
    statement = parse(ChangeColumn, f"ALTER TABLE emp {text}")
    found: dict[str, object] = {}
    for part in fields(statement):
        value = getattr(statement, part.name)
        if part.name not in ("span", "table", "constraints") and value != part.default:
            is_piece = isinstance(value, Name | Span)
            found[part.name] = value.text if is_piece else value
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CHANGE a b bigint", {"column": "a", "new_name": "b", "type": "bigint"}),
        (
            "CHANGE COLUMN a a bigint CASCADE",
            {"column": "a", "new_name": "a", "type": "bigint", "cascade": "CASCADE"},
        ),
        (
            "CHANGE COLUMN a b decimal(10, 2) COMMENT 'x' AFTER c RESTRICT",
            {"column": "a", "new_name": "b", "type": "decimal(10, 2)", "comment": "x", "after": "c"},
        ),
        ("CHANGE a b int FIRST", {"column": "a", "new_name": "b", "type": "int", "first": True}),
        ("CHANGE a b int NOT NULL", {"column": "a", "new_name": "b", "type": "int", "not_null": True}),
        ("CHANGE a b int DEFAULT 1", {"column": "a", "new_name": "b", "type": "int", "default": "1"}),
        ("CHANGE column b int", {"column": "column", "new_name": "b", "type": "int"}),
        ("CHANGE kind type string", {"column": "kind", "new_name": "type", "type": "string"}),
        ("CHANGE a comment string", {"column": "a", "new_name": "comment", "type": "string"}),
        ("CHANGE COLUMN a COMMENT 'x'", {"column": "a", "comment": "x"}),
        ("CHANGE COLUMN a FIRST", {"column": "a", "first": True}),
        ("CHANGE COLUMN a SET NOT NULL", {"column": "a", "not_null": True}),
        (
            "ALTER COLUMN a TYPE timestamp with local time zone",
            {"column": "a", "type": "timestamp with local time zone"},
        ),
        ("ALTER a TYPE int", {"column": "a", "type": "int"}),
        ("ALTER column TYPE decimal(3, 2)", {"column": "column", "type": "decimal(3, 2)"}),
        ("ALTER COLUMN a COMMENT 'it''s'", {"column": "a", "comment": "it's"}),
        ("ALTER COLUMN a COMMENT ''", {"column": "a", "comment": ""}),
        ("ALTER COLUMN a SET NOT NULL", {"column": "a", "not_null": True}),
        ("ALTER COLUMN a DROP NOT NULL", {"column": "a", "not_null": False}),
        ("ALTER COLUMN a SET DEFAULT f(1, 2)", {"column": "a", "default": "f(1, 2)"}),
        ("ALTER COLUMN a DROP DEFAULT", {"column": "a", "drop_default": True}),
        ("ALTER COLUMN a FIRST", {"column": "a", "first": True}),
        ("ALTER COLUMN a AFTER `b c`", {"column": "a", "after": "b c"}),
        ("RENAME COLUMN a TO `b c`", {"column": "a", "new_name": "b c"}),
    ],
)
def test_one_column_is_changed(text: str, expected: dict[str, object]) -> None:
    assert changed(text) == expected


def test_hives_change_declares_constraints_by_name() -> None:
    found = parse(
        ChangeColumn,
        "ALTER TABLE emp CHANGE a b int CONSTRAINT `The N` NOT NULL ENABLE NOVALIDATE CONSTRAINT d DEFAULT 1 + 2 RELY"
        " CHECK (b > 0) DISABLE COMMENT 'x'",
    )
    assert (found.not_null, text_of(found.default), found.comment) == (True, "1 + 2", "x")
    told = [(c.kind, c.given_name, c.is_enforced, c.enabled, c.validate, c.rely) for c in found.constraints]
    assert told == [
        ("NOT NULL", "the n", True, True, False, None),
        ("DEFAULT", "d", True, None, None, True),
        ("CHECK", None, False, False, None, None),
    ]
    assert [c.columns[0].text for c in found.constraints] == ["b", "b", "b"]


def test_a_constraint_of_a_table_is_added() -> None:
    found = parse(
        AddConstraint,
        "ALTER TABLE hr.emp ADD CONSTRAINT fk FOREIGN KEY (a, `b c`) REFERENCES u.t (x, y) DISABLE NOVALIDATE NORELY",
    ).constraint
    assert (found.kind, found.given_name, [c.text for c in found.columns]) == ("FOREIGN KEY", "fk", ["a", "b c"])
    assert found.parent is not None
    assert (found.parent.table, [c.text for c in found.parent_columns]) == ("t", ["x", "y"])
    assert (found.enabled, found.validate, found.rely, found.is_enforced) == (False, False, False, False)
    assert found.span.text == "CONSTRAINT fk FOREIGN KEY (a, `b c`) REFERENCES u.t (x, y)"
    check = parse(AddConstraint, "ALTER TABLE emp ADD CHECK ( f(a) > 0 )").constraint
    assert (text_of(check.expression), check.given_name, check.is_enforced) == ("f(a) > 0", None, True)


@pytest.mark.parametrize(("end", "if_exists"), [("c", False), ("IF EXISTS c", True), ("c RESTRICT", False)])
def test_a_constraint_is_dropped_by_its_name(end: str, if_exists: bool) -> None:
    found = parse(DropConstraint, f"ALTER TABLE emp DROP CONSTRAINT {end}")
    assert (found.name.text, found.if_exists) == ("c", if_exists)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (AddColumns, "ADD COLUMNS (a int)"),
        (ReplaceColumns, "REPLACE COLUMNS (a int)"),
        (ChangeColumn, "CHANGE a b int"),
    ],
)
def test_columns_of_one_partition(kind: type[AddColumns | ReplaceColumns | ChangeColumn], text: str) -> None:
    found = parse(kind, f"ALTER TABLE emp PARTITION (p = 1) {text}")
    assert spec_of(found.partition) == {"p": "1"}


@pytest.mark.parametrize(
    ("text", "names", "if_exists"),
    [
        ("DROP COLUMN a", ["a"], False),
        ("DROP COLUMNS a, b", ["a", "b"], False),
        ("DROP COLUMN IF EXISTS (a, `b c`)", ["a", "b c"], True),
        ("DROP COLUMNS (a)", ["a"], False),
    ],
)
def test_columns_are_dropped(text: str, names: list[str], if_exists: bool) -> None:
    found = parse(DropColumns, f"ALTER TABLE emp {text}")
    assert ([c.text for c in found.columns], found.if_exists) == (names, if_exists)
