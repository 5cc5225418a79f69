"""What the figures of a run cannot say."""

from reports.sections.parts import Section
from reports.summary import Summary


def section(summary: Summary) -> Section:
    """The limits, from those of this run to those of all."""
    cores = summary.manifest["machine"].get("cores")
    of_any = [
        f"Everything runs in one thread{f', on one of {cores} cores' if (cores or 0) > 1 else ''}. "
        "The locks and the contention of a concurrent service are not measured.",
        "The timers are compiled Python (Numba, LLVM). Kafka, Netty and Linux use the same "
        "algorithms in Java or C, with objects, garbage collection and threads to wake, so their "
        "times differ. A single call from Python costs some hundred nanoseconds more; the batch "
        "methods share that cost among many timers.",
        "Not compared: calendar queues, pairing and Fibonacci heaps, skip lists, sorted arrays and "
        "trees, the Linux wheel since 4.8 (which rounds instead of cascading), and the timers of "
        "other runtimes.",
    ]
    if summary.of_shards:
        points = [
            "Each timer replays each shard once. The spread therefore shows how the shards differ, "
            "and whatever else the machines did; on a cluster the machines differ too. Compare "
            "ratios, and the counted work (`--count`).",
            *of_any,
        ]
    else:
        points = [
            "This is one run on one machine. Times on a shared machine are noisy: compare ratios "
            "within this run, and the counted work, which is the same everywhere. All samples were "
            "taken within minutes, so their spread does not show how the machine varies from day "
            "to day.",
            *of_any,
            "Insert, cancel, hold and expiry are measured with random delays from one "
            "distribution. Other delays cost differently: equal delays make wheels re-file "
            "timers, and falling deadlines are the worst case of a heap. The workloads show some "
            "of this, and so does a log of your own.",
            "Expiry includes the calls that find nothing due. Clock-driven, every unit of time is "
            "one call however few timers there are, so the time per timer is high when there are "
            "few.",
        ]
    return Section("limits", "Limits", "What these figures cannot say", points=points)
