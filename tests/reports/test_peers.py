"""The section of timers of other languages."""

from dataclasses import replace

from compare.trial.results.schema import Row
from reports.catalogue import peers, section
from reports.select import estimates
from reports.summary import StoredPeer

FACTS = {"language": "C++", "library": "", "scheme": "wheel", "rounding": "exact"}


def test_peers_are_shown_with_their_times_or_the_reason(called):
    fast = StoredPeer({"name": "fast", **FACTS})
    wrong = StoredPeer({"name": "wrong", **FACTS}, "disagrees: operation 3 came out late")
    rows = [Row("fast", "peer insert", 1_000, "peer_time", n, 7.0) for n in range(3)]
    summary = replace(called, peers=(fast, wrong), figures=called.figures | estimates(rows))
    table = peers(summary)
    times = [entry.value for entry in table.rows[fast].values() if entry.value == 7.0]
    assert times == [7.0]
    assert table.rows[wrong]["remark",].text == "disagrees: operation 3 came out late"
    shown = section("peers", summary)
    assert "wrong: disagrees" in shown.lead and "fast:" not in shown.lead
    assert section("peers", called) is None
