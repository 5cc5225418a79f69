"""Replay steady traffic through a timer in each way of calling it: the CPU time of the caller.

The clock is moved by the replay, so nothing waits: what a service or an event loop pays to be woken
up is measured elsewhere, in real time (`compare.trial.bench.callers`). The turns of an event loop
are those of its input; the same turns without calls are subtracted.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from compare.base.garbage import no_collections
from compare.trial.bench.steady import Group, Steady, groups_of
from compare.trial.bench.work import UNIT
from compare.trial.replay.contestant import Contestant
from compare.trial.replay.engine import Buffers, OverBudgetError, loop_for, operations_of
from timers.services.clock import ManualClock
from timers.services.event_loop import wheel_event_loop
from timers.services.system_timer import SystemTimer

Lists = tuple[int, list[int], list[int], list[int], list[int], list[int]]
"""A Group in Python's own types."""

FILLED_AT_ONCE = 1_000
NS_PER_UNIT = 1_000_000


def compiled(contestant: Contestant | None, made: Steady, limit: float) -> float:
    """A compiled loop, or for a timer without a kernel a Python loop, that runs the tape."""
    timer, rows = _new(contestant, made), operations_of(made.tape)
    loop = loop_for(timer, Buffers(made.ids, made.ids), lambda rows: None, time.thread_time, limit)
    started = time.thread_time()
    for k in range(0, made.first, FILLED_AT_ONCE):
        loop.run(rows[k : min(k + FILLED_AT_ONCE, made.first)])
        _check(started, limit, time.thread_time)
    timer.reserve(rows.size - made.first)
    return loop.run(rows[made.first :], reserve=False)


def one_by_one(contestant: Contestant | None, made: Steady, limit: float) -> float:
    """Calls of `schedule`, `reschedule`, `cancel` and `advance`."""
    timer = _new(contestant, made)
    handles = [*_filled(timer, made, limit), *[0] * (made.ids - made.first)]
    groups = _as_lists(groups_of(made))
    advance, schedule = timer.advance, timer.schedule
    reschedule, cancel = timer.reschedule, timer.cancel
    started = time.thread_time()
    for number, (moment, starts, deadlines, moved, until, cancels) in enumerate(groups):
        advance(moment)
        for id_, deadline in zip(starts, deadlines, strict=True):
            handles[id_] = schedule(deadline)
        for id_, deadline in zip(moved, until, strict=True):
            reschedule(handles[id_], deadline)
        for id_ in cancels:
            cancel(handles[id_])
        if not number & 63:
            _check(started, limit, time.thread_time)
    return time.thread_time() - started


def in_batches(contestant: Contestant | None, made: Steady, limit: float) -> float:
    """A call of each batch form for all that happens in a step of the clock."""
    timer = _new(contestant, made)
    handles = np.zeros(made.ids, np.int64)
    handles[: made.first] = _filled(timer, made, limit)
    groups = [*groups_of(made)]
    started = time.thread_time()
    for number, (moment, starts, deadlines, moved, until, cancels) in enumerate(groups):
        timer.advance(moment)
        if starts.size:
            handles[starts] = timer.schedule_many(deadlines)
        if moved.size:
            timer.reschedule_many(handles[moved], until)
        if cancels.size:
            timer.cancel_many(handles[cancels])
        if not number & 63:
            _check(started, limit, time.thread_time)
    return time.thread_time() - started


def through_service(contestant: Contestant | None, made: Steady, limit: float) -> float:
    """Calls of a SystemTimer; one that is kept alive is cancelled and started again.

    What it costs to move the clock of a service without calls is subtracted.
    """
    groups = _as_lists(groups_of(made))
    empty: list[Lists] = [(group[0], [], [], [], [], []) for group in groups]
    nothing = _served(contestant, made._replace(first=0), empty, limit)
    return max(_served(contestant, made, groups, limit) - nothing, 0.0)


def _served(contestant: Contestant | None, made: Steady, groups: Any, limit: float) -> float:
    clock = ManualClock()
    with SystemTimer(_new(contestant, made), clock=clock) as service:
        schedule = service.schedule_after
        calls = _calls(lambda due: schedule(due / 1_000, _nothing), made, limit)
        started, now = time.process_time(), 0
        for number, (moment, starts, deadlines, moved, until, cancels) in enumerate(groups):
            clock.advance((moment - now) / 1_000)
            now = moment
            for id_, deadline in zip(starts, deadlines, strict=True):
                calls[id_] = schedule((deadline - moment) / 1_000, _nothing)
            for id_, deadline in zip(moved, until, strict=True):
                calls[id_].cancel()
                calls[id_] = schedule((deadline - moment) / 1_000, _nothing)
            for id_ in cancels:
                calls[id_].cancel()
            if not number & 63:
                _check(started, limit, time.process_time)
        return time.process_time() - started


class _InputClock:
    """The clock of a loop that its input moves."""

    def __init__(self) -> None:
        self.moment = 0

    def now(self) -> int:
        """Nanoseconds."""
        return self.moment * NS_PER_UNIT

    wall = now


def on_the_loop(contestant: Contestant | None, made: Steady, limit: float) -> float:
    """Calls of an event loop, in turns of its input; without a contestant asyncio's own loop."""
    groups = _as_lists(groups_of(made))
    empty: list[Lists] = [(group[0], [], [], [], [], []) for group in groups]
    nothing = _turned(None, made._replace(first=0), empty, limit)
    return max(_turned(contestant, made, groups, limit) - nothing, 0.0)


def _turned(contestant: Contestant | None, made: Steady, groups: Any, limit: float) -> float:
    clock, rest = _InputClock(), enumerate(groups)
    if contestant is None:
        loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop()
        loop.time = lambda: clock.now() / 1e9  # type: ignore[method-assign]
    else:
        timer = _new(contestant, made)
        loop = wheel_event_loop(lambda: timer, unit_ns=NS_PER_UNIT, clock=clock)()
    with closing(loop):
        call_at, call_soon, over = loop.call_at, loop.call_soon, False
        calls = _calls(lambda due: call_at(due / 1_000, _nothing), made, limit)

        def turn() -> None:
            nonlocal over
            number, group = next(rest, (0, None))
            if group is None or (not number & 63 and time.process_time() - started > limit):
                over = group is not None
                return loop.stop()
            clock.moment, starts, deadlines, moved, until, cancels = group
            for id_, deadline in zip(starts, deadlines, strict=True):
                calls[id_] = call_at(deadline / 1_000, _nothing)
            for id_, deadline in zip(moved, until, strict=True):
                calls[id_].cancel()
                calls[id_] = call_at(deadline / 1_000, _nothing)
            for id_ in cancels:
                calls[id_].cancel()
            call_soon(turn)
            return None

        loop.call_soon(turn)
        started = time.process_time()
        loop.run_forever()
        if over:
            raise OverBudgetError("the replay takes too long")
        return time.process_time() - started


Replay = Callable[[Contestant | None, Steady, float], float]


def seconds_of(
    replay: Replay, contestant: Contestant | None, made: Steady, limit: float = 4.0
) -> float:
    """The CPU seconds of a replay, without garbage collections. Raises OverBudgetError."""
    with no_collections():
        return replay(contestant, made, limit)


def _new(contestant: Contestant | None, made: Steady) -> Any:
    assert contestant is not None  # only a loop has timers of its own
    return contestant.new(UNIT, 0, made.tape.time.size)


def _check(started: float, limit: float, clock: Callable[[], float]) -> None:
    if clock() - started > limit:
        raise OverBudgetError("the replay takes too long")


def _filled(timer: Any, made: Steady, limit: float) -> list[int]:
    deadlines, handles = made.tape.deadline[: made.first], list[int]()
    started = time.thread_time()
    for k in range(0, made.first, FILLED_AT_ONCE):
        handles += timer.schedule_many(deadlines[k : k + FILLED_AT_ONCE]).tolist()
        _check(started, limit, time.thread_time)
    return handles


def _calls(schedule: Callable[[int], Any], made: Steady, limit: float) -> list[Any]:
    started, calls = time.process_time(), list[Any]()
    for number, due in enumerate(made.tape.deadline[: made.first].tolist()):
        calls.append(schedule(due))
        if not number & 1_023:
            _check(started, limit, time.process_time)
    return calls + [None] * (made.ids - made.first)


def _as_lists(groups: Iterator[Group]) -> list[Lists]:
    return [
        (
            group.moment,
            group.starts.tolist(),
            group.deadlines.tolist(),
            group.moved.tolist(),
            group.until.tolist(),
            group.cancels.tolist(),
        )
        for group in groups
    ]


def _nothing() -> None:
    """The callback."""


REPLAYS: Mapping[str, Replay] = {
    "compiled": compiled,
    "python": one_by_one,
    "batches": in_batches,
    "system-timer": through_service,
    "asyncio": on_the_loop,
}
"""Caller -> how it replays traffic."""
