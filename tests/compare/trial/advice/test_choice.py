import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.trial.advice.choice import ENOUGH, MODELLED, NEAR, WORSE, Offer, choose, is_decided


def offer(cost, *, noise=0.0, exact=True, nbytes=100, default=True, usual=False, host=False):
    return Offer(cost, cost - noise, cost + noise, exact, nbytes, default, usual, host)


CHEAP = offer(100.0, exact=False, nbytes=500, default=False)
ASYNCIO = offer(100.0, exact=False, nbytes=9_000, host=True)


@pytest.mark.parametrize(
    ("other", "core", "number", "reasons"),
    [
        (offer(102.0), None, 0, ()),  # 2 % dearer, and no noise
        (offer(102.0, noise=3.0), None, 1, ("is exact",)),
        (offer(102.0), 201.0, 1, ("is exact",)),  # 2 ns of 201 are less than 1 % of a core
        (offer(102.0), 199.0, 0, ()),
        (offer(102.0, exact=False), 1000.0, 1, ("takes the least memory",)),
        (offer(102.0, exact=False, nbytes=460), 1000.0, 1, ("has default parameters",)),
        (offer(102.0, exact=False, nbytes=540), 1000.0, 1, ("has default parameters",)),
        (offer(102.0, exact=False, nbytes=560), 1000.0, 0, ()),
        (offer(102.0, exact=False, nbytes=500, default=False), 1000.0, 0, ()),
        (
            offer(102.0, exact=False, nbytes=500, default=False, usual=True),
            1000.0,
            1,
            ("is the usual choice",),
        ),
    ],
)
def test_what_is_about_as_cheap_is_chosen_in_the_order_of_the_rule(other, core, number, reasons):
    choice = choose([CHEAP, other], core)
    assert (choice.number, choice.cheapest, choice.reasons) == (number, 0, reasons)


@pytest.mark.parametrize("enough", [ENOUGH, MODELLED])
@pytest.mark.parametrize(
    ("host", "noise", "kept"),
    [
        (109.9, 0.0, True),  # the wheel saves 0.99 % of a core
        (110.1, 0.0, False),  # and 1.01 %
        (150.0, 30.0, True),  # less than the noise
        (150.0, 24.0, False),
        (90.0, 0.0, True),  # the host is the cheapest
    ],
)
def test_a_host_is_kept_unless_the_best_saves_more_than_a_share_of_a_core(
    host, noise, kept, enough
):
    """Whatever else speaks for the wheel: it is exact, small and the usual choice."""
    wheel = offer(100.0, noise=noise, usual=True)
    asyncio = ASYNCIO._replace(cost=host, low=host - noise, high=host + noise)
    choice = choose([wheel, asyncio], 1_000.0, enough)
    assert choice.number == int(kept)
    reasons = ("is what the program has",) if kept and host > 100 else ()
    assert choice.reasons == reasons


def test_reasons_are_those_against_the_cheapest():
    """Memory decides between the two that are exact, but the cheapest was out before."""
    choice = choose([CHEAP, offer(101.0, nbytes=900), offer(102.0)], 1000.0)
    assert choice.number == 2
    assert choice.text == (
        "of 3 candidates about as cheap as the cheapest, it is exact and takes the least memory"
    )


offers = st.builds(
    offer,
    st.integers(1, 2000).map(float),
    noise=st.sampled_from([0.0, 1.0, 20.0]),
    exact=st.booleans(),
    nbytes=st.integers(90, 200),
    default=st.booleans(),
    usual=st.booleans(),
    host=st.booleans(),
)


@given(st.lists(offers, min_size=1, max_size=8), st.sampled_from([None, 1e3, 1e5]))
def test_nothing_better_by_the_rule_is_left_out(candidates, core):
    """The rule, spelled out as a search for a better one."""
    choice = choose(candidates, core)
    best, cheapest = candidates[choice.number], min(candidates, key=lambda each: each.cost)
    near = [
        each
        for each in candidates
        if each.low <= candidates[choice.cheapest].high
        or each.cost - cheapest.cost <= ENOUGH * (core or 0)
    ]
    assert candidates[choice.cheapest].cost == cheapest.cost
    assert (best in near, choice.near) == (True, len(near))
    hosts = [each for each in near if each.host] or near
    assert best in hosts
    exact = [each for each in hosts if each.exact] or hosts
    assert best in exact
    small = [each for each in exact if each.nbytes <= NEAR * min(e.nbytes for e in exact)]
    assert best in small
    default = [each for each in small if each.default] or small
    assert best in default
    usual = [each for each in default if each.usual] or default
    assert best in usual
    assert best.cost == min(each.cost for each in usual)


@pytest.mark.parametrize(
    ("rounds", "core", "decided"),
    [
        ([[10.0, 8.8]] * 4, None, True),  # 14 % more
        ([[10.0, 8.6]] * 4, None, False),  # 16 % more
        ([[10.0, 8.6]] * 4, 141.0, True),  # 1.4 of 141 are less than 1 % of a core
        ([[10.0, 8.6]] * 4, 139.0, False),
        ([[10.0, 20.0]] * 3 + [[30.0, 20.0]], None, True),  # right in three of four rounds
        ([[10.0, 20.0]] * 2 + [[30.0, 20.0]], None, False),
        ([[10.0, 12.0, 11.0], [10.0, 12.0, 8.0]], None, False),
        ([[5.0]], None, True),
    ],
)
def test_noise_decides_if_rounds_differ_in_what_is_right(rounds, core, decided):
    assert 1.14 < WORSE < 1.16 and ENOUGH == 0.01
    assert is_decided(rounds, 0, core) == decided
