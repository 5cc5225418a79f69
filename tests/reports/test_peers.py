"""The section of timers of other languages, and the answer for programs in these languages."""

from dataclasses import replace

import pytest

from compare.base import formats
from compare.trial.bench.callers import COMPILED_CODE, METRICS
from compare.trial.bench.peers import CALLER, MEMORY, METRIC, SINGLE, SUBJECTS
from compare.trial.bench.threads import OWN
from compare.trial.results.schema import Row
from reports.answer import data
from reports.catalogue import peer_singles, peer_times, peers, section, threads
from reports.select import Key, estimates
from reports.summary import StoredPeer

FACTS = {
    "language": "C++",
    "library": "",
    "scheme": "wheel",
    "rounding": "exact",
    "lateness": [0, 0],
}
SIZES = (1_000, 10_000)
FAST = StoredPeer({"name": "fast", **FACTS})
LATER = StoredPeer(
    {
        "name": "later",
        **FACTS,
        "language": "Java",
        "library": "lib 1.0",
        "rounding": "late by 1",
        "lateness": [0, 1],
    }
)
PYTHONIC = StoredPeer({"name": "pythonic", **FACTS, "language": "Python"})
WRONG = StoredPeer({"name": "wrong", **FACTS, "lateness": None}, "it disagrees: too late")
PEERS = (FAST, LATER, PYTHONIC, WRONG)


@pytest.fixture
def compared(called):
    """A summary with peers. Each figure is another number."""
    rows, subjects = [], [*SUBJECTS]
    for p, peer in enumerate(PEERS[:3]):
        for size in SIZES:
            for s, subject in enumerate(subjects):
                ns = size + 100 * p + 10 * s
                rows += [Row(peer.name, subject, size, METRIC, n, ns + n) for n in range(3)]
                singles = zip(SINGLE, (1, 2, 3, 4, 5), strict=True)
                rows += [
                    Row(peer.name, subject, size, name, None, ns + 0.1 * k) for name, k in singles
                ]
            rows.append(Row(peer.name, subjects[0], size, MEMORY, 0, 40.0 + p))
            for m, name in enumerate(METRICS):
                rows.append(Row(peer.name, CALLER, size, name, 0, float(size + 10 * p + m)))
    return replace(called, peers=PEERS, figures=called.figures | estimates(rows))


def test_peers_are_shown_with_what_is_known_or_the_reason(compared, called):
    table = peers(compared)
    assert [*table.rows] == [*PEERS]
    assert table.rows[LATER]["library",].text == "lib 1.0"
    assert table.rows[WRONG]["remark",].text == "it disagrees: too late"
    shown = section("peers", compared)
    assert "wrong: it disagrees: too late." in shown.lead and "fast:" not in shown.lead
    assert [each.name for each in shown.tables] == ["peers", "peer-times", "peer-singles"]
    assert section("peers", called) is None


def test_their_times_are_beside_each_other(compared):
    table = peer_times(compared)
    row = table.rows[LATER]
    assert row[formats.size(10_000), "hold [ns]"].value == 10_131
    assert "–" in row[formats.size(1_000), "hold [ns]"].detail  # the range
    assert row[formats.size(1_000), "memory [B]"].value == 41
    assert WRONG not in table.rows
    assert table.chosen == {"size": formats.size(10_000)}


def test_quantiles_of_single_operations(compared):
    table = peer_singles(compared)
    quantiles = [heading[2] for heading in table.headings][: len(SINGLE)]
    assert quantiles == ["p50", "p90", "p99", "p99.9", "greatest"]
    assert table.rows[FAST][formats.size(1_000), "expiry", "p99.9"].value == pytest.approx(1_040.4)


def test_a_program_in_another_language_may_get_one_of_its_peers(compared, called):
    answer, own = data(compared), data(called)
    languages = {name: each for name, each in answer["callers"].items() if name.startswith(CALLER)}
    assert [each["title"] for each in languages.values()] == ["a C++ program", "a Java program"]
    assert not any(name.startswith(CALLER) for name in own["callers"])
    first = len(called.contestants)  # hosts come after the peers
    [(number, by_size)] = languages["peer Java"]["fits"]["random"].items()
    assert number == first + PEERS.index(LATER)
    assert by_size[1_000]["constants"][:3] == [1_010, 1_011, 1_012]
    timer = answer["timers"][number]
    assert (timer["name"], timer["fires"], timer["low"], timer["high"]) == (
        *("later, lib 1.0", "late by 1"),
        *(0, 1),
    )
    assert not timer["exact"] and timer["code"] == []
    assert timer["memory"] == {1_000: 41.0, 10_000: 41.0}
    assert answer["callers"][COMPILED_CODE] == own["callers"][COMPILED_CODE]


def test_timers_of_several_threads_are_beside_each_other(compared, called):
    assert not threads(called).rows
    rows = []
    for count, subject in enumerate(("threads 1", "threads 4, oversubscribed"), 1):
        for name in (OWN, "fast"):
            rows += [Row(name, subject, 1_000, "threads_cpu", k, 100.0 * count + k) for k in (0, 2)]
            rows.append(Row(name, subject, 1_000, "threads_lost", None, 0.0))
    key = Key("later", "threads 1", 1_000, "threads_cpu")
    figures = compared.figures | estimates(rows)
    table = threads(replace(compared, figures=figures, failures={key: "failed: it doubles"}))
    assert [subject.label for subject in table.rows] == [OWN, "fast", "later"]
    four = table.rows[FAST]["4, oversubscribed", "CPU time [ns]"]
    assert (four.value, four.detail) == (201, "(200–202)")
    assert table.rows[FAST]["1", "lost"].value == 0
    assert table.rows[LATER]["1", "CPU time [ns]"].detail == "not timed: it failed: it doubles"
    assert table.chosen == {"threads": "4, oversubscribed"} and formats.size(1_000) in table.caption
