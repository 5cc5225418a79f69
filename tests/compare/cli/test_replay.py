"""`replay`: what it tells, checks and stores."""

import json

import pytest

from compare.cli.commands.verify import MISMATCHES
from compare.cli.main import BAD_INPUT
from compare.trial.pipeline.results import open_results
from compare.trial.pipeline.summarise import outcomes_of
from compare.trial.replay.contestant import PYTHON_LOOP
from tests.words import tells

OWN = "tests.compare.own_timers:"
RIGHT, LATE = OWN + "Right", OWN + "Late"


@pytest.fixture
def replay(said, trace):
    """Replays the trace; returns the exit code, the objects that are printed, and the messages."""

    def run(*arguments):
        code, out, err = said("replay", trace, "--json", *arguments)
        return code, json.loads(out), err

    return run


def test_a_replay_tells_of_each_timer(replay):
    timers = ["hashed-wheel", RIGHT]
    code, printed, err = replay("--timers", ",".join(timers), "--count", "--out", "stored")
    assert (code, err) == (0, "")
    assert [timer["contestant"] for timer in printed] == timers
    wheel, right = printed
    assert wheel["counters"]
    assert 100 < wheel["lateness"]["min"] <= wheel["lateness"]["max"] <= 100_000  # a tick of 100 ms
    assert (right["engine"], right["counters"]) == (PYTHON_LOOP, None)
    assert right["lateness"] == {"min": 0, "median": 0.0, "max": 0}


def test_a_mismatch_is_told_and_is_an_exit_code(said, replay, trace):
    pair = f"delay-queue,{LATE}"
    code, out, err = said("replay", trace, "--timers", pair)
    assert (code, err) == (MISMATCHES, "")
    numbers = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert numbers["delay-queue"] == ["166", "166", "0"]  # must fire, fired, mismatches
    assert f"{LATE}: 166 late" in out
    assert out.count("as the oracle expects") == 1
    assert "late shard 0, operation 2 (id 2, deadline 200028): fired at 200029, due at 200028" in (
        " ".join(out.split())
    )
    code, printed, err = replay("--timers", pair)
    assert (code, [timer["fired"] for timer in printed]) == (MISMATCHES, [166, 166])
    assert f"{LATE}: 166 late" in err


def test_summaries_alone_are_not_checked(said, replay, trace):
    code, out, err = said("replay", trace, "--timers", LATE, "--summaries-only")
    assert (code, err) == (0, "")
    assert "166" in out
    assert "oracle" not in out
    assert replay("--timers", LATE, "--summaries-only")[0] == 0


@pytest.mark.parametrize("kept", ["stored", "not stored"])
def test_results_are_stored_where_they_are_asked_for(said, trace, kept):
    timers = f"hashed-wheel/tick=5ms,{LATE}"
    options = ["--summaries-only"] * (kept == "not stored")
    code, out, err = said("replay", trace, "--timers", timers, "--out", "new/results", *options)
    assert (code, err) == (0, "")  # `verify` would find the mismatches
    results = open_results("new/results", allow=[LATE])
    assert ",".join(timer.label for timer in results.contestants) == timers
    fired = sum(each.outcome.fired for each in outcomes_of(results))
    assert tells(out, f"new/results 2 timers 1 shard 434 operations {fired} expiries ({kept})")
    assert ("only summaries" in said("verify", "new/results", "--allow", LATE)[2]) is (
        kept == "not stored"
    )


def test_without_out_nothing_is_left(said, trace, here, monkeypatch):
    (here / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "temporary"))
    before = sorted(here.rglob("*"))
    for timer, code in (("delay-queue", 0), (LATE, MISMATCHES), (OWN + "Twice", BAD_INPUT)):
        assert said("replay", trace, "--timers", timer)[0] == code
        assert sorted(here.rglob("*")) == before
