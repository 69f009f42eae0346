"""Values published under names, on either face and from client to client."""

import asyncio
from concurrent.futures import CancelledError

import dask
import dask.array
import dask.bag
import pytest

from shoal import Client, Future, LocalCluster
from shoal.client.control.errors import AsynchronousMapping
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask, play_asynchronous

NEAR = {**SMALL, "processes": False}


def inc(x):
    return x + 1


async def by_name(client):
    future = client.submit(inc, 1)
    await ask(client.publish_dataset(future, name="n"))
    got = await ask(client.get_dataset("n"))
    assert isinstance(got, Future)
    assert got.key == future.key
    assert await ask(got.result()) == 2
    with pytest.raises(KeyError, match="Dataset 'n' already exists"):
        await ask(client.publish_dataset(1, name="n"))
    await ask(client.publish_dataset(5, name="n", override=True))
    assert await ask(client.get_dataset("n")) == 5
    await ask(client.unpublish_dataset("n"))
    await ask(client.unpublish_dataset("n"))
    with pytest.raises(KeyError, match="Dataset 'n' not found"):
        await ask(client.get_dataset("n"))
    assert await ask(client.get_dataset("n", default=None)) is None


async def several(client):
    one, two = client.map(inc, [1, 2])
    await ask(client.publish_dataset({"a": one}, b=two))
    await ask(client.publish_dataset(one, two, name="both"))
    await ask(client.publish_dataset({"x": [one, {"y": two}]}, name="nested"))
    assert await ask(client.list_datasets()) == ("a", "b", "both", "nested")
    got = await ask(client.get_dataset(["b", "a"]))
    assert await ask(client.gather(got)) == [3, 2]
    assert await ask(client.gather(await ask(client.get_dataset("both")))) == (2, 3)
    nested = await ask(client.gather(await ask(client.get_dataset("nested"))))
    assert nested == {"x": [2, {"y": 3}]}
    with pytest.raises(KeyError, match="'no'"):
        await ask(client.get_dataset(["a", "no"]))
    (_, default) = await ask(client.get_dataset(["a", "no"], default=7))
    assert default == 7
    await ask(client.unpublish_dataset(["a", "b", "no"]))
    assert await ask(client.list_datasets()) == ("both", "nested")


async def without_name_or_value(client):
    for args, kwargs in (((1,), {}), ((1, 2), {}), ((), {"name": "x"})):
        with pytest.raises(ValueError, match="publish_dataset"):
            await ask(client.publish_dataset(*args, **kwargs))
    await ask(client.publish_dataset())
    assert await ask(client.list_datasets()) == ()


async def names_of_any_kind(client):
    names = ["x", 5, ("a", 1), b"y", 2.5]
    for name in names:
        await ask(client.publish_dataset([name], name=name))
    assert set(await ask(client.list_datasets())) == set(names)
    assert await ask(client.get_dataset(names)) == [[name] for name in names]
    with pytest.raises(TypeError):
        await ask(client.publish_dataset(1, name=object()))


async def what_was_cancelled(client):
    future = client.submit(inc, 1)
    await ask(client.cancel(future))
    with pytest.raises(CancelledError):
        await ask(client.publish_dataset(future, name="n"))
    assert await ask(client.list_datasets()) == ()


async def got_then_unpublished_then_used(client):
    future = client.submit(inc, 1)
    await ask(client.publish_dataset(foo=future))
    del future
    got = await ask(client.get_dataset("foo"))
    await ask(client.unpublish_dataset("foo"))
    assert await ask(got.result(timeout=10)) == 2


async def lets_go(client):
    """Of what was published, got and dropped nothing is left, replaced values included."""
    for number in range(3):
        future = client.submit(inc, number, key=f"k{number}")
        await ask(client.publish_dataset(future, name="n", override=True))
        await ask(future.result())
        del future
        got = await ask(client.get_dataset("n"))
        del got
    await ask(client.unpublish_dataset("n"))
    await ask(client.submit(inc, 0, key="last").result())

    def left(dask_scheduler):
        return sorted(dask_scheduler.tasks), list(dask_scheduler.clients)

    tasks, clients = await ask(client.run_on_scheduler(left))
    assert not any(key.startswith("k") for key in tasks)
    assert clients == [client.id]


SCENARIOS = [
    by_name,
    several,
    without_name_or_value,
    names_of_any_kind,
    what_was_cancelled,
    got_then_unpublished_then_used,
    lets_go,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_values_are_published(play, scenario):
    play(scenario)


def test_a_mapping_of_all_that_is_published():
    with Client(**NEAR) as client:
        published = client.datasets
        published["x"] = client.submit(inc, 1)
        published["y"] = 5
        assert sorted(published) == ["x", "y"]
        assert len(published) == 2
        assert "x" in published
        assert published["x"].result() == 2
        assert dict(published)["y"] == 5
        assert published.get("z", 9) == 9
        with pytest.raises(KeyError, match="already exists"):
            published["x"] = 7
        del published["x"]
        del published["x"]
        assert list(published.items()) == [("y", 5)]
        with pytest.raises(KeyError, match="not found"):
            published["x"]
        assert published.pop("y") == 5
        assert not published
        with pytest.raises(TypeError, match="for name in"):
            aiter(published)


def test_the_mapping_of_an_asynchronous_client_is_awaited():
    async def scenario(client):
        published = client.datasets
        await client.publish_dataset(5, name="x")
        assert await published["x"] == 5
        assert await published.get("y") is None
        assert [name async for name in published] == ["x"]
        for waits in (len, list, lambda d: "x" in d, dict):
            with pytest.raises(TypeError, match="when the client is asynchronous"):
                waits(published)
        with pytest.raises(AsynchronousMapping, match=r"await client\.publish_dataset"):
            published["x"] = 1
        with pytest.raises(AsynchronousMapping, match=r"await client\.unpublish_dataset"):
            del published["x"]

    play_asynchronous(scenario, **NEAR)


def test_what_is_published_outlives_the_client_that_did_it():
    """Collections are found as what they were; one is used in a task of another client."""
    with LocalCluster(**NEAR) as cluster:
        with Client(cluster, set_as_default=False) as client:
            array = client.persist(dask.array.ones(10, chunks=5))
            bag = client.persist(dask.bag.range(4, npartitions=2))
            value = client.persist(dask.delayed(inc)(1))
            future = client.submit(inc, 10)
            client.publish_dataset(array=array, bag=bag, value=value, future=future)
            client.publish_dataset(lazy=dask.array.arange(4, chunks=2))
        with Client(cluster, set_as_default=False) as other, other.as_current():
            assert other.list_datasets() == ("array", "bag", "future", "lazy", "value")
            array = other.get_dataset("array")
            assert isinstance(array, dask.array.Array)
            assert array.sum().compute() == 10
            assert other.get_dataset("bag").sum().compute() == 6
            assert other.get_dataset("value").compute() == 2
            assert other.submit(inc, other.get_dataset("future")).result() == 12
            assert other.get_dataset("lazy").sum().compute() == 6
            wanted_by = other.run_on_scheduler(
                lambda key, dask_scheduler: [
                    client.client_key for client in dask_scheduler.tasks[key].who_wants
                ],
                other.get_dataset("future").key,
            )
            assert "published-future" in wanted_by


def test_a_dataframe_is_published_as_a_dataframe():
    pandas = pytest.importorskip("pandas")
    import dask.dataframe

    with LocalCluster(**NEAR) as cluster:
        frame = pandas.DataFrame({"x": range(10)})
        with Client(cluster, set_as_default=False) as client, client.as_current():
            client.publish_dataset(
                client.persist(dask.dataframe.from_pandas(frame, npartitions=2)), name="df"
            )
        with Client(cluster, set_as_default=False) as other, other.as_current():
            got = other.get_dataset("df")
            assert isinstance(got, dask.dataframe.DataFrame)
            assert got.x.sum().compute() == 45


def test_an_array_is_published_as_it_is_then_and_can_be_written_to():
    numpy = pytest.importorskip("numpy")
    with Client(**NEAR) as client:
        array = numpy.arange(100_000)
        client.publish_dataset({"x": array, "y": "text"}, name="both")
        got = client.get_dataset("both")
        array[0] = 1
        got["x"][1] = 7
        assert got["x"][:3].tolist() == [0, 7, 2]
        assert client.get_dataset("both")["x"][:3].tolist() == [0, 1, 2]


def test_a_client_reads_and_writes_by_the_families_that_its_user_named():
    async def scenario():
        async with (
            LocalCluster(asynchronous=True, **NEAR) as cluster,
            Client(cluster, asynchronous=True) as client,
            Client(cluster, asynchronous=True, serializers=["msgpack"]) as careful,
        ):
            await careful.publish_dataset(x=[1, 2])
            assert await careful.get_dataset("x") == await client.get_dataset("x") == [1, 2]
            with pytest.raises(TypeError):
                await careful.publish_dataset(y=lambda: None)
            await client.publish_dataset(z=lambda: None)
            with pytest.raises(TypeError):
                await careful.get_dataset("z")

    asyncio.run(scenario())


def test_a_task_publishes_and_gets():
    def task():
        from shoal import get_client

        client = get_client()
        client.publish_dataset(client.submit(inc, 5), name="n")
        return client.get_dataset("n").result()

    with Client(**NEAR) as client:
        assert client.submit(task).result() == 6
        assert client.get_dataset("n").result() == 6


def test_whoever_stops_waiting_for_a_value_keeps_nothing_of_it():
    """The answer comes all the same, and what it lends is given back."""

    async def scenario(client):
        future = client.submit(inc, 1, key="lent")
        await client.publish_dataset(future, name="n")
        await future
        del future
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await client.get_dataset("n")
        asking = asyncio.ensure_future(client.get_dataset("n"))
        for _ in range(3):  # it has asked, and nothing was received yet
            await asyncio.sleep(0)
        assert not asking.done()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await client.unpublish_dataset("n")
        assert await client.list_datasets() == ()
        async with asyncio.timeout(10):  # what was lent is given back in a moment
            while await client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)):
                continue

    play_asynchronous(scenario, **NEAR)


def test_futures_that_are_got_belong_to_the_client_that_asked():
    """Though another is the default one."""

    async def scenario():
        async with (
            LocalCluster(asynchronous=True, **NEAR) as cluster,
            Client(cluster, asynchronous=True) as one,
            Client(cluster, asynchronous=True) as two,
        ):
            future = one.submit(inc, 1)
            await one.publish_dataset(future, name="n")
            got = await one.get_dataset("n")
            assert got.client is one
            assert (await two.get_dataset("n")).client is two

    asyncio.run(scenario())
