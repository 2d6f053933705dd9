"""Python functions that the JVM applies to the nodes of a plan, by py4j's callback server as ``foreachBatch`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def _unchanged(node: Any) -> Any:
    return node


class _Function:
    """A Python function as a ``scala.PartialFunction`` that is defined everywhere; its first error is kept.

    So are its answers: when Python drops an object of the JVM, a thread of its own tells the JVM, and that may come
    before the JVM has looked up which object the answer names. It would be null.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function: Callable[[Any], Any] = function
        self._answers: list[Any] = []
        self.error: BaseException | None = None

    def forget(self) -> None:
        """Hold on to nothing: the JVM keeps this object until its next garbage collection, and with it whole plans."""
        self._function = _unchanged
        self._answers.clear()

    def applyOrElse(self, node: Any, default: Any) -> Any:
        if self.error is None:
            try:
                made = self._function(node)
                self._answers += (node, made)
                return made
            except BaseException as e:  # an exception must not pass through the JVM: it would lose its type
                self.error = e
        self._answers.append(node)
        return node

    def apply(self, node: Any) -> Any:
        return self.applyOrElse(node, None)

    def isDefinedAt(self, node: Any) -> bool:
        return True

    class Java:
        implements = ("scala.PartialFunction",)


@contextmanager
def rule(function: Callable[[Any], Any]) -> Iterator[_Function]:
    """A Python function for the JVM to apply to nodes; its error is raised at the end of the block."""
    made = _Function(function)
    try:
        yield made
    finally:
        made.forget()
    if made.error is not None:
        raise made.error
