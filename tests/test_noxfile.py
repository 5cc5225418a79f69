"""The sessions' file says at once what it needs."""

import ast
import runpy
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

NOXFILE = Path(__file__).parents[1] / "noxfile.py"


def test_an_older_python_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "nox", MagicMock())
    runpy.run_path(str(NOXFILE))
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    with pytest.raises(SystemExit, match=r"^wheelwork needs Python 3\.11 or later; this is 3\.10$"):
        runpy.run_path(str(NOXFILE))


def test_an_older_python_can_read_the_file():
    ast.parse(NOXFILE.read_text(), feature_version=(3, 8))
