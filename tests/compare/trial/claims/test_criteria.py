"""The criteria of claims, on figures for which the verdict turns, and on some that are missing."""

from types import SimpleNamespace

import pytest

from compare.trial.claims import base, purgatories
from compare.trial.claims.base import (
    HOLDS,
    NOT_DECIDED,
    ONLY_WHEN,
    WRONG,
    Figures,
    Undecided,
    figures,
    missing,
    timed,
)
from compare.trial.claims.catalogue import BY_NUMBER
from compare.trial.claims.geometry import DELAYS
from compare.trial.claims.lateness import SIZES, TICKS

BOTH = ("java-netty", "hashed-wheel")


def table(*cells):
    """Rows of (contestant, metric, size, value or samples)."""
    return [
        row
        for who, metric, size, values in cells
        for repeat, value in enumerate(values if isinstance(values, list) else [values])
        for row in figures(who, size, repeat, **{metric: value})
    ]


def late(low, high, burst):
    """Lateness of wheels with a tick of 10, where `high` maps the slots to it."""
    return table(
        *((who, "lateness_min", size, low) for who in BOTH for size in SIZES),
        *((who, "lateness_max", size, high(size)) for who in BOTH for size in SIZES),
        ("java-netty, burst", "lateness_max", SIZES[-1], burst),
    )


def kafka_ticks(early):
    return table(
        *(("java-kafka", "lateness_min", tick, -early(tick)) for tick in TICKS),
        *(("java-kafka", "lateness_max", tick, 0) for tick in TICKS),
    )


def geometry(slots_least, horizon):
    return table(
        *(
            (who, metric, None, value)
            for who in ("Linux before 4.8", "Linux since 4.8", "cascading-wheel")
            for metric, value in (
                ("levels", 5),
                ("slots_least", slots_least),
                ("slots_most", 256),
                ("horizon", horizon),
            )
        )
    )


def cores(**refiled_and_late):
    """Refiled and greatest lateness of each."""
    names = {"kafka": "java-kafka", "old": "cascading-wheel", "new": "linux-wheel"}
    return table(
        *(
            (names[who], metric, None, value)
            for who, (refiled, off) in refiled_and_late.items()
            for metric, value in (
                ("refiled_each", refiled),
                ("lateness_min", 0),
                ("lateness_max", off),
            )
        )
    )


def levels(*numbers):
    return table(
        *(
            (who, "level", delay, level)
            for who in ("java-kafka", "hierarchical-wheel")
            for delay, level in zip(DELAYS, numbers, strict=True)
        )
    )


def inserts(most, refiled):
    return table(
        *(
            ("hierarchical-wheel", "insert_work", size, work)
            for size, work in ((10, 1), (99, most))
        ),
        *(
            (who, "refiled_each", delay, refiled * (delay > 10))
            for who in ("java-kafka", "hierarchical-wheel")
            for delay in (10, 1000)
        ),
    )


def buckets(most):
    return table(
        *(("hierarchical-wheel", "buckets", size, 80) for size in (10, 99)),
        *(
            (who, "most_queued", size, most)
            for who in ("java-kafka", "hierarchical-wheel")
            for size in (10, 99)
        ),
    )


def wakeups(number, idle):
    return table(
        *(
            (f"java-kafka, {name}", metric, None, value)
            for name in ("uniform", "keepalive", "cancel-heavy")
            for metric, value in (("wake_ups", number), ("idle_wake_ups", idle), ("ticks", 1000))
        )
    )


def steps(ticking, idle):
    return table(
        ("tick by tick", "idle_wake_ups", None, ticking),
        ("java-kafka", "wake_ups", None, 2 + idle),
        ("java-kafka", "idle_wake_ups", None, idle),
    )


def lag(kafka):
    return table(
        *(("java-kafka", "refiled", idle, kafka) for idle in (1000, 10**6)),
        *(("hierarchical-wheel", "refiled", idle, 0) for idle in (1000, 10**6)),
    )


def connections(scan, ring):
    """Timers looked at with 1 000 and 10 000 connections, of which one in 300 is due."""
    return table(
        *(("unordered-list", "looked_at", size, scan(size)) for size in (1000, 10_000)),
        *(
            ("simple-wheel/wheel-size=64", metric, size, value)
            for size in (1000, 10_000)
            for metric, value in (("looked_at", ring(size)), ("fired", size / 300))
        ),
    )


def moved(cascading, hierarchical, heap):
    names = ("cascading-wheel", "hierarchical-wheel", "delay-queue")
    return table(
        *(
            (who, "most_moved", 1000, most)
            for who, most in zip(names, (cascading, hierarchical, heap), strict=True)
        )
    )


def calm(fired, moved):
    return table(
        ("delay-queue", "most_fired", 1000, 4),
        ("linux-wheel", "most_fired", 1000, fired),
        ("linux-wheel", "most_moved", 1000, moved),
        ("hashed-wheel/tick=1", "looked_at", 1000, 50),
    )


def idle(netty, kafka, cascading):
    names = ("java-netty", "java-kafka", "cascading-wheel")
    return table(
        *(
            (who, "wake_ups", None, n)
            for who, n in zip(names, (netty, kafka, cascading), strict=True)
        )
    )


def jdk(insert=0.1, poll=0.2, cancel=1.0, mark=0.0, purge=1.0, fired=0):
    """Times that grow by these powers of N."""
    sizes = (1000, 4000, 16_000)
    powers = {
        ("java-delay-queue", "insert_time"): insert,
        ("java-delay-queue", "poll_time"): poll,
        ("java-delay-queue", "cancel_time"): cancel,
        ("java-timer", "cancel_time"): mark,
        ("java-timer", "purge_time"): purge,
        ("java-executor", "cancel_time"): 0.1,
        ("delay-queue", "comparisons"): 0.1,
    }
    return table(
        *((*key, size, size**power) for key, power in powers.items() for size in sizes),
        *(
            (who, "fired", size, fired)
            for who in ("java-delay-queue", "java-timer")
            for size in sizes
        ),
    )


def estimates(one_by_one, through_key):
    return table(
        ("answered one by one", "overshoot", None, one_by_one),
        ("answered through a key", "overshoot", None, through_key),
    )


def designs(low, high):
    """The rates by load: those that the new design sustained and did not, and those of the old."""
    return table(
        *(
            (f"{design} design, load {load}", metric, size, value)
            for load, rates in (("low", low), ("high", high))
            for design, (sustained, too_many) in zip(("new", "old"), rates, strict=True)
            for metric, size, value in (
                ("sustained", None, sustained),
                *([("too_many", None, too_many)] if too_many else []),
                ("cpu_us", 1000, 10),
                ("peak_bytes", 1000, 10),
            )
        ),
    )


def limits(saved, price, pending=5000):
    """The savings and the price of limits of 1 000 and 10 000."""
    return table(
        *(
            ("old design", metric, limit, value)
            for metric, values in (
                ("cpu_us", (*price, 1)),
                ("peak_bytes", (*(1 / each for each in saved), 1)),
            )
            for limit, value in zip((1000, 10_000, 10**6), values, strict=True)
        ),
        ("old design", "most_pending", 1000, pending),
    )


def presets(median, share, upper=400_000):
    return table(
        *(
            (load, metric, None, value)
            for load, values in (
                ("low", (median, 60_000, share)),
                ("high", (200_000, upper, 0.5)),
            )
            for metric, value in zip(("median", "quartile", "share_expired"), values, strict=True)
        )
    )


def kip(published):
    return table(
        *(
            (who, metric, 100_000, value)
            for who, value in (("java-kafka", 100.0), ("KIP-219", published))
            for metric in ("insert_time", "cancel_time")
        )
    )


def ring(early, silence):
    return table(
        *(
            (name, metric, None, value)
            for name, values in (("as drawn", (early, silence)), ("a full turn", (0, 30)))
            for metric, value in zip(("closed_early", "silence"), values, strict=True)
        )
    )


def completed(share):
    latency, timeout = "answered after the latency", "answered after the timeout"
    return table((latency, "share_expired", None, 0.08), (timeout, "share_expired", None, share))


def wheels(at_1e5, at_1e6, at_1e4=10.0, cancel=0.5):
    """Costs of an insert by the number of timers; a cancel costs a multiple of it."""
    costs = {10_000: at_1e4, 100_000: at_1e5, 1_000_000: at_1e6}
    return table(
        *(
            (who, metric, size, [cost * factor] * 3)
            for who in ("cpp-wheel", "cascading-wheel")
            for metric, factor in (("insert_time", 1.0), ("cancel_time", cancel))
            for size, cost in costs.items()
        )
    )


def lists(timers, delays, wheel):
    """Work of lists with 1 000 and 10 000 timers, with 3 and 300 delays, and of the wheels."""
    return table(
        ("duration-lists", "work_each", 1000, timers[0]),
        ("duration-lists", "work_each", 10_000, timers[1]),
        ("duration-lists", "work_by_delays", 3, delays[0]),
        ("duration-lists", "work_by_delays", 300, delays[1]),
        *(
            (who, "work_each", n, wheel)
            for who in ("cascading-wheel", "hierarchical-wheel")
            for n in (1000, 10_000)
        ),
    )


def saved(aiohttp, stream):
    """The shares of a timeout by round; the machine is up to four times as slow in some."""
    slow = [1, 4, 2, 3] * (len(aiohttp) // 4)
    return table(
        *(
            (who, metric, None, [100 * each * factor for each, factor in pairs])
            for who, shares in (("aiohttp", aiohttp), ("asyncio stream", stream))
            for metric, pairs in (
                ("with_timeout", [(each, 1) for each in slow]),
                ("without", [(each, 1 - share) for each, share in zip(slow, shares, strict=True)]),
            )
        )
    )


def timers(*pairs):
    return table(
        ("asyncio stream", "without", None, 100.0),
        *(
            (f"timer-{k}", metric, 10_000, value)
            for k, pair in enumerate(pairs)
            for metric, value in (("pair_time", pair), ("step_time", 0.0))
        ),
    )


TURNS = {
    1: [
        (HOLDS, late(1, lambda size: 10 * size, 5120)),
        (HOLDS, late(1, lambda size: 5 * size, 20)),
        (WRONG, late(1, lambda size: 4 * size, 20)),
        (ONLY_WHEN, late(1, lambda size: 10, 2560)),
        (WRONG, late(1, lambda size: 10, 2550)),
    ],
    2: [
        (HOLDS, late(-1, lambda size: 10, 20)),
        (WRONG, late(0, lambda size: 10, 20)),
        (WRONG, late(-9, lambda size: 0, 20)),
    ],
    3: [
        (HOLDS, kafka_ticks(lambda tick: 0)),
        (ONLY_WHEN, kafka_ticks(lambda tick: tick - 1)),
        (WRONG, kafka_ticks(lambda tick: 1)),
    ],
    4: [
        (HOLDS, geometry(256, 340_000_000)),
        (WRONG, geometry(64, 340_000_000)),
        (WRONG, geometry(256, 2**40)),
    ],
    5: [
        (HOLDS, cores(kafka=(2.7, 0), old=(1, 0), new=(1, 0))),
        (ONLY_WHEN, cores(kafka=(2.7, 0), old=(1, 0), new=(0, 900))),
        (WRONG, cores(kafka=(2.7, 0), old=(0, 0), new=(0, 900))),
    ],
    6: [(HOLDS, levels(2, 3, 3, 3, 4)), (WRONG, levels(2, 3, 3, 4, 5))],
    7: [
        (HOLDS, levels(1, 2, 2, 3, 3)),
        (ONLY_WHEN, levels(2, 3, 3, 4, 5)),
        (WRONG, levels(4, 4, 4, 4, 5)),
    ],
    8: [(HOLDS, jdk(cancel=0.49)), (ONLY_WHEN, jdk(cancel=0.51)), (WRONG, jdk(poll=0.51))],
    9: [(HOLDS, jdk(fired=1)), (ONLY_WHEN, jdk(cancel=0.51)), (WRONG, jdk(cancel=0.49))],
    10: [(HOLDS, inserts(1.9, 0)), (ONLY_WHEN, inserts(1.9, 2)), (WRONG, inserts(2.1, 0))],
    11: [(HOLDS, buckets(80)), (WRONG, buckets(81))],
    12: [(HOLDS, wakeups(100, 1)), (ONLY_WHEN, wakeups(100, 2)), (WRONG, wakeups(1000, 0))],
    13: [
        (HOLDS, designs([(2626, 5000), (1000, 2000)], [(4200, None), (1000, 2000)])),
        (ONLY_WHEN, designs([(1000, 1312), (1000, 2000)], [(4200, 5000), (1000, 2000)])),
        (ONLY_WHEN, designs([(2626, 5000), (1000, 2000)], [(1000, 2099), (1000, 2000)])),
        (WRONG, designs([(1000, 1312), (1000, 2000)], [(1000, 2099), (1000, None)])),
        (NOT_DECIDED, designs([(2624, 5000), (1000, 2000)], [(4200, 5000), (1000, 2000)])),
        (NOT_DECIDED, designs([(4000, None), (4000, None)], [(4200, None), (1000, 2000)])),
        (NOT_DECIDED, designs([(4000, None), (0, 1000)], [(4200, None), (1000, 2000)])),
    ],
    14: [
        (HOLDS, presets(20_500, 0.08)),
        (WRONG, presets(20_700, 0.08)),
        (WRONG, presets(20_500, 0.09)),
        (WRONG, presets(20_500, 0.08, upper=415_000)),
    ],
    15: [
        (HOLDS, connections(lambda size: size, lambda size: size / 300)),
        (WRONG, connections(lambda size: 1000, lambda size: size / 300)),
        (WRONG, connections(lambda size: size, lambda size: size / 10)),
    ],
    16: [
        (HOLDS, moved(300, 200, 0)),
        (ONLY_WHEN, moved(300, 9, 0)),
        (WRONG, moved(9, 9, 0)),
        (WRONG, moved(300, 200, 50)),
    ],
    17: [(HOLDS, kip(299.0)), (WRONG, kip(301.0)), (WRONG, kip(33.0))],
    18: [(HOLDS, ring(0, 30)), (WRONG, ring(1, 30)), (WRONG, ring(0, 29))],
    19: [(HOLDS, steps(838, 0)), (ONLY_WHEN, steps(838, 1)), (WRONG, steps(837, 0))],
    20: [
        (HOLDS, estimates(0.0, 0.1)),
        (ONLY_WHEN, estimates(0.0, 0.11)),
        (WRONG, estimates(0.11, 0.11)),
    ],
    21: [
        (HOLDS, limits((2, 2), (2, 2))),
        (ONLY_WHEN, limits((2, 2), (2, 1.9))),
        (HOLDS, limits((2, 1.9), (2, 1.9))),
        (WRONG, limits((2, 2), (1.9, 1.9))),
        (WRONG, limits((1.9, 1.9), (2, 2))),
    ],
    22: [(HOLDS, lag(2)), (WRONG, lag(0))],
    23: [(HOLDS, completed(0.99)), (WRONG, completed(1.0))],
    24: [(HOLDS, calm(8, 0)), (WRONG, calm(9, 0)), (WRONG, calm(8, 10))],
    25: [
        (HOLDS, wheels(12.0, 20.0)),
        (ONLY_WHEN, wheels(12.0, 20.1)),
        (ONLY_WHEN, wheels(12.0, 78.0)),
        (WRONG, wheels(12.0, 78.1)),
        (WRONG, wheels(45.0, 45.0, at_1e4=45.0, cancel=1.0)),
    ],
    26: [
        (HOLDS, lists((2, 3), (2, 3), 5)),
        (ONLY_WHEN, lists((2, 3), (2, 3.1), 5)),
        (WRONG, lists((2, 3.1), (2, 2), 5)),
    ],
    27: [(HOLDS, lists((2, 3), (2, 3), 2)), (WRONG, lists((2, 3), (2, 3), 1.9))],
    28: [
        (HOLDS, idle(36_000, 101, 200)),
        (ONLY_WHEN, idle(36_000, 6, 3)),
        (WRONG, idle(100, 6, 3)),
    ],
    29: [
        (HOLDS, saved([0.01] * 4 + [0.068, 0.26] * 4 + [0.26] + [0.3] * 3, [0.01] * 16)),
        (ONLY_WHEN, saved([0.067] * 4, [0.068] * 4)),
        (WRONG, saved([0.067] * 4, [0.067] * 4)),
        (WRONG, saved([0.28] * 4, [0.28] * 4)),
        (NOT_DECIDED, saved([0.01] * 5 + [0.068, 0.26] * 4 + [0.3] * 3, [0.01] * 16)),
    ],
    30: [
        (HOLDS, timers(1000, 6000)),
        (ONLY_WHEN, timers(1000, 2000, 6001)),
        (WRONG, timers(1000, 6001)),
    ],
}


def test_every_claim_turns():
    assert {*TURNS} == {*BY_NUMBER}
    assert all(len({kind for kind, _ in turns}) > 1 for turns in TURNS.values())


@pytest.mark.parametrize(
    ("number", "kind", "rows"),
    [(number, *turn) for number, turns in TURNS.items() for turn in turns],
)
def test_a_verdict_follows_from_the_figures(number, kind, rows):
    verdict = BY_NUMBER[number].verdict(rows)
    assert (verdict.kind, bool(verdict.when)) == (kind, kind == ONLY_WHEN), verdict
    assert verdict.text.endswith(".")


def test_a_low_limit_is_one_below_the_pending_requests():
    below, above = (
        BY_NUMBER[21].verdict(limits((2, 2), (2, 1.9), pending)).when for pending in (5000, 500)
    )
    assert below == "the limit is below the number of pending requests"
    assert above == "the limit is at most 1,000"


@pytest.mark.parametrize("number", BY_NUMBER)
def test_without_its_figures_a_claim_is_not_decided(number):
    _, rows = TURNS[number][0]
    needed = []
    for name in dict.fromkeys(row.contestant for row in rows):
        others = [row for row in rows if row.contestant != name]
        verdict = BY_NUMBER[number].verdict([*others, missing(name, "not built")])
        if verdict.kind == NOT_DECIDED:
            assert verdict.text.startswith(f"{name}: not built")
            needed.append(name)
    assert needed
    assert BY_NUMBER[number].verdict([]).kind == NOT_DECIDED


def test_a_busy_machine_does_not_decide():
    rows = table(("a", "time", 10, [1.7, 1.0, 1.6]), ("b", "time", 10, [1.4, 1.0, 9.0]))
    assert Figures(rows).time("b", "time", 10) == 1.0
    with pytest.raises(Undecided, match=r"too busy: all other samples of a .* 1\.6 times"):
        Figures(rows).time("a", "time", 10)


@pytest.mark.parametrize(("processors", "decided"), [(0.6, False), (0.8, True)])
def test_a_design_that_had_no_processor_does_not_decide(monkeypatch, processors, decided):
    """The old design keeps up with 10 000 requests/s, and with 20 000 it does not."""
    trials = [
        {
            "kind": "rate",
            "load": load,
            "design": design,
            "rate": rate,
            "failed": None,
            "gc_us": 1.0,
            "peak_bytes": 1.0,
            "late_p99_ms": 1.0,
            "achieved": achieved,
            "cpu_us": 1e6 * processors / achieved,
        }
        for load in ("low", "high")
        for design, rates in (
            ("purging", {10_000: 10_000, 50_000: 50_000}),
            ("scanning", {10_000: 10_000, 20_000: 15_000}),
        )
        for rate, achieved in rates.items()
    ]
    monkeypatch.setattr(purgatories, "run_experiment", lambda options: None)
    monkeypatch.setattr(purgatories, "read_run", lambda path: SimpleNamespace(rows=None))
    monkeypatch.setattr(purgatories, "trials_of", lambda rows: trials)
    verdict = BY_NUMBER[13].verdict(BY_NUMBER[13].experiment.rows(True))
    if decided:
        assert verdict.kind == HOLDS and "at least 2.5" in verdict.text
    else:
        assert verdict.kind == NOT_DECIDED
        assert verdict.text.startswith("At load low the rates do not tell: the new design")


def test_a_coarse_clock_does_not_decide(monkeypatch):
    monkeypatch.setattr(base, "clock_step", lambda: 0.01)
    rows = [*timed("a", "time", 0.5, 100), *timed("b", "time", 1.5, 100)]
    with pytest.raises(Undecided, match=r"a: the clock moves in steps of 10,000,000 ns"):
        Figures(rows).value("a", "time")
    assert Figures(rows).value("b", "time") == 1.5e7
