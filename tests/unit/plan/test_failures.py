"""What becomes of an error that Spark raises while a plan runs."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from acidsql.plan.failures import own_failures


def fail() -> None:
    raise PySparkException("SPARK_JOB_CANCELLED")


def interrupted() -> None:
    try:
        raise KeyboardInterrupt("by somebody")
    finally:
        fail()


def failed_in_an_answer() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with own_failures():
            fail()


def test_an_interrupt_that_has_made_spark_fail_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt, match="by somebody"), own_failures(), own_failures():
        interrupted()


def test_an_error_after_an_interrupt_that_is_over_is_an_error() -> None:
    """A program that is interrupted may go on, in the middle of its answer to that."""
    with pytest.raises(PySparkException, match="SPARK_JOB_CANCELLED"):
        failed_in_an_answer()
