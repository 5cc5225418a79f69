"""The cost of growth: python -m tests.bench.growth [--size 1e6] [--rounds 5] [TIMER ...].

A new timer starts `size` timers with random delays, 256 in each call. Each is filled in a new
process, once where the system reserves addresses, so that arrays grow in place, and once where it
does not, so that they are copied; in turns. Times are CPU time. Linux only.
"""

import argparse
import json
import mmap
import sys
import time
from statistics import median

import numpy as np

from compare.base.arguments import counts
from compare.trial.bench.process import in_new_process, resident
from compare.trial.bench.work import LONGEST_DELAY
from timers.registry import names, timer_class
from timers.schemes.base import KernelTimer

BATCH = 256
COLUMNS = ("ns an insert", "longest call [ms]", "bytes held", "bytes of the process, at the peak")


def refuse(*arguments, **keywords):
    raise OSError("no addresses are reserved")


def filled(name, size, *, in_place):
    """The COLUMNS of one timer, in this process."""
    if not in_place:
        mmap.mmap = refuse
    deadlines = np.random.default_rng(0).integers(1, LONGEST_DELAY, BATCH)
    small = timer_class(name)(capacity=BATCH)
    for _ in range(2):  # all code is loaded, and it has grown
        small.schedule_many(deadlines)
    before, longest = resident("VmRSS"), 0.0
    timer, started = timer_class(name)(), time.thread_time()
    for _ in range(0, size, BATCH):
        call = time.thread_time()
        timer.schedule_many(deadlines)
        longest = max(longest, time.thread_time() - call)
    seconds = time.thread_time() - started
    peak = resident("VmHWM") - before
    return [1e9 * seconds / size, 1e3 * longest, timer.nbytes / size, peak / size]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("timers", nargs="*", metavar="TIMER")
    parser.add_argument("--size", type=counts, default=(10**6,))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", choices=("True", "False"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    [size] = arguments.size
    if arguments.one:
        in_place = arguments.one == "True"
        print(json.dumps(filled(arguments.timers[0], size, in_place=in_place)))
        return
    kernels = [name for name in names() if issubclass(timer_class(name), KernelTimer)]
    # Where lists are sorted, each of a million inserts would search many others.
    in_order = ("ordered-list", "sorted-hashed-wheel")
    chosen = arguments.timers or [name for name in kernels if name not in in_order]
    print(f"{size} timers; medians of {arguments.rounds} rounds: {'; '.join(COLUMNS)}")
    for name in chosen:
        rounds = {True: [], False: []}
        for _ in range(arguments.rounds):
            for in_place, figures in rounds.items():
                command = (name, "--size", size, "--one", in_place)
                figures.append(in_new_process("tests.bench.growth", *command))
        for in_place, figures in rounds.items():
            middle = [median(column) for column in zip(*figures, strict=True)]
            way = "in place" if in_place else "copied"
            print(f"{name:20} {way:9}", *(f"{figure:8.2f}" for figure in middle))


if __name__ == "__main__":
    sys.exit(main())
