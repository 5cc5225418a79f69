from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compare.bench.store import Run, read_run
from reports.statistics import Spread
from reports.summary import Summary, figures_of
from tests.reports.primes import Primes, make
from tests.reports.synthetic import write_synthetic

if TYPE_CHECKING:
    from reports.charts.pictures import Picture


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_run(write_synthetic(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="session")
def summary(run: Run) -> Summary:
    return figures_of(run)


@pytest.fixture(scope="session")
def drawn(summary: Summary) -> "Mapping[str, list[Picture]]":
    """All charts of the run, by section."""
    from reports.charts.catalogue import pictures

    return pictures(summary)


@pytest.fixture(scope="session")
def page(
    run: Run,
    summary: Summary,
    drawn: "Mapping[str, list[Picture]]",
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The page of the run, with the charts that are drawn already; PNG files are left empty."""
    from reports.charts.pictures import Picture
    from reports.page import write_report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reports.page.figures_of", lambda run: summary)
        patch.setattr("reports.page.pictures", lambda summary: drawn)
        patch.setattr(Picture, "png", lambda picture: b"")
        return write_report(run, tmp_path_factory.mktemp("out") / "report")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with one chart, to be quick where the charts do not matter."""
    from reports.charts import catalogue, pending

    monkeypatch.setattr(catalogue, "CHARTS", (("memory", pending.memory),))


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
