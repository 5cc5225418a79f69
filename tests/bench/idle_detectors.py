"""Measure IdleDetector beside two scans.

    python -m tests.bench.idle_detectors [--rounds 5] [--connections 10000,100000]

Connections are open all the time: one that falls idle is closed, and a new one gets its number in
the same second. Packets come at random times, each second's at once. CPU time is measured. The
baselines look at all connections in each `advance`: a dict of the last packets, by the same keys as
the detector, and an array of them, by numbers.
"""

import argparse
import gc
import time
from statistics import median

import numpy as np

from timers.services import IdleDetector

CONNECTIONS = (10_000, 100_000, 1_000_000)
LARGEST = 10_000_000  # connections, of the array alone
PACKETS = (1, 10, 100)  # per connection and minute
TICKS = (1, 0.1)  # seconds between two calls of `advance`
TIMEOUT = 30  # seconds
WARM_UP, MEASURED = 61, 10  # simulated seconds


class DictScan:
    """Connections with any keys."""

    def __init__(self, count):
        self.last_packet = {}

    def touch_many(self, keys, at):
        self.last_packet.update(dict.fromkeys(keys, at))

    def advance(self, now):
        idle = [key for key, last in self.last_packet.items() if now - last >= TIMEOUT]
        for key in idle:
            del self.last_packet[key]
        return idle


class ArrayScan:
    """Connections with numbers up to `count`."""

    def __init__(self, count):
        self.last_packet = np.full(count, np.inf)

    def touch_many(self, numbers, at):
        self.last_packet[numbers] = at

    def advance(self, now):
        idle = np.flatnonzero(now - self.last_packet >= TIMEOUT)
        self.last_packet[idle] = np.inf
        return idle


def idle_detector(count):
    return IdleDetector(TIMEOUT, tick=min(TICKS))


DETECTORS = {"array scan": ArrayScan, "dict scan": DictScan, "IdleDetector": idle_detector}


def touches_of(count, packets_per_minute, seed):
    """For each second, the connections that send a packet or are new."""
    random_numbers = np.random.default_rng(seed)
    idle_at = random_numbers.integers(1, TIMEOUT + 1, count)
    touches = []
    for second in range(WARM_UP + MEASURED):
        packets = random_numbers.poisson(count * packets_per_minute / 60)
        sending = random_numbers.integers(0, count, packets)
        touches.append(np.concatenate([np.flatnonzero(idle_at <= second), sending]))
        idle_at[touches[-1]] = second + TIMEOUT
    return touches


def cost(make, count, touches, tick):
    """CPU milliseconds per simulated second, and of the longest call of `advance`."""
    detector = make(count)
    detector.touch_many(range(count) if make is not ArrayScan else np.arange(count), at=0)
    steps = round(1 / tick)
    longest = 0.0
    for second, touched in enumerate(touches):
        if second == WARM_UP:
            gc.collect()
            started, longest = time.process_time(), 0.0
        keys = touched if make is ArrayScan else touched.tolist()
        detector.touch_many(keys, at=second)
        for step in range(steps):
            before = time.process_time()
            detector.advance(second + step / steps)
            longest = max(longest, time.process_time() - before)
    return 1e3 * (time.process_time() - started) / MEASURED, 1e3 * longest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", default=",".join(map(str, CONNECTIONS)))
    options = parser.parse_args()
    cost(idle_detector, 100, touches_of(100, 1, 0), 1)  # compiles
    print("CPU per simulated second, and of the longest advance, in ms: medians of the rounds")
    counts = [int(text) for text in options.connections.split(",")]
    cases = [(count, packets, tick) for count in counts for packets in PACKETS for tick in TICKS]
    cases += [(LARGEST, packets, 1) for packets in PACKETS[:2]]
    for count, packets, tick in cases:
        figures = {name: [] for name in DETECTORS if count < LARGEST or name == "array scan"}
        for seed in range(options.rounds):
            touches = touches_of(count, packets, seed)
            for name, samples in figures.items():
                samples.append(cost(DETECTORS[name], count, touches, tick))
        texts = []
        for name, samples in figures.items():
            per_second, longest = (median(column) for column in zip(*samples, strict=True))
            texts.append(f"{name} {per_second:.2f}, {longest:.2f}")
        print(f"{count:>10,} x {packets:>3}/min, tick {tick} s: {'; '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
