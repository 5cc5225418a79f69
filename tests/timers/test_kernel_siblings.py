"""The kernels are siblings: the same functions with the same signatures in the same order, so that
they read alike.
"""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import timers.kernels
import timers.schemes
from timers.kernels import dispatch
from timers.kernels.counters import COUNTERS
from timers.protocol import Timer
from timers.registry import TIMERS, names, timer_class
from timers.schemes.base import KernelTimer
from timers.traits import NO_COUNTER, READS

IN_ORDER = (
    *("allocate", "enlarged", "move_all", "schedule", "cancel", "reschedule", "advance"),
    *("due", "next_expiry", "next_wakeup", "snapshot", "check"),
)
FUNCTIONS = dispatch.PYTHON_FUNCTIONS | {
    name: tuple(inspect.signature(function).parameters)
    for name, function in vars(dispatch).items()
    if inspect.isfunction(function) and hasattr(function, "__wrapped__")  # dispatched
}
NOT_SCHEMES = ("__init__", "base", "guards")


def stems(package: ModuleType) -> list[str]:
    return sorted(path.stem for place in package.__path__ for path in Path(place).glob("*.py"))


MODULES = [import_module(f"timers.kernels.{stem}") for stem in stems(timers.kernels)]
KERNELS = [module for module in MODULES if hasattr(module, "State")]

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
every_name = pytest.mark.parametrize("name", names())


def python_of(kernel: ModuleType, name: str) -> Any:
    """A function of a kernel, as Python; what is inside a compiled one."""
    function = getattr(kernel, name)
    return getattr(function, "py_func", function)


@every_kernel
def test_kernel_has_every_function_with_the_common_parameters(kernel: ModuleType) -> None:
    for function, parameters in FUNCTIONS.items():
        assert tuple(inspect.signature(python_of(kernel, function)).parameters) == parameters


@every_kernel
def test_kernel_defines_its_functions_in_the_common_order(kernel: ModuleType) -> None:
    defined: list[str] = []
    for node in ast.parse(inspect.getsource(kernel)).body:
        if isinstance(node, ast.FunctionDef):
            defined.append(node.name)
        elif isinstance(node, ast.Assign):
            defined += [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
    assert tuple(name for name in defined if name in FUNCTIONS) == IN_ORDER
    assert set(IN_ORDER) == set(FUNCTIONS)


SHARED = {
    "enlarged": "pool",
    "move_all": "pool",
    "schedule": "operations",
    "cancel": "operations",
    "reschedule": "operations",
}
"""The functions that kernels have in common, and where they are."""
GROWTH = {"enlarged", "move_all"}  # a kernel has its own if more than the places grows, as a heap


@every_kernel
def test_kernels_share_what_their_schemes_allow(kernel: ModuleType) -> None:
    stem = kernel.__name__.rpartition(".")[2]
    for function in FUNCTIONS:
        homes = {SHARED.get(function, stem), *({stem} if function in GROWTH else ())}
        assert python_of(kernel, function).__module__.removeprefix("timers.kernels.") in homes


@every_kernel
def test_kernel_opens_with_idea_example_costs_drawback_and_source(kernel: ModuleType) -> None:
    text = inspect.getdoc(kernel)
    assert text is not None
    if hasattr(kernel, "Ring"):  # it has a wheel, which is drawn with the clock in it
        assert re.search(r"\| +now +\|", text.partition("Example")[0])
    places = [text.index(word) for word in ("Example", "Costs:", "Drawback:", "Source:")]
    assert places == sorted(places)


@every_kernel
def test_kernel_has_a_class_file_of_the_same_stem(kernel: ModuleType) -> None:
    cls = timer_class(kernel.__name__.rpartition(".")[2].replace("_", "-"))
    assert issubclass(cls, KernelTimer)
    assert dispatch.kernel_of(type(cls().state)) is kernel


def test_registry_lists_every_class_file_and_nothing_else() -> None:
    targets = [target.partition(":")[0] for target in TIMERS.values()]
    assert sorted(targets) == [
        f"timers.schemes.{stem}" for stem in stems(timers.schemes) if stem not in NOT_SCHEMES
    ]
    for name, target in TIMERS.items():
        assert target.partition(":")[0].rpartition(".")[2] == name.replace("-", "_")
        assert target.partition(":")[2] == "".join(part.title() for part in name.split("-"))
        assert getattr(timers, target.partition(":")[2]) is timer_class(name)


@every_name
def test_timer_has_every_member_of_the_protocol_with_its_parameters(name: str) -> None:
    timer = timer_class(name)()
    assert isinstance(timer, Timer)
    for member, declared in vars(Timer).items():
        if inspect.isfunction(declared) and not member.startswith("_"):
            attribute = getattr(timer_class(name), member)
            assert list(inspect.signature(attribute).parameters) == list(
                inspect.signature(declared).parameters
            )
            assert inspect.getdoc(attribute)


@every_name
def test_traits_are_complete(name: str) -> None:
    traits = timer_class(name).traits
    assert traits.name == name
    for words in ("scheme", "summary", "horizon", "jumps", "suits", "drawback", "source"):
        assert getattr(traits, words).strip(), words
        assert "\n" not in getattr(traits, words)
    for cost in traits.costs:
        counters = COUNTERS if cost.operation == "expiry" else (*COUNTERS, NO_COUNTER, READS)
        assert cost.counter in counters
        assert cost.load
    assert {"schedule", "cancel", "next_wakeup"} <= {cost.operation for cost in traits.costs}
    assert {"expiry", "tick"} & {cost.operation for cost in traits.costs}
    assert traits.rounding(traits.defaults).bounds()
    if size := traits.parameters.get("wheel_size"):
        assert size.highest == 2**20
        assert f"({size.lowest} .. 2**20)" in inspect.getdoc(timer_class(name))


@every_name
def test_traits_state_the_defaults_of_the_constructor(name: str) -> None:
    parameters = inspect.signature(timer_class(name)).parameters
    positional = {
        key: p.default for key, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD
    }
    assert list(positional.items()) == list(timer_class(name).traits.defaults.items())
    assert timer_class(name)().parameters == positional
    assert parameters["start"].default == 0
