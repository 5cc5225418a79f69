"""`SortedHashedWheel`: the class over `timers.kernels.sorted_hashed_wheel`."""

from timers.kernels import sorted_hashed_wheel
from timers.rounding import Rounding
from timers.schemes.base import DEFAULT_CAPACITY, MAX_WHEEL_SIZE, KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Parameter, Traits, wheel_sizes


class SortedHashedWheel(KernelTimer):
    """One wheel of `wheel_size` slots (1 .. 2**20) of one unit; each slot is a sorted list.

    >>> timer = SortedHashedWheel(wheel_size=8, start=9)
    >>> handles = timer.schedule_many([28, 12])
    >>> [timer.deadline for timer in timer.snapshot().rings[0].slots[4]]
    [12, 28]
    >>> timer.advance(28).fired_at.tolist()
    [12, 28]
    """

    _kernel = sorted_hashed_wheel
    traits = Traits(
        name="sorted-hashed-wheel",
        scheme="scheme 5, the hashed wheel with sorted slots",
        summary="one wheel; timers of all rotations share a slot, which is sorted by deadline",
        rounding=lambda parameters: Rounding("exact"),
        order="fifo",
        parameters={"wheel_size": Parameter(512, 1, MAX_WHEEL_SIZE, wheel_sizes)},
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "linear", Load.MANY_ROTATIONS, "comparisons"),
            Cost("schedule", "wheel_size", "inverse", Load.MANY_ROTATIONS, "comparisons"),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "linear", Load.MANY_ROTATIONS, "comparisons"),
            Cost("reschedule", "wheel_size", "inverse", Load.MANY_ROTATIONS, "comparisons"),
            Cost("expiry", "N", "1", Load.ANY, "timers_touched"),
            Cost("next_wakeup", "wheel_size", "linear", Load.MANY_ROTATIONS, READS),
        ),
        horizon="none: any deadline, at the cost of a longer search in its slot",
        jumps="over empty slots by occupancy bits; over others by a look at their first timers",
        suits="exact order at a fine tick, with fewer timers than slots or nearly equal delays",
        drawback="a schedule passes the later timers of its slot",
        source="Varghese & Lauck 1987, scheme 5",
        deviations=("slots without a due timer are skipped (the paper visits each)",),
    )

    def __init__(
        self,
        wheel_size: int = 512,
        *,
        start: int = 0,
        capacity: int = DEFAULT_CAPACITY,
        counting: bool = False,
    ) -> None:
        super().__init__(wheel_size=wheel_size, start=start, capacity=capacity, counting=counting)
