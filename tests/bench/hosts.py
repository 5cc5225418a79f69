"""Whether an asyncio program does well to keep its loop where the model says so.

    python -m tests.bench.hosts [--seconds 2] [--rounds 3]

For each of SETTINGS, the model of `compare.trial.advice.model` names the loop to use, from costs
that are measured first, as `wheelwork compare` does. Then the traffic of the setting runs in real
time on each loop, in turns: a byte arrives on a socket in each millisecond, calls start and are
cancelled, and the others fire. CPU time counts, less that of asyncio's loop with the same input and
no timers.

An answer passes if its loop takes at most ENOUGH of a core more than the cheapest, or the noise.
Prints shares of a core; the exit code is 1 if an answer fails.
"""

import argparse
import asyncio
import gc
import socket
import subprocess
import sys
import time
from contextlib import closing
from statistics import median

import numpy as np

from compare.trial.advice.choice import ENOUGH, MODELLED, USUAL, Offer, choose
from compare.trial.advice.model import CORE, cost, rough
from compare.trial.bench.callers import (
    HOSTS,
    LOOP,
    Costs,
    can_call,
    event_loops,
    measure,
    plan_of,
    sizes_of,
)
from compare.trial.bench.steady import Traffic
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import contestant
from timers.services import wheel_event_loop

SAMPLES = 3  # of each cost
STEP = 0.001  # seconds from one turn of input to the next
SETTINGS = [
    Traffic(rate, timeout, cancelled, answer)
    for rate, timeout, cancelled, answer in (
        (100, 30_000, 0.9, 50),
        (1_000, 10_000, 0.99, 50),
        (1_000, 100, 0.0, 1),
        (10_000, 1_000, 0.0, 1),
        (10_000, 5_000, 0.999, 20),
        (50_000, 2_000, 0.999, 5),
        (50_000, 200, 0.5, 20),
    )
]
WHEELS = ("cascading-wheel", "delay-queue", "dense-wheel")


def loops():
    """Name -> factory of a loop."""
    wheels = {
        name: wheel_event_loop(lambda name=name: contestant(name).new(UNIT), unit_ns=1_000_000)
        for name in WHEELS
    }
    return event_loops() | wheels


class Nothing:
    """Stands in for a loop's timers, so that what is not theirs can be subtracted."""

    def call_later(self, delay, callback):
        """Schedule nothing."""
        return self

    def cancel(self):
        """Cancel nothing."""


SENDER = """
import os, sys, time
descriptor, count, step = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
begin = time.monotonic()
for number in range(1, count + 1):
    time.sleep(max(begin + number * step - time.monotonic(), 0))
    os.write(descriptor, b"x")
"""
"""The program that sends a byte for each turn: its CPU time does not count."""


def traffic(setting, seconds, seed):
    """For each turn: how many calls have started by then, and which of them are cancelled in it."""
    dice = np.random.default_rng(seed)
    starts = np.sort(dice.uniform(0, seconds, round(setting.rate * seconds)))
    ends = starts + setting.answer / 1_000
    ends[dice.random(starts.size) >= setting.cancelled] = np.inf
    turns = np.arange(1, round(seconds / STEP) + 1) * STEP
    cancelled = np.argsort(ends)[: np.searchsorted(np.sort(ends), turns[-1])]
    # A call that starts and ends in one turn is cancelled in it.
    cancels = np.split(cancelled, np.searchsorted(ends[cancelled], turns))[: turns.size]
    return np.searchsorted(starts, turns).tolist(), [part.tolist() for part in cancels]


def run(make, setting, seconds, seed, timers=None):
    """The share of a core, with the loop's own calls or those of `timers`.

    In the beginning, as many calls that will fire are pending as on average.
    """
    started, cancels = traffic(setting, seconds, seed)
    timeout = setting.timeout / 1_000
    lost = round(setting.rate * (1 - setting.cancelled) * timeout)
    delays = np.random.default_rng(seed).uniform(0, timeout, lost).tolist()
    ours, theirs = socket.socketpair()
    with ours, theirs, closing(make()) as loop:
        call_later, calls, number = (timers or loop).call_later, [], 0

        def turn():
            nonlocal number
            for _ in ours.recv(4096):
                for _ in range(started[number] - len(calls)):
                    calls.append(call_later(timeout, nothing))
                for each in cancels[number]:
                    calls[each].cancel()
                number += 1
            if number == len(started):
                loop.stop()

        ours.setblocking(False)  # positional only
        for delay in delays:
            call_later(delay, nothing)
        loop.run_until_complete(asyncio.sleep(0))
        loop.add_reader(ours, turn)
        command = [sys.executable, "-S", "-c", SENDER, str(theirs.fileno())]
        command += [str(len(started)), str(STEP)]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]):
            gc.collect()
            gc.disable()
            used = time.process_time()
            loop.run_forever()
            used = time.process_time() - used
            gc.enable()
        loop.remove_reader(ours)
    return used / seconds


def nothing():
    """The callback."""


def measured():
    """Loop -> size -> costs: the least and the median of the samples."""
    costs = {}
    for each in [HOSTS[name] for name in event_loops()] + [contestant(name) for name in WHEELS]:
        if not can_call(LOOP, each):
            continue
        least, middle = costs.setdefault(each.label, ({}, {}))
        for size in sizes_of(LOOP):
            samples = [measure(LOOP, each, plan_of(LOOP, size)) for _ in range(SAMPLES)]
            least[size] = Costs(*map(min, zip(*samples, strict=True)))
            middle[size] = Costs(*map(median, zip(*samples, strict=True)))
    return costs


def _core(setting, costs):
    """The share of a core."""
    fits = {size: rough(each, "firing") for size, each in costs.items()}
    return cost(setting, fits)[0] / CORE


def answer(setting, costs):
    """The loop that the model names for a program on asyncio, and the cost of each."""
    offers = {}
    for label, both in costs.items():
        least, middle = (_core(setting, each) for each in both)
        exact = label not in HOSTS or HOSTS[label].early == 0
        traits = exact, 1, True, label == USUAL, label == "asyncio"
        offers[label] = Offer(middle, least, middle, *traits)
    return [*offers][choose([*offers.values()], 1.0, MODELLED).number], offers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    costs, failed = measured(), 0
    for setting in SETTINGS:
        chosen, offers = answer(setting, costs)
        shares = {label: [] for label in costs}
        for number in range(options.rounds):
            empty = run(event_loops()["asyncio"], setting, options.seconds, number, Nothing())
            for label, share in shares.items():
                share.append(run(loops()[label], setting, options.seconds, number) - empty)
        middle = {label: median(share) for label, share in shares.items()}
        best = min(middle, key=middle.get)
        noise = max(shares[chosen]) - min(shares[chosen])
        passed = middle[chosen] - middle[best] <= max(ENOUGH, noise)
        failed += not passed
        print(
            f"{'ok' if passed else 'FAILED'} {setting.rate:,.0f}/s of {setting.timeout:,.0f} ms,"
            f" {setting.cancelled:.1%} cancelled after {setting.answer:.0f} ms: {chosen}; best in"
            f" the replays: {best}; noise {noise:.2%}"
        )
        for label in costs:
            print(f"    {label:16} model {offers[label].cost:7.2%} replay {middle[label]:7.2%}")
        sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
