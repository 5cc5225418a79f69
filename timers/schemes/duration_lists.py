"""`DurationLists`: the class over `timers.kernels.duration_lists`."""

from timers.kernels import duration_lists
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import READS, Cost, Load, Traits


class DurationLists(KernelTimer):
    """One list for each distinct delay, for programs with a few constant timeouts; as in Node.js.

    >>> timer = DurationLists()
    >>> handles = [timer.schedule_after(delay) for delay in (30_000, 200, 30_000)]
    >>> timer.locate(handles[1])
    {'bucket': 'delay 200'}
    >>> timer.advance(200).handles.tolist() == handles[1:2]
    True
    """

    _kernel = duration_lists
    traits = Traits(
        name="duration-lists",
        scheme="a list for each distinct delay (Node.js)",
        summary="timers with the same delay are in one list; a heap orders the lists",
        rounding=lambda parameters: Rounding("exact"),
        order="fifo",
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.FEW_DELAYS, "comparisons"),
            Cost("cancel", "N", "1", Load.FEW_DELAYS, "comparisons"),
            Cost("reschedule", "N", "1", Load.FEW_DELAYS, "comparisons"),
            Cost("expiry", "N", "1", Load.FEW_DELAYS, "comparisons"),
            Cost("expiry", "delays", "log", Load.FEW_DELAYS, "comparisons"),
            Cost("expiry", "N", "log", Load.UNIFORM_DELAYS, "comparisons"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        jumps="straight to the earliest deadline",
        suits="a few constant timeouts, however many timers have them",
        drawback="if most delays differ, it costs more than a heap; 48 bytes for each timer",
        source="Node.js lib/internal/timers.js",
        deviations=(
            "the delay is that from the clock to the deadline (Node.js: the argument of the call)",
            "an empty list goes at once (Node.js: when its turn in the queue comes)",
            "a list moves in the heap when its first timer goes (Node.js: when its turn comes)",
            "lists with the same first deadline take turns by arming (Node.js: in any order)",
        ),
    )
