"""The table: every operation that programs call often, one row each."""

from . import services, structures, traffic
from .row import Row

OTHERS = (1_000, 30_000, 300_000)
PENDING = (0, 10_000, 100_000)
FAR = (0, 30_000, 300_000)  # where an expiry or a wake-up may search those that are far off
CONNECTIONS = (1_000, 30_000, 300_000)
ROWS_OF_A_TAPE = (1_000, 30_000, 300_000)
ROWS_OF_A_LOG = (1_000, 10_000, 50_000)
FEW = (1_000, 3_000, 10_000)  # for timers that take O(N), or run in plain Python

WHEEL = "timers:CascadingWheel"
CLOCK = "timers.services:ManualClock"
SYSTEM = ("timers.services:SystemTimer", WHEEL)
ASYNC = ("timers.services:AsyncTimer", WHEEL)
LOOP = ("timers.services:wheel_event_loop",)
WATCH = ("timers.services:Purgatory", "timers.services:DelayedOperation", *SYSTEM)
IDLE = ("timers.services:IdleDetector",)

TAPE = "compare:Tape | compare.tapes.tape:Tape"
REPLAY = "compare:replay | compare.replay.engine:replay"
MAKE = "compare:make | compare.workloads.catalogue:make"
VALIDATE = "compare:validate | compare.tapes.tape:validate"
WRITE = "compare:write_trace | compare.tapes.trace:write_trace"
OPEN = "compare:open_trace | compare.tapes.trace:open_trace"
RECORD = "compare:record | compare.recording.run:record"
# Before `compare.logs.ingest`, Spark alone read logs: a start of Java would be measured.
REQUESTS = "compare:ingest_requests | compare.logs.ingest:ingest_requests"
TOUCHES = "compare:ingest_touches | compare.logs.ingest:ingest_touches"
OPTIONS = "compare:LogOptions | compare.logs.ingest:Options"
FORMATS = "compare.traffic.logs.formats:FORMATS | compare.logs.formats:FORMATS"
KERNEL = "compare.traffic.logs.formats.kernel:read_kernel_trace"

SCHEMES = ("CascadingWheel", "HierarchicalWheel", "HashedWheel", "SimpleWheel")
SCHEMES += ("DenseWheel", "DelayQueue")
"""Measured by each method; replays measure all that are registered."""
TIMERS = {
    name: f"timers:{name.title().replace('-', '')}"
    for name in (
        *("unordered-list", "heapq-delay-queue", "delay-queue", "simple-wheel", "hashed-wheel"),
        *("hierarchical-wheel", "cascading-wheel", "dense-wheel", "linux-wheel"),
        *("duration-lists", "ordered-list", "sorted-hashed-wheel"),
    )
}
SLOW = ("unordered-list", "ordered-list", "heapq-delay-queue")
WORKLOADS = ("uniform", "lognormal-low", "keepalive", "cancel-heavy")

METHODS = {
    "schedule": structures.schedule,
    "cancel": structures.cancel,
    "reschedule": structures.reschedule,
    "schedule_many": structures.schedule_many,
    "cancel_many": structures.cancel_many,
    "reschedule_many": structures.reschedule_many,
    "advance": {
        "nothing due": structures.advance_nothing_due,
        "one due": structures.advance_one_due,
        "1000 due, each": structures.advance_many_due,
    },
    "next_expiry": {"after one fires": structures.next_expiry},
    "next_wakeup": {"after one fires": structures.next_wakeup},
}
"""Of each timer: a case, or several with what tells them apart."""
SHARED = {
    "schedule_after": structures.schedule_after,
    "__len__": structures.length,
    "__init__": structures.construct,
}
"""The same code in all timers."""

FIRST_USE = {
    "import timers": "import timers",
    "import timers.services": "import timers.services",
    "import compare": "import compare",
    "wheelwork --help": "from compare.cli.main import main; main(['--help'])",
    "a timer": "from timers import CascadingWheel; timer = CascadingWheel()\n"
    "timer.cancel(timer.schedule(5)); timer.schedule(7); timer.advance(10)",
    "SystemTimer": "from timers import CascadingWheel\nfrom timers.services import SystemTimer\n"
    "with SystemTimer(CascadingWheel()) as timer: timer.schedule_after(30, print).cancel()",
    "Purgatory": "from timers import CascadingWheel\n"
    "from timers.services import DelayedOperation, Purgatory, SystemTimer\n"
    "class Request(DelayedOperation):\n    def try_complete(self): return False\n"
    "with SystemTimer(CascadingWheel()) as timer:\n"
    "    Purgatory('p', timer).try_complete_else_watch(Request(30), [1])",
    "IdleDetector": "from timers.services import IdleDetector; detector = IdleDetector()\n"
    "detector.touch_many(range(10), 0); detector.advance(40)",
    "a loop": "import asyncio; from timers.services import wheel_event_loop\n"
    "with asyncio.Runner(loop_factory=wheel_event_loop()) as r: r.run(asyncio.sleep(0.001))",
}
"""Programs whose CPU time counts from their first line; compiled code is in the disk cache."""
NEEDED = {"import compare": ("compare:replay",), "a loop": LOOP}
"""Without them, the program would do something else, or fail."""


EXPIRING = (
    services.periodic_runs,
    services.one_expiry,
    services.due_at_once,
    services.sleep_of_a_thread,
    services.driven_by_hand,
    services.async_expiry,
    services.async_due_at_once,
    services.loop_sleep,
    services.loop_chain,
    services.loop_tiny_sleep,
    services.loop_timeout_expires,
    services.loop_in_virtual_time,
    services.timed_out,
)
"""Cases in which a timer is asked when it expires next."""


def _system(operation, covers, case, imports=SYSTEM, sizes=None):
    return Row(f"SystemTimer: {operation}", sizes or _sizes(case), imports, covers, case)


def _async(operation, covers, case):
    return Row(f"AsyncTimer: {operation}", _sizes(case), ASYNC, covers, case)


def _loop(operation, case, imports=LOOP, sizes=None):
    return Row(f"loop: {operation}", sizes or _sizes(case), imports, "wheel_event_loop", case)


def _purgatory(operation, covers, case, imports=WATCH):
    return Row(f"Purgatory: {operation}", _sizes(case), imports, covers, case)


def _sizes(case):
    return FAR if case in EXPIRING else PENDING


def _idle(operation, covers, case):
    return Row(f"IdleDetector: {operation}", CONNECTIONS, IDLE, covers, case, "connections")


_SCHEDULE, _CANCEL = "SystemTimer.schedule_after", "ScheduledCall.cancel"
_ENTER = "Purgatory.try_complete_else_watch"
_COMPLETE = "DelayedOperation.force_complete"


def _timers():
    for scheme in SCHEMES:
        methods = {**METHODS, **SHARED} if scheme == "CascadingWheel" else METHODS
        for method, cases in methods.items():
            for what, case in (cases if isinstance(cases, dict) else {"": cases}).items():
                operation = f"{method}, {what}" if what else method
                covers = f"Timer.{method} {scheme}"
                yield Row(f"{scheme}: {operation}", OTHERS, (f"timers:{scheme}",), covers, case)
    imports = (WHEEL, "timers:place_of")
    yield Row("handles: place_of", OTHERS, imports, "place_of", structures.place)


def _traffic():
    for name, place in TIMERS.items():
        sizes = FEW if name in SLOW else ROWS_OF_A_TAPE
        imports = (REPLAY, TAPE, place)
        covers = f"replay Tape {place.partition(':')[2]}"
        yield Row(f"replay: {name}", sizes, imports, covers, traffic.replayed, "operations")
    for name in WORKLOADS:
        case = traffic.made(name)
        yield Row(f"generate: {name}", ROWS_OF_A_TAPE, (MAKE,), "make", case, "operations")
    traces = {
        "validate": ("validate", (VALIDATE, TAPE), traffic.validated),
        "write_trace": ("write_trace", (WRITE, TAPE), traffic.written),
        "open_trace, load": ("open_trace Trace", (OPEN, WRITE, TAPE), traffic.opened),
    }
    for name, (covers, imports, case) in traces.items():
        yield Row(f"traces: {name}", ROWS_OF_A_TAPE, imports, covers, case, "operations")
    for name, log in traffic.LOGS.items():
        covers = "ingest_touches" if "idle" in log.roles else "ingest_requests LogOptions"
        imports = (REQUESTS, TOUCHES, OPTIONS, FORMATS)
        case = traffic.ingested(name)
        yield Row(f"ingest: {name}", ROWS_OF_A_LOG, imports, covers, case, "rows")
    imports, covers = (REQUESTS, OPTIONS), "ingest_requests"
    yield Row("ingest: parquet", ROWS_OF_A_LOG, imports, covers, traffic.ingested_parquet, "rows")
    yield Row("ingest: Arrow", ROWS_OF_A_LOG, imports, covers, traffic.ingested_arrow, "rows")
    yield Row("ingest: kernel", ROWS_OF_A_LOG, (KERNEL,), "", traffic.ingested_kernel, "rows")
    yield Row("record: call_later, cancel", PENDING, (RECORD,), "record", traffic.recorded)
    for name, text in FIRST_USE.items():
        imports = NEEDED.get(name, ())
        yield Row(f"first use: {name}", (0,), imports, "", traffic.program(text), "")


_SERVICES = (
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
        f"Purgatory {_ENTER} DelayedOperation {_COMPLETE} DelayedOperation.on_complete",
        services.watched_and_completed,
    ),
    _purgatory("three shared keys", f"{_ENTER} {_COMPLETE}", services.shared_keys),
    _purgatory(
        "shared keys, batches of 250",
        f"{_ENTER}_many {_COMPLETE}",
        services.watched_in_batches,
    ),
    _purgatory("250 complete, purge", "Purgatory.purge", services.purged),
    _purgatory("check, one completes", "Purgatory.check_and_complete", services.completed_by_key),
    _purgatory("check, none completes", "Purgatory.check_and_complete", services.checked_in_vain),
    _purgatory("watch, cancel", "DelayedOperation.cancel", services.watched_and_cancelled),
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

ROWS = (*_SERVICES, *_timers(), *_traffic())
"""The table."""
