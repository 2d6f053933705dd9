"""Running scripts: each result is printed as it comes, the first error ends the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from acidsql.cli.options import Printing
from acidsql.output import ERRORS, describe, write_result
from acidsql.session import AcidSession


def run_scripts(
    session: AcidSession,
    scripts: Iterable[str | os.PathLike[str]],
    variables: Mapping[str, str],
    printing: Printing,
) -> int:
    """Run scripts one after the other.

    Args:
        scripts: Texts and paths of files.
        variables: Values of ``${name}`` and ``${hivevar:name}``.

    Returns:
        The exit code: 0, or 1 when a statement failed; its error is then on standard error, with the file's name.
    """
    for script in scripts:
        try:
            for frame in session.script(script, variables):
                write_result(frame, printing.format, sys.stdout, header=printing.header)
                sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has seen enough; click ends quietly
            raise
        except (*ERRORS, OSError, UnicodeDecodeError) as e:
            where = f"{script}: " if isinstance(script, Path) else ""
            print(f"acidsql: {where}{describe(e)}", file=sys.stderr)
            return 1
    return 0
