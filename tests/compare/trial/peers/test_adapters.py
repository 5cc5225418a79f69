"""`wheelwork peers new`: an adapter builds and passes as it is, wherever wheelwork is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compare.cli.commands.peers import LANGUAGES
from compare.cli.main import main
from compare.trial.peers.adapters import TEMPLATES
from compare.trial.peers.catalogue import HERE

ORDINARY = "python"  # needs nothing but Python


def test_every_language_has_a_template():
    assert (*TEMPLATES,) == LANGUAGES
    assert {path.name for path in (HERE / "templates").iterdir()} == {*LANGUAGES}


@pytest.mark.parametrize(
    "language",
    [pytest.param(name, marks=[] if name == ORDINARY else pytest.mark.peers) for name in LANGUAGES],
)
def test_a_new_adapter_builds_and_passes_by_the_commands_that_are_printed(
    language, tmp_path, monkeypatch, capsys
):
    tool = TEMPLATES[language].build.split(" ")[0] or TEMPLATES[language].run.split(" ")[0]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is missing")
    if tool == "cargo" and subprocess.run([tool, "--version"], capture_output=True).returncode:
        pytest.skip("rustup has no toolchain here")
    monkeypatch.chdir(tmp_path)
    assert main(["peers", "new", language, "some/adapter"]) == 0
    commands = capsys.readouterr().out.replace(
        "wheelwork check", '"$WHEELWORK" -m compare check --quick'
    )
    done = subprocess.run(
        ["sh", "-ec", commands],
        env={**os.environ, "WHEELWORK": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "result      no fault" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cobol", "new"], "'cobol' is not one of 'c', 'cpp'"),
        (["c", "full"], "full exists; name a new or an empty directory"),
        (["c", "file"], "file exists; name a new or an empty directory"),
        (["c", "file/below"], "cannot write file/below: "),
    ],
)
def test_what_cannot_be_written_is_one_line_and_changes_nothing(
    arguments, says, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full", "mine").touch()
    Path("file").touch()
    assert main(["peers", "new", *arguments]) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "mine"]


def test_an_empty_directory_is_filled(tmp_path):
    assert main(["peers", "new", "js", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"main.mjs", "peer.mjs"}
