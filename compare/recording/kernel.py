"""Turns the timer events of a Linux kernel, printed by trace-cmd or perf, into a trace.

The kernel prints a cancel, too, when a timer is moved or expires (`detach_timer` in
kernel/time/timer.c, `__run_hrtimer` in kernel/time/hrtimer.c).
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compare.files import errors_as
from compare.recording.events import UNIT, RecordedTape
from compare.recording.recorder import CANCELLED, FIELDS, MOVED, STARTED
from compare.tapes.trace import PIECE, Trace, new_shard, new_trace, open_trace, shard_name
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
UNKNOWN = -1
_JIFFIES, _NANOSECONDS = "timer", "hrtimer"


class KernelTraceError(TimerError, ValueError):
    """A text has no timer events, or the length of a jiffy is not known."""


class KernelTrace(NamedTuple):
    """What was read."""

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
    now: int  # that clock, or UNKNOWN


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
        events, lost = _parsed(lines, log)
    origin = min((event.time for event in events), default=0.0)
    tape = RecordedTape(origin)
    columns, hz = _recorded(events, hz, log)
    source = {"kind": "kernel", "log": str(log), "hz": hz}
    with new_trace(out, unit=UNIT, source=source, force=force) as unfinished:
        with new_shard(unfinished.directory / shard_name(0)) as writer:
            for start in range(0, len(columns), PIECE):
                writer.append(tape.add(columns[start : start + PIECE]))
        unfinished.shards.append(writer.shard)
    return KernelTrace(open_trace(out), len(events), hz, lost)


def _parsed(lines: Iterable[str], log: Path) -> tuple[list[_Event], int]:
    numbers: dict[str, int] = {}
    events, lost, first = [], 0, ""
    for line in lines:
        first = first or line.strip()
        if match := _EVENT.search(line):
            number = numbers.setdefault(match["kind"] + match["timer"], len(numbers))
            deadline, now = int(match["expires"] or 0), int(match["now"] or UNKNOWN)
            if match["timeout"]:
                now = deadline - int(match["timeout"])
            time, kind, action = float(match["time"]), match["kind"], match["action"]
            events.append(_Event(time, kind, action, number, deadline, now))
        elif match := _LOST.search(line):
            lost += int(match["events"])
    if not events:
        shown = f"; its first line is {first[:80]!r}" if first else ""
        raise KernelTraceError(
            f"{log} has no timer events as printed by `trace-cmd report` or `perf script`{shown}"
        )
    events.sort(key=lambda event: event.time)  # of several processors; equal times keep their order
    return events, lost


def _recorded(events: list[_Event], hz: int | None, log: Path) -> tuple[np.ndarray, int | None]:
    """The events as a recording has them, and the rate of jiffies."""
    jiffies = any(event.kind == _JIFFIES for event in events)
    rate = (hz or _rate(events, log)) if jiffies else None
    per_second = {_JIFFIES: float(rate or 1), _NANOSECONDS: 1e9}
    ahead = {kind: _ahead(events, kind, per_second[kind]) for kind in per_second}
    rows: list[list[float]] = []
    cancelled: dict[int, int] = {}  # timer -> row of its last event, which is a cancel
    for time, kind, action, timer, deadline, _ in events:
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
    table = np.array(rows).reshape(-1, FIELDS)
    return table[table[:, 0] != 0], rate


def _ahead(events: list[_Event], kind: str, per_second: float) -> float:
    """How far the clock of the text is ahead of that of the timers, in seconds.

    An event is printed after the kernel has read its clock, and jiffies are rounded down, so the
    smallest difference is the best.
    """
    return min(
        (event.time - event.now / per_second for event in events if _shows_clock(event, kind)),
        default=0.0,
    )


def _shows_clock(event: _Event, kind: str) -> bool:
    return event.kind == kind and event.now != UNKNOWN


def _rate(events: list[_Event], log: Path) -> int:
    shown = [event for event in events if _shows_clock(event, _JIFFIES)]
    jiffies = shown[-1].now - shown[0].now if shown else 0
    if jiffies <= 0:
        raise KernelTraceError(
            f"the length of a jiffy cannot be found from {log}; pass --hz, the kernel's CONFIG_HZ"
        )
    seconds = shown[-1].time - shown[0].time
    return min(RATES, key=lambda rate: abs(rate * seconds - jiffies))
