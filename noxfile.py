"""Every task of this project: `nox -s report` and `nox -s tests`, and the rest for developers.

Each session installs what it needs into its own environment below `.nox`.
"""

import shutil
import sys
from pathlib import Path

import nox

if sys.version_info < (3, 11):  # noqa: UP036  # pip would tell it in many lines, or of Numba
    sys.exit(
        f"wheelwork needs Python 3.11 or later; this is {sys.version_info[0]}.{sys.version_info[1]}"
    )

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint", "types"]

LOG_OPTIONS = {"--requests", "--touches"}


@nox.session
def report(session: nox.Session) -> None:
    """Run the comparison and print the path of the page: -- [--requests FILE ...]."""
    reads_a_log = any(argument.partition("=")[0] in LOG_OPTIONS for argument in session.posargs)
    session.install("-q", "-e", ".[pipeline]" if reads_a_log else ".")
    session.run("wheelwork", "report", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests: -- any pytest options."""
    session.install("-q", "-e", ".[pipeline,connect,test]")
    # tests/conftest.py deals them out, and prints which lines they run where all of them do.
    folder = Path(session.create_tmp(), "coverage")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    measured = {} if session.posargs else {"COVERAGE_FOLDER": str(folder)}
    session.run("pytest", "-n", "2", *session.posargs, env=measured)


@nox.session
def cluster(session: nox.Session) -> None:
    """The tests that start Spark servers and commands as processes of their own."""
    session.install("-q", "-e", ".[pipeline,connect,test]")
    session.run("pytest", "-n", "2", "-m", "cluster", "tests/compare", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, style and the layers of imports."""
    session.install("-q", "-e", ".[lint]")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Static types, of the packages and of a program that uses them as installed."""
    session.install("-q", "-e", ".[lint]")
    session.run("mypy")
    program = "typed_program.py"
    folder = Path(session.create_tmp())
    shutil.copy(Path("tests", "timers", program), folder / program)
    session.chdir(folder)
    session.run("mypy", "--strict", "--config-file=", program)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation, API reference included, into build/docs; a warning is an error."""
    session.install("-q", "-e", ".[pipeline,docs]")
    session.run("sphinx-build", "-q", "-W", "--keep-going", "-E", "docs", "build/docs")
    session.log("open build/docs/index.html")


@nox.session
def model(session: nox.Session) -> None:
    """The model-based tests again, with many more examples."""
    session.install("-q", "-e", ".[pipeline,test]")
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
    session.install("-q", "-e", ".[test,bench]")
    session.run("pytest", "tests/bench", "-o", "addopts=", "--benchmark-only", *session.posargs)
    session.run("python", "-m", "tests.bench.services")
    session.run("python", "-m", "tests.bench.purgatory_and_idle")


@nox.session
def pipeline(session: nox.Session) -> None:
    """Throughput of the pipeline's stages: -- [generate] [replay] [ingest] [verify] [--operations
    N] ...
    """
    session.install("-q", "-e", ".[pipeline]")
    session.run("python", "-m", "tests.bench.pipeline", *session.posargs)


@nox.session
def mutation(session: nox.Session) -> None:
    """Mechanical mutants of files, and which of them no test notices: -- FILE ... [--each N]."""
    session.install("-q", "-e", ".[test]")
    session.run("python", "-m", "tests.mutation.hunt", *session.posargs)
