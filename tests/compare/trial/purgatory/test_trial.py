"""A trial in real time: what its threads do, what it notes, and how it fails.

Private names: in public, a trial runs in a process of its own and in real time. Here its threads
run one at a time, on a clock that the tests move.
"""

import signal
import time
from collections import deque
from functools import partial
from multiprocessing import active_children
from multiprocessing.connection import Connection
from types import SimpleNamespace

import numpy as np
import pytest

from compare.base.quantiles import QUANTILES
from compare.trial.purgatory import trial as module
from compare.trial.purgatory.figures import NONE, PURGING, SCANNING
from compare.trial.purgatory.scanning import ScanningPurgatory
from compare.trial.purgatory.traffic import traffic
from compare.trial.purgatory.trial import Trial, _Run, measure
from timers.services import Purgatory

MEBIBYTE = 1 << 20
NEW = Trial(PURGING, "hierarchical-wheel", 50)
MS = 10**6  # nanoseconds


@pytest.fixture(scope="module")
def short():
    """30 ms of requests that time out after 20 ms."""
    given = traffic("high", 10_000, 300, seed=2)
    return given._replace(
        timeout=given.timeout // 10, services=np.where(given.services < 0, -1, given.services // 10)
    )


@pytest.mark.parametrize(
    ("design", "timer"),
    [(PURGING, "hierarchical-wheel"), (SCANNING, "delay-queue"), (NONE, "hierarchical-wheel")],
)
def test_every_request_of_a_trial_ends_once(monkeypatch, short, design, timer):
    limits, intervals = [], []
    monkeypatch.setattr(module, "_limit_memory", limits.append)
    monkeypatch.setattr(module, "_OVERRUN", 10**4)  # however slow the machine is
    monkeypatch.setattr(module, "_GRACE_S", 60.0)

    def made(cls, *arguments, **interval):
        intervals.append(interval)
        return cls(*arguments, **interval)

    for cls in (Purgatory, ScanningPurgatory):
        monkeypatch.setattr(module, cls.__name__, partial(made, cls))

    class Noting(_Run):
        def _enqueue(self, started, *planned):
            self.planned = planned
            super()._enqueue(started, *planned)

    memory = MEBIBYTE if design == SCANNING else None
    run = Noting(Trial(design, timer, 50, memory), short)
    figures = run.measure()
    assert limits == ([MEBIBYTE, None] if memory else [])
    assert (
        intervals
        == {PURGING: [{"purge_interval": 50}], SCANNING: [{"limit": 50}], NONE: []}[design]
    )
    arrivals, services, keys = map(np.array, run.planned)
    assert (arrivals == short.arrivals * 1000).all()
    assert (services // 1000 == short.services).all()
    assert (keys == short.keys).all()
    assert figures["failed"] is None
    assert figures["requests"] == 300
    assert 0 < figures["achieved"] <= 300 / short.arrivals[-1] * 1e6
    assert 0 < figures["cpu_us"] >= figures["gc_us"] >= 0
    if design == NONE:
        assert figures["share_expired"] is figures["late_max_ms"] is None
        return
    assert run.completed + len(run.late) == 300
    # On a busy machine an answer may come after its timeout.
    assert run.completed <= (short.services >= 0).sum()
    assert figures["share_expired"] == len(run.late) / 300
    assert 0 <= figures["late_p50_ms"] <= figures["late_p99_ms"] <= figures["late_max_ms"]
    assert ("estimated_total" in figures) == (design == PURGING)


@pytest.mark.parametrize("method", ["try_complete_else_watch", "watched"])
def test_a_thread_without_memory_ends_the_trial(short, monkeypatch, method):
    """The thread that enqueues, or the one that samples the sizes."""

    def broken(self, *arguments):
        raise MemoryError

    run = _Run(NEW, short)
    if method == "watched":
        broken = property(broken)

        def enqueues(self, *arguments):
            while not run.errors:  # until the other thread has failed
                time.sleep(0.001)

        monkeypatch.setattr("timers.services.Purgatory.try_complete_else_watch", enqueues)
    monkeypatch.setattr(f"timers.services.Purgatory.{method}", broken)
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 1)
    figures = run.measure()
    assert figures["failed"] == "MemoryError"
    assert figures["requests"] <= (method == "watched")


@pytest.fixture
def clock(monkeypatch):
    """A clock in nanoseconds that only sleeping moves, and to which `then` may add."""
    clock = SimpleNamespace(now=0, then=lambda: None)

    def sleep(seconds):
        clock.now += round(seconds * 1e9)
        clock.then()

    monkeypatch.setattr(module, "_now", lambda: clock.now)
    namespace = SimpleNamespace(sleep=sleep, thread_time_ns=lambda: clock.now)
    monkeypatch.setattr(module, "time", namespace)
    return clock


@pytest.mark.parametrize(
    ("design", "completed", "errors", "failed"),
    [
        (PURGING, 200, [], None),
        (SCANNING, 197, [], "3 requests did not end within 1.3 s"),
        (PURGING, 197, [KeyError(), MemoryError()], "KeyError"),
        (NONE, 197, [], None),
    ],
)
def test_figures_are_for_each_request_that_was_enqueued(short, design, completed, errors, failed):
    run = _Run(Trial(design, "delay-queue", 50), short._replace(arrivals=np.array([0, 300_000])))
    run.enqueued, run.completed, run.errors = 400, completed, errors
    run.late = [k * MS for k in range(200, 0, -1)]
    run.gc_ns, run.peak, run.totals = 600_000, 5000, [(7, 3.0), (10, 17.0), (4, 4.0)]
    assert run._figures(elapsed=10**7, cpu=8 * MS, before=2000) == {
        "requests": 400,
        "achieved": 40_000.0,
        "cpu_us": 20.0,
        "gc_us": 1.5,
        "peak_bytes": 3000,
        "late_p50_ms": 100.0,
        "late_p90_ms": 180.0,
        "late_p99_ms": 198.0,
        "late_p999_ms": 200.0,
        "late_max_ms": 200.0,
        "share_expired": None if design == NONE else 0.5,
        "estimated_total": 7,
        "exact_total": 8.0,
        "estimate_error": 7.0,
        "failed": failed,
    }
    run.late.clear()
    figures = run._figures(elapsed=1, cpu=1, before=9000)
    assert figures["peak_bytes"] == 0
    assert [figures[f"late_{which}_ms"] for which in QUANTILES] == [None] * 5


def test_requests_are_enqueued_when_they_arrive(clock):
    """The first two together, the last answered by its timeout, on a clock that began at 7 ms."""
    run = _Run(NEW, traffic("low", 1000, 3)._replace(timeout=200_000))
    watched = []
    run.purgatory = SimpleNamespace(
        try_complete_else_watch=lambda request, keys: watched.append((clock.now, request, keys))
    )
    clock.now = 7 * MS
    keys = [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    run._enqueue(7 * MS, [400_000, 900_000, 5 * MS], [0, -1, 30 * MS], keys)
    assert run.enqueued == 3
    assert [(now, keys) for now, _, keys in watched] == list(
        zip([8 * MS, 8 * MS, 12 * MS], keys, strict=True)
    )
    requests = [request for _, request, _ in watched]
    assert [request.deadline for request in requests] == [208 * MS, 208 * MS, 212 * MS]
    assert [len(request.payload) for request in requests] == [100] * 3
    assert list(run.answers) == [(8 * MS, requests[0]), (42 * MS, requests[2])]
    clock.now = 215 * MS
    requests[2].on_expiration()
    assert run.late == [3 * MS]


def test_nothing_is_enqueued_long_after_the_planned_end(clock):
    """A second and twice the plan: here the machine sleeps for so long before the last request."""
    for late, enqueued in ((-1, 2), (0, 1)):
        run = _Run(NEW, traffic("low", 1000, 2))
        run.purgatory = SimpleNamespace(try_complete_else_watch=lambda request, keys: None)
        clock.now, planned = 0, 50 * MS
        clock.then = lambda end=10**9 + 2 * planned + late: setattr(clock, "now", end)
        run._enqueue(0, [0, planned], [-1, -1], [(1, 2, 3)] * 2)
        assert run.enqueued == enqueued


def test_requests_complete_in_the_first_tick_after_their_service_time(clock, short):
    """Those that had ended before they were looked at complete at once; one came too late."""
    run = _Run(NEW, short)  # which time out after 20 ms
    done = []
    clock.now = 100 * MS
    ends = {"a": 102.3, "b": 101.999, "c": 102.0, "d": 100.0, "e": 90.0, "f": 119.9}

    def answer(name):
        complete = lambda: done.append((name, clock.now // MS)) or name != "c"  # noqa: E731
        return round(ends[name] * MS), SimpleNamespace(force_complete=complete)

    def then():
        run.over = clock.now >= 130 * MS

    clock.then = then
    run.answers = deque(map(answer, ends))
    run._complete()
    assert sorted(done) == [("a", 103), ("b", 102), ("c", 103), ("d", 101), ("e", 100), ("f", 120)]
    assert run.completed == 5


def test_memory_and_sizes_are_looked_at_every_20_ms(clock, short, monkeypatch, tmp_path):
    status = tmp_path / "status"
    text = "VmPeak:\t9000 kB\nVmRSS:\t{} kB\nVmData:\t{} kB\nVmStk:\t132 kB\n"
    status.write_text(text.format(300, 600))
    monkeypatch.setattr(module, "_STATUS", status)
    usage = SimpleNamespace(ru_maxrss=77)
    limits = []
    monkeypatch.setattr(
        module,
        "resource",
        SimpleNamespace(
            RUSAGE_SELF=0,
            RLIMIT_DATA=9,
            getrusage=lambda process: usage,
            getrlimit=lambda which: (5, 10**9),
            setrlimit=lambda *limit: limits.append(limit),
        ),
    )
    run = _Run(NEW, short)
    run.purgatory = SimpleNamespace(estimated_total=11, watched=30)

    def then():
        status.write_text(text.format(*(500, 700) if clock.now == 20 * MS else (400, 800)))
        run.purgatory.watched += 3
        run.over = clock.now == 60 * MS

    clock.then = then
    run._watch()
    assert run.totals == [(11, 10.0), (11, 11.0), (11, 12.0)]
    assert run.peak == 500 * 1024
    module._limit_memory(5000)
    module._limit_memory(None)
    assert limits == [(9, (800 * 1024 + 5000, 10**9)), (9, (10**9, 10**9))]
    status.unlink()
    for platform, size in (("darwin", 77), ("freebsd", 77 * 1024)):
        monkeypatch.setattr(module.sys, "platform", platform)
        assert module._memory("VmRSS") == size


def test_the_last_requests_are_waited_for(clock, short):
    few = short._replace(services=np.array([1, -1, 2, 3]), arrivals=np.array([0, 0, 0, 300_000]))
    for design, completed, waited in ((NONE, 2, 5), (PURGING, 2, 5), (PURGING, 1, 1300)):
        run = _Run(Trial(design, "delay-queue", 50), few)
        run.enqueued, run.completed, run.late = 3, completed, [1] * (design == PURGING)
        run.completed -= 1
        clock.now, clock.then = 0, partial(setattr, run, "completed", completed)
        run._wait()
        assert clock.now == waited * MS


def test_collections_are_added_up(clock, short):
    run = _Run(NEW, short)
    for phase, now in (("start", 10), ("stop", 13), ("start", 20), ("stop", 27)):
        clock.now = now
        run._note_collection(phase, {})
    assert run.gc_ns == 10


def test_a_process_warms_up_and_sends_the_figures_of_the_trial(monkeypatch):
    runs, sent = [], []

    def run(trial, given):
        runs.append((trial, len(given.arrivals), len(given.services), len(given.keys)))
        return SimpleNamespace(measure=lambda: {"timeout": given.timeout, "trial": trial})

    monkeypatch.setattr(module, "_Run", run)
    monkeypatch.setattr(module, "gc", SimpleNamespace(collect=int, freeze=int))
    little = Trial(SCANNING, "delay-queue", 70, 8 * MEBIBYTE)
    module._run(little, traffic("low", 1000, 600), SimpleNamespace(send=sent.append))
    warm_up = Trial(SCANNING, "delay-queue", 70)
    assert runs == [(warm_up, 500, 500, 500), (little, 600, 600, 600)]
    assert sent == [{"timeout": 200_000, "trial": little}]


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("design", "timer", "interval", "failed"),
    [
        (SCANNING, "delay-queue", 10**6, ("MemoryError", "CapacityError")),
        (PURGING, "hierarchical-wheel", 1000, (None,)),
    ],
)
def test_with_little_memory_only_the_old_design_fails(design, timer, interval, failed):
    # The old design keeps them all; some 22 000 fill the memory.
    given = traffic("low", 20_000, 45_000, seed=1)
    figures = measure(Trial(design, timer, interval, 8 * MEBIBYTE), given)
    assert figures["failed"] in failed


def test_an_interrupt_ends_the_process_of_a_trial(monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Connection, "recv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure(NEW, traffic("low", 1000, 10**6))  # for 1000 seconds
    for process in active_children():
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
