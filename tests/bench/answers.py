"""Whether the timer that the cost model names is as good as the best one in a replay.

    python -m tests.bench.answers [--settings 60] [--seed 1]

Measures the costs of all timers for each way of calling them, as `wheelwork compare` does. Then it
draws settings: the rate, the timeout, the share that is cancelled, the time to the answer, and the
caller. For each it generates traffic in its steady state and replays it through every timer that
the model can name, in the way of the caller, ROUNDS times in turns. An answer passes if its time
is at most WORSE times that of the best timer, or the noise, or at most ENOUGH of a core more. The
ten programs of `tests.bench.answer_cases` follow. Prints a table; the exit code is 1 if an answer
fails, or if more than two of the programs get another timer than was expected.
"""

import argparse
import gc
import math
import sys
import time
from contextlib import closing
from functools import cache
from statistics import median

import numpy as np

from compare.traffic.tapes.tape import CANCEL, START, Tape
from compare.trial.advice.choice import ENOUGH, MODELLED, USUAL, Offer, choose
from compare.trial.advice.cost import BEYOND, CORE, Setting, cost
from compare.trial.bench.callers import (
    BATCHES,
    COMPILED_CODE,
    LOOP,
    OWN_CLOCK,
    PYTHON,
    SERVICE,
    Costs,
    can_call,
    measure,
    plan_of,
    sizes_of,
)
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import contestant
from compare.trial.replay.engine import Buffers, OverBudgetError, loop_for, operations_of
from tests.bench.answer_cases import CASES
from timers.registry import names
from timers.services import ManualClock, SystemTimer, wheel_event_loop

WORSE = 1.15
ROUNDS = 4
SAMPLES = 3  # of each cost
SECONDS = 4.0  # CPU of a replay; what takes longer is not the best
MOST = 1_000_000  # timers pending in a setting
TIMERS = {COMPILED_CODE: 60_000, PYTHON: 12_000, BATCHES: 40_000, SERVICE: 20_000, LOOP: 12_000}
"""Timers that start in a replay, at least."""

CALLERS = {
    "compiled": COMPILED_CODE,
    "python": PYTHON,
    "batches": BATCHES,
    "service": SERVICE,
    "asyncio": LOOP,
}


# ---- traffic in its steady state


def steady(setting, timers, seed):
    """A tape: the pending timers start at time 0, then `timers` more at the setting's rate.

    Arrivals are Poisson, and answers exponential but in time. Returns the tape, the number of
    timers that are pending first, and the id space.
    """
    dice = np.random.default_rng(seed)
    rate, timeout, share = setting.rate / 1_000, round(setting.timeout), setting.cancelled
    lost = dice.poisson(rate * (1 - share) * timeout)
    answered = dice.poisson(rate * share * setting.answer)
    ages = [
        dice.uniform(0, timeout, lost),
        np.minimum(dice.exponential(setting.answer, answered), timeout - 1),
    ]
    ends = [np.full(lost, math.inf), dice.exponential(setting.answer, answered)]
    age, first_ends = np.concatenate(ages), np.concatenate(ends)
    oldest_first = np.argsort(-age)
    age, first_ends = age[oldest_first], first_ends[oldest_first]
    first_due = np.maximum(np.ceil(timeout - age), 1)
    span = timers / rate
    starts = np.sort(dice.uniform(0, span, timers))
    is_lost = dice.random(timers) >= share
    latency = np.minimum(dice.exponential(setting.answer, timers), timeout - 1)
    due = np.concatenate([first_due, np.floor(starts) + timeout])
    end = np.concatenate([first_ends, np.where(is_lost, math.inf, starts + latency)])
    cancelled = np.flatnonzero((end < due) & (end < span))
    start = np.concatenate([np.zeros(age.size), starts])
    ids = np.arange(start.size)
    time_ = np.concatenate([start, np.maximum(end, start)[cancelled]])
    op = np.concatenate([np.full(ids.size, START), np.full(cancelled.size, CANCEL)])
    deadline = np.concatenate([due, np.zeros(cancelled.size)])
    order = np.argsort(time_, kind="stable")
    columns = np.floor(time_), op, np.concatenate([ids, ids[cancelled]]), deadline
    types = np.int64, np.int8, np.int32, np.int64
    tape = Tape(*(column[order].astype(t) for column, t in zip(columns, types, strict=True)))
    return tape, age.size, ids.size


def batches_of(tape, first):
    """The operations after the `first` ones, by moment: time, starts, their deadlines, cancels."""
    time_, op, id_, deadline = (column[first:] for column in tape)
    cuts = np.flatnonzero(np.diff(time_)) + 1
    for parts in zip(
        *(np.split(column, cuts) for column in (time_, op, id_, deadline)), strict=True
    ):
        is_start = parts[1] == START
        yield int(parts[0][0]), parts[2][is_start], parts[3][is_start], parts[2][~is_start]


# ---- replays, by caller: CPU seconds after the first timers


def compiled(timer, tape, first, ids):
    rows = operations_of(tape)
    loop = loop_for(timer, Buffers(ids), lambda rows: None, time.thread_time, SECONDS)
    loop.run(rows[:first])
    timer.reserve(rows.size)
    return loop.run(rows[first:], reserve=False)


def one_by_one(timer, tape, first, ids):
    handles = [0] * ids
    handles[:first] = timer.schedule_many(tape.deadline[:first]).tolist()
    rows = [*zip(*(column[first:].tolist() for column in tape), strict=True)]
    started, now = time.thread_time(), 0
    for moment, op, id_, deadline in rows:
        if moment != now:
            timer.advance(moment)
            now = moment
            if not moment & 63 and time.thread_time() - started > SECONDS:
                raise OverBudgetError
        if op == START:
            handles[id_] = timer.schedule(deadline)
        else:
            timer.cancel(handles[id_])
    return time.thread_time() - started


def in_batches(timer, tape, first, ids):
    handles = np.zeros(ids, np.int64)
    handles[:first] = timer.schedule_many(tape.deadline[:first])
    groups = [*batches_of(tape, first)]
    started = time.thread_time()
    for number, (moment, starts, deadlines, cancels) in enumerate(groups):
        timer.advance(moment)
        if starts.size:
            handles[starts] = timer.schedule_many(deadlines)
        if cancels.size:
            timer.cancel_many(handles[cancels])
        if not number & 63 and time.thread_time() - started > SECONDS:
            raise OverBudgetError
    return time.thread_time() - started


def through_service(timer, tape, first, ids):
    clock, calls = ManualClock(), [None] * ids
    with SystemTimer(timer, clock=clock) as service:
        for id_, deadline in enumerate(tape.deadline[:first].tolist()):
            calls[id_] = service.schedule_after(deadline / 1_000, nothing)
        groups = [
            (moment, starts.tolist(), (deadlines / 1_000).tolist(), cancels.tolist())
            for moment, starts, deadlines, cancels in batches_of(tape, first)
        ]
        started, now = time.process_time(), 0
        for moment, starts, deadlines, cancels in groups:
            clock.advance((moment - now) / 1_000)
            now = moment
            for id_, deadline in zip(starts, deadlines, strict=True):
                calls[id_] = service.schedule_after(deadline - moment / 1_000, nothing)
            for id_ in cancels:
                calls[id_].cancel()
        return time.process_time() - started


class IoClock:
    """The clock of a loop that input wakes up at given moments."""

    def __init__(self):
        self.moment = 0

    def now(self):
        return self.moment * 1_000_000


def on_the_loop(timer, tape, first, ids):
    """Each turn of the loop is a callback that input has made ready, as in a server."""
    clock, calls = IoClock(), [None] * ids
    groups = iter(
        [(m, s.tolist(), d.tolist(), c.tolist()) for m, s, d, c in batches_of(tape, first)]
    )
    with closing(wheel_event_loop(lambda: timer, unit_ns=1_000_000, clock=clock)()) as loop:
        for id_, deadline in enumerate(tape.deadline[:first].tolist()):
            calls[id_] = loop.call_at(deadline / 1_000, nothing)

        def ready():
            group = next(groups, None)
            if group is None:
                return loop.stop()
            clock.moment, starts, deadlines, cancels = group
            for id_, deadline in zip(starts, deadlines, strict=True):
                calls[id_] = loop.call_at(deadline / 1_000, nothing)
            for id_ in cancels:
                calls[id_].cancel()
            return loop.call_soon(ready)

        loop.call_soon(ready)
        started = time.process_time()
        loop.run_forever()
        return time.process_time() - started


def nothing():
    """The callback."""


REPLAYS = {
    COMPILED_CODE: compiled,
    PYTHON: one_by_one,
    BATCHES: in_batches,
    SERVICE: through_service,
    LOOP: on_the_loop,
}


def timers_in(caller, setting):
    """Timers that start in a replay: enough to bring what is pending into the caches that it fits.

    At first each operation meets memory that nothing has touched yet.
    """
    return max(TIMERS[caller], min(round(setting.pending / 2), 200_000))


def replayed(caller, labels, setting, seed):
    """Label -> the share of a core in each round; without those that take too long."""
    timers = timers_in(caller, setting)
    tape, first, ids = steady(setting, timers, seed)
    seconds = max((tape.time[-1] if tape.time.size else 0) / 1_000, 1e-3)
    rounds = {label: [] for label in labels}
    for _ in range(ROUNDS):
        for label, shares in [*rounds.items()]:
            timer = contestant(label).new(UNIT, 0, first + timers)
            gc.collect()
            gc.disable()
            try:
                shares.append(REPLAYS[caller](timer, tape, first, ids) / seconds)
            except OverBudgetError:
                del rounds[label]
            finally:
                gc.enable()
    return rounds


# ---- the answers


def measured(contestants):
    """(caller, label) -> size -> costs: the least and the median of the samples."""
    cases = [
        (caller, each, size)
        for caller in REPLAYS
        for each in contestants
        if can_call(caller, each)
        for size in sizes_of(caller)
    ]
    costs = {}
    for caller, each, size in cases:
        plan = plan_of(caller, size)
        try:
            samples = [measure(caller, each, plan) for _ in range(SAMPLES)]
        except OverBudgetError:
            continue
        least, middle = costs.setdefault((caller, each.label), ({}, {}))
        least[size] = Costs(*map(min, zip(*samples, strict=True)))
        middle[size] = Costs(*map(median, zip(*samples, strict=True)))
    return costs


@cache
def nbytes_of(label, pending):
    """The bytes of a timer with so many pending, and room for no more."""
    timer = contestant(label).new(UNIT, 0, pending)
    timer.schedule_many(np.arange(pending) + 1)
    return int(timer.nbytes)


def answer(setting, caller, max_late, costs):
    """The label that the model names, and label -> offer for all timers that it could name."""
    offers = {}
    for (way, label), both in costs.items():
        timer = contestant(label)
        low, high = timer.rounding(UNIT).bounds()
        known = len(both[0]) > 1 and setting.pending <= BEYOND * max(both[0])
        if way == caller and known and low == 0 and high <= max_late:
            own_clock = caller in OWN_CLOCK
            least, middle = (cost(setting, each, own_clock=own_clock) / CORE for each in both)
            nbytes = nbytes_of(label, max(round(setting.pending), 1))
            traits = high == 0, nbytes, not timer.settings, timer.name == USUAL
            offers[label] = Offer(least, least, middle, *traits)
    return [*offers][choose([*offers.values()], 1.0, MODELLED).number], offers


def judged(label, setting, caller, max_late, costs, seed):
    """Print a row; returns the label that was named, and whether the replays confirm it."""
    chosen, offers = answer(setting, caller, max_late, costs)
    shares = replayed(caller, offers, setting, seed)
    if chosen not in shares:
        print(f"FAILED {label}: {chosen} takes too long")
        return chosen, False
    least = {each: min(rounds) for each, rounds in shares.items()}
    best = min(least, key=least.get)
    noise = max(median(shares[each]) / least[each] for each in (best, chosen))
    ratio, more = least[chosen] / least[best], least[chosen] - least[best]
    passed = ratio <= max(WORSE, noise) or more <= ENOUGH
    model = offers[chosen].cost / least[chosen]
    print(
        f"{'ok' if passed else 'FAILED':6} {label} {setting.pending:>9,.0f}"
        f" {chosen:18} {best:18} {ratio:5.2f} {more:7.2%} {noise:5.2f} {model:5.2f}",
        flush=True,
    )
    return chosen, passed


def drawn(count, seed):
    """Settings and callers: those with more than MOST pending timers are drawn again."""
    dice = np.random.default_rng(seed)
    ways = [*REPLAYS]
    while count:
        timeout = 10 ** dice.uniform(1, math.log10(600_000))
        setting = Setting(
            rate=10 ** dice.uniform(2, 6),
            timeout=round(timeout),
            cancelled=float(dice.choice([0, 0.5, 0.9, 0.99, 0.999])),
            answer=max(dice.uniform(0.01, 0.5) * timeout, 1.0),
        )
        caller = ways[count % len(ways)]
        if setting.pending <= min(MOST, sizes_of(caller)[-1]):
            count -= 1
            yield setting, caller


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--settings", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    contestants = [contestant(name) for name in names()]
    started = time.monotonic()
    costs = measured(contestants)
    print(f"measured the costs in {time.monotonic() - started:.0f} s")
    head = f"{'caller':28} {'rate':>9} {'timeout':>9} {'cancelled':>9} {'answer':>9}"
    print(f"{'':6} {head} {'pending':>9} {'answer':18} {'best':18} ratio    more noise model")
    failed = 0
    for number, (setting, caller) in enumerate(drawn(options.settings, options.seed)):
        label = (
            f"{caller:28} {setting.rate:>9,.0f} {setting.timeout:>9,.0f} {setting.cancelled:>9.1%}"
            f" {setting.answer:>9,.0f}"
        )
        failed += not judged(label, setting, caller, 0, costs, number)[1]
    others = 0
    for number, case in enumerate(CASES):
        setting = Setting(case.rate, case.timeout, case.cancelled, case.answer)
        way = CALLERS[case.caller]
        chosen, passed = judged(f"{case.program:68}", setting, way, case.max_late, costs, number)
        failed += not passed
        if chosen != case.expected:
            others += 1
            print(f"       expected {case.expected}: {case.reason}")
    print(f"{failed} answers failed; {others} programs got another timer than was expected")
    print(f"{time.monotonic() - started:.0f} s")
    return int(failed > 0 or others > 2)


if __name__ == "__main__":
    sys.exit(main())
