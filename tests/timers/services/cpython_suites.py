"""Runs one of CPython's own test suites of asyncio on loops of `wheel_event_loop`:
`python -m tests.timers.services.cpython_suites SUITE [BASE]`.

The `test` package of the interpreter is used as it is. BASE is one of BASES. On asyncio's loop,
wherever a test makes a loop, it gets one whose calls are in a timer: by the policy, by the class,
and by the loop of the tests themselves, whose time jumps. On uvloop it is the loops of the policy
that are replaced, as `uvloop.install` does: "uvloop" with the wheel, "plain uvloop" without it, for
the tests that uvloop fails.
"""

# Private members: the class of the loops, and asyncio's own place for the loops of its policies.

import asyncio
import gc
import importlib
import json
import sys
import unittest
from asyncio import base_events

from timers import CascadingWheel
from timers.services import event_loop

UNIT_NS = 100_000
BASES = ("asyncio", "uvloop", "plain uvloop")

scheduled = 0
"""Calls that went into a timer."""


def on_a_wheel(base):
    """A class of loops with the arguments of `base`, whose calls are in a timer."""

    class OnAWheel(event_loop._wheel_class(base)):
        def __init__(self, *arguments):
            super().__init__(CascadingWheel(), UNIT_NS, *arguments)

        def _call_at(self, *call):
            global scheduled
            scheduled += 1
            return super()._call_at(*call)

    return OnAWheel


def recording(test_loop):
    """The loop of the tests, whose time jumps, records the moments for which the tests ask for
    calls, and not those for which the wheel's loop asks its base.
    """

    class Recording(test_loop):
        def call_at(self, when, callback, *args, context=None):
            if callback is not self._passing:
                self._timers.append(when)
            return super().call_at(when, callback, *args, context=context)

        def call_later(self, delay, callback, *args, context=None):
            if callback is not self._passing:
                self._timers.append(self.time() + delay)
            return super().call_later(delay, callback, *args, context=context)

        def _pass(self, *call, context=None):
            recorded = len(self._timers)
            handle = super()._pass(*call, context=context)
            del self._timers[recorded:]
            return handle

    return Recording


def substitute(suite):
    """Let everything that makes a loop make one on a wheel."""
    selector_loop = on_a_wheel(asyncio.SelectorEventLoop)
    for module in (asyncio, asyncio.unix_events):
        for name in ("SelectorEventLoop", "_UnixSelectorEventLoop", "EventLoop"):
            if hasattr(module, name):
                setattr(module, name, selector_loop)
    asyncio.unix_events._UnixDefaultEventLoopPolicy._loop_factory = selector_loop
    utils = importlib.import_module("test.test_asyncio.utils")
    utils.TestLoop = recording(on_a_wheel(utils.TestLoop))
    if suite == "test_base_events":  # the other suites make none, and patch this class
        base_events.BaseEventLoop = on_a_wheel(base_events.BaseEventLoop)


def substitute_uvloop(base):
    """Let policies make loops of uvloop."""
    import uvloop

    loop_class = on_a_wheel(uvloop.Loop) if base == "uvloop" else uvloop.Loop
    asyncio.unix_events._UnixDefaultEventLoopPolicy._loop_factory = loop_class


def run(name):
    """The result of the tests with a name."""
    tests = unittest.defaultTestLoader.loadTestsFromName(f"test.test_asyncio.{name}")
    return unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(tests)


def fails_again(name):
    """Whether a test that has failed fails twice more.

    Some of these tests wait in real time for less than a busy machine may stall.
    """
    return not any(run(name).wasSuccessful() for _ in range(2))


def main():
    """Print how many tests of the suite ran, how many calls were in a timer, and what failed."""
    suite, base = (*sys.argv[1:], BASES[0])[:2]
    event_loop.wheel_event_loop().close()  # loads the compiled code
    event_loop.SHORT_S = event_loop.AT_ONCE_S  # most delays of these tests are short
    # A collection that looks at all of Numba's objects takes longer than some tests wait for.
    gc.freeze()
    if base == BASES[0]:
        substitute(suite)
    else:
        substitute_uvloop(base)
    result = run(suite)
    names = [test.id().split(".", 2)[2] for test, _ in [*result.failures, *result.errors]]
    failed = [name.split(".", 1)[1] for name in names if fails_again(name)]
    print(json.dumps([result.testsRun, scheduled, failed]))


if __name__ == "__main__":
    main()
