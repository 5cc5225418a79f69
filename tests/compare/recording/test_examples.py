"""A real server is recorded, and its trace replayed."""

import sys
from pathlib import Path

import pytest

from compare.cli.main import main
from compare.tapes.trace import open_trace

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def test_an_aiohttp_server(tmp_path, monkeypatch, capfd):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    monkeypatch.chdir(tmp_path)
    program = ("--", sys.executable, str(EXAMPLES / "aiohttp_server.py"))
    assert main(["record", "--out", "aiohttp.trace", *program]) == 0
    out, err = capfd.readouterr()
    answers = int(out.split()[0])
    assert out == f"{answers} answers\n"
    totals = open_trace("aiohttp.trace").totals
    assert err == f"wheelwork: recorded {totals['starts']:,} timers in aiohttp.trace\n"
    assert 0 < answers <= 2000
    assert totals["starts"] >= 3 * 2000  # the client's timeout, the handler's and its sleep
    assert totals["cancels"] >= 2 * answers  # both timeouts
    replay = ["replay", "aiohttp.trace", "--timers", "hierarchical-wheel,hashed-wheel/tick=1ms"]
    assert main(replay) == 0
    assert capfd.readouterr().out.count("as the oracle expects") == 2
