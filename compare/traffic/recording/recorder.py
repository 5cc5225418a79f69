"""Writes what this process does with timers to a file of events.

`wheelwork record` loads this file by its path into programs in whose environment the project may
not be installed, so it imports only the standard library, and little of that. Sources of timers are
patched when they have been imported; the recorder imports none that the program does not.

An event is appended to a list in one step of CPython, so threads need no lock. A thread writes them
to the file several times a second. What is written stays even if the process is killed.
"""

from __future__ import annotations  # the program's Python may be older than ours

import _thread
import fcntl
import functools
import json
import os
import struct
import sys
import threading
import time
from types import MethodType
from typing import Any

FILE = "events"
"""A line of JSON, then events of FIELDS float64 each: the kind, the time in seconds, the timer, and
the delay from then to the deadline (0 for a cancel). A timer is known by the `id()` of its object,
which is unique while it is pending. A SPENT event has other fields: the time, LOOPS that were made,
as a sum of their bits, and the CPU seconds of the process since the recording began.

The recorder of JVMs (jvm/) writes the same. There, KINDS times the shard is added to a kind, and a
row whose kind is 0 is not an event."""
FIELDS = 4
FORMAT = "wheelwork-events"
VERSION = 3
STARTED, CANCELLED, MOVED, SPENT = 1.0, 2.0, 3.0, 4.0
KINDS = 8
TIMERS = "timers"
"""The file beside it in which the recorder of JVMs describes each shard, with a line of JSON."""

LOOPS = {"asyncio": 1, "uvloop": 2, "wheel_event_loop": 4}
"""Kinds of event loops, and the bit of each."""

INTERVAL = 0.25
"""Seconds between writes."""

current: Recorder | None = None
"""The recorder of this process."""


class Recorder:
    """Records the timers of this process from now until `close`; `clock` returns seconds.

    Raises FileExistsError if `directory` has a file of events, OSError if none can be written.
    """

    def __init__(self, directory: str, clock: Any = time.monotonic) -> None:
        global current
        self.clock, self.directory = clock, directory
        self.error: OSError | None = None  # why events were lost
        self.loops = 0  # the bits of LOOPS
        self.moving: set[int] = set()  # ids of trio's cancel scopes between two deadlines
        self._before, self._own = time.process_time(), 0.0  # CPU seconds; ours, of the writing
        self._events: list[float] = []
        self.note: Any = self._events.extend  # adds an event
        self._undo: list[tuple[Any, str, Any]] = []
        source = {
            "kind": "recording",
            "command": getattr(sys, "orig_argv", sys.argv),  # Python 3.9 has none
            "python": sys.version.split()[0],
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        header = {"format": FORMAT, "version": VERSION, "origin": clock(), "source": source}
        self._file = open(os.path.join(directory, FILE), "xb", buffering=0)  # noqa: PTH118, PTH123, SIM115  # pathlib is slow to import; closed by `close`
        fcntl.flock(self._file, fcntl.LOCK_EX)  # held as long as this process records
        try:
            self._write(json.dumps(header).encode() + b"\n")
        except OSError:
            os.unlink(self._file.name)  # noqa: PTH108  # pathlib is slow to import
            self._file.close()
            raise
        current = self
        sys.meta_path.insert(0, self)
        for name in SOURCES.keys() & sys.modules.keys():
            self._patch(name)
        running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", lambda: None)()
        if running is not None:
            self.loops = _loops_of(running)
        self._start_thread()

    def close(self) -> bool:
        """Stop recording and undo all patches. False in a forked child, which does not record."""
        if current is not self:
            return False
        self._unpatch()
        self._stop_thread()
        self._drain(ending=True)
        fcntl.flock(self._file, fcntl.LOCK_UN)  # a process that forks just now has the file open
        self._file.close()
        return True

    # The thread, which `threading` does not know: the program sees no other than its own

    def _start_thread(self) -> None:
        self._stopping, self._stopped = threading.Event(), threading.Event()
        _thread.start_new_thread(self._run, (self._stopping, self._stopped))

    def _stop_thread(self) -> None:
        self._stopping.set()
        self._stopped.wait()

    def _run(self, stopping: threading.Event, stopped: threading.Event) -> None:
        while not stopping.wait(INTERVAL):
            self._drain()
        stopped.set()

    def _drain(self, *, ending: bool = False) -> None:
        started = time.thread_time()
        events = self._events[:]
        del self._events[: len(events)]
        if events or ending:
            spent = time.process_time() - self._before - self._own
            events += (SPENT, self.clock(), float(self.loops), spent)
        try:
            if self.error is None:
                self._write(struct.pack(f"{len(events)}d", *events))
        except OSError as error:
            self.error, self.note = error, _ignore
        self._own += time.thread_time() - started

    def _write(self, data: bytes) -> None:
        while data:
            data = data[self._file.write(data) :]

    def _abandon(self) -> None:
        """Stop recording in a forked child. The file belongs to its parent."""
        self._unpatch()
        self._file.close()

    # Patches

    def _patch(self, name: str) -> None:
        for path, patch in SOURCES[name].items():
            owner: Any = sys.modules[name]
            *classes, attribute = path.split(".")
            try:
                for class_name in classes:
                    owner = getattr(owner, class_name)
                original = getattr(owner, attribute)
            except AttributeError:  # a version of the library whose private members differ
                continue
            self._undo.append((owner, attribute, vars(owner).get(attribute)))  # None: inherited
            setattr(owner, attribute, functools.wraps(original)(patch(original, self)))

    def _unpatch(self) -> None:
        global current
        current = None
        self.note = _ignore  # the program may keep patched methods
        sys.meta_path.remove(self)
        for owner, attribute, former in reversed(self._undo):
            if former is None:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, former)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Patch a source when it has been imported; the method of a finder in `sys.meta_path`."""
        if name not in SOURCES:
            return None
        finders = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in finders)
        spec = next(filter(None, specs), None)
        loader: Any = spec and spec.loader
        if hasattr(loader, "exec_module"):
            execute = loader.exec_module

            def exec_module(module: Any) -> None:
                del loader.exec_module  # it may load other modules, too
                execute(module)
                if current is self:
                    self._patch(name)

            loader.exec_module = exec_module
        return spec


def _ignore(event: tuple[float, ...]) -> None:
    """Replace `note` when nothing is recorded."""


# How functions are patched. The clock is read before a timer is set, so that no timer fires before
# its recorded deadline; an event is noted after the call, if that succeeds.


def _is_alarm(callback: Any) -> bool:
    """Whether a service of this project sets a timer of its loop: it is none of the program."""
    return getattr(callback, "__qualname__", "") == "LoopDriver._turn"


def _loops_of(loop: Any) -> int:
    """The bits of a loop's classes."""
    modules = {
        "asyncio.base_events": "asyncio",
        "uvloop": "uvloop",
        "timers.services.event_loop": "wheel_event_loop",
    }
    kinds = {modules.get(cls.__module__) for cls in type(loop).__mro__}
    return sum(bit for kind, bit in LOOPS.items() if kind in kinds)


def _made(original: Any, recorder: Recorder) -> Any:
    """Patch the constructor of loops, to know which kinds the program has."""

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        recorder.loops |= _loops_of(self)
        original(self, *args, **keywords)

    return __init__


def _loop(original: Any, recorder: Recorder) -> Any:
    """Patch a loop's `call_at`."""
    clock = recorder.clock

    def call_at(self: Any, when: Any, callback: Any, *args: Any, context: Any = None) -> Any:
        now, present = clock(), self.time()
        if context is None:  # without a dict of keywords, a tenth of a microsecond less
            handle = original(self, when, callback, *args)
        else:
            handle = original(self, when, callback, *args, context=context)
        if not recorder.loops:  # it was made before
            recorder.loops = _loops_of(self)
        if type(callback) is not MethodType or not _is_alarm(callback):
            recorder.note((STARTED, now, id(handle), float(when) - present))
        return handle

    return call_at


def _wheel(original: Any, recorder: Recorder) -> Any:
    """Patch the `_call_at` of a wheel's loop. What it passes to its base is recorded there."""
    clock = recorder.clock

    def call_at(self: Any, when: Any, callback: Any, args: Any, context: Any) -> Any:
        now, present = clock(), self.time()
        handle = original(self, when, callback, args, context)
        if not recorder.loops:  # it was made before
            recorder.loops = _loops_of(self)
        if hasattr(handle, "_moment") and not _is_alarm(callback):
            recorder.note((STARTED, now, id(handle), float(when) - present))
        return handle

    return call_at


def _setting(kind: float, time_of: Any, deadline_of: Any) -> Any:
    """Patch a function that sets a timer: the one it returns, or else its own object.

    `time_of` returns the present time of this object; `deadline_of` returns the timer's, None for a
    timer that is not to be recorded.
    """

    def patch(original: Any, recorder: Recorder) -> Any:
        clock = recorder.clock

        def patched(owner: Any, *args: Any, **more: Any) -> Any:
            now, present = clock(), time_of(owner)
            answer = original(owner, *args, **more)
            timer = owner if answer is None or answer is True else answer
            if answer is not False and (deadline := deadline_of(timer)) is not None:
                try:
                    delay = deadline - present
                    seconds = float(delay)
                except (TypeError, ValueError, OverflowError):  # e.g. datetimes
                    return answer
                if type(delay).__name__ != "timedelta64":  # its number may be of nanoseconds
                    recorder.note((kind, now, id(timer), seconds))
            return answer

        return patched

    return patch


def _cancel(original: Any, recorder: Recorder) -> Any:
    """Patch a method that cancels its object."""
    clock = recorder.clock

    def cancel(self: Any) -> Any:
        now = clock()
        answer = original(self)
        if answer is not False:
            recorder.note((CANCELLED, now, id(self), 0.0))
        return answer

    return cancel


def _cancel_pending(original: Any, recorder: Recorder) -> Any:
    """Patch a wheel's `cancel`: its timers may be early, and so have fired before the deadline."""
    clock = recorder.clock

    def cancel(self: Any) -> None:
        # An alarm was not recorded, and its `id()` may be that of a call that has just run.
        if self._state == _PENDING and not _is_alarm(self._callback):
            recorder.note((CANCELLED, clock(), id(self), 0.0))
        original(self)

    return cancel


_enter = _setting(STARTED, lambda scheduler: scheduler.timefunc(), lambda event: event.time)


def _cancel_event(original: Any, recorder: Recorder) -> Any:
    """Patch `cancel` of `sched.scheduler`."""

    def cancel(self: Any, event: Any) -> None:
        now = recorder.clock()
        original(self, event)
        recorder.note((CANCELLED, now, id(event), 0.0))

    return cancel


def _uvloop(original: Any, recorder: Recorder) -> Any:
    """Patch uvloop's `call_later`. Its handles are compiled, so others are returned."""

    def call_later(self: Any, delay: Any, callback: Any, *args: Any, **context: Any) -> Any:
        if _is_alarm(callback):
            return original(self, delay, callback, *args, **context)
        now, call = recorder.clock(), _CompiledCall(callback)
        call.handle = original(self, delay, call, *args, **context)
        recorder.loops = recorder.loops or _loops_of(self)
        recorder.note((STARTED, now, id(call), float(delay)))
        return call

    return call_later


def _rloop(original: Any, recorder: Recorder) -> Any:
    """Patch what rloop's `call_later` and `call_at` call if the delay is above 0."""

    def call_later(self: Any, delay: Any, callback: Any, args: Any, context: Any) -> Any:
        if _is_alarm(callback):
            return original(self, delay, callback, args, context)
        now, call = recorder.clock(), _CompiledCall(callback)
        call.handle = original(self, delay, call, args, context)
        recorder.note((STARTED, now, id(call), float(delay)))
        return call

    return call_later


class _CompiledCall:
    """A call of uvloop or rloop, as a callback and as a handle.

    uvloop counts in milliseconds and may be early, so the callback says that it runs.
    """

    __slots__ = ("_callback", "_waits", "handle")

    handle: Any

    def __init__(self, callback: Any) -> None:
        self._callback, self._waits = callback, True

    def __call__(self, *args: Any) -> None:
        self._waits = False
        self._callback(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.handle, name)

    def cancel(self) -> None:
        """Mirror `asyncio.Handle.when`."""
        self.handle.cancel()
        if self._waits and current is not None:
            current.note((CANCELLED, current.clock(), id(self), 0.0))
        self._waits = False


# trio removes a deadline and adds the new one when it moves. Until then the scope has a deadline.


def _trio_time() -> Any:
    runner = sys.modules["trio._core._run"].GLOBAL_RUN_CONTEXT.runner
    return runner.clock.current_time()


def _add_deadline(original: Any, recorder: Recorder) -> Any:
    """Patch how trio adds the deadline of a cancel scope."""

    def add(self: Any, deadline: float, scope: Any) -> None:
        now, present = recorder.clock(), _trio_time()
        original(self, deadline, scope)
        kind = MOVED if id(scope) in recorder.moving else STARTED
        recorder.moving.discard(id(scope))
        recorder.note((kind, now, id(scope), deadline - present))

    return add


def _remove_deadline(original: Any, recorder: Recorder) -> Any:
    """Patch how trio removes the deadline of a cancel scope, also of one that has expired."""

    def remove(self: Any, deadline: float, scope: Any) -> None:
        original(self, deadline, scope)
        if scope._registered_deadline != _NEVER:
            recorder.moving.add(id(scope))
        elif _trio_time() < deadline:
            recorder.note((CANCELLED, recorder.clock(), id(scope), 0.0))

    return remove


_NEVER = float("inf")
_PENDING = 0
"""As in timers.services.pending."""


def _now(owner: Any) -> Any:
    return owner._pending.now() / 1e9


def _due(call: Any) -> Any:
    """None for a periodic call that runs; when it ends, it is started again."""
    return call._moment / 1e9 if call._state == _PENDING else None


_schedule, _reschedule = _setting(STARTED, _now, _due), _setting(MOVED, _now, _due)
_start = _setting(STARTED, lambda timer: 0.0, lambda timer: timer.interval)  # None: never fires

SOURCES: dict[str, dict[str, Any]] = {
    "asyncio.base_events": {"BaseEventLoop.call_at": _loop, "BaseEventLoop.__init__": _made},
    "asyncio.events": {"TimerHandle.cancel": _cancel},
    "uvloop": {"Loop.call_later": _uvloop, "Loop.__init__": _made},
    "rloop.loop": {"RLoop._call_later": _rloop},
    "trio._core._run": {"Deadlines.add": _add_deadline, "Deadlines.remove": _remove_deadline},
    "threading": {"Timer.start": _start, "Timer.cancel": _cancel},
    "sched": {"scheduler.enterabs": _enter, "scheduler.cancel": _cancel_event},
    "timers.services.event_loop": {
        "_WheelLoop._call_at": _wheel,
        "WheelHandle.cancel": _cancel_pending,
    },
    "timers.services.calls": {
        "CallScheduler.schedule_after": _schedule,
        "CallScheduler.schedule_at": _schedule,
        "CallScheduler.schedule_every": _schedule,
        "ScheduledCall.reschedule": _reschedule,
        "ScheduledCall.reschedule_after": _reschedule,
        "ScheduledCall.cancel": _cancel,
        "PeriodicCall.cancel": _cancel,
        "PeriodicCall._finish": _schedule,
    },
}
"""Module -> its functions that set and cancel timers, and how each is patched. asyncio's
`call_later`, uvloop's `call_at` and `enter` of `sched` call these."""


def _call_current(method: str) -> Any:
    return lambda: current and getattr(current, method)()


# A process with threads is warned when it forks, so ours ends before that.
os.register_at_fork(
    before=_call_current("_stop_thread"),
    after_in_parent=_call_current("_start_thread"),
    after_in_child=_call_current("_abandon"),
)
