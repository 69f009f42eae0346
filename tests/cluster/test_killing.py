"""Workers that a plugin ends at random times."""

import asyncio
import os
import pickle

import pytest

from shoal import Client, LocalCluster
from shoal.testing.killing import KillWorker, NoSuchDelay, UnknownEnding
from tests.cluster.conftest import SMALL
from tests.until import until


@pytest.mark.parametrize("mode", ["sys.exit", "graceful", "segfault"])
def test_a_worker_ends_after_a_random_time_and_its_nanny_starts_another(mode, caplog):
    caplog.set_level("CRITICAL", "shoal")

    async def scenario():
        async with (
            LocalCluster(asynchronous=True, **{**SMALL, "n_workers": 1}) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            process = await client.submit(os.getpid, pure=False)
            (first,) = cluster.scheduler_info["workers"]
            await client.register_plugin(KillWorker(delay="100ms", mode=mode), name="kill")
            await until(lambda: first not in cluster.scheduler_info["workers"])
            await client.unregister_worker_plugin("kill")
            await client.wait_for_workers(1, timeout=20)
            assert await client.submit(os.getpid, pure=False) != process

    asyncio.run(scenario())


def test_a_plugin_that_was_removed_ends_nobody():
    async def scenario():
        async with (
            LocalCluster(asynchronous=True, **{**SMALL, "n_workers": 1}) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            before = list(cluster.scheduler_info["workers"])
            plugin = pickle.loads(pickle.dumps(KillWorker()))
            assert (plugin.delay, plugin.mode) == (100.0, "sys.exit")
            await client.register_plugin(plugin, name="kill")
            await client.unregister_worker_plugin("kill")
            assert await client.submit(abs, -1) == 1
            assert list(cluster.scheduler_info["workers"]) == before

    asyncio.run(scenario())


def test_an_ending_that_there_is_not_is_named():
    with pytest.raises(UnknownEnding, match=r"'sigkill'.*'sys.exit', 'graceful', 'segfault'"):
        KillWorker(mode="sigkill")


@pytest.mark.parametrize("delay", [-1, float("inf"), float("nan")])
def test_a_delay_that_there_is_not_is_named(delay):
    with pytest.raises(NoSuchDelay, match="finite number of seconds"):
        KillWorker(delay=delay)
