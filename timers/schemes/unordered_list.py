"""`UnorderedList`: the class over `timers.kernels.unordered_list`."""

from timers.kernels import unordered_list
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Traits


class UnorderedList(KernelTimer):
    """A list of all pending timers, scanned by every advance. Wheels exist to avoid this.

    >>> timer = UnorderedList()
    >>> handles = timer.schedule_many([30, 10, 20])
    >>> timer.advance(20).deadlines.tolist()
    [10, 20]
    """

    _kernel = unordered_list
    traits = Traits(
        name="unordered-list",
        scheme="scheme 1, the unordered list",
        summary="one list of all pending timers; every advance visits every one of them",
        rounding=lambda parameters: Rounding("exact"),
        order="fifo",
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("tick", "N", "linear", Load.ANY, "timers_touched"),
            Cost("expiry", "N", "log", Load.ALL_AT_ONCE, "comparisons"),
            Cost("next_wakeup", "N", "linear", Load.ANY, READS),
        ),
        jumps="any jump is one scan of all pending timers and a sort of those due",
        suits="a few dozen timers, or a clock that seldom moves",
        drawback="each step of the clock costs time in proportion to all pending timers",
        source="Varghese & Lauck 1987, scheme 1",
        deviations=("deadlines are compared (the paper decrements a counter in each timer)",),
    )
