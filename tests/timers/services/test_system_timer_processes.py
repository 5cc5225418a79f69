"""SystemTimer in forked processes, and at the exit of the interpreter."""

# `_pending.lock` and `UNWATCHED` are private: another thread holds them when the process forks.

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from tests.timers.services.cases import Interposed, Waiting, caller_driven, held_elsewhere, manual
from timers import CascadingWheel, HierarchicalWheel
from timers.kernels.jit import COMPILING
from timers.services import ServiceClosedError, SystemTimer
from timers.services.delayed_operation import UNWATCHED

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def status_of_child(work):
    """The exit status of a forked child: 0 if `work` returns True there."""
    child = os.fork()
    if not child:
        signal.alarm(60)  # if it hangs
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def status_of_both(work, children):
    """The exit statuses of this process and of the child that `work` forks, as above."""
    parent = os.getpid()
    status = 1
    try:
        status = 0 if work() else 2
    finally:
        if os.getpid() != parent:
            os._exit(status)
    return status, os.waitpid(children[0], 0)[1]


@forks
@pytest.mark.parametrize("lock_held", [False, True])
def test_a_forked_child_has_a_closed_copy(lock_held):
    ran = threading.Event()
    with SystemTimer(HierarchicalWheel()) as service:
        service.schedule_after(0.05, ran.set)
        call = service.schedule_after(3600, print)

        def is_closed():
            ran.clear()  # it may have run before the fork
            with pytest.raises(ServiceClosedError):
                service.schedule_after(1, print)
            time.sleep(0.1)  # a driver, if there were one, would run the call
            return not ran.is_set() and service.size == 0 and call.cancel() and service.close()

        with held_elsewhere(service._pending.lock) if lock_held else nullcontext():
            assert status_of_child(is_closed) == 0
        assert ran.wait(10)


@forks
def test_a_forked_child_may_use_new_operations():
    with ThreadPoolExecutor(1) as other:  # in the middle of its own `try_complete_else_watch`
        other.submit(UNWATCHED.acquire).result(10)
        # In real time: the thread is to release the lock while the fork waits for it.
        other.submit(lambda: (time.sleep(0.1), UNWATCHED.release()))
        assert status_of_child(Waiting().cancel) == 0


@forks
def test_a_service_that_the_caller_drives_goes_on_in_a_forked_child():
    clock, service = manual()
    ran = []
    service.schedule_after(1, ran.append, 1)

    def goes_on():
        clock.advance(1)
        return ran == [1]

    assert status_of_child(goes_on) == 0
    assert goes_on()


@forks
def test_a_service_whose_callback_forks_goes_on_in_both_processes(driven):
    service, _, drive = driven
    ran, children = [], []
    service.schedule_after(1, lambda: children.append(os.fork()))
    service.schedule_after(2, ran.append, 1)

    def goes_on():
        drive(1)
        drive(1)
        return ran == [1] and service.close()

    assert status_of_both(goes_on, children) == (0, 0)


@forks
def test_a_service_that_another_thread_drives_is_closed_in_a_forked_child():
    _, service = caller_driven()
    started, release = threading.Event(), threading.Event()
    service.schedule_after(0, lambda: (started.set(), release.wait(60)))
    service.schedule_after(0, int)  # due, and not started
    thread = threading.Thread(target=service.advance_clock)
    thread.start()
    assert started.wait(10)

    def refused():
        with pytest.raises(ServiceClosedError):
            service.schedule_after(1, print)
        return service.size == 0 and service.close()

    assert status_of_child(refused) == 0
    release.set()
    thread.join(10)
    assert service.schedule_after(1, print).cancel()


@forks
def test_a_finalizer_that_forks_within_our_own_filing_leaves_the_lock_to_its_frame():
    timer = Interposed(CascadingWheel())
    _, service = caller_driven(timer)
    children = []
    service.schedule_after(1, print)
    timer.after["schedule_many"] = lambda: children.append(os.fork())

    def goes_on():
        return service.size == 1 and service.schedule_after(1, print).cancel()

    assert status_of_both(goes_on, children) == (0, 0)


EXIT = """
import sys, threading, time
from timers import HierarchicalWheel
from timers.services import SystemTimer
running = threading.Semaphore(0)
def callback(seconds, text):
    running.release()
    time.sleep(seconds)  # so that it still runs when the program ends
    print(text, flush=True)
services = [SystemTimer(HierarchicalWheel()) for _ in range(2)]
services[0].schedule_after(3600, print, "never")
services[0].schedule_after(0, callback, 0.05, "ended")
services[1].schedule_after(0, callback, 20, "too late")
for _ in services:
    running.acquire(timeout=10)
"""


@pytest.mark.cluster  # a callback must end within the second that it is given
def test_at_exit_pending_calls_are_cancelled_and_a_running_one_has_a_second_to_end():
    command = [sys.executable, "-c", EXIT]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    complaints = result.stderr.replace(f"{COMPILING}\n", "")
    assert (result.returncode, result.stdout, complaints) == (0, "ended\n", "")


@pytest.mark.parametrize("place", ["before the service", "after the service"])
def test_a_call_of_an_exit_function_runs_or_is_refused(place):
    """One that is registered later runs while the service is alive."""
    script = """
import atexit, sys, time
from timers import UnorderedList
from timers.services import SystemTimer
ran = []
def schedule():
    try:
        timer.schedule_after(0, ran.append, "ran")
    except Exception as error:
        ran.append(type(error).__name__)
    while not ran:
        time.sleep(0.001)
    print(ran)
if sys.argv[1] == "before the service":
    atexit.register(schedule)
timer = SystemTimer(UnorderedList())
if sys.argv[1] != "before the service":
    atexit.register(schedule)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, place], capture_output=True, text=True, check=True
    )
    answer = "ran" if place == "after the service" else "ServiceClosedError"
    assert done.stdout.splitlines() == [str([answer])]
