"""A real server is recorded, and its trace replayed."""

import sys
from pathlib import Path

import pytest

from compare.traffic.tapes.trace import open_trace
from tests.words import tells

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"


def test_an_aiohttp_server(said):
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    program = ("--", sys.executable, EXAMPLES / "aiohttp_server.py")
    code, out, err = said("record", "--out", "aiohttp.trace", *program)
    assert code == 0
    answers = int(out.split()[0])
    assert out == f"{answers} answers\n"
    totals = open_trace("aiohttp.trace").totals
    assert tells(err, f"recorded {totals['starts']:,} timers aiohttp.trace")
    assert 0 < answers <= 2000
    assert totals["starts"] >= 3 * 2000  # the client's timeout, the handler's and its sleep
    assert totals["cancels"] >= 2 * answers  # both timeouts
    timers = "hierarchical-wheel,hashed-wheel/tick=1ms"
    code, out, _ = said("replay", "aiohttp.trace", "--timers", timers)
    assert code == 0
    assert out.count("as the oracle expects") == 2
