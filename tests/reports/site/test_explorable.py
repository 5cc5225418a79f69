"""The wheels of the site, in Node: the same code that the page runs and that the peers are."""

import json
import shutil
import subprocess

import pytest

from compare.traffic.tapes.flat import write_flat
from compare.traffic.tapes.tape import CANCEL, START
from reports.site.explorable import SCHEMES, script, sources
from tests.compare.small_tapes import tape_of
from tests.reports.anatomy.test_steps import WALK_THROUGH

MOST_LINES = 80  # of a scheme, blank lines left out

NEEDS_NODE = pytest.mark.skipif(not shutil.which("node"), reason="node is missing")


def answer(tmp_path, program):
    """What a program prints as JSON, with the wheels before it."""
    path = tmp_path / "wheels.js"
    path.write_text(
        f"{script()}\nconst answer = (value) => console.log(JSON.stringify(value));\n{program}"
    )
    done = subprocess.run(
        ["node", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_is_short_enough_to_be_read(name):
    lines = sources()[name].splitlines()
    assert len([line for line in lines if line.strip()]) <= MOST_LINES


@NEEDS_NODE
def test_the_walk_through_is_told_in_the_words_of_the_player(tmp_path):
    told = answer(
        tmp_path,
        """
        const driver = new Driver("hierarchical-wheel", { wheel_size: 10 }, EXAMPLES.walk);
        const told = {};
        while (driver.nextStop !== undefined) { driver.step(); told[driver.now] = driver.text; }
        answer(told);""",
    )
    assert {int(moment): text for moment, text in told.items()} == WALK_THROUGH


@NEEDS_NODE
def test_the_work_is_counted(tmp_path):
    """By hand: the clock of the walk-through stops 10 times after 0, and 9 timers move down."""
    work = answer(
        tmp_path,
        """
        const parameters = { wheel_size: 10, levels: 3 };
        const works = Object.keys(SCHEMES).filter((name) => name !== "ring").map((name) =>
          [name, new Driver(name, parameters, EXAMPLES.walk).run(Infinity).work]);
        answer(Object.fromEntries(works));""",
    )
    assert work["hierarchical-wheel"] == {
        "wake_ups": 10,
        "idle_wake_ups": 4,
        "queue_polls": 10,
        "empty_polls": 0,
        "refiled": 9,
    }
    # Each tick until 522 is visited, and each turn empties one slot above: 52 and 5 of them.
    ticks, turns = 522, 522 // 10 + 522 // 100
    assert work["cascading-wheel"]["slots_visited"] == ticks + turns
    assert work["cascading-wheel"]["wake_ups"] == ticks
    assert work["cascading-wheel"]["idle_wake_ups"] == ticks - 6
    assert work["cascading-wheel"]["refiled"] == 9
    # A timer is looked at in each round until its own: 9 // 10 + 88 // 10 + ... times, and once.
    rounds = sum(deadline // 10 + 1 for deadline in (9, 88, 222, 520, 521, 522))
    assert work["hashed-wheel"]["timers_touched"] == rounds
    assert work["hashed-wheel"]["slots_visited"] == work["hashed-wheel"]["wake_ups"] == 523
    assert work["heap"]["wake_ups"] == 6 and work["heap"]["idle_wake_ups"] == 0


@NEEDS_NODE
def test_a_touch_a_cancel_and_what_comes_too_late(tmp_path):
    told = answer(
        tmp_path,
        """
        const told = {}, operations = read("s0-0-5.s0-1-9.t2-0-20.c3-1.c3-1.s4-2-4.c20-0");
        for (const name of Object.keys(SCHEMES)) {
          const driver = new Driver(name, { wheel_size: 64 }, operations);
          driver.run(Infinity);
          told[name] = [driver.fired.count, driver.pending.size, driver.text];
          driver.step();
        }
        answer(told);""",
    )
    # Timer 2 is due at once. Timer 0 fires at 20, so its cancel comes too late; Netty's is later.
    counts = {name: fired for name, (fired, _, _) in told.items()}
    assert counts == {name: 1 if name == "hashed-wheel" else 2 for name in SCHEMES}
    assert {pending for _, pending, _ in told.values()} == {0}


@NEEDS_NODE
def test_what_a_scheme_cannot_hold_is_said(tmp_path):
    said = answer(
        tmp_path,
        """
        const said = (action) => {
          try { action(); } catch (error) { return `${error.name}: ${error.message}`; }
        };
        const run = (...given) => said(() => new Driver(...given).run(Infinity));
        answer([
          run("ring", { wheel_size: 10 }, EXAMPLES.walk),
          run("cascading-wheel", { wheel_size: 10, levels: 2 }, EXAMPLES.walk),
          run("hashed-wheel", {}, [[0, START, 0, 1e9]]),
          said(() => read("x1-2-3")), said(() => read("s1-2")), said(() => read("s1-2-x")),
          said(() => operationsOfLog("start,duration\\n1,2\\n3,oops", 1)),
          said(() => operationsOfTape(new ArrayBuffer(80))),
        ]);""",
    )
    assert said == [
        "RangeError: a delay of 88 is too long: it reaches 10",
        "RangeError: a delay of 222 is too long: it reaches 98",
        "RangeError: the clock would stop more than 2,000,000 times",
        *(f'RangeError: "{word}" is not an operation' for word in ("x1-2-3", "s1-2", "s1-2-x")),
        'RangeError: line 2 of the log is "3,oops"; it needs start, duration, timeout in seconds',
        "RangeError: the file is not a tape of version 1",
    ]


@NEEDS_NODE
def test_a_log_and_a_tape_become_operations(tmp_path):
    rows = [(7, START, 0, 20), (9, START, 1, 12), (10, CANCEL, 0, 0)]
    path = tmp_path / "some.tape"
    write_flat(path, tape_of(*rows), id_space=2, unit="ms")
    logs = [
        "start,duration,timeout\n10.5,0.02,0.5\n10.504,,0.1",
        "10.504;;0.1\n10.5;0.02;0.5",  # without names, in another order
        "2026-01-31T12:00:00.500Z\t0.02\n2026-01-31T12:00:00.504Z\t",
    ]
    read = answer(
        tmp_path,
        f"""
        const bytes = require("fs").readFileSync({json.dumps(str(path))});
        const tape = operationsOfTape(Uint8Array.from(bytes).buffer);
        const logs = {json.dumps(logs)}.map((log) => operationsOfLog(log, 0.3));
        answer({{ tape, logs, again: read(written(tape)) }});""",
    )
    moved = [[time - 7, op, id_, max(deadline - 7, 0)] for time, op, id_, deadline in rows]
    assert read["tape"] == moved == read["again"]
    own = [[0, START, 0, 500], [4, START, 1, 104], [20, CANCEL, 0, 0]]
    given = [[0, START, 0, 300], [4, START, 1, 304], [20, CANCEL, 0, 0]]
    assert read["logs"] == [own, own, given]


@NEEDS_NODE
def test_what_is_started_again_or_was_due_is_fired_once_and_in_time(tmp_path):
    """As an address can ask for: a start of a pending timer moves it."""
    fired = answer(
        tmp_path,
        """
        const operations = [[0, 0, 0, 9], [1, 0, 0, 12], [5, 0, 1, 3]];
        const parameters = { tick: 1, wheel_size: 10, levels: 3 };
        const all = ["heap", "hashed-wheel", "hierarchical-wheel", "cascading-wheel"].map((name) =>
          [name, new Driver(name, parameters, operations).run(Infinity).fired]);
        answer(Object.fromEntries(all));""",
    )
    for name, each in fired.items():
        assert (each["count"], each["early"]) == (2, 0), name
        assert each["late"] <= 1, name
