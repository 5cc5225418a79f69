import os
from pathlib import Path

import pytest

from compare.bench.store import Run, read_run
from reports.summary import Summary, summarise
from tests.reports.primes import Primes, make
from tests.reports.synthetic import write_synthetic


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_run(write_synthetic(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="session")
def summary(run: Run) -> Summary:
    return summarise(run)


@pytest.fixture(scope="session")
def page(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from reports.page import write_report

    return write_report(run, tmp_path_factory.mktemp("out") / "report")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with one chart, to be quick where the charts do not matter."""
    from reports.charts import catalogue

    monkeypatch.setattr(catalogue, "CHARTS", catalogue.CHARTS[-1:])


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    path = tmp_path / "closed"
    path.mkdir(mode=0o500)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everywhere")
    return path


@pytest.fixture(scope="session")
def primes() -> Primes:
    return make()


@pytest.fixture(scope="session")
def distinct(primes: Primes) -> Summary:
    """The summary of the run of primes."""
    return summarise(primes.run)
