"""ALTER TABLE … ADD and DROP PARTITION, and resolution of PARTITION clauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from acidsql import fs
from acidsql.catalyst import CurrentValues
from acidsql.commands.ddl.alter import acid_table
from acidsql.commands.ddl.created_directory import created_directories
from acidsql.commands.ddl.locked import run_locked
from acidsql.commands.environment import Environment
from acidsql.commands.error_location import with_location
from acidsql.commands.transaction.former_rows import refuse_unknown_ids, with_rows
from acidsql.commands.transaction.write_transaction import WriteTransaction
from acidsql.compactor.dropped import free_places, remove_dropped
from acidsql.errors import AcidError, AlreadyExists, AnalysisError, PartitionNotFound, UnsupportedError
from acidsql.format.data_files import require_there
from acidsql.metastore.model import LockComponent, LockType, Partition, Table
from acidsql.partition_names import DEFAULT_PARTITION, partition_name
from acidsql.plan.pruning import partitions_where
from acidsql.plan.snapshot import new_partition, partition_names
from acidsql.plan.values import bounded_text, key_text, typed_key
from acidsql.settings import DROP_IGNORES, LOCK_PARTITIONS
from acidsql.sql.placed import padded
from acidsql.sql.statements import AddPartitions, DropPartitions, NewPartition, PartitionSpec, Span
from acidsql.types import parse_type

Values = Mapping[str, "str | None"]


def values_of(
    env: Environment, expressions: Sequence[Span], parameters: Mapping[str, Any], now: CurrentValues | None = None
) -> DataFrame:
    """One row with the values of some expressions, evaluated in the user's session, in columns ``v0…``; at the time
    ``now`` where the statement has other plans.

    The DataFrame belongs to acidsql's own session: further casts do not depend on the user's settings.
    """
    catalyst = env.catalyst
    named = [catalyst.alias(catalyst.parse_expression(padded(e)), f"v{i}") for i, e in enumerate(expressions)]
    row = catalyst.with_parameters(catalyst.project(named, catalyst.one_row()), parameters)
    return env.sessions.own.frame((now or env.current_values()).fixed(catalyst.analyzed(catalyst.frame(row))))


# --- PARTITION (…) ---------------------------------------------------------------------------------------------------


def spec_values(env: Environment, table: Table, spec: PartitionSpec, parameters: Mapping[str, Any]) -> Values:
    """The values of a PARTITION clause by key, as they appear in paths; None for NULL.

    Raises:
        AnalysisError: When the table has no such key, or a value does not fit its key's type (Hive 10248).
    """
    types = {k.name: parse_type(k.type) for k in table.partition_keys}
    names = [key.text.lower() for key, _ in spec.keys]
    texts: list[str] = []
    for (key, value), name in zip(spec.keys, names, strict=True):
        if value is None or names.count(name) > 1:
            problem = "is named twice" if value is not None else "has no value"
            raise with_location(key.span, AnalysisError(f"Partition key {name} {problem}"))
        given_at = len(texts) // 2
        texts.append(f"CAST(v{given_at} AS string)")
        type = types.get(name)
        if type is None:
            texts.append("''")
        else:
            typed = typed_key(f"v{given_at}", type, "try_cast")
            texts.append(key_text(bounded_text(typed, type), type))
    row = values_of(env, [v for _, v in spec.keys if v is not None], parameters).selectExpr(*texts).collect()[0]
    given = dict(zip(names, row[::2], strict=True))
    _check_keys(table, spec, given)
    values: dict[str, str | None] = {}
    for i, (key, _) in enumerate(spec.keys):
        raw, text = row[2 * i], row[2 * i + 1]
        if raw and raw != DEFAULT_PARTITION and text is None:
            message = (
                f"Cannot add partition column {names[i]}: {raw!r} cannot be converted to type"
                f" {next(k.type for k in table.partition_keys if k.name == names[i])}"
            )
            raise with_location(key.span, AnalysisError(message, code=10248))
        values[names[i]] = None if raw == DEFAULT_PARTITION else text
    return values


def _check_keys(table: Table, spec: PartitionSpec, given: Values) -> None:
    keys = [k.name for k in table.partition_keys]
    problem = None
    if not keys:
        problem = f"{table.full_name} table is not partitioned but partition spec exists: {shown(given)}"
    elif any(name not in keys for name in given):
        problem = f"{table.full_name}: Partition spec {shown(given)} contains non-partition columns"
    if problem is not None:
        raise with_location(spec.span, AnalysisError(problem))


def shown(values: Values) -> str:
    """``{k=1, q=x}``, as Hive prints a partition in its messages."""
    return "{" + ", ".join(f"{k}={DEFAULT_PARTITION if v is None else v}" for k, v in values.items()) + "}"


def whole_name(table: Table, spec: PartitionSpec, values: Values) -> str:
    """The partition name from values for all keys. Raises: AnalysisError."""
    keys = [k.name for k in table.partition_keys]
    if len(values) < len(keys):
        message = (
            f"{table.full_name}: partition spec {shown(values)} doesn't contain all ({len(keys)}) partition columns"
        )
        raise with_location(spec.span, AnalysisError(message))
    return partition_name(keys, [values[k] for k in keys])


def one_partition(
    env: Environment, table: Table, spec: PartitionSpec, parameters: Mapping[str, Any]
) -> tuple[str, Partition]:
    """The partition of a complete PARTITION clause, and its name.

    Raises:
        AnalysisError: When the clause is not complete (see :func:`whole_name`).
        PartitionNotFound: When it does not exist.
    """
    values = spec_values(env, table, spec, parameters)
    name = whole_name(table, spec, values)
    partitions = env.metastore.list_partitions(table.database, table.name, [name])
    if not partitions:
        raise no_partition(spec, values)
    return name, partitions[0]


def partitions_by(
    env: Environment,
    table: Table,
    partitions: Sequence[Partition],
    where: Span,
    parameters: Mapping[str, Any],
    does: str,
) -> list[Partition]:
    """The partitions that satisfy a condition over partition keys.

    Args:
        env: The session.
        table: The table.
        partitions: The partitions.
        where: The condition.
        parameters: Values of its parameters.
        does: What the statement does with whole partitions, for messages: ``OPTIMIZE rewrites``.

    Raises:
        AnalysisError: When the condition is not only over partition keys.
    """
    try:
        condition = env.catalyst.parse_expression(padded(where))
        return partitions_where(env.sessions, table, partitions, condition, parameters)
    except PySparkException as e:
        keys = ", ".join(k.name for k in table.partition_keys)
        why = next(iter(str(e).splitlines()), "")
        error = AnalysisError(
            f"The condition is not over partition keys only: {why}",
            hint=f"The partition keys are {keys}: {does} whole partitions.",
        )
        raise with_location(where, error) from e


def no_partition(spec: PartitionSpec, values: Values) -> AcidError:
    """The error of a clause without a matching partition, located at the clause."""
    return with_location(spec.span, PartitionNotFound(f"Partition not found {shown(values)}"))


# --- ADD -------------------------------------------------------------------------------------------------------------


def add_partitions(env: Environment, statement: AddPartitions, parameters: Mapping[str, Any]) -> DataFrame:
    """ADD PARTITION.

    1. Evaluate the values; refuse existing partitions (unless IF NOT EXISTS).
    2. Lock the table SHARED_READ, as Hive does, and look again. Refuse locations with other data; remove the remains of
       dropped partitions.
    3. Create the directories, register the partitions, commit. On failure remove the directories created. One that is
       registered, and that nobody has committed, is this statement's from now on, too: where all of those were undone,
       and with IF NOT EXISTS also beside one who is making it.

    A partition's default location may have files that this table wrote there; any other LOCATION has to be empty,
    because the write ids of foreign directories have no meaning in this table. A Hive Metastore allows no other
    location: Hive treats LOCATION as files to load (``AbstractAddPartitionAnalyzer``), keeps all partitions of an ACID
    table below it, and its own UPDATE loses the rows of one that is elsewhere.
    """
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    named = _named(env, table, statement, parameters)

    def find() -> list[_Added]:
        return _missing(env, table, statement, named)

    def run(txn: WriteTransaction, added: list[_Added]) -> None:
        txn.revalidate(table)
        free_places(env.metastore, [one.partition.location for one in added])
        _check_places(txn, table, added)
        try:
            add_with_rows(txn, table, [one.partition for one in added], if_not_exists=statement.if_not_exists)
        except AlreadyExists:
            if find() == added:  # the place of one is another's
                raise
            txn.start_over("One of the partitions has been added by others")
        txn.invalidate_caches(table)

    lock = LockComponent(LockType.SHARED_READ, table.database, table.name)
    run_locked(env, find(), find, lambda _: [lock], run)
    return env.nothing()


def add_with_rows(
    txn: WriteTransaction, table: Table, partitions: Sequence[Partition], *, if_not_exists: bool = True
) -> None:
    """Register partitions with what is in their places. Those with rows exist at once, and are a new version of the
    table: the rows are as old as other snapshots.

    Raises:
        AlreadyExists: When the place of one is another's; and unless ``if_not_exists`` when one is there.
        StartOver: When others have added one at another place meanwhile.
    """
    metastore = txn.env.metastore
    with created_directories(metastore, [p.location for p in partitions], of=table):
        found = with_rows(txn.env, table, partitions)
        metastore.add_partitions(partitions, with_rows=found, if_not_exists=if_not_exists)
        txn.places(table, partitions)


def _named(
    env: Environment, table: Table, statement: AddPartitions, parameters: Mapping[str, Any]
) -> dict[str, NewPartition]:
    """The partitions of the statement by their names."""
    named: dict[str, NewPartition] = {}
    for new in statement.partitions:
        name = whole_name(table, new.spec, spec_values(env, table, new.spec, parameters))
        if name in named:
            raise with_location(
                new.spec.span, AnalysisError(f"Duplicate partitions in the list: {name}", sqlstate="08S01")
            )
        named[name] = new
    return named


class _Added(NamedTuple):
    """A partition to be added; ``is_shared`` where it is registered, and nobody has committed it."""

    new: NewPartition
    partition: Partition
    is_shared: bool


def _missing(
    env: Environment, table: Table, statement: AddPartitions, named: Mapping[str, NewPartition]
) -> list[_Added]:
    """The partitions that do not exist yet, and those that nobody has committed."""
    known = env.metastore.list_partitions(table.database, table.name, list(named))
    existing = {partition_names(table, p): p for p in known}
    added = []
    for name, new in named.items():
        usual, found = new_partition(table, name), existing.get(name)
        location = usual.location if new.location is None else fs.qualify(new.location.value)
        if found is None:
            added.append(_Added(new, replace(usual, location=location), is_shared=False))
        elif not found.exists and (statement.if_not_exists or (found.is_undone and found.location == location)):
            added.append(_Added(new, found, is_shared=True))
        elif not statement.if_not_exists:
            raise with_location(new.spec.span, already_exists(name, found))
    return added


def already_exists(name: str, found: Partition) -> AlreadyExists:
    """The error for who meets a registered partition; its hint says so where nobody has committed it."""
    hint = None
    if found.is_undone:
        hint = f"A statement that failed has left it at {found.location}: DROP PARTITION removes it."
    elif not found.exists:
        hint = "A transaction that is not committed has made it; ADD IF NOT EXISTS makes it exist in any case."
    return AlreadyExists(f"Partition already exists: {name}", hint=hint)


def _check_places(txn: WriteTransaction, table: Table, added: Sequence[_Added]) -> None:
    """Foreign files must not become rows of this table, nor files of one partition rows of another."""
    metastore = txn.env.metastore
    known = metastore.list_partitions(table.database, table.name)
    taken = [fs.absolute(p.location) for p in known]
    for new, partition, is_shared in added:
        filesystem, path = fs.resolve(partition.location)
        usual = fs.absolute(new_partition(table, partition_names(table, partition)).location)
        if is_shared:  # its place is its own
            usual = path
        span = new.location.span if new.location is not None else new.spec.span
        if path != usual and metastore.capabilities.is_shared_with_hive:
            message = "Hive keeps partitions of an ACID table below the table: LOCATION is not supported"
            raise with_location(
                span, UnsupportedError(message, hint="Hive treats it as files to load, which is not supported.")
            )
        if path != usual and any(fs.overlap(path, other) for other in [fs.absolute(table.location), *taken]):
            message = f"Location {path} is not free: it is used by the table itself or another partition"
            raise with_location(span, AlreadyExists(message))
        taken.append(path)
        if path != usual and filesystem.list(path):
            message = f"Location {path} of the new partition is not empty: importing its files is not supported"
            raise with_location(
                span, UnsupportedError(message, hint="CREATE TABLE … LOCATION registers a directory with its files.")
            )
        elif path == usual:
            try:
                refuse_unknown_ids(metastore, table, [partition])
            except UnsupportedError as e:
                raise with_location(span, e) from None


# --- DROP ------------------------------------------------------------------------------------------------------------


def drop_partitions(env: Environment, statement: DropPartitions, parameters: Mapping[str, Any]) -> DataFrame:
    """DROP PARTITION. Values for some of the keys select all partitions that have them, as in Hive.

    1. Find the partitions.
    2. Lock them EXCLUSIVE (the table, if they are many): current writers finish first. Find them again, and restart if
       they or their locations have changed.
    3. Remove them from the metastore, which records their directories in the same step: from now on they are dropped.
    4. Remove the directories (:mod:`acidsql.compactor.dropped`), and commit. A Hive Metastore has already removed them.

    As in Hive, the files are removed at once: an older DataFrame over the table fails when it is read.
    """
    table = acid_table(env, statement.table)
    if table is None:
        return env.sql(statement.span.text, parameters)
    wanted = [(spec, spec_values(env, table, spec, parameters)) for spec in statement.partitions]

    def find() -> dict[str, Partition]:
        return _matching(env, table, statement, wanted)

    partitions = find()
    if not partitions:
        return env.nothing()

    def run(txn: WriteTransaction, partitions: dict[str, Partition]) -> None:
        txn.revalidate(table)
        if partitions:
            if not env.metastore.capabilities.owns_directories:
                require_there(*fs.resolve(table.location))  # what is in it now would be there again one day
            txn.invalidate_caches(table)
            env.metastore.drop_partitions(table.database, table.name, list(partitions))
            remove_dropped(env.metastore)

    run_locked(env, partitions, find, lambda names: _exclusive(env, table, list(names)), run)
    return env.nothing()


def _matching(
    env: Environment, table: Table, statement: DropPartitions, wanted: Sequence[tuple[PartitionSpec, Values]]
) -> dict[str, Partition]:
    """The partitions to be dropped, by name."""
    partitions: dict[str, Partition] = {}
    for spec, values in wanted:
        matching = partitions_with(env, table, values)
        if not matching and not (statement.if_exists or env.settings.value(DROP_IGNORES)):
            raise no_partition(spec, values)
        partitions.update(matching)
    return partitions


def partitions_with(env: Environment, table: Table, values: Values) -> dict[str, Partition]:
    """The partitions that have some values, by name."""
    keys = [k.name for k in table.partition_keys]
    wanted = {k: DEFAULT_PARTITION if v is None else v for k, v in values.items()}
    known = env.metastore.list_partitions(table.database, table.name) if keys else []
    matching = [p for p in known if wanted.items() <= dict(zip(keys, p.values, strict=True)).items()]
    return {partition_names(table, p): p for p in matching}


def _exclusive(env: Environment, table: Table, names: Sequence[str]) -> list[LockComponent]:
    many = len(names) > env.settings.value(LOCK_PARTITIONS)
    targets = [None] if many else names
    return [LockComponent(LockType.EXCLUSIVE, table.database, table.name, name) for name in targets]
