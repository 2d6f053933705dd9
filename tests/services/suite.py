"""What ``make test-hive`` runs: everything that needs a real Hive, which is started and stopped on the way.

1. The suite of the metastores (:mod:`tests.metastore`) over a live Hive Metastore 4.0.1 and a live one of 3.1.3.
2. The interoperability suite (:mod:`tests.interop`) beside a live Hive 4.0.1.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.services.hive import HiveServer, hive_is_possible
from tests.services.metastore31 import Metastore31, metastore31_is_possible


def main() -> int:
    """Run both; 0 where all tests passed, 2 where Hive cannot be started."""
    if reason := hive_is_possible() or metastore31_is_possible():
        print(f"Hive cannot be started here: {reason}", file=sys.stderr)
        return 2
    print("Starting Hive (the first time it is downloaded, some 460 MB) ...", flush=True)
    with HiveServer() as hive, Metastore31() as old:
        uris = {"ACIDSQL_TEST_METASTORE": hive.metastore_uri, "ACIDSQL_TEST_METASTORE31": old.metastore_uri}
        codes = [_pytest("tests/metastore", "-k", "hive or hive31", **uris)]
    codes.append(_pytest("tests/interop", "-m", "interop"))
    return max(codes)


def _pytest(*arguments: str, **environment: str) -> int:
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], env={**os.environ, **environment})


if __name__ == "__main__":
    sys.exit(main())
