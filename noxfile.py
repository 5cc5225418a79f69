"""The tasks of this project: `nox -s report`, `nox -s tests`, and others for developers.

Each session installs what it needs into its own environment in `.nox`.
"""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"

if sys.version_info < (3, 11):  # noqa: UP036  # an older Python may run nox; pip's error is long
    sys.exit(f"wheelwork needs Python 3.11 or newer; this is {RUNNING}")

nox.options.default_venv_backend = "venv"
logging.getLogger("nox").addFilter(lambda record: "uv binary" not in record.getMessage())
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint", "types"]

QUIETLY = ("-q", "--use-pep517")  # without it an older pip warns about PySpark's setup


@nox.session
def report(session: nox.Session) -> None:
    """Run the comparison and print the path of the page: -- [--requests FILE --timeout T]."""
    session.install(*QUIETLY, "-e", ".")
    session.run("wheelwork", "report", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests: -- [any pytest options]."""
    session.install(*QUIETLY, "-e", ".[pipeline,connect,test]")
    # Each worker starts with half of the tests in their order, so that the fixtures of a file are
    # set up once and a kernel is compiled once.
    session.run("pytest", "-n", "2", "--dist", "worksteal", *session.posargs)


@nox.session(venv_backend="none")
def interpreters(session: nox.Session) -> None:
    """Run the tests of the timers on the other supported Pythons that are installed."""
    for version in nox.project.python_versions(nox.project.load_toml("pyproject.toml")):
        if version == RUNNING:
            continue
        interpreter = find_interpreter(version)
        if interpreter is None:
            session.warn(f"Python {version} was not found, so nothing was tested on it")
            continue
        environment = Path(".nox", f"interpreters-{version}").absolute()
        python = str(environment / ("Scripts" if os.name == "nt" else "bin") / "python")
        session.run(interpreter, "-m", "venv", str(environment), external=True)
        session.run(python, "-m", "pip", "install", *QUIETLY, "-e", ".[test]", external=True)
        arguments = ("-n", "2", "--dist", "worksteal", "tests/timers", *session.posargs)
        session.run(python, "-m", "pytest", *arguments, external=True)


def find_interpreter(version: str) -> str | None:
    """Find a working Python of a version such as "3.12" on PATH or installed by pyenv."""
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [shutil.which(f"python{version}"), *installed.glob(f"{version}.*/bin/python")]
    check = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    for python in filter(None, candidates):  # a pyenv shim fails if its version is not active
        if not subprocess.run([python, "-c", check], capture_output=True, check=False).returncode:
            return str(python)
    return None


@nox.session
def cluster(session: nox.Session) -> None:
    """Run the tests that start Spark servers and commands, or send signals to them."""
    session.install(*QUIETLY, "-e", ".[pipeline,connect,test,cluster]")
    # Tests that share a cluster of several processes are a group, which one worker runs.
    options = ("-n", "2", "--dist", "loadgroup")
    session.run("pytest", *options, "-m", "cluster", "tests", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Test the page in Chromium, where it is installed (Debian: apt-get install chromium)."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        session.skip("chromium is missing (apt-get install chromium); the page was not tested")
    session.install(*QUIETLY, "-e", ".[test,browser]")
    tests = ("-m", "browser", "tests/reports")
    session.run("pytest", *tests, *session.posargs, env={"CHROMIUM": chromium})


@nox.session
def peers(session: nox.Session) -> None:
    """Build and check what is in other languages; a language without its tools is skipped."""
    session.install(*QUIETLY, "-e", ".[test]")
    tests = ("tests/compare/trial/peers", "tests/compare/traffic/recording")
    session.run("pytest", "-n", "2", "-m", "peers", *tests, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check format, style and the layers of imports."""
    session.install(*QUIETLY, "-e", ".[lint]")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check static types of the packages, and of a program that uses the installed package."""
    session.install(*QUIETLY, "-e", ".[lint,check]")
    session.run("mypy")
    program = "typed_program.py"
    folder = Path(session.create_tmp())
    shutil.copy(Path("tests", "timers", program), folder / program)
    session.chdir(folder)
    session.run("mypy", "--strict", "--config-file=", program)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation with the API reference into build/docs; warnings are errors.

    The README's table of timers is updated first.
    """
    session.install(*QUIETLY, "-e", ".[pipeline,docs]")
    session.run("python", "docs/timers_table.py")
    session.run("sphinx-build", "-q", "-W", "--keep-going", "-E", "docs", "build/docs")
    session.log("open build/docs/index.html")


@nox.session
def site(session: nox.Session) -> None:
    """Write the site into build/site: start, answers, wheels, claims, results, documentation."""
    session.install(*QUIETLY, "-e", ".[pipeline,docs]")
    out = Path("build", "site")
    session.run("python", "-m", "reports.site.build", str(out))
    docs = str(out / "docs")
    # The pages of the code, which `nox -s docs` has, would be a third of the site.
    extensions = "extensions=myst_parser,sphinx.ext.autodoc,sphinx.ext.napoleon"
    options = ("-q", "-W", "--keep-going", "-E", "-D", extensions, "-A", "in_site=1")
    session.run("sphinx-build", *options, "-d", "build/doctrees", "docs", docs)
    session.log(f"open {out / 'index.html'}")


@nox.session
def model(session: nox.Session) -> None:
    """Run the model-based tests with many more examples."""
    session.install(*QUIETLY, "-e", ".[pipeline,test]")
    options = ("-m", "slow or not slow", "--hypothesis-profile", "deep")
    session.run("pytest", *options, "tests/timers", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the timers against the yardstick, the services and the pipeline."""
    session.install(*QUIETLY, "-e", ".[pipeline,test,bench]")
    programs = ("tests/bench/bench_ratios.py", "tests/bench/bench_calls.py")
    options = ("-o", "addopts=", "--benchmark-only", "--benchmark-timer=time.thread_time")
    session.run("pytest", *programs, *options, *session.posargs)
    wheels = "cascading-wheel,hierarchical-wheel,dense-wheel"
    session.run("python", "-m", "tests.bench.peers", "--peers", "cpp-wheel", "--timers", wheels)
    session.run("python", "-m", "tests.bench.threads", "--peers", "cpp-wheel")
    session.run("python", "-m", "tests.bench.bare")
    session.run("python", "-m", "tests.bench.cancels", "--size", "1e5,1e6")
    session.run("python", "-m", "tests.bench.growth")
    session.run("python", "-m", "tests.bench.services")
    session.run("python", "-m", "tests.bench.loops")
    session.run("python", "-m", "tests.bench.far_timers")
    session.run("python", "-m", "tests.bench.purgatories")
    session.run("python", "-m", "tests.bench.idle_detectors", "--rounds", "1")
    session.run("python", "-m", "tests.bench.recording")
    session.run("python", "-m", "tests.bench.advice")
    session.run("python", "-m", "tests.bench.pipeline", "--operations", "2e7")


@nox.session
def figures(session: nox.Session) -> None:
    """Measure and write the pages of docs/figures, for about six hours: -- [NAME ...]."""
    session.install(*QUIETLY, "-e", ".[pipeline,test,bench]")
    session.run("python", "-m", "tests.bench.figures", *session.posargs)


@nox.session
def against(session: nox.Session) -> None:
    """Compare all operations that programs call often with another commit: -- COMMIT [--only TEXT].

    It takes ten minutes at most for each commit, after that is installed, and ends with an error if
    an operation became slower.
    """
    session.install(*QUIETLY, "-e", ".")
    session.run("python", "-m", "tests.bench.against", *session.posargs)


@nox.session
def answers(session: nox.Session) -> None:
    """Compare what the cost model says of random settings with replays: -- [--long] [--seed N].

    It takes up to 20 minutes for 60 settings; with --long there are 300.
    `python -m tests.bench.hosts` does so for asyncio programs, in real time.
    """
    session.install(*QUIETLY, "-e", ".[test]")
    session.run("python", "-m", "tests.bench.answers", *session.posargs)


@nox.session
def pipeline(session: nox.Session) -> None:
    """Run the pipeline on Spark, small, as a smoke test; print the path of its page."""
    session.install(*QUIETLY, "-e", ".[pipeline]")
    source = ("lognormal-low", "--operations", "1e5", "--shards", "4")
    timers = ("--timers", "hashed-wheel/tick=1ms,hierarchical-wheel")
    out = Path(session.create_tmp(), "pipeline")
    shutil.rmtree(out, ignore_errors=True)
    session.run("wheelwork", "pipeline", *source, *timers, "--out", str(out))


@nox.session
def mutation(session: nox.Session) -> None:
    """Change files mechanically; print changes that no test notices: -- FILE ... [--each N]."""
    session.install(*QUIETLY, "-e", ".[test]")
    session.run("python", "-m", "tests.mutation.hunt", *session.posargs)
