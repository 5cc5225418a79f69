"""The part that all peers written in Python share: arguments, tapes, clocks and JSON.

A peer is a class and a description. `run_peer` runs one of the protocol's commands (docs/peers.md).
Nothing but the standard library is imported, so that a peer's memory is its own.
"""

import json
import os
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

# from shared.py: begin
# A tape begins with it and a zero byte.
MAGIC = "WHLTAPE"
# Of a tape; in bytes.
VERSION, HEADER, ALIGNMENT = 1, 64, 8
# Where the int64s of the header are.
VERSION_AT, OPERATIONS_AT, ID_SPACE_AT, FIRST_TIME_AT, PHASES_AT = 8, 24, 32, 40, 48
# Operations.
START, CANCEL, REARM, ARM = 0, 1, 2, 3
# The bins of a histogram: enough for 2^63 ns.
BINS = 496
# Defaults of options.
ROUNDS, WARM_UP, THREADS_ROUNDS, PRODUCERS = 7, 5, 1, 2
# What a row of `threads` says.
REFUSED, DONE, RAN = 0, 1, 2
# A unit of `threads`; how long it waits for a call, and then for one that is too many.
UNIT_NS, GRACE_MS, SETTLE_MS = 1000000, 5000, 50
# The exit code for a bad command or tape.
BAD_INPUT = 2
# Problems of a tape, after its path.
NO_TAPE, CUT = "is not a tape", "is cut short"
# The usage.
COMMANDS = "describe | check TAPE OUT | time TAPE"
# The members of a line of `time` and `threads`.
COMMON = "round phase operations expired wall_ns process_ns"
# And those that `threads` may leave out.
OWN = "thread_ns memory_bytes"
# from shared.py: end
_THREAD, _MEMORY = OWN.split()

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


class Service(Protocol):
    """A timer for several threads, in real time: `serve()` starts one."""

    def start(self, delay: int, call: Callable[[], None]) -> Any:
        """Make a call in `delay` ms, and return a handle to it."""

    def cancel(self, handle: Any) -> bool:
        """Cancel a call; False if it is not pending."""

    def close(self) -> None:
        """End it; nothing is pending."""


Make = Callable[[int], Structure]


class BadTape(Exception):
    """A file cannot be read as a tape."""


class Tape:
    """A tape file in memory."""

    def __init__(self, path: str) -> None:
        data = Path(path).read_bytes()
        header = array("q", data[:HEADER] if len(data) >= HEADER else bytes(HEADER))
        if sys.byteorder == "big":
            header.byteswap()
        if len(data) < HEADER or data[:8] != f"{MAGIC}\0".encode():
            raise BadTape(f"{path} {NO_TAPE}")
        cells = (VERSION_AT, OPERATIONS_AT, ID_SPACE_AT, FIRST_TIME_AT, PHASES_AT)
        version, self.operations, self.id_space, self.first_time, phases = (
            header[at // 8] for at in cells
        )
        if version != VERSION:
            raise BadTape(
                f"{path} is a tape of version {version}; this peer reads version {VERSION}"
            )
        columns, offset = [], HEADER
        for kind, size in zip("qqbiq", (phases, *[self.operations] * 4), strict=True):
            column = array(kind)
            end = offset + size * column.itemsize
            if end > len(data):
                raise BadTape(f"{path} {CUT}: it has {len(data)} bytes")
            column.frombytes(data[offset:end])
            if sys.byteorder == "big":
                column.byteswap()
            columns.append(column)
            offset = end + -end % ALIGNMENT
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


def times(run: Any, tape: Tape, number: int, histogram: Histogram | None) -> list[dict[str, Any]]:
    """Time each phase of one run, whose number is given. `run` has the methods of Run."""
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
        operations = span[1] - span[0] if span else 0
        values = (number, phase, operations, run.expired - expired, wall, process)
        line = dict(zip(COMMON.split(), values, strict=True)) | {_THREAD: thread}
        lines.append(line | ({"histogram": histogram.take()} if histogram else {}))
    return lines


class Producers:
    """Threads that divide a tape of starts and cancels by id, in real time."""

    def __init__(self, service: Service, tape: Tape, threads: int, *, records: bool) -> None:
        self.service, self.tape, self.threads, self.records = service, tape, threads, records
        self.handles: list[Any] = [None] * tape.id_space
        self.done = bytearray(tape.operations)
        self.calls: list[array[int]] = [array("q") for _ in range(threads)]
        self.runs: list[int] = []  # for each expiry its operation and its time; append is atomic

    def run(self, operation: int) -> None:
        """What a timer calls."""
        if self.records:
            self.runs.extend((operation, time.monotonic_ns()))
        else:
            self.runs.append(operation)

    def operations(self, first: int, last: int) -> None:
        """Do operations [first, last) with all threads."""
        workers = [
            threading.Thread(target=self._produce, args=(number, first, last))
            for number in range(self.threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _produce(self, number: int, first: int, last: int) -> None:
        op, id_, deadline, moment = self.tape.op, self.tape.id, self.tape.deadline, self.tape.time
        handles, calls, clock = self.handles, self.calls[number], time.monotonic_ns
        begin = end = 0
        for k in range(first, last):
            i = id_[k]
            if i % self.threads != number:
                continue
            if self.records:
                begin = clock()
            if op[k] == CANCEL:
                self.done[k] = self.service.cancel(handles[i])
            else:
                handles[i] = self.service.start(deadline[k] - moment[k], partial(self.run, k))
                self.done[k] = DONE
            if self.records:
                end = clock()
                calls.extend((k, self.done[k], begin, end))

    @property
    def expired(self) -> int:
        """The number of calls so far."""
        return len(self.runs) // (2 if self.records else 1)

    def drain(self) -> None:
        """Wait until all has been called that was not cancelled."""
        took = sum(d for d, op in zip(self.done, self.tape.op, strict=True) if op == CANCEL)
        wanted = self.tape.op.count(START) - took
        until = time.monotonic_ns() + GRACE_MS * 1_000_000
        while self.expired < wanted and time.monotonic_ns() < until:
            time.sleep(0.001)
        time.sleep(SETTLE_MS / 1000)
        self.service.close()

    def rows(self) -> "array[int]":
        """Operation, what happened, begin and end of each call and expiry."""
        rows = array("q")
        for calls in self.calls:
            rows.extend(calls)
        for operation, moment in zip(self.runs[::2], self.runs[1::2], strict=True):
            rows.extend((operation, RAN, moment, moment))
        return rows


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


def _write(rows: "array[int]", out: str) -> None:
    if sys.byteorder == "big":
        rows.byteswap()
    Path(out).write_bytes(rows.tobytes())


def run_peer(
    description: dict[str, Any],
    make: Make,
    argv: list[str] | None = None,
    new_run: Callable[[Tape], Any] | None = None,
    serve: Callable[[], Service] | None = None,
) -> int:
    """Run one of the protocol's commands, and return the exit code.

    `new_run(tape)` makes what `time` runs; by default, and for a histogram, it runs the structure
    in Python. `serve` is for a peer that declares `threads`.
    """
    arguments = sys.argv[1:] if argv is None else argv
    rounding = description.get("rounding", {"kind": "exact"})
    early = rounding["tick"] - 1 if rounding["kind"] == "down" else 0
    try:
        match arguments:
            case ["describe"]:
                print(json.dumps(description))
            case ["check", path, out]:
                _write(check(make, Tape(path), early), out)
            case ["time", path, *options] if len(options) % 2 == 0:
                given = dict(zip(options[::2], map(int, options[1::2]), strict=True))
                rounds, warm_up = given.get("--rounds", ROUNDS), given.get("--warm-up", WARM_UP)
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
                    lines = times(start(tape), tape, number, histogram)
                    if memory is None and before is not None:
                        memory = max((resident("VmHWM") or 0) - before, 0)
                    if number >= 0:
                        for line in lines:
                            print(json.dumps({**line, _MEMORY: memory}))
            case ["threads", path, *options] if serve and len(options) % 2 == 0:
                words = dict(zip(options[::2], options[1::2], strict=True))
                tape, place = Tape(path), words.get("--out")
                rounds = int(words.get("--rounds", THREADS_ROUNDS))
                for number in range(-int(words.get("--warm-up", 0)), rounds):
                    threads = int(words.get("--threads", PRODUCERS))
                    run = Producers(serve(), tape, threads, records=place is not None)
                    for line in times(run, tape, number, None):
                        if number >= 0:
                            print(json.dumps(line))
                if place is not None:
                    _write(run.rows(), place)
            case _:
                name = description["name"]
                print(f"usage: {name} {COMMANDS}", file=sys.stderr)
                return BAD_INPUT
    except BadTape as error:
        print(f"{description['name']}: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"{description['name']}: {error.filename}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    sys.stdout.flush()
    return os.EX_OK
