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
        lateness.rotation_late,
        ("lateness_max",),
    ),
    Claim(
        2,
        "The precision of such a wheel is plus or minus one tick.",
        f"Articles on Netty. {_NETTY}: deadlines are rounded up.",
        lateness.WHEEL_SIZES,
        lateness.one_tick_either_way,
        ("lateness_min", "lateness_max"),
    ),
    Claim(
        3,
        "Kafka's hierarchical wheel is exact.",
        f"Articles on Kafka. {_KAFKA}: a timer expires with its bucket, at the bucket's start.",
        lateness.KAFKA_TICKS,
        lateness.kafka_exact,
        ("lateness_min", "lateness_max"),
    ),
    Claim(
        4,
        "Linux uses 5 levels of 256 buckets, which cover about 340 million ms (4 days).",
        f"Articles on timing wheels. Primary source: {_LINUX}.",
        geometry.GEOMETRIES,
        geometry.linux_geometry,
    ),
    Claim(
        5,
        "The timers of Linux and Kafka share one core design.",
        f"Articles on timing wheels. Primary sources: {_LINUX}; {_KAFKA}.",
        work.CORES,
        work.one_core,
    ),
    Claim(
        6,
        "A timeout of 30 s enters level 3 of a wheel of 20 slots with a tick of 1 ms.",
        f"Articles on Kafka. {_KAFKA}: level 3 covers 20^3 ms, which is 8 s.",
        geometry.LEVELS,
        geometry.enters_level_3,
        ("level",),
    ),
    Claim(
        7,
        "Typical deployments need two or three levels.",
        f"Articles on Kafka. {_KAFKA}: 20 slots a level, and timeouts of 30 s to 5 min are usual.",
        geometry.LEVELS,
        geometry.few_levels,
        ("level",),
    ),
    Claim(
        8,
        "A DelayQueue inserts and deletes in O(log n).",
        "Articles on Kafka. The JDK: poll is O(log n), remove(object) searches.",
        queues.JDK,
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
        queues.no_random_delete,
        ("cancel_time", "purge_time", "fired"),
    ),
    Claim(
        10,
        "The insert of a timing wheel is O(1).",
        "Varghese and Lauck 1987, as it is usually quoted.",
        work.INSERTS,
        work.insert_constant,
    ),
    Claim(
        11,
        "The items in the DelayQueue of buckets are capped by the number of buckets.",
        f"The design note of Kafka's purgatory. {_KAFKA}: a bucket is queued once at a time.",
        work.BUCKETS,
        work.buckets_capped,
    ),
    Claim(
        12,
        "The DelayQueue of buckets avoids empty ticks.",
        f"The design note of Kafka's purgatory. {_KAFKA}: buckets expire that were emptied by "
        "cancels, or whose timers only move down.",
        work.WAKEUPS,
        work.no_empty_ticks,
    ),
    Claim(
        13,
        "The old purgatory (a DelayQueue without deletes, and a reaper) saturates at about 40,000 "
        "requests/s with few timeouts and 25,000 with many, the new one at about 105,000.",
        "The design note of Kafka's purgatory, for one JVM and machine. Here both designs are "
        "Python, so only ratios compare: 2.6 and 4.2 there.",
        purgatories.DESIGN_TRIALS,
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
        purgatories.presets_as_stated,
    ),
    Claim(
        15,
        "Scanning all connections each second does not scale, and a ring does.",
        "Articles on idle connections.",
        work.CONNECTIONS,
        work.scan_does_not_scale,
    ),
    Claim(
        16,
        "Hierarchical wheels have cascade spikes.",
        "Gleixner 2016, on the timer wheel of Linux; many since.",
        work.SPIKES,
        work.cascades_spike,
        ("most_moved",),
    ),
    Claim(
        17,
        "JMH figures for 100,000 concurrent delayed operations stand in Kafka's KIP-219.",
        "Articles on Kafka. KIP-219 is about the communication of quotas.",
        queues.KAFKA_COSTS,
        queues.figures_in_kip,
    ),
    Claim(
        18,
        "When a packet arrives, the connection moves to the slot that will expire in the next "
        "tick.",
        "Articles on idle connections, with a ring of sets. It would be closed at once; the right "
        "slot lies just behind the pointer.",
        work.RING_OF_SETS,
        work.next_slot_to_expire,
    ),
    Claim(
        19,
        "For tasks due at 200 and 840, advancing tick by tick wastes 199 and 639 empty steps, and "
        "a queue of buckets wastes none.",
        f"Articles on Kafka. {_KAFKA}: the task at 840 is filed again at 800.",
        work.STEPS,
        work.empty_steps,
    ),
    Claim(
        20,
        "The estimated total of requests in the purgatory overshoots only a little.",
        "The design note of Kafka's purgatory.",
        purgatories.ESTIMATES,
        purgatories.estimate_is_close,
    ),
    Claim(
        21,
        "A low limit of the reaper avoids the memory problem of the old purgatory, at a "
        "significant price in CPU time.",
        "The design note of Kafka's purgatory.",
        purgatories.LIMIT_TRIALS,
        purgatories.low_limit_costs,
    ),
    Claim(
        22,
        "The clock of Kafka's wheel lags in idle times, since only buckets move it.",
        f"{_KAFKA}: advanceClock is called when a bucket is polled.",
        work.LAG,
        work.clock_lags,
    ),
    Claim(
        23,
        "Kafka's own benchmark of its purgatory tests early completion.",
        "Its name and its options. Since its port to Java, it completes a request at now + timeout "
        "instead of now + latency.",
        purgatories.COMPLETION,
        purgatories.tests_early_completion,
    ),
    Claim(
        24,
        "A wheel without cascades has no latency spikes.",
        "The documentation of nexus-timer up to 1.4.3 (docs.rs/nexus-timer). Version 1.5.0 moves "
        "timers down again, to keep the tail of its polls flat.",
        work.SPIKES,
        work.no_cascade_no_spike,
    ),
    Claim(
        25,
        "Arming costs 39 ns and cancelling 22, flat to a million timers.",
        "glommio #44 (github.com/glommio/glommio/pull/44), on a hierarchical wheel. A later "
        "comment there has 43 and 26 ns with 4,096 timers.",
        queues.FLAT_COSTS,
        queues.flat_to_a_million,
    ),
    Claim(
        26,
        "There is no degradation with the number of timers.",
        "Lev-Libfeld 2019, Lawn (arxiv.org/abs/1906.10860), on a queue for each time to live.",
        work.CONSTANT_DELAYS,
        work.no_degradation,
        (work.LISTS,),
    ),
    Claim(
        27,
        "A fixed set of delays needs no wheel.",
        "zeek #1133 (github.com/zeek/zeek), on a queue for each delay.",
        work.CONSTANT_DELAYS,
        work.needs_no_wheel,
    ),
    Claim(
        28,
        "A timing wheel wakes an idle processor.",
        "Objections to a wheel for the Zephyr kernel, zephyr #111746 "
        "(github.com/zephyrproject-rtos/zephyr).",
        work.IDLE_HOUR,
        work.wakes_idle,
    ),
    Claim(
        29,
        "Avoiding one timeout saves 13.5 % of a request.",
        "aiohttp #9598 (github.com/aio-libs/aiohttp/issues/9598), on the timeout around a connect "
        "that finds an open connection.",
        requests.REQUESTS,
        requests.saves_a_seventh,
    ),
    Claim(
        30,
        "Which timer hardly matters to a Python program.",
        "This project.",
        requests.TIMERS,
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
