"""A trial in real time: what its threads do, what it notes, and how it fails."""

import numpy as np
import pytest

from compare.purgatory.figures import NONE, PURGING, SCANNING
from compare.purgatory.traffic import traffic
from compare.purgatory.trial import Trial, _Run, measure

MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def short():
    """30 ms of requests that time out after 20 ms."""
    given = traffic("high", 10_000, 300, seed=2)
    return given._replace(
        timeout=given.timeout // 10, services=np.where(given.services < 0, -1, given.services // 10)
    )


@pytest.mark.parametrize(
    ("design", "timer"),
    [(PURGING, "hierarchical-wheel"), (SCANNING, "delay-queue"), (NONE, "hierarchical-wheel")],
)
def test_every_request_of_a_trial_ends_once(short, design, timer):
    run = _Run(Trial(design, timer, 50), short)
    figures = run.measure()
    assert figures["failed"] is None
    assert figures["requests"] == 300
    assert figures["achieved"] > 0
    assert 0 < figures["cpu_us"] >= figures["gc_us"] >= 0
    if design == NONE:
        assert figures["share_expired"] is figures["late_max_ms"] is None
        return
    assert run.completed + len(run.late) == 300
    # On a busy machine an answer may come after its timeout.
    assert run.completed <= (short.services >= 0).sum()
    assert figures["share_expired"] == len(run.late) / 300
    assert 0 <= figures["late_p50_ms"] <= figures["late_p99_ms"] <= figures["late_max_ms"]
    assert ("estimated_total" in figures) == (design == PURGING)


def test_an_error_of_the_service_ends_the_trial(short, monkeypatch):
    def broken(self, operation, keys):
        raise MemoryError

    monkeypatch.setattr("timers.services.Purgatory.try_complete_else_watch", broken)
    figures = _Run(Trial(PURGING, "hierarchical-wheel", 50), short).measure()
    assert figures["failed"] == "MemoryError"
    assert figures["requests"] == 0


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [(range(200, 0, -1), [100.0, 198.0, 200.0]), ([5], [5.0] * 3), ([], [None] * 3)],
)
def test_quantiles_of_lateness_are_values_in_milliseconds(short, milliseconds, expected):
    run = _Run(Trial(PURGING, "hierarchical-wheel", 50), short)
    run.late = [1_000_000 * late for late in milliseconds]
    figures = run._figures(elapsed=1, cpu=1, before=0)
    assert [figures[f"late_{which}_ms"] for which in ("p50", "p99", "max")] == expected


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("design", "timer", "interval", "failed"),
    [
        (SCANNING, "delay-queue", 10**6, "MemoryError"),
        (PURGING, "hierarchical-wheel", 1000, None),
    ],
)
def test_with_little_memory_only_the_old_design_fails(design, timer, interval, failed):
    # The old design keeps them all; some 29 000 fill the memory.
    given = traffic("low", 20_000, 45_000, seed=1)
    figures = measure(Trial(design, timer, interval, 8 * MEBIBYTE), given)
    assert figures["failed"] == failed
