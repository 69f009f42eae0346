"""What holds for every test: nothing is left behind, cheap suites run first, each has its share."""

import gc
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.leaks import Watch, open_what_stays

TESTS = Path(__file__).parent

SHARES = {"unit": 240, "scenes": 80, "sim": 80, "cluster": 700, "faults": 400}
"""Suite → the seconds that its tests may take in all, in two processes on two cores; in the order
in which they run."""

LEAK_GRACE_SECONDS = 5.0

_seconds: defaultdict[str, float] = defaultdict(float)


def _suite(path: Path) -> str:
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A broken unit explains a broken cluster, so units come first."""
    order = {suite: index for index, suite in enumerate(SHARES)}
    items.sort(key=lambda item: order.get(_suite(item.path), len(order)))


def pytest_sessionstart() -> None:
    """What stays open for the life of a process is no test's leak."""
    open_what_stays()


def pytest_collection_finish() -> None:
    """What was imported stays: the collector needn't look at it again after every test."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Nor at what files of tests have left behind that were looked at; there are thousands."""
    yield
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up each suite's time."""
    suite = Path(report.location[0]).parts[1:2]
    _seconds["".join(suite)] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what each suite took, and which one took more than its share."""
    for suite, share in SHARES.items():
        if suite in _seconds:
            over = "  more than its share" if _seconds[suite] > share else ""
            line = f"{suite:8} {_seconds[suite]:6.1f} s of {share} s{over}"
            terminalreporter.write_line(line, red=bool(over))


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves a thread, a process, a descriptor or an exception behind."""
    watch = Watch()
    yield
    allowed = request.node.get_closest_marker("leaks")
    found = watch.leaked(0.0 if allowed else LEAK_GRACE_SECONDS)
    if found and allowed is None:
        pytest.fail("left behind:\n  " + "\n  ".join(found), pytrace=False)
