"""SystemTimer with threads and memory: each race in a fixed interleaving."""

# Private members: turns are taken by hand, between two steps of another thread; `_bell` shows
# whether that wakes the driver, and `_pending.new` what was gathered.

import random
import signal
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tests.timers.services.cases import (
    MS,
    TIMERS,
    Interposed,
    caller_driven,
    held_elsewhere,
    in_thread,
    manual,
)
from timers import CascadingWheel, DelayQueue
from timers.errors import ClockError
from timers.services import (
    ServiceClosedError,
    ServiceStateError,
    SystemTimer,
    system_timer,
)
from timers.services.pending import BATCH, NEVER

# Callers beside the driver, and beside each other


@pytest.mark.parametrize("use", ["size", "close"])
def test_the_driver_goes_on_while_a_caller_goes_through_what_is_due(use):
    clock, service = caller_driven()

    def callback():
        moved.reschedule_after(8)
        answers.append(service.size if use == "size" else service.close())

    answers, ran = [], []
    moved = service.schedule_after(9, print)
    assert service.size == 1
    service.schedule_after(1, callback)
    service.schedule_after(1.0001, ran.append, 1)
    clock.value = 2000 * MS
    assert service.advance_clock() == (2 if use == "size" else 1)
    assert (answers, ran) == (([2], [1]) if use == "size" else ([False], []))


@pytest.mark.parametrize("refusals", [0, 1, 2, 10**9])
def test_a_caller_at_a_held_lock_lets_the_other_go_on_and_looks_again(refusals, monkeypatch):
    """To wait in `acquire` would let each of several callers wait for the others in turn."""
    _, service = manual()
    pending, looks, naps = service._pending, [], []

    class HeldLock:
        def __init__(self, lock):
            self.lock = lock
            self.release = lock.release

        def acquire(self, blocking=True):
            looks.append(blocking)
            return (blocking or len(looks) > refusals) and self.lock.acquire()

    pending.lock = HeldLock(lock := pending.lock)
    monkeypatch.setattr("timers.services.pending.time", SimpleNamespace(sleep=naps.append))
    service.schedule_after(1, print)
    assert set(naps) <= {0}
    assert len(naps) == min(refusals, 50)
    assert looks == [False] * min(refusals + 1, 51) + [True] * (refusals > 50)
    pending.lock = lock
    assert service.size == 1


def test_only_one_of_many_takers_wins():
    _, service = manual()
    everyone = threading.Barrier(8)

    def take(call):
        everyone.wait(10)
        return call.cancel()

    with ThreadPoolExecutor(8) as pool:
        for _ in range(200):
            call = service.schedule_after(1, print)
            assert sum(pool.map(take, [call] * 8)) == 1


# Waking


def take_turn(service):
    """What the driver does: returns when it would take the next turn."""
    return service._turn()


def test_a_call_that_comes_while_the_driver_prepares_to_sleep_is_seen():
    timer = Interposed(DelayQueue())
    _, service = caller_driven(timer)
    service.schedule_after(10, print)
    timer.after["next_wakeup"] = lambda: service.schedule_after(1, print)
    assert take_turn(service) == 1000 * MS


def test_only_an_earlier_deadline_rings_the_bell():
    _, service = caller_driven(DelayQueue())  # has no slots that open earlier
    service.schedule_after(1, print)
    moved = service.schedule_after(10, print)
    assert take_turn(service) == 1000 * MS
    later = service.schedule_after(2, print)
    service.schedule_after(0.999_000_001, print)  # rounds up to the same unit
    later.reschedule_after(3)
    later.cancel()
    assert not service._bell._rung_by
    service.schedule_after(0.999, print)
    assert service._bell.get() is service
    assert take_turn(service) == 999 * MS
    assert moved.reschedule_after(0.998)
    assert service._bell._rung_by


@pytest.mark.parametrize("name", TIMERS)
def test_the_thread_sleeps_while_nothing_is_due(name):
    ran = threading.Event()
    with SystemTimer(TIMERS[name]()) as service:
        turns = []
        turn = service._turn
        service._turn = lambda: (turns.append(1), turn())[1]
        for _ in range(1000):
            service.schedule_after(3600, print)
        service.schedule_after(0.05, ran.set)
        assert ran.wait(10)
        assert len(turns) < 20


# What is gathered


@pytest.mark.parametrize("filed", [False, True])
def test_memory_stays_flat_while_nothing_is_due(filed):
    _, service = manual()
    keep = [service.schedule_after(60, print) for _ in range(1000)]
    largest = 0
    tracemalloc.start()
    for turn in range(100_000):
        call = service.schedule_after(60, print)
        if filed and not turn % 1000:
            assert service.size == 1001
        call.cancel()
        largest = max(largest, len(service._pending.new))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert largest <= BATCH
    assert size < 2**20
    assert service.size == len(keep)
    assert all(call.cancel() for call in keep)
    assert len(service._pending.new) <= BATCH


def test_callers_apply_the_pending_behind_a_slow_callback(monkeypatch):
    """They do not wait for the driver, although it is late for the first of these calls."""
    monkeypatch.setattr(system_timer, "_SLOW_NS", -1)  # as soon as it runs
    clock = SimpleNamespace(monotonic_ns=time.monotonic_ns)  # a caller that waits would raise
    monkeypatch.setattr(system_timer, "time", clock)
    started, release = threading.Event(), threading.Event()
    with SystemTimer(CascadingWheel()) as service:
        service.schedule_after(0, lambda: (started.set(), release.wait(10)))
        assert started.wait(10)
        for delay in range(10_000):
            service.schedule_after(delay, print)
        assert len(service._pending.new) <= BATCH
        assert service.size == 10_000
        release.set()


def test_a_finalizer_may_close_the_service_while_it_is_driven(driven):
    service, timer, drive = driven
    answers = []

    def finalizer():
        answers.extend([service.size, service.close()])
        with pytest.raises((ServiceClosedError, ServiceStateError, ClockError)):
            drive(0)
        answers.append("refused")

    call = service.schedule_after(1, print)
    timer.after["schedule_many"] = finalizer
    in_thread(drive, 0)
    assert answers == [1, False, "refused"]
    assert call.cancelled()
    assert service.size == 0


def test_a_finalizer_cannot_drive_the_service_within_its_filing(driven):
    service, timer, drive = driven
    refused = []

    def finalizer():
        with pytest.raises(ServiceStateError) as error:
            drive(1)
        refused.append(error)

    service.schedule_after(2, print)
    timer.after["schedule_many"] = finalizer
    assert in_thread(lambda: service.size) == 1
    assert len(refused) == 1


def test_the_thread_ends_when_a_finalizer_closes_the_service_while_a_caller_files():
    timer = Interposed(CascadingWheel())
    with SystemTimer(timer) as service:
        thread = service._thread
        closed = []
        with held_elsewhere(service._pending.lock):  # so that the thread has not filed it yet
            timer.after["schedule_many"] = lambda: closed.append(service.close())
        call = service.schedule_after(60, print)
        in_thread(lambda: service.size)
        thread.join(10)
        assert not thread.is_alive()
        assert closed == [False]
        assert call.cancelled()


# Threads


@pytest.mark.parametrize("name", ["cascading-wheel", "hierarchical-wheel", "heapq-delay-queue"])
def test_every_answer_is_exact_under_threads(name):
    per_thread, threads = 5_000, 4
    ran = [0] * (per_thread * threads)
    answers = [None] * len(ran)
    service = SystemTimer(TIMERS[name]())

    def count(index):
        ran[index] += 1

    def work(first):
        dice = random.Random(first)
        waiting = []
        for index in range(first, first + per_thread):
            call = service.schedule_after(dice.choice([0, 0.001, 0.003, 0.02]), count, index)
            waiting.append((index, call))
            if dice.random() < 0.7:
                index, call = waiting.pop(dice.randrange(len(waiting)))
                if dice.random() < 0.5:
                    answers[index] = call.cancel()
                else:
                    call.reschedule_after(dice.choice([0, 0.002, 0.01]))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(0, len(ran), per_thread)))
    assert service.close("wait", timeout=60)
    assert service.size == 0
    for times, cancelled in zip(ran, answers, strict=True):
        assert times == (0 if cancelled else 1)


def test_a_call_that_meets_close_is_refused_or_cancelled():
    def schedule(service, accepted, started):
        with pytest.raises(ServiceClosedError):
            while True:
                accepted.append(service.schedule_after(60, print))
                started.set()

    with ThreadPoolExecutor(1) as worker:
        for _ in range(20):
            (_, service), accepted, started = caller_driven(), [], threading.Event()
            scheduling = worker.submit(schedule, service, accepted, started)
            assert started.wait(10)
            service.close()
            scheduling.result(10)
            assert service.size == 0
            assert all(call.cancelled() for call in accepted)


@pytest.mark.cluster  # a signal to this process, in real time
def test_a_signal_handler_that_outlasts_a_wait_does_not_stop_the_service():
    """A SimpleQueue would wait for ever; the handler needs real time, as its lock does."""
    service, ran = SystemTimer(CascadingWheel(), start=False), []
    service.schedule_after(0.1, ran.append, "late")
    former = signal.signal(signal.SIGALRM, lambda *_: time.sleep(0.2))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert service.advance_clock(timeout=5) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert ran == ["late"]


def test_a_turn_while_a_caller_wakes_the_driver_leaves_no_false_alarm(monkeypatch):
    """Private: the caller is held up while it wakes the driver."""
    with SystemTimer(CascadingWheel()) as service:
        pending, wake = service._pending, service._pending.wake
        while pending.alarm != NEVER:  # until the driver sleeps
            time.sleep(0.001)

        def slow(moment):
            alarm = wake(moment)
            time.sleep(0.1)  # time for a turn
            return alarm

        monkeypatch.setattr(pending, "wake", slow)
        first, second = threading.Event(), threading.Event()
        service.schedule_after(0, first.set)
        assert first.wait(10)
        monkeypatch.setattr(pending, "wake", wake)
        service.schedule_after(0, second.set)
        assert second.wait(10)


def test_a_close_that_interrupts_another_method_cancels_at_once(monkeypatch):
    """Private: as from a signal handler in `size`, which holds the lock, or in `schedule_after`."""
    _, service = manual()
    call = service.schedule_after(100, print)
    with service._pending.lock:
        assert not service.close()
        assert call.cancelled()
    assert service.size == 0
    clock, service = manual()
    clock.advance(1)  # nothing is pending: the next call wakes the driver
    monkeypatch.setattr(service._pending, "wake", lambda _: service.close())
    call = service.schedule_after(100, print)
    assert call.cancelled()
    assert service.size == 0
