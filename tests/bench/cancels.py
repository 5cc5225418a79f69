"""Where the time of a cancel goes: python -m tests.bench.cancels [--size 1e6] [--rounds 7].

A bare loop cancels all timers of a cascading wheel in random order, in several variants that take
one cost away each. All are measured in turns, in CPU time.
"""

import argparse
import mmap
import re
import time
from pathlib import Path
from statistics import quantiles

import numpy as np

from compare.base.arguments import counts
from compare.trial.bench.work import LONGEST_DELAY
from compare.trial.replay.loops import LOOK_AHEAD
from tests.bench.bare import cancel_all, insert
from timers import CascadingWheel
from timers.kernels.dispatch import cancel
from timers.kernels.jit import long_entry
from timers.kernels.memory import LINE
from timers.kernels.pool import NODE, index_of
from timers.kernels.prefetch import prefetch

WIDE = np.dtype(
    {
        "names": NODE.names,
        "formats": [NODE[name] for name in NODE.names],
        "offsets": [NODE.fields[name][1] for name in NODE.names],
        "itemsize": 32,
    }
)
"""A row that is never in two cache lines."""


@long_entry
def cancel_map_ahead(state, order, handles):
    """`cancel_all` that fetches the map of handles ahead."""
    for row in range(order.size - LOOK_AHEAD):
        prefetch(handles, np.uint32(order[row + LOOK_AHEAD]))
        cancel(state, handles[np.uint32(order[np.uint32(row)])])


@long_entry
def cancel_rows_ahead(state, order, handles):
    """`cancel_all` that fetches rows ahead, and the map of handles further ahead."""
    for row in range(order.size - 2 * LOOK_AHEAD):
        prefetch(handles, np.uint32(order[row + 2 * LOOK_AHEAD]))
        later = handles[np.uint32(order[row + LOOK_AHEAD])]
        prefetch(state.nodes, index_of(state.cells, later))
        cancel(state, handles[np.uint32(order[np.uint32(row)])])


def array(size, dtype, advice=mmap.MADV_HUGEPAGE):
    """An array at the start of a page, on huge or on small pages."""
    anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # others never get huge pages
    memory = mmap.mmap(-1, size * np.dtype(dtype).itemsize, anonymous)
    memory.madvise(advice)
    return np.frombuffer(memory, dtype, size)


def seconds_of(loop, dtype, pages, deadlines, order, *, in_order=False):
    """CPU seconds in which a loop cancels all timers of a new wheel."""
    size = deadlines.size
    state = CascadingWheel(capacity=size).state
    nodes, handles = array(state.nodes.size, dtype, pages), array(size, np.int64, pages)
    nodes[:] = state.nodes
    assert nodes.ctypes.data % LINE == 0
    state, handles[:] = state._replace(nodes=nodes), 0
    insert(state, deadlines, handles)
    if in_order:
        handles[:] = handles[order]
        order = np.arange(size, dtype=np.int32)
    started = time.thread_time()
    loop(state, order, handles)
    return time.thread_time() - started


HUGE, SMALL = mmap.MADV_HUGEPAGE, mmap.MADV_NOHUGEPAGE
VARIANTS = {
    "as it is: a map of handles, rows of 24 bytes, huge pages": (cancel_all, NODE, HUGE),
    "rows of 32 bytes": (cancel_all, WIDE, HUGE),
    "map of handles fetched ahead": (cancel_map_ahead, NODE, HUGE),
    "map fetched ahead, rows of 32 bytes": (cancel_map_ahead, WIDE, HUGE),
    "map and rows fetched ahead": (cancel_rows_ahead, NODE, HUGE),
    "small pages": (cancel_all, NODE, SMALL),
    "small pages, map fetched ahead": (cancel_map_ahead, NODE, SMALL),
}


def on_huge_pages():
    """KiB of this process that are on huge pages."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(re.search(r"AnonHugePages:\s+(\d+)", text)[1])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=counts, default=(10**6,))
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    before, rows = on_huge_pages(), array(10**6, NODE)
    rows[:] = 0
    share = (on_huge_pages() - before) * 1024 / rows.nbytes
    print(f"of a million rows, {share:.0%} are on huge pages")
    random = np.random.default_rng(0)
    for size in given.size:
        deadlines = random.integers(1, LONGEST_DELAY + 1, size)
        order = random.permutation(size).astype(np.int32)
        samples = {name: [] for name in [*VARIANTS, "handles in the order of the cancels"]}
        for _ in range(given.rounds + 1):  # the first one compiles
            for name, variant in VARIANTS.items():
                samples[name].append(seconds_of(*variant, deadlines, order))
            in_order = seconds_of(cancel_all, NODE, HUGE, deadlines, order, in_order=True)
            samples["handles in the order of the cancels"].append(in_order)
        print(f"{size:,} timers; ns for each cancel: median, quartiles; ratio to the first")
        first = samples[next(iter(samples))]
        for name, values in samples.items():
            low, middle, high = quantiles([value / size * 1e9 for value in values[1:]], n=4)
            ratios = [value / base for value, base in zip(values[1:], first[1:], strict=True)]
            ratio = quantiles(ratios, n=4)[1]
            print(f"{name:58} {middle:6.1f}  {low:6.1f} .. {high:6.1f}  {ratio:5.2f}")


if __name__ == "__main__":
    main()
