"""The functions of every kernel, declared once: `schedule(state, ...)` runs the State's own kernel.

Compiled, the kernel is chosen by the type of the State at compile time (`overload`): code like
`replay` is written once, costs nothing extra, and its machine code can be kept on disk.
Interpreted, the kernel is looked up by the State's class. A kernel is the module that defines its
State: there is nothing to register.

Each State class needs its own name. Machine code is linked by symbols made of function and type
names; if two cached functions had one symbol, a scheme would silently run another's code.
"""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import ModuleType
from typing import Any

from numba import types
from numba.extending import overload

from timers.kernels.jit import FORCE_INLINE, entry

KERNEL_FUNCTIONS: dict[str, tuple[str, ...]] = {}
"""The compiled functions of a kernel, declared below, and their parameters."""

PYTHON_FUNCTIONS = {
    "allocate": ("start", "capacity", "parameters", "counters"),
    "reserve": ("state", "extra"),
    "locate": ("state", "handle"),
    "check": ("state",),
}
"""The functions of a kernel that are plain Python, and their parameters.

`allocate` returns the State of a new timer. `reserve` returns a State with places for `extra` more
timers, or raises MemoryError and changes nothing. `locate` describes where a pending timer is, and
`check` raises InvariantError if a structural invariant does not hold.
"""


def kernel_of(state_class: type) -> ModuleType:
    """The kernel module of a State class."""
    return sys.modules[state_class.__module__]


# A call with `*arguments` would pass them as a tuple, at 6 to 8 % of the cost of an operation.
_CALLS: dict[int, Callable[[Any], Callable[..., Any]]] = {
    0: lambda function: lambda state: function(state),
    1: lambda function: lambda state, a: function(state, a),
    2: lambda function: lambda state, a, b: function(state, a, b),
}


def dispatched(declared: Callable[..., Any]) -> Callable[..., Any]:
    """Make a declared function run the function of its name in the State's kernel."""
    name = declared.__name__
    KERNEL_FUNCTIONS[name] = tuple(signature(declared).parameters)

    @wraps(declared)
    def interpreted(state, *arguments):
        return getattr(kernel_of(type(state)), name)(state, *arguments)

    @overload(interpreted, jit_options=FORCE_INLINE, strict=False)
    def _(state, *arguments):
        if not isinstance(state, types.BaseNamedTuple):
            return None
        return _CALLS[len(arguments)](getattr(kernel_of(state.instance_class), name))

    return interpreted


@dispatched
def schedule(state, deadline):
    """Add a timer for a deadline in [0, LIMIT] and return its handle. A place is reserved."""


@dispatched
def cancel(state, handle):
    """Remove a pending timer; True if it was pending. Any int64 is a legal handle."""


@dispatched
def reschedule(state, handle, deadline):
    """Give a pending timer a new deadline in [0, LIMIT], same handle; True if it was pending.

    A re-arm is a new arming: among equal deadlines, a FIFO scheme delivers the timer last.
    """


@dispatched
def advance(state, now, out):
    """Move the clock towards `now` and write what fires to `out` (EXPIRY), ordered by `fired_at`.

    Returns the number of rows written and whether the clock has arrived at `now`. If not, `out` is
    full: call again with the same `now` to resume, even within one unit. `now` is not before the
    clock, and `out` has at least one row.
    """


@dispatched
def due(state):
    """Whether an advance to the present moment would deliver something."""


@dispatched
def next_expiry(state):
    """A lower bound of the next `fired_at`: the clock if something is due; NONE if none pends."""


@dispatched
def next_wakeup(state):
    """The next moment at which advance has work to do, emptied buckets included; NONE if never."""


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
