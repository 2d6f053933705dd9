"""Names of partitions, ``p=1/q=even``, as they stand in PARTITIONS, in locks and in transaction components.

The rules are those of Hive's ``FileUtils.escapePathName`` and ``Warehouse.makePartName``. (The format room has its own
functions of this kind for directories; the two rooms do not know each other, and a test holds them equal.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from acidsql.errors import AnalysisError
from acidsql.metastore.model import DEFAULT_PARTITION

_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


def make_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """The name of a partition.

    Raises:
        AnalysisError: When there are not as many values as keys.
    """
    if len(keys) != len(values):
        raise AnalysisError(f"{len(keys)} partition keys, but {len(values)} values")
    return "/".join(f"{_escape(key.lower())}={_escape(value)}" for key, value in zip(keys, values, strict=True))


def values_of(name: str) -> tuple[str, ...]:
    """The values in the name of a partition, in key order."""
    return tuple(_unescape(part.partition("=")[2]) for part in name.split("/"))


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda m: f"%{ord(m[0]):02X}", text) if text else DEFAULT_PARTITION


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), text)
