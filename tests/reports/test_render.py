"""What a run says is on the page, in its place."""

import re
from dataclasses import replace

import pytest

from compare.trial.bench.task import TASKS
from reports.catalogue import sections
from reports.method import facts
from reports.page import render
from reports.palette import INK, look_of
from tests.reports.html import Page
from tests.reports.primes import SOURCES
from timers.registry import names


@pytest.fixture(scope="module")
def rendered(distinct):
    return render(distinct, "the-run", {})


def test_each_cell_of_the_page_is_that_of_its_table(rendered, distinct):
    page = Page(rendered)
    tables = [table for section in sections(distinct) for table in section.tables]
    assert len(page.tables) == len(tables)
    colours = []
    for table, rows in zip(tables, page.tables.values(), strict=True):
        assert [tuple(cell[1:]) for cell in rows[0]] == [(table.of,), *table.headings]
        assert [cell[0] for cell in rows[0]] == [
            "",
            *("number" if table.is_number(heading) else "" for heading in table.headings),
        ]
        for contestant, cells in zip(table.rows, rows[1:], strict=True):
            assert cells[0][2:] == [text for text in (contestant.short, contestant.remark) if text]
            entries = [table.entry(contestant, heading) for heading in table.headings]
            for entry, cell in zip(entries, cells[1:], strict=True):
                assert ("number" in cell[0].split()) == (entry.value is not None)
                assert ("best" in cell[0].split()) == entry.best
                assert cell[1:] == [text for text in (entry.text, entry.detail) if text]
            colours.append(look_of(contestant.timer).colour)
    assert [colour.removeprefix("color:") for colour in page.colours] == [
        "currentColor" if colour == INK else colour for colour in colours
    ]


def test_the_page_says_what_it_is_of(rendered, distinct):
    text = Page(rendered).text
    assert "Measured on Some CPU, 31 January 2026." in text
    assert "Figures from wheelwork compare 'two words'" in text
    assert "Made by wheelwork 1.2.3 from what is stored in the-run." in text
    for section in sections(distinct):
        for said in (section.title, section.headline, section.lead):
            assert " ".join(said.split()) in text
        for term, sentences in section.terms.items():
            start = text.index(" ".join(term.split()))
            assert all(" ".join(sentence.split()) in text[start:] for sentence in sentences)


def test_the_answer_comes_first_and_then_the_traffic(rendered, distinct):
    text = "".join(Page(rendered).texts)
    for source in distinct.own:
        place = text.index(f"Your traffic: {source.short}")
        assert place > text.index("Which timer for my case?")
        for term, fact in facts(distinct, source).items():
            assert f"{term.capitalize()}{fact}" in text[place:]
    assert text.count("Your traffic:") == len(distinct.own) == 2


def test_the_limits(distinct):
    def limits(**changes):
        text = render(replace(distinct, **changes), "run", {})
        return re.findall("<li>(.*)</li>", text[text.index('id="limits"') :])

    texts = limits()
    assert texts[0].startswith("This is one run on one machine.")
    assert "one thread, on one of 5 cores." in texts[1]
    machine = distinct.manifest["machine"] | {"cores": 1}
    alone = limits(manifest={**distinct.manifest, "machine": machine})
    assert alone[1].startswith("Except for the callers, everything runs in one thread. The locks")


def test_the_terms(rendered):
    text = plain(rendered[rendered.index('id="reading"') :])
    assert [text.index(task.meaning) for task in TASKS] == sorted(
        map(text.index, (task.meaning for task in TASKS))
    )
    for part in (
        "the median of the samples",
        "compares with delay-queue",
        "greatest, 10% wider at each end with fewer than 5",
        "90% confidence",
        "“Over budget” means that the timer took longer than 1.5 s",
    ):
        assert part in text, part
    assert "Python loop: heapq-delay-queue (Python loop)." in plain(rendered)


def plain(text):
    return text.replace("\u2060", "")


@pytest.mark.parametrize(
    ("created", "shown"),
    [("2026-03-09T01:00:00+00:00", "9 March 2026"), ("some day", "some day")],
)
def test_the_day_of_the_page(distinct, created, shown):
    manifest = {**distinct.manifest, "created": created, "machine": {"platform": "A platform"}}
    text = render(replace(distinct, manifest=manifest), "run", {})
    assert f"Measured on A platform, {shown}." in text


def test_each_timer_has_a_colour_and_a_marker_of_its_own():
    registered = [look_of(timer) for timer in names()]
    assert len({look.colour for look in registered}) == len(registered)
    assert len({look.marker for look in registered}) == len(registered)
    # Those of other timers are among the looks that are left.
    assert {look_of(f"some.where:Mine{n}") for n in range(50)}.isdisjoint(registered)


def test_ranges_stay_on_one_line(rendered):
    assert re.search(r"\d–\u2060\d", rendered)
    assert not re.search(r"\d–\d", rendered)


def test_an_interrupted_run_says_what_is_missing(distinct, rendered):
    missing = [
        "pending-1000",
        "callers",
        "costs-system-timer-keepalive",
        "costs-python-one",
        "tails-20000",
        "replay-1",
        "tails-replay-0",
        "peers-1000",
        "overload",
        "some-other",
    ]
    text = Page(render(replace(distinct, missing=missing), "run", {})).text
    first, second, *_ = SOURCES
    words = (
        "operations with 1 000 timers pending, the costs of services and event loops in real time,"
        " what Python, through a SystemTimer pays with keep-alive, what a Python program pays with"
        " one timeout for all, the slowest operations with 20 000 timers pending, the replay of"
        f" {second}, the slowest operations in the replay of {first}, timers of other languages"
        " with 1 000 timers pending, lateness under overload, some other"
    )
    assert f"This run was not finished. Not measured: {words}." in text
    assert "Not finished" in text and "ot finished" not in Page(rendered).text
