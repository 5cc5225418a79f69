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
from compare.traffic.tapes.blocks import BLOCK, blocks_of
from compare.traffic.tapes.recorded import (
    CANCELLED,
    FIELDS,
    MOVED,
    STARTED,
    UNIT,
    Float64s,
    RecordedTape,
)
from compare.traffic.tapes.trace import Trace, new_trace, open_trace
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
_LOST = re.compile(r"LOST (?P<events>[0-9]+) EVENTS", re.IGNORECASE)
_JIFFIES, _NANOSECONDS = "timer", "hrtimer"
_WORD = 2**32
"""The jiffies of a 32-bit kernel are counted modulo this. It begins 300 s before the end."""


class KernelTraceError(TimerError, ValueError):
    """A text has no timer events, or the length of a jiffy is not known."""


class KernelTrace(NamedTuple):
    """A trace of the timers of a kernel."""

    trace: Trace
    events: int  # starts, cancels and expiries in the text
    hz: int | None  # jiffies per second; None if there are only high-resolution timers
    lost: int  # events that the kernel says it has lost
    uncancelled: tuple[str, ...]  # cancel events that the text lacks, though timers are started

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each thing that is missing."""
        texts = [f"The kernel has lost {self.lost:,} events."] if self.lost else []
        if self.uncancelled:
            texts.append(
                f"There is no {' or '.join(self.uncancelled)} event. Were they recorded? Without"
                " them, cancelled timers seem to expire."
            )
        return tuple(texts)


class _Event(NamedTuple):
    time: float  # seconds
    kind: str
    action: str
    timer: int
    deadline: int  # of a start, on the kernel's own clock
    now: int | None  # that clock, if the text tells it


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
    jiffies = any(event.kind == _JIFFIES for event in events)
    hz = (hz or _rate(_clock(events, _JIFFIES), log)) if jiffies else None
    columns = _recorded(events, hz)
    source = {"kind": "kernel", "log": str(log), "hz": hz}
    with new_trace(out, unit=UNIT, source=source, force=force) as unfinished:
        pieces = (columns[start : start + BLOCK] for start in range(0, len(columns), BLOCK))
        unfinished.write(0, blocks_of(0, map(tape.add, pieces)))
    seen = {(event.kind, event.action) for event in events}
    uncancelled = tuple(
        f"{kind}_cancel"
        for kind in (_JIFFIES, _NANOSECONDS)
        if (kind, "start") in seen and (kind, "cancel") not in seen
    )
    return KernelTrace(open_trace(out), len(events), hz, lost, uncancelled)


def _parsed(lines: Iterable[str], log: Path) -> tuple[list[_Event], int]:
    numbers: dict[str, int] = {}
    events: list[_Event] = []
    lost, first = 0, ""
    for line in lines:
        first = first or line.strip()
        if match := _EVENT.search(line):
            number = numbers.setdefault(match["kind"] + match["timer"], len(numbers))
            time, kind, deadline = float(match["time"]), match["kind"], int(match["expires"] or 0)
            now = int(match["now"]) if match["now"] else None
            if match["timeout"]:
                now = deadline - int(match["timeout"])
            events.append(_Event(time, kind, match["action"], number, deadline, now))
        elif match := _LOST.search(line):
            lost += int(match["events"])
    if not events:
        shown = f"; its first line is {first[:80]!r}" if first else ""
        raise KernelTraceError(
            f"{log} has no timer events as printed by `trace-cmd report` or `perf script`{shown}"
        )
    events.sort(key=lambda event: event.time)  # of several processors; equal times keep their order
    return _unwrapped(events), lost


def _unwrapped(events: list[_Event]) -> list[_Event]:
    """The events, in order, with jiffies that do not wrap."""
    words = [event for event in events if event.kind == _JIFFIES]
    if any(event.deadline >= _WORD or (event.now or 0) >= _WORD for event in words):
        return events  # of a 64-bit kernel
    latest = next((event.now for event in words if event.now is not None), 0)

    def nearest(jiffies: int) -> int:
        return latest + (jiffies - latest + _WORD // 2) % _WORD - _WORD // 2

    unwrapped = []
    for event in events:
        if event.kind == _JIFFIES:
            now = event.now
            if now is not None:
                now = latest = nearest(now)
            event = event._replace(deadline=nearest(event.deadline), now=now)
        unwrapped.append(event)
    return unwrapped


def _clock(events: Iterable[_Event], kind: str) -> list[tuple[float, int]]:
    """Where the text tells the kernel's own clock: the time in seconds, and that."""
    return [
        (event.time, event.now) for event in events if event.kind == kind and event.now is not None
    ]


def _recorded(events: list[_Event], hz: int | None) -> Float64s:
    """The events as a recording has them."""
    per_second = {_JIFFIES: float(hz or 1), _NANOSECONDS: 1e9}
    # How many seconds the clock of the text is ahead of that of the timers. An event is printed
    # after the kernel has read its clock, and jiffies are rounded down, so the smallest difference
    # is the best.
    ahead = {
        kind: min((time - now / rate for time, now in _clock(events, kind)), default=0.0)
        for kind, rate in per_second.items()
    }
    rows: list[list[float]] = []
    cancelled: dict[int, int] = {}  # timer -> row of its last event, which is a cancel
    expired: set[int] = set()
    for time, kind, action, timer, deadline, _ in events:
        row = cancelled.pop(timer, None)
        if action == "cancel":
            cancelled[timer] = len(rows)
            rows.append([CANCELLED, time, timer, 0.0])
        elif action == "start":
            # The kernel has each timer once: another start moves it if it is pending.
            started = STARTED if timer in expired else MOVED
            expired.discard(timer)
            if row is not None and time - rows[row][1] <= AT_ONCE:
                rows[row][0] = 0.0
            due = deadline / per_second[kind] + ahead[kind]
            rows.append([started, time, timer, due - time])
        else:
            expired.add(timer)
            if row is not None:
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
