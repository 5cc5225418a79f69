from compare.bench.store import read_run
from reports.findings import find
from reports.summary import Summary, summarise
from tests.reports.synthetic import defaults, write_synthetic


def test_the_findings_follow_from_the_figures(summary: Summary):
    found = find(summary)
    assert found.headline.startswith("cascading-wheel is the best all-rounder")
    topics = dict(found.topics)
    assert topics["With 1\u202f000\u202f000 timers pending"][0].startswith(
        "Insert: unordered-list at "
    )
    assert (
        "less precise: hashed-wheel (0–100 late) at"
        in topics["With 1\u202f000\u202f000 timers pending"][3]
    )
    assert any(
        text.startswith("unordered-list: expiry, clock-driven takes 9")
        for text in topics["Grows with N"]
    )
    assert any("1–100 ms late on uniform" in text for text in topics["Precision"])


def test_another_run_has_another_find(tmp_path):
    chosen = [
        (name, parameters)
        for name, parameters in defaults()
        if name in ("delay-queue", "hierarchical-wheel")
    ]
    found = find(summarise(read_run(write_synthetic(tmp_path, chosen, sizes=(1000,)))))
    assert found.headline.startswith("hierarchical-wheel is the best all-rounder")
    assert "cascading" not in str(found)
    assert "Not run" not in dict(found.topics)


def test_a_single_timer_and_no_workloads_have_an_find(tmp_path):
    chosen = [("hashed-wheel", {"tick": 100, "wheel_size": 512})]
    summary = summarise(read_run(write_synthetic(tmp_path, chosen, sizes=(1000,), workloads=())))
    assert find(summary).headline.startswith("hashed-wheel (0–100 late) is the only timer")


def test_an_empty_run_has_an_find(tmp_path):
    summary = summarise(read_run(write_synthetic(tmp_path, (), sizes=(1000,), workloads=())))
    assert find(summary).headline == "This run has no measurements to compare."
