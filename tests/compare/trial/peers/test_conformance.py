"""Timers that break one rule of the contract each fail the model-based check, by that rule."""

import ast
import sys
import traceback
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import Phase

from compare.trial.peers import conformance
from compare.trial.peers.conformance import check_factory
from tests.compare import own_timers
from tests.compare.trial.peers import wrong_timers
from tests.compare.trial.peers.wrong_timers import CRASH_INSTEAD, MORE, RULES

QUICK = {
    "max_examples": 60,
    "stateful_step_count": 20,
    "derandomize": True,
    "database": None,
    "report_multiple_bugs": False,
    "phases": [Phase.generate],  # whether it fails is all that is asked
}
LONG = {**QUICK, "max_examples": 1000}
"""For what must fail, which ends the run. Hypothesis draws constants from the modules that happen
to be imported, so that a few examples do not find the same in every run.
"""
FILE = Path(conformance.__file__)
SOURCE = FILE.read_text()


def message_of(statement):
    """The message of an assertion, with {} for each value."""
    text = statement.msg
    if isinstance(text, ast.JoinedStr):
        parts = (getattr(part, "value", "") for part in text.values)
        return "".join(part if isinstance(part, str) else "{}" for part in parts)
    return text.value


def rules(tree):
    """The statements of the check that can fail, by their messages."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is not None:
            message = message_of(node)
            assert message not in found
            found[message] = node
        if isinstance(node, ast.Expr) and ast.unparse(node) == "timer.check()":
            found["check()"] = node
    return found


def without(rule):
    """The check without a rule, as a module of its own."""
    tree = ast.parse(SOURCE)
    rules(tree)[rule].__class__ = ast.Pass
    module = ModuleType("without_a_rule")
    sys.modules[module.__name__] = module
    exec(compile(tree, FILE, "exec"), module.__dict__)
    return module


def failing_line(factory, check=check_factory, limits=LONG):
    """The line of the check that fails, or None."""
    try:
        check(factory, **limits)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        return [frame.lineno for frame in frames if frame.filename == str(FILE)][-1]
    return None


def test_every_rule_has_a_timer_that_breaks_it():
    assert rules(ast.parse(SOURCE)).keys() == RULES.keys()


@pytest.mark.parametrize("rule", RULES, ids=[wrong.__name__ for wrong in RULES.values()])
def test_a_wrong_timer_fails_by_its_rule_and_without_the_rule_it_passes(rule):
    wrong, statement = RULES[rule], rules(ast.parse(SOURCE))[rule]
    assert failing_line(wrong) == statement.lineno
    missed = failing_line(wrong, without(rule).check_factory, QUICK)
    assert (missed is None) == (wrong not in CRASH_INSTEAD)


@pytest.mark.parametrize("wrong", [*MORE, own_timers.Late, own_timers.Twice])
def test_a_timer_that_breaks_several_rules_fails(wrong):
    assert failing_line(wrong) is not None


@pytest.mark.parametrize(
    "right", [own_timers.Right, wrong_timers.Loose, wrong_timers.LifoUnspecified]
)
def test_a_right_timer_passes_however_odd_it_is(right):
    check_factory(right, **QUICK)


def test_what_is_no_timer_fails():
    with pytest.raises(AttributeError, match="parameters"):
        check_factory(own_timers.NoTimer, **QUICK)


def test_the_message_says_the_rule_with_its_values():
    with pytest.raises(AssertionError, match=r"handle np.int64\(\d+\) is not an int"):
        check_factory(wrong_timers.NumpyHandles, **QUICK)
