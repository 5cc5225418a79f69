"""`HierarchicalWheel`: the class over `timers.kernels.hierarchical_wheel`."""

from timers.kernels import hierarchical_wheel
from timers.rounding import Rounding
from timers.schemes.base import DEFAULT_CAPACITY, MAX_WHEEL_SIZE, KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Parameter, Traits, ticks, wheel_sizes


class HierarchicalWheel(KernelTimer):
    """Wheels of `wheel_size` slots (2 .. 2**20), driven by a queue of buckets; as in Kafka.

    A slot of the lowest wheel spans `tick` units.

    >>> timer = HierarchicalWheel(tick=1, wheel_size=20)
    >>> handle = timer.schedule(450)
    >>> timer.locate(handle), timer.next_wakeup()
    ({'level': 3, 'slot': 1}, 400)
    >>> _ = timer.advance(400)
    >>> timer.locate(handle), timer.next_wakeup()
    ({'level': 2, 'slot': 2}, 440)
    >>> timer.advance(450).fired_at.tolist()
    [450]
    """

    _kernel = hierarchical_wheel
    traits = Traits(
        name="hierarchical-wheel",
        scheme="scheme 7, wheels driven by a queue of buckets (Kafka)",
        summary="wheels of growing ticks; a delay queue of their buckets drives the clock",
        rounding=lambda parameters: Rounding("down", parameters["tick"]),
        order="unspecified",
        parameters={
            "tick": Parameter(1, grid=ticks),
            "wheel_size": Parameter(20, 2, MAX_WHEEL_SIZE, wheel_sizes),
        },
        exact_next_expiry=False,
        costs=(
            Cost("schedule", "N", "1", Load.ANY, "comparisons"),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("reschedule", "N", "1", Load.ANY, "comparisons"),
            Cost("expiry", "N", "1", Load.UNIFORM_DELAYS, "timers_touched"),
            Cost("expiry", "N", "1", Load.UNIFORM_DELAYS, "queue_polls"),
            Cost("expiry", "delay", "log", Load.EQUAL_DELAYS, "refiled"),
            Cost("expiry", "levels", "linear", Load.EQUAL_DELAYS, "refiled"),
            Cost("tick", "N", "linear", Load.FULL_SLOT, "refiled"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        horizon="none: the highest level reaches 2**63 - 1",
        jumps="straight to the next queued bucket",
        suits="delays of every length, mostly cancelled; a thread that sleeps between buckets",
        drawback="rounds down, so early by up to tick - 1; emptied buckets cause useless wake-ups",
        source="Varghese & Lauck 1987, scheme 7; Apache Kafka utils/timer/TimingWheel",
        deviations=(
            "advance aligns every level's clock to now (Kafka's lags until a bucket expires)",
            "all levels are allocated at once (Kafka creates overflow wheels on demand)",
            "an overdue timer fires at the next advance (Kafka runs it when it is added)",
            "exact up to 2**63 - 1 (Kafka's arithmetic overflows beyond 2**61)",
            "not thread-safe (Kafka locks)",
        ),
    )

    def __init__(
        self,
        tick: int = 1,
        wheel_size: int = 20,
        *,
        start: int = 0,
        capacity: int = DEFAULT_CAPACITY,
        counting: bool = False,
    ) -> None:
        super().__init__(
            tick=tick, wheel_size=wheel_size, start=start, capacity=capacity, counting=counting
        )
