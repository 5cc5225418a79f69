"""`wheelwork advise --rate`: advice for traffic that options describe."""

import json
from functools import partial

import pytest

from compare.cli.commands.advise import CALLERS, KINDS
from compare.trial.advice import described
from compare.trial.bench import steady
from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.replays import REPLAYS

NS = {"delay-queue": 1_000.0, "cascading-wheel": 900.0, "asyncio": 400.0}
"""Label -> ns of a pair; a fire takes twice as much. Other timers are slow at all sizes."""


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    """The sizes that were measured, and no times."""
    sizes = []

    def fits(everyone, size, kind, samples, more):
        sizes.append(size)
        [(caller, contestants)] = everyone.items()
        known = [label for label in contestants if label in NS]
        costs = [Constants(NS[label], 2 * NS[label], 0, 0, 0, 0, 0) for label in known]
        # Two rounds without noise.
        found = [Fit(each, 0.0, (each, each)) for each in costs]
        return {(caller, label): fit for label, fit in zip(known, found, strict=True)}

    monkeypatch.setattr(described, "fits", fits)
    return sizes


@pytest.fixture
def said(said):
    return partial(said, "advise")


def test_the_names_in_the_help_are_those_that_exist():
    assert (*steady.KINDS,) == KINDS
    assert (*REPLAYS,) == CALLERS


def test_the_advice_for_a_case(said, measured):
    code, out, _ = said("--rate", "1000", "--timeout", "10s", "--cancelled", "90%")
    assert code == 0
    # 900 pairs of 1 us and 100 fires of 2 us: 1.1 ms of a second
    assert "use           delay-queue" in out
    assert "cost          0.11% of a core (0.098% to 0.123% in 9 of 10 replays)" in out
    assert "per timer     1.10\xa0µs" in out
    assert "pending       1\u202f450 timers on average" in out
    assert "cascading-wheel costs least" in out
    assert measured == [100, 1_000, 30_000]  # 450 of 1 450 pending timers will be cancelled
    assert max(map(len, out.splitlines())) <= 80


def test_a_program_keeps_its_loop(said):
    out = said("--rate", "1e3", "--timeout", "10s", "--caller", "asyncio")[1]
    assert "use           keep asyncio" in out


def test_the_advice_as_json_and_markdown(said):
    case = ("--rate", "300000", "--timeout", "1s", "--traffic", "one", "--step", "10ms")
    found = json.loads(said(*case, "--json")[1])
    assert found["use"] == "cascading-wheel"  # the queue takes 6 % of a core more
    assert found["traffic"]["pending"] == 300_000 and found["traffic"]["step"] == 10
    assert [each["label"] for each in found["costs"]] == ["cascading-wheel", "delay-queue"]
    assert "| use | cascading-wheel |" in said(*case, "--markdown")[1]


def test_beyond_what_was_measured_it_says_so(said):
    out = said("--rate", "10000", "--timeout", "10min")[1]
    assert "measured with up to 300,000 pending" in " ".join(out.split())


@pytest.mark.parametrize(("quiet", "samples"), [(True, [2, 2]), (False, [2, 2, 4, 4, 8, 8])])
def test_where_noise_would_decide_it_measures_longer_and_says_so(said, monkeypatch, quiet, samples):
    """On a busy machine one timer is dearer in the first round, and the other in the next."""

    def fits(everyone, size, kind, number, more):
        asked.append((number, [*everyone["python"]]))
        found = {}
        for label in everyone["python"]:
            if label in NS:
                dear = [3.0 if (k % 2) == (label == "delay-queue") else 1.0 for k in range(number)]
                rounds = [
                    Constants(NS[label] * (1 if quiet else factor), 0, 0, 0, 0, 0, 0)
                    for factor in dear
                ]
                found["python", label] = Fit(
                    Constants(NS[label], 0, 0, 0, 0, 0, 0), 0.1, (*rounds,)
                )
        return found

    asked = []
    monkeypatch.setattr(described, "fits", fits)
    case = ("--rate", "100000", "--timeout", "100ms", "--cancelled", "100%")
    out = said(*case)[1]
    assert [number for number, _ in asked] == samples
    words = " ".join(out.split())
    found = json.loads(said(*case, "--json")[1])
    if quiet:
        assert found["use"] == "cascading-wheel" and "not decided" not in words
    else:
        assert found["use"] is None and {*found["near"]} == {"delay-queue", "cascading-wheel"}
        assert "use not decided on this machine now: cascading-wheel or delay-queue" in words
        assert {*asked[-1][1]} == {"delay-queue", "cascading-wheel"}
        assert "repeat the command when the machine is idle" in words


CASE = ("--rate", "100", "--timeout", "10s")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either a TRACE, or --rate and --timeout to describe traffic"),
        (("a.trace", *CASE), "give either a TRACE, or --rate and --timeout to describe traffic"),
        (("--rate", "100"), "--rate needs the --timeout of the timers, such as 10s"),
        (("--rate", "none", "--timeout", "1s"), "above 0 and at most 1e9, not none"),
        (("--rate", "nan", "--timeout", "1s"), "above 0 and at most 1e9, not nan"),
        (("--rate", "0", "--timeout", "1s"), "above 0 and at most 1e9, not 0"),
        (("--rate", "1", "--timeout", "5"), "--timeout: duration '5' is not a number with a unit"),
        ((*CASE, "--cancelled", "110%"), "must be a share from 0% to 100%, such as 90%, not 110%"),
        ((*CASE, "--cancelled", "nan"), "must be a share from 0% to 100%, such as 90%, not nan"),
        ((*CASE, "--after", "10s"), "--after 10s is not below --timeout 10s"),
        ((*CASE, "--traffic", "keepalive"), "needs --cancelled, the share that is kept alive"),
        ((*CASE, "--traffic", "periodic", "--cancelled", "5%"), "periodic timers fire"),
        ((*CASE, "--traffic", "periodic", "--step", "11s"), "cannot fire every 10s if the clock"),
        ((*CASE, "--chart", "a.svg"), "--rate goes without --memory, --objective, --chart"),
        (("--rate", "1e9", "--timeout", "1d"), "timers would be pending, and none was measured"),
    ],
)
def test_what_describes_no_traffic_is_refused_in_a_line(said, arguments, message):
    code, out, err = said(*arguments)
    assert code and not out
    assert message in " ".join(err.splitlines()[-1].split())
