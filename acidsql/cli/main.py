"""The command ``acidsql``.

Spark is imported only where needed, so that ``acidsql dump`` and ``acidsql --help`` start fast.
"""

from __future__ import annotations

import sys
from typing import Any

import click

import acidsql
from acidsql.cli.arguments import format_of, parse_pairs, place_options, script_options, scripts_of
from acidsql.cli.streams import Group, StandardOutput
from acidsql.errors import AcidError


@click.group(cls=Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(acidsql.__version__, prog_name="acidsql")
@script_options
@click.option("--master", help="Spark's master URL [default: local[*]].")
@click.pass_context
def main(context: click.Context, /, **given: Any) -> None:
    """Hive full-ACID tables from the command line. Without -e, -f or a COMMAND: an interactive shell."""
    if context.invoked_subcommand is None:
        context.exit(_run(**given))


def _run(
    *,
    texts: tuple[str, ...],
    files: tuple[str, ...],
    variables: tuple[str, ...],
    warehouse: str | None,
    metastore: str | None,
    database: str | None,
    conf: tuple[str, ...],
    format_name: str | None,
    header: bool,
    master: str | None,
) -> int:
    from acidsql.cli.connection import Connection
    from acidsql.cli.run import Printing
    from acidsql.cli.start import run_shell, start
    from acidsql.output import Format

    scripts = scripts_of(texts, files)
    connection = Connection(warehouse, metastore, master, database, parse_pairs(conf, "--conf"))
    printing = Printing(Format(format_of(format_name)), header)
    values = parse_pairs(variables, "--hivevar")
    if not scripts and sys.stdin.isatty():
        return run_shell(connection, values, printing)
    return start(connection, scripts or [sys.stdin.read() + "\n"], values, printing)


@main.command()
@place_options
@click.option("--once", is_flag=True, help="Run one round, print a summary, and exit.")
@click.option("--spark/--no-spark", default=True, help="Whether to start Spark (Java) when needed.")
@click.pass_context
def compactor(
    context: click.Context,
    /,
    warehouse: str | None,
    metastore: str | None,
    conf: tuple[str, ...],
    once: bool,
    spark: bool,
) -> None:
    """Compact tables and remove obsolete files until SIGTERM or Ctrl-C.

    A compaction in progress is finished before the process exits; a second signal ends it at once. Any number of
    compactors may run on one store, on any number of machines. Spark is started only when needed: for large
    compactions, for files with an old schema, and for file systems that are not local.
    """
    from acidsql.cli.compactor import run_compactor
    from acidsql.cli.connection import Connection

    outer = context.find_root().params  # acidsql --warehouse PATH compactor
    connection = Connection(
        warehouse or outer["warehouse"],
        metastore or outer["metastore"],
        outer["master"],
        conf=parse_pairs([*outer["conf"], *conf], "--conf"),
    )
    sys.exit(run_compactor(connection, once=once, with_spark=spark))


@main.group()
def store() -> None:
    """The store of catalog and transactions."""


@store.command("check")
@place_options
@click.pass_context
def check_store(context: click.Context, /, warehouse: str | None, metastore: str | None, conf: tuple[str, ...]) -> None:
    """Check that what is in the store fits together, as after a restored backup. Exits with 1 where it does not.

    It only reads, and may run beside others. No Spark or Java is needed.
    """
    from acidsql.cli.store import check

    outer = context.find_root().params  # acidsql --warehouse PATH store check
    settings = parse_pairs([*outer["conf"], *conf], "--conf")
    sys.exit(check(warehouse or outer["warehouse"], metastore or outer["metastore"], settings, StandardOutput()))


@main.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
def dump(paths: tuple[str, ...]) -> None:
    """Print an ACID file's events, or a table's state, as JSON lines.

    PATH is a file, a base or delta directory, or a table directory. No Spark, Java or metastore is needed.
    """
    from acidsql.cli.dump import dump as print_dump

    try:
        for path in paths:
            print_dump(path, StandardOutput())
    except AcidError as e:
        click.echo(f"acidsql: {e}", err=True)
        sys.exit(1)
