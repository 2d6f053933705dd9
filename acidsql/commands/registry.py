"""Maps statements to the functions that run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from acidsql.commands import query
from acidsql.commands.ddl import (
    alter,
    alter_columns,
    alter_constraints,
    create,
    exchange,
    partitions,
    renames,
    views,
)
from acidsql.commands.dml import (
    delete,
    insert,
    load,
    merge,
    multi_insert,
    truncate,
    update,
)
from acidsql.commands.environment import Environment
from acidsql.commands.inspect import (
    describe,
    detail,
    explain,
    history,
    show,
    show_compactions,
    show_create,
)
from acidsql.commands.maintenance import (
    analyze,
    compaction,
    optimize,
    vacuum,
)
from acidsql.commands.passed_on import refuse_acid_tables
from acidsql.commands.session import use_and_set
from acidsql.commands.transaction import abort, control
from acidsql.sql import statements as s
from acidsql.sql.parser import parse_statement

Command = Callable[[Environment, Any, Mapping[str, Any]], DataFrame]


def passthrough(env: Environment, statement: s.Passthrough, parameters: Mapping[str, Any]) -> DataFrame:
    """Any other statement: Spark runs it, unless it names an ACID table, which Spark cannot read."""
    refuse_acid_tables(env, statement, parameters)
    return env.sql(statement.span.text, parameters)


COMMANDS: dict[type[s.Statement], Command] = {
    s.Query: query.query,
    s.Explain: explain.explain,
    s.CreateTempView: query.create_temp_view,
    s.Insert: insert.insert,
    s.Update: update.update,
    s.Delete: delete.delete,
    s.Merge: merge.merge,
    s.MultiInsert: multi_insert.multi_insert,
    s.CreateDatabase: create.create_database,
    s.DropDatabase: create.drop_database,
    s.CreateTable: create.create_table,
    s.DropTable: create.drop_table,
    s.CreateView: views.create_view,
    s.DropView: views.drop_view,
    s.RepairTable: create.repair_table,
    s.Truncate: truncate.truncate,
    s.LoadData: load.load_data,
    s.SetProperties: alter.set_properties,
    s.UnsetProperties: alter.unset_properties,
    s.AddColumns: alter_columns.add_columns,
    s.ReplaceColumns: alter_columns.replace_columns,
    s.ChangeColumn: alter_columns.change_column,
    s.DropColumns: alter_columns.drop_columns,
    s.AddConstraint: alter_constraints.add_constraint,
    s.DropConstraint: alter_constraints.drop_constraint,
    s.RenameTable: renames.rename_table,
    s.RenamePartition: renames.rename_partition,
    s.SetLocation: renames.set_location,
    s.AddPartitions: partitions.add_partitions,
    s.DropPartitions: partitions.drop_partitions,
    s.ExchangePartition: exchange.exchange_partition,
    s.Compact: compaction.compact,
    s.Concatenate: compaction.concatenate,
    s.Optimize: optimize.optimize,
    s.Vacuum: vacuum.vacuum,
    s.Analyze: analyze.analyze,
    s.Use: use_and_set.use,
    s.Set: use_and_set.set_value,
    s.Reset: use_and_set.reset,
    s.ShowDatabases: show.show_databases,
    s.ShowTables: show.show_tables,
    s.ShowViews: show.show_views,
    s.ShowColumns: show.show_columns,
    s.ShowProperties: show.show_properties,
    s.ShowPartitions: show.show_partitions,
    s.ShowCreateTable: show_create.show_create_table,
    s.ShowTransactions: show.show_transactions,
    s.ShowLocks: show.show_locks,
    s.ShowCompactions: show_compactions.show_compactions,
    s.StartTransaction: control.start,
    s.Commit: control.commit,
    s.Rollback: control.rollback,
    s.SetAutocommit: control.set_autocommit,
    s.AbortTransactions: abort.abort_transactions,
    s.AbortCompactions: abort.abort_compactions,
    s.Describe: describe.describe,
    s.DescribeDatabase: describe.describe_database,
    s.DescribeHistory: history.describe_history,
    s.DescribeDetail: detail.describe_detail,
    s.Passthrough: passthrough,
}


def execute(env: Environment, statement: s.Statement, parameters: Mapping[str, Any]) -> DataFrame:
    """Run one statement."""
    env = control.environment_of(env, statement)
    with control.answering(env), env.catalyst.active(), env.sessions.fixed():
        return COMMANDS[type(statement)](env, statement, parameters)


def run(env: Environment, text: str, **parameters: Any) -> DataFrame:
    """Run the text of one statement."""
    return execute(env, parse_statement(text), parameters)
