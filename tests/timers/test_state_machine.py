"""Every timer, with every geometry, does what the model does under any sequence of operations."""
import pytest
from hypothesis import settings

from tests.timers.cases import CASES, EXTREME_CASES, Case
from tests.timers.machine import machine_for, run_machine

__all__ = ["machine_for", "run_machine"]


@pytest.mark.parametrize("case", CASES + EXTREME_CASES, ids=str)
def test_timer_agrees_with_the_model_under_any_operations(case: Case) -> None:
    run_machine(case, settings())
