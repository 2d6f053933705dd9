"""From parsed options to a session at work: a script run or the shell."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from acidsql.cli.options import Connection, Printing, open_session
from acidsql.cli.run import run_scripts
from acidsql.cli.shell import Shell
from acidsql.output import ERRORS, describe


def start(
    connection: Connection,
    scripts: Sequence[str | os.PathLike[str]],
    variables: Mapping[str, str],
    printing: Printing,
    *,
    interactive: bool,
) -> int:
    """Open the session and run the scripts, or the shell.

    Returns:
        The exit code: 0, or 1 when the session could not be opened or a statement failed.
    """
    try:
        with open_session(connection) as session:
            if interactive:
                return Shell(session, variables, printing).run()
            return run_scripts(session, scripts, variables, printing)
    except ERRORS as e:
        print(f"acidsql: {describe(e)}", file=sys.stderr)
        return 1
