"""The GitHub Action: its steps are run as a script, as a runner would."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.compare.trial.peers import wrong

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def executable(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run(folder, **inputs):
    """Run the steps with a pip that installs nothing; return the exit code of the last."""
    tools = folder / "tools"
    tools.mkdir()
    executable(tools / "python", f'echo "$@" >> {folder}/installed')
    executable(tools / "wheelwork", f'PYTHONPATH={ROOT} exec {sys.executable} -m compare "$@"')
    given = {name: entry.get("default") for name, entry in ACTION["inputs"].items()} | inputs
    assert None not in given.values()

    def filled(text):
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: given[match[1]], text)

    for step in ACTION["runs"]["steps"]:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder / filled(step.get("working-directory", ".")),
            env={
                **os.environ,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_STEP_SUMMARY": str(folder / "summary"),
                "GITHUB_OUTPUT": str(folder / "output"),
                **{name: filled(text) for name, text in step.get("env", {}).items()},
            },
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            break
    return done.returncode


@pytest.mark.parametrize(("fault", "code"), [("right", 0), ("late", 1), ("oldprotocol", 2)])
def test_the_steps_check_a_timer_and_write_a_summary(tmp_path, fault, code):
    (tmp_path / "some").mkdir()
    command = f"{sys.executable} {wrong.__file__} {fault}"
    assert run(tmp_path, command=command, directory="some", options="--quick --seed 3") == code
    assert (tmp_path / "installed").read_text() == f"-m pip install --quiet {ROOT}[check]\n"
    assert (tmp_path / "output").read_text() == f"passed={str(code == 0).lower()}\n"
    if code == 2:
        assert not (tmp_path / "summary").exists()
        return
    state = "failed" if code else "passed"
    assert (tmp_path / "summary").read_text().startswith(f"### wrong: wheelwork check {state}\n")
    suite = ElementTree.parse(tmp_path / "some" / "wheelwork.xml").getroot()
    assert suite.get("failures") == str(code)
    badge = ElementTree.parse(tmp_path / "some" / "wheelwork.svg").getroot()
    assert "timer check" in badge.get("aria-label")


def test_nothing_in_an_input_is_expanded(tmp_path):
    (tmp_path / "adapter").touch()
    assert run(tmp_path, command="./nowhere $(touch expanded) *") == 2
    assert not (tmp_path / "expanded").exists()
