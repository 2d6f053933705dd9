"""What becomes of transactions: whether a snapshot's own was still open when it could not be read, and who ended it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from acidsql.metastore.embedded import EmbeddedMetastore
from tests.soak.judge import Judge


class Watch:
    """Looks on when this process opens and ends transactions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, judge: Judge) -> None:
        self._judge = judge
        self._here = threading.local()
        self._ends: dict[int, str] = {}
        for name, noted in (
            ("open_txns", self._opened),
            ("commit_txn", self._committed),
            ("abort_txns", self._aborted),
            ("time_out_txns", self._timed_out),
        ):
            self._wrap(monkeypatch, name, noted)

    def opened(self) -> int:
        """The transaction that this thread has opened last."""
        return int(self._here.opened)

    def end_of(self, txn_id: int) -> str:
        """What this process knows of a transaction's end."""
        return self._ends.get(txn_id, "not ended by this process")

    def _wrap(self, monkeypatch: pytest.MonkeyPatch, name: str, noted: Callable[..., None]) -> None:
        original = getattr(EmbeddedMetastore, name)

        def call(store: EmbeddedMetastore, *args: Any, **kwargs: Any) -> Any:
            answer = original(store, *args, **kwargs)
            noted(answer, *args)
            return answer

        monkeypatch.setattr(EmbeddedMetastore, name, call)

    def _opened(self, ids: Sequence[int], *_: object) -> None:
        self._here.opened = ids[-1]

    def _committed(self, _: object, txn_id: int) -> None:
        self._ends[txn_id] = "committed"

    def _aborted(self, ids: Sequence[int], *_: object) -> None:
        self._ends.update(dict.fromkeys(ids, "aborted"))

    def _timed_out(self, ids: Sequence[int], *_: object) -> None:
        self._ends.update(dict.fromkeys(ids, "timed out"))
        self._judge.count("transactions timed out by this process", len(ids))
