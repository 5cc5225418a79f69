"""The layout: its drawing in the README, and what each folder says of itself."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    file.parent.relative_to(ROOT).as_posix()
    for top in ("timers", "compare", "reports")
    for file in (ROOT / top).rglob("__init__.py")
)


def docstring(package):
    return ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""


def drawn_layers():
    """The README's drawing of the layers, from top to bottom: a package, and the folders in it."""
    rows = re.findall(r"│ ([a-z/]+) +│ .* │ (.*) │$", (ROOT / "README.md").read_text(), re.M)
    return {layer: [f"{layer}/{folder}" for folder in folders.split()] for layer, folders in rows}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_says_in_one_sentence_what_it_holds(package):
    first = docstring(package).split("\n\n")[0]
    assert re.fullmatch(r"[A-Z][^.]*(\.\w[^.]*)*\.", first.replace("\n", " ")), first


def test_the_drawing_of_the_layers_names_every_package():
    named = set()
    for layer, folders in drawn_layers().items():
        for path in map(Path, (layer, *folders)):
            named |= {path, *path.parents}
    assert sorted(path.as_posix() for path in named - {Path()}) == PACKAGES


def test_the_drawing_has_the_layers_in_the_order_of_imports():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = settings["contracts"][0]["layers"]
    assert [layer.replace("/", ".") for layer in drawn_layers()] == layers


def test_tests_mirror_the_packages():
    mirrored = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert {"timers", "compare", "reports"} <= mirrored
    own = {"bench", "mutation", "references", "samples"}  # of the tests alone
    for top in ("timers", "compare", "reports"):
        for folder in (ROOT / "tests" / top).rglob("*"):
            if folder.is_dir() and folder.name != "__pycache__" and folder.name not in own:
                assert (ROOT / folder.relative_to(ROOT / "tests")).is_dir(), folder
