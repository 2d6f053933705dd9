"""Running scripts and printing their results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from acidsql.cli.streams import StandardOutput
from acidsql.commands.transaction import outcome
from acidsql.errors import AcidError
from acidsql.interrupts import interrupt_behind
from acidsql.output import ERRORS, Format, describe, write_result

if TYPE_CHECKING:
    from acidsql.session import AcidSession


@dataclass(frozen=True)
class Printing:
    """How results are printed."""

    format: Format = Format.TABLE
    header: bool = True


def run_scripts(
    session: AcidSession,
    scripts: Iterable[str | os.PathLike[str]],
    variables: Mapping[str, str],
    printing: Printing,
) -> int:
    """Run scripts one after the other; each result is printed at once, the first error ends the run.

    Returns:
        The exit code: 0, or 1 when a statement failed; its error is printed on standard error, with the file name.

    Raises:
        KeyboardInterrupt: When it was interrupted, whatever has become of the statement.
    """
    out = StandardOutput()
    for script in scripts:
        try:
            before = outcome.commits()
            for frame in session.script(script, variables):
                with outcome.told(before):
                    write_result(frame, printing.format, out, header=printing.header)
                    out.flush()
                before = outcome.commits()
        except BrokenPipeError:  # the reader closed the pipe; click exits quietly
            raise
        except (*ERRORS, OSError, UnicodeDecodeError) as e:
            interrupt = interrupt_behind(e)
            if interrupt is None or isinstance(e, AcidError):  # which may say what has become of a commit
                where = f"{script}: " if isinstance(script, Path) else ""
                print(f"acidsql: {where}{describe(e)}", file=sys.stderr)
            if interrupt is not None:
                raise interrupt from None
            return 1
    return 0
