import math
import re
from statistics import NormalDist

import numpy as np
import pytest

from compare.traffic.tapes.tape import (
    ARM,
    CANCEL,
    START,
    Tape,
    count_ops,
    id_space_of,
    joined,
    validate,
)
from compare.traffic.workloads import generator, variates
from compare.traffic.workloads.catalogue import WORKLOADS, Plan, WorkloadError, make
from compare.traffic.workloads.stream import BLOCK, Stream
from compare.traffic.workloads.variates import exp, log, normal
from tests.compare.small_tapes import digest
from tests.words import one_line

SEED = 42
MEMBERS = BLOCK + 904  # one block and a part of another

# Rows, not files: what is here must be the same on every machine, with every version of every
# package.
DIGESTS = {
    "uniform": ("9096bd9185cd9372", "495c5153c202cc7f"),
    "exponential": ("74da49b424129289", "968ee069ed3c3d01"),
    "constant": ("8a5e866b93a5c16a", "5fb4eacf961674e9"),
    "lognormal-low": ("d57288fcff336658", "ee88be6c9a6a9a24"),
    "lognormal-high": ("45a2391cf2092f10", "1b9369ce945bdf79"),
    "keepalive": ("051b76716e89b1af", "2a5465dca9f463ad"),
    "cancel-heavy": ("a5da15624187c0d8", "b0a8b4dee6980397"),
    "hold": ("e38a6db4ae2d826c", "7fd21b09bddfa852"),
    "markov": ("9ec191eb890c47f2", "6eb0953618a47e4b"),
    "up-down": ("94797e813e427364", "bfd0e484bdae92af"),
    "server": ("c7fb24592536d504", "40cf88f97bf19ff1"),
    "cache": ("17e02cf41c399573", "236947b40b4693ec"),
    "retries": ("4803a944599d8898", "773948fcb80cca78"),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_rows_are_the_same_everywhere(name):
    timers = digest(make(name, timers=MEMBERS, seed=SEED).tape)[:16]
    operations = digest(make(name, operations=3000, seed=SEED).tape)[:16]
    assert (timers, operations) == DIGESTS[name]


def same(tape: Tape, other: Tape) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(tape, other, strict=True))


@pytest.mark.parametrize("name", WORKLOADS)
def test_timers_and_operations_are_of_one_stream(name):
    """However many operations are generated, they are the first ones of the timers."""
    whole = make(name, timers=2 * BLOCK, seed=SEED).tape
    for operations in (800, 6000):
        tape = make(name, operations=operations, seed=SEED).tape
        assert same(tape, Tape(*(column[:operations] for column in whole)))


@pytest.mark.parametrize("name", WORKLOADS)
def test_seeds_and_shards_differ_and_repeat(name):
    tapes = [
        make(name, timers=50, seed=seed, shard=shard).tape for seed in (0, 1) for shard in (0, 1)
    ]
    assert len({digest(tape) for tape in tapes}) == 4
    assert same(tapes[0], make(name, timers=50).tape)


# ---- pieces


def as_events(name, blocks, parameters=None):
    """What a workload's members do in the first blocks: (time, member, step, op, deadline), and
    when each is over.
    """
    plan = Plan.of(name, timers=1, seed=SEED, parameters=parameters)
    rows, ends = [], []
    for block in range(blocks):
        drawn = plan.block(0, block)
        first = block * BLOCK
        for member, start in enumerate(
            zip(drawn.starts.tolist(), drawn.deadlines.tolist(), strict=True)
        ):
            rows.append((start[0], first + member, 0, START, start[1]))
        ends += drawn.ends.tolist()
        each = (np.broadcast_to(part, drawn.times.size) for part in (drawn.ops, drawn.delays))
        columns = (drawn.later, drawn.times, *each)
        for step, (member, time, op, delay) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True), 1
        ):
            assert drawn.starts[member] <= time <= drawn.ends[member]
            deadline = 0 if op == CANCEL else time + delay
            rows.append((time, first + member, step, op, deadline))
    return sorted(rows), ends


def plainly_merged(rows, ends):
    """Rows with ids, as the rule says it: the id that was freed first, once its member's end has
    passed.
    """
    leaving = sorted((end, member) for member, end in enumerate(ends))
    ids, free, left, merged, id_space = {}, [], 0, [], 0
    for time, member, step, op, deadline in rows:
        while left < len(leaving) and leaving[left][0] < time:
            free.append(ids[leaving[left][1]])
            left += 1
        if step == 0 and free:
            ids[member] = free.pop(0)
        elif step == 0:
            ids[member], id_space = id_space, id_space + 1
        merged.append((time, op, ids[member], deadline))
    return merged, id_space


@pytest.mark.parametrize("name", WORKLOADS)
def test_pieces_are_what_sorting_all_at_once_gives(name, monkeypatch):
    monkeypatch.setattr("compare.traffic.workloads.generator.PIECE", 1000)
    rows, ends = as_events(name, 3)
    expected, id_space = plainly_merged(rows, ends)
    for batch in (1, 1 << 17):  # with 1, nearly every block is put in order by itself
        monkeypatch.setattr("compare.traffic.workloads.generator.BATCH", batch)
        pieces = list(Plan.of(name, timers=3 * BLOCK, seed=SEED).pieces())
        assert all(0 < piece.time.size <= 1000 for piece in pieces)
        tape = joined(pieces)
        assert list(zip(*(column.tolist() for column in tape), strict=True)) == expected
        assert id_space_of(tape) == id_space
        validate(tape, id_space)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lognormal-low", {"rate": 3 * 10**9, "timeout": 3, "median": 1, "quartile": 2}),
        ("keepalive", {"idle": 5, "mean": 2}),
    ],
)
def test_operations_of_the_same_moment_take_turns_across_blocks(name, settings, monkeypatch):
    """At the first rate a block's span is 1.4 units: most blocks begin in the middle of a unit.

    Many connections of the second workload are touched in the moment in which they are opened.
    """
    expected, id_space = plainly_merged(*as_events(name, 6, settings))
    for batch in (1, 1 << 17):
        monkeypatch.setattr("compare.traffic.workloads.generator.BATCH", batch)
        generated = make(name, timers=6 * BLOCK, seed=SEED, parameters=settings)
        assert list(zip(*(column.tolist() for column in generated.tape), strict=True)) == expected
        assert generated.id_space == id_space


@pytest.mark.parametrize("name", ["lognormal-low", "keepalive"])
def test_what_is_held_does_not_grow_with_the_tape(name):
    def most_held(operations):
        held = []
        in_order = generator._in_order  # private: nothing public tells what is held

        def watched(moments, last):
            held.append(len(moments))
            return in_order(moments, last)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(generator, "_in_order", watched)
            for _ in Plan.of(name, operations=operations).pieces():
                pass
        return max(held)

    assert most_held(6_000_000) < 1.2 * most_held(2_000_000)


@pytest.mark.parametrize("longest", [50, 2**40, 2**62])
@pytest.mark.parametrize("size", [1, 2, 5000])
def test_moments_are_sorted_up_to_the_last_in_a_stable_order(longest, size):
    moments = np.random.default_rng(size).integers(7, longest, size)
    for last in (6, int(np.median(moments)), generator.NEVER):
        expected = sorted((m, k) for k, m in enumerate(moments.tolist()) if m <= last)
        # Private: no workload has moments as far apart, and ties among them.
        actual = generator._in_order(moments, last)
        assert list(zip(*(column.tolist() for column in actual), strict=True)) == expected


@pytest.mark.parametrize("counted", ["timers", "operations"])
def test_a_plan_divides_what_was_asked_for(counted):
    plan = Plan.of("constant", **{counted: 20}, shards=6, seed=3)
    assert [plan.share(shard) for shard in range(6)] == [4, 4, 3, 3, 3, 3]
    assert plan.source == {
        "workload": "constant",
        "parameters": {"rate": 1000, "delay": 30000},
        "seed": 3,
        "shards": 6,
        counted: 20,
    }


# ---- statistics: five standard errors, so that a seed that fails says that the distribution is
# wrong

SIGMAS = 5


def test_arrivals_are_poisson():
    generated = make("constant", timers=BLOCK * 4, seed=SEED, parameters={"rate": 1000})
    starts = generated.tape.time
    assert starts[-1] == pytest.approx(BLOCK * 4, rel=0.01)
    gaps = np.diff(starts)
    # Rounded down to whole units, which leaves the mean of differences as it is.
    assert gaps.mean() == pytest.approx(1.0, rel=0.01)
    in_tens = np.bincount(starts // 10)[:-1]
    dispersion = in_tens.var() / in_tens.mean()
    assert dispersion == pytest.approx(1.0, abs=SIGMAS * math.sqrt(2 / in_tens.size))


@pytest.mark.parametrize(
    ("name", "share"), [("lognormal-low", 0.0787), ("lognormal-high", 0.5), ("cancel-heavy", 0.01)]
)
def test_the_share_that_times_out(name, share):
    timers = 50_000
    counts = count_ops(make(name, timers=timers, seed=SEED).tape)
    timed_out = (counts["starts"] - counts["cancels"]) / counts["starts"]
    assert timed_out == pytest.approx(share, abs=SIGMAS * math.sqrt(share * (1 - share) / timers))


def test_an_answer_that_is_not_lost_comes_in_time_however_short_the_timeout_is():
    for lost, cancels in ((0, 1000), (1000, 0)):
        parameters = {"timeout": 2, "lost": lost}
        counts = count_ops(make("cancel-heavy", timers=1000, parameters=parameters).tape)
        assert counts["cancels"] == cancels


@pytest.mark.parametrize(
    ("name", "median", "quartile"), [("lognormal-low", 20, 60), ("lognormal-high", 200, 400)]
)
def test_latencies_have_the_median_and_quartile_asked_for(name, median, quartile):
    timers = 20_000
    # A timeout that nothing reaches shows the latencies as they are.
    tape = make(name, timers=timers, seed=SEED, parameters={"timeout": 10**14}).tape
    started = np.zeros(tape.id.max() + 1)
    latencies = []
    for time, op, i in zip(tape.time.tolist(), tape.op.tolist(), tape.id.tolist(), strict=True):
        if op == START:
            started[i] = time
        else:
            latencies.append(time - started[i])
    assert len(latencies) == timers
    for share, expected in ((0.5, median), (0.75, quartile)):
        below = np.mean(np.array(latencies) < expected * 1000)
        assert below == pytest.approx(share, abs=SIGMAS * math.sqrt(share * (1 - share) / timers))


@pytest.mark.parametrize(
    ("name", "low", "mean", "deviation"),
    [
        ("uniform", 1, 30_000.5, 60_000 / math.sqrt(12)),
        ("exponential", 1, 30_000.5, 30_000),
        ("constant", 30_000, 30_000, 0),
    ],
)
def test_delays_are_distributed_as_the_name_says(name, low, mean, deviation):
    tape = make(name, timers=20_000, seed=SEED).tape
    delays = tape.deadline - tape.time
    assert delays.min() >= low
    assert delays.mean() == pytest.approx(mean, abs=SIGMAS * deviation / math.sqrt(20_000))
    assert delays.std() == pytest.approx(deviation, rel=0.05)


def test_connections_are_touched_until_they_fall_silent():
    generated = make("keepalive", timers=3000, seed=SEED)
    tape, idle, mean = generated.tape, 30_000, 10_000
    assert (tape.deadline == tape.time + idle).all()
    counts = count_ops(tape)
    silent = math.exp(
        -idle / mean
    )  # the share of gaps that end a connection: its touches are geometric
    expected, error = (1 - silent) / silent, math.sqrt(1 - silent) / silent / math.sqrt(3000)
    assert counts["arms"] / counts["starts"] == pytest.approx(expected, abs=SIGMAS * error)
    last = np.zeros(generated.id_space)
    for time, op, i in zip(tape.time.tolist(), tape.op.tolist(), tape.id.tolist(), strict=True):
        assert op != ARM or time - last[i] < idle
        last[i] = time


# ---- the mathematics that differs between machines elsewhere


def test_log_is_exact_to_the_last_bits():
    x = np.concatenate(
        [Stream(1, 0, 0).uniform(0, 2000), 2.0 ** np.arange(-60, 60), [1.0, 1e300, 5e-300]]
    )
    exact = np.array([math.log(value) for value in x.tolist()])
    assert np.abs(log(x) - exact).max() <= 4e-16 * np.abs(exact).max()
    assert (np.abs(log(x) - exact) <= 1e-15 * np.abs(exact) + 1e-16).all()


def test_exp_is_exact_to_the_last_bits():
    x = (Stream(1, 0, 0).uniform(0, 2000) - 0.5) * 1300
    assert np.abs(exp(x) / np.array([math.exp(value) for value in x.tolist()]) - 1.0).max() <= 1e-15


def test_compiled_mathematics_is_that_of_plain_python():
    """Not one bit differs: the compiler neither reorders nor fuses."""
    u = np.concatenate(
        [Stream(2, 0, 0).uniform(0, 3000), 2.0 ** -np.arange(1, 53), 1 - 2.0 ** -np.arange(1, 53)]
    )
    x = (u - 0.5) * 1300
    actual = log(u), exp(x), normal(u)
    with pytest.MonkeyPatch.context() as patch:
        # Private: the functions that the public ones call, without the compiler.
        for name in ("_log", "_ratios", "_horner"):
            function = getattr(variates, name)
            patch.setattr(variates, name, getattr(function, "py_func", function))
        for compiled, plain in zip(actual, (log(u), exp(x), normal(u)), strict=True):
            assert np.array_equal(compiled, plain)


def test_normal_is_exact_far_into_both_tails():
    u = np.concatenate(
        [Stream(1, 0, 0).uniform(0, 2000), 2.0 ** -np.arange(1, 53), 1 - 2.0 ** -np.arange(1, 53)]
    )
    exact = np.array([NormalDist().inv_cdf(value) for value in u.tolist()])
    assert np.abs(normal(u) - exact).max() <= 5e-15


def test_uniform_never_reaches_its_ends():
    class Ends(Stream):
        def raw(self, purpose, size):
            return np.array([0, 2**64 - 1], np.uint64)

    low, high = Ends(0, 0, 0).uniform(0, 2).tolist()
    assert 0.0 < low < 2.0**-52
    assert 1.0 - 2.0**-52 < high < 1.0


# ---- bad input


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"name": "unifrom"}, "no workload is called 'unifrom'; did you mean 'uniform'?"),
        ({"timers": 0}, "timers must lie in [1, 100000000], not 0"),
        ({"timers": 10**9}, "timers must lie in [1, 100000000], not 1000000000"),
        ({"timers": 2.5}, "timers must be an integer, not 2.5"),
        ({"timers": True}, "timers must be an integer, not True"),
        ({"timers": None}, "but not both"),
        ({"timers": 5, "operations": 5}, "but not both"),
        ({"timers": None, "operations": 0}, "operations must lie in"),
        ({"seed": -1}, "seed must lie in [0, 18446744073709551615], not -1"),
        ({"seed": "7"}, "seed must be an integer, not '7'"),
        ({"shard": -1}, "shard must lie in"),
        ({"parameters": {"tick": 5}}, "uniform has no parameter 'tick'; it has rate, longest"),
        ({"parameters": {"rate": 0}}, "rate must lie in [1, 1000000000000000], not 0"),
        ({"parameters": {"longest": 1.5}}, "longest must be an integer, not 1.5"),
        (
            {"name": "lognormal-low", "parameters": {"quartile": 20_000}},
            "quartile 20000 must exceed median 20000",
        ),
        (
            {"name": "keepalive", "parameters": {"idle": 10**6}},
            "idle 1000000 exceeds 8 times the mean 10000",
        ),
        (
            {"name": "cancel-heavy", "parameters": {"lost": 1001}},
            "lost must lie in [0, 1000], not 1001",
        ),
        (
            {"name": "cancel-heavy", "parameters": {"timeout": 1}},
            "timeout must lie in [2, 1000000000000000], not 1",
        ),
    ],
)
def test_nonsense_is_refused_with_one_line(keywords, says):
    with one_line(WorkloadError, re.escape(says)):
        make(**{"name": "uniform", "timers": 10, **keywords})


def test_more_operations_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr("compare.traffic.workloads.catalogue.MAX_IN_MEMORY", 10_000)
    for timers in (5000, 600):
        says = f"{timers} timers of keepalive have more than 10000 operations; ask for fewer"
        with pytest.raises(WorkloadError, match=says):
            make("keepalive", timers=timers)


def test_a_shard_of_more_operations_than_there_are_ids_is_refused_before_it_is_begun():
    with pytest.raises(
        WorkloadError, match="1000000000 timers of keepalive have more than 2147483647 operations"
    ):
        Plan.of("keepalive", timers=10**9)
    assert Plan.of("keepalive", timers=10**9, shards=64).share(63) == 10**9 // 64


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"shards": 0}, "shards must lie in [1, 100000], not 0"),
        ({"shards": 11}, "timers of 11 shards must lie in [11, 23622320117], not 10"),
        ({"timers": 2**31}, "timers must lie in [1, 2147483647], not 2147483648"),
    ],
)
def test_plans_that_make_no_sense(keywords, says):
    with one_line(WorkloadError, re.escape(says)):
        Plan.of(**{"name": "uniform", "timers": 10, **keywords})


def test_times_that_a_double_cannot_tell_apart_are_refused():
    slow = {"rate": 1, "timeout": 10**15, "median": 1, "quartile": 2}
    Plan.of("lognormal-low", timers=2**33, parameters=slow, max_rows=2**40)
    with pytest.raises(
        WorkloadError,
        match=r"lognormal-low would last longer than 2\*\*53 us; increase the rate",
    ):
        Plan.of("lognormal-low", timers=2**34, parameters=slow, max_rows=2**40)


def test_operations_that_come_to_the_last_moment_of_all_are_refused(monkeypatch):
    """The stream ends after two blocks; as many operations as come before that can be had, and not
    one more.
    """
    # Private: the real last moment is 2**53 units away.
    monkeypatch.setattr("compare.traffic.workloads.catalogue._LATEST", 8192.0 * 1000)
    settings = {"rate": 1, "longest": 1}
    expected = make("uniform", timers=2 * BLOCK, parameters=settings).tape
    pieces = Plan.of("uniform", operations=2 * BLOCK, parameters=settings).pieces()
    assert same(joined(list(pieces)), expected)
    with pytest.raises(WorkloadError, match="would last longer than"):
        make("uniform", operations=2 * BLOCK + 1, parameters=settings)
