"""The table of replayed results: sums over all shards, in which every value is another prime."""

from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import compare.pipeline.results
from compare.pipeline.results import Results, outcome_table
from compare.pipeline.summarise import table_of
from compare.replay.lateness import Lateness
from compare.replay.outcome import NUMBERS, Outcome

SHARDS = 3
TIMERS = ("first", "second")
GREATEST = ("most_pending", "nbytes")  # all others add up
LATE = {
    ("first", 0): [2] * 3 + [5] * 600 + [7] * 380 + [9] * 14,
    ("first", 1): [11] * 3,
    ("first", 2): [-13] * 2,
    ("second", 0): [],
    ("second", 1): [17] * 5,
    ("second", 2): [19] * 6,
}


def primes():
    number = 101
    while True:
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            yield number
        number += 1


@pytest.fixture(scope="module")
def outcomes():
    """Of (timer, shard); what is greatest is not in the last shard."""
    prime = primes()
    found = {}
    for timer in TIMERS:
        for shard in (0, 2, 1):
            numbers = {name: kind(next(prime)) for name, kind in NUMBERS.items()}
            counters = {"comparisons": next(prime)} if timer == "first" else None
            late = Lateness.of(np.array(LATE[timer, shard], np.int64))
            found[timer, shard] = Outcome(**numbers, counters=counters, lateness=late)
    return found


@pytest.fixture(scope="module")
def results(outcomes, tmp_path_factory):
    results = Results(
        tmp_path_factory.mktemp("results"),
        {
            "expiries": False,
            "drained": True,
            "counting": True,
            "made": {"created": "today"},
            "timers": [
                {"name": name, "parameters": {"tick": n}, "label": f"label of {name}"}
                for n, name in enumerate(TIMERS, 3)
            ],
        },
        SimpleNamespace(
            source={"workload": "uniform", "seed": 7},
            unit="us",
            shards=[None] * SHARDS,
            span=4999,
        ),
    )
    for number, timer in enumerate(TIMERS):
        for shard in range(SHARDS):
            path = Path(results.outcome_file(number, shard))
            path.parent.mkdir(parents=True, exist_ok=True)
            table = outcome_table(number, shard, f"engine of {timer}", outcomes[timer, shard])
            pq.write_table(table, path)
    with pytest.MonkeyPatch.context() as patch:  # no timer has such a name
        as_it_is = "contestant_of", lambda entry: SimpleNamespace(**entry)
        patch.setattr(compare.pipeline.results, *as_it_is)
        yield results


@pytest.fixture(scope="module")
def rows(results):
    return {row["timer"]: row for row in table_of(results).to_pylist()}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ({"kind": "generated", "workload": "uniform"}, "uniform"),
        ({"kind": "requests"}, "requests"),
        ({}, "trace"),
    ],
)
def test_a_trace_is_called_what_it_was_made_of(results, source, name):
    trace = SimpleNamespace(**vars(results.trace) | {"source": source})
    assert {row["workload"] for row in table_of(replace(results, trace=trace)).to_pylist()} == {
        name
    }


@pytest.mark.parametrize("timer", TIMERS)
def test_numbers_are_of_all_shards(rows, outcomes, timer):
    own = [outcomes[timer, shard] for shard in range(SHARDS)]
    for name in NUMBERS:
        values = [getattr(one, name) for one in own]
        assert rows[timer][name] == (max if name in GREATEST else sum)(values), name
    assert {one.name for one in fields(Outcome)} - NUMBERS.keys() == {"counters", "lateness"}
    comparisons = [one.counters["comparisons"] for one in own if one.counters]
    assert rows[timer]["counters"] == ([("comparisons", sum(comparisons))] if comparisons else None)


@pytest.mark.parametrize("timer", TIMERS)
def test_times_are_of_all_shards_and_of_each(rows, outcomes, timer):
    own = [outcomes[timer, shard] for shard in range(SHARDS)]
    seconds, operations = sum(one.seconds for one in own), sum(one.operations for one in own)
    assert rows[timer]["ns_per_operation"] == pytest.approx(seconds * 1e9 / operations)
    each = {
        "operations": sorted(one.operations for one in own),
        "ns_per_operation": sorted(one.seconds * 1e9 / one.operations for one in own),
    }
    for name, values in each.items():
        for which, value in zip(("least", "median", "most"), values, strict=True):
            assert rows[timer][f"shard_{name}_{which}"] == pytest.approx(value)


def test_lateness_is_that_of_all_timers_that_fired(rows):
    names = ("min", "median", "max", "p50", "p90", "p99", "p999")
    first, second = ([row[f"lateness_{name}"] for name in names] for row in rows.values())
    assert first == [-13, 5.0, 11, 5, 7, 9, 11]  # of 1002 timers
    assert second == [17, 19.0, 19, 19, 19, 19, 19]


def test_each_row_says_what_it_is_of(rows):
    for n, timer in enumerate(TIMERS, 3):
        row = rows[timer]
        assert (row["label"], row["engine"]) == (f"label of {timer}", f"engine of {timer}")
        assert row["parameters"] == f'{{"tick": {n}}}'
        assert (row["workload"], row["unit"], row["shards"], row["span"]) == (
            "uniform",
            "us",
            3,
            4999,
        )
        assert row["source"] == '{"seed": 7, "workload": "uniform"}'
