"""Ctrl-C while parts of work run on other threads."""

import signal
import threading
import time
from collections.abc import Callable
from itertools import count


def interrupt_until(stopping: Callable[[], bool]) -> None:
    """Interrupt the main thread, until it has stopped the parts.

    Once is not enough: CPython notices a signal that comes just before the main thread begins to
    wait only when it has waited. That happens in about 3 of 1000 cases.
    """
    for waited in count():
        if stopping():
            return
        if waited % 1000 == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.001)
