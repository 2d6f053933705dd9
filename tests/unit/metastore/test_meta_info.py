"""What stands in CQ_META_INFO: our own JSON; anything else is nobody's business."""

from __future__ import annotations

import json

import pytest

from acidsql.metastore.embedded.meta_info import from_bytes, to_bytes
from acidsql.metastore.model import CompactionMetrics

METRICS = CompactionMetrics(files_before=5, bytes_before=1 << 40, files_after=1, bytes_after=900, rows=7)


def test_what_is_stored_is_read_again() -> None:
    stored = to_bytes(METRICS)
    assert stored is not None
    assert json.loads(stored) == {
        "version": 1,
        "files_before": 5,
        "bytes_before": 1 << 40,
        "files_after": 1,
        "bytes_after": 900,
        "rows": 7,
    }
    assert from_bytes(stored) == METRICS
    assert from_bytes(to_bytes(None)) is None


@pytest.mark.parametrize(
    "stored",
    [b"", b"\x00\x80\xff", b"7", b"[]", b"{}", b'{"version":2,"files_before":1}', b'{"version":1,"files_before":1}'],
    ids=["nothing", "no text", "a number", "a list", "no version", "a later version", "not all of it"],
)
def test_what_somebody_else_has_put_there_says_nothing(stored: bytes) -> None:
    assert from_bytes(stored) is None
