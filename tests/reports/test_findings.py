"""Each sentence of the findings says what the figures say."""

import re

import pytest

from compare.bench.task import BY_CLOCK, HOLD, INSERT
from reports.findings import find
from reports.statistics import Spread
from reports.summary import Cell, Footprint, Replayed, StoredSource, Summary, contestants_of
from tests.reports.primes import LABELS, traits_of

ALL = contestants_of(map(traits_of, (*LABELS, "a-list", "simple-wheel")))
CASCADING, QUEUE, FINE, COARSE, EARLY, HEAPQ, MINE, LIST, SIMPLE = ALL


def cell(level, margin=0.01, samples=5):
    """Samples around a level, within a margin."""
    steps = [2 * n / (samples - 1) - 1 for n in range(samples)] if samples > 1 else [0.0]
    return Cell(Spread.of(level * (1 + margin * step) for step in steps), 1000)


def summary_of(cells=(), replays=(), memory=(), **others):
    """From {task: {size: {contestant: cell}}}, and {source: {contestant: (cell, row)}}."""
    cells, replays = dict(cells), dict(replays)
    who = {
        one: None
        for columns in [column for sizes in cells.values() for column in sizes.values()]
        + list(replays.values())
        + [dict(memory)]
        for one in columns
    }
    order = [one for one in ALL if one in who]
    return Summary(
        {},
        tuple(order),
        {
            task: {
                one: own
                for one in order
                if (own := {size: column[one] for size, column in sizes.items() if one in column})
            }
            for task, sizes in cells.items()
        },
        {},
        {
            source: {one: Replayed(found[0], found[1]) for one, found in column.items()}
            for source, column in replays.items()
        },
        dict(memory),
        **others,
    )


def row(**values):
    return {"lateness_min": 0, "lateness_max": 0, "fired": 31, "scheduled": 37} | values


def told(summary):
    """Headline, remark and topics, with ordinary spaces."""

    def plain(text):
        return re.sub("[\xa0\u202f]", " ", text)

    found = find(summary)
    topics = {plain(topic): list(map(plain, texts)) for topic, texts in found.topics.items()}
    return plain(found.headline), plain(found.remark), topics


def column(**levels):
    names = {"cascading": CASCADING, "queue": QUEUE, "fine": FINE, "coarse": COARSE, "heapq": HEAPQ}
    names |= {"early": EARLY, "mine": MINE}
    return {names[name]: cell(level) for name, level in levels.items()}


# ---- the headline of a run


def test_the_best_all_rounder_and_how_sure_that_is():
    headline, remark, _ = told(
        summary_of(
            {
                INSERT: {100: column(cascading=10, queue=20, coarse=2, heapq=1)},
                HOLD: {100: column(cascading=15, queue=10, coarse=2, heapq=1)},
                BY_CLOCK: {100: column(cascading=10, queue=30, coarse=2, heapq=1)},
            }
        )
    )
    assert headline == (
        "cascading-wheel is the best all-rounder: in every measurement it takes at most 1.50× "
        "(1.47× to 1.53×) the time of the fastest exact timer, or is tied with it."
    )
    assert remark == (
        "Compared: 3 operations with 100 timers pending. cascading-wheel is fastest or tied in "
        "2 of 3 measurements. Next comes delay-queue, with at most 3.00× the time of the fastest."
    )


def test_of_several_that_follow_the_next_best_all_rounder_is_named():
    _, remark, _ = told(
        summary_of(
            {
                INSERT: {100: column(cascading=10, queue=20, coarse=2) | {SIMPLE: cell(50)}},
                HOLD: {100: column(cascading=10, queue=40, coarse=2) | {SIMPLE: cell(15)}},
            }
        )
    )
    assert remark.endswith("Next comes delay-queue, with at most 4.00× the time of the fastest.")


def test_who_is_tied_with_the_fastest_takes_no_longer():
    """A time that may be less than the fastest timer's counts as the same."""
    wide = {SIMPLE: cell(105, 0.1)}
    cells = {
        INSERT: {100: {QUEUE: cell(100, 0.0), CASCADING: cell(102, 0.0), **wide}},
        HOLD: {100: {QUEUE: cell(1000, 0.0), CASCADING: cell(100, 0.0), **wide}},
    }
    headline, remark, _ = told(summary_of(cells))
    assert headline == "simple-wheel is the fastest timer, or tied for it, in every measurement."
    assert remark.endswith(
        "Next comes cascading-wheel, with at most 1.02× the time of the fastest."
    )


def test_the_worst_ratio_and_its_range_are_of_one_measurement():
    """That of the insert, the greatest: not the range of the hold, which is wider."""
    cells = {
        INSERT: {7: column(cascading=15, queue=10)},
        HOLD: {7: {CASCADING: cell(14, 0.25), QUEUE: cell(10)}},
        BY_CLOCK: {7: column(cascading=10, queue=16)},
    }
    headline, remark, _ = told(summary_of(cells))
    assert headline == (
        "cascading-wheel is the best all-rounder: in every measurement it takes at most 1.50× "
        "(1.47× to 1.53×) the time of the fastest timer, or is tied with it."
    )
    assert remark.endswith("Next comes delay-queue, with at most 1.60× the time of the fastest.")


def test_a_noisy_tie_does_not_make_others_as_good():
    """The delay queue's insert may take 0.8 to 2.4 times as long, so it is tied there; its hold
    takes four times as long for sure.
    """
    cells = {
        INSERT: {7: {CASCADING: cell(10), QUEUE: cell(16, 0.5)}},
        HOLD: {7: {CASCADING: cell(15), QUEUE: cell(40), SIMPLE: cell(10)}},
        BY_CLOCK: {7: column(cascading=10, queue=10)},
    }
    cells[INSERT][7][SIMPLE] = cells[BY_CLOCK][7][SIMPLE] = cell(90)
    headline, remark, _ = told(summary_of(cells))
    assert headline.startswith("cascading-wheel is the best all-rounder: ")
    assert remark.endswith("Next comes delay-queue, with at most 4.00× the time of the fastest.")


def test_within_the_noise_there_is_no_winner():
    """The headline's ratio holds for both."""
    noisy = {CASCADING: cell(15, 0.3), QUEUE: cell(10)}
    headline, remark, _ = told(
        summary_of({INSERT: {7: noisy}, HOLD: {7: column(cascading=10, queue=16)}})
    )
    assert headline == (
        "cascading-wheel and delay-queue are the best all-rounders: in every measurement they take "
        "at most 1.60× the time of the fastest timer, or are tied with it."
    )
    assert remark.endswith(
        "cascading-wheel is fastest or tied in 1 of 2 measurements. The samples are too noisy to "
        "separate them: at most 1.50× (1.04× to 1.97×) for cascading-wheel and 1.60× (1.57× to "
        "1.63×) for delay-queue."
    )


def test_always_fastest_or_tied():
    headline, remark, _ = told(summary_of({INSERT: {1: column(cascading=10, queue=16)}}))
    assert headline == "cascading-wheel is the fastest timer, or tied for it, in every measurement."
    assert remark == (
        "Compared: 1 operation with 1 timer pending. cascading-wheel is fastest or tied in 1 of "
        "1 measurement. Next comes delay-queue, with at most 1.60× the time of the fastest."
    )
    both = {CASCADING: cell(10, 0.1), QUEUE: cell(10.5, 0.1), COARSE: cell(3)}
    headline, remark, _ = told(summary_of({INSERT: {1: both}}))
    assert headline == (
        "cascading-wheel and delay-queue are the fastest exact timers, or tied for it, in every "
        "measurement."
    )
    assert remark.endswith("The samples are too noisy to separate them.")


def test_only_who_took_part_in_all_is_compared():
    cells = {INSERT: {9: column(cascading=10, queue=5)}, HOLD: {9: column(cascading=10)}}
    assert told(summary_of(cells))[0] == (
        "cascading-wheel is the only timer that took part in every measurement."
    )
    cells = {INSERT: {9: {COARSE: cell(3), FINE: cell(2)}}}
    assert told(summary_of(cells))[0].startswith(
        "hashed-wheel (tick=10: 1 to 10 late) is the fastest"
    )
    assert told(summary_of({}))[0] == "This run has no measurements to compare."


def test_where_no_exact_timer_was_run_others_count():
    cells = {
        INSERT: {9: {QUEUE: cell(10), COARSE: cell(20), FINE: cell(15)}},
        HOLD: {9: {COARSE: cell(20), FINE: cell(50)}},  # the delay queue was over budget
    }
    headline, _, _ = told(summary_of(cells))
    assert headline.startswith("hashed-wheel (0 to 100ms late) ")
    assert "2.00× (1.96× to 2.04×)" in headline


# ---- one's own traces


def trace(name="logs/own.trace", own=True, unit="ms", span=4000, shards=1, **made):
    details = {"operations": 2000, "span": span, "shards": shards, "details": made}
    return StoredSource(name, unit, details, own)


def replayed(most_pending=13, **levels):
    return {who: (found, row(most_pending=most_pending)) for who, found in column(**levels).items()}


def test_where_all_are_cheap_precision_decides():
    """2000 operations in 4 s are 500 per second; of 40 ns each they take 20 µs of it."""
    slow = {INSERT: {100_000: column(cascading=1, queue=9)}}
    headline, remark, topics = told(
        summary_of(slow, {trace(timeout="30s"): replayed(cascading=40, queue=20, heapq=600)})
    )
    assert headline == (
        "Choose by precision: on own.trace every timer takes at most 303 µs of each second of "
        "that traffic."
    )
    assert remark == (
        "own.trace: 2 000 operations in 4 s, 500 per second, with at most 13 timers pending."
    )
    assert topics["In all measurements"][0].startswith("cascading-wheel is the best all-rounder")
    assert topics["Precision"][-1] == (
        "own.trace: its timeout is 30 s. A tick of up to 300 ms shifts a timer by at most 1% of "
        "the timeout."
    )


def test_several_traces_and_shards():
    replays = {
        trace(): replayed(cascading=40, queue=20),
        trace("other", unit="us", span=4_000_000, shards=2, idle="5s"): replayed(1, queue=50),
    }
    headline, remark, topics = told(summary_of({}, replays))
    assert headline == (
        "Choose by precision: on own.trace and other (all 2 shards together) every timer takes at "
        "most 25.2 µs of each second of that traffic."
    )
    assert remark.endswith(
        "other: 2 000 operations in 4 s, 500 per second, with at most 1 timer pending in one shard."
    )
    assert topics["Precision"][-1].startswith("other: its timeout is 5 s. A tick of up to 50 ms")


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (
            {"cascading": 1e6, "queue": 1e7},
            "On own.trace, cascading-wheel is fastest: it takes 495 ms to 505 ms of each second.",
        ),
        (
            {"cascading": 1e6, "queue": 1.01e6},
            "On own.trace, cascading-wheel is fastest: it takes 495 ms to 505 ms of each second, "
            "tied with delay-queue.",
        ),
        (
            {"cascading": 40, "queue": 1e7, "heapq": 1e7},
            "On own.trace, delay-queue and heapq-delay-queue (Python loop) may take more than "
            "1.00 ms of each second: choose by precision among the others.",
        ),
        (  # 2 µs at 500 per second are 1 ms exactly, and the interval is wider
            {"cascading": 40, "queue": 2000},
            "On own.trace, delay-queue may take more than 1.00 ms of each second: choose by "
            "precision among the others.",
        ),
    ],
)
def test_where_not_all_are_cheap_speed_decides(levels, expected):
    headline, _, _ = told(summary_of({}, {trace(): replayed(**levels)}))
    assert headline == expected


def test_a_cost_of_exactly_the_limit_is_cheap():
    """2 µs at 500 per second."""
    exactly = {QUEUE: (cell(2000, 0.0), row(most_pending=1))}
    headline, _, _ = told(summary_of({}, {trace(): exactly}))
    assert headline == (
        "Choose by precision: on own.trace every timer takes at most 1.00 ms of each second of "
        "that traffic."
    )


def test_the_cost_of_a_second_is_an_interval_and_not_a_range():
    replays = {
        CASCADING: (cell(1e6, 0.07, samples=8), row(most_pending=1)),
        QUEUE: (cell(1e7), row(most_pending=1)),
    }
    headline, _, _ = told(summary_of({}, {trace(): replays}))
    assert headline.endswith("it takes 475 ms to 525 ms of each second.")  # of 465 to 535


def test_cheap_traces_come_first():
    replays = {
        trace("heavy"): {
            COARSE: (cell(1e6), row(most_pending=5, fired=1)),
            QUEUE: (cell(1e6), row(most_pending=17)),
        },
        trace("light"): replayed(queue=3),
    }
    headline, remark, topics = told(summary_of({}, replays))
    assert headline.startswith("Choose by precision: on light every timer")
    assert headline.endswith(
        "On heavy, delay-queue is fastest: it takes 495 ms to 505 ms of each second."
    )
    assert "at most 17 timers pending. light" in remark
    assert topics["Whole workloads"][0].startswith("heavy (31 of 37 timers fired): delay-queue at")


@pytest.mark.parametrize(
    "source", [trace(own=False), trace(unit="unit"), trace(span=0)], ids=["not own", "unit", "span"]
)
def test_without_a_rate_the_headline_is_about_all_measurements(source):
    headline, _, topics = told(summary_of({}, {source: replayed(cascading=40, queue=20)}))
    assert headline.startswith("delay-queue is the fastest timer")
    assert "In all measurements" not in topics


# ---- topics


def test_who_is_fastest_who_follows_and_who_is_less_precise():
    _, _, topics = told(
        summary_of(
            {
                INSERT: {5: column(cascading=10, queue=30, coarse=2, fine=9, early=11, heapq=90)},
                HOLD: {
                    5: {
                        QUEUE: cell(20),
                        CASCADING: cell(19.9),
                        EARLY: cell(19.7),  # within the noise
                        HEAPQ: cell(90),
                    }
                },
                BY_CLOCK: {5: {QUEUE: cell(1234), CASCADING: cell(2468)}},
            }
        )
    )
    assert topics["With 5 timers pending"] == [
        "Insert: cascading-wheel at 10.0 ns per insert; delay-queue takes 3.00× as long; faster "
        "but less precise: hashed-wheel (tick=10: 1 to 10 late) at 9.00 ns and hashed-wheel "
        "(0 to 100ms late) at 2.00 ns.",
        "Hold: cascading-wheel at 19.9 ns per cancel and insert, tied with delay-queue at 20.0 ns.",
        "Expiry, clock-driven: delay-queue at 1.23 µs per timer fired; next comes cascading-wheel "
        "with 2.00× the time.",
    ]


def test_of_those_that_follow_the_fastest_is_named():
    cells = {INSERT: {5: column(cascading=10, heapq=11) | {SIMPLE: cell(20), LIST: cell(30)}}}
    _, _, topics = told(summary_of(cells))
    assert topics["With 5 timers pending"] == [
        "Insert: cascading-wheel at 10.0 ns per insert; next comes simple-wheel with 2.00× the "
        "time."
    ]
    cells[INSERT][5][COARSE] = cells[INSERT][5][CASCADING] = cell(10, 0.0)  # as fast, not faster
    assert "less precise" not in told(summary_of(cells))[2]["With 5 timers pending"][0]
    cells[INSERT][5][QUEUE] = cell(25)
    _, _, topics = told(summary_of(cells))
    assert topics["With 5 timers pending"][0].endswith("; delay-queue takes 2.50× as long.")


def test_small_sizes_are_told_apart():
    sizes = {3: column(cascading=20, queue=10), 900: column(cascading=20, queue=30)}
    tied = {3: {CASCADING: cell(20), QUEUE: cell(20.1)}, 900: column(cascading=20, queue=30)}
    _, _, topics = told(summary_of({INSERT: sizes, HOLD: tied}))
    assert topics["With only 3 timers"] == ["Insert: delay-queue is fastest instead."]
    assert list(topics)[:2] == ["With 900 timers pending", "With only 3 timers"]


def test_workloads_say_how_many_timers_fired():
    _, _, topics = told(
        summary_of({}, {trace("keepalive", own=False): replayed(cascading=40, queue=20)})
    )
    assert topics["Whole workloads"] == [
        "keepalive (31 of 37 timers fired): delay-queue at 20.0 ns per operation; next comes "
        "cascading-wheel with 2.00× the time."
    ]


def test_precision_is_that_of_the_replays():
    late = row(lateness_min=-2, lateness_max=41)
    replays = {
        trace("a", own=False): {QUEUE: (cell(9), row()), MINE: (cell(9), late)},
        trace("b", own=False): {QUEUE: (cell(9), row()), MINE: (cell(9), late)},
        trace("c", own=False, unit="us"): {
            QUEUE: (cell(9), row()),
            MINE: (cell(9), row(lateness_min=3, lateness_max=5)),
            COARSE: (cell(9), row(lateness_min=None, lateness_max=None)),
        },
    }
    _, _, topics = told(summary_of({}, replays))
    assert topics["Precision"] == [
        "delay-queue fired every timer exactly at its deadline.",
        "hashed-wheel (0 to 100ms late): as declared; nothing fired in a replay.",
        "Mine (3 early to 7 late) fired 2ms early to 41ms late on a and b; 3us to 5us late on c.",
    ]
    _, _, topics = told(summary_of({INSERT: {1: column(queue=3)}}))
    assert topics["Precision"] == ["All of them fired every timer exactly at its deadline."]


def test_growth_is_told_where_it_is_certain():
    cells = {
        INSERT: {
            10: {QUEUE: cell(10), CASCADING: cell(10), COARSE: cell(10)},
            500: {
                QUEUE: cell(200),
                CASCADING: cell(99),  # not much
                COARSE: cell(110, 0.2),  # not certain
            },
        },
        HOLD: {
            10: {QUEUE: cell(10), MINE: cell(10), LIST: cell(10, 0.0), SIMPLE: cell(0)},
            500: {
                QUEUE: cell(300),
                MINE: cell(104),  # a little more than much
                LIST: cell(100, 0.0),  # exactly as much
                SIMPLE: cell(300),  # from too little to measure
            },
        },
    }
    _, _, topics = told(summary_of(cells))
    assert topics["Grows with N"] == [
        "delay-queue: hold takes 30.0× as long per timer at N = 500 as at N = 10.",
        "Mine (3 early to 7 late): hold takes 10.4× as long per timer at N = 500 as at N = 10.",
    ]


def test_memory_is_from_the_least_to_the_most():
    def of(at_rest, *pause):
        return Footprint(at_rest, 7.0, 11.0, Spread.of(pause) if pause else None)

    memory = {
        QUEUE: {10: of(99.0), 500: of(24.0, 1.7e6, 1.9e7, 3e6)},
        COARSE: {500: of(31.0, 1e6)},
        HEAPQ: {10: of(1.0), 500: of(240.0)},
        CASCADING: {10: of(2.0, 9e9)},  # not at the largest capacity
    }
    _, _, topics = told(summary_of(memory=memory))
    assert topics["Memory"] == [
        "24.0 B (delay-queue) to 240 B (heapq-delay-queue) per pending timer.",
        "One insert more than there is room for takes 1.00 ms (hashed-wheel) to 3.00 ms "
        "(delay-queue) at N = 500.",
    ]
    _, _, topics = told(summary_of(memory={QUEUE: {10: of(24.0)}, COARSE: {10: of(24.01)}}))
    assert topics["Memory"] == ["24.0 B per pending timer."]


def test_noise_is_told_of_samples_and_not_of_shards():
    def noisy(times, **others):
        tasks = [(size, cell(10, 0.3)) for size in range(1, times + 1)]
        quiet = [(size, cell(10, 0.2)) for size in range(times + 1, 21)]  # 8 to 12, 1.5 exactly
        cells = {INSERT: {size: {QUEUE: one} for size, one in tasks + quiet}}
        return told(summary_of(cells, **others))[2].get("Noise")

    assert noisy(1) is None  # one of twenty is not many
    assert noisy(2) == [
        "In 2 of 20 measurements the slowest sample took more than 1.5 times as long as the "
        "fastest: the machine was busy. Do not rely on small differences in time. The counted work "
        "is not affected."
    ]
    assert noisy(20, sample="shard") is None  # they differ by nature


def test_single_samples_are_not_noise():
    cells = {INSERT: {5: {QUEUE: cell(3, samples=1), CASCADING: cell(9, 0.5)}}}
    assert told(summary_of(cells))[2]["Noise"][0].startswith("In 1 of 1 measurement the slowest")
