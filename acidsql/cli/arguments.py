"""The options that ``acidsql`` and ``submit.py`` have in common. No import of Spark here: help must come at once."""

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
    "--warehouse", metavar="PATH", help="Directory of the default database; if not given, ./warehouse."
)
_METASTORE = click.option(
    "--metastore",
    metavar="URL",
    help="Catalog and transactions: thrift://host:9083 (a Hive Metastore) or SQLite; if not given, a file in the"
    " warehouse.",
)
_CONF = click.option(
    "--conf", multiple=True, metavar="NAME=VALUE", help="A setting; a name that begins with 'spark.' is Spark's."
)
_SCRIPT_OPTIONS = (
    click.option("-e", "texts", multiple=True, metavar="SQL", help="Run statements, parted by ';', and leave."),
    click.option(
        "-f",
        "files",
        multiple=True,
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="Run a script ('-': standard input) and leave.",
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
    click.option("--database", metavar="NAME", help="The current database at the start."),
    _CONF,
    click.option(
        "--format",
        "format_name",
        type=click.Choice(FORMATS),
        help="How results are printed; if not given, table on a terminal and tsv elsewhere.",
    ),
    click.option("--header/--no-header", default=True, help="Whether column names come first."),
)


def script_options(command: _Command) -> _Command:
    """Give a command the options that say what to run, where, and how to print it."""
    for option in reversed(_SCRIPT_OPTIONS):
        command = option(command)
    return command


def place_options(command: _Command) -> _Command:
    """Give a command the options that say where the tables are."""
    for option in (_CONF, _METASTORE, _WAREHOUSE):
        command = option(command)
    return command


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


def scripts_of(texts: Sequence[str], files: Sequence[str]) -> list[str | os.PathLike[str]]:
    """What ``-e`` and ``-f`` name: texts, and paths of files.

    Raises:
        click.UsageError: When both are given.
    """
    if texts and files:
        raise click.UsageError("-e and -f do not go together.")
    # A text ends in a line break so that it is never taken for the name of a file.
    return [*(t + "\n" for t in texts), *(sys.stdin.read() + "\n" if f == "-" else Path(f) for f in files)]


def format_of(name: str | None) -> str:
    """The format asked for, or the one that suits where the output goes."""
    return name or ("table" if sys.stdout.isatty() else "tsv")
