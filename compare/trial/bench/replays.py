"""Replay steady traffic through a timer in each way of calling it: the CPU time of the caller.

The clock is moved by the replay, so nothing waits: what a service or an event loop pays to be woken
up is measured elsewhere, in real time (`compare.trial.bench.callers`). The turns of an event loop
are those of its input; the same turns without calls are subtracted. The timers that Python has
itself (HOSTS) are replayed, too: asyncio's own, `sched` and `threading.Timer`.
"""

import asyncio
import heapq
import sched
import threading
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

FILLED_AT_ONCE = 1_000
AT_ONCE = 500
"""Operations that are made ready at a time."""

NS_PER_UNIT = 1_000_000


class _Feed:
    """The groups of a tape, a few at a time, and the seconds spent on making them ready.

    So what a group has is in the caches when it is replayed, as in a program that has just read it,
    however long the tape is. Raises OverBudgetError when the replay takes longer than `limit`.
    """

    def __init__(
        self, groups: Iterator[Any], convert: Callable[[Group], Any], clock: Any, limit: float
    ) -> None:
        self._groups, self._convert, self._clock, self._limit = groups, convert, clock, limit
        self._started = self._before = 0.0  # seconds

    def __iter__(self) -> Iterator[Any]:
        clock, convert = self._clock, self._convert
        self._started = clock()
        while True:
            paused, some, size = clock(), list[Any](), 0
            if paused - self._started - self._before > self._limit:
                raise OverBudgetError("the replay takes too long")
            for group in self._groups:
                some.append(convert(group))
                size += 1 + group.starts.size + group.moved.size + group.cancels.size
                if size >= AT_ONCE:
                    break
            self._before += clock() - paused
            if not some:
                return
            yield from some

    @property
    def seconds(self) -> float:
        """The seconds from the first group to now, without those spent here."""
        return float(self._clock() - self._started - self._before)


class _Empty:
    """What steps of the clock cost in which nothing happens: the same for all contestants.

    It is measured with each tape, the fastest of two, and remembered for the last one.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, float]] = {}

    def seconds(self, service: str, made: Steady, replay: Callable[[], float]) -> float:
        """The seconds for a tape."""
        tape, seconds = self._known.get(service, (None, 0.0))
        if tape is not made.tape:
            seconds = min(replay(), replay())
            self._known[service] = made.tape, seconds
        return seconds


_EMPTY = _Empty()


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
    feed = _feed(made, time.thread_time, limit)
    advance, schedule = timer.advance, timer.schedule
    reschedule, cancel = timer.reschedule, timer.cancel
    for moment, starts, deadlines, moved, until, cancels in feed:
        advance(moment)
        for id_, deadline in zip(starts, deadlines, strict=True):
            handles[id_] = schedule(deadline)
        for id_, deadline in zip(moved, until, strict=True):
            reschedule(handles[id_], deadline)
        for id_ in cancels:
            cancel(handles[id_])
    return feed.seconds


def in_batches(contestant: Contestant | None, made: Steady, limit: float) -> float:
    """A call of each batch form for all that happens in a step of the clock."""
    timer = _new(contestant, made)
    handles = np.zeros(made.ids, np.int64)
    handles[: made.first] = _filled(timer, made, limit)
    feed = _Feed(groups_of(made), lambda group: group, time.thread_time, limit)
    for moment, starts, deadlines, moved, until, cancels in feed:
        timer.advance(moment)
        if starts.size:
            handles[starts] = timer.schedule_many(deadlines)
        if moved.size:
            timer.reschedule_many(handles[moved], until)
        if cancels.size:
            timer.cancel_many(handles[cancels])
    return feed.seconds


def through_service(contestant: Contestant | None, made: Steady, limit: float) -> float:
    """Calls of a SystemTimer; one that is kept alive is cancelled and started again.

    What it costs to move the clock of a service without calls is subtracted.
    """

    def nothing() -> float:
        return _served(contestant, made._replace(first=0), _moments_of(made, limit), limit)

    return max(
        _served(contestant, made, _feed(made, time.process_time, limit), limit)
        - _EMPTY.seconds("service", made, nothing),
        0.0,
    )


def _served(contestant: Contestant | None, made: Steady, feed: _Feed, limit: float) -> float:
    clock = ManualClock()
    with SystemTimer(_new(contestant, made), clock=clock) as service:
        schedule = service.schedule_after
        calls = _calls(lambda due: schedule(due / 1_000, _nothing), made, limit)
        now = 0
        for moment, starts, deadlines, moved, until, cancels in feed:
            clock.advance((moment - now) / 1_000)
            now = moment
            for id_, deadline in zip(starts, deadlines, strict=True):
                calls[id_] = schedule((deadline - moment) / 1_000, _nothing)
            for id_, deadline in zip(moved, until, strict=True):
                calls[id_].cancel()
                calls[id_] = schedule((deadline - moment) / 1_000, _nothing)
            for id_ in cancels:
                calls[id_].cancel()
        return feed.seconds


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

    def nothing() -> float:
        return _turned(None, made._replace(first=0), _moments_of(made, limit), limit)

    return max(
        _turned(contestant, made, _feed(made, time.process_time, limit), limit)
        - _EMPTY.seconds("loop", made, nothing),
        0.0,
    )


def _turned(contestant: Contestant | None, made: Steady, feed: _Feed, limit: float) -> float:
    clock = _InputClock()
    if contestant is None:
        loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop()
        loop.time = lambda: clock.now() / 1e9  # type: ignore[method-assign]
    else:
        timer = _new(contestant, made)
        loop = wheel_event_loop(lambda: timer, unit_ns=NS_PER_UNIT, clock=clock)()
    with closing(loop):
        call_at, call_soon, over = loop.call_at, loop.call_soon, False
        calls = _calls(lambda due: call_at(due / 1_000, _nothing), made, limit)
        rest = iter(feed)

        def turn() -> None:
            nonlocal over
            try:
                group = next(rest, None)
            except OverBudgetError:  # which a loop would only log
                group, over = None, True
            if group is None:
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
        loop.run_forever()
        if over:
            raise OverBudgetError("the replay takes too long")
        return feed.seconds


def with_sched(_: Contestant | None, made: Steady, limit: float) -> float:
    """Calls of Python's `sched`, which searches its list for what is cancelled."""
    now = 0
    scheduler = sched.scheduler(lambda: now)
    schedule = scheduler.enterabs

    def cancel(event: sched.Event) -> None:
        try:
            scheduler.cancel(event)
        except ValueError:
            return  # it has fired

    calls = _calls(lambda due: schedule(due, 0, _nothing), made, limit)
    feed = _feed(made, time.thread_time, limit)
    for now, starts, deadlines, moved, until, cancels in feed:  # noqa: B007  the scheduler reads it
        scheduler.run(blocking=False)
        for id_, deadline in zip(starts, deadlines, strict=True):
            calls[id_] = schedule(deadline, 0, _nothing)
        for id_, deadline in zip(moved, until, strict=True):
            cancel(calls[id_])
            calls[id_] = schedule(deadline, 0, _nothing)
        for id_ in cancels:
            cancel(calls[id_])
    return feed.seconds


FOREVER = 1e6
"""Seconds that a thread of a replay waits, at most."""


def with_threads(_: Contestant | None, made: Steady, limit: float) -> float:
    """A `threading.Timer` for each timer.

    What is due is woken up by the replay. That costs as much as the end of the thread's own wait.
    """
    due: list[tuple[int, int, threading.Timer]] = []
    everyone: list[threading.Timer] = []

    def begin(deadline: int) -> threading.Timer:
        timer = threading.Timer(FOREVER, _nothing)
        timer.daemon = True
        timer.start()
        heapq.heappush(due, (deadline, len(everyone), timer))
        everyone.append(timer)
        return timer

    try:
        calls = _calls(begin, made, limit)
        feed = _feed(made, time.process_time, limit)
        for moment, starts, deadlines, moved, until, cancels in feed:
            while due and due[0][0] <= moment:
                heapq.heappop(due)[-1].cancel()
            for id_, deadline in zip(starts, deadlines, strict=True):
                calls[id_] = begin(deadline)
            for id_, deadline in zip(moved, until, strict=True):
                calls[id_].cancel()
                calls[id_] = begin(deadline)
            for id_ in cancels:
                calls[id_].cancel()
        for timer in everyone:
            if timer.finished.is_set():
                timer.join()
        return feed.seconds
    finally:
        for timer in everyone:
            timer.cancel()
        for timer in everyone:
            timer.join()


Replay = Callable[[Contestant | None, Steady, float], float]


def seconds_of(
    replay: Replay, contestant: Contestant | None, made: Steady, limit: float = 4.0
) -> float:
    """The CPU seconds of a replay, without garbage collections. Raises OverBudgetError."""
    with no_collections():
        return replay(contestant, made, limit)


def _new(contestant: Contestant | None, made: Steady) -> Any:
    assert contestant is not None  # only hosts have timers of their own
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


def _feed(made: Steady, clock: Callable[[], float], limit: float) -> _Feed:
    """The groups as Python's own types."""

    def convert(group: Group) -> list[Any]:
        moment, *columns = group
        return [moment, *(column.tolist() for column in columns)]

    return _Feed(groups_of(made), convert, clock, limit)


def _moments_of(made: Steady, limit: float) -> _Feed:
    """Steps of the clock at the same moments, in which nothing happens."""
    return _Feed(
        groups_of(made), lambda group: [group.moment, *([],) * 5], time.process_time, limit
    )


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

THREADS = "threading.Timer"
"""The host with a thread for each timer."""

HOSTS: Mapping[str, Mapping[str, Replay]] = {
    "python": {"sched": with_sched},
    "system-timer": {THREADS: with_threads},
    "asyncio": {"asyncio": on_the_loop},
}
"""Caller -> the timers that its program has without ours, and how they replay traffic."""


OWN = frozenset(name for hosts in HOSTS.values() for name in hosts)
"""All hosts of HOSTS."""


def replay_of(caller: str, label: str) -> Replay:
    """How a contestant, or a host, replays traffic for a caller."""
    return HOSTS.get(caller, {}).get(label) or REPLAYS[caller]
