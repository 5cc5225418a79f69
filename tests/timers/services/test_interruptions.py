"""The services when something comes in the middle of a method: an exception, a handler that uses
the service, or a failed allocation; at each point at which CPython can bring one.

CPython runs signal handlers and switches threads only before some instructions: the first of a
function, those after a call and those after a backward jump. A trace function finds them while the
method runs, and interrupts one of them. The method is run again and again, until each of its points
was interrupted once.
"""

# Private members: a turn is taken where the loop or the thread would take it, and what an
# interruption leaves behind is told apart inside only.

import asyncio
import dis
import subprocess
import sys
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from itertools import count, pairwise
from pathlib import Path
from types import CodeType

import pytest

import timers.services
from tests.timers.services.cases import MS, Waiting, caller_driven, in_thread
from tests.timers.services.loops import JumpingLoop
from timers import CascadingWheel
from timers.errors import ClockError
from timers.services import (
    AsyncTimer,
    IdleDetector,
    ManualClock,
    Purgatory,
    ServiceClosedError,
    ServiceStateError,
    SystemTimer,
    calls,
    event_loop,
    pending,
    wheel_event_loop,
)
from timers.services.async_timer import LoopDriver

NEVER = 10**9  # the number of a point that no method has
FOLDER = str(Path(timers.services.__file__).parent)


class Interruption(Exception):
    """What a signal handler raises."""


@cache
def points_of(code):
    """The offsets before which CPython may run a signal handler.

    What the handler raises belongs to the call, while the tracer raises it in the instruction after
    that: the last call of a `with` block is left out, as the exception would come outside of it. So
    is the start of a loop's turn: asyncio loses a callback that is interrupted there.
    """
    blocks = dis.Bytecode(code).exception_entries

    def handler(offset):
        return next((block.target for block in blocks if block.start <= offset < block.end), None)

    return {
        point
        for before, after in pairwise(dis.get_instructions(code))
        if before.opname.startswith(("CALL", "RESUME", "JUMP_BACKWARD"))
        for point in [before.argval if before.opname == "JUMP_BACKWARD" else after.offset]
        if handler(before.offset) == handler(point)
        and (before.opname != "RESUME" or code is not LoopDriver._turn.__code__)
    }


class Tracer:
    """Calls `act` before the point with this number, of those in the services' own code."""

    def __init__(self, number, act):
        self.left, self.act = number, act

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in points_of(frame.f_code):
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                self.act()
                return None
        return self


def interrupted(number, act, method):
    """Run a method with an interruption at one of its points; False if it has fewer points."""
    tracer, former = Tracer(number, act), sys.gettrace()
    # Python 3.12 traces bytecodes only if some frame has asked for that before `settrace`.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(tracer)
    try:
        method()
    except (Interruption, ServiceClosedError, ServiceStateError):
        pass
    finally:
        sys.settrace(former)
    return tracer.left < 0


def raise_interruption():
    raise Interruption


def trace_once(make):
    """Trace a setting: 3.12 reports no points of a function that it traces for the first time."""
    make().check()  # compiles, without a tracer
    interrupted(NEVER, raise_interruption, lambda: make().check())


class Setting:
    """Something that methods are run on; `ran` says how often each callback has run."""

    elsewhere = staticmethod(in_thread)  # where other threads use it: they must not wait

    def within(self, function):
        """What a function returns where users call the methods."""
        return function()

    def drive(self, seconds):
        """Run what is due after some seconds."""
        self.clock.value += seconds * 1000 * MS
        self.service.advance_clock()

    def count(self, name):
        self.ran[name] = self.ran.get(name, 0) + 1


class Calls(Setting):
    """A service that its user drives, with calls in all states, and how often each has run."""

    def __init__(self):
        self.within(self.fill)

    def fill(self):
        self.service = self.make_service()
        self.ran, self.calls, self.early = {}, {}, []
        for name in ("held", "moved", "cancelled", *(f"due {k}" for k in range(6))):
            self.add(name, 1)
        self.periodic = self.calls["periodic"] = self.service.schedule_every(
            1, self.count, "periodic"
        )
        assert self.service.size == 10  # all in the timer
        self.calls["cancelled"].cancel()
        self.calls["moved"].reschedule_after(2)
        for k in range(6):
            self.add(f"new {k}", 1 + k % 2)

    def make_service(self):
        self.clock, service = caller_driven()
        return service

    def add(self, name, delay):
        self.calls[name] = self.service.schedule_after(delay, self.count, name)

    def count(self, name):
        super().count(name)
        if name in self.calls and self.calls[name].when() > self.service.time():
            self.early.append(name)

    def pending(self):
        return sum(not call.done() for call in self.calls.values())

    def use(self):
        """What a handler may do."""
        with suppress(ServiceClosedError):
            self.add("of the handler", 1)
        for kind in ("due", "new"):
            self.calls[f"{kind} 0"].cancel()
            self.calls[f"{kind} 1"].reschedule_after(2)
            self.calls[f"{kind} 2"].reschedule_after(0.5)
            self.calls[f"{kind} 3"].reschedule(self.calls[f"{kind} 3"].when())
        with suppress(ServiceStateError, ServiceClosedError, ClockError):
            self.drive(0)
        assert self.service.size >= 0

    def check(self, lost=0, extra=0):
        """Nothing is lost, doubled, early or locked; `lost` callbacks may have been interrupted at
        their start, and `extra` calls may be unknown to the caller.
        """
        if self.service._pending.closed:
            self.service.close()  # again, as it was interrupted
        size = self.elsewhere(lambda: self.service.size)
        # A periodic call does not count while it runs, or if its run was interrupted at the end.
        assert -lost <= size - self.pending() <= extra, (size, self.pending())
        for _ in range(5):
            with suppress(ServiceClosedError):
                self.drive(1)
        unknown = self.ran.pop("unknown", 0)
        assert unknown <= extra
        missing = [
            name
            for name, call in self.calls.items()
            if name != "periodic" and self.ran.get(name, 0) != (not call.cancelled())
        ]
        assert len(missing) <= lost, missing
        assert not self.early
        assert all(self.ran.get(name, 0) == 0 for name in missing), "ran twice"
        assert self.calls["cancelled"].cancelled()
        if not self.periodic.cancelled():
            assert self.ran["periodic"] >= 4
            assert 1 <= self.service.size <= 1 + extra
        self.service.close()
        assert self.elsewhere(lambda: self.service.size) == 0


class CallsOnAManualClock(Calls):
    def make_service(self):
        self.clock = ManualClock()
        return SystemTimer(CascadingWheel(), clock=self.clock)

    def drive(self, seconds):
        self.clock.advance(seconds)


class OnALoop(Setting):
    """Something on an asyncio loop whose time jumps; the methods run in a coroutine."""

    make_loop = JumpingLoop

    def within(self, function):
        async def main():
            return function()

        if not hasattr(self, "loop"):
            self.loop = self.make_loop()
            self.loop.set_exception_handler(lambda *_: None)
        return self.loop.run_until_complete(main())

    def drive(self, seconds):
        if not self.loop.is_running():  # as it is where a handler comes
            self.loop.run_until_complete(asyncio.sleep(seconds))

    def turn(self, driver):
        """What the loop does when a second has passed."""
        self.loop.now += 1
        now = round(self.loop.now * 1e9)
        while driver._alarms:
            driver._alarms.pop()[1].cancel()
        driver._turn(now)


class CallsOfAnAsyncTimer(OnALoop, Calls):
    elsewhere = staticmethod(lambda function: function())  # it is of one thread

    def make_service(self):
        return AsyncTimer(CascadingWheel())

    def fill(self):
        super().fill()
        self.service._driver._turn(0)

    def check(self, lost=0, extra=0):
        super().check(lost, extra)
        self.loop.close()


class Handles(OnALoop):
    """A loop whose calls are in a timer, and how often each has run."""

    def __init__(self):
        self.ran, self.handles = {}, {}
        self.within(lambda: [self.add(f"due {k}") for k in range(4)])
        self.drive(0.5)  # all are in the timer
        self.within(lambda: [self.add(f"new {k}") for k in range(4)])

    @staticmethod
    def make_loop():
        return wheel_event_loop(base=JumpingLoop)()

    def add(self, name):
        self.handles[name] = self.loop.call_later(1, self.count, name)

    def use(self):
        """What a handler may do."""
        if not self.loop.wheel.closed:
            self.add("of the handler")
        self.handles["due 1"].cancel()
        self.handles["new 1"].cancel()

    def check(self, lost=0, extra=0):
        """Nothing is lost or doubled; `extra` calls may be unknown to the caller."""
        if not self.loop.wheel.closed:
            for _ in range(5):
                self.drive(1)
            assert self.ran.pop("unknown", 0) <= extra
            runs = {name: self.ran.get(name, 0) for name in self.handles}
            missing = [name for name, handle in self.handles.items() if not handle.cancelled()]
            missing = [name for name in missing if not runs[name]]
            assert len(missing) <= lost, missing
            assert set(runs.values()) <= {0, 1}
        self.loop.close()
        assert in_thread(lambda: len(self.loop.wheel)) == 0


class HandlesOfAStoppedLoop(Handles):
    """The same, and the methods run while the loop does not."""

    def __init__(self):
        super().__init__()
        self.within = lambda function: function()


class Operations(Setting):
    """A purgatory with operations under several keys, some of which can complete."""

    def __init__(self):
        self.clock, self.service = caller_driven()
        self.purgatory = Purgatory("test", self.service)
        self.operations = [Waiting(1 + k % 2) for k in range(8)]
        for k, operation in enumerate(self.operations):
            self.purgatory.try_complete_else_watch(operation, ["all", k % 3])
        self.answers = []
        completed = Waiting(1)  # the only one under its key: a purge removes the list
        self.purgatory.try_complete_else_watch(completed, ["new"])
        completed.force_complete()
        self.service.size  # noqa: B018  # all are in the timer
        self.new = Waiting(1)
        self.operations.append(self.new)
        self.fresh = [self.new, Waiting(1), Waiting(2)]
        for operation in self.operations[::3]:
            operation.ready = True

    def watch_new(self):
        self.purgatory.try_complete_else_watch(self.new, ["all", "new"])

    def watch_many(self):
        self.operations += self.fresh[1:]
        self.purgatory.try_complete_else_watch_many(self.fresh, ["all", "new"])

    def use(self):
        """What a handler may do."""
        self.purgatory.check_and_complete(0)
        self.answers = [(each, each.force_complete()) for each in (self.operations[1], self.new)]
        self.operations.append(Waiting(1))
        self.purgatory.try_complete_else_watch(self.operations[-1], ["all"])
        self.purgatory.purge()

    def check(self, lost=0, extra=0):
        """No operation is lost, completes twice or counts for ever; `lost` may have been
        interrupted while they completed.
        """
        watched = [operation for operation in self.operations if operation._purgatory]
        left = sum(not operation.is_completed for operation in watched)
        lists = [self.purgatory._lists.get(key, []) for key in ("all", "new")]
        fresh = [op for op in self.fresh if op._purgatory and not op.is_completed]
        assert all(op in each for op in fresh for each in lists), "no check would find it"
        assert left <= self.purgatory.delayed <= left + extra
        assert left <= in_thread(lambda: self.service.size) <= left + extra
        for _ in range(3):
            self.drive(1)
        assert self.purgatory.delayed == 0
        assert in_thread(lambda: self.service.size) == 0
        self.purgatory.check_and_complete("all")
        in_thread(self.purgatory.purge)
        assert self.purgatory.watched == 0
        assert all(operation.log.count("complete") <= 1 for operation in self.operations)
        assert all(
            operation.log == ["complete"] for operation, completed in self.answers if completed
        )
        withdrawn = {op for op in watched if op._state == pending.CANCELLED and not op.log}
        assert len(withdrawn) <= lost


class Connections(Setting):
    """An idle detector with connections that fall idle in turn."""

    def __init__(self):
        self.detector, self.idle_at, self.found = IdleDetector(5, 1), {}, []
        for key in range(6):
            self.touch(key, at=key % 3)
        self.advance(2)
        self.touch_many([0, 1], at=2)

    def touch(self, key, at):
        self.touch_many([key], at)

    def touch_many(self, keys, at):
        self.detector.touch_many(keys, at)
        self.idle_at |= dict.fromkeys(keys, at + 5)

    def remove(self, key):
        self.detector.remove(key)
        del self.idle_at[key]

    def advance(self, now):
        self.now = now
        self.found += self.detector.advance(now)

    def check(self, lost=0, extra=0):
        """No connection is lost or found twice; `extra` may be known or not, and `lost` may have
        been found by the call that was interrupted.
        """
        self.touch("later", at=self.now)  # what comes next does not hide what was interrupted
        for now in range(self.now, 14):
            self.found += self.detector.advance(now)
        assert len(self.detector) == 0
        assert len(set(self.found)) == len(self.found)
        unknown = set(self.idle_at) ^ set(self.found)
        assert len(unknown) <= lost + extra, unknown


CALL_METHODS = {
    "schedule_after": (lambda s: s.service.schedule_after(1, s.count, "unknown"), 0, 1),
    "schedule_every": (lambda s: s.service.schedule_every(9, s.count, "unknown"), 0, 1),
    "cancel": (lambda s: s.calls["held"].cancel(), 0, 0),
    "reschedule": (lambda s: s.calls["held"].reschedule_after(0.5), 0, 0),
    "size": (lambda s: s.service.size, 0, 0),
    "close": (lambda s: s.service.close(), 0, 0),
}
"""What services of calls have in common, and how many calls an interruption may lose or add."""

METHODS = {
    **{name: (Calls, *method) for name, method in CALL_METHODS.items()},
    "cancel a new one": (Calls, lambda s: s.calls["new 0"].cancel(), 0, 0),
    "cancel a periodic one": (Calls, lambda s: s.periodic.cancel(), 0, 0),
    "reschedule a new one": (Calls, lambda s: s.calls["new 0"].reschedule(0.5), 0, 0),
    "reschedule a periodic one": (Calls, lambda s: s.periodic.reschedule(0), 0, 0),
    "advance_clock": (Calls, lambda s: s.drive(1), 1, 0),
    "advance_clock beyond": (Calls, lambda s: s.drive(3), 1, 0),
    "ManualClock.advance": (CallsOnAManualClock, lambda s: s.drive(1), 1, 0),
    "close and wait": (Calls, lambda s: s.service.close("wait", timeout=0), 1, 0),
    **{f"AsyncTimer: {k}": (CallsOfAnAsyncTimer, *v) for k, v in CALL_METHODS.items()},
    "AsyncTimer: turn": (CallsOfAnAsyncTimer, lambda s: s.turn(s.service._driver), 1, 0),
    "call_later": (Handles, lambda s: s.loop.call_later(1, s.count, "unknown"), 0, 1),
    "call_at": (Handles, lambda s: s.loop.call_at(100.7, s.count, "unknown"), 0, 1),
    "TimerHandle.cancel": (Handles, lambda s: s.handles["due 1"].cancel(), 0, 0),
    "TimerHandle.cancel a new one": (Handles, lambda s: s.handles["new 1"].cancel(), 0, 0),
    "loop.close": (HandlesOfAStoppedLoop, lambda s: s.loop.close(), 0, 0),
    "turn of the loop": (Handles, lambda s: s.turn(s.loop.driver), 1, 0),
    "try_complete_else_watch": (Operations, Operations.watch_new, 1, 1),
    "try_complete_else_watch_many": (Operations, Operations.watch_many, 3, 3),
    "check_and_complete": (Operations, lambda s: s.purgatory.check_and_complete("all"), 1, 0),
    "force_complete": (Operations, lambda s: s.operations[2].force_complete(), 1, 0),
    "withdraw": (Operations, lambda s: s.operations[2].cancel(), 1, 0),
    "cancel_for_key": (Operations, lambda s: s.purgatory.cancel_for_key(1), 3, 0),
    "purge": (Operations, lambda s: s.purgatory.purge(), 0, 0),
    "shutdown": (Operations, lambda s: s.purgatory.shutdown(), 8, 0),
    "timeouts": (Operations, lambda s: s.drive(3), 0, 0),
    "touch a known one": (Connections, lambda s: s.touch(0, 2), 0, 1),
    "touch_many": (Connections, lambda s: s.touch_many([3, 8, 9], 2), 0, 2),
    "remove": (Connections, lambda s: s.remove(4), 0, 1),
    "advance": (Connections, lambda s: s.advance(6), 2, 0),
}

REPEATABLE = [method for method in METHODS if method != "loop.close"]
"""asyncio's own `close` cannot be called again if it had no memory."""


def settings(method, interrupt, patience=1):
    """Run a method again and again, in a new setting, and check each, until `patience` runs in a
    row were not interrupted. `interrupt(number, run, setting)` says whether the interruption with
    this number came.
    """
    make, act, lost, extra = METHODS[method]
    make().check()  # compiles, without a tracer
    came = quiet = 0
    numbers = count()
    while quiet < patience:
        setting = make()
        run = partial(act, setting)
        if setting.within(partial(interrupt, next(numbers), run, setting)):
            came, quiet = came + 1, 0
        else:
            quiet += 1
        setting.check(lost, extra)
    return came


def codes_in(code):
    """The code of a module, and of everything that it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


@pytest.mark.parametrize("path", sorted(Path(FOLDER).glob("*.py")), ids=lambda path: path.stem)
def test_no_exception_in_a_loop_skips_a_with_around_it(path):
    """CPython 3.12 and 3.13 leave some jumps back out of the blocks that they jump in. A handler
    may run before them, and what it raised would leave the lock of such a `with` held.
    """
    for code in codes_in(compile(path.read_text(), path, "exec")):
        blocks = dis.Bytecode(code).exception_entries

        def cleanups(offset, blocks=blocks):
            """Where the blocks around an instruction clean up: a `with` does, a `for` does not."""
            around = [block for block in blocks if block.start <= offset < block.end]
            return {block.target for block in around if block.lasti}.union(
                *(cleanups(block.target) for block in around)
            )

        for jump in dis.get_instructions(code):
            if jump.opname == "JUMP_BACKWARD" and not cleanups(jump.offset):
                assert not cleanups(jump.argval), code.co_qualname


@pytest.mark.parametrize("limit", [4, pending.BATCH])
@pytest.mark.parametrize("method", METHODS)
def test_an_exception_loses_and_doubles_nothing(method, limit, monkeypatch):
    trace_once(METHODS[method][0])
    for module in (pending, calls, event_loop):
        monkeypatch.setattr(module, "BATCH", limit)
    assert settings(method, lambda number, run, _: interrupted(number, raise_interruption, run))


@pytest.mark.skipif(not find_spec("_testcapi"), reason="this Python has no _testcapi")
def test_a_failed_allocation_loses_and_doubles_nothing():
    """In a process that traces nothing: CPython 3.12 allocates memory to end the tracing of a
    method, and crashes later if that fails.
    """
    command = (sys.executable, "-m", "tests.timers.services.failed_allocations")
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    without = set(REPEATABLE) - set(process.stdout.splitlines())
    assert all("cancel" in method for method in without), "only these need no memory"


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name][0] != Connections])
def test_a_handler_may_use_the_service_anywhere(method):
    trace_once(METHODS[method][0])
    assert settings(method, lambda number, run, s: interrupted(number, s.use, run))


@pytest.mark.parametrize("make", [Calls, CallsOnAManualClock])
def test_a_handler_may_reschedule_a_periodic_call_at_any_point_of_its_run(make):
    trace_once(make)
    for number in count():
        setting = make()
        moved = []
        act = partial(lambda s, moved: moved.append(s.periodic.reschedule(7.25)), setting, moved)
        if not interrupted(number, act, partial(setting.drive, 1)):
            break
        assert moved == [True]
        assert setting.periodic.when() == 7.25
    assert number > 50
