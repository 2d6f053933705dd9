"""CQ_META_INFO and CC_META_INFO: what a compaction has replaced, and by what.

Hive has these columns and leaves them empty; their content is free. Here it is JSON with a version, so that an older
acidsql passes over what a newer one has written.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from acidsql.metastore.model import CompactionMetrics

_VERSION = 1
_NAMES = [field.name for field in fields(CompactionMetrics)]


def to_bytes(metrics: CompactionMetrics | None) -> bytes | None:
    """As it is stored."""
    if metrics is None:
        return None
    return json.dumps({"version": _VERSION, **asdict(metrics)}, separators=(",", ":")).encode()


def from_bytes(stored: bytes | None) -> CompactionMetrics | None:
    """What is stored; None for nothing, and for what somebody else has put there."""
    if stored is None:
        return None
    try:
        found: Any = json.loads(stored)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("version") != _VERSION:
        return None
    values: list[Any] = [found.get(name) for name in _NAMES]
    return CompactionMetrics(*values) if all(isinstance(value, int) for value in values) else None
