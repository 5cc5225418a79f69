"""The part that all peers written in Python share: arguments, tapes, clocks and JSON.

A peer is a class and a description. `run_peer` runs one of the protocol's commands (docs/peers.md).
Nothing but the standard library is imported, so that a peer's memory is its own.
"""

import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

START, CANCEL, REARM, ARM = range(4)
BAD_INPUT = 2
BINS = 496  # of a histogram: enough for 2**63 ns

Fired = Iterable[tuple[int, int]]
"""Operations that last armed the timers that fire, and when these fire."""


class Structure(Protocol):
    """A timer structure: `make(start)` makes an empty one whose clock is at `start`."""

    def start(self, operation: int, deadline: int) -> Any:
        """Start a timer, and return a handle to it."""

    def cancel(self, handle: Any) -> bool:
        """Cancel a timer; False if it is not pending."""

    def rearm(self, handle: Any, operation: int, deadline: int) -> Any:
        """Re-arm a timer and return its new handle; None if it is not pending."""

    def advance(self, now: int) -> Fired:
        """Advance the clock, and return what fires, in order."""

    def next_wakeup(self) -> int:
        """When to advance next; something is pending."""

    def __len__(self) -> int:
        """Return the number of pending timers."""


Make = Callable[[int], Structure]


class BadTape(Exception):
    """A file is not a tape of this version."""


class Tape:
    """A tape file in memory."""

    def __init__(self, path: str) -> None:
        data = Path(path).read_bytes()
        header = array("q", data[:64] if len(data) >= 64 else bytes(64))
        if sys.byteorder == "big":
            header.byteswap()
        if len(data) < 64 or data[:8] != b"WHLTAPE\0":
            raise BadTape(f"{path} is not a tape")
        if header[1] != 1:
            raise BadTape(f"{path} is a tape of version {header[1]}; this peer reads version 1")
        self.operations, self.id_space, self.first_time, phases = header[3:7]
        columns, offset = [], 64
        for kind, size in zip("qqbiq", (phases, *[self.operations] * 4), strict=True):
            column = array(kind)
            end = offset + size * column.itemsize
            if end > len(data):
                raise BadTape(f"{path} is cut short: it has {len(data)} bytes")
            column.frombytes(data[offset:end])
            if sys.byteorder == "big":
                column.byteswap()
            columns.append(column)
            offset = end + -end % 8
        self.phases, self.time, self.op, self.id, self.deadline = columns


class Histogram:
    """The times of single operations, in ns: bins of powers of two, eight in each."""

    def __init__(self) -> None:
        self.counts = [0] * BINS

    def watch(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield each item, and count the time until the next one is asked for."""
        clock = time.perf_counter_ns
        started = clock()
        for item in items:
            yield item
            self.add(clock() - started)
            started = clock()

    def add(self, ns: int) -> None:
        """Count a time."""
        exponent = max(ns.bit_length() - 4, 0)
        self.counts[8 * exponent + (ns >> exponent)] += 1

    def take(self) -> list[int]:
        """The counts since the last call, up to the last that is not 0."""
        counts = self.counts[: max((i + 1 for i, n in enumerate(self.counts) if n), default=0)]
        self.counts[:] = [0] * BINS
        return counts


class Run:
    """A structure that does a tape, phase by phase. `watch` sees each operation and advance."""

    def __init__(
        self, make: Make, tape: Tape, early: int, watch: Callable[[Any], Iterable[Any]] = iter
    ) -> None:
        self.timer, self.tape, self.early, self.watch = make(tape.first_time), tape, early, watch
        self.now, self.may_be_due = tape.first_time, False
        self.handles: list[Any] = [None] * tape.id_space
        self.rows = array("q")  # operation, before, clock and fired_at of each expiry

    def operations(self, first: int, last: int) -> None:
        """Do operations [first, last)."""
        timer, tape, handles, early = self.timer, self.tape, self.handles, self.early
        start, cancel, rearm = timer.start, timer.cancel, timer.rearm
        now, may_be_due = self.now, self.may_be_due
        columns = (column[first:last] for column in (tape.time, tape.op, tape.id, tape.deadline))
        for k, (moment, op, i, deadline) in self.watch(
            enumerate(zip(*columns, strict=True), first)
        ):
            if moment > now or may_be_due:
                self.advance(moment, k)
                now = moment
            may_be_due = False
            handle = handles[i]
            if op == CANCEL:
                if handle is not None:
                    cancel(handle)
                    handles[i] = None
                continue
            if op != START and handle is not None:
                handle = rearm(handle, k, deadline)
            else:
                handle = None
            if handle is None:
                if op == REARM:
                    handles[i] = None
                    continue
                handle = start(k, deadline)
            handles[i] = handle
            may_be_due = deadline - now <= early
        self.now, self.may_be_due = now, may_be_due

    def drain(self) -> None:
        """Advance from wake-up to wake-up until nothing is pending."""
        for wakeup in self.watch(self._wakeups()):
            self.advance(wakeup, self.tape.operations)

    def _wakeups(self) -> Iterator[int]:
        while len(self.timer):
            yield max(self.timer.next_wakeup(), self.now)

    def advance(self, moment: int, before: int) -> None:
        """Advance, and keep what fires."""
        for operation, fired_at in self.timer.advance(moment):
            self.rows.extend((operation, before, moment, fired_at))
        self.now = moment

    @property
    def expired(self) -> int:
        """The number of expiries so far."""
        return len(self.rows) // 4


def check(make: Make, tape: Tape, early: int) -> "array[int]":
    """Return the rows of all expiries."""
    run = Run(make, tape, early)
    run.operations(0, tape.operations)
    run.drain()
    return run.rows


def times(run: Any, tape: Tape, histogram: Histogram | None) -> list[dict[str, Any]]:
    """Time each phase of one run. `run` has the methods of Run."""
    lines: list[dict[str, Any]] = []
    ends = [*tape.phases[1:], tape.operations]
    spans = [*zip(tape.phases, ends, strict=True), None]
    for phase, span in enumerate(spans):
        expired, clocks = run.expired, _clocks()
        if span is None:
            run.drain()
        else:
            run.operations(*span)
        wall, thread, process = (b - a for a, b in zip(clocks, _clocks(), strict=True))
        lines.append(
            {
                "phase": phase,
                "operations": span[1] - span[0] if span else 0,
                "expired": run.expired - expired,
                "wall_ns": wall,
                "thread_ns": thread,
                "process_ns": process,
            }
            | ({"histogram": histogram.take()} if histogram else {})
        )
    return lines


def _clocks() -> tuple[int, int, int]:
    return time.perf_counter_ns(), time.thread_time_ns(), time.process_time_ns()


def resident(field: str) -> int | None:
    """Return VmRSS or VmHWM of this process in bytes; None where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith(field)]
    return int(found[0]) * 1024 if found else None


def reset_peak() -> None:
    """Forget the largest memory of this process so far, where the system allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def run_peer(
    description: dict[str, Any],
    make: Make,
    argv: list[str] | None = None,
    new_run: Callable[[Tape], Any] | None = None,
) -> int:
    """Run one of the protocol's commands, and return the exit code.

    `new_run(tape)` makes what `time` runs; by default, and for a histogram, it runs the structure
    in Python.
    """
    arguments = sys.argv[1:] if argv is None else argv
    rounding = description.get("rounding", {"kind": "exact"})
    early = rounding["tick"] - 1 if rounding["kind"] == "down" else 0
    try:
        match arguments:
            case ["describe"]:
                print(json.dumps(description))
            case ["check", path, out]:
                rows = check(make, Tape(path), early)
                if sys.byteorder == "big":
                    rows.byteswap()
                Path(out).write_bytes(rows.tobytes())
            case ["time", path, *options] if len(options) % 2 == 0:
                given = dict(zip(options[::2], map(int, options[1::2]), strict=True))
                rounds, warm_up = given.get("--rounds", 7), given.get("--warm-up", 5)
                tape = Tape(path)
                histogram = Histogram() if given.get("--histogram") else None
                start = new_run or (lambda tape: Run(make, tape, early))
                if histogram:
                    watch = histogram.watch
                    start = lambda tape: Run(make, tape, early, watch)  # noqa: E731
                start(tape)  # what it imports and allocates once is not counted
                before = resident("VmRSS")
                reset_peak()
                memory: int | None = None
                for number in range(-warm_up, rounds):
                    lines = times(start(tape), tape, histogram)
                    if memory is None and before is not None:
                        memory = max((resident("VmHWM") or 0) - before, 0)
                    if number >= 0:
                        for line in lines:
                            print(json.dumps({"round": number, **line, "memory_bytes": memory}))
            case _:
                name = description["name"]
                print(f"usage: {name} describe | check TAPE OUT | time TAPE", file=sys.stderr)
                return BAD_INPUT
    except BadTape as error:
        print(f"{description['name']}: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"{description['name']}: {error.filename}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    sys.stdout.flush()
    return os.EX_OK
