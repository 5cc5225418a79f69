"""The table of claims: each with its source, its experiment and its criterion."""

from collections.abc import Iterable, Mapping, Sequence

from compare.trial.claims import geometry, lateness, work
from compare.trial.claims.base import Claim, Experiment
from timers.errors import TimerError, unknown_name


class ClaimError(TimerError, ValueError):
    """A claim is unknown."""


_NETTY = "Netty, io.netty.util.HashedWheelTimer"
_KAFKA = "Apache Kafka, TimingWheel and SystemTimer"
_LINUX = "the Linux kernel, kernel/timer.c and kernel/time/timer.c"

CLAIMS: Sequence[Claim] = (
    Claim(
        1,
        "A hashed wheel with rounds, as in Netty, may fire up to a full rotation late.",
        f"Articles on Netty. {_NETTY}: a timer fires when its tick is over; only a tick with more "
        "than 100 000 arrivals leaves some for the next.",
        lateness.WHEEL_SIZES,
        "Holds if the lateness reaches half a rotation at each size of the wheel; holds only for "
        "bursts if it does so in the burst alone; wrong otherwise.",
        lateness.rotation_late,
    ),
    Claim(
        2,
        "The precision of such a wheel is plus or minus one tick.",
        f"Articles on Netty. {_NETTY}: deadlines are rounded up.",
        lateness.WHEEL_SIZES,
        "Holds if timers fire early as well as late.",
        lateness.one_tick_either_way,
    ),
    Claim(
        3,
        "Kafka's hierarchical wheel is exact.",
        f"Articles on Kafka. {_KAFKA}: a timer expires with its bucket, at the bucket's start.",
        lateness.KAFKA_TICKS,
        "Holds if every timer fires at its deadline with each tick; holds only for those ticks "
        "with which it does.",
        lateness.kafka_exact,
    ),
    Claim(
        4,
        "Linux uses 5 levels of 256 buckets, which cover about 340 million ms (4 days).",
        f"Articles on timing wheels. Primary source: {_LINUX}.",
        geometry.GEOMETRIES,
        "Holds if one of the kernel's geometries has 5 levels of 256 slots and covers 340 million "
        "ms, within a tenth.",
        geometry.linux_geometry,
    ),
    Claim(
        5,
        "The timers of Linux and Kafka share one core design.",
        f"Articles on timing wheels. Primary sources: {_LINUX}; {_KAFKA}.",
        work.CORES,
        "Two designs are alike if both or neither file timers again, and both or neither are exact "
        "at a tick of 1. Holds if Linux since 4.8 is like Kafka; holds only for older kernels if "
        "those alone are.",
        work.one_core,
    ),
    Claim(
        6,
        "A timeout of 30 s enters level 3 of a wheel of 20 slots with a tick of 1 ms.",
        f"Articles on Kafka. {_KAFKA}: level 3 covers 20^3 ms, which is 8 s.",
        geometry.LEVELS,
        "Holds if it enters level 3, in Kafka's code and in ours.",
        geometry.enters_level_3,
    ),
    Claim(
        7,
        "Typical deployments need two or three levels.",
        f"Articles on Kafka. {_KAFKA}: 20 slots a level, and timeouts of 30 s to 5 min are usual.",
        geometry.LEVELS,
        "Holds if timeouts of up to 5 min enter one of three levels; holds only up to the longest "
        "of the measured timeouts that does.",
        geometry.few_levels,
    ),
    Claim(
        10,
        "The insert of a timing wheel is O(1).",
        "Varghese and Lauck 1987, as it is usually quoted.",
        work.INSERTS,
        "Wrong if the work of an insert doubles over the sizes; holds if, besides, no timer is "
        "filed again later; holds only without counting that otherwise.",
        work.insert_constant,
    ),
    Claim(
        11,
        "The items in the DelayQueue of buckets are capped by the number of buckets.",
        f"The design note of Kafka's purgatory. {_KAFKA}: a bucket is queued once at a time.",
        work.BUCKETS,
        "Holds if there are never more items than buckets, in Kafka's code and in ours.",
        work.buckets_capped,
    ),
    Claim(
        12,
        "The DelayQueue of buckets avoids empty ticks.",
        f"The design note of Kafka's purgatory. {_KAFKA}: buckets expire that were emptied by "
        "cancels, or whose timers only move down.",
        work.WAKEUPS,
        "Wrong if it wakes as often as there are ticks; holds if at most 1 % of the wake-ups find "
        "nothing due, on each workload; holds only without those otherwise.",
        work.no_empty_ticks,
    ),
    Claim(
        15,
        "Scanning all connections each second does not scale, and a ring does.",
        "Articles on idle connections.",
        work.CONNECTIONS,
        "Holds if the scan looks at a number of timers that grows as the connections do, and at "
        "least at twice those that are due, and the ring at no more than twice those.",
        work.scan_does_not_scale,
    ),
    Claim(
        16,
        "Hierarchical wheels have cascade spikes.",
        "Gleixner 2016, on the timer wheel of Linux; many since.",
        work.SPIKES,
        "A spike is a step that moves at least 1 % of all timers. Holds if both cascading designs "
        "have one and the heap has none; holds only for the one that has.",
        work.cascades_spike,
    ),
    Claim(
        19,
        "For tasks due at 200 and 840, advancing tick by tick wastes 199 and 639 empty steps, and "
        "a queue of buckets wastes none.",
        f"Articles on Kafka. {_KAFKA}: the task at 840 is filed again at 800.",
        work.STEPS,
        "Wrong if the empty steps are others; holds if the queue wakes for the two tasks alone; "
        "holds only without counting its other wake-ups otherwise.",
        work.empty_steps,
    ),
    Claim(
        22,
        "The clock of Kafka's wheel lags in idle times, since only buckets move it.",
        f"{_KAFKA}: advanceClock is called when a bucket is polled.",
        work.LAG,
        "Holds if, after each idle time, Kafka's wheel files a short timer again more often than a "
        "wheel whose clock moves with the caller's.",
        work.clock_lags,
    ),
    Claim(
        24,
        "A wheel without cascades has no latency spikes.",
        "The documentation of nexus-timer up to 1.4.3. Version 1.5.0 moves timers down again, to "
        "keep the tail of its polls flat.",
        work.SPIKES,
        "Holds if no step of the wheel moves 1 % of the timers, nor fires more than twice as many "
        "as an exact timer does at most.",
        work.no_cascade_no_spike,
    ),
    Claim(
        28,
        "A timing wheel wakes an idle processor.",
        "Objections to a wheel for the Zephyr kernel, zephyr #111746.",
        work.IDLE_HOUR,
        f"A wheel wakes it if it wakes more than {work.OFTEN} times in an hour for one timer. "
        "Holds if Netty's, Kafka's and the cascading wheel do; holds only for those that do.",
        work.wakes_idle,
    ),
)
"""All claims, by number."""

BY_NUMBER: Mapping[int, Claim] = {claim.number: claim for claim in CLAIMS}


def claims_numbered(numbers: Iterable[int]) -> list[Claim]:
    """The claims with these numbers; all without a number. Raises ClaimError."""
    wanted = [*dict.fromkeys(numbers)] or [*BY_NUMBER]
    for n in wanted:
        if n not in BY_NUMBER:
            raise ClaimError(unknown_name("claim", str(n), [str(each) for each in BY_NUMBER]))
    return [BY_NUMBER[n] for n in wanted]


def experiments_of(claims: Iterable[Claim]) -> list[Experiment]:
    """The experiments of these claims, each once."""
    return [*{claim.experiment.name: claim.experiment for claim in claims}.values()]
