"""The page's scripts beside the Python that they follow, in Node.js."""

import json
import shutil
import subprocess
from dataclasses import asdict
from itertools import product

import pytest

from compare.trial.advice.choice import Offer
from compare.trial.advice.choice import choose as choose_offer
from compare.trial.advice.model import by_round, cost, is_known, rates
from compare.trial.advice.tuning import FAMILIES, default, idle, recommended, work
from compare.trial.bench.constants import Constants, Fit
from compare.trial.bench.steady import KEEPALIVE, KINDS, PERIODIC, Traffic
from reports import page
from reports.answer import data
from tests.reports.by_hand import fits

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is missing (apt-get install nodejs)")
PURE = ("text", "model", "rule", "tuning")  # of the scripts: those that load without a page


@pytest.fixture
def evaluated(distinct):
    """Applies a function of JavaScript to each of `given`, beside the scripts."""

    def run(function, given):
        folder = page.TEMPLATES / "page"
        scripts = [(folder / f"{name}.js").read_text() for name in PURE]
        program = "\n".join(
            [
                '"use strict";',
                'const input = JSON.parse(require("node:fs").readFileSync(0, "utf-8"));',
                "const { data, given } = input;",
                *scripts,
                f"process.stdout.write(JSON.stringify(given.map({function})));",
            ]
        )
        text = json.dumps({"data": data(distinct), "given": given})
        done = subprocess.run(
            [NODE, "-e", program], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def grid():
    for kind, rate, timeout, cancelled, answer, step in product(
        KINDS, (0.3, 3.0, 5e3, 2e6), (10.0, 60_000.0), (0.0, 0.9, 1.0), (0.02, 0.6), (1.0, 100.0)
    ):
        if not (kind == PERIODIC and cancelled) and not (kind == KEEPALIVE and not cancelled):
            yield Traffic(rate, timeout, cancelled, answer * timeout, kind, step)


FITS = [
    {
        size: Fit(fit.constants, fit.error, (fit.constants, Constants(*range(7))))
        for size, fit in by_size.items()
    }
    for by_size in fits()["python", "random"].values()
] + [
    {10: Fit(Constants(1, 2, 3, 4, 5, 6, 7), 0.3)},
    {
        10: Fit(Constants(0, 2, 3, 0, 5, 6, 0), 0.1),
        300: Fit(Constants(1, 2, 0, 4, 2, 6, 0), 0.2),
        30_000: Fit(Constants(5, 1, 3, 4, 5, 9, 1), 0.3),
    },
]


def plain(by_size):
    return {
        size: {"constants": fit.constants, "error": fit.error, "rounds": fit.rounds}
        for size, fit in by_size.items()
    }


def test_costs_are_those_of_the_model(evaluated):
    cases = list(product(grid(), FITS))
    found = evaluated(
        "(each) => [ratesOf(each[0]), costOf(...each), byRound(...each), isKnown(...each, 1000)]",
        [[asdict(traffic), plain(each)] for traffic, each in cases],
    )
    for (traffic, each), (of_each, costs, rounds, known) in zip(cases, found, strict=True):
        assert of_each == pytest.approx(rates(traffic), rel=1e-9)
        assert costs == pytest.approx(cost(traffic, each), rel=1e-9)
        assert rounds == pytest.approx(by_round(traffic, each), rel=1e-9)
        assert known == is_known(traffic, each, 1_000)


def test_the_choice_is_that_of_the_rule(evaluated):
    costs = [10.0, 10.4, 11.0, 60.0]
    cases = [
        [
            Offer(
                1e6 * ns,
                1e6 * ns * (1 - width),
                1e6 * ns * (1 + width),
                exact=bool(bits >> k & 1),
                nbytes=100 + 40 * (bits * 7 + order >> k & 1),
                default=bool(bits * 5 + order >> k & 1),
                usual=k == order,
                host=k == bits % 7,
            )
            for k, ns in enumerate(costs[order:] + costs[:order])
        ]
        for order, bits, width in product(range(4), range(16), (0.0, 0.3))
    ]
    given = [
        [
            {
                "number": k,
                "cost": [each.cost],
                "noise": [each.low, each.high],
                "memory": each.nbytes,
                "host": each.host,
                "timer": {"exact": each.exact, "default": each.default, "usual": each.usual},
            }
            for k, each in enumerate(offers)
        ]
        for offers in cases
    ]
    found = evaluated(
        "(each) => { const { chosen, cheapest, near, reasons } = choose(each, 0.005 * CORE);"
        " return [chosen.number, cheapest.number, near, reasons]; }",
        given,
    )
    for offers, (number, cheapest, near, reasons) in zip(cases, found, strict=True):
        wanted = choose_offer(offers, 1e9, 0.005)
        assert (number, cheapest) == (wanted.number, wanted.cheapest)
        assert (near, tuple(reasons)) == (wanted.near, wanted.reasons)


def test_the_work_of_a_setting_is_that_of_the_arithmetic(evaluated):
    settings = [(1, 2), (8, 64), (100, 512)]
    cases = list(product(list(grid())[::3], FAMILIES, settings))
    found = evaluated(
        "([traffic, name, setting]) => { const family = FAMILIES[name];"
        " return [workOf(family, traffic, ...setting), workOf(family, idleOf(traffic), ...setting),"
        " recommendedOf(family, traffic, 30), defaultOf(family)]; }",
        [[asdict(traffic), name, setting] for traffic, name, setting in cases],
    )
    for (traffic, name, setting), (busy, quiet, best, usual) in zip(cases, found, strict=True):
        family = FAMILIES[name]
        for stated, each in ((busy, traffic), (quiet, idle(traffic))):
            assert stated == pytest.approx(work(family, each, *setting)._asdict(), rel=1e-9)
        assert tuple(best) == recommended(family, traffic, 30) and tuple(usual) == default(family)


def test_what_a_setting_costs_follows_from_what_was_measured_of_a_peer(evaluated):
    """By hand. In a second, 100 timers fire, in rotations of 5 s each is looked at twice before,
    and there are 10 ticks.
    """
    paid = {"pair": 30, "start": 20, "visit": 4, "tick": 7}
    memory = {"fixed": 100, "timer": 50, "slot": 28}
    family = {"kind": "rounds", "always": True, "paid": paid, "memory": memory}
    traffic = asdict(Traffic(100, 10_000, 0.0, 0.0, "one"))
    [(rounds, levels, unknown, held, nothing)] = evaluated(
        "([family, traffic]) => ["
        " paidBy(family, traffic, workOf(family, traffic, 100, 50), 100),"
        " paidBy({ ...family, kind: 'levels' }, { ...traffic, cancelled: 0.4 },"
        "   { wakeups: 3, visits: 0 }, 100),"
        " paidBy({ ...family, paid: null }, traffic, {}, 100),"
        " heldBy(family, 999.5, 50), heldBy({ memory: null }, 1, 1)]",
        [[family, traffic]],
    )
    assert rounds == pytest.approx(100 * (20 + 4) + 10 * 7 + 200 * 4)
    assert levels == pytest.approx(40 * 30 + 60 * (20 + 4) + 3 * 7)
    assert unknown is None and nothing is None
    assert held == 100 + 1_000 * 50 + 50 * 28


TYPED = [
    ("numberOf", "300 000", 300_000),
    ("numberOf", "300\u202f000", 300_000),
    ("numberOf", "1,234,567", 1_234_567),
    ("numberOf", "0,5", 0.5),
    ("numberOf", "1.5 M", 1_500_000),
    ("numberOf", "30k", 30_000),
    ("numberOf", "1e6", 1_000_000),
    ("numberOf", "three", None),
    ("numberOf", "", None),
    ("numberOf", "-3", None),
    ("numberOf", "1.2.3", None),
    ("millisecondsOf", "30 min", 1_800_000),
    ("millisecondsOf", "1.5h", 5_400_000),
    ("millisecondsOf", "2 d", 172_800_000),
    ("millisecondsOf", "5m", 300_000),
    ("millisecondsOf", "60s", 60_000),
    ("millisecondsOf", "10", 10),
    ("millisecondsOf", "500 us", 0.5),
    ("millisecondsOf", "500 µs", 0.5),
    ("millisecondsOf", "30 mni", None),
    ("millisecondsOf", "s", None),
    ("shareOf", "99.9 %", 0.999),
    ("shareOf", "100%", 1),
    ("shareOf", "50", 0.5),
    ("shareOf", "half", None),
]


def test_typed_numbers_are_understood(evaluated):
    functions = "({ numberOf, millisecondsOf, shareOf })"
    found = evaluated(f"([name, text]) => {functions}[name](text)", [each[:2] for each in TYPED])
    for (_, text, value), number in zip(TYPED, found, strict=True):
        assert number == (value if value is None else pytest.approx(value)), text
