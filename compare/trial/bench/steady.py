"""Traffic in its steady state, as a tape: as many timers pending at its start as at its end.

Timers start at random (Poisson). A share of them is answered before the timeout: after a random
time (exponential), the caller cancels the timer or, with keep-alive traffic, moves its deadline.
The clock moves in steps, and all that happens within a step comes at its end. Times are in units of
the clock, 1 ms each.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from compare.traffic.tapes.tape import CANCEL, REARM, START, Tape
from compare.trial.oracle.compiled import NEVER, expect
from timers.arrays import Int64s
from timers.rounding import Rounding

RANDOM, ONE, FEW, KEEPALIVE, PERIODIC = "random", "one", "few", "keepalive", "periodic"
KINDS = {
    RANDOM: "random timeouts: uniform, from 0 to twice the mean",
    ONE: "one timeout for all",
    FEW: "a few constant timeouts: a tenth, half and 2.4 times the mean, equally often",
    KEEPALIVE: "keep-alive: one timeout for all, and each answer moves the deadline",
    PERIODIC: "periodic: each timer starts again when it fires, with its own period",
}
"""Kind of traffic -> what it is."""

TIMEOUTS = (0.1, 0.5, 2.4)
"""The few constant timeouts, as multiples of the mean."""

IN_TIME = 0.9
"""The share of the timeout in which an answer comes."""


@dataclass(frozen=True)
class Traffic:
    """Traffic in a few numbers. Times are means, in milliseconds; the rate is that of a second."""

    rate: float  #: timers started (with keep-alive, also moved) per second
    timeout: float
    cancelled: float  #: the share of the timers that is cancelled (or moved) before the timeout
    answer: float = 0.0  #: from the start of a timer to its cancellation
    kind: str = RANDOM
    step: float = 1.0  #: of the clock

    @property
    def pending(self) -> float:
        """The mean number of pending timers: by Little's law, rate times life."""
        time = self.cancelled * self.answer + (1 - self.cancelled) * self.timeout
        return self.rate * time / 1_000

    @property
    def answered(self) -> float:
        """The mean number of pending timers that will be cancelled or moved; at least those that
        start in a step.
        """
        return self.rate * self.cancelled * max(self.answer, self.step) / 1_000

    @property
    def held(self) -> float:
        """The number of timers that a timer holds at the end of a step: at least those that start
        in the step, even if all are cancelled in it.
        """
        return max(self.pending, self.rate * self.step / 1_000)


class Steady(NamedTuple):
    """A tape in its steady state."""

    tape: Tape
    first: int  #: operations at time 0, which start the pending timers
    ids: int
    firing: int  #: steps of the clock in which a timer fires
    moments: int  #: units of time in which a timer fires

    @property
    def seconds(self) -> float:
        """The time of the operations after the first."""
        return max(int(self.tape.time[-1]), 1) / 1_000


def steady(traffic: Traffic, timers: int, seed: int) -> Steady:
    """The pending timers at time 0, and about `timers` more at the rate of the traffic."""
    dice = np.random.default_rng(seed)
    rate, share = traffic.rate / 1_000, traffic.cancelled
    span = timers / rate
    lost = dice.poisson(rate * (1 - share) * traffic.timeout)
    answered = dice.poisson(rate * share * traffic.answer)
    if traffic.kind == PERIODIC:  # the same timers for ever
        lost = max(round(rate * traffic.timeout), 1)
    if traffic.kind == KEEPALIVE and share:  # somebody is touched
        answered = max(round(rate * share * traffic.answer), 1)
    delay = _delays(dice, traffic, lost, pending=True)
    age = np.floor(dice.uniform(0, 1, lost) * delay / traffic.step) * traffic.step
    first_due = np.concatenate([delay - age, _delays(dice, traffic, answered)])
    order = np.argsort(-np.concatenate([age, np.zeros(answered)]), kind="stable")
    first_end = np.concatenate(
        [np.full(lost, math.inf), dice.exponential(max(traffic.answer, 1e-9), answered)]
    )
    first_end = np.where(np.isinf(first_end), first_end, _in_time(dice, first_end, first_due))
    first_due, first_end = first_due[order], first_end[order]
    if traffic.kind == PERIODIC:
        rows = _periodic(dice, traffic, first_due, span)
    elif traffic.kind == KEEPALIVE:
        rows = _kept_alive(dice, traffic, first_due, first_end, span)
    else:
        rows = _cancelled(dice, traffic, first_due, first_end, span, timers)
    time, op, ids, due = rows
    # What happens within a step comes at its end; a deadline counts from there.
    moment = np.ceil(np.maximum(time, 1e-9) / traffic.step) * traffic.step
    moment[: first_due.size] = 0
    due = np.where(op == CANCEL, 0, np.maximum(np.ceil(due - time + moment), moment + 1))
    due[: first_due.size] = np.maximum(np.ceil(first_due), 1)
    rank = np.argsort(moment, kind="stable")
    types = np.int64, np.int8, np.int32, np.int64
    tape = Tape(*(c[rank].astype(t) for c, t in zip((moment, op, ids, due), types, strict=True)))
    ids_ = int(ids.max(initial=0)) + 1
    fired_at = expect(tape, ids_, Rounding(), drained=False).fired_at
    fired = np.unique(fired_at[(fired_at != NEVER) & (fired_at <= tape.time.max(initial=0))])
    firing = np.unique(np.searchsorted(np.unique(tape.time), fired)).size
    return Steady(tape, first_due.size, ids_, firing, fired.size)


def _delays(
    dice: np.random.Generator, traffic: Traffic, count: int, *, pending: bool = False
) -> np.ndarray[Any, Any]:
    """Timeouts of timers that start or, with `pending`, of those that are pending at a moment."""
    mean = traffic.timeout
    if traffic.kind == RANDOM:  # long ones are pending for longer
        return 2 * mean * (dice.random(count) ** (0.5 if pending else 1.0))
    if traffic.kind == FEW:
        weights = np.array(TIMEOUTS) / sum(TIMEOUTS) if pending else None
        return mean * dice.choice(TIMEOUTS, count, p=weights)
    return np.full(count, float(mean))


def _in_time(
    dice: np.random.Generator, latency: np.ndarray[Any, Any], delay: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Times to the answer that come before the timeout: those that do not are drawn again."""
    latest = IN_TIME * delay
    return np.where(latency < latest, latency, latest * dice.random(latency.size))


Rows = tuple[np.ndarray[Any, Any], ...]


def _cancelled(
    dice: np.random.Generator,
    traffic: Traffic,
    first_due: np.ndarray[Any, Any],
    first_end: np.ndarray[Any, Any],
    span: float,
    timers: int,
) -> Rows:
    starts = np.sort(dice.uniform(0, span, timers))
    delays = _delays(dice, traffic, timers)
    is_lost = dice.random(timers) >= traffic.cancelled
    latency = _in_time(dice, dice.exponential(max(traffic.answer, 1e-9), timers), delays)
    due = np.concatenate([first_due, starts + delays])
    end = np.concatenate([first_end, np.where(is_lost, math.inf, starts + latency)])
    begin = np.concatenate([np.zeros(first_due.size), starts])
    gone = np.flatnonzero((end < due) & (end < span))
    gone = gone[np.argsort(end[gone], kind="stable")]
    number = np.arange(begin.size)
    op = np.concatenate([np.full(begin.size, START), np.full(gone.size, CANCEL)])
    time = np.concatenate([begin, end[gone]])
    return time, op, np.concatenate([number, number[gone]]), np.concatenate([due, due[gone]])


def _kept_alive(
    dice: np.random.Generator,
    traffic: Traffic,
    first_due: np.ndarray[Any, Any],
    first_end: np.ndarray[Any, Any],
    span: float,
) -> Rows:
    """Connections that are touched again and again, and others that are lost.

    From one touch of a connection to the next it takes half of the mean time to three halves.
    """
    alive = np.flatnonzero(np.isfinite(first_end))
    rate, share = traffic.rate / 1_000, traffic.cancelled
    lost = np.sort(dice.uniform(0, span, dice.poisson(rate * (1 - share) * span)))
    number = np.arange(first_due.size + lost.size)
    rows = [
        (np.zeros(first_due.size), number[: first_due.size], first_due),
        (lost, number[first_due.size :], lost + traffic.timeout),
    ]
    mean = alive.size / (rate * share) if share else math.inf
    # At a moment, long times are met more often, at any place in them.
    first = mean * dice.random(alive.size) * np.sqrt(0.25 + 2 * dice.random(alive.size))
    at_once = max(1_000 // max(alive.size, 1), 1)
    while alive.size and first.min() < span:
        gaps = mean * dice.uniform(0.5, 1.5, (at_once, alive.size))
        moments = first + np.vstack([np.zeros(alive.size), gaps.cumsum(0)])
        first, moments = moments[-1], moments[:-1]
        keep = moments < span
        rows.append((moments[keep], alive[np.nonzero(keep)[1]], moments[keep] + traffic.timeout))
    time, ids, due = (np.concatenate(column) for column in zip(*rows, strict=True))
    op = np.where(np.arange(time.size) < number.size, START, REARM)
    return time, op, ids, due


def _periodic(
    dice: np.random.Generator, traffic: Traffic, first_due: np.ndarray[Any, Any], span: float
) -> Rows:
    """Each timer starts again in the step in which it fires.

    Periods are spread from half of their mean to three halves. Together they have the rate.
    """
    parts = 0.5 + (dice.permutation(first_due.size) + 0.5) / max(first_due.size, 1)
    rate = traffic.rate / 1_000
    period = np.maximum(np.round(parts * (1 / parts).sum() / rate), 1)
    due = np.maximum(np.ceil(dice.random(first_due.size) * period), 1)
    first_due[:] = due
    who, again = np.arange(first_due.size), due
    rows = [(np.zeros(first_due.size), who, due)]
    while True:
        keep = again < span
        who, again = who[keep], again[keep]
        if not who.size:
            break
        rows.append((again, who, again + period[who]))
        again = again + period[who]
    time, ids, deadline = (np.concatenate(column) for column in zip(*rows, strict=True))
    return time, np.full(time.size, START), ids, deadline


class Group(NamedTuple):
    """The operations of a step of the clock."""

    moment: int
    starts: Int64s  # ids
    deadlines: Int64s
    moved: Int64s  # ids whose deadline is moved
    until: Int64s
    cancels: Int64s


def groups_of(made: Steady) -> Iterator[Group]:
    """The operations after the first ones, by step of the clock."""
    time, op, ids, deadline = (column[made.first :] for column in made.tape)
    cuts = np.flatnonzero(np.diff(time)) + 1
    for moments, ops, each, due in zip(
        *(np.split(column, cuts) for column in (time, op, ids, deadline)), strict=True
    ):
        if moments.size:
            start, move = ops == START, ops == REARM
            parts = each[start], due[start], each[move], due[move], each[ops == CANCEL]
            yield Group(int(moments[0]), *parts)
