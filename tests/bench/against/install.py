"""Install a commit of this repository in an environment of its own, which later runs use again."""

import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[3]


class CommitError(ValueError):
    """A commit that cannot be compared with."""


def full_name(commit: str) -> str:
    """The hash of a commit.

    Raises:
        CommitError: if this repository has none of that name.
    """
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    try:
        done = _git(*asked)
    except FileNotFoundError:
        raise CommitError("git is missing, which finds commits") from None
    if done.returncode:
        raise CommitError(f"{commit!r} is not a commit of this repository")
    return done.stdout.decode().strip()


def installed(commit: str, folder: Path) -> Path:
    """Return the Python of an environment with a commit and the packages that it needs.

    Their versions are those of the running environment, so that the commits alone differ. What an
    interrupted installation leaves behind is replaced.

    Raises:
        CommitError: if the commit does not exist or cannot be installed.
    """
    name = full_name(commit)
    environment = folder / name[:12]
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    complete = environment / "complete"
    if complete.exists():
        return python
    shutil.rmtree(environment, ignore_errors=True)
    venv.create(environment, with_pip=True)
    with TemporaryDirectory() as temporary:
        archive, source = Path(temporary, "source.tar"), Path(temporary, "source")
        _git("archive", "--output", str(archive), name)
        with tarfile.open(archive) as packed:
            packed.extractall(source, filter="data")
        versions = Path(temporary, "versions.txt")
        frozen = [
            sys.executable,
            "-m",
            "pip",
            "freeze",
            "--exclude-editable",
            "--exclude",
            "wheelwork",
        ]
        versions.write_bytes(subprocess.run(frozen, stdout=subprocess.PIPE, check=True).stdout)
        pip = [str(python), "-m", "pip", "install", "-q", "--use-pep517", "-c", str(versions)]
        done = subprocess.run([*pip, str(source)], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (lines or done.stderr.splitlines() or ["pip failed"])[0]
        raise CommitError(f"{commit} cannot be installed: {reason.removeprefix('ERROR: ')}")
    complete.touch()
    return python


def _git(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
