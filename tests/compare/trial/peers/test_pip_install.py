"""A new user, for real: pip installs the built wheel and all it needs in a clean environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
UNREACHABLE = (
    "Could not find a version",
    "No matching distribution",
    "Connection",
    "Temporary failure",
)
"""What pip says without a registry."""

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """A function that runs a shell script as the new user; it returns what was printed."""
    folder = tmp_path_factory.mktemp("pip")
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]

    def install(*words):
        done = subprocess.run([*pip, *words], capture_output=True, text=True, check=False)
        if done.returncode and any(text in done.stderr for text in UNREACHABLE):
            pytest.skip(f"pip cannot reach the registry: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stdout + done.stderr

    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    install("wheel", "-q", "--no-deps", "-w", str(folder / "dist"), str(ROOT))
    [wheel] = (folder / "dist").iterdir()
    install("install", "-q", f"{wheel}[check]")
    (folder / "home").mkdir()
    environment = {
        "HOME": str(folder / "home"),
        "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }

    def run(script):
        words = ["sh", "-ec", script]
        settings = {"cwd": folder / "home", "env": environment}
        done = subprocess.run(words, capture_output=True, text=True, check=False, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize(("language", "tool"), [("c", "gcc"), ("js", "node")])
def test_an_adapter_is_written_built_and_checked(user, language, tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is missing")
    commands = user(f"wheelwork peers new {language} my-{language}")
    out = user(commands.replace("wheelwork check", "wheelwork check --quick"))
    assert "result      no fault" in out


def test_the_plugin_of_pytest_is_installed(user):
    script = "import timers, sys; assert 'site-packages' in timers.__file__"
    user(f'python -c "{script}"')
    out = user("pytest -q -p no:cacheprovider --timer timers:CascadingWheel -k timer .")
    assert " passed" in out
