"""The table: every operation that programs call often, one row each."""

from . import services
from .row import Row

PENDING = (0, 30_000, 300_000)
CONNECTIONS = (1_000, 30_000, 300_000)

WHEEL = "timers:CascadingWheel"
CLOCK = "timers.services:ManualClock"
SYSTEM = ("timers.services:SystemTimer", WHEEL)
ASYNC = ("timers.services:AsyncTimer", WHEEL)
LOOP = ("timers.services:wheel_event_loop",)
WATCH = ("timers.services:Purgatory", "timers.services:DelayedOperation", *SYSTEM)
IDLE = ("timers.services:IdleDetector",)


def _system(operation, covers, case, imports=SYSTEM, sizes=PENDING):
    return Row(f"SystemTimer: {operation}", sizes, imports, covers, case)


def _async(operation, covers, case):
    return Row(f"AsyncTimer: {operation}", PENDING, ASYNC, covers, case)


def _loop(operation, case, imports=LOOP, sizes=PENDING):
    return Row(f"loop: {operation}", sizes, imports, "wheel_event_loop", case)


def _purgatory(operation, covers, case, imports=WATCH):
    return Row(f"Purgatory: {operation}", PENDING, imports, covers, case)


def _idle(operation, covers, case):
    return Row(f"IdleDetector: {operation}", CONNECTIONS, IDLE, covers, case, "connections")


_SCHEDULE, _CANCEL = "SystemTimer.schedule_after", "ScheduledCall.cancel"
_ENTER = "Purgatory.try_complete_else_watch"
_COMPLETE = "DelayedOperation.force_complete"

ROWS = (
    _system("schedule, cancel at once", f"{_SCHEDULE} {_CANCEL}", services.at_once),
    _system("schedule, cancel 1000 later", f"{_SCHEDULE} {_CANCEL}", services.later),
    _system("the same by 4 threads", f"{_SCHEDULE} {_CANCEL}", services.by_threads),
    _system("schedule_at, cancel", "SystemTimer.schedule_at", services.at_a_moment),
    _system("reschedule_after", "ScheduledCall.reschedule_after", services.rescheduled),
    _system("reschedule", "ScheduledCall.reschedule", services.rescheduled_to_a_moment),
    _system("schedule_every, cancel", "SystemTimer.schedule_every", services.periodic_cancelled),
    _system(
        "a periodic run", "SystemTimer.schedule_every", services.periodic_runs, (*SYSTEM, CLOCK)
    ),
    _system(
        "schedule, one fires",
        f"{_SCHEDULE} ManualClock ManualClock.advance ManualClock.now",
        services.one_expiry,
        (*SYSTEM, CLOCK),
    ),
    _system("schedule, 1000 fire at once", _SCHEDULE, services.expiries_together, (*SYSTEM, CLOCK)),
    _system("schedule_after(0) to callback", _SCHEDULE, services.due_at_once),
    _system("1 ms to callback", _SCHEDULE, services.sleep_of_a_thread),
    _system("advance_clock, one due", "SystemTimer.advance_clock", services.driven_by_hand),
    _system("size, time", "SystemTimer.size SystemTimer.time", services.size_and_time),
    _system(
        "when, done, cancelled",
        "ScheduledCall.when ScheduledCall.done ScheduledCall.cancelled",
        services.state_of_a_call,
    ),
    _system(
        "open and close",
        "SystemTimer SystemTimer.close",
        services.opened_and_closed,
        sizes=(0, 100, 10_000),
    ),
    _async(
        "schedule, cancel at once", "AsyncTimer AsyncTimer.schedule_after", services.async_at_once
    ),
    _async("schedule, cancel 1000 later", "AsyncTimer.schedule_after", services.async_later),
    _async("1 ms to callback", "AsyncTimer.schedule_after", services.async_expiry),
    _async("schedule_after(0)", "AsyncTimer.schedule_after", services.async_due_at_once),
    _loop("call_later, cancel at once", services.loop_at_once),
    _loop("call_later, cancel 1000 later", services.loop_later),
    _loop("call_at, cancel", services.loop_call_at),
    _loop("sleep(0.001)", services.loop_sleep),
    _loop("1000 x sleep(0.001), gather", services.loop_sleeps_together),
    _loop("chain of call_later(0)", services.loop_chain),
    _loop("sleep(1e-9)", services.loop_tiny_sleep),
    _loop("sleep(0)", services.loop_call_soon),
    _loop("wait_for(sleep(0))", services.loop_wait_for),
    _loop("timeout, not reached", services.loop_timeout),
    _loop("timeout, reached", services.loop_timeout_expires),
    _loop("virtual sleep(0.001)", services.loop_in_virtual_time, (*LOOP, CLOCK)),
    _loop("open and close", services.loop_opened_and_closed, sizes=(0, 100, 10_000)),
    _purgatory(
        "own keys",
        f"Purgatory {_ENTER} DelayedOperation {_COMPLETE} DelayedOperation.try_complete"
        " DelayedOperation.on_complete Purgatory.purge",
        services.watched_and_completed,
    ),
    _purgatory("three shared keys", f"{_ENTER} {_COMPLETE}", services.shared_keys),
    _purgatory(
        "shared keys, batches of 250",
        f"{_ENTER}_many {_COMPLETE}",
        services.watched_in_batches,
    ),
    _purgatory("check, one completes", "Purgatory.check_and_complete", services.completed_by_key),
    _purgatory("check, none completes", "Purgatory.check_and_complete", services.checked_in_vain),
    _purgatory("cancel_for_key", "Purgatory.cancel_for_key", services.cancelled_for_a_key),
    _purgatory(
        "watch, time out", "DelayedOperation.on_expiration", services.timed_out, (*WATCH, CLOCK)
    ),
    _purgatory(
        "delayed, estimated_total", "Purgatory.delayed Purgatory.estimated_total", services.counted
    ),
    _idle("touch", "IdleDetector IdleDetector.touch", services.touched),
    _idle("touch_many, integers", "IdleDetector.touch_many", services.touched_many),
    _idle("touch_many, texts", "IdleDetector.touch_many", services.touched_many_texts),
    _idle("first touch, integers", "IdleDetector.touch_many", services.first_touches),
    _idle("first touch, texts", "IdleDetector.touch_many", services.first_touches_texts),
    _idle("advance", "IdleDetector.advance", services.advanced),
    _idle("advance, all fall idle", "IdleDetector.advance", services.fallen_idle),
    _idle("touch a new one, remove", "IdleDetector.remove", services.removed),
)
