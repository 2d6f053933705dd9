"""Jobs of Spark that are ended with the call that waits for them."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_END = 30.0
"""Seconds that jobs have for their end."""
_MOMENT = 0.05
_QUIET = 4
"""Moments without a job after which no other one follows: a statement may have several, one after another."""


@contextmanager
def ended_with_the_call(spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs that the block has started, and wait for their end, where it is interrupted.

    PySpark's own answer to Ctrl-C, to cancel all jobs, fails where Python waits for the JVM, which goes on: what the
    interrupted statement has removed, a job that is still writing would make again.
    """
    context, tag = spark.sparkContext, f"acidsql-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield
    except (Py4JJavaError, PySparkException):  # the JVM has answered: the jobs have ended
        raise
    except BaseException:
        try:
            _cancel(context, tag)
        except (Py4JError, OSError) as e:
            logger.warning("jobs of an interrupted statement could not be cancelled: %s", e)
        raise
    finally:
        with suppress(Py4JError, OSError):  # of a JVM that is gone: the statement has met it, or will
            context.removeJobTag(tag)


def _cancel(context: SparkContext, tag: str) -> None:
    end, quiet = time.monotonic() + _END, 0
    while quiet < _QUIET and time.monotonic() < end:
        context.cancelJobsWithTag(tag)
        time.sleep(_MOMENT)
        quiet = 0 if _is_active(context, tag) else quiet + 1


def _is_active(context: SparkContext, tag: str) -> bool:
    """Whether a job with the tag runs, or a task of one that was cancelled."""
    status = context.statusTracker()
    found = [status.getJobInfo(number) for number in context._jsc.sc().statusTracker().getJobIdsForTag(tag)]
    jobs = [job for job in found if job is not None]
    stages = [status.getStageInfo(number) for job in jobs for number in job.stageIds]
    return any(job.status == "RUNNING" for job in jobs) or any(s is not None and s.numActiveTasks for s in stages)
