"""A new user: the wheel that the project builds, an empty HOME, and no checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """A function that runs a shell script as the new user; it returns what was printed."""
    folder = tmp_path_factory.mktemp("user")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    [wheel] = (folder / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    (folder / "home").mkdir()
    (folder / "bin").mkdir()
    command = folder / "bin" / "wheelwork"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m compare "$@"\n')
    command.chmod(0o755)

    def run(script):
        paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
        environment = {
            "HOME": str(folder / "home"),
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(folder / "cache")),
        }
        done = subprocess.run(
            ["sh", "-ec", script],
            cwd=folder / "home",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_package_that_runs_is_that_of_the_wheel(user):
    where = user(f"{sys.executable} -P -c 'import compare; print(compare.__file__)'")
    assert "/site/compare/" in where


@pytest.mark.parametrize(("language", "tool"), [("c", "gcc"), ("js", "node")])
def test_an_adapter_is_written_built_and_checked_without_a_checkout(user, language, tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is missing")
    commands = user(f"wheelwork peers new {language} my-{language}")
    out = user(commands.replace("wheelwork check", "wheelwork check --quick"))
    assert "result      no fault" in out


def test_a_peer_is_built_without_a_checkout(user):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing")
    assert user("wheelwork peers build c-hashed-wheel").startswith("c-hashed-wheel: ")
    assert "| c-hashed-wheel |  | no fault" in user("wheelwork peers check --quick c-hashed-wheel")
