"""`OrderedList`: the class over `timers.kernels.ordered_list`."""

from timers.kernels import ordered_list
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Traits


class OrderedList(KernelTimer):
    """One list of all pending timers, sorted by deadline.

    >>> timer = OrderedList()
    >>> handles = timer.schedule_many([30, 10, 20])
    >>> [timer.deadline for timer in timer.snapshot().lists["list"]]
    [10, 20, 30]
    """

    _kernel = ordered_list
    traits = Traits(
        name="ordered-list",
        scheme="scheme 2, the ordered list",
        summary="one list of all pending timers, sorted by deadline and searched from the rear",
        rounding=lambda parameters: Rounding("exact"),
        order="fifo",
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "linear", Load.RANDOM_DEADLINES, "comparisons"),
            Cost("schedule", "N", "1", Load.EQUAL_DELAYS, "comparisons"),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "1", Load.IDLE_TIMEOUTS, "comparisons"),
            Cost("expiry", "N", "1", Load.ANY, "timers_touched"),
            Cost("tick", "N", "1", Load.ANY, NO_COUNTER),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        jumps="straight to the earliest deadline",
        suits="a few dozen timers, or the same delay for all",
        drawback="a schedule passes all timers with later deadlines",
        source="Varghese & Lauck 1987, scheme 2",
    )
