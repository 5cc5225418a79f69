"""A pytest plugin: `pytest --timer module:factory`, and the fixture `virtual_time`.

The option checks a timer in Python against the contract. pytest loads this module in every project
where wheelwork is installed, so it imports nothing until the option is given or the fixture used.
"""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from timers.services import ManualClock


@pytest.fixture
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> "ManualClock":
    """The clock of asyncio's loops: it jumps to the next deadline instead of waiting.

    It applies to loops made while the fixture is in use, by `asyncio.run`, `asyncio.Runner` and all
    that build on `asyncio.new_event_loop`. They share the clock, which begins at 0.
    """
    import asyncio

    from timers.services import ManualClock, wheel_event_loop

    clock = ManualClock(autojump=True)
    loop_factory = wheel_event_loop(clock=clock)
    # Not by a policy: those are deprecated, and pytest-asyncio puts back the one that it found.
    for module in (asyncio, asyncio.events):
        monkeypatch.setattr(module, "new_event_loop", loop_factory)
    return clock


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.getgroup("wheelwork").addoption(
        "--timer",
        action="append",
        default=[],
        metavar="MODULE:FACTORY",
        help="check the timers that FACTORY(start=...) makes against the contract of wheelwork",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each timer."""
    for target in config.getoption("timer"):
        items.append(TimerItem.from_parent(session, name=f"timer {target}", target=target))


class TimerItem(pytest.Item):
    """The model-based check of a timer."""

    def __init__(self, *, target: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._target = target

    def runtest(self) -> None:
        """Run the check."""
        from compare.trial.peers.conformance import check_factory, factory_named

        check_factory(factory_named(self._target, self.config.invocation_params.dir))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *rest: Any) -> Any:
        """One line if there is no such timer."""
        from timers.errors import UnknownTimerError

        if isinstance(excinfo.value, UnknownTimerError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Name the timer."""
        return self.path, None, self.name
