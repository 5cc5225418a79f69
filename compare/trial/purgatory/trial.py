"""One run of the experiment in real time, in a process of its own.

One thread enqueues requests as they arrive. Another completes those that end in time, using its own
wheel of lists. The timer's thread expires the others. The design NONE neither watches nor times the
requests; it measures the cost of the experiment's own two threads.
"""

import gc
import resource
import signal
import sys
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any

import numpy as np

from compare.base.quantiles import QUANTILES
from compare.trial.purgatory.figures import NONE, PURGING, SCANNING
from compare.trial.purgatory.scanning import ScanningPurgatory
from compare.trial.purgatory.traffic import WATCHED, Traffic
from compare.trial.replay.lateness import Lateness
from timers.registry import timer_class
from timers.services import (
    DelayedOperation,
    MonotonicClock,
    Purgatory,
    SystemTimer,
)

PAYLOAD = 100
"""Bytes carried by a request."""

_NS = 10**9
_WARM_UP = 500  # requests, to load compiled code before anything is measured
_WARM_UP_TIMEOUT = 5_000  # microseconds
_TICK_NS = 10**6  # the period at which both threads look for requests
_MOST_AT_ONCE = 1000  # requests enqueued between two checks for errors and the end
_SAMPLE_S = 0.02  # the period at which memory and sizes are sampled
_GRACE_S = 1.0  # to wait for the last requests, in addition to the planned duration
_RESERVE = 1 << 20  # bytes, released when memory runs out
_OVERRUN = 2.0  # enqueuing stops after this many times the planned duration

_now = MonotonicClock.now


@dataclass(frozen=True)
class Trial:
    """The parameters of a trial."""

    design: str
    timer: str
    interval: int
    memory_bytes: int | None = None


def measure(trial: Trial, traffic: Traffic) -> dict[str, Any]:
    """Run a trial in a new process, and return its figures by the names of their metrics.

    If it fails, `failed` says why; the other figures are those up to the failure, or missing.
    """
    context = get_context("forkserver")  # children start within ms and inherit no threads
    context.set_forkserver_preload([__name__])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(trial, traffic, sender), daemon=True)
    process.start()
    sender.close()
    figures: dict[str, Any] = {}
    try:
        with suppress(EOFError):
            figures = receiver.recv()
        process.join()
    finally:
        process.kill()  # if it has not ended: it ignores Ctrl-C
    return figures or {"failed": f"the process ended with exit code {process.exitcode}"}


def _run(trial: Trial, traffic: Traffic, sender: Connection) -> None:
    """Run in the new process: the first requests to warm up, then all requests, measured."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the parent, too
    first = {name: getattr(traffic, name)[:_WARM_UP] for name in ("arrivals", "services", "keys")}
    warm_up = traffic._replace(**first, timeout=_WARM_UP_TIMEOUT)
    _Run(replace(trial, memory_bytes=None), warm_up).measure()
    timer_class(trial.timer)(capacity=1).schedule_many([1, 2])  # also loads the code that grows
    gc.collect()
    gc.freeze()
    sender.send(_Run(trial, traffic).measure())


class Request(DelayedOperation):
    """A request that only the completing thread or its timeout ends."""

    __slots__ = ("deadline", "late", "payload")

    deadline: int
    late: list[int]
    payload: bytes

    def try_complete(self) -> bool:
        """Only the end of its service time completes it."""
        return False

    def on_expiration(self) -> None:
        """Record how late the timeout is."""
        self.late.append(_now() - self.deadline)


class _Run:
    """The threads of a trial, and what they record.

    A handler of MemoryError releases the reserve before anything else: with no memory at all,
    CPython 3.11 cannot even leave a `with` block, and tries for ever.
    """

    def __init__(self, trial: Trial, traffic: Traffic) -> None:
        self.trial, self.traffic = trial, traffic
        self.errors: list[BaseException] = []
        self.late: list[int] = []  # nanoseconds, of each request that expired
        self.completed = 0
        self.enqueued = 0
        self.answers: deque[tuple[int, Request]] = deque()  # on the way to the other thread
        self.over = False
        self.reserve: bytearray | None = None
        self.peak = 0  # resident bytes
        self.totals: list[tuple[int, float]] = []  # estimated and exact
        self.gc_ns = self._gc_began = 0

    def measure(self) -> dict[str, Any]:
        """Run the trial and return its figures."""
        interval = self.trial.interval
        with SystemTimer(timer_class(self.trial.timer)(), on_error=self._note) as timer:
            if self.trial.design == PURGING:
                self.purgatory: Any = Purgatory("requests", timer, purge_interval=interval)
            elif self.trial.design == SCANNING:
                self.purgatory = ScanningPurgatory("requests", timer, limit=interval)
            else:
                self.purgatory = SimpleNamespace(try_complete_else_watch=lambda request, keys: None)
            others = self._complete, self._watch
            threads = [threading.Thread(target=self._noting, args=(run,)) for run in others]
            arrivals = (self.traffic.arrivals * 1000).tolist()
            services = (self.traffic.services * 1000).tolist()
            keys = [tuple(row) for row in self.traffic.keys.tolist()]
            before = _memory(_RESIDENT)
            for thread in threads:
                thread.start()
            if self.trial.memory_bytes is not None:
                self.reserve = bytearray(_RESERVE)
                _limit_memory(self.trial.memory_bytes)
            gc.callbacks.append(self._note_collection)
            cpu, started = time.process_time_ns(), _now()
            try:
                self._enqueue(started, arrivals, services, keys)
                elapsed = _now() - started
                self._wait()
            except MemoryError as error:
                self.reserve = None
                elapsed = _now() - started
                self._note(None, error)
            finally:
                cpu = time.process_time_ns() - cpu
                self.over = True
                gc.callbacks.remove(self._note_collection)
                if self.trial.memory_bytes is not None:
                    _limit_memory(None)
            for thread in threads:
                thread.join()
        return self._figures(elapsed, cpu, before)

    def _figures(self, elapsed: int, cpu: int, before: int) -> dict[str, Any]:
        requests = max(self.enqueued, 1)
        late = Lateness.of(np.array(self.late, np.int64)).quantiles(QUANTILES.values())
        lost = self.enqueued - self.completed - len(self.late)
        failed, totals = None, {}
        if self.totals:
            estimates, exact = zip(*self.totals, strict=True)
            totals["estimated_total"], totals["exact_total"] = mean(estimates), mean(exact)
            totals["estimate_error"] = max(abs(a - b) for a, b in self.totals)
        if self.errors:
            failed = type(self.errors[0]).__name__
        elif lost and self.trial.design != NONE:
            failed = f"{lost} requests did not end within {self._time_limit() / _NS:.1f} s"
        return {
            "requests": self.enqueued,
            "achieved": self.enqueued / elapsed * _NS,
            "cpu_us": cpu / requests / 1000,
            "gc_us": self.gc_ns / requests / 1000,
            "peak_bytes": max(self.peak - before, 0),
            **{
                f"late_{name}_ms": None if ns is None else ns / 1e6
                for name, ns in zip(QUANTILES, late, strict=True)
            },
            "share_expired": len(self.late) / requests if self.trial.design != NONE else None,
            **totals,
            "failed": failed,
        }

    # The threads

    def _noting(self, run: Callable[[], None]) -> None:
        """Run another thread up to its end, or until memory runs out."""
        try:
            run()
        except MemoryError as error:
            self.reserve = None
            self._note(None, error)

    def _enqueue(
        self, started: int, arrivals: list[int], services: list[int], keys: list[tuple[int, ...]]
    ) -> None:
        timeout, late = self.traffic.timeout / 1e6, self.late
        timeout_ns = self.traffic.timeout * 1000
        watch, answer = self.purgatory.try_complete_else_watch, self.answers.append
        i, number = 0, len(arrivals)
        end = started + int(_OVERRUN * arrivals[-1]) + _NS
        try:
            while i < number and (now := _now()) < end and not self.errors:
                if (wait := started + arrivals[i] - now) > 0:
                    # A sleep shorter than a tick would cost more than it waits.
                    time.sleep(max(wait, _TICK_NS) / _NS)
                    continue
                arrived = bisect_right(arrivals, now - started, i, min(i + _MOST_AT_ONCE, number))
                for service, watched in zip(services[i:arrived], keys[i:arrived], strict=True):
                    now = _now()
                    request = Request(timeout)
                    request.deadline, request.late = now + timeout_ns, late
                    request.payload = bytes(PAYLOAD)
                    if service >= 0:
                        answer((now + service, request))
                    watch(request, watched)
                    i += 1
        finally:
            self.enqueued = i

    def _complete(self) -> None:
        """Complete each request in the first tick after its service time ends."""
        span = self.traffic.timeout * 1000 // _TICK_NS + 2
        wheel: list[list[Request]] = [[] for _ in range(span)]
        answers, tick = self.answers, _now() // _TICK_NS
        while not self.over:
            while answers:
                end, request = answers.popleft()
                wheel[max(end // _TICK_NS + 1, tick) % span].append(request)
            while tick <= _now() // _TICK_NS:
                ended = wheel[tick % span]
                self.completed += sum([request.force_complete() for request in ended])
                ended.clear()
                tick += 1
            time.sleep(_TICK_NS / _NS)  # answers come in real time

    def _watch(self) -> None:
        """Sample the memory, and the estimated and exact totals."""
        while not self.over:
            self.peak = max(self.peak, _memory(_RESIDENT))
            if self.trial.design == PURGING:
                estimate = self.purgatory.estimated_total
                self.totals.append((estimate, self.purgatory.watched / WATCHED))
            time.sleep(_SAMPLE_S)  # memory and sizes are sampled in real time

    def _wait(self) -> None:
        """Wait until every request has ended."""
        end = _now() + self._time_limit()
        expected = self.enqueued
        if self.trial.design == NONE:  # only answered requests end
            expected = int((self.traffic.services[: self.enqueued] >= 0).sum())
        while self.completed + len(self.late) < expected and _now() < end and not self.errors:
            time.sleep(0.005)  # the last answers come from other threads

    def _time_limit(self) -> int:
        return int(_GRACE_S * _NS) + int(self.traffic.arrivals[-1]) * 1000

    # Events

    def _note(self, _: object, error: BaseException) -> None:
        self.errors.append(error)

    def _note_collection(self, phase: str, _: object) -> None:
        if phase == "start":
            self._gc_began = time.thread_time_ns()
        else:
            self.gc_ns += time.thread_time_ns() - self._gc_began


_STATUS = Path("/proc/self/status")
_RESIDENT, _DATA = "VmRSS", "VmData"  # lines of the file, in KiB


def _memory(kind: str) -> int:
    """The process's memory in bytes."""
    try:
        line = _STATUS.read_text().partition(f"{kind}:")[2]
    except OSError:  # not Linux: use the peak so far
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return int(line.split()[0]) * 1024


def _limit_memory(extra: int | None) -> None:
    """Limit further allocation to `extra` bytes, or lift the limit.

    A limit of the address space would not do: what malloc has only reserved for threads that have
    ended, 64 MiB each, counts there from the start, and can be filled afterwards.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if extra is None else _memory(_DATA) + extra
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
