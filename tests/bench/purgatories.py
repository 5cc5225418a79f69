"""Measure purgatories, and draw the picture in docs/figures/purgatories.md.

    python -m tests.bench.purgatories [--rounds 5] [--draw]

CPU time of the whole process is measured, so that other programs interfere little. The purgatories
are also measured with both threads on one core, where the GIL moves no data between caches. On a
shared machine the speed of the processor varies: a loop of plain Python is timed before and after
each of their rounds, and the pictures show the rates at full speed, that of the fastest loop. With
`--draw`, pictures are written to docs/pictures.
"""

import argparse
import gc
import os
import threading
import time
from collections import deque
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from statistics import mean, median

from timers import CascadingWheel
from timers.services import DelayedOperation, Purgatory, SystemTimer

REQUESTS = 200_000  # per round
WAITING = 7_500  # pending requests: 150 000/s for 50 ms
HANDED_OVER = 250  # requests handed to the completing thread at a time
CORES = ALL_CORES, ONE_CORE = "all cores", "one core"
INK, BLUE, ORANGE, GREEN = "#1f2328", "#0072b2", "#d55e00", "#009e73"

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


class Request(DelayedOperation):
    """A request that another thread completes."""

    __slots__ = ()

    def try_complete(self):
        return False


def purgatory_rate(batch, purge_interval, collector="on", requests=REQUESTS):
    """Requests per second of CPU, from construction to completion.

    One thread enqueues them, one by one or in batches, under three keys that they all share. A
    second thread completes the oldest when more than `WAITING` are pending. The garbage collector
    is "on", "off" or "frozen": on, after `gc.freeze()`.
    """
    keys = ("one", "two", "three")
    handed_over = SimpleQueue()

    def complete():
        while (group := handed_over.get()) is not None:
            for request in group:
                request.force_complete()

    with SystemTimer(CascadingWheel(capacity=4 * WAITING)) as timer:
        purgatory = Purgatory("requests", timer, purge_interval=purge_interval)
        completer = threading.Thread(target=complete)
        completer.start()
        waiting = deque()
        gc.collect()
        if collector == "off":
            gc.disable()
        elif collector == "frozen":
            gc.freeze()
        start = time.process_time()
        for _ in range(0, requests, HANDED_OVER):
            if batch == 1:
                group = []
                for _ in range(HANDED_OVER):
                    request = Request(30.0)
                    purgatory.try_complete_else_watch(request, keys)
                    group.append(request)
            else:
                group = [Request(30.0) for _ in range(HANDED_OVER)]
                purgatory.try_complete_else_watch_many(group, keys)
            waiting.append(group)
            while len(waiting) > WAITING // HANDED_OVER:
                handed_over.put(waiting.popleft())
        for group in [*waiting, None]:
            handed_over.put(group)
        completer.join()
        used = time.process_time() - start
        gc.enable()
        gc.unfreeze()
        assert purgatory.delayed == 0
    return requests / used


def plain_loop():
    """CPU milliseconds of a loop of plain Python."""
    start = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return 1e3 * (time.process_time() - start)


def purgatories(rounds):
    """(way to enqueue, cores) -> rates of the rounds; the same at full speed; times of the loop."""
    kinds = {
        "one by one": (1, 1000),
        "one by one, gc.freeze()": (1, 1000, "frozen"),
        "batches of 250": (250, 1000),
        "batches, gc.freeze()": (250, 1000, "frozen"),
        "batches, gc.freeze(), purged every 10 000": (250, 10_000, "frozen"),
        "the same without garbage collector": (250, 10_000, "off"),
    }
    for kind in kinds.values():
        purgatory_rate(*kind, requests=20_000)
    available = os.sched_getaffinity(0)
    rates = {(name, cores): [] for name in kinds for cores in CORES}
    loops = [plain_loop()]
    try:
        for _ in range(rounds):
            for name, cores in rates:
                os.sched_setaffinity(0, available if cores == ALL_CORES else {min(available)})
                rates[name, cores].append(purgatory_rate(*kinds[name]))
                loops.append(plain_loop())
    finally:
        os.sched_setaffinity(0, available)
    slowness = [mean(pair) / min(loops) for pair in pairwise(loops)]
    scaled = {
        kind: [a * b for a, b in zip(samples, slowness[place :: len(rates)], strict=True)]
        for place, (kind, samples) in enumerate(rates.items())
    }
    return rates, scaled, loops


def draw_purgatories(rates):
    """Bars for each way to enqueue, with the rounds as points, and the targets."""
    # Imported here, so that collections in the measured programs do not scan its objects.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.0), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    names = list(dict.fromkeys(name for name, _ in rates))
    for (name, cores), samples in rates.items():
        first = cores == ALL_CORES
        place = names.index(name) + (-0.2 if first else 0.2)
        label = cores if name == names[0] else None
        colour = BLUE if first else GREEN
        axes.barh(place, median(samples) / 1e3, 0.36, color=colour, alpha=0.85, label=label)
        axes.plot([rate / 1e3 for rate in samples], [place] * len(samples), "o", color=INK, ms=3)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    for target, rows in ((150, (-0.45, 1.45)), (450, (1.55, 5.45))):
        axes.plot([target, target], rows, color=ORANGE, linewidth=1.5)
        axes.text(target, rows[0], f" target {target}", color=ORANGE, fontsize=9, va="bottom")
    axes.set_xlabel("thousand requests per second of CPU, at full speed")
    axes.set_title("Purgatory: watch three keys, complete, purge", loc="left", fontsize=11)
    axes.legend(frameon=False, loc="upper right")
    figure.savefig(PICTURES / "purgatory-rates.png", dpi=150, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draw", action="store_true", help="write the pictures of the docs")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, {options.rounds} rounds", flush=True)
    rates, scaled, loops = purgatories(options.rounds)
    print(f"plain loop: {median(loops):.0f} ms [{min(loops):.0f} .. {max(loops):.0f}]")
    for (name, cores), samples in scaled.items():
        spread = f"{min(samples):,.0f} .. {max(samples):,.0f}"
        print(
            f"purgatory, {name}, {cores}: {median(rates[name, cores]):,.0f} requests/s;"
            f" at full speed {median(samples):,.0f} [{spread}]"
        )
    if options.draw:
        draw_purgatories(scaled)


if __name__ == "__main__":
    main()
