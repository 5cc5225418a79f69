"""What a manifest says of the machine and the checkout."""

import os

import pytest

from compare.bench import machine


def test_cores_are_those_of_the_process_and_memory_is_that_of_the_machine(monkeypatch):
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1009, "SC_AVPHYS_PAGES": 503}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 5, 7}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    found = machine.machine()
    assert (found["cores"], found["memory_bytes"]) == (3, 4096 * 1009)


@pytest.mark.parametrize(("changes", "dirty"), [("", False), (" M some.py", True), (None, None)])
def test_a_checkout_with_changes_is_dirty(monkeypatch, changes, dirty):
    answers = {"--show-toplevel": str(machine._ROOT), "HEAD": "c0ffee", "--porcelain": changes}
    monkeypatch.setattr(machine, "_git", lambda *arguments: answers[arguments[-1]])
    found = machine.surroundings()
    assert (found["commit"], found["dirty"]) == ("c0ffee", dirty)
