"""The SQL that Spark itself is tested with: TPC-DS, TPC-H and the inputs of its SQL suites.

They are read from the jar of Spark's tests, which the Maven client of the other tests fetches once: no text is kept
here.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from tests.services.maven import jars

LOCK = Path(__file__).parent / "spark-tests-4.1.1.lock"
_COLUMN = re.compile(r"\|`(\w+)`\s+([A-Z]+(?:\([\d, ]+\))?)")
_CONSTANT_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
"""Bytes of the constants of a Java class behind their tags (Java Virtual Machine Specification, 4.4), but of texts."""


@cache
def _jar() -> ZipFile:
    return ZipFile(jars(LOCK)[0])


def text(name: str) -> str:
    """One resource."""
    return _jar().read(name).decode("utf-8")


def texts(folder: str) -> dict[str, str]:
    """The SQL files of a folder by their paths in it."""
    names = [n for n in _jar().namelist() if n.startswith(f"{folder}/") and n.endswith(".sql")]
    return {n.removeprefix(f"{folder}/").removesuffix(".sql"): text(n).strip().rstrip(";") for n in sorted(names)}


def tpcds_columns() -> list[list[tuple[str, str]]]:
    """Columns of each table of TPC-DS with their types: they are string constants of a class of Spark's tests."""
    found = [_COLUMN.findall(c) for c in _string_constants(_jar().read("org/apache/spark/sql/TPCDSSchema.class"))]
    return [columns for columns in found if columns]


def _string_constants(java_class: bytes) -> Iterator[str]:
    [count] = struct.unpack_from(">H", java_class, 8)
    at, number = 10, 1
    while number < count:
        tag = java_class[at]
        at += 1
        if tag == 1:
            [size] = struct.unpack_from(">H", java_class, at)
            yield java_class[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
        else:
            at += _CONSTANT_SIZES[tag]
        number += 2 if tag in (5, 6) else 1
