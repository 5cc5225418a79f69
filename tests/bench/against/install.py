"""Install a commit of this repository in an environment of its own, which later runs use again."""

import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[3]
_PIP = (sys.executable, "-m", "pip")


class CommitError(ValueError):
    """A commit that cannot be compared with."""


def full_name(commit: str, root: Path = ROOT) -> str:
    """The hash of a commit.

    Raises:
        CommitError: if the repository has none of that name.
    """
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    try:
        done = _git(root, *asked)
    except FileNotFoundError:
        raise CommitError("git is missing, which finds commits") from None
    if done.returncode:
        raise CommitError(f"{commit!r} is not a commit of this repository")
    return done.stdout.decode().strip()


def installed(commit: str, folder: Path, root: Path = ROOT) -> Path:
    """Return the Python of an environment with a commit and the packages that it needs.

    Their versions are those of the running environment, so that the commits alone differ. What an
    interrupted installation leaves behind is replaced.

    Raises:
        CommitError: if the commit does not exist or cannot be installed.
    """
    name, versions = full_name(commit, root), _versions()
    environment = folder / name[:12]
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    complete = environment / "versions.txt"
    if complete.exists() and complete.read_text() == versions:
        return python
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment)
    with TemporaryDirectory() as temporary:
        archive, source = Path(temporary, "source.tar"), Path(temporary, "source")
        _git(root, "archive", "--output", str(archive), name)
        with tarfile.open(archive) as packed:
            packed.extractall(source, filter="data")
        wanted = Path(temporary, "versions.txt")
        wanted.write_text(versions)
        pip = [*_PIP, "--python", str(python), "install", "-q", "--use-pep517"]
        done = subprocess.run(
            [*pip, "--constraint", str(wanted), str(source)],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (lines or done.stderr.splitlines() or ["pip failed"])[0]
        raise CommitError(f"{commit} cannot be installed: {reason.removeprefix('ERROR: ')}")
    complete.write_text(versions)
    return python


def _versions() -> str:
    """The running Python and its packages, as constraints of pip."""
    frozen = [*_PIP, "freeze", "--exclude-editable", "--exclude", "wheelwork"]
    packages = subprocess.run(frozen, stdout=subprocess.PIPE, text=True, check=True).stdout
    return f"# Python {sys.version.split()[0]}\n{packages}"


def _git(root: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
