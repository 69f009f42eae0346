"""Forty and more odd endings: each is its own task's, and the worker that had it goes on.

All are played on one cluster of two processes.  What is promised of each stands in `odd/`, and for
readers in docs/odd-tasks.md.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from operator import add
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

from shoal import Client, wait
from shoal.errors import KilledWorker
from tests.cluster.odd.case import CASES, Case, is_right, is_there
from tests.cluster.odd.reading import ARGUMENTS, ends_the_process

for room in ("raising", "staying", "returning", "doing"):
    import_module(f"tests.cluster.odd.{room}")

SECONDS_MAX = 5.0
PAGE = Path(__file__).parents[2] / "docs" / "odd-tasks.md"
_delayed: Any = dask.delayed


class Stage:
    """Two worker processes of one thread each; odd tasks run on the first."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.pid_by_address = client.run(os.getpid)
        self.odd, self.other = self.pid_by_address

    def assert_alive(self) -> None:
        """Both workers are the processes that they were, and compute."""
        sums = [
            self.client.submit(add, 1, x, workers=[address], pure=False)
            for x, address in enumerate(self.pid_by_address)
        ]
        assert self.client.gather(sums) == [1, 2]
        assert self.client.run(os.getpid) == self.pid_by_address


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """The one cluster of all cases."""
    with Client(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as client:
        stage = Stage(client)
        for address in stage.pid_by_address:  # the client is connected to each, and they to another
            large = client.submit(np.ones, 1_000_000, workers=[address], pure=False)
            for reader in stage.pid_by_address:
                assert client.submit(np.sum, large, workers=[reader], pure=False).result() == 1e6
            assert large.result().sum() == 1e6
        yield stage


def outcome(ask: Callable[[], object]) -> tuple[object, BaseException | None]:
    """What a call returns, or raises."""
    try:
        return ask(), None
    except BaseException as error:
        return None, error


def assert_case(case: Case, value: object, error: BaseException | None) -> None:
    """A result is as promised, at the client."""
    if case.error is None:
        assert error is None, repr(error)
        assert case.check is not None
        assert case.check(value)
    else:
        assert error is not None, type(value)
        assert case.is_right(error), (type(error), error, getattr(error, "__notes__", ()))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_an_odd_ending_is_its_own_tasks_and_the_worker_goes_on(case: Case, stage: Stage) -> None:
    started_at = time.monotonic()
    play_submitted(case, stage)
    if not case.once:
        play_in_a_graph(case, stage)
    stage.assert_alive()
    assert time.monotonic() - started_at < SECONDS_MAX


def play_submitted(case: Case, stage: Stage) -> None:
    """By itself, gathered beside others, and as an input on its own worker and another."""
    client, here = stage.client, [stage.odd]
    made = client.submit(case.body, workers=here, key=f"submitted-{case.name}")
    healthy = client.submit(add, 1, 1, workers=here, pure=False)
    assert healthy.result() == 2
    look = (case.body.__module__, case.name, made)
    wait(made)
    assert repr(made).startswith(f"<Future: {made.status}")
    if case.check is None:
        assert made.status == "error"
        assert_case(case, None, made.exception())
    else:
        assert made.status == "finished"
        assert made.exception() is None
        assert client.submit(is_right, *look, workers=here, pure=False).result() is True
    assert_case(case, *outcome(made.result))
    assert_case(case, *outcome(lambda: client.gather([healthy, made])[1]))
    if not case.once:
        assert client.gather([healthy, made], errors="skip")[0] == 2
    far = client.submit(is_right, *look, workers=[stage.other], pure=False)
    if case.error is None:
        assert far.result() is True
    else:
        assert_case(case, *outcome(far.result))


def play_in_a_graph(case: Case, stage: Stage) -> None:
    """Of a collection: the task, and one that needs its result."""
    task = _delayed(case.body, pure=False)()
    made, needing = stage.client.compute([task, _delayed(is_there)(task)], workers=[stage.odd])
    assert_case(case, *outcome(made.result))
    value, error = outcome(needing.result)
    if case.check is None:
        assert_case(case, None, error)
    else:
        assert value is True, repr(error)


@pytest.mark.parametrize("make", ARGUMENTS, ids=lambda make: make.__name__)
def test_what_can_not_be_read_on_the_worker_is_the_error_of_that_task(
    make: Callable[[], Any], stage: Stage
) -> None:
    function, arguments, kind = make()
    future = stage.client.submit(function, *arguments, workers=[stage.odd], key="not-to-be-read")
    error = future.exception()
    assert type(error).__name__ == kind
    assert "unpickling the function or the arguments of task 'not-to-be-read'" in error.__notes__[0]
    stage.assert_alive()


def test_an_awaited_future_raises_the_same(stage: Stage) -> None:
    cases = [case for case in CASES.values() if case.check is None and not case.once]

    async def ask_all() -> None:
        address = stage.client.scheduler_info(n_workers=0)["address"]
        async with Client(address, asynchronous=True) as client:
            for case in cases:
                future = client.submit(case.body, workers=[stage.odd], pure=False)
                assert_case(case, None, await future.exception())
                try:
                    await future
                except asyncio.CancelledError as error:
                    assert_case(case, None, error)
                except RuntimeError as error:  # what Python makes of a StopIteration
                    is_stop = case.error is StopIteration
                    assert_case(case, None, error.__cause__ if is_stop else error)
                except BaseException as error:
                    assert_case(case, None, error)
                else:
                    raise AssertionError(case.name)

    asyncio.run(ask_all())
    stage.assert_alive()


def test_sizes_that_are_lies_add_up_to_something_that_can_be_told(stage: Stage) -> None:
    liar = CASES["huge_size"].body
    lies = [stage.client.submit(liar, workers=[stage.odd], pure=False) for _ in range(50)]
    wait(lies)
    assert stage.odd in stage.client.scheduler_info()["workers"]
    assert len(stage.client.gather(lies)) == 50
    stage.assert_alive()


def test_a_task_that_ends_its_process_is_told_as_that_and_others_go_on(caplog) -> None:
    caplog.set_level("CRITICAL")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as client,
    ):
        deadly = client.submit(ends_the_process, key="deadly")
        with pytest.raises(
            KilledWorker, match=r"'deadly' was running on 1 workers(.|\n)*os\._exit"
        ):
            deadly.result()
        assert client.submit(add, 1, 2).result() == 3


def test_the_page_has_every_case_and_no_other() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    told = [
        name
        for row in rows
        for name in re.findall(r"`(\w+)`", row.rpartition("|")[0].rpartition("|")[2])
    ]
    assert sorted(told) == sorted(CASES)
