"""Constraints between the metastore's structs and :class:`~acidsql.metastore.model.Constraint`.

Hive keeps one struct for each column of a key. NOT NULL, DEFAULT and CHECK that are enabled are enforced; every other
constraint is only declared.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hive_metastore import ttypes

from acidsql.metastore.hive.translate import CATALOG
from acidsql.metastore.model import Column, Constraint, ConstraintKind, Table

_NAMES = {
    ConstraintKind.PRIMARY_KEY: "pk_name",
    ConstraintKind.UNIQUE: "uk_name",
    ConstraintKind.FOREIGN_KEY: "fk_name",
    ConstraintKind.NOT_NULL: "nn_name",
    ConstraintKind.DEFAULT: "dc_name",
    ConstraintKind.CHECK: "dc_name",
}
"""The field that holds the name."""

LISTS = {
    ConstraintKind.PRIMARY_KEY: "primaryKeys",
    ConstraintKind.UNIQUE: "uniqueConstraints",
    ConstraintKind.FOREIGN_KEY: "foreignKeys",
    ConstraintKind.NOT_NULL: "notNullConstraints",
    ConstraintKind.DEFAULT: "defaultConstraints",
    ConstraintKind.CHECK: "checkConstraints",
}
"""The field of ``SQLAllTableConstraints`` and ``CreateTableRequest`` for each kind; a primary key comes before the
foreign keys that refer to it."""

REQUESTS = {
    ConstraintKind.PRIMARY_KEY: ("add_primary_key", ttypes.AddPrimaryKeyRequest),
    ConstraintKind.UNIQUE: ("add_unique_constraint", ttypes.AddUniqueConstraintRequest),
    ConstraintKind.FOREIGN_KEY: ("add_foreign_key", ttypes.AddForeignKeyRequest),
    ConstraintKind.NOT_NULL: ("add_not_null_constraint", ttypes.AddNotNullConstraintRequest),
    ConstraintKind.DEFAULT: ("add_default_constraint", ttypes.AddDefaultConstraintRequest),
    ConstraintKind.CHECK: ("add_check_constraint", ttypes.AddCheckConstraintRequest),
}
"""The call that adds constraints of a kind, and its request: a list of structs."""

_ENFORCED = (ConstraintKind.NOT_NULL, ConstraintKind.DEFAULT, ConstraintKind.CHECK)


# --- from Thrift -----------------------------------------------------------------------------------------------------


def with_constraints(table: Table, found: Any) -> Table:
    """The table with its constraints, which come as ``SQLAllTableConstraints``."""
    everything = [c for kind, name in LISTS.items() for c in _constraints(kind, getattr(found, name) or ())]
    of_columns = [c for c in everything if c.enforced and c.kind is not ConstraintKind.CHECK]
    not_null = {c.columns[0]: c for c in of_columns if c.kind is ConstraintKind.NOT_NULL}
    defaults = {c.columns[0]: c for c in of_columns if c.kind is ConstraintKind.DEFAULT}
    checks = sorted((c for c in everything if c.enforced and c not in of_columns), key=lambda c: c.name or "")

    def declared(column: Column) -> Column:
        if column.name in not_null:
            column = replace(column, not_null=True, not_null_name=not_null[column.name].name)
        if column.name in defaults:
            default = defaults[column.name]
            column = replace(column, default=default.expression, default_name=default.name)
        return column

    columns, keys = (tuple(declared(c) for c in some) for some in (table.columns, table.partition_keys))
    table = replace(table, columns=columns, partition_keys=keys)
    return table.constrained([*(c for c in everything if not c.enforced), *checks])


def _constraints(kind: ConstraintKind, found: Iterable[Any]) -> list[Constraint]:
    by_name: dict[str | int, list[Any]] = {}
    for n, one in enumerate(found):
        by_name.setdefault(getattr(one, _NAMES[kind]) or n, []).append(one)
    return [_constraint(kind, parts) for parts in by_name.values()]


def _constraint(kind: ConstraintKind, parts: Sequence[Any]) -> Constraint:
    """A constraint from its structs, one for each column."""
    parts = sorted(parts, key=lambda p: getattr(p, "key_seq", None) or 0)
    first = parts[0]
    enforced = kind in _ENFORCED and first.enable_cstr is not False
    known: dict[str, Any] = {"enforced": enforced, "rely": enforced or bool(first.rely_cstr)}
    name = getattr(first, _NAMES[kind])
    if kind is ConstraintKind.FOREIGN_KEY:
        known["parent"] = f"{first.pktable_db}.{first.pktable_name}".lower()
        known["parent_columns"] = tuple(p.pkcolumn_name.lower() for p in parts)
        return Constraint(kind, tuple(p.fkcolumn_name.lower() for p in parts), name, **known)
    if kind is ConstraintKind.CHECK:
        return Constraint(kind, (), name, expression=first.check_expression, **known)
    if kind is ConstraintKind.DEFAULT:
        known["expression"] = first.default_value
    return Constraint(kind, tuple(p.column_name.lower() for p in parts), name, **known)


# --- to Thrift -------------------------------------------------------------------------------------------------------


def to_thrift(table: Table, constraints: Iterable[Constraint]) -> Mapping[ConstraintKind, list[Any]]:
    """The structs of some constraints of a table, by kind; only kinds of which there are some.

    CHECK conditions get names in their order: it is the order in which they are read back.
    """
    prefix = f"cc_{uuid.uuid4().hex[:16]}"
    made: dict[ConstraintKind, list[Any]] = {}
    for constraint in constraints:
        structs = made.setdefault(constraint.kind, [])
        if constraint.name is None and constraint.kind is ConstraintKind.CHECK:
            constraint = replace(constraint, name=f"{prefix}_{len(structs):03d}")
        if constraint.name is None and constraint.kind is ConstraintKind.DEFAULT:
            constraint = replace(constraint, name=f"dc_{uuid.uuid4().hex[:16]}")  # the server names all others itself
        structs += _structs(table, constraint)
    return {kind: made[kind] for kind in LISTS if kind in made}


def _structs(table: Table, constraint: Constraint) -> list[Any]:
    kind, columns = constraint.kind, constraint.columns
    common: dict[str, Any] = {
        "catName": CATALOG,
        "enable_cstr": constraint.enforced,
        "validate_cstr": False,
        "rely_cstr": constraint.rely,
        _NAMES[kind]: constraint.name,
    }
    owner = {"table_db": table.database, "table_name": table.name}
    if kind is ConstraintKind.CHECK:
        text = constraint.expression
        return [ttypes.SQLCheckConstraint(column_name=None, check_expression=text, **owner, **common)]
    if kind is ConstraintKind.FOREIGN_KEY:
        database, _, parent = (constraint.parent or "").partition(".")
        tables = {"fktable_db": table.database, "fktable_name": table.name}
        tables |= {"pktable_db": database, "pktable_name": parent}
        return [
            ttypes.SQLForeignKey(key_seq=n, fkcolumn_name=own, pkcolumn_name=other, **tables, **common)
            for n, (own, other) in enumerate(zip(columns, constraint.parent_columns, strict=True), 1)
        ]
    if kind is ConstraintKind.DEFAULT:
        text = constraint.expression
        return [ttypes.SQLDefaultConstraint(column_name=columns[0], default_value=text, **owner, **common)]
    if kind is ConstraintKind.NOT_NULL:
        return [ttypes.SQLNotNullConstraint(column_name=columns[0], **owner, **common)]
    struct = ttypes.SQLPrimaryKey if kind is ConstraintKind.PRIMARY_KEY else ttypes.SQLUniqueConstraint
    return [struct(column_name=name, key_seq=n, **owner, **common) for n, name in enumerate(columns, 1)]


# --- changes ---------------------------------------------------------------------------------------------------------


def difference(found: Table, wanted: Table) -> tuple[list[Constraint], list[Constraint]]:
    """The constraints that have to go, and those that have to come. One that was given no name may have any."""
    left, new = list(found.constraints), []
    for constraint in wanted.constraints:
        same = (c for c in left if c == constraint and constraint.name in (None, c.name))
        match = next(same, None)
        if match is None:
            new.append(constraint)
        else:
            left.remove(match)
    return left, new
