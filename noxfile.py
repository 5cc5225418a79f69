"""Every task of this project: `nox -s report` and `nox -s tests`, and the rest for developers.

Each session installs what it needs into its own environment below `.nox`.
"""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

if not (3, 11) <= sys.version_info[:2] <= (3, 13):  # pip would say so in many lines, or of Numba
    sys.exit(
        "wheelwork needs Python 3.11, 3.12 or 3.13; this is "
        f"{sys.version_info[0]}.{sys.version_info[1]}"
    )

nox.options.default_venv_backend = "venv"
logging.getLogger("nox").addFilter(lambda record: "uv binary" not in record.getMessage())
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint", "types"]

LOG_OPTIONS = {"--requests", "--touches"}
QUIETLY = ("-q", "--use-pep517")  # or an older pip warns of PySpark's setup


@nox.session
def report(session: nox.Session) -> None:
    """Run the comparison and print the path of the page: -- [--requests FILE ...]."""
    reads_a_log = any(argument.partition("=")[0] in LOG_OPTIONS for argument in session.posargs)
    session.install(*QUIETLY, "-e", ".[pipeline]" if reads_a_log else ".")
    session.run("wheelwork", "report", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests: -- any pytest options."""
    session.install(*QUIETLY, "-e", ".[pipeline,connect,test]")
    # Whole files, so that a file's fixtures are made once.
    session.run("pytest", "-n", "2", "--dist", "loadfile", *session.posargs)


@nox.session(venv_backend="none")
def interpreters(session: nox.Session) -> None:
    """The tests of the timers on every other supported Python that is found."""
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for version in nox.project.python_versions(nox.project.load_toml("pyproject.toml")):
        if version == running:
            continue
        interpreter = find_interpreter(version)
        if interpreter is None:
            session.warn(f"Python {version} was not found, so nothing was tested on it")
            continue
        environment = Path(".nox", f"interpreters-{version}").absolute()
        python = str(environment / ("Scripts" if os.name == "nt" else "bin") / "python")
        session.run(interpreter, "-m", "venv", str(environment), external=True)
        session.run(python, "-m", "pip", "install", *QUIETLY, "-e", ".[test]", external=True)
        arguments = ("-n", "2", "--dist", "loadfile", "tests/timers", *session.posargs)
        session.run(python, "-m", "pytest", *arguments, external=True)


def find_interpreter(version: str) -> str | None:
    """A Python of a version such as "3.12" that runs: on PATH, or installed by pyenv."""
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [shutil.which(f"python{version}"), *installed.glob(f"{version}.*/bin/python")]
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    for python in filter(None, found):  # pyenv's shim of a version that is not chosen fails
        if not subprocess.run([python, "-c", check], capture_output=True, check=False).returncode:
            return str(python)
    return None


@nox.session
def cluster(session: nox.Session) -> None:
    """The tests that start Spark servers and commands as processes of their own."""
    session.install(*QUIETLY, "-e", ".[pipeline,connect,test]")
    session.run("pytest", "-n", "2", "-m", "cluster", "tests/compare", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, style and the layers of imports."""
    session.install(*QUIETLY, "-e", ".[lint]")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Static types, of the packages and of a program that uses them as installed."""
    session.install(*QUIETLY, "-e", ".[lint]")
    session.run("mypy")
    program = "typed_program.py"
    folder = Path(session.create_tmp())
    shutil.copy(Path("tests", "timers", program), folder / program)
    session.chdir(folder)
    session.run("mypy", "--strict", "--config-file=", program)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation, API reference included, into build/docs; a warning is an error.

    First the README's table of timers is written anew.
    """
    session.install(*QUIETLY, "-e", ".[pipeline,docs]")
    session.run("python", "docs/timers_table.py")
    session.run("sphinx-build", "-q", "-W", "--keep-going", "-E", "docs", "build/docs")
    session.log("open build/docs/index.html")


@nox.session
def model(session: nox.Session) -> None:
    """The model-based tests again, with many more examples."""
    session.install(*QUIETLY, "-e", ".[pipeline,test]")
    session.run(
        "pytest",
        "-m",
        "slow or not slow",
        "--hypothesis-profile",
        "deep",
        "tests/timers",
        *session.posargs,
    )


@nox.session
def bench(session: nox.Session) -> None:
    """Ratios against the yardstick, run in the same minute on the same tapes; and the services."""
    session.install(*QUIETLY, "-e", ".[test,bench]")
    session.run("pytest", "tests/bench", "-o", "addopts=", "--benchmark-only", *session.posargs)
    session.run("python", "-m", "tests.bench.services")
    session.run("python", "-m", "tests.bench.purgatory_and_idle")


@nox.session
def pipeline(session: nox.Session) -> None:
    """Throughput of the pipeline's stages: -- [generate] [replay] [ingest] [verify] [--operations
    N] ...
    """
    session.install(*QUIETLY, "-e", ".[pipeline]")
    session.run("python", "-m", "tests.bench.pipeline", *session.posargs)


@nox.session
def mutation(session: nox.Session) -> None:
    """Mechanical mutants of files, and which of them no test notices: -- FILE ... [--each N]."""
    session.install(*QUIETLY, "-e", ".[test]")
    session.run("python", "-m", "tests.mutation.hunt", *session.posargs)
