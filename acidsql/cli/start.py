"""Opens a session from parsed options and runs scripts or the shell."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pyspark.sql import SparkSession

from acidsql.cli.connection import Connection, open_session
from acidsql.cli.interrupt import Terminated, interruptible
from acidsql.cli.run import Printing, run_scripts
from acidsql.cli.shell import Shell
from acidsql.output import ERRORS, describe, without_error_log


def start(
    connection: Connection,
    scripts: Sequence[str | os.PathLike[str]],
    variables: Mapping[str, str],
    printing: Printing,
    spark: SparkSession | None = None,
) -> int:
    """Open a session and run scripts in it.

    Args:
        scripts: Texts, and paths of files.
        variables: Values of ``${name}`` and ``${hivevar:name}``.
        spark: An existing Spark session, which is not stopped at the end.

    Returns:
        The exit code: 0, or 1 when the session could not be opened or a statement failed.
    """
    try:
        with without_error_log(), open_session(connection, spark) as session, interruptible(session.spark):
            return run_scripts(session, scripts, variables, printing)
    except ERRORS as e:
        print(f"acidsql: {describe(e)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as e:
        return _terminated(e if isinstance(e, Terminated) else Terminated(signal.SIGINT, str(e)))


def run_shell(connection: Connection, variables: Mapping[str, str], printing: Printing) -> int:
    """Open a session and run the interactive shell. Returns the exit code as :func:`start` does."""
    try:
        with without_error_log(), open_session(connection) as session, interruptible(session.spark):
            return Shell(session, variables, printing).run()
    except ERRORS as e:
        print(f"acidsql: {describe(e)}", file=sys.stderr)
        return 1
    except Terminated as e:
        return _terminated(e)


def _terminated(error: Terminated) -> int:
    with suppress(OSError):  # of a terminal that is gone
        print(f"acidsql: {error}", file=sys.stderr, flush=True)
    return error.code
