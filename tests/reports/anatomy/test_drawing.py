"""What a drawing shows, and `wheelwork anatomy`."""

import re
import shutil
import subprocess
from collections import Counter
from itertools import combinations, islice
from math import atan2, degrees

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Wedge
from matplotlib.transforms import Bbox

from compare.cli.main import BAD_INPUT, main
from compare.traffic.tapes.tape import START
from compare.traffic.tapes.trace import open_trace
from compare.trial.replay.contestant import contestant
from reports.anatomy.drawing import LABEL, MAX_LEVELS, MAX_SLOTS, Layout, picture
from reports.anatomy.steps import AnatomyError, Step, Walk
from tests.reports.anatomy.test_steps import WALK_THROUGH
from tests.timers.cases import BOUNDARY_CASES, Case
from timers import HierarchicalWheel, SimpleWheel
from timers.registry import names, timer_class
from timers.snapshot import Snapshot, Waiting

DEADLINES = (9, 88, 222)
LITERATURE = "hierarchical-wheel/wheel-size=10", "9,88,222,520,521,522"


def drawn(timer, deadlines=DEADLINES, time=0):
    """The words of the drawing of a timer at a moment, and the snapshot that it shows."""
    rows = [(0, START, k, deadline) for k, deadline in enumerate(deadlines)]
    step = next(Walk(timer, rows).steps(time))
    layout = Layout.for_steps([step], with_text=False)
    svg = picture(step, "title", layout).svg()
    texts = re.findall(r">([^<>\n]+)</(?:text|tspan)>", svg)
    return " ".join(texts).split(), step.after


@pytest.mark.parametrize("time", [0, 10])
@pytest.mark.parametrize("case", BOUNDARY_CASES, ids=str)
def test_every_waiting_timer_is_drawn_with_its_deadline(case: Case, time):
    words, snapshot = drawn(case(), time=time)
    pending = [waiting.deadline for waiting, _ in snapshot.places()]
    assert len(pending) == len([due for due in DEADLINES if not time or case.due_at(due, 0) > time])
    assert {str(deadline) for deadline in pending} <= {*words}


def test_slots_are_numbered_like_the_hours_of_a_clock():
    step = next(Walk(SimpleWheel(wheel_size=12), [(0, START, 0, 2)]).steps(0))
    layout = Layout.for_steps([step], with_text=False)
    axes = picture(step, "title", layout, origin=-500).figure.axes[0]  # no other number is small
    numbers = {
        int(text.get_text()): text.get_position()
        for text in axes.texts
        if text.get_text() in map(str, range(12))
    }
    x, y = (sum(ends) / 2 for ends in zip(numbers[0], numbers[6], strict=True))  # the centre
    for slot, place in numbers.items():
        angle = degrees(atan2(place[0] - x, place[1] - y))
        assert (angle - 30 * slot + 180) % 360 == pytest.approx(180)
    (held,) = (patch for patch in axes.patches if isinstance(patch, Wedge))
    assert (held.theta1 + held.theta2) / 2 % 360 == pytest.approx(90 - 30 * 2)
    assert len(numbers) == 12


def test_many_timers_are_drawn_as_numbers():
    words, _ = drawn(timer_class("unordered-list")(), range(1, 1001))
    assert {"(1,000)", "990", "more"} <= {*words}
    words, _ = drawn(timer_class("delay-queue")(), range(1, 1001))
    assert {"969", "more", "entries", "below"} <= {*words}
    words, _ = drawn(SimpleWheel(wheel_size=10), [5] * 8)
    assert {"5", "+6"} <= {*words}
    words, _ = drawn(HierarchicalWheel(1, 20), range(1, 400, 7))
    assert "more" in words  # of the queue


def test_the_queue_of_buckets_is_drawn_in_its_order():
    words, _ = drawn(HierarchicalWheel(1, 20), [17, 3, 9])
    buckets = (f"{slot} level 1, slot {slot}" for slot in (3, 9, 17))
    assert f"queue of buckets {' '.join(buckets)} " in " ".join(words)


def test_a_cancelled_entry_is_marked():
    timer = timer_class("heapq-delay-queue")()
    timer.schedule(5)  # at the root, from which cancelled entries are removed at once
    timer.cancel(timer.schedule(500))
    timer.cancel([timer.schedule(deadline) for deadline in range(501, 541)][-1])  # not drawn
    words, _ = drawn(timer)
    assert "2 cancelled," in " ".join(words) and "500" in words


@pytest.mark.parametrize("arity", [2, 3, 4])
def test_the_entries_of_a_heap_hang_below_their_parents(arity):
    heap = tuple(Waiting(k, k) for k in range(30))
    step = Step(Snapshot(0, heap=heap, arity=arity), {}, "", ())
    layout = Layout.for_steps([step], with_text=False)
    figure = picture(step, "title", layout).figure
    above, below = Counter(), Counter()
    for line in figure.axes[0].lines:
        (x, child_x), (y, child_y) = line.get_data()
        assert child_y < y
        above[x, y] += 1
        below[child_x, child_y] += 1
    drawn = sum(arity**level for level in range(layout.depth))
    assert set(below.values()) == {1} and len(below) == min(drawn, 30) - 1
    assert max(above.values()) == arity


def test_an_empty_structure_is_drawn():
    for name in names():
        words, _ = drawn(timer_class(name)(), [])
        assert "clock" in words


@pytest.mark.parametrize("name", ["hierarchical-wheel", "cascading-wheel", "hashed-wheel"])
@pytest.mark.parametrize("first", [0, 10**6, 10**7, 10**12])
def test_labels_do_not_overlap(name, first):
    """Those around the rings: next to each other, and between two rings."""
    lengths = (9, 88, 222, 4522, 60_000, 61_000, 1_500_009, 1_600_009, 3_001_088, 10_000_222)
    lengths += (12_300_520, 25_000_521, 40_000_522, 57_000_001, 61_000_001)
    rows = [(first, START, k, first + length) for k, length in enumerate(lengths)]
    *_, step = islice(Walk(timer_class(name)(start=first), rows).steps(first), 2)
    layout = Layout.for_steps([step], with_text=False)
    figure = picture(step, "title", layout).figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    labels = [text for text in figure.axes[0].texts if text.get_zorder() == LABEL]
    boxes = [label.get_window_extent(renderer) for label in labels]
    assert len(boxes) > 4
    for (one, box), (other, behind) in combinations(zip(labels, boxes, strict=True), 2):
        over = Bbox.intersection(box, behind)
        # Letters do not fill their lines: a few pixels of 100 in an inch do not matter.
        assert over is None or min(over.width, over.height) < 2, (one, other)


def test_large_numbers_stay_apart_in_words_and_drawings():
    first = 10**12
    timer = timer_class("cascading-wheel")(start=first)
    rows = [(first, START, k, first + length) for k, length in enumerate((9, 88))]
    walk = Walk(timer, rows).steps(first)
    steps = [next(walk), next(walk)]
    layout = Layout.for_steps(steps, with_text=False)
    texts = [text.get_text() for text in picture(steps[0], "", layout).figure.axes[0].texts]
    assert {"+9", "+88", f"now {first}"} <= {*texts}
    assert steps[1].text == (
        "The clock jumps from 1000000000000 to 1000000000009. 1000000000009 fires."
    )


def test_levels_are_counted_from_1():
    for name in names():
        levels = [ring.level for ring in timer_class(name)().snapshot().rings]
        assert levels in ([], [None], [*range(1, len(levels) + 1)]), name


def test_the_layout_is_that_of_the_largest_step():
    timer = timer_class("delay-queue")()
    steps = list(Walk(timer, [(k, START, k, 10 + k) for k in range(5)]).steps(0))
    layouts = [Layout.for_steps([step], with_text=False) for step in steps]
    assert Layout.for_steps(steps, with_text=False).height == max(each.height for each in layouts)


@pytest.mark.parametrize(
    ("timer", "problem"),
    [
        (HierarchicalWheel(1, 2), f"10 levels; a drawing shows up to {MAX_LEVELS}"),
        (SimpleWheel(MAX_SLOTS + 1), "1,025 slots; a drawing shows up to 1024"),
    ],
)
def test_what_is_too_large_is_refused(timer, problem):
    with pytest.raises(AnatomyError, match=problem):
        drawn(timer, [1000])
    drawn(SimpleWheel(MAX_SLOTS), [1000])


# ---- files


def run(*arguments, timer=LITERATURE[0]):
    return main(["anatomy", "--timer", timer, *map(str, arguments)])


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "lognormal-high", "--timer-count", "300", "--out", "some.trace"]) == 0
    return "some.trace"


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("PNG", b"\x89PNG")])
def test_a_picture_has_the_form_of_its_suffix(tmp_path, capsys, suffix, start):
    out = tmp_path / "new" / f"wheels.{suffix}"
    assert run("--deadlines", LITERATURE[1], "--at", "200", "--out", out) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert out.read_bytes().startswith(start)


def page_of(path):
    """The sentences of a page, which must not refer to anything outside."""
    text = path.read_text()
    assert not re.findall(r"(?:src|href)=\"(?!#)", text)
    assert not re.findall(r"url\((?!#)", text)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    return re.findall(r"<figcaption>(.*?)</figcaption>", text, re.DOTALL)


def test_a_player_has_a_frame_for_each_moment(tmp_path):
    out = tmp_path / "walk.html"
    player = ("--deadlines", LITERATURE[1], "--animate", "--out", out)
    assert run(*player, "--steps", len(WALK_THROUGH)) == 0
    assert page_of(out) == list(WALK_THROUGH.values())
    assert "--steps" not in out.read_text()
    assert run(*player, "--steps", 3) == 0
    assert page_of(out) == list(WALK_THROUGH.values())[:3]
    assert "More follows" in out.read_text()
    assert run("--deadlines", LITERATURE[1], "--at", "500", "--out", out) == 0
    assert page_of(out) == [WALK_THROUGH[500]]
    assert "<script>" not in out.read_text()


@pytest.mark.parametrize("name", ["unordered-list", "hashed-wheel", "hierarchical-wheel"])
def test_a_moment_of_a_trace_is_that_of_its_walk(trace, tmp_path, name):
    """Its time is counted from the first operation, which is not at 0."""
    out = tmp_path / "moment.svg"
    assert run("--trace", trace, "--at", "50ms", "--out", out, timer=name) == 0
    opened = open_trace(trace)
    rows = [*zip(*(column.tolist() for column in opened.load()), strict=True)]
    first = rows[0][0]
    step = next(Walk(contestant(name).new(opened.unit), rows).steps(first + 50_000))
    svg = out.read_text()
    counts = re.findall(r">([\d,]+) waiting<|\(([\d,]+)\)<", svg)
    assert sum(int("".join(count)) for count in counts) == len([*step.after.places()]) > 0
    assert first > 0 and ">now 50000<" in svg and " to 50000." in svg
    for bucket in sorted(step.after.queue or ())[:1]:
        assert f">{bucket.expiration - first}<" in svg


REFUSED = {
    "": "give --deadlines, or a --trace",
    "--deadlines 1 --trace {trace}": "cannot be used together",
    "--deadlines 1 --out x.pdf": "x.pdf must end in .svg, .png or .html",
    "--deadlines 1 --out {trace}": "must end in",
    "--deadlines 1 --animate": "--animate writes a page, so x.png must end in .html",
    "--deadlines 1 --steps 5": "--steps needs --animate",
    "--deadlines 1 --animate --steps 0 --out x.html": "--steps must lie in [1, 200], not 0",
    "--deadlines 1,x": "'x' is not an integer",
    "--deadlines 1,-5": "a moment must lie in [0, 9223372036854775807], not -5",
    "--deadlines 1 --at -5": "--at must lie in",
    "--deadlines 1 --at 5s": "--at must be a number of units; a duration needs a --trace",
    "--trace {trace} --at 5parsecs": "'5parsecs' is not a number with a unit",
    "--trace none": "none does not exist",
    "--deadlines 1 --timer nope": "no timer is called 'nope'",
    "--deadlines 1000000000000": "13 levels; a drawing shows up to 9",
}


@pytest.mark.parametrize(("arguments", "problem"), REFUSED.items(), ids=map(str, REFUSED))
def test_bad_input_is_one_line_and_leaves_nothing(trace, capsys, arguments, problem, tmp_path):
    capsys.readouterr()
    before = sorted(tmp_path.rglob("*"))
    assert run("--out", "x.png", *arguments.format(trace=trace).split()) == BAD_INPUT
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert problem in err
    assert sorted(tmp_path.rglob("*")) == before


# ---- the player, in a real browser

PRESS = """<script>
const seen = [];
const look = () => seen.push([...document.querySelectorAll("figure")].map(
  (figure, k) => getComputedStyle(figure).display === "none" ? "" : k).join(""));
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
look(); press("ArrowRight"); look(); press("ArrowLeft"); look(); press("ArrowLeft"); look();
press("End"); look(); press("ArrowRight"); look(); press("Home"); look();
document.querySelector("[data-move=next]").click(); look();
slider.value = 4; slider.dispatchEvent(new Event("input")); look();
press(" "); seen.push(play.textContent); press(" "); seen.push(play.textContent);
press("End"); press(" "); look();
slider.dispatchEvent(new Event("input")); seen.push(play.textContent);
document.title = "seen " + seen.join(" ");
</script>"""


@pytest.mark.skipif(not shutil.which("chromium"), reason="Chromium is not installed")
def test_the_player_steps_by_keys_buttons_and_slider(tmp_path):
    """A second or two, for the only proof that the script runs."""
    out = tmp_path / "walk.html"
    assert run("--deadlines", LITERATURE[1], "--animate", "--out", out) == 0
    out.write_text(out.read_text().replace("</body>", f"{PRESS}</body>"))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", out.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    [title] = re.findall(r"<title>seen (.*?)</title>", done.stdout)
    assert title == "0 1 0 0 10 10 0 1 4 Stop Play 0 Play"
