"""The sessions' file says at once what it needs."""

import ast
import runpy
import sys
import tomllib
from pathlib import Path
from unittest.mock import MagicMock

import pytest

NOXFILE = Path(__file__).parents[1] / "noxfile.py"


def test_an_older_python_is_one_clear_error_and_a_newer_one_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "nox", MagicMock())
    for minor in (11, 14, 15):
        monkeypatch.setattr(sys, "version_info", (3, minor, 4, "final", 0))
        runpy.run_path(str(NOXFILE))
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    with pytest.raises(SystemExit, match=r"^wheelwork needs Python 3\.11 or newer; this is 3\.10$"):
        runpy.run_path(str(NOXFILE))


def test_the_sessions_file_and_the_project_name_the_same_oldest_python():
    project = tomllib.loads((NOXFILE.parent / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    minors = [text[-4:] for text in project["classifiers"] if "Python :: 3" in text]
    assert minors == ["3.11", "3.12", "3.13"]  # those that are tested


THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.mark.parametrize(
    ("version", "on_path", "of_pyenv", "found"),
    [
        (THIS, None, None, None),
        (THIS, "python", None, "path"),
        (THIS, "python", "python", "path"),
        (THIS, "broken", "python", "pyenv"),  # a shim of a version that is not active
        (THIS, "broken", "broken", None),
        ("3.99", "python", "python", None),  # a wrong name
    ],
)
def test_an_interpreter_is_found_if_it_works(
    monkeypatch, tmp_path, version, on_path, of_pyenv, found
):
    monkeypatch.setitem(sys.modules, "nox", MagicMock())
    places = {
        "path": tmp_path / "bin" / f"python{version}",
        "pyenv": tmp_path / "versions" / f"{version}.1" / "bin" / "python",
    }
    for place, kind in zip(places.values(), (on_path, of_pyenv), strict=True):
        place.parent.mkdir(parents=True)
        if kind == "python":
            place.symlink_to(sys.executable)
        elif kind == "broken":
            place.write_text("#!/bin/sh\nexit 1\n")
            place.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    answer = runpy.run_path(str(NOXFILE))["find_interpreter"](version)
    assert answer == (found and str(places[found]))


def test_an_older_python_can_read_the_file():
    ast.parse(NOXFILE.read_text(), feature_version=(3, 8))
