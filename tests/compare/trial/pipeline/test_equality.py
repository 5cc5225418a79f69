"""The same seed gives the same operations, expiries, outcomes and figures, whatever the engine."""

import pytest

from compare.trial.pipeline.generate import generate
from compare.trial.pipeline.replay import replay_trace
from compare.trial.pipeline.summarise import summarise
from compare.trial.pipeline.verify import checked, verify
from tests.compare.conftest import on_both
from tests.compare.trial.pipeline.contents import FROZEN, TIMERS, WORKLOADS, digests_of


@on_both
@pytest.mark.parametrize("name", FROZEN)
def test_contents_are_those_of_before(where, tmp_path, name):
    trace = generate(name, tmp_path / "trace", **WORKLOADS[name], **where)
    results = replay_trace(trace.path, TIMERS, tmp_path / "results", check=True, **where)
    run = summarise(results.path, **where)
    assert digests_of(trace, results, run) == FROZEN[name]
    verification = verify(results.path, **where)
    assert verification.passed
    assert verification == checked(results)
