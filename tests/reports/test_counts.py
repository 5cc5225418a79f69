"""Counted work and rankings of two runs, by the command and in JSON."""

import json

import pytest

from compare.cli.commands.diff import NOT_JUDGED
from compare.cli.main import BAD_INPUT, main
from compare.trial.bench.task import HOLD, INSERT
from compare.trial.results.store import read_run
from reports.counts import counted_difference
from reports.rankings import rankings
from tests.reports.stored import replay_rows, store, task_rows

HERE = {"cpu": "one", "cores": 2, "memory_bytes": 2**30}


def counted(root, seed=0, **changes):
    """A run with the counts of two timers and a replay."""
    rows = []
    for name in ("a", "b"):
        counts = {"comparisons": 8.0, "refiled": 0.0, "slots_visited": 2.0}
        rows += task_rows(name, HOLD, 10, [50.0], **counts | changes.get(name, {}))
        rows += replay_rows(name, "w", [9.0], refiled=4.0, scheduled=77.0)
    source = {"name": "w", "unit": "ms", "details": {"seed": 1}}
    return store(root, rows, sources=[source], parameters={"seed": seed}, machine=HERE)


@pytest.mark.parametrize(
    ("more", "arguments", "code"),
    [
        (1.0, (), 0),
        (1.009, (), 0),
        (1.05, (), 1),
        (0.5, (), 0),
        (1.05, ("--threshold", "6"), 0),
        (1.07, ("--threshold", "6"), 1),
        (1.001, ("--threshold", "0"), 1),
    ],
)
def test_five_percent_more_work_is_caught(tmp_path, capsys, more, arguments, code):
    runs = counted(tmp_path), counted(tmp_path, a={"comparisons": 8.0 * more})
    assert main(["diff", *map(str, runs), "--counters", *arguments]) == code
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith(("A:", "B:")))
    if code:
        [line] = [line for line in out.splitlines() if line.startswith("a ")]
        assert line.split()[:4] == ["a", "hold", "10", "comparisons"]
        assert float(line.split()[-1]) == pytest.approx(100 * (more - 1))


def test_work_where_there_was_none_is_more_and_less_is_told(tmp_path, capsys):
    after = counted(tmp_path, a={"refiled": 0.001}, b={"slots_visited": 1.0})
    compared = counted_difference(read_run(counted(tmp_path)), read_run(after))
    [more], [less] = compared.more(0.01), compared.less(0.01)
    assert (more.contestant, more.counter, more.before, more.after) == ("a", "refiled", 0, 0.001)
    assert (less.contestant, less.counter, less.ratio) == ("b", "slots_visited", 0.5)
    assert len(compared.counts) == 8  # the number of scheduled timers is not work
    assert main(["diff", str(after), str(after), "--counters", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["regressions"], len(plain["counts"])) == (0, 8)


def test_runs_of_other_operations_are_refused(tmp_path, capsys):
    assert main(["diff", str(counted(tmp_path)), str(counted(tmp_path, 7)), "--counters"]) == 2
    assert "count other operations: seed is 0 and 7" in capsys.readouterr().err
    other = store(tmp_path, task_rows("a", INSERT, 10, [1.0]), parameters={"seed": 0})
    assert main(["diff", str(counted(tmp_path)), str(other), "--counters"]) == BAD_INPUT
    assert "no counter in common" in capsys.readouterr().err


# ---- rankings


def ranked(root, machine=HERE, samples=5, **times):
    """A run with samples around a time for each timer, at two sizes."""
    rows = []
    for name, pair in times.items():
        for size, time in zip((10, 100), pair, strict=True):
            taken = [time * by for by in (0.98, 0.99, 1.0, 1.01, 1.02)]
            rows += task_rows(name, HOLD, size, taken[:samples])
    return store(root, rows, machine=machine)


RUN = {"a": (10, 10), "b": (20, 20), "c": (20.1, 40)}


@pytest.mark.parametrize(
    ("other", "expected", "code"),
    [
        ({}, (5, 1, []), 0),
        ({"a": (15, 15)}, (5, 1, []), 0),  # slower, in the same order
        ({"c": (19, 40)}, (5, 1, []), 0),  # b and c were tied
        ({"a": (20.2, 10)}, (3, 3, []), 0),  # tied with both now
        ({"a": (30, 10)}, (3, 1, [("a", "b", 10), ("a", "c", 10)]), 1),
        ({"c": (20.1, 9)}, (3, 1, [("a", "c", 100), ("b", "c", 100)]), 1),
    ],
)
def test_rankings_agree_outside_the_ties(tmp_path, capsys, other, expected, code):
    first, second = ranked(tmp_path, **RUN), ranked(tmp_path, **RUN | other)
    compared = rankings(read_run(first), read_run(second))
    agreed, tied, contradictions = expected
    assert (compared.cells, compared.agreed, compared.tied) == (2, agreed, tied)
    found = [(each.first, each.second, each.subject.size) for each in compared.contradictions]
    assert found == contradictions
    assert main(["diff", str(first), str(second), "--rankings"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "noise: A 4.08%, B 4.08%"
    assert all(len(line) <= 80 for line in lines if not line.startswith(("A:", "B:")))
    assert (lines[-1] == "the rankings agree, apart from ties") == (not code)
    for a, b, size in contradictions:
        assert any(line.split()[:4] == [a, b, "hold", str(size)] for line in lines)


def test_json_has_the_contradictions_with_their_times(tmp_path, capsys):
    first, second = ranked(tmp_path, **RUN), ranked(tmp_path, **RUN | {"a": (30, 10)})
    assert main(["diff", str(first), str(second), "--rankings", "--json"]) == 1
    plain = json.loads(capsys.readouterr().out)
    assert plain["contradictions"][0] == {
        "task": "hold",
        "size": 10,
        "faster_in_first": "a",
        "faster_in_second": "b",
        "times": [10, 20, 30, 20],
    }
    assert plain["same_machine"] and [each["busy"] for each in plain["noise"]] == [False] * 2


def test_other_machines_are_named_and_options_that_do_not_fit_refused(tmp_path, capsys):
    first, second = ranked(tmp_path, **RUN), ranked(tmp_path, {"cpu": "two"}, **RUN)
    assert main(["diff", str(first), str(second), "--rankings"]) == 0
    assert "of different machines" in capsys.readouterr().out
    for more in (("--counters",), ("--base", "a"), ("--threshold", "5")):
        assert main(["diff", str(first), str(second), "--rankings", *more]) == BAD_INPUT
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"a": (1, 1)}, "have only a in common; a ranking needs two timers"),
        ({"x": (1, 1), "y": (2, 2)}, "have no task with two timers in common"),
    ],
)
def test_runs_without_a_ranking_in_common_say_what_they_lack(tmp_path, capsys, other, says):
    first, second = ranked(tmp_path, **RUN), ranked(tmp_path, **other)
    assert main(["diff", str(first), str(second), "--rankings"]) == BAD_INPUT
    err = capsys.readouterr().err
    assert f"{first} and {second} {says}" in err and err.count("\n") == 1


def test_a_run_with_itself_agrees_and_one_with_a_single_timer_has_no_ranking(tmp_path, capsys):
    run, alone = str(ranked(tmp_path, **RUN)), str(ranked(tmp_path, a=(1, 1)))
    assert main(["diff", run, run, "--rankings"]) == 0
    assert "the rankings agree" in capsys.readouterr().out
    assert main(["diff", alone, alone, "--rankings"]) == BAD_INPUT
    err = capsys.readouterr().err
    assert err == f"wheelwork: error: {alone} has no task with two timers, so there is no ranking\n"


def test_rankings_of_which_nothing_is_decided_are_not_judged(tmp_path, capsys):
    runs = [str(ranked(tmp_path, samples=4, **RUN))] * 2
    assert main(["diff", *runs, "--rankings"]) == NOT_JUDGED
    assert "no pair was decided in both runs" in capsys.readouterr().out


def test_a_pair_with_few_samples_decides_nothing(tmp_path):
    few = read_run(ranked(tmp_path, samples=4, **RUN | {"a": (30, 30)}))
    compared = rankings(read_run(ranked(tmp_path, **RUN)), few)
    assert (compared.agreed, compared.tied, compared.contradictions) == (0, 6, [])


def test_counts_that_one_run_lacks_are_of_that_run(tmp_path):
    """The second has another timer, with three counts of its own."""
    first = read_run(counted(tmp_path))
    rows = [*task_rows("a", HOLD, 10, [50.0], comparisons=8.0)]
    rows += task_rows("c", HOLD, 10, [50.0], comparisons=1.0, refiled=2.0, slots_visited=3.0)
    second = read_run(store(tmp_path, rows, parameters={"seed": 0}))
    forth, back = counted_difference(first, second), counted_difference(second, first)
    assert len(forth.counts) == len(back.counts) == 1
    assert (forth.missing, back.missing) == ((7, 3), (3, 7))
    assert forth.paths == (str(first.path), str(second.path))
