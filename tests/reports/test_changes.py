"""The page shows what has changed since the run before."""

from dataclasses import replace

import pytest

from compare.cli.main import main
from compare.trial.results.store import read_run
from reports.catalogue import section
from reports.diff import difference
from reports.page import render
from reports.summary import figures_of
from tests.reports.synthetic import write_synthetic

TIMERS = ("delay-queue", "cascading-wheel")


@pytest.fixture
def runs(tmp_path):
    """A run, and the same with another time of holding."""
    path = write_synthetic(tmp_path, TIMERS, (1000,), ("uniform",))
    before = read_run(path)
    rows = [
        row._replace(value=row.value * 1.5)
        if (row.contestant, row.subject, row.metric) == ("delay-queue", "hold", "time")
        else row
        for row in before.rows
    ]
    machine = {**before.manifest["machine"], "memory_bytes": 2**30}
    before = replace(before, manifest={**before.manifest, "machine": machine})
    return before, replace(before, rows=rows)


def test_each_change_beyond_noise_is_a_cell(runs):
    before, after = runs
    summary = replace(figures_of(after), before=difference(before, after))
    made = section("changes", summary)
    assert made.headline == f"Compared with {before.path.name}: 1 slower, 11 within noise."
    [table] = made.tables
    [(timer, row)] = table.rows.items()
    [(heading, entry)] = row.items()
    assert (timer.label, heading) == ("delay-queue", ("Cancel and insert, N\xa0=\xa01\u202f000",))
    assert (entry.text, entry.value) == ("+50%", pytest.approx(50))
    assert "Since the run before" in render(summary, "run", {})


def test_without_a_change_there_are_words_alone(runs):
    before, _ = runs
    summary = replace(figures_of(before), before=difference(before, before))
    made = section("changes", summary)
    assert (made.tables, "12 within noise" in made.headline) == ([], True)
    assert section("changes", replace(summary, before=None)) is None


@pytest.mark.usefixtures("bare")
def test_the_report_finds_the_run_before(tmp_path, capsys):
    first, second = (write_synthetic(tmp_path, TIMERS, (1000,), ()) for _ in range(2))
    pages = []
    for path in (first, second):
        assert main(["report", "--run", str(path), "--out", str(tmp_path / path.name)[:-8]]) == 0
        page = capsys.readouterr().out.splitlines()[-1]
        pages.append(open(page).read())  # noqa: SIM115, PTH123
    compared = f"Compared with {first.name}"
    assert [compared in page for page in pages] == [False, True]
    # The machines are not known to be the same.
    assert "Times are compared as multiples of delay-queue." in pages[1]
