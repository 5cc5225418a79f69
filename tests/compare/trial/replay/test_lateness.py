import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.trial.replay.lateness import DIGITS, Lateness

SHARES = (0.001, 0.5, 0.9, 0.99, 1.0)
NEAR = st.integers(-(2**12), 2**12)
ANY = st.integers(-(2**62), 2**62)
LISTS = st.lists(NEAR | ANY, max_size=60)


def of(values):
    return Lateness.of(np.array(values, np.int64))


def quantile(values, share):
    return sorted(values)[max(int(np.ceil(share * len(values))), 1) - 1]


@given(st.lists(LISTS, max_size=5))
def test_a_sum_is_the_distribution_of_all(parts):
    values = [value for part in parts for value in part]
    total = sum(map(of, parts), Lateness())
    assert total == of(values)
    distinct, counts = np.unique(values, return_counts=True)
    assert total.values.tolist() == distinct.tolist()
    assert total.counts.tolist() == (counts.tolist() if values else [])
    coarse = [of(part).coarse() for part in parts]
    assert sum(coarse, Lateness()) == sum(reversed(coarse), Lateness()) == of(values).coarse()


@given(LISTS)
def test_quantiles_are_exact(values):
    late = of(values)
    if not values:
        assert (late.min, late.median, late.max) == (None, None, None)
        assert late.quantiles(SHARES) == [None] * len(SHARES)
        return
    assert (late.min, late.max) == (min(values), max(values))
    assert late.median == pytest.approx(np.median(values))
    assert late.quantiles(SHARES) == [quantile(values, share) for share in SHARES]


@given(LISTS.filter(bool))
def test_coarse_quantiles_are_off_by_less_than_a_thousandth_towards_zero(values):
    late = of(values).coarse()
    assert (late.min, late.max) == (min(values), max(values))
    assert late.counts.sum() == len(values)
    for share, actual in zip(SHARES, late.quantiles(SHARES), strict=True):
        true = quantile(values, share)
        if abs(true) < 1 << DIGITS:
            assert actual == true
        # Kept within the least and the greatest value, it may be beyond the true one.
        assert abs(true - actual) <= abs(true) / 1000
    assert late.coarse() == late


def test_coarse_values_lose_their_last_binary_digits_towards_zero():
    values = of([-5003, -2047, 2047, 5003, 9001, 20_000]).coarse().values
    assert values.tolist() == [-5000, -2047, 2047, 5000, 9000, 20_000]
    late = of([5001, 5002, 5003]).coarse()
    assert (late.median, late.quantiles([0.5, 1.0])) == (
        5001.0,
        [5001, 5001],
    )  # not below the least


def test_a_coarse_distribution_is_small():
    values = np.arange(2_000_000)
    assert Lateness.of(values).coarse().values.size < 2**DIGITS * 7
