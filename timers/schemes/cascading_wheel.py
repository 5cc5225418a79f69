"""`CascadingWheel`: the class over `timers.kernels.cascading_wheel`."""

from timers.kernels import cascading_wheel
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Traits


class CascadingWheel(KernelTimer):
    """Five wheels of 256 slots that cascade, as in Linux before 4.8.

    >>> timer = CascadingWheel(start=1000)
    >>> handle = timer.schedule(1300)
    >>> timer.locate(handle)
    {'level': 2, 'slot': 5}
    >>> _ = timer.advance(1280)
    >>> timer.locate(handle)
    {'level': 1, 'slot': 20}
    >>> timer.advance(1300).handles.tolist() == [handle]
    True
    """

    _kernel = cascading_wheel
    traits = Traits(
        name="cascading-wheel",
        scheme="scheme 7, cascading (Linux before 4.8)",
        summary="five wheels of 256 slots; an upper slot empties into lower ones when reached",
        rounding=lambda parameters: Rounding("exact"),
        order="unspecified",
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
        horizon="2**40 units; an overflow list keeps later deadlines, exact too",
        jumps="over empty slots by occupancy bits; an empty timer in O(1)",
        suits="very many timers at a fine tick, most of them cancelled",
        drawback="one tick can move all the timers of an upper slot",
        source="Varghese & Lauck 1987, scheme 7; Linux kernel/timer.c before 4.8",
        deviations=(
            "all five levels have 256 slots (Linux: 256 and 4 x 64)",
            "beyond 2**40 units an overflow list stays exact (Linux clamps to 2**32 - 1)",
            "empty units are skipped (Linux visits each)",
            "a level is chosen by the distance from now (Linux: from the next tick, so a delay of "
            "exactly 256 goes one level lower)",
            "a re-arm to the same deadline goes to the end of its slot (Linux: stays in its place)",
            "no slack (Linux since 2.6.38: delays of 256 ticks and more grow by up to 1/256)",
        ),
    )
