"""The command ``acidsql`` and its options.

Spark is imported only by what needs it, so that ``acidsql dump`` and ``acidsql --help`` answer at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

import acidsql
from acidsql.errors import AcidError

_FORMATS = ("table", "csv", "tsv", "json")


def parse_pairs(pairs: Iterable[str], option: str) -> dict[str, str]:
    """``("a=1", "b=2")`` as a dict; the value may hold further ``=``.

    Raises:
        click.BadParameter: When there is no ``=`` or nothing before it.
    """
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not name=value", param_hint=option)
        found[name.strip()] = value
    return found


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(acidsql.__version__, prog_name="acidsql")
@click.option("-e", "texts", multiple=True, metavar="SQL", help="Run statements, parted by ';', and leave.")
@click.option(
    "-f",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Run a script ('-': standard input) and leave.",
)
@click.option(
    "-d",
    "--hivevar",
    "--define",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of ${NAME} and ${hivevar:NAME} in statements.",
)
@click.option("--warehouse", default="warehouse", show_default=True, help="Directory of the default database.")
@click.option("--metastore", metavar="URL", help="Catalog and transactions; by default acidsql.db in the warehouse.")
@click.option("--database", metavar="NAME", help="The current database at the start.")
@click.option("--master", help="Spark's master URL.  [default: local[*]]")
@click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting; a name that begins with 'spark.' is Spark's.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="How results are printed.  [default: table on a terminal, else tsv]",
)
@click.option("--header/--no-header", default=True, help="Whether column names come first.")
@click.pass_context
def main(
    context: click.Context,
    texts: tuple[str, ...],
    files: tuple[str, ...],
    variables: tuple[str, ...],
    warehouse: str,
    metastore: str | None,
    database: str | None,
    master: str | None,
    conf: tuple[str, ...],
    format_: str | None,
    header: bool,
) -> None:
    """Hive full-ACID tables from the command line. Without -e, -f or a COMMAND: an interactive shell."""
    if context.invoked_subcommand is not None:
        return
    if texts and files:
        raise click.UsageError("-e and -f do not go together.")
    from acidsql.cli.options import Connection, Printing
    from acidsql.cli.start import start
    from acidsql.output import Format

    scripts: list[str | os.PathLike[str]] = [*texts]
    scripts += [sys.stdin.read() if f == "-" else Path(f) for f in files]
    interactive = not scripts and sys.stdin.isatty()
    if not scripts and not interactive:
        scripts = [sys.stdin.read()]
    connection = Connection(warehouse, metastore, master, database, parse_pairs(conf, "--conf"))
    printing = Printing(Format(format_ or ("table" if sys.stdout.isatty() else "tsv")), header)
    context.exit(start(connection, scripts, parse_pairs(variables, "--hivevar"), printing, interactive=interactive))


@main.command()
@click.argument("path")
def dump(path: str) -> None:
    """Print the events of an ACID file as JSON lines, or the state of a table directory."""
    from acidsql.cli.dump import dump as run_dump

    try:
        run_dump(path, sys.stdout)
    except (AcidError, FileNotFoundError) as e:
        click.echo(f"acidsql: {e}", err=True)
        sys.exit(1)
