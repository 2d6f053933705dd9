"""``spark-submit …/acidsql/submit.py -f script.sql``: a script on the Spark session that spark-submit gives.

``python -c "import acidsql.submit as s; print(s.__file__)"`` prints the path of this file.
"""

from __future__ import annotations

import os
import sys


def _find_package() -> None:
    """Make ``import acidsql`` work for this file run as a script.

    Python puts the script's own directory first on its path. That is the inside of the package, where ``types.py``
    would hide the standard library's module of that name. The directory that holds the package goes last instead.
    """
    inside = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.getcwd()) != inside]
    sys.path.append(os.path.dirname(inside))


if __name__ == "__main__":
    _find_package()

import click  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from acidsql.cli.options import Connection, Printing, open_session, parse_pairs, script_options  # noqa: E402
from acidsql.cli.run import run_scripts  # noqa: E402
