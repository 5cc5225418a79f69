"""`SimpleWheel`: the class over `timers.kernels.simple_wheel`."""

from timers.kernels import simple_wheel
from timers.rounding import Rounding
from timers.schemes.base import DEFAULT_CAPACITY, MAX_WHEEL_SIZE, KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Parameter, Traits, wheel_sizes


class SimpleWheel(KernelTimer):
    """A ring of `wheel_size` slots (1 .. 2**20) of one unit, and an overflow list.

    >>> timer = SimpleWheel(wheel_size=8, start=5)
    >>> [timer.locate(timer.schedule(deadline)) for deadline in (11, 13)]
    [{'slot': 3}, {'bucket': 'overflow'}]
    >>> timer
    SimpleWheel(wheel_size=8, start=5)  # 2 pending
    >>> timer.advance(13).fired_at.tolist()
    [11, 13]
    """

    _kernel = simple_wheel
    traits = Traits(
        name="simple-wheel",
        scheme="scheme 4, the simple timing wheel",
        summary="a ring of one slot per unit; deadlines past one rotation wait in an overflow list",
        rounding=lambda parameters: Rounding("exact"),
        order="unspecified",
        parameters={"wheel_size": Parameter(512, 1, MAX_WHEEL_SIZE, wheel_sizes)},
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("expiry", "N", "1", Load.ONE_ROTATION, "timers_touched"),
            Cost("expiry", "wheel_size", "inverse", Load.MANY_ROTATIONS, "timers_touched"),
            Cost("tick", "N", "linear", Load.MANY_ROTATIONS, "timers_touched"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        horizon="wheel_size units; an overflow list keeps later deadlines, exact too",
        jumps="over empty slots by occupancy bits; over rotations that move nothing into the wheel",
        suits="short delays of known length: wheel_size units or less",
        drawback="longer delays are visited once a rotation until they fit the wheel",
        source="Varghese & Lauck 1987, scheme 4",
        deviations=(
            "deadlines beyond the wheel wait in an overflow list (the paper leaves this open)",
            "rotations that move nothing from the overflow list into the wheel are skipped",
        ),
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
