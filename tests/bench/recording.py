"""What recording costs: CPU time of `call_later` and `cancel` with and without it, in turns.

    python -m tests.bench.recording [--rounds 15] [--pending 1000]

Counts CPU time of the whole process, so the thread that writes the events is included. An event is
a start or a cancel. Prints nanoseconds of overhead per event: the difference of the least of each,
and the median and the quartiles of the rounds.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import quantiles
from typing import Any

from compare.traffic.recording.events import finish
from compare.traffic.recording.recorder import Recorder
from tests.bench.services import (
    PAIRS,
    WHEEL_LOOP,
    LoopCalls,
    ServiceCalls,
    alternate,
    delays_of,
    nothing,
)

TARGET_NS = 1000


def overhead(run: Callable[[int], float], events: int, rounds: int) -> tuple[float, list[float]]:
    """Nanoseconds per event: between the least of each, and for each round."""

    def recorded(seed: int) -> float:
        """Seconds with a recorder, which does not turn the events into a trace."""
        start = time.process_time()
        with tempfile.TemporaryDirectory() as directory, closing(Recorder(directory)):
            set_up = time.process_time() - start
            seconds = run(seed)
            start = time.process_time()
        return set_up + seconds + time.process_time() - start

    plain, with_recorder = alternate(run, recorded, rounds)
    differences = [b - a for a, b in zip(plain, with_recorder, strict=True)]
    return (min(with_recorder) - min(plain)) / events * 1e9, [s / events * 1e9 for s in differences]


def finishing(events: int) -> float:
    """Seconds that it takes to turn `events` events into a trace."""
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(directory)
        loop = asyncio.new_event_loop()
        handles = [loop.call_later(30.0, nothing) for _ in range(1000)]
        for i in range(events // 2):
            handles[i % 1000].cancel()
            handles[i % 1000] = loop.call_later(30.0, nothing)
        recorder.close()
        loop.close()
        start = time.process_time()
        finish(Path(directory))
        return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pending", type=int, default=1000)
    options = parser.parse_args()
    contenders = {
        "asyncio: call_later, cancel": LoopCalls("uniform", options.pending),
        "a wheel's loop: call_later, cancel": LoopCalls("uniform", options.pending, WHEEL_LOOP),
        "SystemTimer: schedule, cancel": ServiceCalls("uniform", options.pending),
    }
    for name, calls in contenders.items():
        with closing(calls):

            def run(seed: int, calls: Any = calls) -> float:
                return calls.seconds(delays_of("uniform", PAIRS, seed), False)

            show(name, overhead(run, 2 * PAIRS, options.rounds))
    events = 400_000
    print(f"{finishing(events) / events * 1e9:.0f} ns per event to make the trace")


def show(name: str, result: tuple[float, list[float]]) -> None:
    """Print one line."""
    minimum, samples = result
    low, middle, high = quantiles(samples, n=4)
    spread = f"{middle:.0f} [{low:.0f} .. {high:.0f}]"
    print(f"{name:<36} {minimum:>5.0f} ns per event  {spread}  at most {TARGET_NS}")


if __name__ == "__main__":
    main()
