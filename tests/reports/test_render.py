"""What a run says is on the page, in its place."""

import re
from dataclasses import replace

import pytest

from reports.page import render
from reports.palette import INK, look_of
from reports.sections.catalogue import sections
from tests.reports.html import Reader, Tables
from timers.registry import names


@pytest.fixture(scope="module")
def rendered(distinct):
    return render(distinct, "the-run", {})


def test_each_cell_of_the_page_is_that_of_its_table(rendered, distinct):
    found = Tables(rendered)
    tables = [table for section in sections(distinct) for table in section.tables]
    assert len(found.tables) == len(tables)
    colours = []
    for table, rows in zip(tables, found.tables.values(), strict=True):
        heads = [cell[1] for cell in rows[0]]
        assert heads == [table.of, *table.headings]
        assert [cell[0] for cell in rows[0]] == [
            "",
            *("number" if table.is_number(column) else "" for column in range(len(heads) - 1)),
        ]
        for (who, entries), cells in zip(table.rows.items(), rows[1:], strict=True):
            assert cells[0][1:] == [text for text in (who.short, who.remark) if text]
            for entry, cell in zip(entries, cells[1:], strict=True):
                classes = {name for name in ("number", "best") if getattr(entry, name)}
                assert set(cell[0].split()) == classes
                assert cell[1:] == [text for text in (entry.text, entry.detail) if text]
            colours.append(look_of(who.timer).colour)
    assert [colour.removeprefix("background:") for colour in found.colours] == [
        "currentColor" if colour == INK else colour for colour in colours
    ]


def test_the_page_says_what_it_is_of(rendered, distinct):
    reader = Reader()
    reader.feed(rendered)
    text = " ".join(" ".join(reader.texts).split()).replace("\u2060", "")
    names = ", ".join(who.plain for who in distinct.contestants[:-1])
    assert f"{names} and Mine on Some CPU, 31 January 2026." in text
    assert "Made by wheelwork 1.2.3 from what is stored in the-run." in text
    for section in sections(distinct):
        assert " ".join(section.headline.split()) in text
        for term, sentences in section.terms.items():
            at = text.index(" ".join(term.split()))
            assert all(" ".join(one.split()) in text[at:] for one in sentences)
        for point in section.points:
            assert " ".join(point.split()) in text


@pytest.mark.parametrize(
    ("created", "shown"),
    [("2026-03-09T01:00:00+00:00", "9 March 2026"), ("some day", "some day")],
)
def test_the_day_of_the_page(distinct, created, shown):
    manifest = {**distinct.manifest, "created": created, "machine": {"platform": "A platform"}}
    text = render(replace(distinct, manifest=manifest), "run", {})
    assert f"on A platform, {shown}." in text


def test_each_timer_has_a_colour_and_a_marker_of_its_own():
    looks = [look_of(timer) for timer in (*names(), "some.where:Mine")]
    assert len({look.colour for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)
    assert look_of("some.where:Mine") == look_of("some.where:Mine")


def test_ranges_stay_on_one_line(rendered):
    assert re.search(r"\d–\u2060\d", rendered)
    assert not re.search(r"\d–\d", rendered)
