"""`DenseWheel`: the class over `timers.kernels.dense_wheel`."""

from timers.kernels import dense_wheel
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Traits


class DenseWheel(KernelTimer):
    """A cascading wheel whose slots are arrays of place numbers: five wheels of 256 slots.

    >>> timer = DenseWheel(start=1000)
    >>> handle = timer.schedule(1300)
    >>> timer.locate(handle)
    {'level': 2, 'slot': 5}
    >>> _ = timer.advance(1280)
    >>> timer.locate(handle)
    {'level': 1, 'slot': 20}
    >>> timer.advance(1300).handles.tolist() == [handle]
    True
    """

    _kernel = dense_wheel
    traits = Traits(
        name="dense-wheel",
        scheme="scheme 7, cascading, slots as arrays",
        summary="five wheels of 256 slots, each an array in whole cache lines",
        rounding=lambda parameters: Rounding("exact"),
        order="unspecified",
        ties="newest first",
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("expiry", "N", "1", Load.UNIFORM_DELAYS, "timers_touched"),
            Cost("expiry", "delay", "log", Load.EQUAL_DELAYS, "refiled"),
            Cost("tick", "N", "linear", Load.FULL_SLOT, "refiled"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        horizon="deadlines that share all but the last 40 bits with the clock; an overflow list "
        "keeps the others, exact too",
        jumps="over empty slots by occupancy bits; an empty timer in O(1)",
        suits="very many timers at a fine tick, most of which expire",
        drawback="one tick can move all the timers of an upper slot; a cancel writes to the place "
        "of another timer; equal deadlines fire newest first, and those that came from an "
        "upper slot in groups",
        source="Varghese & Lauck 1987, scheme 7; levels as in Tokio's timer wheel",
        deviations=(
            "a slot is a stack of arrays of 15 place numbers (Varghese & Lauck: a list)",
            "five levels of 256 slots (Tokio: 6 of 64)",
            "later deadlines are in an overflow list (Tokio: on the top level)",
        ),
    )
