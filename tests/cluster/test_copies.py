"""Copies of results, memory that is evened out, and failed tasks that are tried again."""

import os
import signal
import threading
from typing import Any

import dask
import pytest

from shoal import Client, LocalCluster
from tests.cluster.faces import ask

LARGE = 50_000


FAILING = threading.Event()


def fragile() -> int:
    """Raise as long as the test wants that."""
    if FAILING.is_set():
        raise ValueError("not yet")
    return 1


def block(i: int) -> bytes:
    return bytes(LARGE) + bytes([i])


async def ncopies(client: Any, futures: list[Any]) -> list[int]:
    holders = await ask(client.who_has(futures))
    return [len(holders[future.key]) for future in futures]


def test_results_are_copied_to_as_many_workers_as_asked_for_and_no_more(play: Any) -> None:
    async def scenario(client: Any) -> None:
        futures = client.map(block, range(3))
        await ask(client.replicate(futures))
        assert await ncopies(client, futures) == [2, 2, 2]
        await ask(client.replicate(futures[:2], n=1))
        assert await ncopies(client, futures) == [1, 1, 2]
        assert await ask(client.gather(futures)) == [block(i) for i in range(3)]

    play(scenario)


def test_copies_may_be_asked_for_on_some_workers_only(play: Any) -> None:
    async def scenario(client: Any) -> None:
        first, second = await ask(client.nthreads())
        future = client.submit(block, 1, workers=[first])
        await ask(client.replicate([future], workers=[second]))
        assert sorted((await ask(client.who_has([future])))[future.key]) == sorted((first, second))

    play(scenario)


def test_to_replicate_is_not_to_delete(play: Any) -> None:
    async def scenario(client: Any) -> None:
        future = client.submit(block, 1)
        with pytest.raises(ValueError, match="Can not use replicate to delete data"):
            await ask(client.replicate([future], n=0))
        with pytest.raises(ValueError, match="branching_factor"):
            await ask(client.replicate([future], branching_factor=0))

    play(scenario)


@pytest.mark.parametrize("how", ["broadcast", "replicate"])
def test_a_worker_that_comes_later_gets_a_copy_too(how: str) -> None:
    """Case C031."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        future = client.scatter(block(1), broadcast=how == "broadcast", hash=False)
        if how == "replicate":
            client.replicate([future])
        assert len(client.who_has([future])[future.key]) == 2
        cluster.scale(3)
        client.wait_for_workers(3)
        has_it = client.submit(_wait_for_copy, workers=[list(client.nthreads())[2]])
        assert has_it.result(20) is True
        assert len(client.who_has([future])[future.key]) == 3
        cluster.scale(1)
        assert client.gather(future) == block(1)


def test_rounds_drop_what_nobody_needs_and_keep_what_was_asked_for(play: Any) -> None:
    """Case C031."""

    async def scenario(client: Any) -> None:
        assert await ask(client.amm.running()) is True
        await ask(client.amm.stop())  # so that none comes in between
        assert await ask(client.amm.running()) is False
        first, second = await ask(client.nthreads())
        asked = await ask(client.scatter(block(1), broadcast=True, hash=False))
        fetched = client.submit(block, 2, workers=[first])
        length = client.submit(len, fetched, workers=[second])
        assert await ask(length.result()) == LARGE + 1
        assert await ncopies(client, [asked, fetched]) == [2, 2]
        await ask(client.amm.run_once())
        assert await ncopies(client, [asked, fetched]) == [2, 1]
        await ask(client.amm.start())
        assert await ask(client.gather([asked, fetched])) == [block(1), block(2)]

    play(scenario)


def test_what_a_worker_has_on_disk_is_handed_over_before_it_goes() -> None:
    settings = {"distributed.worker.memory": {"target": 0.01, "spill": False, "pause": False}}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            memory_limit="10 MB",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        going = next(iter(client.nthreads()))
        futures = client.scatter([block(i) for i in range(10)], workers=[going], hash=False)
        [worker] = [w for w in cluster.workers.values() if w.address == going]
        while worker.results.spilled_nbytes < 5 * LARGE:
            client.nthreads()  # on its way to disk; a round trip
        assert list(client.retire_workers([going])) == [going]
        assert client.gather(futures) == [block(i) for i in range(10)]


def _wait_for_copy() -> bool:
    """Until there is a result in this worker's memory; nobody tells a task of that."""
    from shoal import get_worker

    data = get_worker().data
    looked = threading.Event()
    return any(len(data) > 0 or looked.wait(0.01) for _ in range(1000))


def test_to_broadcast_what_is_there_already_is_to_copy_it(play: Any) -> None:
    async def scenario(client: Any) -> None:
        value = block(7)
        future = await ask(client.scatter(value))
        assert await ncopies(client, [future]) == [1]
        again = await ask(client.scatter(value, broadcast=True))  # a want that is known
        assert again.key == future.key
        assert await ncopies(client, [future]) == [2]
        computed = client.submit(block, 3, key="computed")
        await ask(client.gather(computed))
        two = await ask(client.scatter({"computed": block(3)}, broadcast=2))
        assert await ncopies(client, [two["computed"]]) == [2]

    play(scenario)


def test_memory_is_evened_out(play: Any) -> None:
    async def scenario(client: Any) -> None:
        first, second = await ask(client.nthreads())
        futures = [client.submit(block, i, workers=[first]) for i in range(10)]
        await ask(client.gather(futures))
        await ask(client.rebalance(futures))
        held = await ask(client.has_what())
        assert [len(held[first]), len(held[second])] == [5, 5]
        assert await ncopies(client, futures) == [1] * 10
        assert await ask(client.gather(futures)) == [block(i) for i in range(10)]
        await ask(client.rebalance())

    play(scenario, memory_limit=0)


def test_a_failed_task_is_tried_again_and_so_is_what_it_needs(play: Any) -> None:
    async def scenario(client: Any) -> None:
        FAILING.set()
        first = client.submit(fragile, pure=False, key="fragile")
        second = client.submit(max, first, 2, pure=False)
        with pytest.raises(ValueError, match="not yet"):
            await ask(client.gather(second))
        FAILING.clear()
        await ask(client.retry([second]))
        assert second.status in ("pending", "finished")
        assert await ask(client.gather([first, second])) == [1, 2]

    play(scenario)


def test_who_does_not_fail_is_not_tried_again(play: Any) -> None:
    async def scenario(client: Any) -> None:
        future = client.submit(block, 1)
        await ask(client.gather(future))
        await ask(client.retry([future]))
        assert future.status == "finished"

    play(scenario)


def test_a_frozen_worker_does_not_hold_up_a_broadcast() -> None:
    """Case C032."""
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        frozen = cluster.workers[0].pid
        os.kill(frozen, signal.SIGSTOP)
        try:
            future = client.scatter(block(1), broadcast=True, hash=False, timeout=10)
            assert len(client.who_has([future])[future.key]) >= 2
        finally:
            os.kill(frozen, signal.SIGCONT)
