"""A progress bar on a terminal, and nothing elsewhere."""

import sys
import threading

import pytest

from compare.base import progress as module
from compare.base.progress import progress


@pytest.mark.parametrize(
    ("rows", "says", "percent"),
    [
        ((), "generate: task 1 of 4", "25%"),
        ((None, lambda: 500), "generate: task 1 of 4, 500 rows", "25%"),
        ((2000, lambda: 900), "generate: task 1 of 4, 900 of 2.00k rows", "45%"),
        ((800, lambda: 900), "generate: task 1 of 4, 900 of 800 rows", "100%"),  # some twice
    ],
)
def test_a_terminal_shows_tasks_and_rows(monkeypatch, capsys, rows, says, percent):
    monkeypatch.setattr(module, "INTERVAL", 0.001)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    looks, seen = [], threading.Event()

    def tasks():
        looks.append(1)
        if len(looks) == 3:  # the first look has been shown
            seen.set()
        return 1, 4

    with progress("generate", tasks, *rows):
        seen.wait()
    shown = capsys.readouterr().err
    assert says in shown
    assert percent in shown
    assert shown.rpartition("\r")[2].strip() == ""  # removed in the end


def test_elsewhere_nothing_is_shown_or_asked(capsys):
    with progress("generate", tasks=None, rows=5, rows_done=None):
        pass
    assert capsys.readouterr().err == ""
