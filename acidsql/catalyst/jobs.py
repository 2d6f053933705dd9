"""Jobs of Spark that are ended with the call that waits for them."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from acidsql.catalyst.java import Java

logger = logging.getLogger(__name__)

THREAD = "acidsql-cancel-jobs"
"""The name of the threads that cancel the jobs of an interrupted statement, also after its end."""
_END = 30.0
"""Seconds that jobs have for their end."""
_MOMENT = 0.05
_QUIET = 5
"""Looks without a job after which no other one follows: a statement may have several, one after another."""
_LATER = 0.25
"""Seconds between two looks for what is still planned by other threads of the JVM."""
_CALLS = "py4j.commands."
"""The package of what carries out calls: among the outermost frames of a thread of py4j's."""
_OUTERMOST = 8
_CANCELLED = "SPARK_JOB_CANCELLED"
"""In what Spark answers where somebody has cancelled a job, as the shell does for Ctrl-C."""


@contextmanager
def ended_with_the_call(spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs that the block has started, and wait for their end, where it is interrupted.

    PySpark's own answer to Ctrl-C, to cancel all jobs, fails where Python waits for the JVM, which goes on: what the
    interrupted statement has removed, a job that is still writing would make again, and one that is still being planned
    would start when nobody waits for it any more.
    """
    context, tag = spark.sparkContext, f"acidsql-{uuid.uuid4().hex}"
    thread = Java.of(spark).static("java.lang.Thread", "currentThread")()
    context.addJobTag(tag)
    try:
        yield
    except (Py4JJavaError, PySparkException) as e:  # the JVM has answered: nothing is written any more
        if _CANCELLED in str(e):
            _start_to_cancel(context, tag, thread).set()
        raise
    except BaseException:
        # on a connection of its own: that of this thread may be in the middle of a call, or half closed
        _start_to_cancel(context, tag, thread).wait()
        raise
    finally:
        with suppress(Py4JError, OSError):  # of a JVM that is gone: the statement has met it, or will
            context.removeJobTag(tag)


def _start_to_cancel(context: SparkContext, tag: str, thread: Any) -> Event:
    """Cancel jobs in the background; what is set when all that run have ended."""
    has_ended = Event()
    Thread(target=_cancel, args=(context, tag, thread, has_ended), name=THREAD, daemon=True).start()
    return has_ended


def _cancel(context: SparkContext, tag: str, thread: Any, has_ended: Event) -> None:
    """Cancel jobs until none comes any more.

    Once the call has ended nothing is written any more. But py4j ends it by interrupting its thread, and Spark plans
    broadcasts in threads of its own, which start their jobs all the same. It also closes, a little later, the
    connections of all other threads (``CancelCommand`` shuts down what has the same *local* port), this one's too.
    """
    end, quiet = time.monotonic() + _END, 0
    try:
        while time.monotonic() < end:
            try:
                context.cancelJobsWithTag(tag)
                is_quiet = not (_is_in_call(thread) or _is_active(context, tag))
            except Py4JJavaError:  # the JVM has answered, such as of a context that was stopped
                raise
            except Py4JError as e:
                logger.debug("asked again for the end of jobs: %s", e)
                is_quiet = False
            quiet = quiet + 1 if is_quiet else 0
            if quiet >= _QUIET:
                has_ended.set()
            time.sleep(_LATER if has_ended.is_set() else _MOMENT)
    except (Py4JJavaError, OSError, AttributeError) as e:  # OSError: of a JVM that is gone; AttributeError: see above
        if not has_ended.is_set():
            logger.warning("jobs of an interrupted statement could not be cancelled: %s", e)
    finally:
        has_ended.set()


def _is_in_call(thread: Any) -> bool:
    """Whether a thread of the JVM, another one than answers here, still carries out a call."""
    frames = thread.getStackTrace()
    return any(str(frame.getClassName()).startswith(_CALLS) for frame in frames[-_OUTERMOST:])


def _is_active(context: SparkContext, tag: str) -> bool:
    """Whether a job with the tag runs, or a task of one that was cancelled."""
    status = context.statusTracker()
    found = [status.getJobInfo(number) for number in context._jsc.sc().statusTracker().getJobIdsForTag(tag)]
    jobs = [job for job in found if job is not None]
    stages = [status.getStageInfo(number) for job in jobs for number in job.stageIds]
    return any(job.status == "RUNNING" for job in jobs) or any(s is not None and s.numActiveTasks for s in stages)
