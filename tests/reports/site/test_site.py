"""The pages of the site: their links, and what they say."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from compare.trial.results.contributed import contributed, obstacles
from compare.trial.results.schema import OVER_BUDGET, Row
from compare.trial.results.store import RunError
from reports.site.build import ROOT, Site, table
from reports.site.lesson import EVEN, EXPONENTIAL, SCHEMES, growth, searched
from reports.site.machines import cells, pairs
from reports.summary import figures_of
from tests.words import one_line, plain
from timers.registry import names

PAGES = {"index.html", "wheels.html", "timers.html", "results.html", "claims/index.html"}
MOST_BYTES = 10_000_000


class Page(HTMLParser):
    """The links, ids and heads of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.titles, self.description, self.lacks = [], set(), [], "", []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        if tag == "option" and "/" in found.get("value", ""):
            self.links.append(found["value"])
        if "id" in found:
            self.ids.add(found["id"])
        if tag == "meta" and found.get("name") == "description":
            self.description = found["content"]
        if tag == "img" and not found.get("alt"):
            self.lacks.append(found["src"])


def broken(root, *, docs=False):
    """The links of all pages that lead nowhere or to another host; with `docs`, also into them."""
    pages = {path: Page(path) for path in root.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            into_docs = link.startswith("docs/") or "/docs/" in link
            if parts.scheme == "data" or (into_docs and not docs):
                continue
            target, anchor = urldefrag(link)
            file = (path.parent / unquote(target)).resolve() if target else path
            if parts.scheme or not file.is_file() or (anchor and anchor not in pages[file].ids):
                yield f"{path.relative_to(root)}: {link}"


def test_every_link_leads_somewhere(site):
    assert [*broken(site)] == []


def test_the_site_has_its_pages_and_is_small(site):
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert pages > PAGES
    assert len([page for page in pages if page.startswith("answer/")]) == 2  # one for a machine
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < MOST_BYTES
    assert "/tmp" not in "".join(path.read_text() for path in site.glob("*.html"))


def test_every_page_has_a_title_a_description_and_texts_for_images(site):
    titles = {}
    for path in site.rglob("*.html"):
        page, text = Page(path), path.read_text()
        assert len(page.description) > 30 and not page.lacks, path
        [title] = re.findall("<title>(.*?)</title>", text)
        titles[title] = path
        assert '<html lang="en">' in text and 'name="viewport"' in text
        assert text.count('<nav class="site"') == 1
    assert {"Which structure should hold your timeouts? – wheelwork"} < titles.keys()


def test_a_broken_link_would_be_found(site, tmp_path):
    page = tmp_path / "index.html"
    page.write_text('<a href="gone.html">x</a><a href="#no">y</a><img src="https://a.b/c.png">')
    assert len([*broken(tmp_path)]) == 3


def test_machines_agree_on_all_but_what_was_swapped(results):
    runs = contributed(results / "results")
    other, once = pairs(runs)
    assert [pair.is_one_machine for pair in (other, once)] == [False, False]
    for pair in (other, once):
        found = {
            (each.subject.task, each.first, each.second) for each in pair.ranking.contradictions
        }
        assert {task for task, _, _ in found} == {"hold"}
        assert ("hold", "hashed-wheel", "cascading-wheel") in found
        assert pair.counts.startswith("all ")
    [same] = pairs(runs[1:])
    assert same.is_one_machine and not same.ranking.contradictions
    differ = {cell.title for cell in cells(runs) if not cell.is_shared}
    assert {plain(title).partition(",")[0] for title in differ} == {"Cancel and insert"}


def test_a_count_that_differs_is_told(results):
    first, _, third = contributed(results / "results")
    rows = [
        row._replace(value=row.value + 1) if row.metric == "timers_touched" else row
        for row in third.rows
    ]
    changed = sum(row.metric == "timers_touched" for row in rows)
    third = type(third)(third.path, third.manifest, rows)
    [pair] = pairs([first, third])
    assert changed and pair.counts.startswith(f"{changed} of ")


def test_the_lesson_has_seven_schemes_and_their_figures(results):
    assert len(SCHEMES) == 7
    assert {scheme.contestant for scheme in SCHEMES} <= {*names()}
    rows = contributed(results / "results")[0].rows
    found = {scheme.contestant: counts for scheme, counts in growth(rows)}
    assert {plain(size) for size in found["delay-queue"]} == {"1 000", "10 000"}
    assert "over budget" not in found["delay-queue"].values()
    assert set(found["ordered-list"].values()) == {"not measured"}
    beyond = Row("delay-queue", "expiry-event", 1_000, "time", None, None, OVER_BUDGET)
    kept = [row for row in rows if row.subject != "expiry-event"]
    found = {scheme.contestant: counts for scheme, counts in growth([*kept, beyond])}
    assert set(found["delay-queue"].values()) == {"over budget"}


def test_a_start_in_an_ordered_list_searches_a_half_or_a_third():
    """The rank of a new deadline among the rest of delays that have run for a while."""
    assert searched(EXPONENTIAL, 200) == pytest.approx(200 / 2, rel=0.05)
    assert searched(EVEN, 200) == pytest.approx(200 / 3, rel=0.05)


def test_the_runs_of_the_repository_can_be_shown():
    runs = contributed(ROOT / "results")
    assert len(runs) > 1
    for run in runs:
        assert figures_of(run).contestants and not [*obstacles(run)]


def test_without_runs_there_is_no_site(tmp_path):
    with one_line(RunError, "there is no stored run"):
        Site(tmp_path, [])


def test_a_table_of_the_docs_is_found_whole():
    text = "x\n\n| a | b |\n|---|---|\n| `1` | 2 |\n| 3 |  |\n\n| c | d |\n"
    assert [len(row) for row in table(text, "| a")] == [2, 2, 2]
    with pytest.raises(ValueError, match="substring not found"):
        table(text, "| z")
