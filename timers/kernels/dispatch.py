"""One name for each kernel function, whatever the scheme: `schedule(state, ...)` runs the State's
own kernel.

Compiled, the kernel is chosen by the type of the State while compiling (`overload`), so code like
`replay` is written once, costs nothing extra, and its machine code can be kept on disk.
Interpreted, the stubs look the kernel up by the State's class. A kernel is the module in which its
State is defined: there is nothing to register.

Each State class needs a name of its own. Machine code is linked by symbols made of function and
type names, and two cached functions of one symbol would be taken for each other: one scheme would
silently run another's code.
"""

import sys
from types import ModuleType
from typing import Any

from numba import types
from numba.extending import overload

from timers.kernels.jit import entry

KERNEL_FUNCTIONS = {
    "schedule": ("state", "deadline"),
    "cancel": ("state", "handle"),
    "reschedule": ("state", "handle", "deadline"),
    "advance": ("state", "now", "out"),
    "due": ("state",),
    "next_expiry": ("state",),
    "next_wakeup": ("state",),
}
"""The compiled functions of a kernel and their parameters."""

PYTHON_FUNCTIONS = {
    "allocate": ("start", "capacity", "parameters", "counters"),
    "reserve": ("state", "extra"),
    "locate": ("state", "handle"),
    "check": ("state",),
}
"""The functions of a kernel that are plain Python: they allocate, or they only look."""


def kernel_of(state_class: type) -> ModuleType:
    """The kernel module of a State class."""
    return sys.modules[state_class.__module__]


def schedule(state, deadline):
    return kernel_of(type(state)).schedule(state, deadline)


def cancel(state, handle):
    return kernel_of(type(state)).cancel(state, handle)


def reschedule(state, handle, deadline):
    return kernel_of(type(state)).reschedule(state, handle, deadline)


def advance(state, now, out):
    return kernel_of(type(state)).advance(state, now, out)


def due(state):
    return kernel_of(type(state)).due(state)


def next_expiry(state):
    return kernel_of(type(state)).next_expiry(state)


def next_wakeup(state):
    return kernel_of(type(state)).next_wakeup(state)


def _kernel_function(state: Any, name: str) -> Any:
    if isinstance(state, types.BaseNamedTuple):
        return getattr(kernel_of(state.instance_class), name, None)
    return None


@overload(schedule, inline="always")
def _schedule(state, deadline):
    kernel = _kernel_function(state, "schedule")
    return lambda state, deadline: kernel(state, deadline)


@overload(cancel, inline="always")
def _cancel(state, handle):
    kernel = _kernel_function(state, "cancel")
    return lambda state, handle: kernel(state, handle)


@overload(reschedule, inline="always")
def _reschedule(state, handle, deadline):
    kernel = _kernel_function(state, "reschedule")
    return lambda state, handle, deadline: kernel(state, handle, deadline)


@overload(advance, inline="always")
def _advance(state, now, out):
    kernel = _kernel_function(state, "advance")
    return lambda state, now, out: kernel(state, now, out)


@overload(due, inline="always")
def _due(state):
    kernel = _kernel_function(state, "due")
    return lambda state: kernel(state)


@overload(next_expiry, inline="always")
def _next_expiry(state):
    kernel = _kernel_function(state, "next_expiry")
    return lambda state: kernel(state)


@overload(next_wakeup, inline="always")
def _next_wakeup(state):
    kernel = _kernel_function(state, "next_wakeup")
    return lambda state: kernel(state)


@entry
def schedule_many(state, deadlines, handles):
    """Fill `handles` (int64) with a new timer for each of `deadlines` (int64); places are
    reserved.
    """
    for k in range(deadlines.size):
        handles[k] = schedule(state, deadlines[k])


@entry
def cancel_many(state, handles, cancelled):
    """Fill `cancelled` (bool) with whether each of `handles` (int64) was pending."""
    for k in range(handles.size):
        cancelled[k] = cancel(state, handles[k])


@entry
def reschedule_many(state, handles, deadlines, rescheduled):
    """Fill `rescheduled` (bool) with whether each of `handles` (int64) was pending."""
    for k in range(handles.size):
        rescheduled[k] = reschedule(state, handles[k], deadlines[k])


class Calls:
    """The compiled functions that Python calls for one scheme: `call.schedule(*state, deadline)`
    and so on.

    A State travels as its arrays and is put together inside: passing the NamedTuple itself costs
    twice as much. The closures hold only the State class, by which they are found in the disk cache
    again.
    """

    def __init__(self, State: Any) -> None:
        def call_schedule(nodes, cells, counters, deadline):
            return schedule(State(nodes, cells, counters), deadline)

        def call_cancel(nodes, cells, counters, handle):
            return cancel(State(nodes, cells, counters), handle)

        def call_reschedule(nodes, cells, counters, handle, deadline):
            return reschedule(State(nodes, cells, counters), handle, deadline)

        def call_advance(nodes, cells, counters, now, out):
            return advance(State(nodes, cells, counters), now, out)

        def call_next_expiry(nodes, cells, counters):
            return next_expiry(State(nodes, cells, counters))

        def call_next_wakeup(nodes, cells, counters):
            return next_wakeup(State(nodes, cells, counters))

        def compiled(function):
            # The arguments' types are the same for all schemes, so the name must tell them apart
            # (see above).
            function.__qualname__ = f"{State.__name__}.{function.__name__}"
            return entry(function)

        self.schedule = compiled(call_schedule)
        self.cancel = compiled(call_cancel)
        self.reschedule = compiled(call_reschedule)
        self.advance = compiled(call_advance)
        self.next_expiry = compiled(call_next_expiry)
        self.next_wakeup = compiled(call_next_wakeup)
