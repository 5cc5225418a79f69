"""The constants of all timers for all callers, in the table of results."""

from dataclasses import replace

import pytest

from compare.trial.bench import constants, costs
from compare.trial.bench.constants import Constants, Fit, sizes_of
from compare.trial.bench.costs import METRICS, CallerCosts, fits_of, rivals, rows_of_fit, subject_of
from compare.trial.bench.replays import HOSTS, REPLAYS
from compare.trial.bench.steady import KINDS, ONE, RANDOM
from compare.trial.replay.contestant import contestant
from compare.trial.results.metrics import METRICS as ALL_METRICS

TIMERS = [contestant(name) for name in ("delay-queue", "heapq-delay-queue", "ordered-list")]
BENCH = CallerCosts(TIMERS, 2, 10**6)


def stored(bench):
    """The rows by task, and the steps that were told."""
    tasks, told = {}, []
    bench.run(told.append, tasks.__setitem__)
    return tasks, told


def test_a_fit_that_is_stored_is_read_again():
    first = Fit(Constants(1, 2, 3, 4, 5, 6, 7), 0.25, (Constants(*range(7)), Constants(*range(7))))
    second = Fit(Constants(9, 0, 0, 0, 0, 0, 0), 0.5)
    rows = [
        *rows_of_fit("delay-queue", "python, random", 10, first),
        *rows_of_fit("delay-queue", "python, random", 1_000, second),
        *rows_of_fit("sched", "python, one", 10, second),
    ]
    assert fits_of(rows) == {
        "python, random": {"delay-queue": {10: first, 1_000: second}},
        "python, one": {"sched": {10: second}},
    }
    assert {row.metric for row in rows} == {*METRICS, costs.ERROR}
    assert {row.metric for row in rows} <= {*ALL_METRICS}


def test_every_caller_has_its_constants_at_each_size():
    tasks, told = stored(BENCH)
    assert [*tasks] == BENCH.tasks == [f"costs-{caller}-random" for caller in BENCH.callers]
    assert len(told) == BENCH.steps
    found = fits_of(row for rows in tasks.values() for row in rows)
    for caller in REPLAYS:
        by_label = found[subject_of(caller, RANDOM)]
        assert {*by_label} == {"delay-queue", "ordered-list", *HOSTS.get(caller, ())}
        for fits in by_label.values():
            assert (*fits,) == sizes_of(caller)
            for size, fit in fits.items():
                assert len(fit.rounds) == (2 if size < costs.MUCH else 1)


def test_other_delays_are_measured_when_asked_for():
    everything = replace(BENCH, kinds=(*KINDS,))
    assert len(everything.tasks) == len(KINDS) * len(REPLAYS)
    tasks, _ = stored(replace(BENCH, kinds=(ONE,), callers=("python",)))
    assert {row.subject for row in tasks["costs-python-one"]} == {"python, one"}


@pytest.mark.parametrize(
    ("largest", "sizes"), [(1, (1,)), (99, (1, 10)), (1_000, (1, 10, 100, 1_000))]
)
def test_no_size_exceeds_the_largest(largest, sizes):
    assert replace(BENCH, largest=largest).sizes("python") == sizes


def test_a_timer_that_is_too_slow_is_left_out_at_larger_sizes(monkeypatch):
    def fits(everyone, size, kind, repeats, more):
        [(caller, left)] = everyone.items()
        asked.append((size, [*left]))
        fit = Fit(Constants(1, 1, 1, 1, 1, 1, 1), 0.0)
        return {(caller, label): fit for label in left if label != "sched" or size < 1_000}

    asked = []
    monkeypatch.setattr(costs, "fits", fits)
    tasks, _ = stored(replace(BENCH, callers=("python",)))
    assert asked[1] == (10, ["delay-queue", "ordered-list", "sched"])
    assert asked[3] == (1_000, ["delay-queue", "ordered-list", "sched"])
    assert asked[4] == (30_000, ["delay-queue", "ordered-list"])
    assert {*fits_of(tasks["costs-python-random"])["python, random"]["sched"]} == {1, 10, 100}


def test_python_loops_compete_only_where_nothing_is_compiled():
    slow = contestant("heapq-delay-queue")
    assert {*rivals("batches", TIMERS)} == {"delay-queue", "ordered-list"}
    assert rivals("python", [slow], hosts=False) == {slow.label: slow}
    assert rivals("compiled", [slow]) == {}


@pytest.mark.parametrize("caller", HOSTS)
def test_hosts_and_contestants_are_measured(caller, monkeypatch):
    """The real measurement, of few timers."""
    for name, value in {"DESIGNS": 8, "TIMERS": 60, "LONGEST": 4_000, "FEWEST": 20}.items():
        monkeypatch.setattr(constants, name, value)
    everyone = {caller: rivals(caller, TIMERS[:1])}
    found = constants.fits(everyone, 10, RANDOM, 1)
    assert {label for _, label in found} == {"delay-queue", *HOSTS[caller]}
    for fit in found.values():
        assert len(fit.rounds) == 1 and max(fit.constants) > 0


def test_no_more_threads_wait_than_a_program_may_have(monkeypatch):
    monkeypatch.setattr(constants, "seconds_of", lambda *_: 1.0)
    everyone = {"system-timer": rivals("system-timer", TIMERS[:1])}
    for size in sizes_of("system-timer"):
        labels = {label for _, label in constants.fits(everyone, size, RANDOM, 1)}
        assert ("threading.Timer" in labels) == (size <= constants.MOST_THREADS)


@pytest.mark.parametrize(("seconds", "expected"), [(100.0, {constants.MORE}), (0.0, {1})])
def test_noise_takes_no_more_time_than_there_is(seconds, expected, monkeypatch):
    asked = set()
    monkeypatch.setattr(costs, "fits", lambda *arguments: asked.add(arguments[-1]) or {})
    stored(replace(BENCH, seconds=seconds))
    assert asked == expected
