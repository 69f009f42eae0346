"""What a future counts as: for dask as itself, for calls of its client as its key."""

import pickle

import dask
import pytest
from dask.tokenize import tokenize

from shoal.client.asynchronous import AsyncClient
from shoal.client.errors import LargeGraphWarning
from tests.unit.client.fake_scheduler import TOKEN, play


def inc(x):
    return x + 1


def add(numbers):
    return sum(numbers)


def test_each_future_has_a_token_of_its_own_which_travels_with_it():
    async def scenario(client, scheduler):
        one, two = client.submit(inc, 1), client.submit(inc, 1)
        assert one.key == two.key
        token = tokenize(one)
        assert token == tokenize(one)
        assert token != tokenize(two)
        assert tokenize(pickle.loads(pickle.dumps(one))) == token

    play(scenario)


def test_calls_count_futures_by_their_keys_wherever_they_are():
    async def scenario(client, scheduler):
        one, two = client.submit(inc, 1), client.submit(inc, 1)
        assert client.submit(inc, one).key == client.submit(inc, two).key
        assert client.submit(add, [one]).key == client.submit(add, [two]).key
        assert tokenize(one) != tokenize(two)  # that was for the calls alone

    play(scenario)


def test_a_graph_of_futures_that_came_when_there_was_no_client_is_computed():
    """As when a worker loads a persisted collection outside of any task."""

    async def scenario(client, scheduler):
        async with AsyncClient(scheduler.address, security=TOKEN, set_as_default=False) as other:
            future = other.submit(inc, 1)
            assert await future == 2
            stray = pickle.loads(pickle.dumps(future))
            assert stray.client is None
            with client.as_current():
                graph = {stray.key: stray, "y": (inc, stray.key)}
                assert await client.get(graph, "y") == 3
            assert stray.client is client

    play(scenario)


def test_a_call_that_carries_much_is_warned_of_where_it_was_made():
    async def scenario(client, scheduler):
        with pytest.warns(LargeGraphWarning, match=r"large graph of size .* 1 task:") as caught:
            client.submit(len, b"0" * 10_000_000)
        assert caught[0].filename == __file__
        much = bytes(10_000_000)
        with pytest.warns(LargeGraphWarning):
            client.submit(lambda: len(much))
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
            client.submit(len, b"1" * 10_000_000)  # in silence, or the test fails

    play(scenario)
