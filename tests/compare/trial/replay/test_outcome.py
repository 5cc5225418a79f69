from dataclasses import fields, replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from compare.trial.replay.outcome import NUMBERS, Outcome, outcome_of, stored_columns
from tests.compare.trial.replay.test_lateness import of

OUTCOMES = st.builds(
    Outcome,
    **dict.fromkeys(NUMBERS, st.integers(0, 2**40)),
    counters=st.none() | st.fixed_dictionaries(dict.fromkeys("ab", st.integers(0, 2**40))),
    lateness=st.lists(st.integers(-5000, 5000), max_size=4).map(of),
)
LARGEST = ("most_pending", "nbytes")


@given(OUTCOMES, OUTCOMES)
def test_outcomes_add_up(outcome, other):
    total = outcome + other
    for name in NUMBERS:
        add = max if name in LARGEST else int.__add__
        assert getattr(total, name) == add(getattr(outcome, name), getattr(other, name))
    assert total.lateness == outcome.lateness + other.lateness
    if outcome.counters and other.counters:
        assert total.counters == {
            name: outcome.counters[name] + other.counters[name] for name in "ab"
        }
    else:
        assert total.counters == (outcome.counters or other.counters)
    assert outcome + Outcome() == Outcome() + outcome == outcome


@given(OUTCOMES)
def test_a_row_holds_everything(outcome):
    schema = pa.schema(stored_columns())
    outcome = replace(outcome, seconds=float(outcome.seconds))
    row = outcome.stored()
    assert list(row) == schema.names
    (read,) = pa.Table.from_pylist([row], schema=schema).to_pylist()
    assert outcome_of(read) == outcome
    late = outcome.lateness
    assert [read[f"lateness_{name}"] for name in ("min", "median", "max")] == [
        late.min,
        late.median,
        late.max,
    ]
    assert {field.name for field in fields(Outcome)} == {*NUMBERS, "counters", "lateness"}


def test_json_has_the_numbers_the_counters_and_a_summary_of_lateness():
    numbers = {name: kind(number) for number, (name, kind) in enumerate(NUMBERS.items(), 3)}
    actual = Outcome(**numbers, counters={"looks": 5}, lateness=of([4, 1, 1, 9])).as_json()
    assert actual == numbers | {
        "ns_per_operation": numbers["seconds"] * 1e9 / numbers["operations"],
        "lateness": {"min": 1, "median": 2.5, "max": 9},
        "counters": {"looks": 5},
    }


def test_time_per_operation():
    assert Outcome(operations=4, seconds=2e-9).ns_per_operation == 0.5
    assert Outcome().ns_per_operation == 0.0


@given(OUTCOMES)
def test_figures_are_per_operation_where_work_is_counted(outcome):
    figures = outcome.figures()
    counters = outcome.counters or {}
    assert {name: figures.pop(name) for name in counters} == {
        name: count / max(outcome.operations, 1) for name, count in counters.items()
    }
    late = {
        f"lateness_{name}": figures.pop(f"lateness_{name}") for name in ("min", "median", "max")
    }
    assert late["lateness_median"] == outcome.lateness.median
    assert figures == {name: getattr(outcome, name) for name in NUMBERS if name != "seconds"}
