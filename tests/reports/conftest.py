import os
import shutil
from dataclasses import replace

import pytest

from compare.trial.bench.callers import CALLERS, LOOP
from compare.trial.results.store import Run, read_run
from reports.charts.pictures import Picture
from reports.page import write_report
from reports.summary import Summary, figures_of
from tests.reports.by_hand import by_hand
from tests.reports.primes import LABELS, Primes, make
from tests.reports.stored import caller_rows
from tests.reports.synthetic import write_synthetic

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"


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


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium refuses its own sandbox to root, as in most containers; the page is ours.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "png", lambda picture: b"")
        return {
            name: write_report(read_run(write(root / name)), root / f"{name}-report")
            for name, write in {"hand": by_hand, "full": write_synthetic}.items()
        }


@pytest.fixture
def opened(chromium, pages):
    """Opens a page; in the end nothing may have gone wrong or been asked for."""
    contexts, problems, requests = [], [], []

    def visit(name="hand", width=1400, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(pages[name].as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert problems == []
    assert {url for url in requests if not url.startswith("data:")} <= {
        path.as_uri() for path in pages.values()
    }
