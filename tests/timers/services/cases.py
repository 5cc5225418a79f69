"""Timers and clocks that the tests of the services share."""

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
