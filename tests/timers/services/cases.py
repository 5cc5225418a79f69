"""Timers, clocks, operations and threads that the tests of the services share."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from timers import CascadingWheel, names, timer_class
from timers.services import DelayedOperation, ManualClock, Purgatory, SystemTimer

MS = 1_000_000  # nanoseconds

TIMERS = {name: timer_class(name) for name in names()}
"""Every timer of the registry, by name, with its defaults."""


def bounds_of(timer):
    """How early (if negative) and how late a timer may fire, in units."""
    return timer.traits.rounding(timer.parameters).bounds()


class Recorder:
    """A hook for errors that keeps what it gets."""

    def __init__(self):
        self.callbacks, self.errors = [], []

    def __call__(self, callback, error):
        self.callbacks.append(callback)
        self.errors.append(error)

    @property
    def texts(self):
        return [str(error) for error in self.errors]


def manual(**options):
    """A ManualClock and a SystemTimer on it."""
    clock = ManualClock()
    return clock, SystemTimer(CascadingWheel(), clock=clock, **options)


class SettableClock:
    """A clock that tests set to any value, backwards as well."""

    value = 0

    def now(self):
        return self.value

    wall = now


def raising(error):
    """A callback or hook that raises `error`."""

    def callback(*_):
        raise error

    return callback


def caller_driven(timer=None):
    """A clock that the test sets, and a SystemTimer that the test advances."""
    clock = SettableClock()
    timer = CascadingWheel() if timer is None else timer
    return clock, SystemTimer(timer, clock=clock, start=False)


def new_purgatory(*, on_error=None, executor=None, **options):
    """A purgatory on a ManualClock, as its attribute `clock`."""
    clock, timer = manual(on_error=on_error, executor=executor)
    purgatory = Purgatory("test", timer, **options)
    purgatory.clock = clock
    return purgatory


class Waiting(DelayedOperation):
    """An operation whose condition the test sets, and which keeps what it was told.

    `during(number)` is called in each try, with the number of the try, after it has looked at its
    condition.
    """

    def __init__(self, delay=1.0, *, ready=False, lock=None, during=lambda number: None):
        super().__init__(delay, lock)
        self.delay, self.ready, self.during = delay, ready, during
        self.tries, self.log = 0, []

    def try_complete(self):
        self.tries += 1
        ready = self.ready
        self.during(self.tries)
        return ready and self.force_complete()

    def on_complete(self):
        self.log.append("complete")

    def on_expiration(self):
        self.log.append("expire")


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
    with ThreadPoolExecutor(1) as other:
        other.submit(lock.acquire).result(10)
        try:
            yield
        finally:
            other.submit(lock.release).result(10)


def in_thread(function, *args):
    """What a function returns on another thread, which must end."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args)), daemon=True)
    thread.start()
    thread.join(10)
    assert results, "the thread waits for something"
    return results[0]
