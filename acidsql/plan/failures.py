"""Errors that acidsql's plans raise while Spark runs them: a value too long, a NULL, a row that MERGE matches twice.

The plan raises them with :func:`failing`, and runs inside :func:`own_failures`, which turns the failure of a Spark task
into an error of acidsql.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from acidsql.errors import ConstraintViolation
from acidsql.plan.text import literal

_OPEN, _CLOSE = "acidsql<", ">acidsql"
_FOUND = re.compile(f"{_OPEN}(.*?){_CLOSE}", re.DOTALL)


def failing(message: str) -> str:
    """An expression that fails with a message.

    Args:
        message: The text; an expression in it would not be evaluated.
    """
    return failing_with(literal(message))


def failing_with(message: str) -> str:
    """As :func:`failing`, the message being a SQL expression."""
    return f"raise_error(concat('{_OPEN}', {message}, '{_CLOSE}'))"


def failure_of(error: Exception) -> str | None:
    """The message of :func:`failing` in a Spark error; None for any other error."""
    found = _FOUND.search(str(error))
    return None if found is None else found[1]


@contextmanager
def own_failures() -> Iterator[None]:
    """Run Spark on a plan.

    Raises:
        ConstraintViolation: When the plan failed by :func:`failing`.
    """
    try:
        yield
    except PySparkException as e:
        message = failure_of(e)
        if message is None:
            raise
        raise ConstraintViolation(message) from None
