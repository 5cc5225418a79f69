import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.trial.advice.prices import Counted, fitted_prices, priced, rank_correlation
from compare.trial.replay.contestant import contestant
from compare.trial.replay.outcome import Outcome
from timers.kernels.counters import COUNTERS

PRICES = {name: 2.0 + number for number, name in enumerate(COUNTERS)}


def counted(label, counters, operations=1000):
    outcome = Outcome(operations=operations, counters=counters)
    return Counted(contestant(label), outcome, 100, 0, True)


def test_fitted_prices_predict_the_times_of_other_candidates():
    rng = np.random.default_rng(3)
    sizes = [1 << bits for bits in range(3, 17)] * 4
    base = {f"simple-wheel/wheel-size={size}": 30.0 + 0.3 * (size // 64) for size in sizes}
    base |= {"delay-queue": 20.0, "cascading-wheel": 40.0}
    labels = [*base] * 5
    rng.shuffle(labels)
    timed = []
    for label in labels:
        counters = {name: int(rng.integers(0, 3000)) for name in COUNTERS}
        work = sum(PRICES[name] * number for name, number in counters.items())
        timed.append((counted(label, counters), base[label] + work / 1000))
    fitted = fitted_prices(timed[:50])
    for timer, ns in timed[50:]:
        assert priced(timer, fitted) == pytest.approx(ns, rel=0.2)  # the pull to assumed prices


def test_no_price_is_negative_even_if_work_seems_to_save_time():
    timed = [
        (counted("delay-queue", {"comparisons": n}), 1e-3 / (1 + n)) for n in (0, 10, 1000, 10_000)
    ]
    assert min(fitted_prices(timed).values()) >= 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=30))
def test_rank_correlation_is_pearson_s_of_the_mean_ranks(pairs):
    def ranks(values):
        return [np.mean([k for k, v in enumerate(sorted(values)) if v == x]) for x in values]

    left, right = map(list, zip(*pairs, strict=True))
    correlation = rank_correlation(left, right)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert np.isnan(correlation)
    else:
        assert correlation == pytest.approx(np.corrcoef(ranks(left), ranks(right))[0, 1])
