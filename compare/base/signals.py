"""Signals that wait while something is begun that an exception must not interrupt."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_INTERRUPTING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred_signals() -> Iterator[Callable[[], None]]:
    """Let SIGINT and SIGTERM wait until the block calls the yielded function, or ends.

    Their handlers raise exceptions. One that arrives while a process starts would leave the process
    running, unknown to its caller. In other threads nothing has to wait: Python handles signals in
    the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _INTERRUPTING}
    # What is ignored, or ends this process, stays as it is.
    former = {number: handler for number, handler in handlers.items() if callable(handler)}

    def handle() -> None:
        while former:
            signal.signal(*former.popitem())
        while came:
            signal.raise_signal(came.pop())

    try:
        for number in former:
            signal.signal(number, lambda number, _: came.append(number))
        yield handle
    finally:
        handle()
