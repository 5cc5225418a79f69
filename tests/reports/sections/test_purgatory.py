"""The section of the enqueue experiment says what its trials found, and stands on both pages."""

from dataclasses import replace

import pytest

from compare.bench.store import read_run
from reports import formats
from reports.page import write_report
from reports.sections.purgatory import of_memory, of_rates, section
from reports.summary import figures_of
from tests.reports.synthetic import write_synthetic
from tests.reports.trials import trials, write_trials


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return write_trials(tmp_path_factory.mktemp("trials"))


def plain(text):
    return text.replace("\u202f", " ").replace("\xa0", " ")


def texts(table):
    return {
        who.short: [plain(f"{cell.text} {cell.detail}".strip()) for cell in row.values()]
        for who, row in table.rows.items()
    }


def test_the_headline_compares_where_half_of_the_requests_time_out(stored):
    summary = figures_of(read_run(stored))
    assert len(summary.trials) == len(trials())
    found = section(summary)
    assert plain(found.headline) == (
        "Where half of the requests time out, the new design keeps up with at least 40 000 "
        "requests/s, the old one with 10 000."
    )


def test_the_headline_is_about_load_high_alone(stored):
    """At load low the new design fails at every rate but the lowest."""
    found = figures_of(read_run(stored))
    rows = [
        row | {"failed": "x" if (row["load"], row["rate"]) == ("low", 40_000) else row["failed"]}
        for row in trials()
    ]
    assert section(replace(found, trials=rows)).headline == section(found).headline
    new, old = {"achieved": 20_000.0}, {"achieved": 40_000.0}
    rows = [
        row | (old if row["design"] == "scanning" else new) if row["rate"] == 40_000 else row
        for row in trials()
        if row["kind"] == "rate"
    ]
    other = section(replace(found, trials=rows))
    assert plain(other.headline).endswith(
        "the new design keeps up with 10 000 requests/s, the old one with at least 40 000."
    )
    assert [table.name for table in other.tables] == ["purgatory-rates"]


def test_each_design_is_shown_at_the_highest_rate_that_it_kept_up_with():
    rows = trials()
    found = texts(of_rates(rows))
    assert list(found) == ["new, load low", "old, load low", "new, load high", "old, load high"]
    at = {(row["load"], row["design"], row["rate"]): row for row in rows if row["kind"] == "rate"}
    new, old = at["low", "purging", 40_000], at["low", "scanning", 10_000]
    level = round(new["cpu_us"])
    assert found["new, load low"] == [
        "40 000 or more",
        f"{level}.0 µs",
        f"{level / 10:.2f} µs",
        f"{level}.0 MiB",
        f"{level / 4:g}",
        f"{level}",
        f"{level * 3}",
        f"{level / 10:g}%",
        *map(plain, map(formats.count, (level * 100, level * 100 + 1, level))),
    ]
    assert found["old, load low"][:2] == ["10 000", f"{old['cpu_us']:.1f} µs"]
    assert found["old, load low"][-3:] == ["–"] * 3


def test_a_design_that_keeps_up_with_no_rate_is_shown_at_the_first(stored):
    rows = [
        row | {"failed": "x"} if (row["load"], row["design"]) == ("high", "scanning") else row
        for row in trials()
    ]
    assert section(replace(figures_of(read_run(stored)), trials=rows)).headline == ""
    found = texts(of_rates(rows))
    first = next(row for row in rows if row["kind"] == "rate" and row["failed"])
    level = first["cpu_us"]
    assert found["old, load high"] == [
        "0",
        f"{level:.1f} µs",
        f"{level / 10:.2f} µs",
        f"{level:.1f} MiB",
        f"{level / 4:.3g}",
        f"{level:.0f}",
        f"{level * 3:.0f}",
        f"{level / 10:.1f}%",
        *["–"] * 3,
    ]
    assert found["new, load high"][0] == "40 000 or more"


def repeated(kind, *factors):
    """Trials of one kind, each repeated with another figure of processor time."""
    rows = [row for row in trials() if row["kind"] == kind]
    return [row | {"cpu_us": row["cpu_us"] * factor} for row in rows for factor in factors]


def test_repeated_trials_show_their_median():
    found = texts(of_rates(repeated("rate", 3.0, 1.0, 5.0)))
    once = texts(of_rates(repeated("rate", 1.0)))
    for case, row in found.items():
        level = float(once[case][1].removesuffix(" µs"))
        assert row[1] == f"{3 * level:.1f} µs", case
        assert row[0] == once[case][0]


def test_the_trials_with_little_memory_say_how_they_ended():
    table = of_memory(trials())
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
    names = ("rates", "limit", "compiled")
    assert {path.name for path in (page.parent / "figures").glob("*.svg")} == {
        f"purgatory-{name}.svg" for name in names
    }


def test_the_experiment_is_on_the_page_of_its_own_run_alone(tmp_path):
    comparison = write_synthetic(tmp_path, (), sizes=(1000,), workloads=())
    write_trials(tmp_path)
    text = write_report(read_run(comparison), tmp_path / "report").read_text(encoding="utf-8")
    assert 'id="purgatory"' not in text
