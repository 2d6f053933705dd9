"""The steps of a statement: calls of the metastore and of the file system by one session on one thread.

Whatever two sessions share they reach by these calls, so between two of them it makes no difference when another
session comes: what is to be found out about a statement is found out by stopping it before each of them.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from acidsql.format.names import STAGING_PREFIX
from acidsql.fs import LocalFileSystem
from acidsql.metastore.protocol import Metastore
from acidsql.session import AcidSession
from tests import injection

STORE_STEPS = tuple(
    n for n in dir(Metastore) if not n.startswith("_") and n != "alone" and callable(getattr(Metastore, n))
)
"""Every method of the protocol that is one step by itself."""
FILE_STEPS = ("list", "rename", "mkdirs", "delete", "delete_if_empty")
"""What one session does to names that another one may look at. What a file holds never changes."""
READS = frozenset(
    (
        *("get_database", "list_databases", "list_tables", "list_views", "show_compactions", "show_txns", "show_locks"),
        *("partition_parameters", "column_statistics", "completed_writes", "heartbeat"),
        *(name if name in STORE_STEPS else f"fs.{name}" for name in injection.READS),
    )
)
"""Steps that change nothing that another statement can see."""

Before = Callable[[str], None]
"""Is told the name of a step that is about to be made."""
After = Callable[[str, Any], None]
"""Is told the name of a step that was made, and what it answered."""


def ignored(*_: Any) -> None:
    """Whoever does not care."""


def _is_inner(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a step looks into a directory of events: of many in a row the first one stands for all."""
    return name == "list" and str(arguments[0]).rpartition("/")[2].startswith(("base_", "delta_", "delete_delta_"))


def _is_own(name: str, arguments: tuple[Any, ...]) -> bool:
    """Whether nobody else can see what a step does: it is about a staging directory, which is not published by it."""
    return name != "rename" and any(STAGING_PREFIX in str(a) for a in arguments)


class _Watch:
    """Tells of the outermost steps of one thread."""

    def __init__(self, before: Before, after: After) -> None:
        self._before, self._after = before, after
        self._thread = threading.get_ident()
        self._is_inside = False
        self._was_inner = False

    def file_step(self, step: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        is_inner, was_inner = _is_inner(name, args), self._was_inner
        if _is_own(name, args) or (is_inner and was_inner):
            return step(*args, **kwargs)
        answer = self.around(step, f"fs.{name}", *args, **kwargs)
        self._was_inner = is_inner
        return answer

    @contextmanager
    def alone(self, step: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """One step, whatever is done in it: the store lets nobody else change anything."""
        if threading.get_ident() != self._thread or self._is_inside:
            with step():
                yield
            return
        self._was_inner = False
        self._before("alone")
        self._is_inside = True
        try:
            with step():
                yield
        finally:
            self._is_inside = False
        self._after("alone", None)

    def around(self, step: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != self._thread or self._is_inside:
            return step(*args, **kwargs)
        self._was_inner = False
        self._before(name)
        self._is_inside = True
        try:
            answer = step(*args, **kwargs)
        finally:
            self._is_inside = False
        self._after(name, answer)
        return answer


@contextmanager
def watched(acid: AcidSession, before: Before = ignored, after: After = ignored) -> Iterator[None]:
    """Tell of the steps that a session makes on this thread while the block runs."""
    watch, store = _Watch(before, after), acid.metastore
    with ExitStack() as stack:
        stack.enter_context(patch.object(store, "alone", functools.partial(watch.alone, store.alone)))
        for name in STORE_STEPS:
            step = functools.partial(watch.around, getattr(store, name), name)
            stack.enter_context(patch.object(store, name, step))
        stack.enter_context(_files.told(watch))
        yield


class _Files:
    """The file system's class, told to whoever watches: threads come and go in any order, so it is patched once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: dict[int, _Watch] = {}
        self._patches = ExitStack()

    @contextmanager
    def told(self, watch: _Watch) -> Iterator[None]:
        thread = threading.get_ident()
        with self._lock:
            assert thread not in self._watches, "one watch a thread"
            if not self._watches:
                for name in FILE_STEPS:
                    self._patches.enter_context(patch.object(LocalFileSystem, name, self._step(name)))
            self._watches[thread] = watch
        try:
            yield
        finally:
            with self._lock:
                del self._watches[thread]
                if not self._watches:
                    self._patches.close()

    def _step(self, name: str) -> Callable[..., Any]:
        original = getattr(LocalFileSystem, name)

        def step(filesystem: LocalFileSystem, *args: Any, **kwargs: Any) -> Any:
            watch = self._watches.get(threading.get_ident())
            bound = functools.partial(original, filesystem)
            return bound(*args, **kwargs) if watch is None else watch.file_step(bound, name, *args, **kwargs)

        return step


_files = _Files()
