"""Code in the scheduler's process asks for what clients ask for, and as they do."""

import asyncio

import pytest

from shoal import Client, Scheduler, Worker

LARGE = bytes(50_000)


def play(scenario):
    """Play it with a scheduler, two workers and a client."""

    async def run():
        async with (
            Scheduler(protocol="inproc") as scheduler,
            Worker(scheduler.address, nthreads=1, name="ant"),
            Worker(scheduler.address, nthreads=1, name="bee"),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            await scenario(scheduler, client)

    asyncio.run(run())


def test_one_worker_may_be_named_by_a_text_and_those_of_a_host_go_together():
    async def scenario(scheduler, client):
        gone = await scheduler.retire_workers("bee")
        assert [worker["name"] for worker in gone.values()] == ["bee"]
        gone = await scheduler.retire_workers(key="host", n=1)
        assert [worker["name"] for worker in gone.values()] == ["ant"]

    play(scenario)


def test_what_a_client_is_refused_it_is_refused():
    async def scenario(scheduler, client):
        for asked in (scheduler, client):
            with pytest.raises(TypeError, match="mutually exclusive"):
                await asked.retire_workers(workers="ant", names="bee")
            with pytest.raises(KeyError, match="nobody"):
                await asked.rebalance(workers="nobody")
            with pytest.raises(KeyError, match="nobody"):
                await asked.restart_workers(["nobody"])
            with pytest.raises(ValueError, match="Can not use replicate to delete"):
                await asked.replicate([], n=0)

    play(scenario)


def test_copies_are_made_on_the_worker_that_is_named_by_a_text():
    async def scenario(scheduler, client):
        future = await client.scatter(LARGE, workers="ant")
        await scheduler.replicate([future.key], workers="bee")
        assert len((await client.who_has([future]))[future.key]) == 2

    play(scenario)


def test_who_asks_from_inside_is_not_told_of_where_graphs_are():
    async def scenario(scheduler, client):
        await scheduler.rebalance()
        told = [event["action"] for _, event in scheduler.get_events("scheduler")]
        assert "add-client" not in told
        assert "remove-client" not in told

    play(scenario)
