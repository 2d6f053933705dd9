"""Errors that acidsql's plans raise while Spark runs them: a value too long, a NULL, a row that MERGE matches twice.

The plan raises them with :func:`failing`, and runs inside :func:`own_failures`, which turns the failure of a Spark task
into an error of acidsql.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, UnknownException
from pyspark.errors.exceptions.captured import SparkRuntimeException, convert_exception

from acidsql.catalyst import MAX_RESULT_SIZE
from acidsql.errors import AcidError, ConstraintViolation
from acidsql.interrupts import interrupt_behind
from acidsql.plan.text import literal

_OPEN, _CLOSE = "acidsql<", ">acidsql"
_FOUND = re.compile(rf"\[USER_RAISED_EXCEPTION\] {_OPEN}(.*?){_CLOSE}", re.DOTALL)
"""Behind the condition of ``raise_error``: other errors print plans that have such expressions, and users' texts."""


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
        KeyboardInterrupt: When it was interrupted, also where that has made Spark fail.
        ConstraintViolation: When the plan failed by :func:`failing`.
        AcidError: When the driver has to hold more than Spark lets it.
        pyspark.errors.PySparkException: For other failures whose cause Spark knows.
    """
    before = sys.exc_info()[1]
    try:
        yield
    except (PySparkException, Py4JJavaError) as e:
        interrupt = interrupt_behind(e, before)
        if interrupt is not None:
            raise interrupt from None
        message = failure_of(e)
        if message is not None:
            raise ConstraintViolation(message) from None
        if MAX_RESULT_SIZE in str(e):
            raise AcidError(
                f"The driver has to hold more rows of this statement than {MAX_RESULT_SIZE} allows",
                hint=f"Start Spark with a larger {MAX_RESULT_SIZE}.",
            ) from e
        if isinstance(e, Py4JJavaError):
            _raise_cause(e)
        raise


def _raise_cause(error: Py4JJavaError) -> None:
    """Raise the Spark error that caused an error of the thread that waited for it."""
    cause = error.java_exception
    while cause is not None:
        known = convert_exception(cause)
        if not isinstance(known, UnknownException):
            raise known from error
        plain = SparkRuntimeException(origin=cause)
        if plain.getCondition() is not None:  # PySpark has no class for a SparkException
            raise plain from error
        cause = cause.getCause()
