"""Coroutines about futures, and the default clients, by their old names."""

import asyncio

import pytest

from shoal.client.current import add_default, remove_default
from shoal.compat.clients import DEFAULT_CLIENTS
from shoal.compat.completing import first_completed, put_as_completed, wait_for_futures
from tests.unit.client.fake_scheduler import play


def test_futures_are_waited_for_one_by_one_or_together():
    async def scenario(client, scheduler):
        futures = client.map(abs, range(3))
        done, not_done = await wait_for_futures({"all": futures})
        assert (done, not_done) == (set(futures), set())
        assert await wait_for_futures([]) == (set(), set())
        queue = asyncio.Queue()
        await put_as_completed(futures, queue)
        assert {queue.get_nowait() for _ in futures} == set(futures)
        assert await first_completed(futures) in futures
        with pytest.raises(ValueError, match="a future at least"):
            await first_completed([])

    play(scenario)


def test_default_clients_are_shown_as_they_come_and_go():
    async def scenario(client, scheduler):
        before = len(DEFAULT_CLIENTS)
        add_default(client)
        assert len(DEFAULT_CLIENTS) == before + 1
        assert DEFAULT_CLIENTS[before] is client
        assert list(DEFAULT_CLIENTS)[-1] == before
        remove_default(client)
        assert len(DEFAULT_CLIENTS) == before
        with pytest.raises(KeyError):
            DEFAULT_CLIENTS[before]

    play(scenario)
