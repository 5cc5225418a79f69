"""A clock for tests of what is timed."""

import pytest

import compare.trial.replay.loops as loops
from timers.kernels.pool import PENDING


class FakeClock:
    """Seconds that pass only when a test says so."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


COSTS = {"run": (1000, 10), "drain": (2000, 20), "tick": (3000, 30)}
"""Seconds of a call of a compiled loop, and of each operation or timer pending."""


def spend_in_compiled_code(patch: pytest.MonkeyPatch, clock: FakeClock) -> list[tuple[str, float]]:
    """Let calls of compiled loops take COSTS: of four with nothing to do, one takes
    more and one takes less.

    Returns a list to which the name and the seconds of each are added.
    """
    calls: list[tuple[str, float]] = []

    def spending(name):
        real, (fixed, each) = getattr(loops, name), COSTS[name]

        def call(state, *arguments):
            work = arguments[0].size if name == "run" else int(state.cells[PENDING])
            real(state, *arguments)
            unlike = 0 if work else (900, 0, -400, 0)[len(calls) % 4]
            calls.append((name, fixed + each * work + unlike))
            clock.seconds += calls[-1][1]

        patch.setattr(loops, name, call)

    for name in COSTS:
        spending(name)
    return calls
