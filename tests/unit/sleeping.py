"""Sleeps of the code under test, without those of others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def this_thread_instead(does: Callable[[float], object]) -> Callable[[float], None]:
    """A ``time.sleep`` for tests: this thread does something else, all others sleep as ever.

    The module is that of the whole process, in which threads of py4j sleep all day.
    """
    thread, sleep = threading.get_ident(), time.sleep

    def slept(seconds: float) -> None:
        if threading.get_ident() == thread:
            does(seconds)
        else:
            sleep(seconds)

    return slept
