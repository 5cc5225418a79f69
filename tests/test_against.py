"""The gate against another commit: what it says of known ratios, failures, time and the table."""

import random
import subprocess
import sys
import threading
from statistics import median

import pytest

import compare
import timers
from compare.traffic.logs.formats import FORMATS
from tests.bench.against import __main__ as command
from tests.bench.against import measure, printing, rare, traffic
from tests.bench.against.install import CommitError, full_name, installed
from tests.bench.against.measure import FEWEST, FOLDER, PAIRS, Gate, Turn, WorkerError, side_of
from tests.bench.against.ratios import ABSENT, LEAST, NO_TIME, Result, Turns, interval
from tests.bench.against.row import AbsentError, Row, resolve
from tests.bench.against.table import ROWS, TIMERS
from timers import registry, services

ROOT = FOLDER.parents[1]

# Ratios


@pytest.mark.parametrize(
    ("count", "first"), [(3, 1), (5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (21, 6)]
)
def test_an_interval_reaches_between_the_order_statistics_of_the_sign_test(count, first):
    values = random.Random(count).sample(range(1000), count)
    low, middle, high = interval(values)
    assert (low, high) == (sorted(values)[first - 1], sorted(values)[-first])
    assert middle == median(values)


def test_an_interval_has_the_median_as_often_as_it_says():
    dice, hits = random.Random(1), {6: 0, 12: 0, 21: 0}
    for count in hits:
        for _ in range(2000):
            low, _, high = interval([dice.lognormvariate(0, 1) for _ in range(count)])
            hits[count] += low <= 1 <= high
    assert all(0.94 < hit / 2000 < 0.985 for hit in hits.values()), hits


def result(*pairs, **how):
    return Result("group: one", 0, "pending", [Turns(*pair) for pair in pairs], **how)


def test_a_ratio_is_the_time_here_by_the_time_there():
    twice = result(([1.0] * 6, [2.0] * 6))
    assert twice.ratio == (2.0, 2.0, 2.0)
    assert twice.seconds == (1.0, 2.0)
    assert twice.is_slower(1.25)
    assert not twice.is_faster(1.25)
    half = result(([2.0] * 6, [1.0] * 6))
    assert half.is_faster(1.25)
    assert not half.fails(1.25)


@pytest.mark.parametrize(
    ("here", "slower"),
    [
        ([1.25] * 6, False),  # at the limit
        ([1.26] * 6, True),
        ([1.24, 2, 2, 2, 2, 2], False),  # one within, of six
        ([1.24, *[2] * 8], True),  # one within, of nine
    ],
)
def test_a_row_fails_only_if_its_whole_interval_lies_beyond_the_limit(here, slower):
    assert result(([1.0] * len(here), here)).fails(1.25) == slower


def test_a_row_with_too_few_turns_is_marked_and_fails_if_it_seems_slower():
    few, enough = LEAST - 1, LEAST
    for here, mark in ((2.0, "!"), (0.5, "+")):
        assert result(([1.0] * enough, [here] * enough)).has_few_turns is False
        for pairs in ([few], [FEWEST, FEWEST]):
            one = result(*(([1.0] * turns, [here] * turns) for turns in pairs))
            assert one.is_open(1.25) == (here > 1.25)  # so that it is measured again,
            assert one.fails(1.25) == (here > 1.25)  # unless there is no time for it
            assert f"{here:.2f}~" in printing.line(one, 1.25)
            assert printing.summary([one], 1.25) == "1 with too few turns (~)"
            assert f"| {here:.2f}~ |" in printing.markdown({"HEAD": [one]}, 1.25)
        both = result(*(([1.0] * few, [here] * few) for _ in range(2)))
        assert f"{here:.2f}{mark}" in printing.line(both, 1.25)


def test_a_row_fails_only_if_each_pair_of_processes_does():
    slow, even = ([1.0] * 6, [2.0] * 6), ([1.0] * 6, [1.1] * 6)
    assert result(slow, slow, slow).fails(1.25)
    assert not result(slow, even).fails(1.25)
    assert result(slow, even).ratio == (1.1, 1.55, 2.0)


# Turns


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class FakeSide:
    """A side that takes known times; `costs` has seconds by row, or a function of the process."""

    def __init__(self, clock, costs, failing=None, sleeps=0.0):
        self.clock, self.costs, self.failing = clock, costs, failing or {}
        self.sleeps, self.reason = sleeps, ""
        self.process, self.opened, self.order = 1, [], []

    def open(self, row, size, patience=0):
        self.reason, self.row = "", row.name
        self.opened.append((row.name, size))
        why = self.failing.get((row.name, size)) or self.failing.get(row.name, "")
        if why:
            self.reason = why
            raise WorkerError(why)

    def turn(self, count, patience=0):
        cost = self.costs[self.row]
        used = count * (cost(self.process) if callable(cost) else cost)
        self.clock.now += used + self.sleeps * count
        self.order.append((self.clock.now, count))
        return Turn(used, used + self.sleeps * count)

    def close(self):
        pass

    def end(self):
        self.process += 1


def row(name, sizes=(0,)):
    return Row(name, sizes, (), "", None)


def measured(rows, there, here, seconds=60.0, **how):
    """The results that a gate yields, and its sides."""
    clock = Clock()
    sides = FakeSide(clock, *there), FakeSide(clock, *here, **how)
    gate = Gate(*sides, 1.25, clock)
    for _ in gate.compile(rows):
        pass
    start = clock.now
    return list(gate.measure(rows, seconds)), sides, clock.now - start


def test_both_sides_perform_as_much_in_turns_and_either_is_first():
    clock = Clock()
    there, here = FakeSide(clock, {"g: a": 1e-4}), FakeSide(clock, {"g: a": 1e-4})
    (one,) = Gate(there, here, 1.25, clock).measure([row("g: a")], 60.0)
    assert not one.fails(1.25)
    last = [count for _, count in here.order]
    assert set(last) == {there.order[-1][1]}  # the count that was found on the other side
    assert last[0] * 1e-4 >= measure.TURN
    ends = sorted(
        [(when, "there") for when, _ in there.order[-4:]]
        + [(w, "here") for w, _ in here.order[-4:]]
    )
    assert "".join(name[0] for _, name in ends) in ("thhtthht", "htthhtth")
    assert one.ratio.middle == pytest.approx(1)


def test_known_ratios_come_out_and_only_the_slower_row_fails():
    names = ("g: even", "g: slower", "h: faster")
    costs = {"g: even": 1e-5, "g: slower": 2e-5, "h: faster": 1e-6}
    base = dict.fromkeys(names, 1e-5)
    results, _, _ = measured([row(name, (0, 5)) for name in names], (base,), (costs,))
    final = {(one.name, one.size): one for one in results}
    assert len(final) == 6
    for (name, _), one in final.items():
        assert one.ratio.middle == pytest.approx(costs[name] / 1e-5)
        assert one.fails(1.25) == (name == "g: slower")
        assert len(one.pairs) == (PAIRS if name == "g: slower" else 1)
    assert [one.name for one in results] == ["g: even"] * 2 + ["g: slower"] * 2 + [
        "h: faster"
    ] * 2 + ["g: slower"] * 2


def test_a_row_that_seems_slower_in_one_process_only_passes():
    def cost(process):
        return 2e-5 if process <= 2 else 1e-5

    results, _, _ = measured([row("g: a")], ({"g: a": 1e-5},), ({"g: a": cost},))
    assert len(results) == 2  # seen at once, and again when it is final
    assert not results[-1].fails(1.25)
    assert len(results[-1].pairs) == 2


def test_a_side_that_fails_in_the_second_look_has_no_ratio():
    class Failing(FakeSide):
        def open(self, row, size, patience=0):
            self.failing = {"g: a": "MemoryError"} if self.process > 2 else {}
            super().open(row, size)

    clock = Clock()
    sides = FakeSide(clock, {"g: a": 1e-5}), Failing(clock, {"g: a": 2e-5})
    gate = Gate(*sides, 1.25, clock)
    list(gate.compile([row("g: a")]))
    first, last = gate.measure([row("g: a")], 60.0)
    assert first is last
    assert last.fails(1.25)
    assert "here: MemoryError" in printing.line(last, 1.25)


def test_what_one_side_cannot_do_is_said_and_the_rest_goes_on():
    rows = [
        row("g: gone", (0, 5)),
        row("g: broken", (0, 5)),
        row("g: late", (0, 5)),
        row("g: well"),
    ]
    base = {one.name: 1e-5 for one in rows}
    results, sides, _ = measured(
        rows,
        (base, {"g: gone": ABSENT}),
        (base,),
        failing={"g: broken": "ValueError: no", ("g: late", 5): "no answer in 60 s"},
    )
    said = {(one.name, one.size): (one.there, one.here) for one in results}
    assert said == {
        ("g: gone", 0): (ABSENT, ""),  # once, not for each size
        ("g: broken", 0): ("", "ValueError: no"),
        ("g: late", 0): ("", ""),
        ("g: late", 5): ("", "no answer in 60 s"),
        ("g: well", 0): ("", ""),
    }
    fails = {one.name for one in results if one.fails(1.25)}
    assert fails == {"g: broken", "g: late"}  # an operation that is new here does not fail


@pytest.mark.parametrize("sleeps", [0.0, 0.01])
def test_it_takes_no_longer_than_it_may_and_what_it_did_not_reach_fails(sleeps):
    rows = [row(f"g: {number}") for number in range(40)]
    costs = {one.name: 1e-4 for one in rows}
    slow = {one.name: 1.5e-4 for one in rows}
    for seconds in (2.0, 20.0, 200.0):
        results, _, took = measured(rows, (costs, {}, sleeps), (slow,), seconds, sleeps=sleeps)
        final = {one.name: one for one in results}
        assert len(final) == 40
        # A case that has begun is finished: calibration and LEAST turns of both sides.
        assert took < seconds + 2 * (LEAST + 8) * 0.25
        reached = [one for one in final.values() if one.here != NO_TIME]
        assert all(one.fails(1.25) for one in final.values())
        assert (len(reached) == 40) == (seconds == 200.0 or (seconds == 20.0 and not sleeps))


@pytest.mark.parametrize("dear", [0, 39])
def test_a_row_that_takes_long_takes_turns_from_later_ones_but_not_all(dear):
    """One row takes half of the time; each other one is reached, wherever that one stands."""
    rows = [row(f"g: {number}") for number in range(40)]
    costs = {one.name: 1e-4 for one in rows} | {f"g: {dear}": 0.3}
    results, _, _ = measured(rows, (costs,), (costs,), 8.0)
    assert len(results) == 40
    assert all(one.measured and not one.fails(1.25) for one in results)
    turns = [len(one.pairs[0].here) for one in results]
    assert min(turns) >= FEWEST
    assert any(one.has_few_turns for one in results) == (dear == 0)
    assert turns[dear] >= LEAST


# Workers

PROGRAM = """
import os, time
from against import worker
from against.row import Row

def well(size):
    print("a row may print")
    yield lambda count: count * 1e-3

def raises(size):
    raise ValueError("two\\nlines")
    yield

def raises_later(size):
    def turn(count):
        raise RuntimeError
    yield turn

def exits(size):
    os._exit(3)
    yield

def hangs(size):
    yield lambda count: time.sleep(60)

names = {"well": well, "raises": raises, "raises later": raises_later, "exits": exits}
rows = [Row(f"g: {name}", (0,), (), "", case) for name, case in {**names, "hangs": hangs}.items()]
rows.append(Row("g: absent", (0,), ("timers:NoSuchTimer",), "", well))
worker.ROWS = tuple(rows)
worker.main()
"""


@pytest.fixture
def side():
    made = side_of(sys.executable, ROOT)
    made._command = [sys.executable, "-c", PROGRAM]
    yield made
    made.end()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", "ValueError: two lines"),
        ("raises later", "RuntimeError"),
        ("exits", "the process ended with 3"),
        ("hangs", "no answer in 1 s"),
        ("absent", ABSENT),
    ],
)
def test_a_worker_says_why_it_cannot_and_goes_on(side, name, reason):
    with pytest.raises(WorkerError):
        side.open(row(f"g: {name}"), 0)
        side.turn(1, patience=1)
    assert side.reason == reason
    side.open(row("g: well"), 0)
    assert side.turn(5).cpu == 5e-3
    assert side.reason == ""
    side.close()


def test_a_side_imports_the_project_from_its_own_folder(side, tmp_path):
    assert side.where() == str(ROOT / "timers" / "__init__.py")
    (tmp_path / "timers").mkdir()
    (tmp_path / "timers" / "__init__.py").touch()
    other = side_of(sys.executable, tmp_path)
    try:
        assert other.where() == str(tmp_path / "timers" / "__init__.py")
    finally:
        other.end()


def test_a_gate_measures_real_operations_of_real_processes():
    rows = [one for one in ROWS if one.name == "SystemTimer: when, done, cancelled"]
    gate = Gate(side_of(sys.executable, ROOT), side_of(sys.executable, ROOT), 1000.0)
    results = list(gate.measure([rows[0]._replace(sizes=(0,))], 2.0))
    assert [one.measured for one in results] == [True], results
    assert all(1e-8 < seconds < 1e-4 for seconds in results[0].seconds)


# Commits

BACKEND = """
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    {fault}
    name = "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        wheel.writestr("tiny.py", open("tiny.py").read())
        about = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n"
        wheel.writestr("tiny-1.0.dist-info/METADATA", about)
        kind = "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("tiny-1.0.dist-info/WHEEL", kind)
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    return name
"""
BUILD = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
BUILD += '[project]\nname = "tiny"\nversion = "1.0"\n'


@pytest.fixture
def repository(tmp_path):
    """A repository with two commits of a package: one prints "old", and one cannot be built."""
    root = tmp_path / "repository"
    root.mkdir()

    def git(*arguments):
        name = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", *name, *arguments], cwd=root, check=True, capture_output=True)

    git("init", "-b", "main")
    (root / "pyproject.toml").write_text(BUILD)
    (root / "tiny.py").write_text("print('old')")
    for tag, fault in (("old", ""), ("broken", "raise ValueError('no')")):
        (root / "backend.py").write_text(BACKEND.replace("{fault}", fault))
        git("add", ".")
        git("commit", "-m", tag)
        git("tag", tag)
    (root / "tiny.py").write_text("print('not committed')")
    return root


def test_a_commit_is_installed_once_and_again_if_interrupted_or_if_packages_change(
    repository, tmp_path
):
    """For real, which takes some seconds: a mocked installation would show nothing."""
    python = installed("old", tmp_path / "environments", repository)
    told = [str(python), "-c", "import tiny"]
    assert subprocess.check_output(told, text=True, cwd=tmp_path) == "old\n"
    environment = python.parent.parent
    rest, complete = environment / "rest", environment / "versions.txt"
    assert "numba==" in complete.read_text()
    for change, remains in (
        (lambda: None, True),
        (lambda: complete.write_text("numba==0.1"), False),
        (complete.unlink, False),
    ):
        rest.touch()
        change()
        assert installed("old", tmp_path / "environments", repository) == python
        assert rest.exists() == remains


def test_a_commit_that_cannot_be_installed_is_one_line(repository, tmp_path):
    with pytest.raises(CommitError, match=r"^broken cannot be installed: .+$") as error:
        installed("broken", tmp_path / "environments", repository)
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "environments").glob("*/versions.txt"))


@pytest.mark.parametrize("commit", ["no-such-commit", "", "--all", "HEAD:noxfile.py", "0" * 40])
def test_a_wrong_commit_is_one_clear_line(monkeypatch, capsys, commit, repository):
    with pytest.raises(CommitError):
        full_name(commit, repository)
    if not commit.startswith("-"):
        monkeypatch.setattr(sys, "argv", ["against", commit])
        monkeypatch.setattr(command, "ROOT", repository)
        with pytest.raises(SystemExit) as end:
            command.main()
        assert end.value.code == f"{commit!r} is not a commit of this repository"
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["HEAD", "--only", "nothing like it"], "no row has 'nothing like it' in its name"),
        (["HEAD", "--limit", "0.9"], "limit must be a number above 1, not 0.9"),
        (["HEAD", "--limit", "nan"], "limit must be a number above 1, not nan"),
        (["HEAD", "--minutes", "0"], "minutes must be a number above 0, not 0"),
        (["HEAD", "--minutes", "inf"], "minutes must be a number above 0, not inf"),
        ([], "arguments are required: COMMIT"),
    ],
)
def test_wrong_options_are_one_clear_line(monkeypatch, capsys, options, message):
    monkeypatch.setattr(sys, "argv", ["against", *options])
    with pytest.raises(SystemExit) as end:
        command.main()
    told = str(end.value.code) + capsys.readouterr().err
    assert end.value.code != 0
    assert message in told.splitlines()[-1]


# What is printed


RESULTS = [
    result(([1e-6] * 6, [2e-6] * 6)),
    result(([12.3e-9] * 6, [4.5e-9] * 6)),
    result(([123.4] * 6, [123.4] * 6)),
    result(([1e-6] * 6, [5.756e-4] * 6)),
    result(there=ABSENT),
    result(here="ValueError: " + 100 * "long "),
    result(here=NO_TIME),
]


def test_a_line_has_at_most_80_columns_and_a_mark():
    lines = [printing.line(one, 1.25) for one in RESULTS]
    assert max(map(len, [*lines, printing.heading("17af148")])) <= 80
    assert lines[0].endswith("1.00 us  2.00 us  2.00! 2.00-2.00")
    assert lines[1].endswith("12.3 ns  4.50 ns  0.37+ 0.37-0.37")
    assert lines[2].endswith("123 s    123 s  1.00  1.00-1.00")
    assert lines[3].endswith("1.00 us   576 us   576! 576-576")
    assert lines[4].endswith("absent there")
    assert "here: ValueError: long" in lines[5]
    assert lines[6].endswith("  no time was left")
    assert printing.line(RESULTS[0], 1.25, final=False).endswith("2.00? 2.00-2.00")
    for row_ in ROWS:
        for size in row_.sizes:
            whole = Result(row_.name, size, row_.unit, [Turns([0.1234] * 6, [9.994] * 6)])
            text = printing.line(whole, 1.25)
            assert len(text) <= 80
            assert row_.name.partition(": ")[2] in text


def test_the_summary_counts_each_verdict():
    text = printing.summary(RESULTS, 1.25)
    assert text == (
        "1 absent there, 1 failed here, 1 faster than 1/1.25 (+), 1 not measured,"
        " 2 slower than 1.25 (!), 1 within"
    )


@pytest.mark.parametrize(
    ("here", "code"), [([1.0] * 6, 0), ([1.2] * 6, 0), ([1.5] * 6, 1)], ids=["even", "near", "slow"]
)
def test_the_command_prints_all_and_ends_with_1_beyond_the_limit(
    monkeypatch, capsys, tmp_path, here, code
):
    class Measured(Gate):
        def compile(self, rows):
            return iter(())

        def measure(self, rows, seconds):
            assert seconds == 60.0
            there, here_ = self._sides  # the other commit is installed; this one is the sources
            assert there._command[0] == "python of the commit"
            assert "PYTHONPATH" not in there._environment
            assert here_._command[0] == sys.executable
            assert here_._environment["PYTHONPATH"] == str(ROOT)
            for one in rows:
                yield Result(one.name, 0, one.unit, [Turns([1.0] * 6, here)])
                if here[0] > 1.25:
                    yield Result(one.name, 0, one.unit, [Turns([1.0] * 6, here)] * 3)

    monkeypatch.setattr(command, "installed", lambda *_: "python of the commit")
    monkeypatch.setattr(command, "Gate", Measured)
    page = tmp_path / "table.md"
    arguments = [
        "HEAD",
        "HEAD~1",
        "--only",
        "idledetector",
        "--minutes",
        "1",
        "--markdown",
        str(page),
    ]
    monkeypatch.setattr(sys, "argv", ["against", *arguments])
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == code
    out = capsys.readouterr().out
    count = len([one for one in ROWS if "idledetector" in one.name.lower()])
    assert out.count(f"{here[0]:.2f}") >= 2 * count
    assert ("?" in out) == bool(code)
    rows = page.read_text().splitlines()
    assert rows[0] == "| operation | sizes | HEAD | HEAD~1 |"
    assert rows[2].startswith("| IdleDetector: touch | 0 connections | ")
    assert "\nIdleDetector (connections)\n" in out
    assert "\nfirst use\n" in out
    assert len(rows) == 2 + count
    monkeypatch.setattr(sys, "argv", ["against", *arguments[:-1], "-"])
    with pytest.raises(SystemExit):
        command.main()
    assert capsys.readouterr().out == page.read_text()


# The table


def test_names_are_unique_and_the_rows_of_a_group_stand_together():
    names = [one.name for one in ROWS]
    assert len(names) == len(set(names))
    groups = [one.group for one in ROWS]
    changes = [group for place, group in enumerate(groups) if groups[place - 1 : place] != [group]]
    assert len(changes) == len(set(changes))


def test_a_row_has_three_sizes_unless_nothing_can_be_beside_it():
    for one in ROWS:
        assert len(one.sizes) == (3 if one.unit else 1)
        assert list(one.sizes) == sorted(set(one.sizes))


@pytest.mark.parametrize("places", sorted({place for one in ROWS for place in one.imports}))
def test_each_import_is_found_here_in_its_first_place(places):
    assert resolve(places) is resolve(places.partition(" | ")[0])


def test_an_import_is_taken_from_where_it_is_and_a_broken_module_is_no_absent_one(
    tmp_path, monkeypatch
):
    (tmp_path / "lacking.py").write_text("import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    assert resolve("timers.gone:A | timers:gone | timers:Timer.advance") is timers.Timer.advance
    # A folder may have the name that another layout has for a function.
    assert resolve("timers:services | timers:Timer") is timers.Timer
    with pytest.raises(AbsentError, match="no_such:thing is absent"):
        resolve("no_such:thing | timers:gone")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        resolve("lacking:thing | timers:Timer")


def test_every_registered_timer_and_format_is_in_the_table():
    assert {name: timers.timer_class(name) for name in registry.names()} == {
        name: resolve(place) for name, place in TIMERS.items()
    }
    formats = {name.partition(" ")[0] for name, log in traffic.LOGS.items() if log.known}
    assert formats | {"parquet"} == set(FORMATS)


def public_members(cls):
    """The methods and properties that a class and its bases in the project define."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in ("timers", "compare"):
            yield from (name for name in vars(base) if not name.startswith("_"))


def public_names():
    """What programs can call: functions and classes, and the members of the classes."""
    for module in (timers, services, compare):
        for name in module.__all__:
            yield name
            cls = getattr(module, name)
            if cls is timers.Timer or (module is services and isinstance(cls, type)):
                yield from (f"{name}.{member}" for member in public_members(cls))


def thing(name):
    """What a public name stands for; a method that a class inherits is one thing in both."""
    first, _, member = name.partition(".")
    module = next(module for module in (timers, services, compare) if hasattr(module, first))
    return getattr(getattr(module, first), member) if member else getattr(module, first)


def test_every_public_operation_is_in_a_row_or_rare_with_a_reason():
    in_rows = {name for one in ROWS for name in one.covers.split()}
    told = {**{thing(name): name for name in in_rows}, **{thing(name): name for name in rare.RARE}}
    assert [name for name in public_names() if thing(name) not in told] == []
    # Neither list names what does not exist, and no name is in both.
    public = {*public_names(), "Timer.__len__", "Timer.__init__"}
    assert {*in_rows, *rare.RARE} - public == set()
    assert in_rows & set(rare.RARE) == set()


def functions_of(name):
    """The code that a public name of the services runs."""
    found = getattr(thing(name), "fget", thing(name))
    found = found.__init__ if isinstance(found, type) else found
    return getattr(found, "__code__", None)


SERVICE_ROWS = [one for one in ROWS if one.group in ("SystemTimer", "AsyncTimer", "loop")]
SERVICE_ROWS += [one for one in ROWS if one.group in ("Purgatory", "IdleDetector")]


@pytest.mark.parametrize("one", SERVICE_ROWS, ids=lambda one: one.name)
def test_a_row_calls_what_it_covers(one):
    """Seen by a profiler, in all threads; a row that says more than it does covers nothing."""
    called = set()

    def profile(frame, event, _):
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        case = one.case(one.sizes[0], *map(resolve, one.imports))
        next(case)(3000 if one.group == "Purgatory" else 3)
        case.close()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    for name in one.covers.split():
        code = functions_of(name)
        assert code is None or code in called, name
