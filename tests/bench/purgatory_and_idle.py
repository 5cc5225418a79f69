"""Measure purgatories and idle detectors, and draw the pictures in docs/services.md.

    python -m tests.bench.purgatory_and_idle [--rounds 5] [--draw]

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
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from statistics import mean, median

import numpy as np

from timers import CascadingWheel
from timers.services import (
    DelayedOperation,
    IdleDetector,
    IdleRing,
    Purgatory,
    ScanningIdleDetector,
    SystemTimer,
)

REQUESTS = 200_000  # per round
WAITING = 7_500  # pending requests: 150 000/s for 50 ms
HANDED_OVER = 250  # requests handed to the completing thread at a time
CORES = ALL_CORES, ONE_CORE = "all cores", "one core"

CONNECTIONS = 100_000
PACKETS = (1, 10, 100)  # per connection and minute
TIMEOUT = 30  # seconds
WARM_UP, MEASURED = 90, 20  # simulated seconds

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


# Purgatory


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


# Idle connections

DETECTORS = {
    "scan": ScanningIdleDetector,
    "timers": IdleDetector,
    "lazy timers": partial(IdleDetector, lazy=True),
    "ring": IdleRing,
}


def touches_of(packets_per_minute, seed):
    """For each second, the connections that send a packet or are new.

    There are always `CONNECTIONS`: an idle one is closed, and a new one takes its number in the
    same second.
    """
    random_numbers = np.random.default_rng(seed)
    idle_at = random_numbers.integers(1, TIMEOUT + 1, CONNECTIONS)
    touches = []
    for second in range(WARM_UP + MEASURED):
        count = random_numbers.poisson(CONNECTIONS * packets_per_minute / 60)
        packets = random_numbers.integers(0, CONNECTIONS, count)
        touches.append(np.concatenate([np.flatnonzero(idle_at <= second), packets]))
        idle_at[touches[-1]] = second + 1 + TIMEOUT
    return touches


def idle_cost(make, touches):
    """CPU seconds per simulated second."""
    detector = make(timeout=TIMEOUT, tick=1)
    detector.touch_many(np.arange(CONNECTIONS), at=0)
    for second in range(WARM_UP):
        detector.advance(second)
        detector.touch_many(touches[second])
    gc.collect()
    start = time.process_time()
    for second in range(WARM_UP, WARM_UP + MEASURED):
        detector.advance(second)
        detector.touch_many(touches[second])
    used = time.process_time() - start
    assert len(detector) == CONNECTIONS
    return used / MEASURED


def idle_costs(rounds):
    """Milliseconds per simulated second: {packets: {detector: samples}}."""
    costs = {packets: {name: [] for name in DETECTORS} for packets in PACKETS}
    for packets in PACKETS:
        for seed in range(rounds + 1):
            touches = touches_of(packets, seed)
            for name, make in DETECTORS.items():
                cost = 1e3 * idle_cost(make, touches)
                if seed:  # the first round warms up
                    costs[packets][name].append(cost)
    return costs


# Pictures

INK, BLUE, ORANGE, GREEN, PURPLE = "#1f2328", "#0072b2", "#d55e00", "#009e73", "#cc79a7"


def axes_of(width, height):
    """A white figure with one pair of axes."""
    # Imported here, so that collections in the measured programs do not scan its objects.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure, name):
    figure.savefig(PICTURES / f"{name}.png", dpi=150, metadata={"Software": None})


def draw_idle(costs):
    """Bars on a logarithmic scale, one per detector and packet rate."""
    figure, axes = axes_of(7.2, 3.4)
    colours = dict(zip(DETECTORS, (ORANGE, BLUE, PURPLE, GREEN), strict=True))
    for place, detectors in enumerate(costs.values()):
        for shift, (name, samples) in enumerate(detectors.items()):
            x, value = place + 0.21 * (shift - 1.5), median(samples)
            label = name if place == 0 else None
            axes.bar(x, value, 0.19, color=colours[name], label=label)
            axes.text(x, value * 1.08, f"{value:.2g}", ha="center", fontsize=9, color=INK)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(range(len(costs)), [str(packets) for packets in costs])
    axes.set_xlabel("packets per connection and minute")
    axes.set_ylabel("CPU, ms per simulated second")
    axes.set_title(
        f"Finding the idle among {CONNECTIONS:,} connections", loc="left", fontsize=11, color=INK
    )
    axes.margins(y=0.05)
    axes.set_ylim(top=400)  # room for the legend
    axes.legend(frameon=False, loc="upper center", ncols=len(DETECTORS))
    save(figure, "idle-detectors")


def draw_purgatories(rates):
    """Bars for each way to enqueue, with the rounds as points, and the targets."""
    figure, axes = axes_of(7.2, 4.0)
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
    for target, rows in ((150, (-0.45, 1.45)), (590, (1.55, 5.45))):
        axes.plot([target, target], rows, color=ORANGE, linewidth=1.5)
        axes.text(target, rows[0], f" target {target}", color=ORANGE, fontsize=9, va="bottom")
    axes.set_xlabel("thousand requests per second of CPU, at full speed")
    axes.set_title("Purgatory: watch three keys, complete, purge", loc="left", fontsize=11)
    axes.legend(frameon=False, loc="upper right")
    save(figure, "purgatory-rates")


def measure_purgatories(options):
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


def measure_idle(options):
    costs = idle_costs(options.rounds)
    for packets, detectors in costs.items():
        for name, samples in detectors.items():
            ratios = [a / b for a, b in zip(detectors["scan"], samples, strict=True)]
            print(
                f"idle, {packets:>3} packets/min, {name:<10} {median(samples):>7.2f} ms/s"
                f"  {median(ratios):.1f} x cheaper than the scan"
                f" [{min(ratios):.1f} .. {max(ratios):.1f}]"
            )
    if options.draw:
        draw_idle(costs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draw", action="store_true", help="write the pictures of the docs")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, {options.rounds} rounds", flush=True)
    measure_purgatories(options)
    measure_idle(options)


if __name__ == "__main__":
    main()
