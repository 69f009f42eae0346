"""What ends with time: tasks that nobody may run, idle schedulers, workers that are old enough."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask

from shoal import Client, Scheduler, Worker
from shoal.errors import NoValidWorkerError
from shoal.observe.reasons import LIFETIME
from tests.cluster.commands import FACES as COMMANDS
from tests.cluster.commands import Command
from tests.cluster.faces import Scenario, ask


def test_tasks_that_no_worker_may_run_fail_with_what_they_ask_for(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(client: Any) -> None:
        nowhere = client.submit(len, "abc", workers=["tcp://192.0.2.7:1"])
        needs_nowhere = client.submit(str, nowhere)
        greedy = client.submit(len, "abcd", resources={"GPU": 2})
        error = await ask(nowhere.exception(timeout=10))
        assert isinstance(error, NoValidWorkerError)
        assert error.worker_restrictions == ["tcp://192.0.2.7:1"]
        assert "no connected worker may run it" in str(error)
        assert isinstance(await ask(needs_nowhere.exception(timeout=10)), NoValidWorkerError)
        error = await ask(greedy.exception(timeout=10))
        assert isinstance(error, NoValidWorkerError)
        assert error.resource_restrictions == {"GPU": 2.0}
        assert "GPU=2" in str(error)
        assert await ask(client.submit(len, "abcde").result()) == 5

    with dask.config.set({"distributed.scheduler.no-workers-timeout": "100ms"}):
        play(scenario)


def test_a_worker_whose_time_is_over_hands_its_results_to_others() -> None:
    async def main() -> None:
        async with (
            Scheduler(protocol="inproc") as scheduler,
            Worker(scheduler.address, nthreads=1) as stays,
            Worker(scheduler.address, nthreads=1, lifetime="100ms") as goes,
            Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
        ):
            future = client.submit(bytes, 100_000, workers=[goes.address])
            await future
            story = list(scheduler.story(future.key))
            await asyncio.wait_for(goes.finished(), 10)
            assert goes.close_reason == LIFETIME
            assert list(await client.who_has([future])) == [future.key]
            assert (await client.who_has([future]))[future.key] == (stays.address,)
            assert list(scheduler.story(future.key)) == story  # it was not computed again

    asyncio.run(main())


def test_a_scheduler_that_idles_ends_its_command(tmp_path: Path) -> None:
    arguments = ["scheduler", "--port", "0", "--no-dashboard", "--idle-timeout", "100ms"]
    command = Command(COMMANDS["shoal"], arguments, tmp_path)
    assert command.end() == (0, "")
