"""The public list of `compare`: its names resolve, and importing it is cheap."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import compare

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", compare.__all__)
def test_a_public_name_resolves(name):
    assert getattr(compare, name) is not None
    assert name in dir(compare)


def test_importing_compare_loads_neither_numba_nor_pyspark():
    heavy = ("numba", "numpy", "pyarrow", "pyspark", "matplotlib")
    program = f"import compare, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_docs_import_public_names_only():
    """Modules may move; what the docs and the examples show may not."""
    docs = ROOT / "docs"
    pages = [ROOT / "README.md", *docs.rglob("*.md"), *(docs / "examples").glob("*.py")]
    imports = r"^(?:>>> )?\s*(?:from (compare\.[a-z_.]+) import|import (compare\.[a-z_.]+))"
    private = {
        page.name: found
        for page in pages
        if (found := re.findall(imports, page.read_text(), flags=re.MULTILINE))
    }
    assert not private
