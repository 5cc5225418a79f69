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

from compare.recording.events import finish
from compare.recording.recorder import Recorder
from tests.bench.services import PAIRS, LoopCalls, alternate, delays_of, nothing
from timers import CascadingWheel
from timers.services import SystemTimer, wheel_event_loop

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
    loops = {"asyncio": asyncio.new_event_loop, "a wheel's loop": wheel_event_loop()}
    for name, make_loop in loops.items():
        calls = LoopCalls("uniform", options.pending, make_loop)
        show(
            f"{name}: call_later, cancel",
            overhead(
                lambda seed, calls=calls: calls.seconds(delays_of("uniform", PAIRS, seed), False),
                2 * PAIRS,
                options.rounds,
            ),
        )
        calls.close()
    with SystemTimer(CascadingWheel(capacity=4 * PAIRS)) as timer:

        def scheduled(seed: int) -> float:
            start = time.process_time()
            for delay in delays_of("uniform", PAIRS, seed):
                timer.schedule_after(delay, nothing).cancel()
            return time.process_time() - start

        show("SystemTimer: schedule, cancel", overhead(scheduled, 2 * PAIRS, options.rounds))
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
