"""The options shared by ``acidsql`` and ``submit.py``. No import of Spark here: ``--help`` must be fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

FORMATS = ("table", "csv", "tsv", "json")

_Command = TypeVar("_Command", bound=Callable[..., Any])

_WAREHOUSE = click.option(
    "--warehouse", metavar="PATH", help="Directory of the default database [default: ./warehouse]."
)
_METASTORE = click.option(
    "--metastore",
    metavar="URL",
    help="Catalog and transactions: thrift://host:9083 (a Hive Metastore), postgresql+psycopg://host/database, or"
    " SQLite [default: a SQLite file in the warehouse].",
)
_CONF = click.option(
    "--conf", multiple=True, metavar="NAME=VALUE", help="A setting; a name that begins with 'spark.' is Spark's."
)
_SCRIPT_OPTIONS = (
    click.option("-e", "texts", multiple=True, metavar="SQL", help="Run statements, separated by ';', and exit."),
    click.option(
        "-f",
        "files",
        multiple=True,
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="Run a script ('-': standard input) and exit.",
    ),
    click.option(
        "-d",
        "--hivevar",
        "--define",
        "variables",
        multiple=True,
        metavar="NAME=VALUE",
        help="Value of ${NAME} and ${hivevar:NAME} in statements.",
    ),
    _WAREHOUSE,
    _METASTORE,
    click.option("--database", metavar="NAME", help="The initial current database."),
    _CONF,
    click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        help="How results are printed [default: table on a terminal, otherwise tsv].",
    ),
    click.option("--header/--no-header", default=True, help="Whether to print column names."),
)


def script_options(command: _Command) -> _Command:
    """Add the options for scripts, connection and output to a command."""
    for option in reversed(_SCRIPT_OPTIONS):
        command = option(command)
    return command


def place_options(command: _Command) -> _Command:
    """Add the connection options to a command."""
    for option in (_CONF, _METASTORE, _WAREHOUSE):
        command = option(command)
    return command


def parse_pairs(pairs: Iterable[str], option: str) -> dict[str, str]:
    """``("a=1", "b=2")`` as a dict; a value may contain further ``=``.

    Raises:
        click.BadParameter: When ``=`` or the name before it is missing.
    """
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{pair!r} is not name=value", param_hint=option)
        values[name.strip()] = value
    return values


def scripts_of(texts: Sequence[str], files: Sequence[str]) -> list[str | os.PathLike[str]]:
    """The scripts that ``-e`` and ``-f`` give: texts, and paths of files.

    Raises:
        click.UsageError: When both are given.
    """
    if texts and files:
        raise click.UsageError("-e and -f cannot be combined.")
    # A text ends in a line break so that it is never mistaken for a file name.
    return [*(t + "\n" for t in texts), *(sys.stdin.read() + "\n" if f == "-" else Path(f) for f in files)]


def format_of(name: str | None) -> str:
    """The given format, or the default for where the output goes."""
    return name or ("table" if sys.stdout.isatty() else "tsv")
