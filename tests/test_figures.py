"""The pages of measured figures: what a page says, and what a failed command leaves."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.bench import figures
from tests.bench.figures import FIGURES, Figure, main

PAGES = Path(__file__).parents[1] / "docs" / "figures"


def command(code):
    return f"{sys.executable} -c {shlex.quote(code)}"


@pytest.fixture
def quick(monkeypatch):
    """Pages whose commands are quick: two that succeed, a verdict, and two that fail."""
    row = "print('a' * 300); print(); print('| a |'); print('|---|')"
    error = "print('| lost |'); import sys; sys.exit('out of luck')"
    commands = {"one": row, "judge": f"{row}; exit(1)", "bad": error, "worse": "1 / 0"}
    known = {
        name: Figure(f"Title of {name}", "A sentence.", 1, (command(code),), name != "bad")
        for name, code in commands.items()
    }
    monkeypatch.setattr(figures, "FIGURES", known)


def test_a_page_has_its_facts_and_the_output(quick, tmp_path, capsys):
    assert main(["one", "judge"], tmp_path) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["judge.md", "one.md"]
    text = (tmp_path / "one.md").read_text()
    assert text.startswith("# Title of one\n\nA sentence.\n\nMachine: ")
    assert re.search(r"\nCommit: \w+( with changes)?\. Date: \d{4}-\d\d-\d\d\.\n\nCommand: `", text)
    assert text.endswith(f"```text\n{'a' * 120}\n{'a' * 120}\n{'a' * 60}\n```\n\n| a |\n|---|\n")
    assert max(map(len, text.splitlines())) == 120
    assert "one: about 1 minutes" in capsys.readouterr().out


def test_a_failed_command_leaves_its_page_and_the_others_are_made(quick, tmp_path, capsys):
    for name in ("bad", "worse"):
        (tmp_path / f"{name}.md").write_text("as it was")
    assert main([], tmp_path) == 1
    for name in ("bad", "worse"):
        assert (tmp_path / f"{name}.md").read_text() == "as it was"
    assert (tmp_path / "judge.md").exists()
    failures = [line for line in capsys.readouterr().out.splitlines() if "as it was" in line]
    assert [line.split(":")[0] for line in failures] == ["bad", "worse"]
    assert failures[0].endswith("exit code 1: out of luck")


def test_an_unknown_page_is_refused_before_any_is_made(quick, tmp_path):
    with pytest.raises(SystemExit, match="^no page is called 'too'; there are one, judge") as end:
        main(["one", "too"], tmp_path)
    assert "\n" not in str(end.value)
    assert not list(tmp_path.iterdir())


def test_every_page_can_be_made_anew():
    assert {path.stem for path in PAGES.glob("*.md")} - {"index"} <= FIGURES.keys()
