import pytest

from compare.base.stages import Here
from compare.traffic.tapes.trace import write_trace
from compare.traffic.workloads.catalogue import make
from compare.trial.advice import program, search
from compare.trial.bench.callers import Costs


@pytest.fixture(scope="package", autouse=True)
def short_search():
    """Two turns, and no event loops: the tests check what is searched, not how fast it is."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FIRST": 300, "TURNS": 2, "MOST_TURNS": 2, "SECONDS": 0.0}.items():
            patch.setattr(search, name, value)
        loops = {"asyncio": [Costs(1.0, 1.0, 1.0)]}
        patch.setattr(program, "measured", lambda caller, *_: loops)
        yield


@pytest.fixture(scope="package")
def trace(tmp_path_factory):
    """Two shards of requests in microseconds."""
    tapes = [make("lognormal-low", operations=600, seed=5, shard=n).tape for n in (0, 1)]
    path = tmp_path_factory.mktemp("advice") / "low.trace"
    return write_trace(path, tapes, unit="us", source={"kind": "test"})


@pytest.fixture(scope="package")
def advice(trace):
    """The advice for 10 ms late, up to 2 ms early."""
    return search.advise(trace, search.Bounds(10_000, 2_000), Here())
