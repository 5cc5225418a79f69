"""The documentation: its examples run, its links lead somewhere, its code blocks are Python."""

import ast
import contextlib
import re
import runpy
import shlex
import sys
from pathlib import Path

import click
import pytest

from compare.cli.main import cli
from timers.registry import names

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
WITHOUT_SPARK = [path for path in EXAMPLES if not path.name.startswith("spark_")]
"""Those on Spark are run by tests/compare/spark/test_examples.py."""

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("example", WITHOUT_SPARK, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_something(example, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    monkeypatch.syspath_prepend(str(example.parent))  # as `python docs/examples/NAME.py` does
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_every_example_is_on_the_page_of_examples():
    page = (ROOT / "docs" / "examples.md").read_text()
    for example in EXAMPLES:
        assert f"](examples/{example.name})" in page, example.name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_python_blocks_can_be_parsed(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        if not block.startswith(">>>"):
            ast.parse(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lines_are_short(page):
    """All but rows of tables, which cannot be broken."""
    lines = enumerate(page.read_text().splitlines(), 1)
    assert not [n for n, line in lines if len(line) > 120 and not line.startswith("|")]


def commands_in(page):
    """The arguments of each `wheelwork` command in the shell blocks of a page."""
    for block in re.findall(r"```(?:sh)?\n(.*?)```", page.read_text(), flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"(\S*/)?wheelwork ", line) and " ..." not in line:
                yield shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize(
    ("page", "arguments"),
    [
        pytest.param(page, arguments, id=f"{page.stem}: {' '.join(arguments)}")
        for page in PAGES
        for arguments in commands_in(page)
    ],
)
def test_a_command_in_the_docs_has_valid_options(page, arguments):
    command, context = cli, click.Context(cli)
    while isinstance(command, click.Group):
        name, *arguments = arguments
        command = command.get_command(context, name)
        assert command, name
    with contextlib.suppress(click.exceptions.Exit):  # --help
        command.make_context(name, arguments)


def test_the_readmes_table_of_timers_is_made_of_their_traits():
    """Each row that is there; `nox -s docs` adds the others."""
    made = runpy.run_path(str(ROOT / "docs" / "timers_table.py"))
    _, heading, rest = (ROOT / "README.md").read_text().partition(made["HEADING"])
    assert heading
    rows = re.match(r"(?:\|.*\n)*", rest).group().splitlines(keepends=True)
    assert rows
    assert set(rows) <= {made["row"](name) for name in names()}


def test_pictures_are_small():
    for picture in (ROOT / "docs").rglob("*.png"):
        assert picture.stat().st_size < 150_000, picture.name


def test_nothing_is_said_to_be_on_pypi():
    for page in PAGES:
        commands = re.findall(r"pip install [^\n`]*", page.read_text())
        assert not [
            command for command in commands if re.search(r"['\" ]wheelwork\b(?!-)", command)
        ]
