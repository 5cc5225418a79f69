"""The section of the enqueue experiment says what its trials found."""

from dataclasses import replace

import pytest

from compare.base import formats
from compare.trial.results.store import read_run
from reports.catalogue import section
from reports.page import write_report
from reports.purgatory import of_memory, of_rates
from reports.summary import Summary, figures_of
from tests.reports.trials import trials, write_trials
from tests.words import plain


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return write_trials(tmp_path_factory.mktemp("trials"))


def of(rows):
    return Summary({}, (), trials=rows)


def texts(table):
    return {
        case.short: [plain(f"{cell.text} {cell.detail}".strip()) for cell in row.values()]
        for case, row in table.rows.items()
    }


def test_the_headline_compares_where_half_of_the_requests_time_out(stored):
    summary = figures_of(read_run(stored))
    assert len(summary.trials) == len(trials())
    shown = section("purgatory", summary)
    assert plain(shown.headline) == (
        "Where half of the requests time out, the new design keeps up with at least 40 000 "
        "requests/s, the old one with 10 000."
    )


def test_the_headline_is_about_load_high_alone(stored):
    """At load low the new design fails at every rate but the lowest."""
    summary = figures_of(read_run(stored))
    rows = [
        row | {"failed": "x" if (row["load"], row["rate"]) == ("low", 40_000) else row["failed"]}
        for row in trials()
    ]
    assert (
        section("purgatory", replace(summary, trials=rows)).headline
        == section("purgatory", summary).headline
    )
    new, old = {"achieved": 20_000.0}, {"achieved": 40_000.0}
    rows = [
        row | (old if row["design"] == "scanning" else new) if row["rate"] == 40_000 else row
        for row in trials()
        if row["kind"] == "rate"
    ]
    other = section("purgatory", replace(summary, trials=rows))
    assert plain(other.headline).endswith(
        "the new design keeps up with 10 000 requests/s, the old one with at least 40 000."
    )
    assert [table.name for table in other.tables] == ["purgatory-rates"]


def shown(row):
    """What stands in a row beside its rate."""
    late = (row[f"late_{which}_ms"] for which in ("p50", "p99", "max"))
    totals = (row[name] for name in ("estimated_total", "exact_total", "estimate_error"))
    return [
        plain(formats.nanoseconds(row["cpu_us"] * 1e3)),
        plain(formats.nanoseconds(row["gc_us"] * 1e3)),
        plain(formats.data_size(row["peak_bytes"])),
        *(plain(formats.amount(value)) for value in late),
        plain(formats.share(row["share_expired"])),
        *("–" if total is None else plain(formats.count(round(total))) for total in totals),
    ]


def test_each_design_is_shown_at_the_highest_rate_that_it_kept_up_with(stored):
    """The first rate if it kept up with none."""
    rows = trials()
    by_rate = {
        (row["load"], row["design"], row["rate"]): row for row in rows if row["kind"] == "rate"
    }
    cells = texts(of_rates(of(rows)))
    assert cells == {
        "new, load low": ["40 000 or more", *shown(by_rate["low", "purging", 40_000])],
        "old, load low": ["10 000", *shown(by_rate["low", "scanning", 10_000])],
        "new, load high": ["40 000 or more", *shown(by_rate["high", "purging", 40_000])],
        "old, load high": ["10 000", *shown(by_rate["high", "scanning", 10_000])],
    }
    rows = [
        row | {"failed": "x"} if (row["load"], row["design"]) == ("high", "scanning") else row
        for row in rows
    ]
    assert section("purgatory", replace(figures_of(read_run(stored)), trials=rows)).headline == ""
    failed = ["0", *shown(by_rate["high", "scanning", 10_000])]
    assert texts(of_rates(of(rows))) == cells | {"old, load high": failed}


def test_repeated_trials_show_their_median():
    def repeated(*factors):
        rows = [row for row in trials() if row["kind"] == "rate"]
        rows = [row | {"cpu_us": row["cpu_us"] * factor} for row in rows for factor in factors]
        return texts(of_rates(of(rows)))

    assert len(repeated(3.0)) == 4
    assert repeated(3.0, 1.0, 5.0) == repeated(3.0) != repeated(1.0)


def test_the_trials_with_little_memory_say_how_they_ended():
    table = of_memory(of(trials()))
    assert "16.0 MiB" in plain(table.caption)
    old, new = (round(row["cpu_us"]) for row in trials() if row["kind"] == "memory")
    assert plain(table.caption).endswith("at 10 000 requests/s")
    assert texts(table) == {
        "old, load low": ["100 000", "10 000", f"{old}.0 MiB", "MemoryError"],
        "new, load low": ["1 000", "10 000", f"{new}.0 MiB", "–"],
    }


def test_the_page_of_the_experiment_has_its_section_alone(stored, tmp_path):
    page = write_report(read_run(stored), tmp_path / "report")
    text = page.read_text(encoding="utf-8")
    assert 'id="purgatory"' in text
    assert 'id="method"' in text
    assert 'id="schemes"' not in text
    assert "Measured on Example CPU" in text
    assert "<h1>Purgatories compared</h1>" in text
    assert "2\xa0cores usable</li>" in text
    assert {path.name for path in (page.parent / "figures").glob("*.svg")} == {
        "purgatory-rates.svg",
        "purgatory-limit.svg",
    }
