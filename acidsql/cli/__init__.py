"""The command line: ``acidsql``, ``acidsql -e "…"``, ``acidsql -f script.sql``, ``acidsql dump PATH``."""

from acidsql.cli.main import main

__all__ = ["main"]
