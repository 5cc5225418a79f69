"""The growth of processes, beside the bytes that timers say they hold."""

import pytest

from compare.trial.bench import process
from compare.trial.bench.process import ProcessMemory, measured
from compare.trial.replay.contestant import contestant
from compare.trial.results.schema import MEMORY

pytestmark = pytest.mark.skipif(not process.STATUS.exists(), reason="resident memory is read there")

SIZE = 1 << 19


def test_a_process_grows_by_what_its_timer_holds():
    """24 bytes for each timer; both arrays while it grows; twice the capacity after that."""
    growths = measured("cascading-wheel", SIZE)
    for at, factor in (("at_rest", 1), ("at_peak", 3), ("grown", 2)):
        assert growths[at] == pytest.approx(24 * SIZE * factor, rel=0.15), at


def test_rows_are_per_timer_and_a_process_that_fails_has_none(monkeypatch):
    growths = {"at_rest": 2400, "at_peak": 7200, "grown": 4800}
    known = {("delay-queue", 100): growths}
    monkeypatch.setattr(process, "measured", lambda *case: known.get(case))
    timers = [contestant(name) for name in ("delay-queue", "simple-wheel")]
    bench, stored, steps = ProcessMemory(timers, 100), {}, []
    bench.run(steps.append, stored.__setitem__)
    assert len(steps) == bench.steps and [*stored] == bench.tasks
    assert [tuple(row) for row in bench.rows] == [
        ("delay-queue", MEMORY, 100, f"process_{at}", None, grown / 100, None)
        for at, grown in growths.items()
    ]
    assert ProcessMemory([], 0).tasks == []


def test_a_timer_that_cannot_be_made_is_left_out():
    assert measured("no-such-timer", 10) is None
