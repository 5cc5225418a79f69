"""Counts what `next_wakeup` reads, without the JIT: `NUMBA_DISABLE_JIT=1 python -m
tests.timers.wakeup_reads`. Prints, for each timer and variable, pairs of its value and the reads.
"""

# Private members: the arrays and the heap that are read.

import json
from dataclasses import replace
from functools import partial

import numpy as np

from tests.timers.test_growth import ROTATIONS, WHEEL_SIZES, Setting, tick_of
from timers.registry import names, timer_class
from timers.schemes.heapq_delay_queue import HeapqDelayQueue

SIZES = [2**k for k in range(6, 12)]


class Counted:
    """Counts how often something is read from an array or a list."""

    reads = 0

    def __getitem__(self, index):
        Counted.reads += 1
        return super().__getitem__(index)


class CountedArray(Counted, np.ndarray):
    """An array of a State."""


class CountedList(Counted, list):
    """The heap of the baseline."""


def reads_of(setting):
    """The reads of one call, where all timers are far away."""
    timer = setting.timer()
    farthest = ROTATIONS * timer.parameters.get("wheel_size", 256) * tick_of(timer)
    timer.schedule_many(setting.random.integers(farthest // 2, farthest, setting.n))
    timer.advance(1)
    if isinstance(timer, HeapqDelayQueue):
        timer._heap, wakeup = CountedList(timer._heap), timer.next_wakeup
    else:
        state, view = timer.state, CountedArray
        counted = state._replace(nodes=state.nodes.view(view), cells=state.cells.view(view))
        wakeup = partial(timer._kernel.next_wakeup, counted)
    Counted.reads = 0
    wakeup()
    return Counted.reads


def main():
    found = {}
    for name in names():
        setting = Setting(timer_class(name))
        found[f"{name} N"] = [(n, reads_of(replace(setting, n=n))) for n in SIZES]
        if "wheel_size" in timer_class(name).traits.parameters:
            found[f"{name} wheel_size"] = [
                (size, reads_of(replace(setting, n=2048, wheel_size=size))) for size in WHEEL_SIZES
            ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
