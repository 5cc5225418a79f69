"""`LinuxWheel`: the class over `timers.kernels.linux_wheel`."""

from timers.kernels import linux_wheel
from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Traits


class LinuxWheel(KernelTimer):
    """Nine wheels of 64 slots without cascades, as in Linux since 4.8. A unit is a jiffy.

    >>> timer = LinuxWheel(start=1001)
    >>> handles = timer.schedule_many([1010, 1100])
    >>> [timer.locate(handle) for handle in handles.tolist()]
    [{'level': 1, 'slot': 51}, {'level': 2, 'slot': 10}]
    >>> timer.advance(2000).fired_at.tolist()
    [1011, 1104]
    """

    _kernel = linux_wheel
    traits = Traits(
        name="linux-wheel",
        scheme="scheme 7 without cascades (Linux since 4.8)",
        summary="nine wheels of 64 slots, each eight times as coarse as the last; no timer moves",
        rounding=lambda parameters: Rounding("levels"),
        order="unspecified",
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("expiry", "N", "1", Load.UNIFORM_DELAYS, "timers_touched"),
            Cost("expiry", "N", "1", Load.UNIFORM_DELAYS, "slots_visited"),
            Cost("expiry", "delay", "1", Load.EQUAL_DELAYS, "timers_touched"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        horizon="63 * 8**8 units (12 days of 1 ms); later deadlines are cut to 62 * 8**8 units, so "
        "these timers fire early",
        jumps="over empty slots by occupancy bits; an empty timer in O(1)",
        suits="very many timeouts that need no precision, most of them cancelled",
        drawback="the longer the delay, the later a timer fires, by up to 8/63 of the delay",
        source="Linux since 4.8, kernel/time/timer.c",
        deviations=(
            "a level is chosen by the distance from now (Linux: from the next tick, so a delay of "
            "exactly 63 goes one level lower)",
            "an overdue timer fires at the next advance (Linux: at the next tick)",
            "a re-arm to another deadline of the same slot goes to its end (Linux: stays)",
            "empty units are skipped (Linux does so only while the CPU is idle)",
            "one wheel (Linux: one for each CPU, and others for deferrable and pinned timers)",
        ),
    )
