"""SystemTimer with threads and memory: each race in a fixed interleaving."""

import random
import sys
import threading
import time
import tracemalloc

import pytest

from tests.timers.services.cases import (
    MS,
    TIMERS,
    Interposed,
    SettableClock,
    held_elsewhere,
    manual,
    without_deadlock,
)
from timers import CascadingWheel
from timers.errors import ClockError
from timers.services import (
    ManualClock,
    ServiceClosedError,
    ServiceStateError,
    SystemTimer,
    calls,
)

# Another thread acts while a batch is being applied. What it can do at such a moment is append to
# the mailbox, take tokens and move moments; the test does the same from within the timer's method.


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_cancellation_while_its_call_is_filed_is_not_lost(interposed, when):
    _, service, timer = interposed
    call = service.schedule_after(1, print)
    answers = []
    getattr(timer, when)["schedule"] = lambda: answers.append(call.cancel())
    assert service.size == 0
    assert answers == [True]
    assert len(timer) == 0
    assert list(service._changes) == []


@pytest.mark.parametrize("later", [0.5, 5])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rearm_while_its_call_is_filed_counts(interposed, when, later):
    clock, service, timer = interposed
    ran = []
    call = service.schedule_after(1, ran.append, 1)
    getattr(timer, when)["schedule"] = lambda: call.reschedule_after(later)
    assert service.size == 1
    for expected in (0, 1):
        clock.value = int(later * 1000) * MS - (1 - expected)
        service.advance_clock()
        assert len(ran) == expected
    assert service.size == 0


def test_a_cancellation_after_the_timer_returned_the_call_wins(interposed):
    clock, service, timer = interposed
    ran = []
    call = service.schedule_after(1, ran.append, 1)
    clock.value = 1000 * MS
    answers = []
    timer.after["advance"] = lambda: answers.append(call.cancel())
    assert service.advance_clock() == 0
    assert (answers, ran, service.size) == ([True], [], 0)


@pytest.mark.parametrize("later", [0, 5])
def test_a_rearm_after_the_timer_returned_the_call_wins(interposed, later):
    clock, service, timer = interposed
    ran = []
    call = service.schedule_after(1, ran.append, 1)
    clock.value = 1000 * MS
    answers = []
    timer.after["advance"] = lambda: answers.append(call.reschedule_after(later))
    assert service.advance_clock() == 0
    clock.value += later * 1000 * MS
    assert service.advance_clock() == 1
    assert (answers, ran, service.size) == ([True], [1], 0)
    assert not call.cancel()


def test_a_rearm_between_the_look_and_the_take_of_an_expiry_wins():
    """The expiry puts the token back when it finds that it took that of a later deadline."""
    clock = SettableClock()
    service = SystemTimer(CascadingWheel(), clock=clock, start=False)
    ran = []

    class Call(calls.ScheduledCall):
        """Re-armed by another thread when the expiry looks at its callback."""

        __slots__ = ()

        def __getattribute__(self, name):
            if name == "_callback" and hooks:
                hooks.pop()()
            return super().__getattribute__(name)

    hooks = []
    call = service._enter(Call(), 1000 * MS, ran.append, (1,), None)
    clock.value = 1000 * MS
    service._prepare()
    hooks.append(lambda: call.reschedule_after(5))
    service._run_ready()
    assert ran == []
    assert not call.done()
    clock.value = 6000 * MS
    assert service.advance_clock() == 1
    assert ran == [1]


def test_only_one_of_many_takers_wins():
    _, service = manual()
    everyone = threading.Barrier(8)
    call = None

    def take():
        for _ in range(200):
            everyone.wait(10)
            wins.append(call.cancel())
            everyone.wait(10)

    wins = []
    threads = [threading.Thread(target=take) for _ in range(7)]
    call = service.schedule_after(1, print)
    for thread in threads:
        thread.start()
    for turn in range(200):
        everyone.wait(10)
        everyone.wait(10) if turn == 199 else None
        if turn < 199:
            everyone.wait(10)
            assert wins.count(True) == turn + 1
            call = service.schedule_after(1, print)
    for thread in threads:
        thread.join(10)
    assert wins.count(True) == 200


# Waking


def test_a_call_that_comes_while_the_driver_prepares_to_sleep_is_seen(interposed):
    _, service, timer = interposed
    service.schedule_after(10, print)
    timer.after["next_expiry"] = lambda: service.schedule_after(1, print)
    moment = service._prepare()
    assert moment <= service._now()  # not to sleep, but to look again
    assert service._prepare() == 1000 * MS


def test_only_an_earlier_deadline_rings_the_bell():
    clock = SettableClock()
    service = SystemTimer(CascadingWheel(), clock=clock, start=False)
    service.schedule_after(1, print)
    assert service._prepare() == 1000 * MS
    later = service.schedule_after(2, print)
    service.schedule_after(0.9995, print)  # rounds up to the same unit
    later.reschedule_after(3)
    later.cancel()
    assert service._bell.locked()
    service.schedule_after(0.998, print)
    assert not service._bell.locked()


def test_a_rearm_to_an_earlier_deadline_rings_the_bell():
    service = SystemTimer(CascadingWheel(), clock=SettableClock(), start=False)
    call = service.schedule_after(10, print)
    service._prepare()
    assert service._bell.locked()
    assert call.reschedule_after(1)
    assert not service._bell.locked()


@pytest.mark.parametrize("name", TIMERS)
def test_the_thread_sleeps_while_nothing_is_due(name):
    ran = threading.Event()
    with SystemTimer(TIMERS[name]()) as service:
        turns = []
        prepare = service._prepare
        service._prepare = lambda: (turns.append(1), prepare())[1]
        for _ in range(1000):
            service.schedule_after(3600, print)
        service.schedule_after(0.05, ran.set)
        assert ran.wait(10)
        assert len(turns) < 20


# The mailbox


@pytest.mark.parametrize("filed", [False, True])
def test_memory_stays_flat_while_nothing_is_due(filed):
    _, service = manual()
    keep = [service.schedule_after(60, print) for _ in range(100)]
    most = 0
    tracemalloc.start()
    for turn in range(100_000):
        call = service.schedule_after(60, print)
        if filed and not turn % 1000:
            assert service.size == 101
        call.cancel()
        most = max(most, len(service._arrivals) + len(service._changes))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most <= calls.MAILBOX_LIMIT + 2
    assert size < 2**20
    assert service.size == len(keep)


def test_a_million_calls_that_are_cancelled_leave_nothing():
    _, service = manual()
    for _ in range(1_000_000):
        service.schedule_after(60, print).cancel()
    assert len(service._arrivals) <= calls.MAILBOX_LIMIT
    assert len(service._calls) <= 2  # the call whose arrival filled the mailbox was still pending
    assert service.size == 0


def test_behind_a_batch_the_mailbox_grows_and_nobody_waits():
    _, service = manual()
    with held_elsewhere(service._lock):  # another thread applies, for a very long time
        for _ in range(10_000):
            service.schedule_after(60, print).cancel()
        assert len(service._arrivals) == 10_000
        assert all(not hasattr(call, "_callback") for call in service._arrivals)
    service.schedule_after(60, print)
    assert len(service._arrivals) == 0


def test_filing_does_not_give_up_the_gil():
    """Another thread would keep it for 5 ms, and the mailbox would grow meanwhile."""
    _, service = manual()
    # Large batches: what gives up the GIL for an instant may get it back before others wake.
    service._limit = 1 << 60
    calls = [service.schedule_after(30 + each / 1000, print) for each in range(200_000)]
    assert not gives_up_the_gil(service._apply)
    for call in calls:
        call.reschedule_after(40)
    assert not gives_up_the_gil(service._apply)
    for call in calls:
        call.cancel()
    assert not gives_up_the_gil(service._apply)
    assert service.size == 0


def gives_up_the_gil(function):
    """Whether other threads run while a function does."""
    gates, arrived, others = [threading.Lock() for _ in range(4)], [], []

    def wait(gate):
        arrived.append(1)
        gate.acquire()
        others.append(1)

    waiting = [threading.Thread(target=wait, args=[gate]) for gate in gates]
    for gate, thread in zip(gates, waiting, strict=True):
        gate.acquire()
        thread.start()
    interval = sys.getswitchinterval()
    try:
        while len(arrived) < len(gates):
            time.sleep(0.001)  # for a thread that has not been given a core yet
        time.sleep(0.05)  # until they wait for their gates, and not for the GIL
        sys.setswitchinterval(1000)  # from now on nobody takes it
        for gate in gates:
            gate.release()
        function()
        return bool(others)
    finally:
        sys.setswitchinterval(interval)
        for thread in waiting:
            thread.join()


def test_callers_apply_the_mailbox_behind_a_slow_callback():
    started, release = threading.Event(), threading.Event()
    with SystemTimer(CascadingWheel()) as service:
        service.schedule_after(0, lambda: (started.set(), release.wait(10)))
        assert started.wait(10)
        for _ in range(10_000):
            service.schedule_after(60, print)
        assert len(service._arrivals) <= calls.MAILBOX_LIMIT
        assert service.size == 10_000
        release.set()


def test_a_finalizer_may_use_the_service_while_a_batch_is_applied(interposed):
    _, service, timer = interposed
    sizes = []

    def finalizer():
        service.schedule_after(1, print).cancel()
        sizes.append(service.size)
        service.close()

    service.schedule_after(1, print)
    timer.after["schedule"] = finalizer
    without_deadlock(lambda: service.size)
    assert sizes == [1]
    with pytest.raises(ServiceClosedError):
        service.schedule_after(1, print)
    assert service.close()
    assert service.size == 0


@pytest.mark.parametrize("driver", ["caller", "clock"])
def test_a_finalizer_may_close_the_service_while_it_is_driven(driver):
    clock = SettableClock() if driver == "caller" else ManualClock()
    timer = Interposed(CascadingWheel())
    service = SystemTimer(timer, clock=clock, start=False)
    drive = service.advance_clock if driver == "caller" else lambda: clock.advance(1)
    answers, refused = [], []

    def finalizer():
        answers.extend([service.size, service.close()])
        try:
            drive()
        except (ServiceClosedError, ServiceStateError, ClockError) as error:
            refused.append(error)

    call = service.schedule_after(0, print)
    timer.after["schedule"] = finalizer
    without_deadlock(drive)
    assert answers == [1, False]
    assert len(refused) == 1
    assert call.cancelled()
    assert service.size == 0


@pytest.mark.parametrize("driver", ["caller", "clock"])
def test_a_finalizer_cannot_drive_the_service_within_its_filing(driver):
    clock = SettableClock() if driver == "caller" else ManualClock()
    timer = Interposed(CascadingWheel())
    service = SystemTimer(timer, clock=clock, start=False)
    refused = []

    def finalizer():
        with pytest.raises(ServiceStateError) as error:
            service.advance_clock() if driver == "caller" else clock.advance(1)
        refused.append(error)

    service.schedule_after(1, print)
    timer.after["schedule"] = finalizer
    assert without_deadlock(lambda: service.size) == 1
    assert len(refused) == 1


def test_the_thread_ends_when_a_finalizer_closes_the_service_while_a_caller_files():
    timer = Interposed(CascadingWheel())
    with SystemTimer(timer) as service:
        thread = service._thread
        closed = []
        with held_elsewhere(service._lock):  # so that the thread has not filed it yet
            call = service.schedule_after(60, print)
            timer.after["schedule"] = lambda: closed.append(service.close())
        without_deadlock(lambda: service.size)
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

    workers = [
        threading.Thread(target=work, args=(number * per_thread,)) for number in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert service.close("wait", timeout=60)
    assert service.size == 0
    for times, cancelled in zip(ran, answers, strict=True):
        assert times == (0 if cancelled else 1)


def test_a_call_that_meets_close_is_refused_or_cancelled():
    for _ in range(20):
        service = SystemTimer(CascadingWheel(), start=False)
        accepted = []
        started = threading.Event()

        def work(service=service, accepted=accepted, started=started):
            try:
                while True:
                    accepted.append(service.schedule_after(60, print))
                    started.set()
            except ServiceClosedError:
                pass

        worker = threading.Thread(target=work)
        worker.start()
        started.wait(10)
        service.close()
        worker.join(10)
        assert service.size == 0
        assert accepted
        assert all(call.cancelled() for call in accepted)
