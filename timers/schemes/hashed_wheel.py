"""`HashedWheel`: the class over `timers.kernels.hashed_wheel`."""

from timers.kernels import hashed_wheel
from timers.rounding import Rounding
from timers.schemes.base import DEFAULT_CAPACITY, MAX_WHEEL_SIZE, KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Parameter, Traits, ticks, wheel_sizes


class HashedWheel(KernelTimer):
    """One wheel of `wheel_size` slots (1 .. 2**20) of `tick` units each, with rounds; as in Netty.

    New timers are queued; the advance that passes the end of the current tick hashes them into
    slots. The default tick is 100 units, which is 100 ms if a unit is a millisecond; with another
    unit, pass another tick. (On the command line the default is 100 ms where a unit is a duration.)

    >>> timer = HashedWheel(tick=100, wheel_size=8)
    >>> handles = timer.schedule_many([450, 1234]).tolist()
    >>> [timer.locate(handle) for handle in handles]
    [{'bucket': 'arrivals'}, {'bucket': 'arrivals'}]
    >>> _ = timer.advance(100)
    >>> [timer.locate(handle) for handle in handles]
    [{'slot': 4, 'rounds': 0}, {'slot': 4, 'rounds': 1}]
    >>> timer.advance(1300).fired_at.tolist()
    [500, 1300]
    """

    _kernel = hashed_wheel
    traits = Traits(
        name="hashed-wheel",
        scheme="scheme 6, the hashed wheel with rounds (Netty)",
        summary="one wheel of unsorted buckets; each timer counts the rotations left to wait",
        rounding=lambda parameters: Rounding("up", parameters["tick"]),
        order="unspecified",
        parameters={
            "tick": Parameter(100, grid=ticks),
            "wheel_size": Parameter(512, 1, MAX_WHEEL_SIZE, wheel_sizes),
        },
        exact_next_expiry=True,
        costs=(
            Cost("schedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "1", Load.ANY, NO_COUNTER),
            Cost("expiry", "delay", "linear", Load.MANY_ROTATIONS, "timers_touched"),
            Cost("tick", "N", "linear", Load.MANY_ROTATIONS, "timers_touched"),
            Cost("tick", "wheel_size", "inverse", Load.MANY_ROTATIONS, "timers_touched"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        horizon="none: any deadline, at the cost of one visit a rotation",
        jumps="over empty slots by occupancy bits; over quiet rotations by a pass over all timers",
        suits="I/O timeouts where a coarse tick is good enough",
        drawback="late by up to a tick, and each tick visits every timer of its slot",
        source="Varghese & Lauck 1987, scheme 6; Netty io.netty.util.HashedWheelTimer",
        deviations=(
            "ticks are aligned to absolute multiples (Netty: to its start)",
            "any wheel size (Netty rounds up to a power of two)",
            "empty slots and quiet rotations are skipped (Netty visits each tick)",
            "all that arrived is hashed at the end of the tick (Netty: at most 100 000 timers)",
            "a cancelled timer leaves its bucket at once (Netty: at the next tick)",
            "an overdue timer fires at the next advance (Netty: at the end of the tick)",
        ),
    )

    def __init__(
        self,
        tick: int = 100,
        wheel_size: int = 512,
        *,
        start: int = 0,
        capacity: int = DEFAULT_CAPACITY,
        counting: bool = False,
    ) -> None:
        super().__init__(
            tick=tick, wheel_size=wheel_size, start=start, capacity=capacity, counting=counting
        )
