"""Two stored runs compared: the rule, as laws over random samples, and the command."""

import json
from itertools import combinations, count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.cli.main import BAD_INPUT, main
from compare.trial.bench.task import BY_CLOCK, HOLD, INSERT
from compare.trial.bench.task import TASKS as TASKS_OF_A_RUN
from compare.trial.results.store import RunError, read_run
from reports.diff import YARDSTICK, difference
from tests.reports.stored import replay_rows, task_rows
from tests.reports.stored import store as store_run
from tests.words import tells

HERE = {"cpu": "one", "cores": 2, "memory_bytes": 2**30, "platform": "Linux-1"}
TASKS = (INSERT, HOLD, BY_CLOCK)
numbers = count()


def store(root, samples, machine=HERE, replays=()):
    """A run with the samples of {(task, size, contestant): [ns, ...]}; its path."""
    rows = [
        row
        for (task, size, contestant), times in samples.items()
        for row in task_rows(contestant, task, size, times)
    ]
    for contestant, name, _, times in replays:
        rows += replay_rows(contestant, name, times)
    sources = [
        {"name": name, "unit": "ms", "details": {"seed": origin}} for _, name, origin, _ in replays
    ]
    return store_run(root, rows, machine=machine, sources=sources)


def stored(root, *arguments, **keywords):
    return read_run(store(root, *arguments, **keywords))


figures = st.dictionaries(
    st.tuples(st.sampled_from(TASKS), st.sampled_from((10, 100)), st.sampled_from("abc")),
    st.lists(st.floats(1, 1e6), min_size=1, max_size=9),
    min_size=1,
    max_size=8,
)


@given(samples=figures, other=figures)
def test_the_rule_is_symmetric_and_finds_nothing_in_equal_runs(tmp_path_factory, samples, other):
    root = tmp_path_factory.getbasetemp() / f"diff{next(numbers)}"
    first, second = stored(root, samples), stored(root, samples | other)
    same = difference(first, first)
    assert {change.verdict for change in same.changes} <= {"same", "few samples"}
    forth, back = difference(first, second), difference(second, first)
    opposite = {"slower": "faster", "faster": "slower"}
    turned = {(change.subject, change.contestant): change for change in back.changes}
    assert len(forth.changes) == len(back.changes) == len(samples)
    assert forth.missing == back.missing[::-1] == (0, len(samples | other) - len(samples))
    for change in forth.changes:
        reverse = turned[change.subject, change.contestant]
        assert reverse.verdict == opposite.get(change.verdict, change.verdict)
        assert change.ratio * reverse.ratio == pytest.approx(1)
        low, high = change.interval
        assert low <= change.ratio <= high
        few = min(change.before.n, change.after.n) < 5
        apart = low > 1.1 or high * 1.1 < 1
        assert change.verdict in {"few samples"} if few else (change.verdict != "same") == apart
    ratios = [change.ratio for change in forth.changes]
    assert ratios == sorted(ratios, reverse=True)


@given(samples=figures, speed=st.floats(0.01, 100))
def test_multiples_of_a_base_do_not_depend_on_the_machine(tmp_path_factory, samples, speed):
    root = tmp_path_factory.getbasetemp() / f"diff{next(numbers)}"
    samples |= {(task, size, YARDSTICK): [5.0, 9.0, 7.0] for task, size, _ in samples}
    drifting = {
        key: [ns * speed * repeat for repeat, ns in enumerate(times, 1)]
        for key, times in samples.items()
    }
    elsewhere = HERE | {"cpu": "other"}
    compared = difference(stored(root, samples), stored(root, drifting, machine=elsewhere))
    assert compared.base == YARDSTICK
    assert all(change.ratio == pytest.approx(1) for change in compared.changes)
    assert {change.contestant for change in compared.changes} == {key[2] for key in samples} - {
        YARDSTICK
    }


BUSY = json.loads((Path(__file__).parent / "busy_runs.json").read_text())
"""Samples of five runs of the same code on two cores with five other programs: for each task, size
and timer those of every run."""


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    root, tasks = tmp_path_factory.mktemp("busy"), {task.name: task for task in TASKS_OF_A_RUN}
    return [
        {(tasks[task], size, timer): runs[n] for task, size, timer, runs in BUSY if task in tasks}
        for n in range(5)
    ], root


def test_runs_of_the_same_code_hardly_differ_on_a_busy_machine(busy):
    runs, root = busy
    stored_runs = [stored(root / f"{n}", samples) for n, samples in enumerate(runs)]
    changes = [
        change
        for first, second in combinations(stored_runs, 2)
        for change in difference(first, second).changes
    ]
    judged = [change for change in changes if change.verdict != "few samples"]
    differ = [change for change in judged if change.verdict != "same"]
    assert len(judged) > 500 and len(differ) <= len(judged) // 100
    assert {change.contestant for change in changes if change not in judged} == {
        "heapq-delay-queue",
        "unordered-list",
    }


def test_a_timer_that_takes_twice_as_long_is_told_on_a_busy_machine(busy):
    runs, root = busy
    for n, (first, second) in enumerate(combinations(runs, 2)):
        slower = {
            key: scaled(2, times) if key[2] == "cascading-wheel" else times
            for key, times in second.items()
        }
        compared = difference(stored(root / f"a{n}", first), stored(root / f"b{n}", slower))
        regressions = compared.regressions(0.1)
        own = [change for change in regressions if change.contestant == "cascading-wheel"]
        assert len(own) >= 4 and len(regressions) - len(own) <= 1


STEADY, NOISY = [100.0, 101, 99, 100, 102], [70.0, 150, 90, 130, 110]
RUN = {(HOLD, 10, "a"): STEADY, (HOLD, 100, "a"): NOISY}
RUN |= {(INSERT, 10, "b"): STEADY, (INSERT, 100, "b"): STEADY}


def scaled(factor, times):
    return [ns * factor for ns in times]


@pytest.fixture
def runs(tmp_path):
    """A run; one in which a's steady hold takes 20 % longer, and b is faster."""
    after = {
        (HOLD, 10, "a"): scaled(1.2, STEADY),
        (HOLD, 100, "a"): scaled(1.2, NOISY),
        (INSERT, 10, "b"): scaled(0.5, STEADY),
        (INSERT, 100, "b"): scaled(0.8, STEADY),
        (INSERT, 10, "c"): STEADY,
    }
    return store(tmp_path / "before", RUN), store(tmp_path / "after", after)


def test_the_command_prints_what_is_beyond_noise(runs, capsys):
    assert main(["diff", *map(str, runs)]) == 1
    lines = capsys.readouterr().out.splitlines()
    [slower] = [line for line in lines if line.startswith("a ")]
    faster, less = (line for line in lines if line.startswith("b "))
    assert tells(slower, "a hold 10 100 120 20 16 24")
    assert tells(faster, "b insert 10 100 50.0 50 51 48")
    assert tells(less, "b insert 100 100 80.0 20 22 18")
    assert lines.index(slower) < lines.index(faster)
    assert "1 of 4 figures within noise" in lines
    assert "1 figure only in B" in lines
    assert tells(lines[-1], "slower 10 : 1")
    assert all(len(line) <= 80 for line in lines if not line.startswith(("A: ", "B: ")))
    assert lines[0] == "noise: A 3.03%, B 3.03%"


@pytest.mark.parametrize(
    ("threshold", "code"), [("0", 1), ("19", 1), ("20%", 0), ("1e3", 0), ("19.9", 1)]
)
def test_the_exit_code_is_that_of_the_threshold(runs, threshold, code):
    assert main(["diff", *map(str, runs), "--threshold", threshold]) == code


def test_few_samples_are_not_judged(tmp_path, capsys):
    slow = {**RUN, (HOLD, 10, "a"): [300.0] * 4}
    assert main(["diff", str(store(tmp_path, RUN)), str(store(tmp_path, slow))]) == 0
    out = capsys.readouterr().out
    assert "3 of 3 figures within noise" in out
    assert "not judged, fewer than 5 samples: 1 figure" in out


def test_if_nothing_could_be_judged_the_exit_code_says_so(tmp_path, capsys):
    few = {(HOLD, 10, "a"): [100.0] * 4, (INSERT, 10, "a"): [100.0]}
    slow = {key: scaled(3, times) for key, times in few.items()}
    paths = [str(store(tmp_path, samples)) for samples in (few, slow)]
    assert main(["diff", *paths]) == 3
    reason = "nothing was judged: every figure has fewer than 5 samples in one of the runs"
    assert capsys.readouterr().out.splitlines()[-1] == reason
    assert main(["diff", *paths, "--json"]) == 3
    compared = json.loads(capsys.readouterr().out)
    assert (compared["judged"], compared["reason"]) == (0, reason)
    assert main(["diff", *paths, "--markdown"]) == 3
    assert capsys.readouterr().out.rstrip().endswith(reason)


def test_markdown_has_a_table_of_each_verdict(runs, capsys):
    assert main(["diff", "--markdown", *map(str, runs)]) == 1
    parts = capsys.readouterr().out.split("\n\n")
    assert "### 1 figure slower in B, beyond noise" in parts
    [slower] = [part for part in parts if "| a | hold | 10 | 100 | 120 | +20 |" in part]
    assert slower.startswith("|  | task | pending | A | B | change | interval |\n|:--|")
    assert main(["diff", "--markdown", "--json", *map(str, runs)]) == BAD_INPUT


def test_json_has_every_figure(runs, capsys):
    assert main(["diff", "--json", *map(str, runs)]) == 1
    compared = json.loads(capsys.readouterr().out)
    assert compared["runs"] == [str(run) for run in runs]
    assert (compared["base"], compared["regressions"]) == (None, 1)
    verdicts = [change["verdict"] for change in compared["changes"]]
    assert verdicts == ["slower", "same", "faster", "faster"]
    first = compared["changes"][0]
    assert (first["task"], first["size"], first["contestant"]) == ("hold", 10, "a")
    assert (first["before"], first["after"]) == (100, 120)


def test_directories_of_runs_mean_their_newest(runs, capsys):
    before, after = runs
    store(after.parent, RUN)
    assert main(["diff", str(before.parent), str(after.parent)]) == 0
    assert "4 of 4 figures within noise" in capsys.readouterr().out


def test_replays_are_compared_where_the_traffic_is_the_same(tmp_path):
    first = stored(tmp_path, {}, replays=[("a", "x", "1", STEADY), ("a", "y", "1", STEADY)])
    second = stored(tmp_path, {}, replays=[("a", "x", "1", STEADY), ("a", "y", "2", STEADY)])
    compared = difference(first, second)
    assert [change.subject.task for change in compared.changes] == ["x"]
    assert compared.missing == (1, 1)


def refused(capsys, *arguments):
    assert main(["diff", *map(str, arguments)]) == BAD_INPUT
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


@pytest.mark.parametrize("machines", [(HERE, HERE | {"cores": 4}), [HERE | {"cpu": None}] * 2])
def test_different_machines_without_a_base_are_refused(tmp_path, capsys, machines):
    runs = [store(tmp_path, RUN, machine=machine) for machine in machines]
    assert "different machines" in refused(capsys, *runs)
    assert main(["diff", *map(str, runs), "--base", "b"]) == BAD_INPUT  # nothing beside b


def test_what_cannot_be_compared_is_refused_in_one_line(runs, tmp_path, capsys):
    assert "no timer is called 'c'; there are a, b" in refused(capsys, *runs, "--base", "c")
    assert "no figure in common" in refused(
        capsys, runs[0], store(tmp_path, {(BY_CLOCK, 10, "a"): STEADY})
    )
    assert "does not exist" in refused(capsys, runs[0], tmp_path / "none")
    assert "percentage" in refused(capsys, *runs, "--threshold", "-1")
    with pytest.raises(RunError):
        difference(stored(tmp_path, {}), stored(tmp_path, {}))
