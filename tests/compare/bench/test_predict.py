import numpy as np
import pytest

import compare.bench.predict
from compare.bench.contestant import contestant
from compare.bench.predict import Observed, predict, predict_replay
from compare.replay.engine import Replay
from compare.replay.loops import FIRED
from compare.replay.outcome import Outcome
from compare.workloads.catalogue import make


@pytest.mark.parametrize(
    ("power", "counted"),
    [(0.0, True), (0.5, True), (1.0, True), (0.0, False), (0.5, False), (1.0, False)],
)
def test_growth_is_fitted(power, counted):
    observed = [
        Observed(
            size,
            10 * size,
            int(10 * size * size**power) if counted else None,
            1e-9 * 10 * size * size**power,
        )
        for size in (100, 1000)
    ]
    assert predict(observed, 10_000, 100_000) == pytest.approx(
        1e-9 * 100_000 * 10_000**power, rel=0.01
    )


def test_growth_of_counts_is_that_of_the_last_sizes_and_of_times_that_of_all():
    sizes, work, seconds = (100, 200, 400), (100, 200, 800), (1e-4, 8e-4, 16e-4)
    counted = [Observed(n, n, w, t) for n, w, t in zip(sizes, work, seconds, strict=True)]
    # The work of a step has doubled, though it was the same before.
    assert predict(counted, 800, 800) == pytest.approx(16e-4 / 400 * 2 * 800)
    timed = [one._replace(work=None) for one in counted]
    # A step's time is four times what it was at a quarter of the size.
    assert predict(timed, 800, 800) == pytest.approx(16e-4 / 400 * 2 * 800)
    assert predict(
        [one._replace(work=n) for one, n in zip(counted, sizes, strict=True)], 800, 800
    ) == (pytest.approx(16e-4 / 400 * 800))


def test_what_seems_to_become_cheaper_is_taken_to_stay_as_it_is():
    falling = [Observed(100, 100, None, 10.0), Observed(200, 200, None, 10.0)]
    assert predict(falling, 400, 400) == pytest.approx(20.0)


def test_what_is_counted_outweighs_the_times():
    noisy = [Observed(100, 100, 100, 5.0), Observed(1000, 1000, 1000, 0.001)]
    assert predict(noisy, 10_000, 10_000) == pytest.approx(0.01)


def test_after_one_size_the_worst_is_assumed():
    observed = [Observed(100, 100, None, 1.0)]
    assert predict(observed, 1000, 1000) == pytest.approx(100.0)


def test_absurd_growth_is_cut():
    assert predict(
        [Observed(10, 10, None, 1e-9), Observed(20, 20, None, 1.0)], 40, 40
    ) == pytest.approx(4.0)
    assert predict(
        [Observed(10, 10, 10, 1e-9), Observed(11, 11, 10**9, 1e-9)], 22, 22
    ) == pytest.approx(4e-9)


@pytest.mark.parametrize(
    ("counted", "growth", "budget", "sizes"),
    [
        (True, 0, 1.0, [1000, 4000, 16_000]),
        (True, 1, 9.0, [1000, 4000, 16_000]),  # 8 s
        (False, 1, 5.0, [1000, 4000, 16_000]),
        (True, 1, 0.1, [1000, 4000]),  # the next prefix alone takes half a second
    ],
)
def test_a_replay_is_predicted_from_its_prefixes(monkeypatch, counted, growth, budget, sizes):
    tape, seen = make("constant", operations=64_000).tape, []
    each = 1 + growth  # without growth, an operation alone costs something

    def pretend(timer, prefix, id_space, *, counting=False, clock=None):
        assert (counting, clock) in [(True, None), (False, "a clock")]
        n = prefix.time.size
        seen.extend([n] if counting else [])
        cost = each * n * n**growth
        counters = {"looks": cost - n} if counted else None
        seconds = 1e-9 * cost * (3 if counting else 1)  # counting takes time itself
        return Replay(Outcome(seconds=seconds, counters=counters), np.empty(0, FIRED))

    monkeypatch.setattr(compare.bench.predict, "fresh_replay", pretend)
    predicted = predict_replay(contestant("delay-queue"), tape, 5, budget, "a clock")
    assert predicted == pytest.approx(each * 1e-9 * 64_000 * 64_000**growth, rel=0.01)
    assert seen == sizes


def test_a_short_tape_is_not_worth_predicting():
    made = make("constant", operations=500)
    assert predict_replay(contestant("unordered-list"), made.tape, made.id_space, 1.0) == 0.0
