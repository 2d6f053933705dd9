"""The command of :mod:`acidsql.submit`: the options of ``acidsql`` on the session of spark-submit."""

from __future__ import annotations

import click
from pyspark.sql import SparkSession

from acidsql.cli.arguments import format_of, parse_pairs, script_options, scripts_of
from acidsql.cli.connection import Connection
from acidsql.cli.run import Printing
from acidsql.cli.start import start
from acidsql.cli.streams import Command
from acidsql.output import Format


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@script_options
@click.pass_context
def main(
    context: click.Context,
    texts: tuple[str, ...],
    files: tuple[str, ...],
    variables: tuple[str, ...],
    warehouse: str | None,
    metastore: str | None,
    database: str | None,
    conf: tuple[str, ...],
    format_name: str | None,
    header: bool,
) -> None:
    """Run statements on Hive full-ACID tables with spark-submit; Spark's own options go before submit.py."""
    scripts = scripts_of(texts, files)
    if not scripts:
        raise click.UsageError("Nothing to run: give -e or -f.")
    settings = parse_pairs(conf, "--conf")
    if any(name.startswith("spark.") for name in settings):
        raise click.BadParameter("Spark's own settings go before submit.py, to spark-submit.", param_hint="--conf")
    values = parse_pairs(variables, "--hivevar")
    printing = Printing(Format(format_of(format_name)), header)
    spark = SparkSession.builder.appName("acidsql").getOrCreate()
    try:
        code = start(Connection(warehouse, metastore, None, database, settings), scripts, values, printing, spark)
    finally:
        spark.stop()
    context.exit(code)
