import json
import re
import shutil
import subprocess
from itertools import pairwise

import pytest

from compare.trial.results.store import Run, read_run
from reports.charts.pictures import Picture
from reports.page import MARK, ReportError, write_report
from tests.reports.html import Page
from tests.reports.synthetic import write_synthetic
from timers.registry import names


@pytest.fixture(scope="module")
def page(run: Run, tmp_path_factory):
    """The page of the run; PNG files are left empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "png", lambda picture: b"")
        return write_report(run, tmp_path_factory.mktemp("out") / "report")


@pytest.fixture(scope="module")
def read(page):
    return Page(page.read_text(encoding="utf-8"))


def test_the_page_needs_nothing_but_itself(page, read):
    for tag, attributes in read.tags:
        for name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            target = attributes.get(name) or ""
            assert "//" not in target, (tag, target)
            if tag != "a":
                assert target == "" or target.startswith(("#", "data:")), (tag, target)
        assert tag not in ("iframe", "object", "embed")
        assert tag != "script" or "src" not in attributes
    text = page.read_text(encoding="utf-8")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_the_script_runs_to_its_end(page, tmp_path):
    """What it does is tested by `nox -s browser`."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        pytest.skip("chromium is missing (apt-get install chromium); the script was not run")
    # It refuses its own sandbox to root, as in most containers; the page is ours.
    options = ("--headless", "--no-sandbox", f"--user-data-dir={tmp_path}", "--dump-dom")
    command = (chromium, *options, f"{page.as_uri()}#work")
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search('<div id="verdict"[^>]*><p class="headline">Use <b>', shown)
    assert re.search('<details open=""><summary><h2 id="work">', shown)  # its last statements


def test_links_lead_somewhere(page, read):
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in read.tags:
        target = attributes.get("href") or ""
        if tag == "a" and not target.startswith("#"):
            assert (page.parent / target).is_file()
        assert attributes.get("aria-labelledby", ids[0]) in ids
    text = page.read_text(encoding="utf-8")
    assert {*re.findall(r'(?:href="#|url\(#)([^")]+)', text)} <= {*ids}


BY_SCRIPT = ("ranking", "tuned")  # tables that the scripts fill


def test_charts_and_tables_are_accessible(read):
    charts = [attributes for tag, attributes in read.tags if attributes.get("role") == "img"]
    assert len(charts) == sum(tag == "svg" for tag, _ in read.tags) == 13
    assert all(len(attributes["aria-label"] or "") > 40 for attributes in charts)
    assert all(
        attributes.get("scope") in ("row", "col") for tag, attributes in read.tags if tag == "th"
    )
    tables = [attributes for tag, attributes in read.tags if tag == "table"]
    assert tables
    assert all("aria-labelledby" in table or table.get("id") in BY_SCRIPT for table in tables)
    assert len(tables) == sum(tag == "thead" for tag, _ in read.tags) + len(BY_SCRIPT)
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert ("html", {"lang": "en"}) in read.tags


def test_files_lie_beside_the_page(page, run: Run):
    names = {path.name for path in (page.parent / "figures").iterdir()}
    assert len(names) == 2 * 13
    assert {"time-insert.png", "time-insert.svg", "replays.svg"} <= names
    assert {path.name for path in page.parent.iterdir()} == {"index.html", "figures", "report.json"}
    assert f"from what is stored in {run.path.name}." in page.read_text()
    mark = json.loads((page.parent / "report.json").read_text())
    assert (mark["format"], mark["version"]) == ("wheelwork-report", 1)
    assert page.is_absolute()


def test_names_are_escaped(tmp_path):
    path = write_synthetic(
        tmp_path / "runs", names()[:2], sizes=(1000,), workloads=["<b>&'\"$x_1$"]
    )
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["command"] = ["wheelwork", "<script>alert(1)</script>"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    text = write_report(read_run(path), tmp_path / "report").read_text()
    assert "<script>alert" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;" in text


@pytest.mark.usefixtures("bare")
def test_a_report_replaces_a_report_and_leaves_nothing_else_behind(run: Run, tmp_path):
    out = tmp_path / "far" / "deep" / "report"
    write_report(run, out)
    (out / "figures" / "old.png").touch()
    write_report(run, out)
    assert not (out / "figures" / "old.png").exists()
    with pytest.raises(ReportError, match="deep contains report, which would be deleted"):
        write_report(run, out.parent)
    assert [path.name for path in out.parent.iterdir()] == ["report"]


@pytest.mark.usefixtures("bare")
def test_other_files_beside_a_report_are_not_lost(run: Run, tmp_path):
    page = write_report(run, tmp_path / "out")
    (page.parent / "mine").touch()
    with pytest.raises(ReportError, match="contains mine, which would be deleted"):
        write_report(run, tmp_path / "out")
    (page.parent / "mine").unlink()
    (page.parent / MARK).unlink()
    with pytest.raises(ReportError, match="out is not a report of wheelwork"):
        write_report(run, tmp_path / "out")


@pytest.mark.usefixtures("bare")
def test_a_failure_leaves_the_old_report(run: Run, tmp_path, monkeypatch):
    out = tmp_path / "report"
    out.mkdir()  # an empty directory may be used
    write_report(run, out)
    before = (out / "index.html").read_bytes()

    def full(picture, directory, number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reports.page.save", full)
    with pytest.raises(ReportError, match=r"^cannot write .*: No space left on device$"):
        write_report(run, out)
    assert (out / "index.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]
