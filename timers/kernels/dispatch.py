"""The functions of every kernel, declared once: `schedule(state, ...)` calls the State's kernel.

In compiled code, the type of the State selects the kernel at compile time. So code like `replay`
is written once, costs nothing extra and can be cached on disk. In interpreted code, the State's
class selects it. The kernel is the module that defines the State, so nothing needs to be
registered.

Each State class needs its own name. Machine code is linked by symbols made of function and type
names; if two cached functions had the same symbol, a scheme would silently run another's code.
"""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np
from numba import typeof, types
from numba.extending import lower_builtin, type_callable

from timers.kernels.jit import inlined, specialised
from timers.kernels.pool import EXPIRY, LAST, NOW, index_of, is_replaced, room
from timers.kernels.prefetch import prefetch

PYTHON_FUNCTIONS = {
    "allocate": ("start", "capacity", "parameters", "counters"),
    "enlarged": ("state", "capacity"),
    "snapshot": ("state",),
    "check": ("state",),
}
"""The functions of a kernel that are plain Python, and their parameters.

`allocate` returns the State of a new timer, and `enlarged` a State with more places for `move_all`
to fill; both may raise MemoryError. `snapshot` copies the contents of the structure, and `check`
raises InvariantError if a structural invariant does not hold.
"""


def kernel_of(state_class: type) -> ModuleType:
    """Return the kernel module of a State class."""
    return sys.modules[state_class.__module__]


def dispatched(declared: Callable[..., Any]) -> Callable[..., Any]:
    """Make a declared function run the function of the same name in the State's kernel."""
    name = declared.__name__

    @wraps(declared)
    def interpreted(state, *arguments):
        return getattr(kernel_of(type(state)), name)(state, *arguments)

    # Not an overload, which would be one more function to compile for each State.
    @type_callable(interpreted)
    def _(context):
        def typed(state, *arguments):
            function = getattr(kernel_of(state.instance_class), name)
            template, _, types_, _ = function.get_call_template((state, *arguments), {})
            return template(context).apply(types_, {})

        typed.pysig = signature(declared)
        return typed

    @lower_builtin(interpreted, types.BaseNamedTuple, types.VarArg(types.Any))
    def _(context, builder, signature, arguments):
        function = getattr(kernel_of(signature.args[0].instance_class), name)
        return context.get_function(types.Dispatcher(function), signature)(builder, arguments)

    return interpreted


@dispatched
def move_all(state, target):
    """Move everything to a State from `enlarged`, and mark `state` as replaced.

    Returns False if it was replaced before. In compiled code this is one step: no Python code runs
    in between.
    """


@dispatched
def schedule(state, deadline):
    """Add a timer for a deadline in [0, LIMIT] and return its handle.

    The caller has reserved a place.
    """


@dispatched
def cancel(state, handle):
    """Remove a pending timer; True if it was pending. Any int64 is a legal handle."""


@dispatched
def reschedule(state, handle, deadline):
    """Give a pending timer a new deadline in [0, LIMIT]; True if it was pending. Keeps the handle.

    A re-arm is a new arming: among equal deadlines, a FIFO scheme delivers the timer last.
    """


@dispatched
def advance(state, now, out):
    """Move the clock towards `now` and write what fires to `out` (EXPIRY), ordered by `fired_at`.

    Returns the number of rows written, and whether the clock has arrived at `now` and nothing is
    due. If not, `out` is full, and the clock is at the `fired_at` of its last row: call again to
    resume, even within one unit. `now` is not before the clock. If `out` has no rows, the clock
    stops at the latest when the first timer is due.
    """


@dispatched
def due(state):
    """Return whether an advance to the current time would deliver something."""


@dispatched
def next_expiry(state):
    """A lower bound of the next `fired_at`: the clock if one is due; NONE if nothing is pending."""


@dispatched
def next_wakeup(state):
    """The next moment at which advance has work to do, emptied buckets included; NONE if never."""


LOOK_AHEAD = 8  # operations of a batch by which rows are fetched; 16 and 32 are no faster

# Results of `Calls.advance`: it has arrived, `out` is full, or `now` is before the clock.
ARRIVED, FULL, BACKWARDS = 1, 0, -1

LEGAL = -1  # of a batch: it has been done
LAST_SCHEDULED = 0  # for `Calls.cancel`; no handle is 0

# `Calls.advance` writes the number of rows that follow the first one to this field of the first.
FILLED = "handle"


class Calls:
    """The compiled functions that Python calls for one scheme: `call.schedule(*state, deadline)`
    and so on.

    Python may run finalizers and signal handlers before the arguments reach the compiled function.
    If one of them made the timer grow, the arrays have been replaced. Each function then does
    nothing and returns None. So does `schedule` if there is no room, and `schedule_many` if there
    is not enough for all. Otherwise, a function does its work in one step.

    `schedule_many` and `reschedule_many` return the position of the first negative deadline, and do
    nothing else, or LEGAL. Python has made the result of each batch, and any small number, before
    the call. So nothing can fail after it, except that there is no memory for the handle that
    `schedule` returns; `cancel` of LAST_SCHEDULED then takes the timer back.

    A State is passed as its arrays and put together inside: passing the NamedTuple itself costs
    twice as much. The closures hold only the State class, so the disk cache finds them again. Each
    function is compiled for the arrays' types when it is first used. Python calls it directly:
    Numba's dispatcher would check the types on each call, at three times the cost.
    """

    def __init__(self, State: Any, types_of_arrays: tuple[Any, ...]) -> None:
        def call_move_all(nodes, cells, counters, larger, larger_cells):
            return move_all(State(nodes, cells, counters), State(larger, larger_cells, counters))

        def call_schedule(nodes, cells, counters, deadline):
            if is_replaced(nodes, cells) or room(nodes, cells) < 1:
                return None
            cells[LAST] = schedule(State(nodes, cells, counters), deadline)
            return cells[LAST]

        def call_cancel(nodes, cells, counters, handle):
            if is_replaced(nodes, cells):
                return None
            if handle == LAST_SCHEDULED:
                handle = cells[LAST]
            return cancel(State(nodes, cells, counters), handle)

        def call_reschedule(nodes, cells, counters, handle, deadline):
            if is_replaced(nodes, cells):
                return None
            return reschedule(State(nodes, cells, counters), handle, deadline)

        def call_advance(nodes, cells, counters, now, out):
            if is_replaced(nodes, cells):
                return None
            if now < cells[NOW]:
                return BACKWARDS
            filled, arrived = advance(State(nodes, cells, counters), now, out[1:])
            out[0][FILLED] = filled
            return ARRIVED if arrived else FULL

        def call_next_expiry(nodes, cells, counters):
            if is_replaced(nodes, cells):
                return None
            return next_expiry(State(nodes, cells, counters))

        def call_next_wakeup(nodes, cells, counters):
            if is_replaced(nodes, cells):
                return None
            return next_wakeup(State(nodes, cells, counters))

        def call_schedule_many(nodes, cells, counters, deadlines, handles):
            negative = first_negative(deadlines)
            if negative != LEGAL:
                return negative
            if is_replaced(nodes, cells) or room(nodes, cells) < deadlines.size:
                return None
            for k in range(deadlines.size):
                handles[k] = schedule(State(nodes, cells, counters), deadlines[k])
            return LEGAL

        def call_cancel_many(nodes, cells, counters, handles, cancelled):
            if is_replaced(nodes, cells):
                return None
            for k in range(handles.size):
                fetch_ahead(nodes, cells, handles, k)
                cancelled[k] = cancel(State(nodes, cells, counters), handles[k])
            return LEGAL

        def call_reschedule_many(nodes, cells, counters, handles, deadlines, rescheduled):
            negative = first_negative(deadlines)
            if negative != LEGAL:
                return negative
            if is_replaced(nodes, cells):
                return None
            for k in range(handles.size):
                fetch_ahead(nodes, cells, handles, k)
                rescheduled[k] = reschedule(State(nodes, cells, counters), handles[k], deadlines[k])
            return LEGAL

        integer, integers, bools = types.int64, types.int64[::1], types.boolean[::1]
        nodes, cells, _ = types_of_arrays
        self._functions = {
            "move_all": (call_move_all, (nodes, cells)),
            "schedule": (call_schedule, (integer,)),
            "cancel": (call_cancel, (integer,)),
            "reschedule": (call_reschedule, (integer, integer)),
            "advance": (call_advance, (integer, typeof(np.empty(0, EXPIRY)))),
            "next_expiry": (call_next_expiry, ()),
            "next_wakeup": (call_next_wakeup, ()),
            "schedule_many": (call_schedule_many, (integers, integers)),
            "cancel_many": (call_cancel_many, (integers, bools)),
            "reschedule_many": (call_reschedule_many, (integers, integers, bools)),
        }
        self._name, self._types = State.__name__, types_of_arrays

    def __getattr__(self, name: str) -> Any:
        """Compile a function, or load it from the disk cache, on first use."""
        if name.startswith("_"):
            raise AttributeError(name)
        function: Any
        function, more_types = self._functions[name]
        # The arguments' types are the same for all schemes, so the name must differ (see above).
        function.__qualname__ = f"{self._name}.{function.__name__}"
        compiled = specialised(function, (*self._types, *more_types))
        setattr(self, name, compiled)
        return compiled

    def load(self, *names: str) -> None:
        """Compile or load functions now, by default all, so that the first calls do not stall."""
        for name in names or self._functions:
            getattr(self, name)


@inlined
def fetch_ahead(nodes, cells, handles, k):
    """Fetch the row of a later handle of a batch into the cache.

    Rows in random order miss the cache, and the processor itself looks only a few operations ahead.
    Batches of new timers have no need of it: each free row tells the next one.
    """
    later = k + LOOK_AHEAD
    if later < handles.size:
        prefetch(nodes, index_of(cells, handles[later]))


@inlined
def first_negative(deadlines):
    """The position of the first negative deadline, or LEGAL."""
    for k in range(deadlines.size):
        if deadlines[k] < 0:
            return k
    return LEGAL
