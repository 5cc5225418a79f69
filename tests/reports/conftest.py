from dataclasses import replace

import pytest

from compare.trial.bench.callers import CALLERS, LOOP
from compare.trial.results.store import Run, read_run
from reports.summary import Summary, figures_of
from tests.reports.primes import LABELS, Primes, make
from tests.reports.stored import caller_rows
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
    """A summary in which each caller costs each timer something else."""
    rows = [*primes.run.rows]
    for size in (1_000, 100_000):
        rows += caller_rows("uvloop", LOOP, size, [[777.0, 779.0, 781.0], [1.0], [1.0]])
        for k, caller in enumerate(CALLERS):
            for n, label in enumerate(LABELS):
                ns = [1_000.0 * k + 100 * n + size / 10_000 + 10 * part for part in range(3)]
                rows += caller_rows(label, caller, size, [[x, x + 2, x + 4] for x in ns])
    return figures_of(replace(primes.run, rows=rows))
