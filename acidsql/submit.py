"""``spark-submit …/acidsql/submit.py -f script.sql``: runs a script in the Spark session of spark-submit.

``python -c "import acidsql.submit as s; print(s.__file__)"`` prints the path of this file; the command is
:mod:`acidsql.cli.submit`.
"""

from __future__ import annotations

import os
import sys


def _find_package() -> None:
    """Make ``import acidsql`` work for this file run as a script.

    Python puts a script's own directory first on its path. That is the package itself, where ``types.py`` would shadow
    the standard library's module. The directory that contains the package is appended instead.
    """
    inside = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != inside]
    sys.path.append(os.path.dirname(inside))


def main() -> None:
    """Run the command."""
    from acidsql.cli.submit import main as command

    command(prog_name="submit.py")


if __name__ == "__main__":
    _find_package()
    main()
