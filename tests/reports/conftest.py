from dataclasses import replace

import pytest

from compare.trial.bench.store import Run, read_run
from reports.statistics import Spread
from reports.summary import Summary, figures_of
from tests.reports.primes import Primes, make
from tests.reports.synthetic import write_synthetic


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_run(write_synthetic(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="session")
def summary(run: Run) -> Summary:
    return figures_of(run)


@pytest.fixture(scope="session")
def primes() -> Primes:
    return make()


@pytest.fixture(scope="session")
def distinct(primes: Primes) -> Summary:
    """The summary of the run of primes."""
    return figures_of(primes.run)


@pytest.fixture
def called(distinct: Summary) -> Summary:
    """A summary in which each interface costs each timer something else."""

    def cell(ns: float) -> Spread:
        return Spread.of([ns, ns + 2, ns + 4])

    calls = {
        way: {contestant: cell(100 * k + n) for n, contestant in enumerate(distinct.contestants)}
        for k, way in enumerate([("timer", 1), ("timer", 1_000), ("system-timer", 1)], 1)
    }
    return replace(distinct, calls=calls, loops={"asyncio": cell(777)})
