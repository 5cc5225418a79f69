"""The sessions' file says at once what it needs, and the sessions do what they say."""

import ast
import os
import runpy
import shutil
import subprocess
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


@pytest.fixture
def checkout(tmp_path):
    """A copy of the files that say what is tested, and an empty folder for programs."""
    (tmp_path / ".ci").mkdir()
    for name in ("noxfile.py", "pyproject.toml", ".ci/run"):
        shutil.copy(NOXFILE.parent / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    return tmp_path


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def run(checkout, *command):
    # Nothing is found on PATH but what the test puts there, and the system's own tools.
    places = [str(checkout / "bin"), "/usr/bin", "/bin"]
    settings = {"PATH": os.pathsep.join(places), "PYENV_ROOT": str(checkout), "LOG": "log"}
    return subprocess.run(
        command,
        cwd=checkout,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def log_of(checkout):
    path = checkout / "log"
    return path.read_text().splitlines() if path.exists() else []


# An interpreter: its environments hold a copy of it, and it notes what it is told to test.
INTERPRETER = """\
case "$*" in
  -c*) exit 0 ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pytest "*) echo "$0 $*" >> "$LOG"; exit ${FAILS:-0} ;;
esac
"""


def test_the_session_tests_every_other_python_and_names_those_that_are_missing(checkout):
    others = sorted({"3.11", "3.12", "3.13"} - {THIS})
    missing = others.pop()
    program(checkout / "bin" / f"python{missing}", "exit 1")  # as a shim that is not active
    for version in (*others, THIS):
        program(checkout / "bin" / f"python{version}", INTERPRETER)
    done = run(checkout, sys.executable, "-m", "nox", "-s", "interpreters", "--", "-k", "heap")
    assert done.returncode == 0, done.stderr
    assert f"Python {missing} was not found" in done.stderr
    tested = log_of(checkout)
    assert len(tested) == len(others)
    for version, line in zip(others, tested, strict=True):
        assert f"/interpreters-{version}/bin/python -m pytest " in line
        assert line.endswith("tests/timers -k heap")


def test_the_session_fails_if_the_tests_on_another_python_do(checkout, monkeypatch):
    monkeypatch.setenv("FAILS", "1")
    for version in {"3.11", "3.12", "3.13"} - {THIS}:
        program(checkout / "bin" / f"python{version}", INTERPRETER)
    done = run(checkout, sys.executable, "-m", "nox", "-s", "interpreters")
    assert done.returncode == 1
    assert len(log_of(checkout)) == 1


# The programs of an environment: `pip` installs `nox`, which notes its sessions. One may fail.
NOX = """\
echo "$*" >> "$LOG"
for word in $*; do [ "$word" != "$FAILS" ] || exit 1; done
"""
PIP = """\
[ "$FAILS" != pip ] && cp bin/installed .venv/bin/nox
"""
PYTHON3 = """\
mkdir -p .venv/bin && cp bin/pip .venv/bin/pip
"""
CI = ["tests", "peers", "interpreters", "cluster", "lint", "types", "docs", "site", "browser"]


@pytest.mark.skipif(shutil.which("bash", path="/usr/bin:/bin") is None, reason="no bash")
@pytest.mark.parametrize("fails", ["none", "pip", *CI])
def test_ci_fails_with_the_first_session_that_fails(checkout, monkeypatch, fails):
    monkeypatch.setenv("FAILS", fails)
    programs = {"installed": NOX, "pip": PIP, "python3": PYTHON3, "chromium": ""}
    for name, text in programs.items():
        program(checkout / "bin" / name, text)
    done = run(checkout, "bash", ".ci/run")
    sessions = [word for line in log_of(checkout) for word in line.split() if word in CI]
    assert (done.returncode == 0) == (fails == "none"), done.stderr
    if fails in CI:
        assert fails in sessions
        assert ("browser" in sessions) == (fails == "browser")
    else:
        assert sessions == (CI if fails == "none" else [])
