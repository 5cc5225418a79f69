"""The table of claims: each with its source, its experiment and its criterion."""

from collections.abc import Iterable, Mapping, Sequence

from compare.trial.claims import geometry, lateness, purgatories, queues, requests, work
from compare.trial.claims.base import Claim, Experiment
from timers.errors import TimerError


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
        "than 100,000 arrivals leaves some for the next.",
        lateness.WHEEL_SIZES,
        "Holds if the lateness reaches half a rotation at each size of the wheel; holds only for "
        "bursts if it does so in the burst alone; wrong otherwise.",
        lateness.rotation_late,
        ("lateness_max",),
    ),
    Claim(
        2,
        "The precision of such a wheel is plus or minus one tick.",
        f"Articles on Netty. {_NETTY}: deadlines are rounded up.",
        lateness.WHEEL_SIZES,
        "Holds if timers fire early as well as late.",
        lateness.one_tick_either_way,
        ("lateness_min", "lateness_max"),
    ),
    Claim(
        3,
        "Kafka's hierarchical wheel is exact.",
        f"Articles on Kafka. {_KAFKA}: a timer expires with its bucket, at the bucket's start.",
        lateness.KAFKA_TICKS,
        "Holds if every timer fires at its deadline with each tick; holds only for those ticks "
        "with which it does.",
        lateness.kafka_exact,
        ("lateness_min", "lateness_max"),
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
        ("level",),
    ),
    Claim(
        7,
        "Typical deployments need two or three levels.",
        f"Articles on Kafka. {_KAFKA}: 20 slots a level, and timeouts of 30 s to 5 min are usual.",
        geometry.LEVELS,
        "Holds if timeouts of up to 5 min enter one of three levels; holds only up to the longest "
        "of the measured timeouts that does.",
        geometry.few_levels,
        ("level",),
    ),
    Claim(
        8,
        "A DelayQueue inserts and deletes in O(log n).",
        "Articles on Kafka. The JDK: poll is O(log n), remove(object) searches.",
        queues.JDK,
        f"An operation is logarithmic if its time grows by less than N^{queues.LINEAR}, halfway "
        "between constant and linear. Holds if insert, poll and remove are; holds only for poll if "
        "remove is not.",
        queues.queue_logarithmic,
        ("insert_time", "poll_time", "cancel_time", "comparisons"),
    ),
    Claim(
        9,
        "DelayQueue and java.util.Timer have no random delete.",
        "Articles on timing wheels. The JDK: DelayQueue.remove(object) is O(n); a task of Timer is "
        "cancelled in O(1) and stays until purge(), O(n); ScheduledThreadPoolExecutor with "
        "setRemoveOnCancelPolicy keeps positions.",
        queues.JDK,
        "Holds if a cancelled timer fires; holds only for a fast delete if remove and purge grow "
        f"by at least N^{queues.LINEAR}; wrong otherwise.",
        queues.no_random_delete,
        ("cancel_time", "purge_time", "fired"),
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
        13,
        "The old purgatory (a DelayQueue without deletes, and a reaper) saturates at about 40,000 "
        "requests/s with few timeouts and 25,000 with many, the new one at about 105,000.",
        "The design note of Kafka's purgatory, for one JVM and machine. Here both designs are "
        "Python, so only ratios compare: 2.6 and 4.2 there.",
        purgatories.DESIGN_TRIALS,
        "What a design can sustain lies between the highest rate that it sustained and the first "
        "that was too much. Holds if the new design sustains at least half as many times the rate "
        "of the old one as claimed, at both loads; holds only for the load at which it does; not "
        "decided if it may be either.",
        purgatories.saturates_later,
        ("sustained", "too_many", "cpu_us", "gc_us", "peak_bytes"),
    ),
    Claim(
        14,
        "The presets of the load: median 20 ms and upper quartile 60 ms with few timeouts, 200 and "
        "400 ms with many; the timeout is 200 ms.",
        "The design note of Kafka's purgatory. With log-normal latencies (sigma 1.629 and 1.028), "
        "7.87 % and 50 % time out.",
        purgatories.LOAD_PRESETS,
        "Holds if median and quartile are within 3 %, and the share that times out within one "
        "percentage point.",
        purgatories.presets_as_stated,
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
        ("most_moved",),
    ),
    Claim(
        17,
        "JMH figures for 100,000 concurrent delayed operations stand in Kafka's KIP-219.",
        "Articles on Kafka. KIP-219 is about the communication of quotas.",
        queues.KAFKA_COSTS,
        "Holds if published figures are within a factor of three of Kafka's own wheel here; not "
        "decided without published figures.",
        queues.figures_in_kip,
    ),
    Claim(
        18,
        "When a packet arrives, the connection moves to the slot that will expire in the next "
        "tick.",
        "Articles on idle connections, with a ring of sets. It would be closed at once; the right "
        "slot lies just behind the pointer.",
        work.RING_OF_SETS,
        "Holds if no connection in use is closed, and a silent one not before its timeout.",
        work.next_slot_to_expire,
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
        20,
        "The estimated total of requests in the purgatory overshoots only a little.",
        "The design note of Kafka's purgatory.",
        purgatories.ESTIMATES,
        f"A little is {100 * purgatories.LITTLE:.0f} %, before any purge. Holds if the estimate is "
        "no further off in both cases; holds only for the one in which it is not.",
        purgatories.estimate_is_close,
    ),
    Claim(
        21,
        "A low limit of the reaper avoids the memory problem of the old purgatory, at a "
        "significant price in CPU time.",
        "The design note of Kafka's purgatory.",
        purgatories.LIMIT_TRIALS,
        f"A limit is low if it divides the peak memory by at least {purgatories.MUCH:g}, against "
        "the highest, and has a price if it multiplies the CPU time by as much. Holds if each low "
        "limit has a price; holds only for those that have one; wrong if none has.",
        purgatories.low_limit_costs,
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
        23,
        "Kafka's own benchmark of its purgatory tests early completion.",
        "Its name and its options. Since its port to Java, it completes a request at now + timeout "
        "instead of now + latency.",
        purgatories.COMPLETION,
        "Holds if some requests are answered in time when they are completed as it does.",
        purgatories.tests_early_completion,
    ),
    Claim(
        24,
        "A wheel without cascades has no latency spikes.",
        "The documentation of nexus-timer up to 1.4.3 (docs.rs/nexus-timer). Version 1.5.0 moves "
        "timers down again, to keep the tail of its polls flat.",
        work.SPIKES,
        "Holds if no step of the wheel moves 1 % of the timers, nor fires more than twice as many "
        "as an exact timer does at most.",
        work.no_cascade_no_spike,
    ),
    Claim(
        25,
        "Arming costs 39 ns and cancelling 22, flat to a million timers.",
        "glommio #44 (github.com/glommio/glommio/pull/44), on a hierarchical wheel. A later "
        "comment there has 43 and 26 ns with 4,096 timers.",
        queues.FLAT_COSTS,
        "Wrong if one of them costs more than twice the claimed time with any of the numbers, in "
        "the better of two wheels; holds if, besides, neither costs more than twice as much with a "
        "million as with the fewest; holds only without that otherwise.",
        queues.flat_to_a_million,
    ),
    Claim(
        26,
        "There is no degradation with the number of timers.",
        "Lev-Libfeld 2019, Lawn (arxiv.org/abs/1906.10860), on a queue for each time to live.",
        work.CONSTANT_DELAYS,
        f"Work is the same if it grows to at most {work.SAME:g} times its least. Holds if that of "
        "lists by delay is, over the timers and over the different delays; holds only for few "
        "delays if over the timers alone.",
        work.no_degradation,
        (work.LISTS,),
    ),
    Claim(
        27,
        "A fixed set of delays needs no wheel.",
        "zeek #1133 (github.com/zeek/zeek), on a queue for each delay.",
        work.CONSTANT_DELAYS,
        f"Holds if lists by delay do at most {work.SAME:g} times the work of the better of two "
        "wheels, with each number of timers.",
        work.needs_no_wheel,
    ),
    Claim(
        28,
        "A timing wheel wakes an idle processor.",
        "Objections to a wheel for the Zephyr kernel, zephyr #111746 "
        "(github.com/zephyrproject-rtos/zephyr).",
        work.IDLE_HOUR,
        f"A wheel wakes it if it wakes more than {work.OFTEN} times in an hour for one timer. "
        "Holds if Netty's, Kafka's and the cascading wheel do; holds only for those that do.",
        work.wakes_idle,
    ),
    Claim(
        29,
        "Avoiding one timeout saves 13.5 % of a request.",
        "aiohttp #9598 (github.com/aio-libs/aiohttp/issues/9598), on the timeout around a connect "
        "that finds an open connection.",
        requests.REQUESTS,
        "Holds if the share of a timeout in an aiohttp request is within a factor of two of that; "
        "holds only for a bare stream if it is so there alone; not decided if the interval of the "
        "median of the rounds includes a bound.",
        requests.saves_a_seventh,
    ),
    Claim(
        30,
        "Which timer hardly matters to a Python program.",
        "This project.",
        requests.TIMERS,
        f"A timer matters if a schedule, a cancel and a step cost more than those of the fastest "
        f"by over {100 * requests.MATTERS:.0f} % of a request. Holds if none does; holds only "
        "without those that do, if they are a minority.",
        requests.which_hardly_matters,
    ),
)
"""All claims, by number."""

BY_NUMBER: Mapping[int, Claim] = {claim.number: claim for claim in CLAIMS}


def claims_numbered(numbers: Iterable[int]) -> list[Claim]:
    """The claims with these numbers; all without a number. Raises ClaimError."""
    wanted = [*dict.fromkeys(numbers)] or [*BY_NUMBER]
    return [BY_NUMBER[number_of(str(n))] for n in wanted]


def number_of(text: str) -> int:
    """The number of a claim. Raises ClaimError.

    >>> number_of("8")
    8
    """
    if text not in map(str, BY_NUMBER):
        raise ClaimError(f"no claim is called {text[:40]!r}; there are 1 to {len(BY_NUMBER)}")
    return int(text)


def experiments_of(claims: Iterable[Claim]) -> list[Experiment]:
    """The experiments of these claims, each once."""
    return [*{claim.experiment.name: claim.experiment for claim in claims}.values()]
