"""Timers, clocks and threads that the tests of the services share."""

import threading
from contextlib import contextmanager

from timers import names, timer_class
from timers.services import ManualClock, SystemTimer

MS = 1_000_000  # nanoseconds

TIMERS = {name: timer_class(name) for name in names()}
"""Every timer of the registry, by name, with its defaults."""


class Recorder:
    """A hook for errors that keeps what it gets."""

    def __init__(self):
        self.errors = []

    def __call__(self, callback, error):
        self.errors.append(error)

    @property
    def texts(self):
        return [str(error) for error in self.errors]


def manual(name="cascading-wheel", **options):
    """A ManualClock and a SystemTimer on it."""
    clock = ManualClock()
    return clock, SystemTimer(TIMERS[name](), clock=clock, **options)


class SettableClock:
    """A clock that tests set to any value, backwards as well."""

    def __init__(self, now=0):
        self.value = now

    def now(self):
        return self.value

    def wall(self):
        return self.value


def raising(error):
    """A callback that raises `error`."""

    def callback():
        raise error

    return callback


def caller_driven(clock, name="cascading-wheel", **options):
    """A SystemTimer that the test advances."""
    return SystemTimer(TIMERS[name](), clock=clock, start=False, **options)


class Interposed:
    """A timer that calls `before[name]` once, just before the method `name` of the real one runs,
    and `after[name]` once, just after it.
    """

    def __init__(self, timer):
        self.timer, self.before, self.after = timer, {}, {}

    def __len__(self):
        return len(self.timer)

    def __getattr__(self, name):
        attribute = getattr(self.timer, name)
        if not callable(attribute):
            return attribute

        def method(*args):
            self.before.pop(name, lambda: None)()
            result = attribute(*args)
            self.after.pop(name, lambda: None)()
            return result

        return method


@contextmanager
def held_elsewhere(lock):
    """Within it, another thread holds the lock."""
    held, release = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    try:
        yield
    finally:
        release.set()
        thread.join(10)


def without_deadlock(function):
    """What the function returns in another thread, which must end."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    return results[0]
