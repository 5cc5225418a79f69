import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from compare.bench.store import Run, read_run
from reports.page import ReportError, check_target, render, write_report
from reports.palette import INK, look_of
from reports.sections.catalogue import sections
from tests.reports.synthetic import defaults, write_synthetic


class Reader(HTMLParser):
    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


@pytest.fixture(scope="module")
def read(page):
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_needs_nothing_but_itself(page, read):
    for tag, attributes in read.tags:
        for name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            target = attributes.get(name) or ""
            assert "//" not in target, (tag, target)
            if tag != "a":
                assert target == "" or target.startswith(("#", "data:")), (tag, target)
        assert tag not in ("script", "iframe", "object", "embed")
    text = page.read_text(encoding="utf-8")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_links_lead_somewhere(page, read):
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in read.tags:
        target = attributes.get("href") or ""
        if tag == "a" and target.startswith("#"):
            assert target[1:] in ids
        elif tag == "a":
            assert (page.parent / target).is_file()
        for name in ("aria-labelledby",):
            assert attributes.get(name, ids[0]) in ids


def test_the_page_begins_with_the_answer(read):
    text = " ".join(" ".join(read.texts).split())
    assert text.index("is the best all-rounder") < text.index(
        "Time against the number of pending timers"
    )


def test_the_page_holds_it_all(read):
    text = " ".join(" ".join(read.texts).split())
    for timer, _ in defaults():
        assert timer in text
    for part in (
        "too long",
        "10 min predicted",
        "How to read this page",
        "How it was measured",
        "wheelwork compare --sizes 1000",
        "Example CPU",
        "0123456789abcdef",
        "What these figures cannot say",
        "Varghese & Lauck 1987, scheme 4",
        "calendar queues",
    ):
        assert part in text, part


def test_charts_and_tables_are_accessible(read):
    charts = [attributes for tag, attributes in read.tags if attributes.get("role") == "img"]
    assert len(charts) == 13
    assert all(len(attributes["aria-label"] or "") > 40 for attributes in charts)
    assert all(
        attributes.get("scope") in ("row", "col") for tag, attributes in read.tags if tag == "th"
    )
    tables = [attributes for tag, attributes in read.tags if tag == "table"]
    assert tables
    assert all(attributes["aria-labelledby"] for attributes in tables)
    assert len(tables) == sum(tag == "thead" for tag, _ in read.tags)
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert ("html", {"lang": "en"}) in read.tags


def test_files_lie_beside_the_page(page):
    names = {path.name for path in (page.parent / "figures").iterdir()}
    assert len(names) == 2 * 13
    assert {"time-insert.png", "time-insert.svg", "lateness.svg"} <= names
    assert {path.name for path in page.parent.iterdir()} == {"index.html", "figures", "report.json"}
    assert page.is_absolute()


def test_names_are_escaped(tmp_path):
    path = write_synthetic(
        tmp_path / "runs", defaults()[:2], sizes=(1000,), workloads=["<b>&'\"$x_1$"]
    )
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["command"] = ["wheelwork", "<script>alert(1)</script>"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    text = write_report(read_run(path), tmp_path / "report").read_text()
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;" in text


@pytest.mark.usefixtures("bare")
def test_a_report_replaces_a_report_and_leaves_nothing_else_behind(run: Run, tmp_path):
    out = tmp_path / "deep" / "report"
    write_report(run, out)
    (out / "figures" / "old.png").touch()
    write_report(run, out)
    assert not (out / "figures" / "old.png").exists()
    assert [path.name for path in out.parent.iterdir()] == ["report"]


@pytest.mark.usefixtures("bare")
def test_an_empty_directory_may_be_used(run: Run, tmp_path):
    (tmp_path / "report").mkdir()
    write_report(run, tmp_path / "report")


@pytest.mark.usefixtures("bare")
def test_nothing_else_is_replaced(run: Run, tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.txt").write_text("precious")
    with pytest.raises(ReportError, match="thesis is not a report of wheelwork"):
        write_report(run, out)
    assert [path.name for path in out.iterdir()] == ["chapter.txt"]
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match="file is not a directory"):
        check_target(tmp_path / "file")
    with pytest.raises(ReportError, match="file is not a directory"):
        check_target(tmp_path / "file" / "below")


def test_no_permission_is_one_line(run: Run, unwritable):
    with pytest.raises(ReportError, match="no permission to write"):
        write_report(run, unwritable / "report")
    assert list(unwritable.iterdir()) == []


@pytest.mark.usefixtures("bare")
def test_a_failure_leaves_the_old_report(run: Run, tmp_path, monkeypatch):
    out = tmp_path / "report"
    write_report(run, out)
    before = (out / "index.html").read_bytes()

    def full(picture, directory):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reports.page.save", full)
    with pytest.raises(ReportError, match=r"^cannot write .*: No space left on device$"):
        write_report(run, out)
    assert (out / "index.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


class Tables(HTMLParser):
    """The tables of a page: for each the rows, each a list of (text, classes) of its cells."""

    def __init__(self, text: str):
        super().__init__()
        self.tables: dict[str, list[list[list[str]]]] = {}
        self.colours: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        if tag == "table":
            self.rows = self.tables.setdefault(own["aria-labelledby"], [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append([own.get("class") or ""])
            self.inside = True
        elif tag == "span" and self.inside:
            self.colours.append(own["style"])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data):
        if self.inside and data.strip():
            self.rows[-1][-1].append(data.replace("\u2060", ""))


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
        assert heads == table.headings
        assert [cell[0] for cell in rows[0]] == [
            "number" if table.is_number(column) else "" for column in range(-1, len(heads) - 1)
        ]
        for row, cells in zip(table.rows, rows[1:], strict=True):
            assert cells[0][1:] == [text for text in (row.heading, row.remark) if text]
            for entry, cell in zip(row.entries, cells[1:], strict=True):
                classes = {name for name in ("number", "best") if getattr(entry, name)}
                assert set(cell[0].split()) == classes
                assert cell[1:] == [text for text in (entry.text, entry.detail) if text]
            colours.append(look_of(row.timer).colour)
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
        plain = " ".join(section.headline.split())
        assert plain in text.replace("\xa0", " ") or plain in text
        for term, sentences in section.terms:
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
