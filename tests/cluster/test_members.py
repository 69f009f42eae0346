"""Workers that are let go, started anew, or given other resources, and what becomes of results."""

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shoal import Client, LocalCluster, wait
from shoal.errors import WithoutNanny, WorkersNotBack
from tests.cluster.faces import ask

LARGE = 50_000


class Gate(threading.Event):
    """An event that a task of this process may ask."""

    def __reduce__(self) -> str:
        return "END"

    def is_set_now(self) -> bool:
        """Whether it is set."""
        return self.is_set()


BEGUN = threading.Event()
END = Gate()


def hold() -> None:
    """Go on until the test says so."""
    BEGUN.set()
    END.wait(10)


def block(i: int) -> bytes:
    return bytes(LARGE) + bytes([i])


def noted(i: int, folder: str) -> bytes:
    """A result too large to be anywhere but on a worker; that it was computed is on disk."""
    with Path(folder, "runs").open("a", encoding="ascii") as file:
        file.write(f"{i}\n")
    return block(i)


async def addresses(client: Any) -> list[str]:
    return list(await ask(client.nthreads()))


def test_a_retired_worker_takes_no_result_with_it(play: Any) -> None:
    async def scenario(client: Any) -> None:
        first, second = await addresses(client)
        futures = [client.submit(block, i, workers=[first]) for i in range(5)]
        scattered = await ask(client.scatter([block(9)], workers=[first], hash=False))
        await ask(client.gather(futures))
        retired = await ask(client.retire_workers([first]))
        assert list(retired) == [first]
        assert retired[first]["nthreads"] == 1
        assert retired.kept == {}
        assert await addresses(client) == [second]
        assert await ask(client.gather(futures)) == [block(i) for i in range(5)]
        assert await ask(client.gather(scattered)) == [block(9)]

    play(scenario)


def test_one_worker_stays_if_nobody_else_could_take_what_only_they_hold(play: Any) -> None:
    """Case C017."""

    async def scenario(client: Any) -> None:
        first, second = await addresses(client)
        future = client.submit(block, 1, workers=[first])
        await ask(client.gather(future))
        began = time.monotonic()
        retired = await ask(client.retire_workers([first, second], close_workers=False))
        assert time.monotonic() - began < 10
        assert list(retired) == [second]
        assert "no other worker can take" in retired.kept[first]
        assert await ask(client.gather(future)) == block(1)
        assert await ask(client.gather(client.submit(sum, [7, 1]))) == 8

    play(scenario)


def test_whom_to_retire_may_be_said_in_one_way_only(play: Any) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(TypeError, match="names and workers are mutually exclusive"):
            await ask(client.retire_workers(workers=["x"], names=["y"]))
        with pytest.raises(TypeError, match="n can't be used together with names or workers"):
            await ask(client.retire_workers(workers=["x"], n=1))
        assert await ask(client.retire_workers(names=["nobody"])) == {}

    play(scenario)


def test_idle_workers_are_retired_if_none_is_named_but_so_many_stay(play: Any) -> None:
    async def scenario(client: Any) -> None:
        assert len(await ask(client.retire_workers(minimum=1))) == 1
        assert len(await addresses(client)) == 1
        assert await ask(client.retire_workers(n=0)) == {}
        assert len(await ask(client.retire_workers(n=1))) == 1

    play(scenario)


def test_a_cluster_that_shrinks_and_grows_loses_nothing(tmp_path: Path) -> None:
    """Case C037: nothing is computed twice, and no scattered value is lost."""

    async def story() -> None:
        async with (
            LocalCluster(
                n_workers=4,
                threads_per_worker=1,
                processes=True,
                asynchronous=True,
                dashboard_address=None,
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            futures = client.map(noted, range(30), folder=str(tmp_path))
            scattered = await client.scatter([block(i) for i in range(10)], hash=False)
            await wait(futures)
            for n in (1, 4, 2, 3, 1):
                await cluster.scale(n)
            assert await client.gather(futures) == [block(i) for i in range(30)]
            assert await client.gather(scattered) == [block(i) for i in range(10)]
            assert cluster.observed == {0}

    asyncio.run(story())
    runs = Counter((tmp_path / "runs").read_text(encoding="ascii").split())
    assert runs == {str(i): 1 for i in range(30)}


def test_restarted_workers_are_other_processes_and_every_future_is_cancelled(
    play_in_processes: Any,
) -> None:
    async def scenario(client: Any) -> None:
        before = await ask(client.run(os.getpid))
        future = client.submit(block, 1)
        await ask(client.gather(future))
        await ask(client.restart())
        after = await ask(client.run(os.getpid))
        assert len(after) == 2
        assert not {*before.values()} & {*after.values()}
        assert future.status == "cancelled"
        assert await ask(client.gather(client.submit(block, 1))) == block(1)

    play_in_processes(scenario)


def test_one_worker_may_be_restarted_by_name_or_address(play_in_processes: Any) -> None:
    async def scenario(client: Any) -> None:
        workers = (await ask(client.scheduler_info()))["workers"]
        address = next(iter(workers))
        others = {a: w["pid"] for a, w in workers.items() if a != address}
        future = client.submit(block, 1, workers=[address])
        await ask(client.gather(future))
        assert await ask(client.restart_workers([address])) == {address: "OK"}
        assert await ask(client.gather(client.submit(block, 2))) == block(2)
        now = {w["pid"] for w in (await ask(client.scheduler_info()))["workers"].values()}
        assert len(now) == 2
        assert now > {*others.values()}
        name = int(workers[address]["name"])
        assert await ask(client.restart_workers([name])) == {name: "OK"}
        with pytest.raises(KeyError, match="nobody"):
            await ask(client.restart_workers(["nobody"]))

    play_in_processes(scenario)


def test_a_worker_that_can_not_close_is_told_of_in_time() -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        frozen = cluster.workers[0]
        os.kill(frozen.pid, signal.SIGSTOP)
        try:
            outcome = client.restart_workers(
                [frozen.worker_address], timeout=0.2, raise_for_error=False
            )
            assert list(outcome.values()) == ["timed out"]
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        client.wait_for_workers(2, timeout=20)


def test_a_worker_that_hangs_is_killed_when_it_is_restarted(caplog) -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        hung = cluster.workers[0]
        pid, hung.held_seconds_max = hung.pid, 0.2
        os.kill(pid, signal.SIGSTOP)
        outcome = client.restart_workers([hung.worker_address], timeout=20)
        assert list(outcome.values()) == ["OK"]
        assert hung.pid != pid
        assert client.submit(abs, -1).result(timeout=10) == 1
    assert "was sent away, and something holds it: it is killed" in caplog.text


def test_who_is_not_back_in_time_is_named_in_the_error() -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        pid = cluster.workers[0].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(TimeoutError, match=r"but, after 0\.1s, 1 have not returned: 0\."):
                client.restart_workers([0], timeout=0.1)
        finally:
            os.kill(pid, signal.SIGCONT)
        client.wait_for_workers(1, timeout=20)


def test_workers_without_a_nanny_are_not_restarted_one_by_one(play: Any) -> None:
    async def scenario(client: Any) -> None:
        there = await addresses(client)
        with pytest.raises(WithoutNanny, match="requires a nanny"):
            await ask(client.restart_workers(there[:1]))
        assert await addresses(client) == there

    play(scenario)


def test_a_restart_without_nannies_sends_workers_away_and_says_so(play: Any) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(WorkersNotBack, match="2 of them had no nanny"):
            await ask(client.restart(timeout=0.1))
        assert await addresses(client) == []

    play(scenario)


def test_a_task_has_the_resources_that_it_asks_for_and_gives_them_back() -> None:
    with Client(
        n_workers=1,
        threads_per_worker=3,
        processes=False,
        dashboard_address=None,
        resources={"GPU": 1, "net": 0.3},
    ) as client:
        began = time.monotonic()
        futures = [client.submit(time.sleep, 0.1, resources={"GPU": 1}, pure=False) for _ in "abc"]
        wait(futures)
        assert time.monotonic() - began >= 0.3
        shares = client.map(block, range(9), resources={"net": 0.1, "GPU": 0.5})
        assert client.gather(shares) == [block(i) for i in range(9)]


def test_a_cancelled_task_gives_its_resources_back_when_it_has_really_ended() -> None:
    """Case C022."""
    with Client(
        n_workers=1,
        threads_per_worker=2,
        processes=False,
        dashboard_address=None,
        resources={"G": 1},
    ) as client:
        future = client.submit(hold, resources={"G": 1}, pure=False)
        assert BEGUN.wait(10)
        future.cancel()
        other = client.submit(END.is_set_now, resources={"G": 1})
        assert client.submit(sum, [1, 1]).result(timeout=15) == 2
        assert not other.done()
        END.set()
        assert other.result(timeout=15) is True


def test_a_worker_may_offer_more_while_tasks_wait_for_it(play: Any) -> None:
    async def scenario(client: Any) -> None:
        future = client.submit(sum, [1, 2], resources={"GPU": 2})

        async def offer(dask_worker: Any) -> None:
            await dask_worker.set_resources(GPU=2)

        first = (await addresses(client))[0]
        await ask(client.run(offer, workers=[first]))
        assert await ask(client.gather(future)) == 3
        info = (await ask(client.scheduler_info()))["workers"]
        assert info[first]["resources"] == {"GPU": 2.0}

    play(scenario)


@pytest.mark.parametrize("wrong", [{"GPU": "1"}, ["GPU"], {"GPU": True}])
def test_resources_are_amounts_by_name(wrong: Any, play: Any) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(TypeError, match="amount"):
            client.submit(sum, [], resources=wrong)
        with pytest.raises(ValueError, match="from 0 on"):
            client.submit(sum, [], resources={"GPU": -1})

    play(scenario)


def test_code_in_the_schedulers_process_may_do_the_same() -> None:
    async def story() -> None:
        async with (
            LocalCluster(
                n_workers=3,
                threads_per_worker=1,
                processes=False,
                asynchronous=True,
                dashboard_address=None,
                memory_limit=0,
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            scheduler = cluster.scheduler
            first, second, third = scheduler.workers
            futures = [client.submit(block, i, workers=[first]) for i in range(6)]
            await client.gather(futures)
            await scheduler.replicate([futures[0].key], n=2)
            assert len(scheduler.tasks[futures[0].key].who_has) == 2
            await scheduler.rebalance(workers=[first, third])
            assert len(scheduler.workers[third].has_what) >= 2
            assert await scheduler.add_resources(second, {"GPU": 1}) == {"GPU": 1.0}
            retired = await scheduler.retire_workers([first])
            assert retired[first]["name"] == "0"
            assert await client.gather(futures) == [block(i) for i in range(6)]
            with pytest.raises(WithoutNanny):
                await scheduler.restart_workers([second])
            with pytest.raises(TypeError, match="mutually exclusive"):
                await scheduler.retire_workers([second], names=["1"])
            with pytest.raises(WorkersNotBack, match="2 have not returned"):
                await scheduler.restart(timeout=0.05)
            assert [name for name in scheduler.clients if name != client.id] == []
            assert futures[0].status == "cancelled"

    asyncio.run(story())


def test_workers_are_named_by_the_host_that_their_address_has_too(play: Any) -> None:
    async def scenario(client: Any) -> None:
        future = client.submit(block, 1, workers=["127.0.0.1"])
        assert await ask(client.gather(future)) == block(1)

    play(scenario, protocol="tcp")


def test_a_restart_waits_for_no_task_and_warns_of_none(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        future = client.submit(time.sleep, 60)
        client.submit(os.getpid, priority=-1)
        client.restart(timeout=30)
        assert future.status == "cancelled"
        assert client.submit(sum, [1, 2]).result(20) == 3
    assert capfd.readouterr().err == ""
