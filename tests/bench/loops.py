"""What a program pays for its sleeps and timeouts on four event loops: asyncio's, uvloop, and
`wheel_event_loop` on each of them.

    python -m tests.bench.loops [--pending 0,1000,100000] [--rounds 7]

Each loop has as many other calls pending, which are due in 200 to 500 s. The loops take turns in
one process, with the garbage collector off, as in `timeit`. Prints CPU microseconds of the process
for each operation: the median of the rounds, and the least and the greatest.
"""

import argparse
import asyncio
import gc
import random
import time
from functools import partial
from statistics import median

from compare.trial.bench.callers import event_loops
from timers.services import wheel_event_loop


async def call_and_cancel(count):
    loop = asyncio.get_running_loop()
    for _ in range(0, count, 1_000):
        for _ in range(1_000):
            loop.call_later(30, print).cancel()
        await asyncio.sleep(0)  # asyncio's loop cleans its heap in its turns


async def timeout(count):
    for _ in range(count):
        async with asyncio.timeout(30):
            await asyncio.sleep(0)


async def wait_for(count):
    for _ in range(count):
        await asyncio.wait_for(asyncio.sleep(0), 30)


async def sleep(count, seconds):
    for _ in range(count):
        await asyncio.sleep(seconds)


async def sleep_together(count):
    await asyncio.gather(*(asyncio.sleep(0.01) for _ in range(count)))


OPERATIONS = {
    "sleep(0)": (10_000, partial(sleep, seconds=0)),
    "wait_for(sleep(0), 30)": (5_000, wait_for),
    "timeout(30) around sleep(0)": (5_000, timeout),
    "call_later(30) and cancel": (10_000, call_and_cancel),
    "sleep(0.01), 1 000 at once": (1_000, sleep_together),
    "sleep(0.001), one alone": (100, partial(sleep, seconds=0.001)),
}
"""Operation -> how often in a round, and how."""


def loops():
    """Name -> factory, of those that are installed."""
    hosts = event_loops()
    made = {"asyncio": hosts["asyncio"], "wheel": wheel_event_loop(base=asyncio.SelectorEventLoop)}
    if "uvloop" in hosts:
        import uvloop

        made |= {"uvloop": hosts["uvloop"], "wheel on uvloop": wheel_event_loop(base=uvloop.Loop)}
    return made


def microseconds(loop, work, count):
    """CPU time of an operation."""
    gc.collect()
    gc.disable()
    try:
        started = time.process_time()
        loop.run_until_complete(work(count))
        return (time.process_time() - started) / count * 1e6
    finally:
        gc.enable()


def rounds_of(factories, pending, rounds):
    """Operation -> loop -> CPU microseconds in each round, after one to warm up."""
    dice, made = random.Random(1), {name: make() for name, make in factories.items()}
    delays = [dice.uniform(200, 500) for _ in range(pending)]
    others = [loop.call_later(delay, print) for loop in made.values() for delay in delays]
    found = {operation: {name: [] for name in made} for operation in OPERATIONS}
    for number in range(rounds + 1):
        for operation, (count, work) in OPERATIONS.items():
            for name in [*made][:: 1 if number % 2 else -1]:
                found[operation][name].append(microseconds(made[name], work, count))
    assert not any(handle.cancelled() for handle in others)
    for loop in made.values():
        loop.close()
    return {
        operation: {name: samples[1:] for name, samples in by_loop.items()}
        for operation, by_loop in found.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--pending", default="0,1000,100000")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    factories = loops()
    if "uvloop" not in factories:
        print("uvloop is not installed, so it was not measured")
    for pending in map(int, options.pending.split(",")):
        print(f"{pending:,} others pending; us of CPU: median [least .. greatest]")
        for operation, by_loop in rounds_of(factories, pending, options.rounds).items():
            shown = (
                f"{name} {median(us):.2f} [{min(us):.2f} .. {max(us):.2f}]"
                for name, us in by_loop.items()
            )
            print(f"  {operation:28} {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()
