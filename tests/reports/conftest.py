from dataclasses import replace

import pytest

from compare.trial.results.store import Run, read_run
from reports.summary import Summary, figures_of
from tests.reports.primes import LABELS, Primes, make
from tests.reports.stored import call_rows
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
def called(primes: Primes) -> Summary:
    """A summary in which each interface costs each timer something else."""
    rows = [*primes.run.rows, *call_rows("asyncio", "call_later", 1, [777.0, 779.0, 781.0])]
    for k, way in enumerate([("timer", 1), ("timer", 1_000), ("system-timer", 1)], 1):
        for n, label in enumerate(LABELS):
            ns = 100.0 * k + n
            rows += call_rows(label, *way, [ns, ns + 2, ns + 4])
    return figures_of(replace(primes.run, rows=rows))
