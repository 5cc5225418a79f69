from importlib import import_module
from pkgutil import iter_modules

import pytest

from compare.bench.store import read_run
from compare.bench.task import TASKS
from reports import formats, sections
from reports.sections.catalogue import SECTIONS
from reports.sections.catalogue import sections as made
from reports.sections.parts import GREATEST, LEAST
from reports.sections.times import table
from reports.summary import figures_of
from tests.reports.synthetic import WORKLOADS, write_synthetic


def test_every_file_of_a_section_is_in_the_table():
    names = [f"reports.sections.{info.name}" for info in iter_modules(sections.__path__)]
    modules = [import_module(name) for name in names]
    in_files = {module.section for module in modules if hasattr(module, "section")}
    assert in_files <= set(SECTIONS)


def test_sections_without_figures_are_left_out(tmp_path):
    empty = figures_of(read_run(write_synthetic(tmp_path, (), sizes=(1000,), workloads=())))
    names = [section.name for section in made(empty)]
    assert names == ["method"]


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_few_samples_do(tmp_path, repeats):
    summary = figures_of(
        read_run(write_synthetic(tmp_path, sizes=(1000,), workloads=WORKLOADS[:1], repeats=repeats))
    )
    timer = next(each for each in summary.contestants if each.timer == "simple-wheel")
    row = table(summary).rows[timer]
    cells = {row[TASKS[0].title, formats.size(1_000), which].text for which in (LEAST, GREATEST)}
    assert len(cells) == min(repeats, 2)
