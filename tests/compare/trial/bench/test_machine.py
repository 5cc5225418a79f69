"""What a manifest says of the machine and the checkout."""

import os
import platform
from importlib import metadata
from pathlib import Path

import pytest

from compare.base import versions as versions_module
from compare.trial.bench import machine


def test_cores_are_those_of_the_process_and_memory_is_that_of_the_machine(monkeypatch):
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1009, "SC_AVPHYS_PAGES": 503}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 5, 7}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    text = "processor\t: 0\nmodel name\t: Some: CPU @ 2 GHz\nmodel name\t: another\n"
    monkeypatch.setattr(Path, "read_text", lambda path, encoding: text)
    monkeypatch.setattr(platform, "platform", lambda: "Some-OS")
    expected = {"cpu": "Some: CPU @ 2 GHz", "cores": 3, "memory_bytes": 4096 * 1009}
    assert machine.machine() == expected | {"platform": "Some-OS"}
    monkeypatch.delattr(os, "sched_getaffinity")  # as on some systems
    assert machine.machine()["cores"] == 64


@pytest.mark.parametrize(("changes", "dirty"), [("", False), (" M some.py", True), (None, None)])
def test_a_checkout_with_changes_is_dirty(monkeypatch, changes, dirty):
    answers = {"--show-toplevel": str(machine._ROOT), "HEAD": "c0ffee", "--porcelain": changes}
    # Private: the public way is to change this checkout.
    monkeypatch.setattr(machine, "_git", lambda *arguments: answers[arguments[-1]])
    versions = {"numba": "1.2", "numpy": "3.4", "wheelwork": "5.6"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(versions_module, "_version", versions_module._version.__wrapped__)
    monkeypatch.setattr(platform, "python_version", lambda: "7.8")
    actual = machine.surroundings()
    assert (actual["commit"], actual["dirty"]) == ("c0ffee", dirty)
    assert actual["versions"] == versions | {"python": "7.8", "pyarrow": None}
    answers["--show-toplevel"] = str(Path(machine.__file__).parents[4])  # an installed copy
    actual = machine.surroundings()
    assert actual["commit"] is actual["dirty"] is None
