"""Traffic in its steady state has the rate, the shares and the number pending that it is asked."""

import numpy as np
import pytest

from compare.traffic.tapes.tape import CANCEL, REARM, START
from compare.trial.bench.steady import (
    FEW,
    KEEPALIVE,
    KINDS,
    ONE,
    PERIODIC,
    RANDOM,
    Traffic,
    groups_of,
    steady,
)
from compare.trial.oracle.compiled import NEVER, expect
from timers.rounding import Rounding


def pending_in(made):
    """The number of pending timers at the start, and at the end of the tape."""
    alive = set(range(made.first))
    due = dict(enumerate(made.tape.deadline[: made.first].tolist()))
    rows = (each[made.first :].tolist() for each in made.tape[1:])
    for op, id_, deadline in zip(*rows, strict=True):
        if op == CANCEL:
            due.pop(id_, None)
        else:
            due[id_] = deadline
    end = int(made.tape.time[-1])
    return len(alive), sum(deadline > end for deadline in due.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [1, 100])
def test_as_many_are_pending_at_the_end_as_at_the_start(kind, step):
    cancelled = 0.0 if kind == PERIODIC else 0.5
    traffic = Traffic(2_000, 4_000, cancelled, 400, kind, step)
    first, last = pending_in(made := steady(traffic, 12_000, 1))
    assert first == pytest.approx(traffic.pending, rel=0.1)
    assert last == pytest.approx(first, rel=0.1)
    assert not (made.tape.time % step).any()
    assert (np.diff(made.tape.time) >= 0).all()
    operations = made.tape.time.size - made.first
    per_timer = 1 if kind in (KEEPALIVE, PERIODIC) else 1.5  # a start, and perhaps a cancel
    assert operations / made.seconds == pytest.approx(2_000 * per_timer, rel=0.1)


@pytest.mark.parametrize("kind", [RANDOM, ONE, FEW])
def test_the_share_is_cancelled_and_the_others_fire(kind):
    made = steady(Traffic(5_000, 1_000, 0.9, 100, kind), 20_000, 2)
    ops = made.tape.op[made.first :]
    assert (ops == CANCEL).sum() / (ops == START).sum() == pytest.approx(0.9, abs=0.02)
    fired = expect(made.tape, made.ids, Rounding(), drained=False).fired_at
    fired = fired[(fired != NEVER) & (fired <= made.tape.time[-1])]
    assert fired.size / made.seconds == pytest.approx(500, rel=0.1)
    assert made.moments == np.unique(fired).size
    assert made.firing <= made.moments


def test_the_delays_are_those_of_the_kind():
    def delays(kind):
        made = steady(Traffic(1_000, 1_000, 0.0, kind=kind), 5_000, 3)
        starts = slice(made.first, None)
        return (made.tape.deadline - made.tape.time)[starts]

    assert set(delays(ONE)) == {1_000}
    assert set(delays(FEW)) == {100, 500, 2_400}
    assert delays(RANDOM).mean() == pytest.approx(1_000, rel=0.05)
    assert delays(RANDOM).max() <= 2_001
    periods = delays(PERIODIC)
    assert periods.min() >= 549 and periods.max() <= 1_650


@pytest.mark.parametrize(("timeout", "rate"), [(60_000, 1_000), (2_000, 100)])
def test_kept_alive_connections_move_and_never_fire_but_for_the_lost(timeout, rate):
    made = steady(Traffic(rate, timeout, 1.0, 1_000, KEEPALIVE), 5_000, 4)
    assert set(made.tape.op[made.first :]) == {REARM}
    assert made.firing == made.moments == 0
    # From the first second on.
    assert np.count_nonzero(made.tape.time[made.first :] <= 500) == pytest.approx(rate / 2, rel=0.2)


def test_groups_have_all_operations_of_a_step():
    made = steady(Traffic(10_000, 500, 0.5, 50, RANDOM, 10), 2_000, 5)
    groups = [*groups_of(made)]
    assert [group.moment for group in groups] == np.unique(made.tape.time[made.first :]).tolist()
    assert sum(g.starts.size + g.moved.size + g.cancels.size for g in groups) == (
        made.tape.time.size - made.first
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pending", [1, 2, 3, 40])
def test_periodic_timers_have_the_rate_however_few_they_are(pending, seed):
    traffic = Traffic(1_000 * pending / 220, 220, 0.0, kind=PERIODIC)
    made = steady(traffic, 2_000, seed)
    assert made.first == pending
    starts = made.tape.time.size - made.first
    assert starts / made.seconds == pytest.approx(traffic.rate, rel=0.02)
