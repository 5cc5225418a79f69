"""A pytest plugin: `pytest --timer module:factory` checks a timer in Python against the contract.

pytest loads this module in every project where wheelwork is installed, so it imports nothing until
the option is given.
"""

from typing import Any

import pytest


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
