"""The documentation: its examples run, its links lead somewhere, its code blocks are Python."""

import ast
import contextlib
import doctest
import json
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path
from random import Random
from statistics import median

import click
import pytest
from pyarrow import csv

from compare.cli.main import cli
from tests.timers.cases import Case, Pair
from tests.words import tells
from timers import services
from timers.limits import LIMIT
from timers.registry import names

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
RUN_ELSEWHERE = ("spark_", "aiohttp_", "template_")
"""By test_examples.py in tests/compare/spark and tests/compare/traffic/recording, and by
tests/timers/test_added_timer.py.
"""
DOCTESTS = [
    path
    for path in EXAMPLES
    if ">>> " in path.read_text() and path.stem not in ("idle_server", "template_scheme")
]

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
SERVICES = {
    section.partition("\n")[0]: section
    for section in re.split(r"^## ", (ROOT / "docs" / "services.md").read_text(), flags=re.M)[1:]
    if ">>> " in section
}


PRINTED = {
    "choosing_a_tick": [
        "tick fired median slots",
        "1 ms 5443 1 ms 1 ms 78243",
        "10 ms 5443 6 ms 10 ms 7561",
        "100 ms 5443 50 ms 100 ms 455",
        "1000 ms 5443 507 ms 1000 ms 55",
    ],
    "idle_connections": [
        "98 s 2679 opened 1607 closed 1072 open",
        "30 s 2679 closed 0 open",
    ],
    "idle_server": ["chatty hello", "silent closed"],
    "list_of_buckets": [
        "wrong: 1,547 of 4,000 timers are early, by up to 241",
        "fixed: 0 of 4,000 timers are early, by up to 0",
    ],
    "own_timer": [
        "ns ms",
        "own_timer:CoarseBuckets/tick=10 # 0 to 9",
        "heapq-delay-queue # 0 to 0",
    ],
    "periodic_timer": [
        *("100 ms flush", "200 ms flush", "250 ms heartbeat", "300 ms flush", "400 ms flush"),
        *("500 ms heartbeat", "500 ms flush", "600 ms flush", "700 ms flush", "750 ms heartbeat"),
        *("800 ms flush", "900 ms flush", "1000 ms heartbeat", "1000 ms report", "1000 ms flush"),
    ],
    "virtual_time": ["A day of heartbeats has passed."],
    "purgatory_fetch": ["a gets 11 bytes", "b gets 11 bytes timeout"],
    "purgatory_join_group": ["bob left", "generation 1: ann"],
    "purgatory_produce": ["r1 acknowledged", "r2 timed out: orders"],
    "request_timeouts": [
        "10 s 15 requests 143 375 821",
        "200000 requests 194952 answered 3031 timed out 2017 pending",
        "4000 places",
    ],
    "system_timer_request_timeout": ["b timed out"],
    "write_a_log": ["requests.csv 200000 requests 974 without"],
}
"""The facts in each line that an example prints, where no doctest of it says so."""
IN_REAL_TIME = {name for name in PRINTED if name.startswith(("idle_server", "purgatory", "system"))}
"""They would print something else on a machine that stands still for a tenth of a second."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.cluster] if name in IN_REAL_TIME else [])
        for name in PRINTED
    ],
)
def test_an_example_prints_its_facts(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))  # as `python docs/examples/NAME.py` does
    path = FOLDER / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(PRINTED[name]), lines
    for line, words in zip(lines, PRINTED[name], strict=True):
        assert tells(line, words), line


@pytest.mark.parametrize("example", DOCTESTS, ids=lambda path: path.stem)
def test_an_example_prints_what_its_docstring_says(example, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(example))
    program = doctest.DocTestParser().get_doctest(names["__doc__"], names, example.stem, None, 0)
    assert doctest.DocTestRunner().run(program).failed == 0


def test_every_example_is_run():
    run = {path.stem for path in DOCTESTS} | set(PRINTED)
    assert run == {path.stem for path in EXAMPLES if not path.name.startswith(RUN_ELSEWHERE)}


def test_the_log_of_the_tutorial_is_what_its_example_says(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "docs" / "examples" / "write_a_log.py"))
    log = csv.read_csv("requests.csv").to_pydict()
    assert list(log) == ["start", "seconds", "client"]
    start, seconds = log["start"], [value for value in log["seconds"] if value is not None]
    assert (len(start), len(start) - len(seconds)) == (200_000, 974)
    assert start == sorted(start)
    assert 1_760_000_000 <= start[0] < 1_760_000_001 < 1_760_000_099 < start[-1] < 1_760_000_100
    assert median(seconds) == pytest.approx(0.02, rel=0.01)
    assert 2 < max(seconds) < 10
    assert set(log["client"]) == {f"client-{number}" for number in range(5_000)}


def test_the_example_of_an_own_timer_keeps_the_contract(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "examples"))
    for tick, start in ((10, 0), (7, 1000), (1, 3), (10, LIMIT - 200)):
        pair = Pair(Case("own_timer:CoarseBuckets", {"tick": tick}), start)
        timer, model = pair.timer, pair.model
        random, handles = Random(start), [10**6]
        for _ in range(300):
            many = random.randrange(1, 4)
            moments = [min(timer.now + random.randrange(-9, 40), LIMIT) for _ in range(many)]
            some = random.choices(handles, k=many)
            match random.randrange(5):
                case 0:
                    added = timer.schedule_many(moments).tolist()
                    model.schedule_many(moments, added)
                    handles += added
                case 1:
                    handles.append(pair.schedule_after(moments[0] - timer.now))
                case 2:
                    assert timer.cancel_many(some).tolist() == model.cancel_many(some)
                case 3:
                    rescheduled = timer.reschedule_many(some, moments).tolist()
                    assert rescheduled == model.reschedule_many(some, moments)
                case 4:
                    pair.advance(max(moments[0], timer.now))


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
    for block in PYTHON.findall(page.read_text()):
        if not block.startswith(">>>"):
            ast.parse(block)


@pytest.mark.parametrize("section", SERVICES.values(), ids=SERVICES)
def test_the_guide_to_services_prints_what_it_says(section):
    """The blocks of a main section run, one after the other, as one program."""
    assert all(block.startswith(">>> ") for block in PYTHON.findall(section))
    text = section.replace("```", "")  # which would be read as output
    program = doctest.DocTestParser().get_doctest(text, {}, "services.md", "services.md", 0)
    assert doctest.DocTestRunner().run(program).failed == 0


def test_the_guide_to_services_uses_every_public_name():
    code = "".join(PYTHON.findall((ROOT / "docs" / "services.md").read_text()))
    words = set(re.findall(r"\w+", code))
    public = set(services.__all__)
    for name in services.__all__:
        exported = getattr(services, name)
        if isinstance(exported, type) and not issubclass(exported, Exception):
            public.update(member for member in dir(exported) if not member.startswith("_"))
    assert public - words == set()


def test_the_reference_lists_every_service():
    page = (ROOT / "docs" / "api" / "services.md").read_text()
    listed = re.findall(r":: timers\.services\.([\w.]+)$", page, flags=re.MULTILINE)
    errors = {name for name in dir(services.errors) if name in services.__all__}
    assert "errors" in listed
    assert set(listed) - {"errors"} | errors == set(services.__all__)


def test_the_table_of_commands_is_complete():
    rows = re.findall(
        r"^\| (`.+?) \|", (ROOT / "docs" / "command-line.md").read_text(), re.MULTILINE
    )
    listed = {name.split()[0] for row in rows for name in re.findall("`(.+?)`", row)}
    assert cli.commands.keys() <= listed


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lines_are_short(page):
    """All but rows of tables, which cannot be broken."""
    lines = enumerate(page.read_text().splitlines(), 1)
    assert not [n for n, line in lines if len(line) > 120 and not line.startswith("|")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_rows_of_a_table_have_its_columns(page):
    """A row of another length is text that was pasted into the wrong place."""
    text = re.sub(r"```.*?```|`[^`\n]+`|\\\|", "", page.read_text(), flags=re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        rows = table.splitlines()
        assert not [row for row in rows if row.count("|") != rows[0].count("|") or row[-1] != "|"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_heading_leads_to_one_section(page):
    """Sections below the second level repeat in CHANGELOG.md, one set for each version."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^##? .*", text, flags=re.MULTILINE)
    assert len(set(headings)) == len(headings)


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
    name, command, context = "wheelwork", cli, click.Context(cli)
    while isinstance(command, click.Group) and arguments:  # without any, a group may do something
        name, *arguments = arguments
        command = command.get_command(context, name)
        assert command, name
    with contextlib.suppress(click.exceptions.Exit):  # --help
        command.make_context(name, arguments)


def test_the_readmes_table_of_timers_is_made_of_their_traits():
    """Each row that is there; `nox -s docs` adds the others."""
    script = runpy.run_path(str(ROOT / "docs" / "timers_table.py"))
    _, heading, rest = (ROOT / "README.md").read_text().partition(script["HEADING"])
    assert heading
    rows = re.match(r"(?:\|.*\n)*", rest).group().splitlines(keepends=True)
    assert rows
    assert set(rows) <= {script["row"](name) for name in names()}


def test_the_readmes_table_of_timers_is_replaced_and_nothing_else(tmp_path):
    (tmp_path / "docs").mkdir()
    script = shutil.copy(ROOT / "docs" / "timers_table.py", tmp_path / "docs")
    made = runpy.run_path(script)
    table = made["HEADING"] + "".join(map(made["row"], names()))
    text = "# Title\n\n{}\n| another | table |\n|---|---|\n| 1 | 2 |\n"
    for before in (made["HEADING"] + "| old | row |\n| older | row |\n", table):
        (tmp_path / "README.md").write_text(text.format(before))
        runpy.run_path(script, run_name="__main__")
        assert (tmp_path / "README.md").read_text() == text.format(table)


def test_pictures_are_small():
    for picture in (ROOT / "docs").rglob("*.png"):
        assert picture.stat().st_size < 150_000, picture.name


def test_nothing_is_said_to_be_on_pypi():
    for page in PAGES:
        commands = re.findall(r"pip install [^\n`]*", page.read_text())
        assert not [
            command for command in commands if re.search(r"['\" ]wheelwork\b(?!-)", command)
        ]


def test_the_page_of_claims_is_made_of_stored_figures():
    script = runpy.run_path(str(ROOT / "docs" / "claims_page.py"))
    text = script["STORED"].read_text()
    assert script["PAGE"].read_text() == script["page"](text)
    figures = json.loads(text)
    first = figures["rows"][0][1]
    figures["rows"] = [row for row in figures["rows"] if row[1] != first]
    assert script["page"](json.dumps(figures)) != script["page"](text)
