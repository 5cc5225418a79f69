"""The section on claims, from a run of two that need no peer."""

from dataclasses import replace

import pytest

from compare.base import formats
from compare.trial.claims.catalogue import BY_NUMBER
from compare.trial.claims.run import Settled, run_claims
from compare.trial.results.schema import Row
from compare.trial.results.store import read_run
from reports import claims
from reports.catalogue import plots, section, sections
from reports.page import write_report
from reports.summary import figures_of
from tests.words import plain

RING, SETS = 15, 18


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return read_run(run_claims([RING, SETS], quick=True, runs=str(tmp_path_factory.mktemp("runs"))))


@pytest.fixture(scope="module")
def summary(run):
    return figures_of(run)


def test_the_headline_counts_the_verdicts(summary):
    assert plain(claims.headline(summary)) == "Of 2 claims, 1 holds, 1 is wrong."


def test_the_lead_names_the_verdicts_that_rest_on_times(summary):
    assert claims.lead(summary.claims) == claims.LEAD  # those of counts alone
    timed = [Settled(BY_NUMBER[number], ()) for number in (8, 15, 30)]
    assert claims.lead(timed).endswith("on a busy one: claims 8, 30.")


def test_a_claim_has_a_table_with_its_verdict_and_its_criterion(summary):
    tables = section("claims", summary).tables
    assert [table.name for table in tables] == ["claim-15", "claim-18"]
    ring, sets = tables
    assert sets.caption.endswith("the next tick. Wrong.")
    assert BY_NUMBER[SETS].rule in sets.note and "`" not in ring.note
    assert (ring.of, sets.of) == ("measured", "measured")
    rows = {who.name: row for who, row in ring.rows.items()}
    at = f"connections {formats.count(1000)}"
    assert rows["unordered-list"]["timers looked at in a step", at].value > 900
    drawn = {who.name: row for who, row in sets.rows.items()}["as drawn"]
    assert drawn["closed too early", ""].value > 0


def test_a_table_shows_what_the_verdict_rests_on(summary):
    claim = BY_NUMBER[25]
    rows = [
        Row(who, claim.experiment.name, size, metric, repeat, factor * time)
        for who in ("cpp-wheel", "cascading-wheel")
        for metric in ("insert_time", "cancel_time")
        for size, factor in ((10_000, 1.0), (10**6, 3.0))
        for repeat, time in enumerate((7.0, 5.0, 9.0))
    ]
    found = Settled(claim, rows)
    assert "takes 5 and 15 ns to arm" in found.verdict.text
    cells = [cell.value for row in claims.table(found).rows.values() for cell in row.values()]
    assert cells == [5.0, 15.0] * 4
    (chart,) = claims.plots(replace(summary, claims=[found]))
    points = [line for panel in chart.panels.values() for line in panel.series.values()]
    assert [[point.value.value for point in line] for line in points] == [[5.0, 15.0]] * 4


def test_what_all_columns_have_in_common_is_named(summary):
    ring = summary.claims[0]
    looked = [row for row in ring.rows if row.metric == "looked_at"]
    assert claims.table(replace(ring, rows=looked)).of == "timers looked at in a step"
    small = [row for row in ring.rows if row.size == 1000]
    assert plain(claims.table(replace(ring, rows=small)).of) == "connections 1 000"


def test_a_chart_is_over_the_number_that_is_varied(summary):
    (chart,) = plots(summary)["claims"]  # that of the ring of sets has no such number
    assert chart.title == "Claim 15: idle connections"
    (panel, *_) = chart.panels.values()
    assert [point.x for point in next(iter(panel.series.values()))] == [1000, 10_000]


def test_the_page_shows_claims_alone(run, summary, tmp_path):
    page = write_report(run, tmp_path / "report").read_text()
    assert "<title>Claims about timers – wheelwork</title>" in page
    assert 'id="table-claim-18"' in page and 'id="chart-claim-15"' in page
    assert {each.name for each in sections(summary)} == {"claims", "method"}
