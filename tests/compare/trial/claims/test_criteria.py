"""The criteria of claims, on figures for which the verdict turns, and on some that are missing."""

import pytest

from compare.trial.claims import base
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
            (f"{who}, by delay", "refiled_each", delay, refiled * (delay > 10))
            for who in ("java-kafka", "hierarchical-wheel")
            for delay in (10, 1000)
        ),
    )


def buckets(most):
    return table(
        *(("java-kafka", "buckets", size, 80) for size in (10, 99)),
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
            for metric, value in (("wakeups", number), ("idle_wakeups", idle), ("ticks", 1000))
        )
    )


def steps(ticking, idle):
    return table(
        ("tick by tick", "idle_wakeups", None, ticking),
        ("java-kafka", "wakeups", None, 2 + idle),
        ("java-kafka", "idle_wakeups", None, idle),
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
            (who, "wakeups", None, n)
            for who, n in zip(names, (netty, kafka, cascading), strict=True)
        )
    )


TURNS = {
    1: [
        (HOLDS, late(1, lambda size: 10 * size, 5120)),
        (HOLDS, late(1, lambda size: 5 * size, 20)),
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
    10: [(HOLDS, inserts(1.9, 0)), (ONLY_WHEN, inserts(1.9, 2)), (WRONG, inserts(2.1, 0))],
    11: [(HOLDS, buckets(80)), (WRONG, buckets(81))],
    12: [(HOLDS, wakeups(100, 1)), (ONLY_WHEN, wakeups(100, 2)), (WRONG, wakeups(1000, 0))],
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
    19: [(HOLDS, steps(838, 0)), (ONLY_WHEN, steps(838, 1)), (WRONG, steps(837, 0))],
    22: [(HOLDS, lag(2)), (WRONG, lag(0))],
    24: [(HOLDS, calm(8, 0)), (WRONG, calm(9, 0)), (WRONG, calm(8, 10))],
    28: [
        (HOLDS, idle(36_000, 101, 200)),
        (ONLY_WHEN, idle(36_000, 6, 3)),
        (WRONG, idle(100, 6, 3)),
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


@pytest.mark.parametrize("number", BY_NUMBER)
def test_without_its_figures_a_claim_is_not_decided(number):
    _, rows = TURNS[number][0]
    contestant = rows[0].contestant
    lacks = [row for row in rows if row.contestant != contestant]
    verdict = BY_NUMBER[number].verdict([*lacks, missing(contestant, "not built")])
    assert (verdict.kind, verdict.text) == (NOT_DECIDED, f"{contestant}: not built")


def test_a_busy_machine_does_not_decide():
    rows = table(("a", "time", 10, [1.0, 1.6, 1.7]), ("b", "time", 10, [1.0, 1.4, 9.0]))
    assert Figures(rows).time("b", "time", 10) == 1.4
    with pytest.raises(Undecided, match=r"too busy: half of the samples of a .* 1\.6 times"):
        Figures(rows).time("a", "time", 10)


def test_a_coarse_clock_does_not_decide(monkeypatch):
    monkeypatch.setattr(base, "clock_step", lambda: 0.01)
    rows = [*timed("a", "time", 0.5, 100), *timed("b", "time", 1.5, 100)]
    with pytest.raises(Undecided, match=r"a: the clock moves in steps of 10,000,000 ns"):
        Figures(rows).value("a", "time")
    assert Figures(rows).value("b", "time") == 1.5e7
