"""A plugin of pytest: `--leaks=fds,threads,processes` fails tests that leave some of these behind.

Loaded by `pytest_plugins = ["shoal.testing.pytest_leaks"]`.  A test marked `leaking("fds")` may.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Generator
from typing import Any, Final

import psutil
import pytest

from shoal.testing.leaks import children

_OPTION: Final = "--leaks"
_MARK: Final = "leaking"
_COUNTED: Final = pytest.StashKey[dict[str, int]]()


def _open_files() -> int:
    return int(psutil.Process().num_fds())


def _threads() -> int:
    return threading.active_count()


def _processes() -> int:
    return len(children())


COUNTS: Final[dict[str, Callable[[], int]]] = {
    "fds": _open_files,
    "threads": _threads,
    "processes": _processes,
}
"""What can be counted, and how."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's option; without it nothing is counted."""
    parser.getgroup("shoal").addoption(
        _OPTION,
        metavar="WHAT,...",
        help=f"fail tests that leave these behind: {', '.join(COUNTS)}; or all",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The plugin's mark, and a look at its option.

    Raises:
        pytest.UsageError: the option names what can't be counted.
    """
    wanted(config.getoption(_OPTION, None))
    config.addinivalue_line("markers", f"{_MARK}(what, ...): may leave these behind")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Count before a test and its fixtures."""
    names = wanted(item.config.getoption(_OPTION, None))
    mark = item.get_closest_marker(_MARK)
    if mark is not None:
        names = [name for name in names if mark.args and name not in mark.args]
    item.stash[_COUNTED] = {name: COUNTS[name]() for name in names}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Count after them; what is left is an error of the test's end."""
    done = yield
    before = item.stash.get(_COUNTED, {})
    if before:
        gc.collect()  # what only refers to itself is not left behind
    counted = [(name, COUNTS[name]() - n) for name, n in before.items()]
    left = [f"{n} {name}" for name, n in counted if n > 0]
    if left:
        pytest.fail(f"{item.nodeid} left behind: {', '.join(left)}", pytrace=False)
    return done


def wanted(option: str | None) -> list[str]:
    """The names that an option lists.

    Raises:
        pytest.UsageError: it has one that can't be counted.
    """
    names = [name for name in (option or "").split(",") if name]
    if names == ["all"]:
        return list(COUNTS)
    for name in names:
        if name not in COUNTS:
            raise pytest.UsageError(f"{_OPTION}={name}: not one of {', '.join(COUNTS)}")
    return names
