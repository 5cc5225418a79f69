"""The page in a real browser: Debian's Chromium, driven by Playwright (`nox -s browser`).

The run has few timers with costs so round that the answers are worked out by hand.
"""

import os
import re
import shutil
from math import inf
from pathlib import Path

import pytest

from compare.trial.bench.task import BY_EVENT, HOLD, INSERT
from compare.trial.replay.contestant import contestant
from compare.trial.results.schema import Row
from compare.trial.results.store import contestant_entry, read_run
from reports.charts.pictures import Picture
from reports.page import write_report
from tests.reports.stored import call_rows, memory_rows, replay_rows, store, task_rows
from tests.reports.synthetic import write_synthetic
from tests.words import plain

pytestmark = pytest.mark.browser

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"
SAMPLES = (0.98, 0.96, 1.0, 1.04, 1.02)  # of each cost; of five the interval is the range
SIZES = (1_000, 100_000)

# ns of a hold, an insert and an expiry at both sizes; None: over budget
COSTS = {
    "unordered-list": ((5, 3, 600), (5, 3, None)),
    "delay-queue": ((20, 10, 40), (60, 40, 100)),
    "hashed-wheel": ((8, 4, 12), (10, 5, 15)),
    "hashed-wheel/tick=10ms": ((7, 6, 30), (18, 8, 80)),
    "hierarchical-wheel/tick=10ms": ((11, 7, 20), (16, 9, 70)),
    "hierarchical-wheel": ((12, 8, 50), (20, 10, 60)),
    "cascading-wheel": ((10, 4, 20), (21, 6, 90)),
}
LATE = "0 to 100ms late"
WITHIN = {
    "exact": set(),
    "0 to 9ms early": {"hierarchical-wheel (tick=10ms)"},
    "0 to 10ms late": {"hashed-wheel (tick=10ms)"},
    LATE: {"hashed-wheel (tick=10ms)", "hashed-wheel"},
}
"""What may be asked for, and the inexact timers that are as precise."""
INEXACT = set().union(*WITHIN.values())

# Traces: operations per second, and ns per operation in the order of the timers.
TRACES = {
    "dns.trace": (100_000, (400, 25, 10, 35, 40, 30, 50)),
    "quiet.trace": (100, (400, 25, 10, 35, 40, 30, 50)),
}

# ns of a schedule and its cancel from Python, in the order of the timers.
CALLS = {
    "Python, one by one": ("timer", 1, (310, 330, 300, 290, 350, 340, 320)),
    "Python, batches of 1000": ("timer", 1_000, (20, 40, 16, 18, 28, 24, 30)),
    "Python, through a SystemTimer": ("system-timer", 1, (900, 940, 880, 890, 920, 930, 910)),
}
MEMORY = {1_000: 40.0, 100_000: 28.0}
"""Bytes for each timer of the delay queue; it is not known of the others."""

NOTHING, TIED = "Speed does not matter here", "Speed does not separate it from"


def scaled(ns):
    return [ns * by for by in SAMPLES]


def by_hand(root: Path) -> Path:
    """Store the run."""
    rows: list[Row] = []
    for interface, batch, costs in CALLS.values():
        for label, ns in zip(COSTS, costs, strict=True):
            rows += call_rows(label, interface, batch, scaled(ns))
    for label, by_size in COSTS.items():
        for size, costs in zip(SIZES, by_size, strict=True):
            for task, ns in zip((HOLD, INSERT, BY_EVENT), costs, strict=True):
                rows += task_rows(label, task, size, None if ns is None else scaled(ns))
        for source, (rate, costs) in TRACES.items():
            counts = {"scheduled": rate // 10, "cancelled": rate // 10 * 0.9, "rescheduled": 0}
            counts |= {"fired": 0, "lateness_min": 0, "lateness_max": 0, "most_pending": 900}
            rows += replay_rows(label, source, scaled(costs[list(COSTS).index(label)]), **counts)
    for size, nbytes in MEMORY.items():
        rows += memory_rows("delay-queue", size, at_rest=nbytes)
    sources = [
        {"name": name, "unit": "ms", "operations": rate, "span": 1000, "details": {}}
        for name, (rate, _) in TRACES.items()
    ]
    return store(
        root,
        rows,
        parameters={"traces": list(TRACES), "budget": 1.5},
        sources=sources,
        contestants=[contestant_entry(contestant(label), ["ms"]) for label in COSTS],
    )


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium refuses its own sandbox to root, as in most containers; the page is ours.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    root = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Picture, "png", lambda picture: b"")
        return {
            name: write_report(read_run(write(root / name)), root / f"{name}-report")
            for name, write in {"hand": by_hand, "full": write_synthetic}.items()
        }


@pytest.fixture
def opened(chromium, pages):
    """Opens a page; in the end nothing may have gone wrong or been asked for."""
    contexts, problems, requests = [], [], []

    def visit(name="hand", width=1400, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(pages[name].as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert problems == []
    assert {url for url in requests if not url.startswith("data:")} <= {
        path.as_uri() for path in pages.values()
    }


def digits(number: float) -> str:
    return f"{number:,}".replace(",", "\u202f")


def read_answer(use, verdict):
    """The timer to use, the runner-up, its cost as a ratio with the interval, and all the text."""
    text = plain(verdict)
    second = re.search(r"The runner-up is (.+?) with (\S+) times the cost \((\S+) to (\S+) ", text)
    assert second, text
    return use, second[1], [float(ratio) for ratio in second.groups()[1:]], text


EXACT = "from timers import DelayQueue timer = DelayQueue()"
LATEST = "from timers import HashedWheel timer = HashedWheel(tick=100, wheel_size=512)"
LATEST += " # one unit is 1 ms"
REPLAYED = "The cost is the median time of the replay for each operation, expiries included."
MODELLED = (
    "The cost of a timer: {} % of a hold (it is cancelled) and {} % of an insert and an"
    " event-driven expiry (it fires), with {} pending."
)
FROM_PYTHON = (
    " A hold from Python is a schedule and a cancel with 5 000 pending, an insert half of that, and"
    " an expiry that of compiled code."
)
NOT_MEASURED = "o timer in this run that is precise enough was measured in this case. Choose"
WORDS = {
    "a trace": (
        "",
        {},
        f"Your traffic dns.trace: use delay-queue. It fires exactly at the deadline. {EXACT}"
        " delay-queue has the lowest median: 25 ns per operation, 2.5 ms of each second (0.25 % of"
        " a core). The runner-up is hierarchical-wheel with 1.20 times the cost (1.11 to 1.30"
        " times). Faster but less precise: hashed-wheel, 0 to 100ms late, with 0.40 times the"
        " cost.",
        "delay-queue 25 ns 6.25 2.5 ms 1.00 times exact 40.0 B, hierarchical-wheel 30 ns 7.5 3 ms"
        " 1.20 times exact –",
        REPLAYED,
    ),
    "a trace without a rate, and a timer of another unit": (
        "data.cases[1].rate = 0; data.timers[3].unit = 'us'",
        {"traffic": "quiet.trace", "precision": LATE},
        f"Your traffic quiet.trace: use hashed-wheel. It fires {LATE}. {LATEST} hashed-wheel has"
        " the lowest median: 10 ns per operation. The runner-up is delay-queue with 2.50 times the"
        " cost (2.31 to 2.71 times).",
        f"hashed-wheel 10 ns 2.5 1.00 times {LATE} –, delay-queue 25 ns 6.25 2.50 times exact"
        " 40.0 B, hierarchical-wheel 30 ns 7.5 3.00 times exact –, cascading-wheel 50 ns 12.5 5.00"
        " times exact –",
        REPLAYED,
    ),
    "so few that speed does not matter": (
        "",
        {"size": "100 000", "share": "50 %", "rate": "1 000"},
        # (60 + 40 + 100) / 2, at most 4 % more; (20 + 10 + 60) / 2; (21 + 6 + 90) / 2
        "Use hierarchical-wheel. It fires exactly at the deadline. from timers import"
        " HierarchicalWheel timer = HierarchicalWheel(tick=1, wheel_size=20) Speed does not matter"
        " here: each of these timers takes at most 104 µs of each second, 0.0104 % of a core."
        " Choose by precision and memory. hierarchical-wheel has the lowest median: 45 ns per"
        " timer, 45 µs of each second (0.0045 % of a core). The runner-up is cascading-wheel with"
        " 1.30 times the cost (1.20 to 1.41 times). Faster but less precise: hashed-wheel, 0 to"
        " 100ms late, with 0.33 times the cost.",
        "hierarchical-wheel 45 ns 45 45 µs 1.00 times exact –, cascading-wheel 58.5 ns 58.5 58.5 µs"
        " 1.30 times exact –, delay-queue 100 ns 100 100 µs 2.22 times exact 28.0 B",
        MODELLED.format(50, 50, "100 000"),
    ),
    "from Python": (
        "",
        {
            "precision": LATE,
            "share": "99.9 %",
            "caller": "Python, one by one",
            "rate": "10 000 000",
        },
        "Use hashed-wheel (tick=10ms). It fires 0 to 10ms late. from timers import HashedWheel"
        " timer = HashedWheel(tick=10, wheel_size=512) # one unit is 1 ms hashed-wheel (tick=10ms)"
        " has the lowest median: 290 ns per timer, 2.9 s of each second (290 % of a core). Speed"
        " does not separate it from hashed-wheel and unordered-list: their intervals overlap."
        " The runner-up is hashed-wheel with 1.03 times the cost (0.95 to 1.12 times).",
        f"hashed-wheel (tick=10ms) 290 ns 85.3 2.9 s 1.00 times 0 to 10ms late –, hashed-wheel 300"
        f" ns 88.2 3 s 1.03 times {LATE} –",
        MODELLED.format("99.9", "0.1", "1 000") + FROM_PYTHON,
    ),
    "one timer alone": (
        "data.cases[1].costs = {1: [25, 24, 26]}",
        {"traffic": "quiet.trace"},
        f"Your traffic quiet.trace: use delay-queue. It fires exactly at the deadline. {EXACT}"
        f" {NOTHING}: each of these timers takes at most 2.6 µs of each second, 0.00026 % of a"
        " core. Choose by precision and memory. delay-queue has the lowest median: 25 ns per"
        " operation, 2.5 µs of each second (0.00025 % of a core). No other timer in this run that"
        " is precise enough was measured in this case.",
        "delay-queue 25 ns 100 2.5 µs 1.00 times exact 40.0 B",
        REPLAYED,
    ),
    "nothing for a trace": (
        "data.cases[1].costs = {}",
        {"traffic": "quiet.trace"},
        f"Your traffic quiet.trace: n{NOT_MEASURED} less precision.",
        "",
        REPLAYED,
    ),
    "nothing in a case": (
        "data.callers['compiled code'][1000] = {}",
        {"rate": "1 000"},
        f"N{NOT_MEASURED} fewer pending timers or less precision.",
        "",
        MODELLED.format(90, 10, "1 000"),
    ),
}
"""What is changed in the data, what is chosen; the text, the first rows of the ranking, each with
the length of its bar, and what the costs are."""


@pytest.mark.parametrize("case", WORDS)
def test_the_answer_in_full(opened, case):
    change, chosen, text, ranking, basis = WORDS[case]
    page = opened()
    page.evaluate(change)
    for name, label in chosen.items():
        choose(page, name, label)
    assert " ".join(plain(page.inner_text("#verdict")).split()) == text
    rows = []
    for row in page.locator("#ranking tbody tr").all():
        texts = row.locator("th, td").all_inner_texts()
        texts[2] = f"{row.locator('.cost').evaluate('bar => parseFloat(bar.style.width)'):.3g}"
        rows.append(plain(" ".join(texts)))
        name = page.locator(f".legend [data-series='{row.get_attribute('data-series')}']")
        assert name.inner_text().endswith(texts[0])
    assert ", ".join(rows).startswith(ranking) and bool(rows) == bool(ranking)
    assert plain(page.inner_text("#basis")) == basis


def choose(page, name, label):
    """Choose what a control shows as a text."""
    [value] = [
        option.get_attribute("value")
        for option in page.locator(f"#case [name={name}] option").all()
        if plain(option.inner_text()) == label
    ]
    page.select_option(f"#case [name={name}]", value)


def controls(page):
    return {
        name: plain(page.locator(f"#case [name={name}] option:checked").inner_text())
        for name in ("traffic", "size", "precision", "share", "caller", "rate")
    }


def test_a_trace_leads_and_the_controls_start_from_it(opened):
    page = opened()
    values = {
        "traffic": "dns.trace",
        "size": "1 000",
        "precision": "exact",
        "share": "90 %",
        "caller": "compiled code",
        "rate": "10 000",
    }
    assert controls(page) == values
    page.select_option("#case [name=precision]", index=1)
    assert "Your traffic" in page.inner_text("#verdict")
    page.select_option("#case [name=share]", "0.5")  # then it is not this trace any more
    assert page.locator("#case [name=traffic] option:checked").inner_text() == "as set here"
    assert "Your traffic" not in page.inner_text("#verdict")
    choose(page, "size", "100 000")
    choose(page, "traffic", "quiet.trace")  # the controls follow it
    found = controls(page)
    assert found.pop("precision") != "exact"
    assert found.items() <= (values | {"traffic": "quiet.trace", "rate": "1 000"}).items()
    page.evaluate("document.getElementById('case').requestSubmit()")  # does not leave the page
    assert controls(page)["rate"] == "1 000"


def test_without_a_trace_the_controls_start_from_a_usual_case(opened):
    assert controls(opened("full")) == {
        "traffic": "as set here",
        "size": "100 000",
        "precision": "exact",
        "share": "90 %",
        "caller": "compiled code",
        "rate": "100 000",
    }


def stored_costs(page):
    """(timer, operation, size, statistic) -> ns, as the table of times has it."""
    rows = page.evaluate(
        """() => {
            const [head, ...rows] = document.querySelectorAll("#table-times tr");
            const texts = (th) => [...th.querySelectorAll("span")].map(s => s.textContent);
            const parts = [...head.cells].map(texts);
            const name = (row) => document.querySelector(
                `.legend [data-series="${row.dataset.series}"]`).lastChild.textContent;
            return rows.flatMap(row => [...row.cells].slice(1).map((cell, i) =>
                [name(row), ...parts[i + 1], cell.dataset.value]));
        }"""
    )
    return {tuple(map(plain, key)): float(value) for *key, value in rows}


GRID = """() => {
    const form = document.getElementById("case"), found = [];
    const walk = (names, chosen) => {
        if (names.length) {
            const [name, ...rest] = names;
            for (const option of form[name].options) {
                form[name].value = option.value;
                form[name].dispatchEvent(new Event("change", { bubbles: true }));
                walk(rest, [...chosen, name === "precision" ? option.text : option.value]);
            }
        } else {
            const text = (selector) => document.querySelector(selector).innerText;
            const order = [...document.querySelectorAll("#ranking tbody th")];
            const timers = order.map(th => th.innerText);
            found.push([...chosen, text("#verdict b"), text("#verdict"), timers]);
        }
    };
    walk(["caller", "size", "share", "rate", "precision"], []);
    return found;
}"""


@pytest.mark.parametrize("name", ["hand", "full"])
def test_no_answer_contradicts_the_tables(opened, name):
    """The whole grid of controls, beside sums over the tables."""
    page = opened(name)
    table = stored_costs(page)
    timers = dict.fromkeys(timer for timer, *_ in table if timer != "heapq-delay-queue")
    labels = [re.sub(r"/(.*)", r" (\1)", label) for label in COSTS]
    seen, asked = set(), set()
    for caller, size, share, rate, limit, *said, order in page.evaluate(GRID):
        use, second, ratios, text = read_answer(*said)

        def cost(timer, which, caller=caller, size=size, share=float(share)):
            hold, insert, expiry = (
                table[timer, operation, f"N = {plain(digits(int(size)))}", f"{which} [ns]"]
                for operation in ("Hold", "Insert", "Expiry, event-driven")
            )
            if caller in CALLS:
                by = {"median": 1.0, "least": min(SAMPLES), "greatest": max(SAMPLES)}[which]
                hold = by * CALLS[caller][2][labels.index(timer)]
                insert = hold / 2
            return share * hold + (1 - share) * (insert + expiry)

        medians = {timer: cost(timer, "median") for timer in timers}
        everyone = sorted((timer for timer in timers if medians[timer] < inf), key=medians.get)
        precise = [timer for timer in everyone if timer not in INEXACT - WITHIN[limit]]
        first, runner_up = precise[:2]
        assert (use, second, order) == (first, runner_up, precise), (size, share, limit)
        least, greatest = cost(first, "least"), cost(first, "greatest")
        expected = medians[runner_up] / medians[first], cost(runner_up, "least") / greatest
        expected += (cost(runner_up, "greatest") / least,)
        assert ratios == pytest.approx(expected, abs=0.006)
        tied = {timer for timer in precise[1:] if cost(timer, "least") <= greatest}
        highest = max(cost(timer, "greatest") for timer in precise) * float(rate)
        assert (NOTHING in text) == (highest <= 1e6), text
        assert (TIED in text) == bool(tied)
        between = text.partition("separate it from ")[2].partition(":")[0]
        assert {*filter(None, re.split(", | and ", between))} == tied
        faster = [timer for timer in everyone if cost(timer, "greatest") < least]
        less_precise = text.partition("Faster but less precise: ")[2]
        assert less_precise.startswith(f"{faster[0]}, ") if faster else not less_precise
        seen.add((NOTHING in text, TIED in text))
        asked.add(limit)
    assert seen == {(True, True), (True, False), (False, True), (False, False)}
    assert name == "full" or asked == {*WITHIN}


def test_tables_sort_and_show_the_chosen_columns(opened):
    page = opened()
    assert page.locator("#table-times thead th:visible").all_inner_texts() == [
        "timer",
        "Insert",
        "Hold",
        "Expiry, event-driven",
    ]
    expiry = page.locator("#table-times thead button:visible").nth(3)
    names = page.locator("#table-times tbody th")
    order = ["hashed-wheel", "hierarchical-wheel", "hierarchical-wheel", "hashed-wheel"]
    order += ["cascading-wheel", "delay-queue"]

    def sorted_names():
        return [text.split("\n")[0].split("\ufe0e")[-1] for text in names.all_inner_texts()]

    expiry.click()
    assert sorted_names() == [*order, "unordered-list"]  # it was over budget
    expiry.press("Enter")
    assert sorted_names() == [*order[::-1], "unordered-list"]
    sorts = page.locator("#table-times [aria-sort]")
    assert [sorts.count(), sorts.get_attribute("aria-sort")] == [1, "descending"]
    page.select_option("#table-times [data-facet=operation]", label="Hold")
    page.select_option("#table-times [data-facet=size]", "")
    page.select_option("#table-times [data-facet=statistic]", label="greatest [ns]")
    heads = page.locator("#table-times thead th:visible").all_inner_texts()
    assert list(map(plain, heads)) == ["timer", "N = 1 000", "N = 100 000"]
    first = page.locator("#table-times tbody tr").first.locator("td:visible").all_inner_texts()
    assert first == ["20.8", "62.4"]
    name = page.locator("#table-times thead button:visible").first
    for backwards in (False, True):
        name.click()
        assert sorted_names() == sorted(sorted_names(), reverse=backwards)
    assert sorts.count() == 1


def test_the_legend_filters_and_lets_stand_out_everywhere(opened):
    page = opened("full")
    button = page.locator(".legend button", has_text="delay-queue").nth(1)
    series = button.get_attribute("data-series")
    mine = page.locator(f"svg [data-series='{series}']")
    others = page.locator(f"svg [data-series]:not([data-series='{series}'])")
    faint = "of => of.every(one => one.classList.contains('faint'))"
    some = "of => of.some(one => one.classList.contains('faint'))"
    out = "of => of.every(one => one.classList.contains('out'))"
    page.mouse.move(0, 0)
    for begin, end in (
        (button.focus, button.blur),
        (button.hover, lambda: page.mouse.move(0, 0)),
    ):
        begin()
        assert others.evaluate_all(faint) and not mine.evaluate_all(some) and mine.evaluate_all(out)
        assert not page.locator(".legend button").evaluate_all(some)
        assert page.locator(
            f"#table-times [data-series]:not([data-series='{series}'])"
        ).evaluate_all(faint)
        end()
        assert not page.locator(".faint, .out").count()
    button.focus()
    assert mine.evaluate_all("of => new Set(of.map(one => one.closest('figure').id)).size") >= 12
    button.press("Enter")
    gone = "of => of.every(one => getComputedStyle(one).display === 'none')"
    assert button.get_attribute("aria-pressed") == "false"
    assert mine.evaluate_all(gone) and not others.evaluate_all(gone)
    assert page.locator(f"#table-times tr[data-series='{series}']").is_hidden()
    button.click()
    assert not mine.evaluate_all(gone)
    assert page.locator(f"#table-times tr[data-series='{series}']").is_visible()


def test_charts_tell_their_values(opened):
    page = opened()
    chart = page.locator("#chart-time-hold .chart")
    mark = chart.locator("[data-value]").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 + 6, box["y"] + box["height"] / 2 + 3)
    tip = plain(page.inner_text("#tip"))
    assert tip == "unordered-list\nN = 1 000: 5.00 ns (4.80–5.20)"
    assert page.locator("svg .faint").count() > 10
    page.mouse.move(box["x"] - 8, box["y"] + 12)  # nothing is nearer
    assert plain(page.inner_text("#tip")) == tip
    page.mouse.move(box["x"] - 20, box["y"] + 40)
    assert page.locator("#tip").is_hidden() and not page.locator(".faint").count()
    page.mouse.move(box["x"], box["y"])
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()
    chart.focus()
    page.keyboard.press("ArrowLeft")
    assert plain(page.inner_text("#tip")).split(": ")[0].endswith("\nN = 100 000")  # the last one
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert plain(page.inner_text("#tip")) == "unordered-list\nN = 100 000: 5.00 ns (4.80–5.20)"
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    page.keyboard.press("ArrowRight")
    chart.blur()
    assert page.locator("#tip").is_hidden()
    handled = """(chart, key) => !chart.dispatchEvent(
        new KeyboardEvent("keydown", { key, cancelable: true }))"""
    assert [chart.evaluate(handled, key) for key in ("ArrowRight", "Tab")] == [True, False]
    page.locator(".legend button", has_text="unordered-list").click()
    chart.focus()
    for _ in range(chart.locator("[data-value]").count()):
        page.keyboard.press("ArrowLeft")
        assert "unordered-list" not in page.inner_text("#tip")  # it is hidden


def test_a_tip_stays_in_the_window(opened):
    page = opened(width=390)
    chart = page.locator("#chart-time-hold .chart")
    marks = chart.locator("[data-value]")
    marks.last.evaluate("mark => scrollBy(0, mark.getBoundingClientRect().top - 5)")
    chart.evaluate("chart => chart.focus({ preventScroll: true })")
    for _ in range(marks.count()):
        page.keyboard.press("ArrowRight")
        box = page.locator("#tip").bounding_box()
        assert 0 <= box["x"] <= 390 - box["width"]
    assert 0 <= box["y"] <= 60  # below the last mark


CONTRAST = """() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        context.clearRect(0, 0, 1, 1); context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = rgba(getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const element of document.querySelectorAll("body *:not(.symbol)")) {
        const text = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!text || !element.getClientRects().length || element.tagName === "SCRIPT") continue;
        const style = getComputedStyle(element);
        const colours = [element.closest("svg") ? style.fill : style.color].map(rgba);
        const [a, b] = [light(colours[0]), light(behind(element))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(element.outerHTML.slice(0, 120));
    }
    return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(opened, scheme):
    assert opened("full", scheme=scheme).evaluate(CONTRAST) == []


def test_it_is_short_when_it_is_opened(opened):
    page = opened("full")
    assert page.evaluate("document.documentElement.scrollHeight") <= 4500
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


def test_it_fits_a_phone(opened):
    page = opened("full", width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.locator(".chart svg text").evaluate_all(
        "of => of.map(text => parseFloat(getComputedStyle(text).fontSize)"
        " * text.ownerSVGElement.getScreenCTM().a)"
    )
    assert len(sizes) > 50 and min(size for size in sizes if size) >= 11


def test_the_legend_is_at_the_head_of_each_printed_page(opened):
    """A browser repeats what is displayed as the header of a table."""
    page = opened()
    assert page.locator(".key").is_hidden()
    page.emulate_media(media="print")
    key = page.locator(".key")
    assert key.is_visible() and page.locator(".legend").is_hidden()
    assert key.locator("span:not(.symbol)").count() == len(COSTS)
    style = "[...document.querySelectorAll('main, .bar')].map(one => getComputedStyle(one).display)"
    assert page.evaluate(style) == ["table", "table-header-group"]
    box, first = key.bounding_box(), page.locator("main > section").first.bounding_box()
    assert box["y"] < first["y"] and box["height"] < 100


def test_a_link_unfolds_its_section_and_printing_all(opened, tmp_path):
    page = opened("full")
    assert page.locator("#chart-work-insert").is_hidden()
    page.click("nav a[href='#work']")
    assert page.locator("#chart-work-insert").is_visible()
    assert page.locator("details[open]").count() == 1
    page.reload()  # the address has the section
    assert page.locator("details[open]").count() == 1
    page.evaluate("addEventListener('beforeprint', () => { window.unfolded = "
                  "document.querySelectorAll('details[open]').length; })")  # fmt: skip
    assert len(page.pdf(format="A4")) > 100_000
    assert page.evaluate("window.unfolded") == page.locator("details").count() == 6
    assert page.locator("details[open]").count() == 1
