"""The sessions' file says at once what it needs."""

import ast
import runpy
import sys
import tomllib
from pathlib import Path
from unittest.mock import MagicMock

import pytest

NOXFILE = Path(__file__).parents[1] / "noxfile.py"


def test_another_python_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "nox", MagicMock())
    runpy.run_path(str(NOXFILE))
    for minor in (10, 14):
        monkeypatch.setattr(sys, "version_info", (3, minor, 4, "final", 0))
        needs = rf"^wheelwork needs Python 3\.11, 3\.12 or 3\.13; this is 3\.{minor}$"
        with pytest.raises(SystemExit, match=needs):
            runpy.run_path(str(NOXFILE))


def test_the_sessions_file_and_the_project_name_the_same_pythons():
    project = tomllib.loads((NOXFILE.parent / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11,<3.14"
    minors = [text[-4:] for text in project["classifiers"] if "Python :: 3" in text]
    assert minors == ["3.11", "3.12", "3.13"]


def test_an_older_python_can_read_the_file():
    ast.parse(NOXFILE.read_text(), feature_version=(3, 8))
