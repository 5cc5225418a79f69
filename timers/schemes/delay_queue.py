"""`DelayQueue`: the class over `timers.kernels.delay_queue`."""

from timers.kernels import delay_queue
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import READS, Cost, Load, Traits


class DelayQueue(KernelTimer):
    """A binary heap with a position index; FIFO among equal deadlines.

    >>> timer = DelayQueue()
    >>> handles = timer.schedule_many([30, 10, 20])
    >>> timer.reschedule(handles[0], 5), timer.next_expiry()
    (True, 5)
    """

    _kernel = delay_queue
    traits = Traits(
        name="delay-queue",
        scheme="binary heap with a position index",
        summary="an array heap ordered by deadline, with each timer's index for removal",
        rounding=lambda parameters: Rounding("exact"),
        order="fifo",
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.RANDOM_DEADLINES, "comparisons"),
            Cost("schedule", "N", "log", Load.FALLING_DEADLINES, "comparisons"),
            Cost("cancel", "N", "1", Load.RANDOM_CANCELS, "comparisons"),
            Cost("reschedule", "N", "log", Load.IDLE_TIMEOUTS, "comparisons"),
            Cost("expiry", "N", "log", Load.ANY, "comparisons"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        jumps="straight to the earliest deadline",
        suits="exact order, few timers, or few cancels",
        drawback="each expiry costs O(log N)",
        source="Williams, Algorithm 232 (1964); Sedgewick & Wayne, Algorithms, 2.4 (index); "
        "Wegener, Bottom-up heapsort (1993), for the sift on removal",
        deviations=(
            "java.util.concurrent.DelayQueue has no index: its remove(object) is O(n)",
            "a removal sifts the hole to a leaf and then up (Java: down, or up if it did not move)",
            "equal deadlines fire in the order of arming (Java's DelayQueue: in any order)",
        ),
    )
