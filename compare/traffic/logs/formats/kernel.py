"""Turns the timer events of a Linux kernel, printed by trace-cmd or perf, into a trace.

The kernel prints a cancel, too, when a timer is moved or expires (`detach_timer` in
kernel/time/timer.c, `__run_hrtimer` in kernel/time/hrtimer.c).
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compare.base.files import errors_as
from compare.traffic.tapes.recorded import (
    CANCELLED,
    FIELDS,
    MOVED,
    STARTED,
    UNIT,
    Float64s,
    RecordedTape,
)
from compare.traffic.tapes.trace import PIECE, Trace, new_trace, open_trace, write_shard
from timers.errors import TimerError

RATES = (100, 250, 300, 1000)
"""The usual values of CONFIG_HZ."""

AT_ONCE = 10e-6
"""Seconds within which a cancel and a start of the same timer are a re-arm."""

_EVENT = re.compile(
    r"\s(?P<time>[0-9]+\.[0-9]+): +(?:timer:)?(?P<kind>h?r?timer)_(?P<action>start|cancel|"
    r"expire_entry): +h?r?timer=(?P<timer>\S+)(?:.*? expires=(?P<expires>[0-9]+))?"
    r"(?: \[timeout=(?P<timeout>-?[0-9]+)\])?(?:.*? now=(?P<now>[0-9]+))?"
)
_LOST = re.compile(r"LOST (?P<events>[0-9]+) EVENTS")
_JIFFIES, _NANOSECONDS = "timer", "hrtimer"


class KernelTraceError(TimerError, ValueError):
    """A text has no timer events, or the length of a jiffy is not known."""


class KernelTrace(NamedTuple):
    """A trace of the timers of a kernel."""

    trace: Trace
    events: int  # starts, cancels and expiries in the text
    hz: int | None  # jiffies per second; None if there are only high-resolution timers
    lost: int  # events that the kernel says it has lost


class _Event(NamedTuple):
    time: float  # seconds
    kind: str
    action: str
    timer: int
    deadline: int  # of a start, on the kernel's own clock


_Readings = dict[str, list[tuple[float, int]]]
"""Kind of timers -> where the text tells the kernel's own clock: the time in seconds, and that."""


def read_kernel_trace(
    log: Path, out: Path, *, hz: int | None = None, force: bool = False
) -> KernelTrace:
    """Turn the output of `trace-cmd report` or `perf script` into a trace in microseconds.

    Timers of the events timer_start, timer_cancel and timer_expire_entry count jiffies; without
    `hz` their rate is found from the expiries. Those of the events hrtimer_* count nanoseconds. A
    deadline is moved to the clock of the text so that no timer expires before it. O(events) time
    and memory.

    Raises:
        KernelTraceError: if there are no timer events, or the rate is needed and cannot be found.
        TraceError: if the trace cannot be written.
    """
    with (
        errors_as(KernelTraceError, f"cannot read {log}"),
        log.open(encoding="utf-8", errors="replace") as lines,
    ):
        events, readings, lost = _parsed(lines, log)
    origin = min((event.time for event in events), default=0.0)
    tape = RecordedTape(origin)
    jiffies = any(event.kind == _JIFFIES for event in events)
    hz = (hz or _rate(readings[_JIFFIES], log)) if jiffies else None
    columns = _recorded(events, readings, hz)
    source = {"kind": "kernel", "log": str(log), "hz": hz}
    with new_trace(out, unit=UNIT, source=source, force=force) as unfinished:
        pieces = (columns[start : start + PIECE] for start in range(0, len(columns), PIECE))
        unfinished.shards.append(write_shard(unfinished.directory, 0, map(tape.add, pieces)))
    return KernelTrace(open_trace(out), len(events), hz, lost)


def _parsed(lines: Iterable[str], log: Path) -> tuple[list[_Event], _Readings, int]:
    numbers: dict[str, int] = {}
    readings: _Readings = {_JIFFIES: [], _NANOSECONDS: []}
    events, lost, first = [], 0, ""
    for line in lines:
        first = first or line.strip()
        if match := _EVENT.search(line):
            number = numbers.setdefault(match["kind"] + match["timer"], len(numbers))
            time, kind, deadline = float(match["time"]), match["kind"], int(match["expires"] or 0)
            events.append(_Event(time, kind, match["action"], number, deadline))
            if match["timeout"]:
                readings[kind].append((time, deadline - int(match["timeout"])))
            elif match["now"]:
                readings[kind].append((time, int(match["now"])))
        elif match := _LOST.search(line):
            lost += int(match["events"])
    if not events:
        shown = f"; its first line is {first[:80]!r}" if first else ""
        raise KernelTraceError(
            f"{log} has no timer events as printed by `trace-cmd report` or `perf script`{shown}"
        )
    events.sort(key=lambda event: event.time)  # of several processors; equal times keep their order
    return events, readings, lost


def _recorded(events: list[_Event], readings: _Readings, hz: int | None) -> Float64s:
    """The events as a recording has them."""
    per_second = {_JIFFIES: float(hz or 1), _NANOSECONDS: 1e9}
    # How many seconds the clock of the text is ahead of that of the timers. An event is printed
    # after the kernel has read its clock, and jiffies are rounded down, so the smallest difference
    # is the best.
    ahead = {
        kind: min((time - now / per_second[kind] for time, now in clock), default=0.0)
        for kind, clock in readings.items()
    }
    rows: list[list[float]] = []
    cancelled: dict[int, int] = {}  # timer -> row of its last event, which is a cancel
    for time, kind, action, timer, deadline in events:
        row = cancelled.pop(timer, None)
        if action == "cancel":
            cancelled[timer] = len(rows)
            rows.append([CANCELLED, time, timer, 0.0])
        elif action == "start":
            started = STARTED
            if row is not None and time - rows[row][1] <= AT_ONCE:
                rows[row][0], started = 0.0, MOVED
            due = deadline / per_second[kind] + ahead[kind]
            rows.append([started, time, timer, due - time])
        elif row is not None:
            rows[row][0] = 0.0  # it was cancelled because it expires
    return np.array([row for row in rows if row[0]]).reshape(-1, FIELDS)


def _rate(clock: list[tuple[float, int]], log: Path) -> int:
    """The rate of jiffies that fits the readings best."""
    (first, start), (last, end) = min(clock, default=(0.0, 0)), max(clock, default=(0.0, 0))
    if end <= start:
        raise KernelTraceError(
            f"the length of a jiffy cannot be found from {log}; pass --hz, the kernel's CONFIG_HZ"
        )
    return min(RATES, key=lambda rate: abs(rate * (last - first) - (end - start)))
